// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/servers/etcd_client.hpp"

#include <charconv>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/service/download/url.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::fleet {

namespace {

using nlohmann::json;

constexpr long ok = 200;
constexpr long unauthorized = 401;
constexpr long server_trouble = 500; // and above
// Codes of gRPC, which the gateway hands on.
constexpr int code_not_found = 5;
constexpr int code_unavailable = 14;
constexpr int code_unauthenticated = 16;
// A change is at most a few values of 1.5 MiB, etcd's limit.
constexpr std::size_t longest_change = std::size_t{16} << 20;

// The gateway writes 64-bit numbers as texts, and leaves zeros out.
std::int64_t number(const json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end()) return 0;
    if (found->is_number_integer()) return found->get<std::int64_t>();
    if (!found->is_string()) return 0;
    const auto& text = found->get_ref<const std::string&>();
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

bool is_true(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_boolean() && found->get<bool>();
}

std::string bytes(const json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_string()) return {};
    return from_base64(found->get_ref<const std::string&>()).value_or(std::string());
}

std::string text(const json& object, const char* name) {
    const auto found = object.find(name);
    return found == object.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

// An empty object if there is none.
const json& part(const json& object, const char* name) {
    static const json nothing = json::object();
    const auto found = object.find(name);
    return found == object.end() ? nothing : *found;
}

EtcdValue value_of(const json& pair) {
    return {bytes(pair, "value"), number(pair, "create_revision"), number(pair, "mod_revision"),
            number(pair, "lease")};
}

json condition_of(const EtcdCondition& condition) {
    return {{"key", to_base64(condition.key)},
            {"target", "MOD"},
            {"result", "EQUAL"},
            {"mod_revision", std::to_string(condition.modified)}};
}

json put_of(const EtcdPut& put) {
    json request = {{"key", to_base64(put.key)}, {"value", to_base64(put.value)}};
    if (put.lease != 0) request["lease"] = std::to_string(put.lease);
    return {{"request_put", std::move(request)}};
}

} // namespace

std::string end_of_prefix(std::string prefix) {
    while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
    if (prefix.empty()) return std::string(1, '\0'); // to the last key
    prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
    return prefix;
}

struct EtcdClient::State {
    EtcdSettings settings;
    HttpClient http;
    std::size_t endpoint = 0;
    std::string token{};
    std::uint64_t requests = 0;

    [[nodiscard]] std::string url(const char* path) const { return settings.endpoints[endpoint] + path; }

    [[nodiscard]] HttpCall post(const char* path, const json& body) const {
        HttpCall call;
        call.method = "POST";
        call.url = url(path);
        call.headers = {"Content-Type: application/json"};
        if (!token.empty()) call.headers.push_back("Authorization: " + token);
        call.body = json_text(body, json_one_line);
        call.timeout = settings.patience;
        return call;
    }

    // One endpoint's answer. Nothing, with `error`: another endpoint may know better.
    std::optional<Result<json>> ask_endpoint(const char* path, const json& body, Error& error) {
        for (int attempt = 0;; attempt++) {
            requests++;
            const Result<HttpReply> reply = http.call(post(path, body));
            if (!reply) {
                error = reply.error();
                return std::nullopt;
            }
            json answer = parse_json(reply->body);
            if (reply->status == ok && answer.is_object() && !answer.contains("error")) return answer;
            const auto code = answer.is_object() ? number(answer, "code") : 0;
            const std::string said = answer.is_object() ? text(answer, "message") : std::string();
            // A token ends with its time, or with a member that is started anew.
            const bool stale = code == code_unauthenticated || reply->status == unauthorized ||
                               said.find("invalid auth token") != std::string::npos;
            if (stale && !settings.user.empty() && attempt == 0) {
                if (std::optional<Error> failed = authenticate()) {
                    error = std::move(*failed);
                    return std::nullopt;
                }
                continue;
            }
            error.kind = code == code_not_found ? ErrorKind::no : ErrorKind::bad_input;
            error.message = fmt::format("{}: {}", service::displayed_url(url(path)),
                                        said.empty() ? fmt::format("the server answered {}, expected etcd's "
                                                                   "v3 gateway",
                                                                   reply->status)
                                                     : printable(said));
            if (reply->status >= server_trouble || code == code_unavailable || said.empty())
                return std::nullopt;
            return tl::unexpected(error);
        }
    }

