// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/spec/build_options.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/util/text/number.hpp"

namespace sieve::control {

namespace {

template <class Number>
Status set_whole(Number& into, const std::string& text) {
    const std::optional<std::uint64_t> value = parse_whole(text);
    if (!value || *value > std::numeric_limits<Number>::max())
        return invalid_request("expected a whole number, such as 20 or 1e6");
    into = static_cast<Number>(*value);
    return {};
}

template <class Number>
Status set_whole(std::optional<Number>& into, const std::string& text) {
    return set_whole(into.emplace(), text);
}

// More threads than any machine has processors would only cost memory, or fail to start.
Status set_threads(unsigned& into, const std::string& text) {
    constexpr std::uint64_t most = 1024;
    const std::optional<std::uint64_t> threads = parse_whole(text);
    if (!threads || *threads > most)
        return invalid_request(
            fmt::format("expected a number of threads from 1 to {}, or 0 for all processors", most));
    into = static_cast<unsigned>(*threads);
    return {};
}

Status set_real(std::optional<double>& into, const std::string& text) {
    into = parse_real(text);
    return into ? Status() : invalid_request("expected a number, such as 0.5 or 1e-5");
}

// Lengths of prefixes of a family whose addresses have so many bits; those of `into` count 128 bits.
Status set_lengths(std::vector<std::uint32_t>& into, const std::string& text, std::uint32_t most) {
    std::vector<std::uint32_t> lengths;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find('+', at), text.size());
        const std::optional<std::uint64_t> length = parse_whole(text.substr(at, end - at));
        if (!length || *length > most)
            return invalid_request(
                fmt::format("expected lengths of prefixes, each from 0 to {}, as in 16+24", most));
        lengths.push_back(static_cast<std::uint32_t>(*length) + (address_bits - most));
        at = end + 1;
    }
    into = std::move(lengths);
    return {};
}

// "16 (ddlcbf: 24)": the size for each kind if none is given.
std::string standard_sizes() {
    const double most_kinds = standard_kind().facts().bits_per_key;
    std::string others;
    for (const FilterKind* kind : filter_kinds())
        if (kind->exact() == nullptr && kind->facts().bits_per_key != most_kinds)
            others += fmt::format(" ({}: {})", kind->facts().name, kind->facts().bits_per_key);
    return fmt::format("{}{}", most_kinds, others);
}

// "blocked 1 to 3 choices (2), ...": the range of `choices` for each kind, and its default.
std::string ranges_of_choices() {
    std::string text;
    for (const FilterKind* kind : filter_kinds()) {
        const Choices& choices = kind->facts().choices;
        if (choices.least == choices.most) continue;
        text += fmt::format("{}{} {} to {} {} ({})", text.empty() ? "" : ", ", kind->facts().name,
                            choices.least, choices.most, choices.many, choices.standard);
    }
    return text;
}

bool is_automatic(const FeedSpec& feed) {
    return feed.build.kind.kind == automatic_kind;
}

// An option of some kinds only.
bool may_take(const FeedSpec& feed, bool KindFacts::*taken) {
    return is_automatic(feed) || kind_of(feed.build.kind.kind).facts().*taken;
}

// `meaning`: of an option that is not set, where it may be.
template <class Number>
BuildOptionValue value_or(const std::optional<Number>& value, bool applies = false,
                          const char* meaning = "") {
    if (!value) return applies ? BuildOptionValue(Unset{meaning}) : BuildOptionValue();
    if constexpr (std::is_floating_point_v<Number>)
        return *value;
    else
        return std::uint64_t{*value};
}

// "16+24", as --v4-lengths takes them.
BuildOptionValue lengths_of(const FeedSpec& feed, int family) {
    const std::vector<std::uint32_t>& lengths = feed.build.prefixes.lengths[family];
    if (lengths.empty()) return Unset{"as the list leads to"};
    std::string text;
    for (const std::uint32_t length : lengths)
        text += fmt::format("{}{}", text.empty() ? "" : "+",
                            length - (family == SIEVE_FAMILY_V4 ? address_bits - 32 : 0));
    return text;
}

