// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/preflight.hpp"

#include <linux/bpf.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <set>

#include <fmt/core.h>

#include <sieve/prefix.h>

#include "libsieve/analysis/binomial.hpp"
#include "libsieve/filters/measure.hpp"
#include "libsieve/filters/random_keys.hpp"
#include "libsieve/image/kinds.hpp"
#include "libsieve/kernel/carrier.hpp"

namespace sieve::kernel {

namespace {

constexpr std::uint64_t strangers_wanted = 10'000;
// Key spaces can be smaller than that (one port); then all of it is asked, and drawing stops here.
constexpr std::uint64_t draws_at_most = 4 * strangers_wanted;

using Words = std::array<std::uint64_t, SIEVE_KEY_WORDS>;

Words words_of(const sieve_key& key) {
    Words words;
    std::copy(std::begin(key.word), std::end(key.word), words.begin());
    return words;
}

bool source_is_v4(const sieve_key& key) {
    return is_v4_mapped(key.word[0], key.word[1]);
}

bool destination_is_v4(const sieve_key& key) {
    return is_v4_mapped(key.word[2], key.word[3]);
}

// How many keys RandomKeys can draw from a member's shape, as a power of two.
double shape_bits(const sieve_key& key, std::uint32_t fields) {
    double bits = 0;
    if ((fields & SIEVE_FIELD_SRC) != 0) bits += source_is_v4(key) ? 32 : 128;
    if ((fields & SIEVE_FIELD_DST) != 0) bits += destination_is_v4(key) ? 32 : 128;
    if ((fields & SIEVE_FIELD_SPORT) != 0) bits += 16;
    if ((fields & SIEVE_FIELD_DPORT) != 0) bits += 16;
    return bits;
}

// The chance that a random key is a member after all: of 10^8 IPv4 addresses one random one in 43 is. Members
// are spread over the shapes as the witnesses are.
double member_share(const Image& image) {
    const std::uint32_t fields = image.lookup().fields;
    if (image.lookup().probes > 0) { // the builder knows what the prefixes cover
        double chance = 0;
        for (const sieve_witness& witness : image.witnesses()) {
            const bool v4 =
                fields == SIEVE_FIELD_SRC ? source_is_v4(witness.key) : destination_is_v4(witness.key);
            chance += rate_from_bits(image.file().covered[v4 ? SIEVE_FAMILY_V4 : SIEVE_FAMILY_V6]);
        }
        return chance / static_cast<double>(image.witnesses().size());
    }
    std::map<std::tuple<bool, bool, std::uint64_t>, std::pair<std::uint64_t, double>> shapes;
    for (const sieve_witness& witness : image.witnesses()) {
        const sieve_key& key = witness.key;
        auto& [count, bits] = shapes[{source_is_v4(key), destination_is_v4(key),
                                      key.word[4] & sieve_transport_mask(fields & SIEVE_FIELD_PROTO)}];
        count++;
        bits = shape_bits(key, fields);
    }
    double chance = 0;
    for (const auto& [shape, entry] : shapes) {
        const double share = static_cast<double>(entry.first) / static_cast<double>(image.witnesses().size());
        const double members = share * static_cast<double>(image.file().keys);
        chance += share * std::min(1.0, members / std::exp2(entry.second));
    }
    return chance;
}

} // namespace

Result<Preflight> Preflight::start() {
    SIEVE_ASSIGN(Scratch scratch, Scratch::load(false));
    return Preflight(std::move(scratch));
}

Result<PreflightReport> Preflight::check(const Image& image, const FilterMap& map, const std::string& name) {
    const auto begin = std::chrono::steady_clock::now();
    if (const auto kind = image.lookup().kind; kind != SIEVE_KIND_BLOCKED && kind != SIEVE_KIND_BLOOM)
        return bad_input(
            fmt::format("set {}: packets are not asked with filters of kind {} yet; build it as blocked "
                        "or bloom; nothing was changed",
                        name, kind_name(kind)));
    SIEVE_TRY(scratch_.ask_only(map.fd()));
    const std::uint32_t fields = image.lookup().fields;
    PreflightReport report;
    Carrier carrier;

    std::uint64_t silent = 0;
    for (const sieve_witness& witness : image.witnesses()) {
        const auto frame = carrier.carry(witness.key, fields);
        if (frame.empty()) {
            report.uncarriable++;
            continue;
        }
        SIEVE_ASSIGN(const std::uint32_t verdict, scratch_.run(frame));
        report.members++;
        if (verdict != XDP_DROP) silent++;
    }
    if (silent > 0)
        return bad_input(
            fmt::format("set {}: {} of {} of its own keys did not match when the kernel was asked; "
                        "nothing was changed",
                        name, silent, report.members));

    RandomKeys draw(image.witnesses(), fields, image.file().identity[0]);
    std::set<Words> asked; // a key twice would count one false positive twice
    for (std::uint64_t i = 0; i < draws_at_most && report.strangers < strangers_wanted; i++) {
        const sieve_key key = draw();
        const auto frame = carrier.carry(key, fields);
        if (frame.empty() || !asked.insert(words_of(key)).second) continue;
        SIEVE_ASSIGN(const std::uint32_t verdict, scratch_.run(frame));
        report.strangers++;
        if (verdict == XDP_DROP) report.matched++;
    }
    const double share = member_share(image);
    report.expected_rate =
        share + (1 - share) * expected_fpr_of_witnesses(image, rate_from_bits(image.file().expected_fpr));
    if (!analysis::fits_rate(report.matched, report.strangers, report.expected_rate))
        return bad_input(
            fmt::format("set {}: {} of {} random keys matched when the kernel was asked, expected "
                        "{:.3g} by its false positive rate; nothing was changed",
                        name, report.matched, report.strangers,
                        report.expected_rate * static_cast<double>(report.strangers)));
    report.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    return report;
}

} // namespace sieve::kernel
