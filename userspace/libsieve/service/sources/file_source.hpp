// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Lists in files: all lists of a folder, all files that match a pattern.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// The lists of a folder: its regular files, in the order of their names, but not those that editors and
// package managers leave behind (is_list_name()). Folders in it are not entered. bad_input: the folder cannot
// be read, or the kernel does not say what a name in it stands for, such as a link that leads nowhere.
[[nodiscard]] Result<std::vector<std::string>> files_of_folder(const std::string& path);

// The regular files that match a pattern, in the order of their names. No match is no error. bad_input: as
// above; also for the folder in front of the first wildcard.
[[nodiscard]] Result<std::vector<std::string>> files_of_glob(const std::string& pattern);

// False for hidden files and names that end in ~, .bak, .tmp, .swp, .part or .new, or have .dpkg- or .rpm in
// them.
[[nodiscard]] bool is_list_name(std::string_view name);

} // namespace sieve::service
