// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/decisions.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service::live {

namespace {

using nlohmann::json;

constexpr int deepest = 16;
constexpr int address_bits = 128;
constexpr int ipv4_bits = 32;

bool same_word(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
        return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
    });
}

bool has_word(const std::vector<std::string>& words, std::string_view word) {
    return std::any_of(words.begin(), words.end(),
                       [&](const std::string& one) { return same_word(one, word); });
}

// The members of a decision that count.
struct Members {
    std::optional<std::uint64_t> id;
    std::optional<std::string> duration, origin, scope, type, value;
    bool simulated = false;
};

// Takes what nlohmann's parser meets, one event at a time, so that an answer of any size needs no tree.
class Reader final : public nlohmann::json_sax<json> {
  public:
    Reader(const DecisionFilter& filter, Time now, const DecisionLimits& limits)
        : filter_(filter), now_(now), limits_(limits) {}

    [[nodiscard]] const std::string& fault() const { return fault_; }
    [[nodiscard]] bool is_answer() const { return is_answer_; }
    Decisions decisions;

    bool null() override {
        return at_value([&] { return expect_list_or_member("null", true); });
    }
    bool boolean(bool is) override {
        if (depth_ == 3 && in_list_ && member_ == "simulated") {
            decision_.simulated = is;
            return true;
        }
        return at_value([&] { return expect_list_or_member("a truth value", false); });
    }
    bool number_float(number_float_t, const string_t& text) override {
        return at_value([&] { return expect_list_or_member(text, false); });
    }
    bool number_integer(number_integer_t number) override {
        return at_value([&] { return expect_list_or_member(std::to_string(number), false); });
    }
    bool number_unsigned(number_unsigned_t number) override {
        if (depth_ == 3 && in_list_ && member_ == "id" && number < decision_numbers) {
            if (decision_.id) return twice();
            decision_.id = number;
            return true;
        }
        return at_value([&] { return expect_list_or_member(std::to_string(number), false); });
    }
    bool string(string_t& text) override {
        if (depth_ == 3 && in_list_)
            if (std::optional<std::string>* member = text_member(); member != nullptr) {
                if (*member) return twice();
                *member = std::move(text);
                return true;
            }
        return at_value([&] { return expect_list_or_member(quoted(text), false); });
    }
    bool binary(binary_t&) override { return fail("found binary data"); }

    bool start_object(std::size_t) override {
        if (!deeper()) return false;
        if (depth_ == 1) return true;
        if (depth_ == 2) return in_list_ ? fail(list_fault("an object")) : true;
        if (depth_ == 3 && in_list_) {
            decision_ = {};
            if (++number_ > limits_.decisions)
                return fail(fmt::format("found more than {} decisions, the limit", limits_.decisions));
            return true;
        }
        return nested();
    }
    bool start_array(std::size_t) override {
        if (!deeper()) return false;
        if (depth_ == 1) return fail("found a JSON array, expected an object with \"new\" and \"deleted\"");
        if (depth_ == 2) {
            number_ = 0;
            return true;
        }
        if (depth_ == 3 && in_list_) return fail(fmt::format("{} holds an array, expected decisions", list_));
        return nested();
    }
    bool key(string_t& name) override {
        if (depth_ == 1) {
            in_list_ = name == "new" || name == "deleted";
            list_ = name;
            is_answer_ = is_answer_ || in_list_;
        } else if (depth_ == 3) {
            member_ = name;
        }
        return true;
    }
    bool end_object() override {
        const bool whole = depth_ == 3 && in_list_;
        depth_--;
        return whole ? take() : true;
    }
    bool end_array() override {
        depth_--;
        return true;
    }
    bool parse_error(std::size_t position, const std::string&, const json::exception& error) override {
        if (!fault_.empty()) return false;
        return fail(fmt::format("is no JSON at byte {}: {}", position, printable(error.what(), 160)));
    }

  private:
    static std::string quoted(const std::string& text) { return fmt::format("\"{}\"", printable(text, 64)); }
    [[nodiscard]] std::string where() const {
        return fmt::format("decision {} of {}", number_, quoted(list_));
    }

