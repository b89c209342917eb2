// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/image/exceptions.hpp"

#include <cmath>

#include <sieve/prefix.h>

namespace sieve {

namespace {

constexpr std::uint32_t whole_address = 128;

// The bits that a probe compares and the exception leaves open, as parts of one number.
struct OpenBits {
    std::uint32_t source = 0;
    std::uint32_t destination = 0;
    std::uint32_t sport = 0;
    std::uint32_t dport = 0;
    std::uint32_t proto = 0;

    [[nodiscard]] std::uint32_t total() const { return source + destination + sport + dport + proto; }
};

OpenBits open_bits(const sieve_probe& known, const sieve_probe& probe) {
    const auto beyond = [](std::uint32_t length, std::uint32_t from) {
        return length > from ? length - from : 0;
    };
    const std::uint32_t transport = probe.transport & ~std::uint32_t{known.transport};
    return {.source = beyond(probe.source, known.source),
            .destination = beyond(probe.destination, known.destination),
            .sport = (transport & SIEVE_FIELD_SPORT) != 0 ? 16U : 0U,
            .dport = (transport & SIEVE_FIELD_DPORT) != 0 ? 16U : 0U,
            .proto = (transport & SIEVE_FIELD_PROTO) != 0 ? 8U : 0U};
}

// Takes the lowest `bits` bits off a number.
std::uint64_t take(std::uint64_t& number, std::uint32_t bits) {
    const std::uint64_t part = number & ((std::uint64_t{1} << bits) - 1);
    number >>= bits;
    return part;
}

// Puts `part` right before the end of an address's first `length` bits.
void put(__u64* words, std::uint64_t part, std::uint32_t length) {
    if (length == 0) return;
    const std::uint32_t shift = whole_address - length;
    if (shift >= 64) {
        words[0] |= part << (shift - 64);
    } else {
        words[1] |= part << shift;
        if (shift > 0) words[0] |= part >> (64 - shift);
    }
}

// The families that an exception may belong to.
bool may_be(const sieve_exception& exception, int family) {
    for (const auto& [length, words] : {std::pair{exception.bits.source, exception.key.word},
                                        std::pair{exception.bits.destination, exception.key.word + 2}})
        if (length > 0) return sieve_family(words[0], words[1]) == family;
    return true;
}

// Calls visit(probe) for each probe that the exception must be asked for.
template <class Visit>
bool for_each_probe(const sieve_exception& exception, const sieve_lookup& lookup, const sieve_probes& probes,
                    const Visit& visit) {
    for (int family = 0; family < SIEVE_FAMILIES; family++) {
        if (lookup.probes == 0 && family > 0) break; // keys are exact: one question, whatever the family
        if (lookup.probes != 0 && !may_be(exception, family)) continue;
        for (const sieve_probe& probe : probes_of(lookup, probes, family))
            if (!visit(probe)) return false;
    }
    return true;
}

} // namespace

std::vector<sieve_probe> probes_of(const sieve_lookup& lookup, const sieve_probes& probes, int family) {
    const std::uint32_t fields = lookup.fields;
    const auto length = [&](std::uint32_t field, std::uint32_t bits) {
        return static_cast<__u8>((fields & field) != 0 ? bits : 0);
    };
    if (lookup.probes == 0)
        return {{length(SIEVE_FIELD_SRC, whole_address), length(SIEVE_FIELD_DST, whole_address),
                 static_cast<__u8>(fields & SIEVE_FIELD_TRANSPORT), 0}};
    std::vector<sieve_probe> all;
    for (int i = 0; i < probes.count[family]; i++) {
        const __u8 bits = probes.length[family][i];
        if (sieve_is_one_address(fields))
            all.push_back({length(SIEVE_FIELD_SRC, bits), length(SIEVE_FIELD_DST, bits), 0, 0});
        else
            all.push_back({bits, probes.destination[family][i], probes.transport[family][i], 0});
    }
    return all;
}

double count_questions(const sieve_exception& exception, const sieve_lookup& lookup,
                       const sieve_probes& probes) {
    double sum = 0;
    for_each_probe(exception, lookup, probes, [&](const sieve_probe& probe) {
        sum += std::exp2(open_bits(exception.bits, probe).total());
        return true;
    });
    return sum;
}

bool for_each_question(const sieve_exception& exception, const sieve_lookup& lookup,
                       const sieve_probes& probes,
                       const std::function<bool(const sieve_key&, const sieve_probe&)>& visit) {
    return for_each_probe(exception, lookup, probes, [&](const sieve_probe& probe) {
        const OpenBits open = open_bits(exception.bits, probe);
        for (std::uint64_t i = 0; i < std::uint64_t{1} << open.total(); i++) {
            std::uint64_t rest = i;
            sieve_key key = exception.key;
            put(key.word, take(rest, open.source), probe.source);
            put(key.word + 2, take(rest, open.destination), probe.destination);
            key.word[4] |= take(rest, open.sport) << SIEVE_SPORT_SHIFT;
            key.word[4] |= take(rest, open.dport) << SIEVE_DPORT_SHIFT;
            key.word[4] |= take(rest, open.proto) << SIEVE_PROTO_SHIFT;
            if (!visit(key, probe)) return false;
        }
        return true;
    });
}

std::string exception_fault(const sieve_exception& exception, const sieve_lookup& lookup) {
    const sieve_probe& bits = exception.bits;
    const std::uint32_t fields = lookup.fields;
    if (bits.reserved != 0 || exception.reserved0 != 0 || exception.reserved[0] != 0 ||
        exception.reserved[1] != 0)
        return "an exception with reserved bytes that are not zero";
    if (bits.source > whole_address || bits.destination > whole_address ||
        ((fields & SIEVE_FIELD_SRC) == 0 && bits.source != 0) ||
        ((fields & SIEVE_FIELD_DST) == 0 && bits.destination != 0) || (bits.transport & ~fields) != 0 ||
        (bits.transport & ~SIEVE_FIELD_TRANSPORT) != 0)
        return "an exception that is no key of its fields";
    sieve_key kept;
    sieve_store_key(&exception.key, sieve_pack_probe(bits.source, bits.destination, bits.transport), &kept);
    kept.word[4] &= (std::uint64_t{1} << SIEVE_STORED_PROBE_SHIFT) - 1;
    for (int word = 0; word < SIEVE_KEY_WORDS; word++)
        if (kept.word[word] != exception.key.word[word]) return "an exception with bits that do not matter";
    return {};
}

} // namespace sieve
