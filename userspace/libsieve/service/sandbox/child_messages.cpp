// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sandbox/child_messages.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

#include <nlohmann/json.hpp>

#include "libsieve/util/results/error_kind.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/printable.hpp"

// What nlohmann's macros need to know about the fields' types. Each field of a message is named once, below.
namespace nlohmann {

template <class Value>
struct adl_serializer<std::optional<Value>> {
    static void to_json(json& to, const std::optional<Value>& value) {
        to = value ? json(*value) : json(nullptr);
    }
    static void from_json(const json& from, std::optional<Value>& value) {
        value = from.is_null() ? std::nullopt : std::optional<Value>(from.get<Value>());
    }
};

template <class Count, class Period>
struct adl_serializer<std::chrono::duration<Count, Period>> {
    using Duration = std::chrono::duration<Count, Period>;
    static void to_json(json& to, const Duration& span) { to = span.count(); }
    static void from_json(const json& from, Duration& span) { span = Duration{from.get<Count>()}; }
};

} // namespace nlohmann

namespace sieve {

static void to_json(nlohmann::json& to, const ListFormat& format) {
    to = format_list_format(format);
}
static void from_json(const nlohmann::json& from, ListFormat& format) {
    // An order comes from the parent, who has parsed it once.
    format = parse_list_format(from.get<std::string>()).value_or(ListFormat{});
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KindOptions, kind, choices, alpha, hashes, effort, rounds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PrefixLimits, max_probes, max_keys, lengths)
// Nobody asks a child for keys that end.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Spare, room, hits)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BuildOptions, bits_per_key, fpr, memory, kind, spare, prefixes, seed,
                                   trials, threads, label, skipped)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(UnpackLimits, bytes, ratio, zip_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FeedOptions, format, skip_invalid, ranges, key_ranges, mask_host_bits,
                                   keep_skipped, threads, block_bytes)

} // namespace sieve

namespace sieve::control {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FeedSpec, fields, format, build, skip_invalid, mask_host_bits, allow_wide,
                                   except, chosen)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JointSet, name, fields, rate, hash_key, keys, key_sum)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JointTask, sets)

} // namespace sieve::control

namespace sieve::service::live {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DecisionFilter, types, scopes, origins)

} // namespace sieve::service::live

namespace sieve::service {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SandboxUser, uid, gid)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SandboxLimits, source_bytes, unpacked_bytes, unpack_ratio, connect, fetch,
                                   low_speed_bytes, low_speed, redirects, build, memory_bytes, image_bytes,
                                   processor, nice)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Confinement, role, user, memory_bytes, file_bytes, processor, descriptors,
                                   nice, parent)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ServerAccess, certificates, client_certificate, client_key)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProxyAccess, url, username, password_file)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HttpAccess, server, header_file, username, password_file, proxy,
                                   user_agent)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HttpRequest, url, access, etag, last_modified, post, limits)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HttpAnswer, unchanged, etag, last_modified, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DecisionOrder, filter, now)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FetchOrder, request, key_file, decisions)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CommandOrder, arguments)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ListOrder, fields, options, sought, inputs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReadOrder, feed, lists, known_digest, limits)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BuildOrder, feed, verified)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JoinOrder, task)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ListDone, lines, comments, skipped, masked, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReadDone, known, digest, remarks)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TaskOrder, task, message)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WorkDone, remarks)

