// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// One request to CrowdSec's local API, in an unprivileged child that talks to it and parses its answer.
//
// A child for each request costs about 20 ms of processor time (docs/crowdsec.md). In exchange no byte of an
// answer, and no line of the parser's, is in the process that may load BPF programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "libsieve/service/config/values/source_spec.hpp"
#include "libsieve/service/sandbox/child_messages.hpp"
#include "libsieve/service/sources/gather.hpp"

namespace sieve::service::live {

// The API's URL, with this path behind it.
[[nodiscard]] std::string api_url(const CrowdsecSpec& source, std::string_view path);

// Sends order.request, whose url is there already, with the source's credentials; `descriptors` are those of
// a FetchOrder. Blocks for two minutes at most.
[[nodiscard]] tl::expected<HttpAnswer, GatherFailure> ask_api(const CrowdsecSpec& source, FetchOrder order,
                                                              std::vector<int> descriptors,
                                                              const SandboxSettings& settings);

} // namespace sieve::service::live
