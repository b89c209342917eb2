// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/crowdsec_api.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "libsieve/service/download/url.hpp"
#include "libsieve/service/sandbox/child.hpp"

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
    SandboxLimits limits = settings.limits;
    limits.fetch = std::min<std::chrono::milliseconds>(limits.fetch, longest_answer);
    limits.redirects = 0; // an API has no other place
    order.confinement = {.role = ChildRole::fetch,
                         .user = settings.user,
                         .memory_bytes = limits.memory_bytes,
                         .file_bytes = limits.source_bytes,
                         .processor = limits.processor,
                         .nice = limits.nice,
                         .parent = ::getpid()};
    order.request.access = source.access;
    order.request.limits = limits;
    order.key_file = source.key_file;

    ChildOrder child;
    child.role = ChildRole::fetch;
    child.message = write_order(order);
    child.descriptors = std::move(descriptors);
    child.time_limit =
        limits.fetch + std::chrono::seconds(10); // libcurl ends a download itself, and says more
    child.started = settings.started;
    child.cancel = settings.cancel;
    const Result<ChildEnd> end = run_child(child);
    if (!end) return tl::unexpected(GatherFailure{end.error(), {}});
    if (end->report.empty()) {
        const std::string how = describe(*end, child, limits);
        return tl::unexpected(GatherFailure{
            {ErrorKind::bad_input, fmt::format("{}: asking it {}", displayed_url(source.url), how), {}}, {}});
    }
    auto answer = read_report<HttpAnswer>(end->report);
    if (!answer) return tl::unexpected(GatherFailure{answer.error().error, answer.error().retry_after});
    return std::move(*answer);
}

} // namespace sieve::service::live
