// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/state/folder_owner.hpp"

#include <unistd.h>

#include <cerrno>

#include <fmt/core.h>

#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

bool is_ours_alone(const struct stat& file) {
    return file.st_uid == ::geteuid() && (file.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

Status check_owner(const std::string& state) {
    const auto fault = [&](const std::string& what) {
        return bad_input(fmt::format("state directory {}: {}", printable(state), what));
    };
    struct stat info {};
    if (::stat(state.c_str(), &info) != 0) return fault("cannot be read: " + errno_text(errno));
    if (!S_ISDIR(info.st_mode)) return fault("is no folder");
    if (is_ours_alone(info)) return {};
    return fault(fmt::format("others may write to it (owner {}, mode {:o}); expected owner {}, mode 700",
                             info.st_uid, info.st_mode & 07777, ::geteuid()));
}

} // namespace sieve::service
