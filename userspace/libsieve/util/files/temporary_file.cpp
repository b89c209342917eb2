// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/files/temporary_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include <fmt/core.h>

#include "libsieve/util/text/printable.hpp"

namespace sieve {

namespace {

// File systems without O_TMPFILE get a file with a name, which is removed at once.
UniqueFd open_unnamed(const std::string& directory) {
    UniqueFd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600));
    if (file || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return file;
    std::string name = directory + "/xdp-sieve-XXXXXX"; // mkostemp makes it with mode 0600
    file = UniqueFd(::mkostemp(name.data(), O_CLOEXEC));
    if (file) ::unlink(name.c_str());
    return file;
}

// Transfers all bytes with `transfer` (pread or pwrite). Returns an errno value, or 0.
template <class Transfer, class Byte>
int transfer_all(const Transfer& transfer, int file, Byte* bytes, std::size_t count, std::uint64_t at) {
    while (count > 0) {
        const ssize_t done = transfer(file, bytes, count, static_cast<off_t>(at));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return errno;
        if (done == 0) return EIO; // the file ends too early
        bytes += done;
        at += static_cast<std::uint64_t>(done);
        count -= static_cast<std::size_t>(done);
    }
    return 0;
}

} // namespace

Result<TemporaryFile> TemporaryFile::create(std::string_view content) {
    const char* wanted = std::getenv("TMPDIR"); // NOLINT(concurrency-mt-unsafe)
    std::string directory = wanted != nullptr && *wanted != '\0' ? wanted : "/var/tmp";
    UniqueFd file = open_unnamed(directory);
    if (!file)
        return bad_input(fmt::format("{}: no temporary file can be made there: {}; $TMPDIR names another "
                                     "directory",
                                     printable(directory), errno_text(errno)));
    return TemporaryFile(std::move(file), std::move(directory), content);
}

Status TemporaryFile::write(std::uint64_t at, const void* bytes, std::size_t count) const {
    if (const int error = transfer_all(::pwrite, file_.get(), static_cast<const char*>(bytes), count, at))
        return fault("written", error);
    return {};
}

Status TemporaryFile::read(std::uint64_t at, void* bytes, std::size_t count) const {
    if (const int error = transfer_all(::pread, file_.get(), static_cast<char*>(bytes), count, at))
        return fault("read", error);
    return {};
}

tl::unexpected<Error> TemporaryFile::fault(const char* what, int error) const {
    return bad_input(fmt::format("{}: the temporary file of {} cannot be {}: {}; $TMPDIR names another "
                                 "directory",
                                 printable(directory_), content_, what, errno_text(error)));
}

} // namespace sieve