    bool fail(std::string fault) {
        if (fault_.empty()) fault_ = std::move(fault);
        return false;
    }
    bool twice() { return fail(fmt::format("{} has {} twice", where(), quoted(member_))); }
    bool deeper() {
        if (++depth_ > deepest) return fail(fmt::format("is nested more than {} deep", deepest));
        return true;
    }
    [[nodiscard]] std::string list_fault(const std::string& found) const {
        return fmt::format("{} is {}, expected a list of decisions", quoted(list_), found);
    }

    // The member of the decision that the parser is at, if it is a text that counts.
    std::optional<std::string>* text_member() {
        if (member_ == "duration") return &decision_.duration;
        if (member_ == "origin") return &decision_.origin;
        if (member_ == "scope") return &decision_.scope;
        if (member_ == "type") return &decision_.type;
        if (member_ == "value") return &decision_.value;
        return nullptr;
    }
    // A value that is neither an object nor a list.
    bool at_value(const auto& where_it_counts) {
        if (depth_ == 0) return fail("found a single value, expected an object with \"new\" and \"deleted\"");
        return in_list_ && depth_ <= 3 ? where_it_counts() : true;
    }
    bool expect_list_or_member(const std::string& found, bool null) {
        if (depth_ == 1) return null || fail(list_fault(found)); // an empty list is null
        if (depth_ == 2) return fail(fmt::format("{} holds {}, expected decisions", quoted(list_), found));
        return check_member(found);
    }
    bool check_member(const std::string& found) {
        if (member_ == "id")
            return fail(fmt::format("{}: its id is {}, expected a number from 0 to {}", where(), found,
                                    decision_numbers - 1));
        if (text_member() != nullptr)
            return fail(fmt::format("{}: its {} is {}, expected a text", where(), member_, found));
        return true;
    }
    // An object or a list inside a decision.
    bool nested() { return depth_ == 4 && in_list_ ? check_member("no simple value") : true; }

    // Answers are long and origins are few.
    [[nodiscard]] std::uint8_t origin_code() {
        if (!decision_.origin || decision_.origin->empty()) return 0;
        const std::string name = printable(*decision_.origin, longest_origin).substr(0, longest_origin);
        auto known = std::ranges::find(decisions.origins, name);
        if (known == decisions.origins.end()) {
            if (decisions.origins.size() == most_origins) return 0;
            known = decisions.origins.insert(known, name);
        }
        return static_cast<std::uint8_t>(known - decisions.origins.begin() + 1);
    }

    bool missing(const char* name) { return fail(fmt::format("{} has no {}", where(), name)); }
    bool ignore(const char* what, const std::string& found) {
        if (decisions.ignored++ == 0)
            decisions.first_ignored = fmt::format("{} {}", what, printable(found, 40));
        return true;
    }

    // The decision is complete.
    bool take() {
        if (!decision_.id) return missing("id");
        if (!decision_.scope) return missing("scope");
        if (!decision_.type) return missing("type");
        if (!decision_.value) return missing("value");
        if (!has_word(filter_.scopes, *decision_.scope)) return ignore("scope", *decision_.scope);
        const bool range = same_word(*decision_.scope, "range");
        if (!range && !same_word(*decision_.scope, "ip")) return ignore("scope", *decision_.scope);
        if (!has_word(filter_.types, *decision_.type)) return ignore("type", *decision_.type);
        if (!filter_.origins.empty() && !has_word(filter_.origins, decision_.origin.value_or("")))
            return ignore("origin", decision_.origin.value_or("none"));
        const bool is_new = list_ == "new";
        // Of a scenario that its operator only tries.
        if (is_new && decision_.simulated) return ignore("simulated", "scenarios");
        TimedEntry timed_entry{{}, entry_id(*decision_.id, origin_code()), now_};
        if (is_new) {
            if (!decision_.duration) return missing("duration");
            const auto duration = parse_go_duration(*decision_.duration);
            if (!duration)
                return fail(fmt::format("{}: its duration is {}, expected one such as \"3h59m30s\"", where(),
                                        quoted(*decision_.duration)));
            timed_entry.until = now_ + std::chrono::floor<std::chrono::milliseconds>(*duration);
        }
        Result<Prefix> prefix = parse_decision_value(*decision_.value, range);
        if (!prefix) {
            if (decisions.unusable++ == 0)
                decisions.first_unusable =
                    fmt::format("decision {}: {}", *decision_.id, prefix.error().message);
            return true;
        }
        timed_entry.prefix = *prefix;
        if (is_new && timed_entry.until <= now_) return true;
        (is_new ? decisions.added : decisions.deleted).push_back(timed_entry);
        return true;
    }