std::vector<BuildOption> list_options() {
    return {
        {"key", "FIELDS", "fields of a key: a comma list of src,dst,sport,dport,proto (src)",
         [](FeedSpec& feed, const std::string& text) -> Status {
             SIEVE_ASSIGN(feed.fields, parse_fields(text));
             return {};
         },
         [](const FeedSpec& feed) -> BuildOptionValue { return format_fields(feed.fields); }},
        {"format", "FORMAT",
         fmt::format("format of the list: {} (auto); csv:COLUMN+COLUMN, json:MEMBER, ipset:SET, nft:SET and "
                     "geo:CODE+CODE take parts of it",
                     names_of_syntaxes()),
         [](FeedSpec& feed, const std::string& text) -> Status {
             SIEVE_ASSIGN(feed.format, parse_list_format(text));
             return {};
         },
         [](const FeedSpec& feed) -> BuildOptionValue { return format_list_format(feed.format); }},
        {"kind", "KIND",
         fmt::format(
             "kind: {}, or auto: exact for single addresses, ranges if there are prefixes or ranges; "
             "for other keys, or if a size or a rate is given, the most accurate filter of at most two "
             "cache lines, {} (auto)",
             names_of_kinds(), standard_kind().facts().name),
         [](FeedSpec& feed, const std::string& text) -> Status {
             feed.build.kind.kind = automatic_kind;
             if (text == "auto") return {};
             SIEVE_ASSIGN(feed.build.kind.kind, parse_kind(text));
             return {};
         },
         [](const FeedSpec& feed) -> BuildOptionValue {
             return std::string(is_automatic(feed) ? "auto" : kind_of(feed.build.kind.kind).facts().name);
         }},
        {"fpr", "RATE", "a filter of the false positive rate to stay below",
         [](FeedSpec& feed, const std::string& text) { return set_real(feed.build.fpr, text); },
         [](const FeedSpec& feed) -> BuildOptionValue { return value_or(feed.build.fpr); }},
        {"memory", "BYTES", "a filter of so many bytes, such as 512K, 64M or 1G",
         [](FeedSpec& feed, const std::string& text) -> Status {
             SIEVE_ASSIGN(feed.build.memory, parse_bytes(text));
             return {};
         },
         [](const FeedSpec& feed) -> BuildOptionValue { return value_or(feed.build.memory); }},
        {"memory-limit", "BYTES",
         "memory that building may take, such as 512M or 8G; a longer list is kept as hashes in a temporary "
         "file in $TMPDIR or /var/tmp, for kinds with shards (blocked, d-left)",
         [](FeedSpec& feed, const std::string& text) -> Status {
             SIEVE_ASSIGN(feed.build.memory_limit, parse_bytes(text));
             return {};
         },
         [](const FeedSpec& feed) -> BuildOptionValue { return value_or(feed.build.memory_limit); }},
        {"bits-per-key", "BITS",
         fmt::format("a filter of so many bits per key; {} if a filter gets no size", standard_sizes()),
         [](FeedSpec& feed, const std::string& text) { return set_real(feed.build.bits_per_key, text); },
         [](const FeedSpec& feed) -> BuildOptionValue {
             return value_or(feed.build.bits_per_key,
                             is_automatic(feed) && !feed.build.fpr && !feed.build.memory,
                             "as the kind needs");
         }},
        {"choices", "NUMBER", "lines, groups or subtables that a key may be in: " + ranges_of_choices(),
         [](FeedSpec& feed, const std::string& text) { return set_whole(feed.build.kind.choices, text); },
         [](const FeedSpec& feed) -> BuildOptionValue {
             return value_or(feed.build.kind.choices, is_automatic(feed), "as the kind has them");
         }},
        {"alpha", "SHARE", names_of_kinds([](const KindFacts& facts) {
                               return facts.takes_alpha;
                           }) + ": share of keys that have a choice of lines, 0 to 1 (1)",
         [](FeedSpec& feed, const std::string& text) { return set_real(feed.build.kind.alpha, text); },
         [](const FeedSpec& feed) -> BuildOptionValue {
             return value_or(feed.build.kind.alpha, may_take(feed, &KindFacts::takes_alpha),
                             "every key has a choice");
         }},
        {"hashes", "NUMBER", names_of_kinds([](const KindFacts& facts) {
                                 return facts.takes_hashes;
                             }) + ": bits set by a key; the best number if not given",
         [](FeedSpec& feed, const std::string& text) { return set_whole(feed.build.kind.hashes, text); },
         [](const FeedSpec& feed) -> BuildOptionValue {
             return value_or(feed.build.kind.hashes, may_take(feed, &KindFacts::takes_hashes),
                             "the best number");
         }},
        {"effort", "fast|normal|best",
         "time for a lower rate: fast (no rebalancing), normal or best (normal)",
         [](FeedSpec& feed, const std::string& text) -> Status {
             SIEVE_ASSIGN(feed.build.kind.effort, parse_effort(text));
             return {};
         },
         [](const FeedSpec& feed) -> BuildOptionValue {
             return std::string(effort_name(feed.build.kind.effort));
         }},
        {"rounds", "NUMBER", "rounds of rebalancing, whatever the effort; 0 for none",
         [](FeedSpec& feed, const std::string& text) { return set_whole(feed.build.kind.rounds, text); },
         [](const FeedSpec& feed) -> BuildOptionValue {
             return value_or(feed.build.kind.rounds, is_automatic(feed), "as the effort asks");
         }},
        {"seed", "NUMBER", "build the same image again; for tests, since it makes the hash known",
         [](FeedSpec& feed, const std::string& text) { return set_whole(feed.build.seed, text); },
         [](const FeedSpec& feed) -> BuildOptionValue { return value_or(feed.build.seed); }},
        {"max-probes", "NUMBER",
         "prefix sets: the most lengths that a packet's address is asked for, 1 to 8 (4)",
         [](FeedSpec& feed, const std::string& text) {
             return set_whole(feed.build.prefixes.max_probes, text);
         },
         [](const FeedSpec& feed) -> BuildOptionValue {
             return std::uint64_t{feed.build.prefixes.max_probes};
         }},
        {"max-keys", "NUMBER", "prefix sets: the most prefixes after expansion (2e7)",
         [](FeedSpec& feed, const std::string& text) {
             return set_whole(feed.build.prefixes.max_keys, text);
         },
         [](const FeedSpec& feed) -> BuildOptionValue {
             return std::uint64_t{feed.build.prefixes.max_keys};
         }},
        {"v4-lengths", "LENGTHS",
         "kind ddlcbf: also probe these lengths of IPv4 prefixes, such as 16+24, so that prefixes of about "
         "these lengths can be inserted into the set in force",
         [](FeedSpec& feed, const std::string& text) {
             return set_lengths(feed.build.prefixes.lengths[SIEVE_FAMILY_V4], text, 32);
         },
         [](const FeedSpec& feed) -> BuildOptionValue { return lengths_of(feed, SIEVE_FAMILY_V4); }},
        {"v6-lengths", "LENGTHS", "the same for IPv6, such as 48+64",
         [](FeedSpec& feed, const std::string& text) {
             return set_lengths(feed.build.prefixes.lengths[SIEVE_FAMILY_V6], text, 128);
         },
         [](const FeedSpec& feed) -> BuildOptionValue { return lengths_of(feed, SIEVE_FAMILY_V6); }},
        {"skip-invalid", nullptr, "count malformed lines and go on",
         [](FeedSpec& feed, const std::string&) -> Status {
             feed.skip_invalid = true;
             return {};
         },
         [](const FeedSpec& feed) -> BuildOptionValue { return feed.skip_invalid; }},
        {"hits", nullptr,
         "single addresses in kind exact: mark each entry that a packet matches, for `list --hits`",
         [](FeedSpec& feed, const std::string&) -> Status {
             feed.build.spare.hits = true;
             return {};
         },
         [](const FeedSpec& feed) -> BuildOptionValue { return feed.build.spare.hits; }},
        {"host-bits", "refuse|mask", "bits behind a prefix's length: refuse the line, or clear them (refuse)",
         [](FeedSpec& feed, const std::string& text) -> Status {
             if (text != "refuse" && text != "mask") return invalid_request("expected refuse or mask");
             feed.mask_host_bits = text == "mask";
             return {};
         },
         [](const FeedSpec& feed) -> BuildOptionValue {
             return std::string(feed.mask_host_bits ? "mask" : "refuse");
         }},
        {"allow-wide", nullptr, "take a list that covers over half of the IPv4 or IPv6 addresses, too",
         [](FeedSpec& feed, const std::string&) -> Status {
             feed.allow_wide = true;
             return {};
         },
         [](const FeedSpec& feed) -> BuildOptionValue { return feed.allow_wide; }},
        {"except", "FILE", "never match these: a list of addresses, prefixes or keys",
         [](FeedSpec& feed, const std::string& text) -> Status {
             if (text.empty()) return invalid_request("expected a file");
             feed.except = text;
             return {};
         },
         [](const FeedSpec& feed) -> BuildOptionValue {
             return feed.except.empty() ? BuildOptionValue(Unset{"nothing"}) : feed.except;
         }},
        {"threads", "NUMBER", "threads; as many as processors if not given",
         [](FeedSpec& feed, const std::string& text) { return set_threads(feed.build.threads, text); },
         [](const FeedSpec& feed) -> BuildOptionValue {
             return feed.build.threads != 0 ? BuildOptionValue(std::uint64_t{feed.build.threads})
                                            : Unset{"as many as processors"};
         },
         false},
    };
}

} // namespace

std::span<const BuildOption> build_options() {
    static const std::vector<BuildOption> options = list_options();
    return options;
}

Status set_build_option(const BuildOption& option, const std::string& text, const std::string& as_given,
                        FeedSpec& feed) {
    if (Status set = option.set(feed, text); !set)
        return invalid_request(fmt::format("{}: {}", as_given, set.error().message));
    feed.chosen.emplace_back(option.name);
    return {};
}

} // namespace sieve::control
