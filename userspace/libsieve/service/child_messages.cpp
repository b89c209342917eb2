// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/child_messages.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "libsieve/util/printable.hpp"

namespace sieve::service {

namespace {

using nlohmann::json;

// Of a child's sentences.
constexpr std::size_t longest_text = 2000;
constexpr std::size_t most_remarks = 20;

template <class Value>
void put(json& to, const char* name, const std::optional<Value>& value) {
    if (value) to[name] = *value;
}

template <class Value>
void take(const json& from, const char* name, std::optional<Value>& value) {
    if (const auto found = from.find(name); found != from.end()) value = found->get<Value>();
}

// For terminals, and for whoever reads the line: any bytes may be in a message.
std::string one_line(const json& message) {
    return message.dump(-1, ' ', true, json::error_handler_t::replace);
}

json json_of(const Confinement& confinement) {
    return {{"role", static_cast<int>(confinement.role)},
            {"uid", confinement.user.uid},
            {"gid", confinement.user.gid},
            {"memory_bytes", confinement.memory_bytes},
            {"file_bytes", confinement.file_bytes},
            {"processor", confinement.processor.count()},
            {"descriptors", confinement.descriptors},
            {"nice", confinement.nice},
            {"parent", confinement.parent}};
}

Confinement confinement_of(const json& from) {
    Confinement to;
    to.role = static_cast<ChildRole>(from.at("role").get<int>());
    to.user = {from.at("uid").get<uid_t>(), from.at("gid").get<gid_t>()};
    to.memory_bytes = from.at("memory_bytes").get<std::uint64_t>();
    to.file_bytes = from.at("file_bytes").get<std::uint64_t>();
    to.processor = std::chrono::seconds{from.at("processor").get<std::int64_t>()};
    to.descriptors = from.at("descriptors").get<std::uint32_t>();
    to.nice = from.at("nice").get<int>();
    to.parent = from.at("parent").get<pid_t>();
    return to;
}

json json_of(const HttpRequest& request) {
    const SandboxLimits& limits = request.limits;
    return {{"url", request.url},
            {"certificates", request.certificates},
            {"proxy", request.proxy},
            {"etag", request.etag},
            {"last_modified", request.last_modified},
            {"headers", request.headers},
            {"source_bytes", limits.source_bytes},
            {"connect", limits.connect.count()},
            {"fetch", limits.fetch.count()},
            {"low_speed_bytes", limits.low_speed_bytes},
            {"low_speed", limits.low_speed.count()},
            {"redirects", limits.redirects}};
}

HttpRequest http_request_of(const json& from) {
    HttpRequest to;
    to.url = from.at("url").get<std::string>();
    to.certificates = from.at("certificates").get<std::string>();
    to.proxy = from.at("proxy").get<std::string>();
    to.etag = from.at("etag").get<std::string>();
    to.last_modified = from.at("last_modified").get<std::string>();
    to.headers = from.at("headers").get<std::vector<std::string>>();
    to.limits.source_bytes = from.at("source_bytes").get<std::uint64_t>();
    to.limits.connect = std::chrono::milliseconds{from.at("connect").get<std::int64_t>()};
    to.limits.fetch = std::chrono::milliseconds{from.at("fetch").get<std::int64_t>()};
    to.limits.low_speed_bytes = from.at("low_speed_bytes").get<std::uint32_t>();
    to.limits.low_speed = std::chrono::seconds{from.at("low_speed").get<std::int64_t>()};
    to.limits.redirects = from.at("redirects").get<std::uint32_t>();
    return to;
}

json json_of(const control::FeedSpec& feed) {
    const BuildOptions& build = feed.build;
    json to = {{"fields", feed.fields},
               {"format", format_list_format(feed.format)},
               {"skip_invalid", feed.skip_invalid},
               {"chosen", feed.chosen},
               {"kind", static_cast<int>(build.kind.kind)},
               {"effort", static_cast<int>(build.kind.effort)},
               {"max_probes", build.prefixes.max_probes},
               {"max_keys", build.prefixes.max_keys},
               {"trials", build.trials},
               {"threads", build.threads}};
    put(to, "bits_per_key", build.bits_per_key);
    put(to, "fpr", build.fpr);
    put(to, "memory", build.memory);
    put(to, "choices", build.kind.choices);
    put(to, "alpha", build.kind.alpha);
    put(to, "hashes", build.kind.hashes);
    put(to, "rounds", build.kind.rounds);
    put(to, "seed", build.seed);
    return to;
}

control::FeedSpec feed_of(const json& from) {
    control::FeedSpec to;
    to.fields = from.at("fields").get<std::uint32_t>();
    to.format = parse_list_format(from.at("format").get<std::string>()).value();
    to.skip_invalid = from.at("skip_invalid").get<bool>();
    to.chosen = from.at("chosen").get<std::vector<std::string>>();
    BuildOptions& build = to.build;
    build.kind.kind = static_cast<sieve_kind>(from.at("kind").get<int>());
    build.kind.effort = static_cast<Effort>(from.at("effort").get<int>());
    build.prefixes.max_probes = from.at("max_probes").get<std::uint32_t>();
    build.prefixes.max_keys = from.at("max_keys").get<std::uint64_t>();
    build.trials = from.at("trials").get<std::uint64_t>();
    build.threads = from.at("threads").get<std::uint32_t>();
    take(from, "bits_per_key", build.bits_per_key);
    take(from, "fpr", build.fpr);
    take(from, "memory", build.memory);
    take(from, "choices", build.kind.choices);
    take(from, "alpha", build.kind.alpha);
    take(from, "hashes", build.kind.hashes);
    take(from, "rounds", build.kind.rounds);
    take(from, "seed", build.seed);
    return to;
}

json json_of(const FetchOrder& order) {
    json to = {{"confinement", json_of(order.confinement)},
               {"request", json_of(order.request)},
               {"certificates_path", order.certificates_path}};
    if (order.decisions)
        to["decisions"] = {{"types", order.decisions->filter.types},
                           {"scopes", order.decisions->filter.scopes},
                           {"origins", order.decisions->filter.origins},
                           {"now", order.decisions->now}};
    return to;
}

json json_of(const CommandOrder& order) {
    return {{"confinement", json_of(order.confinement)}, {"arguments", order.arguments}};
}

json json_of(const BuildOrder& order) {
    return {{"confinement", json_of(order.confinement)},
            {"feed", json_of(order.feed)},
            {"lists", order.lists},
            {"exact", order.exact},
            {"list", order.list},
            {"known_digest", order.known_digest},
            {"unpacked_bytes", order.limits.bytes},
            {"unpack_ratio", order.limits.ratio}};
}

std::optional<DecisionOrder> decision_order_of(const json& fetch) {
    const auto from = fetch.find("decisions");
    if (from == fetch.end()) return std::nullopt;
    const auto words = [&](const char* name) { return from->at(name).get<std::vector<std::string>>(); };
    return DecisionOrder{{words("types"), words("scopes"), words("origins")},
                         from->at("now").get<std::int64_t>()};
}

AnyOrder order_of(const json& from) {
    const Confinement confinement = confinement_of(from.at("confinement"));
    switch (confinement.role) {
    case ChildRole::fetch:
        return FetchOrder{confinement, http_request_of(from.at("request")),
                          from.at("certificates_path").get<std::string>(), decision_order_of(from)};
    case ChildRole::command:
        return CommandOrder{confinement, from.at("arguments").get<std::vector<std::string>>()};
    case ChildRole::build:
        break;
    }
    return BuildOrder{
        confinement,
        feed_of(from.at("feed")),
        from.at("lists").get<std::vector<std::string>>(),
        from.at("exact").get<bool>(),
        from.at("list").get<bool>(),
        from.at("known_digest").get<std::string>(),
        {from.at("unpacked_bytes").get<std::uint64_t>(), from.at("unpack_ratio").get<double>()}};
}

// Kinds of errors that a child may report. What it says about the kernel or other programs means nothing.
constexpr struct {
    ErrorKind kind;
    const char* word;
} error_words[] = {{ErrorKind::bad_input, "bad_input"},
                   {ErrorKind::invalid_request, "invalid_request"},
                   {ErrorKind::needs_feed, "needs_feed"},
                   {ErrorKind::not_permitted, "not_permitted"},
                   {ErrorKind::out_of_memory, "out_of_memory"}};

const char* word_of(ErrorKind kind) {
    for (const auto& [one, word] : error_words)
        if (one == kind) return word;
    return error_words[0].word;
}

ErrorKind kind_of_word(const std::string& text) {
    for (const auto& [kind, word] : error_words)
        if (text == word) return kind;
    return ErrorKind::bad_input;
}

std::string text_of(const json& from, const char* name) {
    return printable(from.at(name).get<std::string>(), longest_text);
}

ChildFailure nonsense() {
    return {{ErrorKind::bad_input, "reported nonsense"}, {}};
}

ChildFailure failure_of(const json& from) {
    ChildFailure failed{{kind_of_word(text_of(from, "kind")), text_of(from, "message")}, {}};
    std::optional<std::uint32_t> seconds;
    take(from, "retry_after", seconds);
    if (seconds) failed.retry_after = std::chrono::seconds{*seconds};
    return failed;
}

HttpAnswer http_answer_of(const json& from) {
    return {from.at("unchanged").get<bool>(), text_of(from, "etag"), text_of(from, "last_modified"),
            from.at("bytes").get<std::uint64_t>()};
}

BuildDone build_done_of(const json& from) {
    BuildDone done{from.at("known").get<bool>(), text_of(from, "digest"), {}};
    for (const json& remark : from.at("remarks")) {
        if (done.remarks.size() == most_remarks) break;
        done.remarks.push_back(printable(remark.get<std::string>(), longest_text));
    }
    return done;
}

template <class Done>
tl::expected<Done, ChildFailure> read_report(const std::string& line, const char* name,
                                             Done (*read)(const json&)) {
    try {
        const json report = json::parse(line);
        if (const auto failed = report.find("failed"); failed != report.end())
            return tl::unexpected(failure_of(*failed));
        return read(report.at(name));
    } catch (const json::exception&) {
        return tl::unexpected(nonsense());
    }
}

} // namespace

std::string write_order(const AnyOrder& order) {
    return one_line(std::visit([](const auto& one) { return json_of(one); }, order));
}

Result<AnyOrder> read_order(std::string_view text) {
    try {
        return order_of(json::parse(text));
    } catch (const json::exception& error) {
        return bad_input(error.what());
    }
}

std::string write_progress(const std::string& at) {
    return one_line({{"at", at}});
}

std::string write_report(const HttpAnswer& answer) {
    return one_line({{"fetched",
                      {{"unchanged", answer.unchanged},
                       {"etag", answer.etag},
                       {"last_modified", answer.last_modified},
                       {"bytes", answer.bytes}}}});
}

std::string write_report(const BuildDone& done) {
    return one_line({{"built", {{"known", done.known}, {"digest", done.digest}, {"remarks", done.remarks}}}});
}

std::string write_report(const ChildFailure& failure) {
    json failed = {{"kind", word_of(failure.error.kind)},
                   {"message", failure.error.message.substr(0, longest_text)}};
    if (failure.retry_after)
        failed["retry_after"] = std::clamp<std::int64_t>(failure.retry_after->count(), 0,
                                                         std::numeric_limits<std::uint32_t>::max());
    return one_line({{"failed", failed}});
}

tl::expected<HttpAnswer, ChildFailure> read_http_report(const std::string& line) {
    return read_report(line, "fetched", &http_answer_of);
}

tl::expected<BuildDone, ChildFailure> read_build_report(const std::string& line) {
    return read_report(line, "built", &build_done_of);
}

} // namespace sieve::service
