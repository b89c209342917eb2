// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/files/output.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include "libsieve/util/system/deferred_signals.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve {

namespace {

tl::unexpected<Error> unwritable(const std::string& path, const std::string& why) {
    return bad_input(fmt::format("{}: cannot be written: {}", printable(path), why));
}

tl::unexpected<Error> unwritable(const std::string& path, int error) {
    return unwritable(path, errno_text(error));
}

// The output's path after symbolic links are followed.
struct Target {
    std::string path;
    std::optional<FileIdentity> present; // the file that exists there
};

const char* describe_type(mode_t mode) {
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "a directory";
    case S_IFCHR:
    case S_IFBLK:
        return "a device";
    case S_IFIFO:
        return "a pipe";
    case S_IFSOCK:
        return "a socket";
    default:
        return "no file";
    }
}

// Whether the file is empty or begins like an output of this kind.
Result<bool> is_of_kind(const std::string& path, const OutputKind& kind) {
    // O_NONBLOCK: the path may have become a FIFO in the meantime, and open() must not wait for it.
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd) return unwritable(path, errno);
    std::array<char, 64> first{};
    const ssize_t got = ::pread(fd.get(), first.data(), first.size(), 0);
    if (got < 0) return unwritable(path, errno);
    const std::string_view text(first.data(), static_cast<std::size_t>(got));
    return text.empty() || std::any_of(kind.beginnings.begin(), kind.beginnings.end(),
                                       [&](std::string_view begin) { return text.starts_with(begin); });
}

Result<Target> find_target(const std::string& path, const OutputKind& kind, Replace replace) {
    struct stat info {};
    if (replace == Replace::own) {
        if (::lstat(path.c_str(), &info) == 0) return Target{path, FileIdentity{info.st_dev, info.st_ino}};
        if (errno != ENOENT) return unwritable(path, errno);
        return Target{path, std::nullopt};
    }
    if (::stat(path.c_str(), &info) != 0) {
        if (errno != ENOENT) return unwritable(path, errno);
        if (::lstat(path.c_str(), &info) == 0)
            return unwritable(path, "it is a symbolic link that leads to nothing");
        return Target{path, std::nullopt};
    }
    if (!S_ISREG(info.st_mode))
        return unwritable(path, fmt::format("it is {}, expected a new name or a regular file",
                                            describe_type(info.st_mode)));
    if (replace == Replace::ours) {
        SIEVE_ASSIGN(const bool ours, is_of_kind(path, kind));
        if (!ours)
            return failure(ErrorKind::foreign_file, fmt::format("{}: cannot be written: the file is no {}",
                                                                printable(path), kind.name));
    }
    const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
    if (!resolved) return unwritable(path, errno);
    return Target{resolved.get(), FileIdentity{info.st_dev, info.st_ino}};
}

std::string directory_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// Returns 0 or the error number. Gives up when a signal is pending.
int write_all(int fd, std::span<const char> content, const DeferredSignals& signals) {
    constexpr std::size_t most = std::size_t{16} << 20;
    while (!content.empty()) {
        if (signals.pending()) return EINTR;
        const ssize_t put = ::write(fd, content.data(), std::min(content.size(), most));
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return errno;
        content = content.subspan(static_cast<std::size_t>(put));
    }
    return ::fsync(fd) != 0 ? errno : 0;
}

// Creates a file with a new name beside the target: "set.sieve.Qx4fT0".
UniqueFd create_beside(const std::string& target, mode_t mode, std::string& name) {
    name = target + ".XXXXXX";
    UniqueFd fd(::mkostemp(name.data(), O_CLOEXEC));
    if (fd && mode != 0600) {
        const mode_t mask = ::umask(0);
        ::umask(mask);
        ::fchmod(fd.get(), mode & ~mask);
    }
    return fd;
}

// Gives the file its name. Returns 0 or the error number; EEXIST if the name had to be new but exists.
int rename_to(const std::string& from, const Target& target) {
    if (target.present) return ::rename(from.c_str(), target.path.c_str()) != 0 ? errno : 0;
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, target.path.c_str(), RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
    // the file system has no RENAME_NOREPLACE
    return ::rename(from.c_str(), target.path.c_str()) != 0 ? errno : 0;
}