namespace {

using nlohmann::json;

// Of a child's sentences.
constexpr std::size_t longest_text = 2000;
constexpr std::size_t most_remarks = 20;

// The word that names each order and each report.
constexpr const char* word(const FetchOrder&) {
    return "fetch";
}
constexpr const char* word(const CommandOrder&) {
    return "command";
}
constexpr const char* word(const ListOrder&) {
    return "list";
}
constexpr const char* word(const ReadOrder&) {
    return "read";
}
constexpr const char* word(const BuildOrder&) {
    return "build";
}
constexpr const char* word(const JoinOrder&) {
    return "join";
}
constexpr const char* word(const TaskOrder&) {
    return "task";
}
constexpr const char* word(const HttpAnswer&) {
    return "fetched";
}
constexpr const char* word(const ListDone&) {
    return "listed";
}
constexpr const char* word(const ReadDone&) {
    return "read";
}
constexpr const char* word(const WorkDone&) {
    return "done";
}

// For terminals, and for whoever reads the line: any bytes may be in a message.
std::string one_line(const json& message) {
    return json_line(message);
}

template <class Order>
bool take(const json& from, ConfinedOrder& order) {
    const auto found = from.find(word(Order{}));
    if (found == from.end()) return false;
    order.order = found->template get<Order>();
    return true;
}

// Kinds of errors that a child may report. What it says about the kernel or other programs means nothing.
constexpr ErrorKind reportable[] = {ErrorKind::bad_input, ErrorKind::invalid_request, ErrorKind::needs_feed,
                                    ErrorKind::not_permitted, ErrorKind::out_of_memory};

const char* word_of(ErrorKind kind) {
    const bool may = std::ranges::find(reportable, kind) != std::end(reportable);
    return facts_of(may ? kind : ErrorKind::bad_input).name;
}

ErrorKind kind_of_word(const std::string& text) {
    for (const ErrorKind kind : reportable)
        if (text == facts_of(kind).name) return kind;
    return ErrorKind::bad_input;
}

std::string text_of(const json& from, const char* name) {
    return printable(from.at(name).get<std::string>(), longest_text);
}

GatherFailure nonsense() {
    return {{ErrorKind::bad_input, "reported nonsense"}, {}};
}

GatherFailure failure_of(const json& from) {
    GatherFailure failed{{kind_of_word(text_of(from, "kind")), text_of(from, "message")}, {}};
    if (const auto found = from.find("retry_after"); found != from.end())
        failed.retry_after = std::chrono::seconds{found->get<std::uint32_t>()};
    if (const auto found = from.find("input"); found != from.end())
        failed.error.facts.input = found->get<std::size_t>();
    return failed;
}

void make_printable(std::string& text) {
    text = printable(text, longest_text);
}
void make_printable(std::vector<std::string>& remarks) {
    if (remarks.size() > most_remarks) remarks.resize(most_remarks);
    for (std::string& remark : remarks) make_printable(remark);
}
void make_printable(HttpAnswer& answer) {
    make_printable(answer.etag);
    make_printable(answer.last_modified);
}
void make_printable(ListDone&) {}
void make_printable(ReadDone& done) {
    make_printable(done.digest);
    make_printable(done.remarks);
}
void make_printable(WorkDone& done) {
    make_printable(done.remarks);
}

} // namespace

template <class Done>
std::string write_report(const Done& done) {
    return one_line({{word(done), done}});
}
template std::string write_report(const HttpAnswer&);
template std::string write_report(const ListDone&);
template std::string write_report(const ReadDone&);
template std::string write_report(const WorkDone&);

template <class Done>
tl::expected<Done, GatherFailure> read_report(const std::string& line) {
    try {
        const json report = parse_json(line);
        if (const auto failed = report.find("failed"); failed != report.end())
            return tl::unexpected(failure_of(*failed));
        Done done = report.at(word(Done{})).template get<Done>();
        make_printable(done);
        return done;
    } catch (const json::exception&) {
        return tl::unexpected(nonsense());
    }
}
template tl::expected<HttpAnswer, GatherFailure> read_report(const std::string&);
template tl::expected<ListDone, GatherFailure> read_report(const std::string&);
template tl::expected<ReadDone, GatherFailure> read_report(const std::string&);
template tl::expected<WorkDone, GatherFailure> read_report(const std::string&);

std::string write_order(const ConfinedOrder& order) {
    json message{{"confinement", order.confinement}};
    std::visit([&](const auto& one) { message[word(one)] = one; }, order.order);
    return one_line(message);
}

Result<ConfinedOrder> read_order(std::string_view text) {
    try {
        const json from = parse_json(text);
        ConfinedOrder order{from.at("confinement").get<Confinement>(), {}};
        if (take<FetchOrder>(from, order) || take<CommandOrder>(from, order) ||
            take<ListOrder>(from, order) || take<ReadOrder>(from, order) || take<BuildOrder>(from, order) ||
            take<JoinOrder>(from, order) || take<TaskOrder>(from, order))
            return order;
        return bad_input("expected an order");
    } catch (const json::exception& error) {
        return bad_input(error.what());
    }
}

std::string write_progress(const std::string& at) {
    return one_line({{"at", at}});
}

std::string write_share(std::string_view stage, double share) {
    return one_line({{"stage", stage}, {"share", share}});
}

std::string write_failure(const GatherFailure& failure) {
    json failed = {{"kind", word_of(failure.error.kind)},
                   {"message", failure.error.message.substr(0, longest_text)}};
    if (failure.retry_after)
        failed["retry_after"] = std::clamp<std::int64_t>(failure.retry_after->count(), 0,
                                                         std::numeric_limits<std::uint32_t>::max());
    if (failure.error.facts.input) failed["input"] = *failure.error.facts.input;
    return one_line({{"failed", failed}});
}

} // namespace sieve::service
