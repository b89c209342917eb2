// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/ban.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <type_traits>

#include <fmt/core.h>

#include "libsieve/feeds/formats/words.hpp"
#include "libsieve/service/lists/decisions.hpp"
#include "libsieve/service/lists/record_log.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service::live {

namespace {

// All numbers are little-endian, as on every supported machine. The reason follows, and zeros up to a
// multiple of record_step.
struct BanRecord {
    std::uint64_t upper;
    std::uint64_t lower;
    std::int64_t since;
    std::int64_t until;
    std::uint16_t length;
    std::uint16_t step;
    std::uint32_t reason;
};
static_assert(sizeof(BanRecord) == 40 && std::has_unique_object_representations_v<BanRecord>);

std::size_t padded(std::size_t bytes) {
    return (bytes + record_step - 1) / record_step * record_step;
}

std::int64_t milliseconds_of(Time time) {
    return time.time_since_epoch().count();
}

// The options behind an entry.
struct Options {
    Ban ban;
    std::string fault{}; // empty: there is none
};

// "timeout 60 comment "why"", in any order; others of ipset's that change nothing here are left out.
Options read_options(std::string_view line, const Ban& usual) {
    Options options{.ban = usual};
    const auto expected = [&](std::string_view found) {
        options.fault =
            fmt::format("found \"{}\", expected timeout SECONDS or comment \"REASON\"", printable(found, 64));
        return options;
    };
    for (std::string_view word; !(word = formats::take_word(line)).empty();) {
        if (word == "timeout") {
            constexpr std::uint64_t longest = std::uint64_t{10} * 365 * 86400;
            const std::string_view text = formats::take_word(line);
            std::uint64_t seconds = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
            if (error != std::errc() || end != text.data() + text.size() || seconds > longest)
                return expected(fmt::format("timeout {}", text));
            options.ban.until = seconds == 0 ? never : usual.since + std::chrono::seconds(seconds);
        } else if (word == "comment") {
            const std::size_t begin = line.find_first_not_of(" \t");
            const std::size_t end = line.rfind('"');
            if (begin == std::string_view::npos || line[begin] != '"' || end <= begin)
                return expected(fmt::format("comment{}", line));
            options.ban.reason = std::string(line.substr(begin + 1, end - begin - 1));
            if (const Status right = check_reason(options.ban.reason); !right) {
                options.fault = right.error().message;
                return options;
            }
            line.remove_prefix(end + 1);
        } else if (word == "packets" || word == "bytes") { // ipset's counters
            (void)formats::take_word(line);
        } else {
            return expected(word);
        }
    }
    return options;
}

// A line; its fault if it is none.
std::string take_line(std::string_view line, const Ban& usual, std::vector<BanChange>& changes) {
    const std::string_view whole = line;
    std::string_view word = formats::take_word(line);
    if (word.empty() || word.front() == '#' || word == "create" || word == "COMMIT") return {};
    if (word == "flush") {
        (void)formats::take_word(line); // the set
        if (!formats::take_word(line).empty())
            return fmt::format("found \"{}\", expected flush and no more than a set", printable(whole, 64));
        changes.push_back({.step = BanStep::flush});
        return {};
    }
    const bool removes = word == "del" || word == "delete";
    if (removes || word == "add") {
        word = formats::take_word(line);
        // The name of a set stands in front of the entry where it is `ipset save` that speaks.
        std::string_view rest = line;
        const std::string_view next = formats::take_word(rest);
        if (!next.empty() && next != "timeout" && next != "comment" && !parse_banned(word)) {
            word = next;
            line = rest;
        }
    }
    Result<Prefix> prefix = parse_banned(word);
    if (!prefix) return std::move(prefix.error().message);
    Options options = read_options(line, usual);
    if (!options.fault.empty()) return std::move(options.fault);
    changes.push_back({.step = removes ? BanStep::remove : BanStep::add,
                       .prefix = *prefix,
                       .ban = removes ? Ban() : std::move(options.ban)});
    return {};
}

} // namespace

void change_bans(Bans& bans, const BanChange& change) {
    switch (change.step) {
    case BanStep::add:
        bans[change.prefix] = change.ban;
        break;
    case BanStep::remove:
        bans.erase(change.prefix);
        break;
    case BanStep::flush:
        std::erase_if(bans, [&](const auto& one) {
            return change.ban.reason.empty() || one.second.reason == change.ban.reason;
        });
        break;
    }
}

std::vector<BanChange> additions(const Bans& bans) {
    std::vector<BanChange> all;
    all.reserve(bans.size());
    for (const auto& [prefix, ban] : bans) all.push_back({.prefix = prefix, .ban = ban});
    return all;
}

std::string bytes_of(const std::vector<BanChange>& changes) {
    std::string bytes;
    bytes.reserve(changes.size() * (sizeof(BanRecord) + record_step));
    for (const BanChange& change : changes) {
        const std::string& reason = change.ban.reason;
        const BanRecord record{static_cast<std::uint64_t>(change.prefix.address >> 64),
                               static_cast<std::uint64_t>(change.prefix.address),
                               milliseconds_of(change.ban.since),
                               milliseconds_of(change.ban.until),
                               change.prefix.length,
                               static_cast<std::uint16_t>(change.step),
                               static_cast<std::uint32_t>(reason.size())};
        bytes.append(reinterpret_cast<const char*>(&record), sizeof(record));
        bytes += reason;
        bytes.append(padded(reason.size()) - reason.size(), '\0');
    }
    return bytes;
}

std::optional<std::vector<BanChange>> ban_changes_of(std::string_view bytes) {
    std::vector<BanChange> changes;
    while (!bytes.empty()) {
        BanRecord record;
        if (bytes.size() < sizeof(record)) return std::nullopt;
        std::memcpy(&record, bytes.data(), sizeof(record));
        bytes.remove_prefix(sizeof(record));
        if (record.step > static_cast<std::uint16_t>(BanStep::flush) || record.length == 0 ||
            record.length > 128 || record.reason > longest_reason || padded(record.reason) > bytes.size())
            return std::nullopt;
        const Prefix prefix{address_number(record.upper, record.lower),
                            static_cast<std::uint8_t>(record.length)};
        const std::string_view reason = bytes.substr(0, record.reason);
        if ((prefix.address & prefix.host_bits()) != 0 || !check_reason(reason)) return std::nullopt;
        bytes.remove_prefix(padded(record.reason));
        changes.push_back({.step = static_cast<BanStep>(record.step),
                           .prefix = prefix,
                           .ban = {.since = Time(std::chrono::milliseconds(record.since)),
                                   .until = Time(std::chrono::milliseconds(record.until)),
                                   .reason = std::string(reason)}});
    }
    return changes;
}

Result<Prefix> parse_banned(std::string_view text) {
    return parse_decision_value(text, text.find('/') != std::string_view::npos);
}

Status check_reason(std::string_view reason) {
    if (reason.size() > longest_reason)
        return bad_input(
            fmt::format("found a reason of {} bytes, expected at most {}", reason.size(), longest_reason));
    if (has_control(reason))
        return bad_input(
            fmt::format("found a control character in the reason \"{}\", expected a line of text",
                        printable(reason, 64)));
    return {};
}

Result<std::vector<BanChange>> parse_ban_text(std::string_view text, const std::string& name,
                                              const Ban& usual) {
    std::vector<BanChange> changes;
    for (std::uint64_t number = 1; !text.empty(); number++) {
        const std::string fault = take_line(formats::take_line(text), usual, changes);
        if (!fault.empty()) return bad_input(fmt::format("{}:{}: {}", name, number, fault));
    }
    return changes;
}

} // namespace sieve::service::live
