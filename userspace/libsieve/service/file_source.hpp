// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Lists in files: one file, all lists of a folder, all files that match a pattern.
#pragma once

#include <memory>
#include <string_view>

#include "libsieve/service/source.hpp"

namespace sieve::service {

// A folder's lists are its regular files, in the order of their names, but not those that editors and package
// managers leave behind (is_list_name()). Folders in it are not entered.
[[nodiscard]] std::unique_ptr<Source> make_file_source(const SourceSpec& spec);

// False for hidden files and names that end in ~, .bak, .tmp, .swp, .part or .new, or have .dpkg- or .rpm in
// them.
[[nodiscard]] bool is_list_name(std::string_view name);

} // namespace sieve::service
