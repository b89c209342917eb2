// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include <fmt/core.h>

#include "libsieve/kernel/host/network_namespace.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/util/system/small_file.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::kernel {

namespace {

using Clock = std::chrono::steady_clock;

// flock has no time limit, so we poll.
constexpr auto pause = std::chrono::milliseconds(5);

constexpr std::size_t longest_note = 512;
constexpr std::size_t longest_command = std::size_t{8} << 20; // more than the kernel lets a command have

tl::unexpected<Error> lock_refusal(const std::string& path, int error) {
    return refusal(fmt::format("the lock among controllers, {}", path), error);
}

Result<UniqueFd> open_folder() {
    if (::mkdir(Lock::folder, 0700) != 0 && errno != EEXIST) return lock_refusal(Lock::folder, errno);
    UniqueFd fd(::open(Lock::folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return lock_refusal(Lock::folder, errno);
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return lock_refusal(Lock::folder, errno);
    // Anybody who can write here could take the lock or remove its file.
    if (info.st_uid != 0 || (info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return kernel_refused(
            fmt::format("the lock among controllers: {} is not root's alone (owner {}, mode "
                        "{:o}); expected owner 0, mode 700",
                        Lock::folder, info.st_uid, info.st_mode & 07777));
    return fd;
}

// Turns a text from /proc or from a lock file into one line that is harmless on a terminal.
std::string one_line(std::string text) {
    while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
    for (char& c : text)
        if (is_control(c)) c = ' ';
    if (text.size() > longest_note) text.resize(longest_note);
    return text;
}

// "process 123 (xdp-sieve load eth0 bad=bad.sieve)"
std::string own_note() {
    std::string command = small_file_or_nothing("/proc/self/cmdline", longest_command);
    if (const std::size_t end = command.find('\0'); end != std::string::npos)
        command.erase(0, command.substr(0, end).rfind('/') + 1); // strip the program's directory
    return fmt::format("process {} ({})", ::getpid(), one_line(std::move(command)));
}

// The note only names the holder, so a failure does not matter.
void write_note(int file) {
    const std::string note = own_note() + "\n";
    if (::ftruncate(file, 0) != 0 || ::pwrite(file, note.data(), note.size(), 0) < 0) return;
}

// The note in the lock file, which names the holder. Empty if the holder has only just taken the lock.
std::string holder_of(int file) {
    std::array<char, 2 * longest_note> text{};
    const ssize_t length = ::pread(file, text.data(), text.size(), 0);
    return length <= 0 ? std::string() : one_line(std::string(text.data(), static_cast<std::size_t>(length)));
}

// Whether the locked file still has the lock's name: the previous holder may have removed the file.
Result<bool> still_named(int folder, const std::string& name, int file) {
    struct stat locked {};
    struct stat named {};
    if (::fstat(file, &locked) != 0) return lock_refusal(name, errno);
    if (::fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) return false;
        return lock_refusal(name, errno);
    }
    return locked.st_dev == named.st_dev && locked.st_ino == named.st_ino;
}

} // namespace

Result<std::string> Lock::file_name() {
    SIEVE_ASSIGN(const std::uint64_t network, network_namespace());
    return fmt::format("net-{}.lock", network);
}

Result<Lock> Lock::take(std::chrono::milliseconds patience,
                        const std::function<void(const std::string& holder)>& waiting) {
    const auto deadline = Clock::now() + patience;
    SIEVE_ASSIGN(const std::string name, file_name());
    SIEVE_ASSIGN(UniqueFd folder_fd, open_folder());
    std::string holder;
    for (;;) {
        UniqueFd file(
            ::openat(folder_fd.get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!file) return lock_refusal(fmt::format("{}/{}", folder, name), errno);
        if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
            SIEVE_ASSIGN(const bool valid, still_named(folder_fd.get(), name, file.get()));
            if (!valid) continue;
            write_note(file.get());
            return Lock(std::move(folder_fd), name, std::move(file));
        }
        if (errno != EWOULDBLOCK && errno != EINTR)
            return lock_refusal(fmt::format("{}/{}", folder, name), errno);
        const std::string now = holder_of(file.get());
        if (!now.empty() && now != holder) {
            holder = now;
            if (waiting && Clock::now() < deadline) waiting(holder);
        }
        const auto left = deadline - Clock::now();
        if (left <= Clock::duration::zero())
            return failure(
                ErrorKind::busy,
                fmt::format("another controller is at work: {} has held the lock for over {:.0f} s; "
                            "wait for it or end it",
                            holder.empty() ? "another process" : holder,
                            std::chrono::duration<double>(patience).count()));
        std::this_thread::sleep_for(std::min<Clock::duration>(pause, left));
    }
}

Lock::~Lock() {
    // Do this while we still hold the lock, so that we cannot remove another controller's file.
    if (file_) ::unlinkat(folder_.get(), name_.c_str(), 0);
}

} // namespace sieve::kernel
