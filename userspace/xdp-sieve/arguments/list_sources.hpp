// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What lists of the command line stand for: a file, standard input, all lists of a folder, all files that
// match a pattern, a URL.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/service/download/http_access.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::cli {

[[nodiscard]] bool is_url(const std::string& source);

// With the files of folders and patterns in their place. bad_input: there is none.
[[nodiscard]] Result<std::vector<std::string>> expand_sources(const std::vector<std::string>& sources);

// Opens paths, and has a child without privileges download URLs, each of them once. Messages and labels know
// a URL without what may be secret of it. invalid_request for a URL with a user, since all users see the list
// of processes. `start_progress` is called for each download.
[[nodiscard]] control::OpenSource source_opener(service::HttpAccess access,
                                                std::function<Progress()> start_progress);

// parse_set_argument() and both of the above. `remark` is told what others can read on its way.
[[nodiscard]] Result<control::SetSpec>
read_set_argument(const std::string& text, std::function<Progress()> start_progress,
                  const std::function<void(const std::string&)>& remark);

} // namespace sieve::cli