    std::optional<Error> authenticate() {
        token.clear();
        requests++;
        const char* path = "/v3/auth/authenticate";
        const Result<HttpReply> reply =
            http.call(post(path, {{"name", settings.user}, {"password", settings.password}}));
        if (!reply) return reply.error();
        const json answer = parse_json(reply->body);
        if (reply->status == ok && answer.is_object()) token = text(answer, "token");
        if (!token.empty()) return std::nullopt;
        return Error{ErrorKind::bad_input,
                     fmt::format("{}: etcd does not take user {}: {}", service::displayed_url(url(path)),
                                 printable(settings.user),
                                 answer.is_object() ? printable(text(answer, "message"))
                                                    : std::to_string(reply->status))};
    }

    Result<json> ask(const char* path, const json& body) {
        if (settings.endpoints.empty()) return invalid_request("no endpoint of etcd is named");
        Error error;
        std::string all;
        for (std::size_t tried = 0; tried < settings.endpoints.size(); tried++) {
            if (http.cancelled()) return bad_input("given up");
            if (!settings.user.empty() && token.empty()) {
                if (std::optional<Error> failed = authenticate()) {
                    all += (all.empty() ? "" : "; ") + failed->message;
                    next();
                    continue;
                }
            }
            if (std::optional<Result<json>> answer = ask_endpoint(path, body, error))
                return std::move(*answer);
            all += (all.empty() ? "" : "; ") + error.message;
            next();
        }
        return bad_input(all);
    }

    void next() {
        endpoint = (endpoint + 1) % settings.endpoints.size();
        token.clear(); // simple tokens are a member's own
    }

    // `is_asked_for`: whether such a key may be in the answer.
    Result<EtcdKeys> range(const json& request, const std::function<bool(const std::string&)>& is_asked_for) {
        const char* path = "/v3/kv/range";
        SIEVE_ASSIGN(const json answer, ask(path, request));
        EtcdKeys keys;
        keys.revision = number(part(answer, "header"), "revision");
        bool fits = keys.revision > 0;
        for (const json& pair : part(answer, "kvs")) {
            std::string key = bytes(pair, "key");
            fits = fits && is_asked_for(key);
            keys.keys[std::move(key)] = value_of(pair);
        }
        if (fits) return keys;
        return bad_input(
            fmt::format("{}: the answer has no revision or other keys, expected etcd's v3 gateway",
                        service::displayed_url(url(path))));
    }
};

EtcdClient::EtcdClient(EtcdSettings settings, int cancel)
    : state_(new State{.settings = settings, .http = HttpClient(settings.access, cancel)}) {}
EtcdClient::EtcdClient(EtcdClient&&) noexcept = default;
EtcdClient& EtcdClient::operator=(EtcdClient&&) noexcept = default;
EtcdClient::~EtcdClient() = default;

Result<EtcdKeys> EtcdClient::read_prefix(const std::string& prefix) {
    return state_->range({{"key", to_base64(prefix)}, {"range_end", to_base64(end_of_prefix(prefix))}},
                         [&](const std::string& key) { return key.starts_with(prefix); });
}

Result<EtcdKeys> EtcdClient::read(const std::string& key) {
    return state_->range({{"key", to_base64(key)}}, [&](const std::string& other) { return other == key; });
}

Result<EtcdOutcome> EtcdClient::commit(const EtcdTransaction& transaction) {
    json compare = json::array();
    json success = json::array();
    for (const EtcdCondition& condition : transaction.conditions) compare.push_back(condition_of(condition));
    for (const EtcdPut& put : transaction.puts) success.push_back(put_of(put));
    for (const std::string& key : transaction.removals)
        success.push_back({{"request_delete_range", {{"key", to_base64(key)}}}});
    SIEVE_ASSIGN(const json answer, state_->ask("/v3/kv/txn", {{"compare", compare}, {"success", success}}));
    EtcdOutcome outcome;
    outcome.revision = number(part(answer, "header"), "revision");
    outcome.succeeded = is_true(answer, "succeeded");
    return outcome;
}

Result<std::int64_t> EtcdClient::grant_lease(std::chrono::seconds life) {
    SIEVE_ASSIGN(const json answer, state_->ask("/v3/lease/grant", {{"TTL", std::to_string(life.count())}}));
    const std::int64_t lease = number(answer, "ID");
    if (lease == 0) return bad_input("etcd granted no lease");
    return lease;
}

