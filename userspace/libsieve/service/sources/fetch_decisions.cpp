// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/fetch_decisions.hpp"

#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "libsieve/service/download/url.hpp"
#include "libsieve/service/lists/decision_file.hpp"
#include "libsieve/service/sources/crowdsec_api.hpp"
#include "libsieve/util/system/memory_file.hpp"

namespace sieve::service::live {

namespace {

// For a URL: everything but letters and digits as %XX.
std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        const bool plain =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == ',';
        out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

} // namespace

std::string stream_url(const CrowdsecSpec& source, SourceSchedule::Fetch fetch) {
    // Without `dedup=false` the API hides decisions behind longer ones of the same address, and a deletion
    // then names a decision that was never sent.
    std::string url = api_url(source, fmt::format("/v1/decisions/stream?startup={}&dedup=false",
                                                  fetch == SourceSchedule::Fetch::whole_list));
    const auto narrow = [&](const char* name, const std::vector<std::string>& words) {
        if (!words.empty())
            url += fmt::format("&{}={}", name, escaped(fmt::format("{}", fmt::join(words, ","))));
    };
    narrow("scopes", source.scopes);
    narrow("origins", source.origins);
    narrow("scenarios_containing", source.scenarios_containing);
    narrow("scenarios_not_containing", source.scenarios_not_containing);
    return url;
}

tl::expected<Decisions, GatherFailure> fetch_decisions(const CrowdsecSpec& source,
                                                       SourceSchedule::Fetch fetch, Time now,
                                                       const SandboxSettings& settings) {
    SIEVE_ASSIGN(const UniqueFd body, make_memory_file("sieve-decisions"));
    SIEVE_ASSIGN(const UniqueFd parsed, make_memory_file("sieve-decisions"));
    FetchOrder order;
    order.request.url = stream_url(source, fetch);
    order.decisions =
        DecisionOrder{{source.types, source.scopes, source.origins}, now.time_since_epoch().count()};
    SIEVE_TRY(ask_api(source, std::move(order), {body.get(), parsed.get()}, settings));
    Result<Decisions> decisions = read_decision_file(parsed.get());
    if (!decisions) {
        decisions.error().message =
            fmt::format("{}: {}", displayed_url(source.url), decisions.error().message);
        return tl::unexpected(std::move(decisions.error()));
    }
    // At the start, the API also lists whatever ended in the last days.
    if (fetch == SourceSchedule::Fetch::whole_list) decisions->deleted.clear();
    return std::move(*decisions);
}

} // namespace sieve::service::live
