// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/image/header.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/core.h>
#include <sieve/prefix.h>

#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/image/exceptions.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve {

namespace {

// 9999-12-31: later times have no date that could be printed.
constexpr std::uint64_t last_second = 253402300799;
// Counts are added and divided, so they must stay far below 2^64 and exact as a double.
constexpr std::uint64_t most_counted = std::uint64_t{1} << 53;
// The builder takes at least one bit a key, or less for a rate near 1, but never as little as this.
constexpr std::uint64_t most_keys_per_line = std::uint64_t{8} * SIEVE_LINE_BITS;

bool is_rate(std::uint64_t bits) {
    const double rate = rate_from_bits(bits);
    return !std::signbit(rate) && rate <= 1.0; // false for NaN and for a negative zero
}

template <class T>
bool all_zero(const T& numbers) {
    return std::all_of(std::begin(numbers), std::end(numbers), [](auto number) { return number == 0; });
}

std::string identity_fault(const sieve_lookup& lookup, const sieve_file& file) {
    if (lookup.magic != SIEVE_MAGIC)
        return fmt::format("not a filter image (magic {:08x}, expected {:08x})", lookup.magic, SIEVE_MAGIC);
    if (file.version != SIEVE_IMAGE_VERSION)
        return fmt::format("image format {}, this program reads format {}; rebuild it from its feed",
                           file.version, SIEVE_IMAGE_VERSION);
    return {};
}

// The probes of one family of a set of several fields.
std::string compound_fault(const sieve_lookup& lookup, const sieve_probes& probes, int family) {
    const std::uint32_t count = probes.count[family];
    if (count > SIEVE_MAX_PROBES) return fmt::format("{} probes, at most {} can be", count, SIEVE_MAX_PROBES);
    const std::uint32_t least = family == SIEVE_FAMILY_V4 ? 96 : 0;
    const auto is_length = [&](std::uint32_t length, std::uint32_t field) {
        return length == 0 || ((lookup.fields & field) != 0 && length >= least && length <= 128);
    };
    for (std::uint32_t i = 0; i < SIEVE_MAX_PROBES; i++) {
        const std::uint32_t source = probes.length[family][i];
        const std::uint32_t destination = probes.destination[family][i];
        const std::uint32_t transport = probes.transport[family][i];
        if (i >= count && (source | destination | transport) != 0) return "probes behind its last one";
        if (!is_length(source, SIEVE_FIELD_SRC) || !is_length(destination, SIEVE_FIELD_DST) ||
            (transport & ~(lookup.fields & SIEVE_FIELD_TRANSPORT)) != 0)
            return "a probe that its fields do not allow";
    }
    return {};
}

// The lengths of one family of a set of one address.
std::string lengths_fault(const sieve_probes& probes, int family) {
    const std::uint32_t count = probes.count[family];
    if (count > SIEVE_MAX_PROBES)
        return fmt::format("{} prefix lengths, at most {} can be", count, SIEVE_MAX_PROBES);
    const std::uint32_t least = family == SIEVE_FAMILY_V4 ? 96 : 0;
    for (std::uint32_t i = 0; i < SIEVE_MAX_PROBES; i++) {
        const std::uint32_t length = probes.length[family][i];
        if (i >= count && length != 0) return "prefix lengths behind its last one";
        if ((probes.destination[family][i] | probes.transport[family][i]) != 0)
            return "probes of several fields in a set of one address";
        if (i < count &&
            (length < least || length > 128 || (i > 0 && length <= probes.length[family][i - 1])))
            return "its prefix lengths are not a rising list";
    }
    return {};
}

std::string probes_fault(const FilterKind& kind, const sieve_lookup& lookup, const sieve_probes& probes) {
    const bool one = lookup.probes == 0 || sieve_is_one_address(lookup.fields);
    for (int family = 0; family < SIEVE_FAMILIES; family++)
        if (std::string fault = one ? lengths_fault(probes, family) : compound_fault(lookup, probes, family);
            !fault.empty())
            return fault;
    const std::uint32_t most = std::max(probes.count[0], probes.count[1]);
    if (kind.exact() != nullptr) {
        if (most != 0) return "prefix lengths of a kind that has none";
    } else if (most != lookup.probes)
        return fmt::format("{} probes, but its lengths are {}", lookup.probes, most);
    if (!all_zero(probes.reserved0) || !all_zero(probes.reserved)) return "reserved bytes that are not zero";
    return {};
}

std::string size_fault(const FilterKind& kind, const sieve_lookup& lookup, const sieve_file& file) {
    const std::uint64_t filter = kind.lines(lookup);
    const std::uint64_t expected = SIEVE_FIRST_LINE + filter + file.witnesses + file.exceptions;
    if (expected != file.lines)
        return fmt::format("its header asks for {} lines and counts {}", expected, file.lines);
    if (expected > std::numeric_limits<std::uint32_t>::max())
        return fmt::format("a filter of {} lines is larger than a BPF map can be", expected);
    if (file.exceptions > most_exceptions)
        return fmt::format("{} exceptions, at most {} can be", file.exceptions, most_exceptions);
    if (file.keys == 0 || file.witnesses == 0) return "an image without keys";
    if (file.keys > filter * most_keys_per_line)
        return fmt::format("{} keys in a filter of {} lines, which cannot hold so many", file.keys, filter);
    return {};
}

std::string counts_fault(const FilterKind& kind, const sieve_lookup& lookup, const sieve_file& file) {
    for (const std::uint64_t count : {file.duplicates, file.skipped, file.entries, file.measured_trials})
        if (count > most_counted) return fmt::format("a count of {}, which nothing could count", count);
    if (file.entries == 0) return "keys without entries that they were made of";
    const bool exact = lookup.probes == 0;
    if (exact && file.entries != file.keys + file.duplicates)
        return fmt::format("{} entries, but {} keys and {} duplicates", file.entries, file.keys,
                           file.duplicates);
    if (file.witnesses > file.keys + file.duplicates)
        return fmt::format("{} witnesses of {} keys", file.witnesses, file.keys);
    if (file.excluded > most_exception_questions || (file.excluded > 0 && file.exceptions == 0))
        return fmt::format("{} questions of {} exceptions, which nothing could ask", file.excluded,
                           file.exceptions);
    if (file.built_at > last_second) return "a date of building that is none";
    const ExactKind* exact_kind = kind.exact();
    if (exact_kind != nullptr && !exact_kind->is_of_keys() && (file.key_sum[0] | file.key_sum[1]) != 0)
        return "a sum of hashes of a kind that hashes nothing";
    if (file.changes != 0) return "keys that were changed one by one, which no file has";
    return {};
}

std::string rates_fault(const FilterKind& kind, const sieve_lookup& lookup, const sieve_probes& probes,
                        const sieve_file& file) {
    if (!is_rate(file.predicted_fpr) || !is_rate(file.expected_fpr) || !is_rate(file.measured_fpr))
        return "its false positive rates are not rates";
    if (kind.exact() != nullptr && (file.predicted_fpr | file.expected_fpr | file.measured_fpr) != 0)
        return "a false positive rate of a kind that has none";
    if (file.measured_trials == 0 && rate_from_bits(file.measured_fpr) != 0)
        return "a rate that was measured without a trial";
    for (int family = 0; family < SIEVE_FAMILIES; family++) {
        if (!is_rate(file.covered[family])) return "the share of addresses that it covers is not a share";
        const bool asked = lookup.probes != 0 && (probes.count[family] != 0 || kind.exact() != nullptr);
        if (!asked && rate_from_bits(file.covered[family]) != 0)
            return "addresses are covered that no packet is asked for";
    }
    return {};
}

std::string label_fault(const sieve_file& file) {
    const auto* label = std::begin(file.label);
    const auto* end = std::find(label, std::end(file.label), 0);
    if (end == std::end(file.label)) return "its label is not terminated";
    if (std::any_of(end, std::end(file.label), [](auto byte) { return byte != 0; }))
        return "bytes behind the end of its label";
    if (std::any_of(label, end, [](auto byte) { return is_control(static_cast<char>(byte)); }))
        return "its label is not text";
    return {};
}

} // namespace

