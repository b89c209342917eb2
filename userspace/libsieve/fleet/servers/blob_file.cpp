// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/servers/blob_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include <fmt/core.h>

#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::fleet {

namespace {

Status cannot(const std::string& path, int error) {
    return bad_input(fmt::format("{}: cannot be written: {}", printable(path), errno_text(error)));
}

Status sync_folder_of(const std::string& path) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    const UniqueFd file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!file || ::fsync(file.get()) != 0) return cannot(folder, errno);
    return {};
}

} // namespace

Status keep_blob(const Blob& blob, const std::string& path, const std::string& name,
                 const std::function<Status(int file)>& bring) {
    if (::access(path.c_str(), F_OK) == 0) return {};
    const std::string part = path + ".part";
    {
        const UniqueFd file(::open(part.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!file) return cannot(part, errno);
        SIEVE_TRY(bring(file.get()));
        SIEVE_ASSIGN(const std::string digest, sha256_of_file(file.get()));
        if (digest != blob.digest) {
            (void)::unlink(part.c_str());
            return bad_input(fmt::format("{}: has SHA-256 {}, expected {}", name, digest, blob.digest));
        }
        if (::fsync(file.get()) != 0) return cannot(part, errno);
    }
    if (::rename(part.c_str(), path.c_str()) != 0) return cannot(path, errno);
    return sync_folder_of(path);
}

} // namespace sieve::fleet