    const DecisionFilter& filter_;
    Time now_;
    const DecisionLimits& limits_;
    int depth_ = 0;          // 1: in the answer; 2: in a list; 3: in a decision
    bool in_list_ = false;   // under "new" or "deleted"
    bool is_answer_ = false; // had one of these
    std::string list_, member_;
    std::uint64_t number_ = 0; // of the decision in its list, from 1 on
    Members decision_;
    std::string fault_;
};

struct Unit {
    std::string_view name;
    double nanoseconds;
};

// The longest name first where one begins with another.
constexpr Unit units[] = {{"ns", 1},   {"us", 1e3}, {"\xc2\xb5s", 1e3}, {"\xce\xbcs", 1e3},
                          {"ms", 1e6}, {"s", 1e9},  {"m", 60e9},        {"h", 3600e9}};

} // namespace

std::optional<std::chrono::nanoseconds> parse_go_duration(std::string_view text) {
    bool negative = false;
    if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
        negative = text.front() == '-';
        text.remove_prefix(1);
    }
    if (text == "0") return std::chrono::nanoseconds(0);
    if (text.empty()) return std::nullopt;
    double total = 0;
    while (!text.empty()) {
        const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
        double number = 0;
        const auto [end, error] =
            std::from_chars(text.data(), text.data() + digits, number, std::chars_format::fixed);
        if (error != std::errc() || end != text.data() + digits || digits == 0) return std::nullopt;
        text.remove_prefix(digits);
        const Unit* unit = std::find_if(std::begin(units), std::end(units),
                                        [&](const Unit& one) { return text.starts_with(one.name); });
        if (unit == std::end(units)) return std::nullopt;
        text.remove_prefix(unit->name.size());
        total += number * unit->nanoseconds;
    }
    if (!(total < static_cast<double>(std::numeric_limits<std::int64_t>::max()))) return std::nullopt;
    const auto count = static_cast<std::int64_t>(total);
    return std::chrono::nanoseconds(negative ? -count : count);
}

Result<Prefix> parse_decision_value(std::string_view value, bool range) {
    const auto fault = [&](const std::string& what) {
        return bad_input(fmt::format("\"{}\" {}", printable(value, 64), what));
    };
    const std::size_t slash = value.find('/');
    const Result<sieve_key> key = parse_key(value.substr(0, slash), SIEVE_FIELD_SRC);
    if (!key) return fault(range ? "is no prefix such as 192.0.2.0/24" : "is no address");
    Prefix prefix{address_number(key->word[0], key->word[1]), address_bits};
    if (slash != std::string_view::npos) {
        const std::string_view length = value.substr(slash + 1);
        const bool written_as_ipv6 = value.substr(0, slash).find(':') != std::string_view::npos;
        const int bits = written_as_ipv6 ? address_bits : ipv4_bits;
        int number = 0;
        const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), number);
        if (error != std::errc() || end != length.data() + length.size() || number < 0 || number > bits)
            return fault(fmt::format("has no prefix length from 1 to {}", bits));
        number += address_bits - bits;
        const bool ipv4 = is_ipv4(prefix.address) && number >= address_bits - ipv4_bits;
        if (number == 0 || (ipv4 && number == address_bits - ipv4_bits))
            return fault("is every address of its family, expected a part of them");
        prefix.length = static_cast<std::uint8_t>(number);
        prefix.address &= ~((uint128{1} << (address_bits - number)) - 1);
    }
    if (!range && !prefix.is_single()) return fault("is a prefix, expected an address");
    return prefix;
}

Result<Decisions> parse_decisions(std::string_view text, const DecisionFilter& filter, Time now,
                                  const DecisionLimits& limits) {
    if (text.size() > limits.bytes)
        return bad_input(fmt::format("larger than {} bytes, the limit", limits.bytes));
    Reader reader(filter, now, limits);
    const bool whole = json::sax_parse(text, &reader);
    if (!whole) return bad_input(reader.fault().empty() ? "is no JSON" : reader.fault());
    if (!reader.is_answer())
        return bad_input(
            "has neither \"new\" nor \"deleted\", expected an answer of CrowdSec's decision stream");
    return std::move(reader.decisions);
}

} // namespace sieve::service::live