double rate_from_bits(std::uint64_t bits) {
    return std::bit_cast<double>(bits);
}
std::uint64_t rate_to_bits(double rate) {
    return std::bit_cast<std::uint64_t>(rate);
}

std::string label_text(const sieve_file& file) {
    const auto* label = std::begin(file.label);
    const auto* end = std::find(label, std::end(file.label), 0);
    return printable({reinterpret_cast<const char*>(label), static_cast<std::size_t>(end - label)});
}

std::string header_fault(const ImageHeader& header, const Kinds& kinds) {
    const auto& [lookup, probes, file] = header;
    const FilterKind& kind = kinds.of(lookup);
    // The order matters: each check trusts what the checks before it have accepted.
    std::string fault = identity_fault(lookup, file);
    if (fault.empty()) fault = kinds.geometry_fault(lookup);
    if (fault.empty()) fault = probes_fault(kind, lookup, probes);
    if (fault.empty()) fault = size_fault(kind, lookup, file);
    if (fault.empty()) fault = counts_fault(kind, lookup, file);
    if (fault.empty()) fault = rates_fault(kind, lookup, probes, file);
    if (fault.empty()) fault = label_fault(file);
    if (fault.empty() && !all_zero(file.reserved)) fault = "reserved bytes that are not zero";
    return fault;
}

std::string witness_fault(const sieve_witness& witness, const sieve_lookup& lookup) {
    const std::uint32_t fields = lookup.fields;
    const sieve_key& key = witness.key;
    const bool bare = ((fields & SIEVE_FIELD_SRC) != 0 || (key.word[0] | key.word[1]) == 0) &&
                      ((fields & SIEVE_FIELD_DST) != 0 || (key.word[2] | key.word[3]) == 0) &&
                      (key.word[4] & ~sieve_transport_mask(fields)) == 0 && all_zero(witness.reserved);
    return bare ? std::string() : "a witness that is no key of its fields";
}

} // namespace sieve