// Gives an unnamed file this name, which must be new.
int link_as(int fd, const std::string& name) {
    const std::string self = fmt::format("/proc/self/fd/{}", fd);
    return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0 ? errno : 0;
}

int write_named(const Target& target, std::span<const char> content, mode_t mode,
                const DeferredSignals& signals) {
    std::string name;
    const UniqueFd fd = create_beside(target.path, mode, name);
    if (!fd) return errno;
    int error = write_all(fd.get(), content, signals);
    if (error == 0) error = rename_to(name, target);
    if (error != 0) ::unlink(name.c_str());
    return error;
}

// linkat(2) does not replace a file, so the new file gets a temporary name first.
int replace_by(int fd, const Target& target) {
    std::uint64_t random = 0;
    if (::getrandom(&random, sizeof(random), 0) != sizeof(random)) return errno;
    const std::string name = fmt::format("{}.{:016x}", target.path, random);
    int error = link_as(fd, name);
    if (error != 0) return error;
    error = rename_to(name, target);
    if (error != 0) ::unlink(name.c_str());
    return error;
}

// Returns 0 or the error number. EOPNOTSUPP: the file system has no unnamed files, so the caller must write a
// named one.
int write_unnamed(const Target& target, std::span<const char> content, mode_t mode,
                  const DeferredSignals& signals) {
    const UniqueFd fd(::open(directory_of(target.path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
    if (!fd) return errno == EISDIR || errno == EINVAL ? EOPNOTSUPP : errno;
    if (const int failed = write_all(fd.get(), content, signals); failed != 0) return failed;
    const int error = target.present ? replace_by(fd.get(), target) : link_as(fd.get(), target.path);
    return error == ENOENT ? EOPNOTSUPP : error; // there is no /proc, which linkat() needs to name the file
}

// A new name is on the disk once its directory is. Errors are ignored: some file systems cannot sync a
// directory.
void sync_directory(const std::string& path) {
    const UniqueFd fd(::open(directory_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd) ::fsync(fd.get());
}

} // namespace

Status check_output(const std::string& path, const OutputKind& kind, Replace replace,
                    std::span<const Input> inputs) {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0)
        for (const Input& input : inputs)
            if (FileIdentity{info.st_dev, info.st_ino} == input.identity())
                return unwritable(path, fmt::format("it is the input {}", input.name()));
    SIEVE_ASSIGN(const Target target, find_target(path, kind, replace));
    const std::string directory = directory_of(target.path);
    if (::access(directory.c_str(), W_OK | X_OK) != 0) return unwritable(path, errno);
    return {};
}

Status write_output(const std::string& path, std::span<const char> content, const OutputKind& kind,
                    Replace replace, Staging staging) {
    SIEVE_ASSIGN(const Target target, find_target(path, kind, replace));
    const DeferredSignals signals; // no signal ends the process while a temporary name exists
    int error = EOPNOTSUPP;
    if (staging == Staging::unnamed) error = write_unnamed(target, content, kind.mode, signals);
    if (error == EOPNOTSUPP) error = write_named(target, content, kind.mode, signals);
    if (error != 0) return unwritable(path, error);
    sync_directory(target.path);
    return {};
}

Result<UniqueFd> open_output(const std::string& path, const OutputKind& kind, Replace replace) {
    SIEVE_ASSIGN(const Target target, find_target(path, kind, replace));
    const int flags = target.present ? 0 : O_CREAT | O_EXCL;
    UniqueFd fd(::open(target.path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags, kind.mode));
    if (!fd) return unwritable(path, errno);
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return unwritable(path, errno);
    if (!S_ISREG(info.st_mode)) return unwritable(path, "it was exchanged meanwhile");
    if (::ftruncate(fd.get(), 0) != 0) return unwritable(path, errno);
    return fd;
}

} // namespace sieve