Result<bool> EtcdClient::keep_alive(std::int64_t lease) {
    SIEVE_ASSIGN(const json answer, state_->ask("/v3/lease/keepalive", {{"ID", std::to_string(lease)}}));
    return number(part(answer, "result"), "TTL") > 0;
}

Status EtcdClient::revoke_lease(std::int64_t lease) {
    SIEVE_TRY(state_->ask("/v3/lease/revoke", {{"ID", std::to_string(lease)}}));
    return {};
}

namespace {

// The lines of a watch, as they come.
class WatchLines {
  public:
    using Tell = std::function<bool(std::int64_t, const std::vector<EtcdChange>&)>;
    WatchLines(std::int64_t revision, const Tell& tell) : revision_(revision), tell_(tell) {}

    // False: no more is needed.
    bool take(std::string_view more) {
        buffer_.append(more);
        if (buffer_.size() > longest_change) return stop("a change is larger than expected");
        for (std::size_t end = 0; (end = buffer_.find('\n')) != std::string::npos;) {
            const bool go_on = read(buffer_.substr(0, end));
            buffer_.erase(0, end + 1);
            if (!go_on) return false;
        }
        return true;
    }

    [[nodiscard]] const std::optional<WatchEnd>& end() const { return end_; }
    [[nodiscard]] const std::string& fault() const { return fault_; }

  private:
    bool read(const std::string& line) {
        if (line.empty()) return true;
        const json value = parse_json(line);
        if (!value.is_object()) return stop("expected a watch of etcd's v3 gateway");
        if (value.contains("error")) return stop(printable(text(part(value, "error"), "message")));
        const json& result = part(value, "result");
        const std::int64_t now = number(part(result, "header"), "revision");
        if (number(result, "compact_revision") > 0) return finish(WatchEnd::compacted);
        if (is_true(result, "canceled")) return stop(printable(text(result, "cancel_reason")));
        if (is_true(result, "created")) return now + 1 >= revision_ || finish(WatchEnd::behind);
        std::vector<EtcdChange> changes;
        for (const json& event : part(result, "events")) {
            const json& pair = part(event, "kv");
            changes.push_back({bytes(pair, "key"), text(event, "type") == "DELETE", value_of(pair)});
        }
        if (changes.empty()) return true; // a note of progress
        return tell_(now, changes) || finish(WatchEnd::stopped);
    }
    bool stop(std::string fault) {
        fault_ = fault.empty() ? "etcd cancelled the watch" : std::move(fault);
        return false;
    }
    bool finish(WatchEnd end) {
        end_ = end;
        return false;
    }

    std::int64_t revision_;
    const Tell& tell_;
    std::string buffer_;
    std::optional<WatchEnd> end_;
    std::string fault_;
};

} // namespace

Result<WatchEnd> EtcdClient::watch(
    const std::string& prefix, std::int64_t revision, std::chrono::milliseconds time,
    const std::function<bool(std::int64_t revision, const std::vector<EtcdChange>& changes)>& tell) {
    if (state_->settings.endpoints.empty()) return invalid_request("no endpoint of etcd is named");
    WatchLines lines(revision, tell);
    HttpCall call = state_->post("/v3/watch", {{"create_request",
                                                {{"key", to_base64(prefix)},
                                                 {"range_end", to_base64(end_of_prefix(prefix))},
                                                 {"start_revision", std::to_string(revision)}}}});
    call.timeout = time;
    call.most_bytes = ~std::uint64_t{0};
    call.take = [&](long, std::string_view more) { return lines.take(more); };
    state_->requests++;
    const Result<HttpReply> reply = state_->http.call(call);
    if (lines.end()) return *lines.end();
    const std::string url = service::displayed_url(state_->url("/v3/watch"));
    if (!lines.fault().empty()) {
        // Among others for a token that has ended: the next reading gets a new one.
        state_->token.clear();
        return bad_input(fmt::format("{}: {}", url, lines.fault()));
    }
    if (!reply) return tl::unexpected(reply.error());
    if (reply->status != ok) {
        state_->token.clear();
        return bad_input(fmt::format("{}: the server answered {}, expected a watch", url, reply->status));
    }
    return WatchEnd::ended;
}

void EtcdClient::prefer_next_endpoint() {
    if (!state_->settings.endpoints.empty()) state_->next();
}

const HttpClient& EtcdClient::http() const {
    return state_->http;
}

std::uint64_t EtcdClient::requests() const {
    return state_->requests;
}

} // namespace sieve::fleet
