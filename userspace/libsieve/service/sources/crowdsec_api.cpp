// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/crowdsec_api.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "libsieve/service/download/url.hpp"

namespace sieve::service::live {

namespace {

// A question is answered at once, or something is wrong.
constexpr std::chrono::minutes longest_answer{2};

} // namespace

std::string api_url(const CrowdsecSpec& source, std::string_view path) {
    std::string url = source.url;
    while (!url.empty() && url.back() == '/') url.pop_back();
    return url.append(path);
}

tl::expected<HttpAnswer, GatherFailure> ask_api(const CrowdsecSpec& source, FetchOrder order,
                                                std::vector<int> descriptors,
                                                const SandboxSettings& settings) {
    SandboxSettings asking = settings;
    asking.progress = {};
    asking.limits.fetch = std::min<std::chrono::milliseconds>(asking.limits.fetch, longest_answer);
    asking.limits.redirects = 0; // an API has no other place
    order.request.access = source.access;
    order.request.limits = asking.limits;
    order.key_file = source.key_file;
    return run_to_end<HttpAnswer>(asking, child_for(asking, order, std::move(descriptors)),
                                  displayed_url(source.url) + ": asking it");
}

} // namespace sieve::service::live
