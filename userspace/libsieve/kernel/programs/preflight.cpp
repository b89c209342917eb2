// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/programs/preflight.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include <sieve/prefix.h>

#include "libsieve/analysis/binomial.hpp"
#include "libsieve/build/measure.hpp"
#include "libsieve/build/random_keys.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/maps/exact_set.hpp"
#include "libsieve/kernel/maps/stats.hpp"
#include "libsieve/packets/carrier.hpp"
#include "libsieve/util/parallel/parallel.hpp"
#include "libsieve/util/random/splitmix64.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve::kernel {

namespace {

constexpr std::uint64_t non_members_wanted = 4096;
constexpr std::uint64_t exceptions_wanted = 4096;
// A key space can be smaller (a single port). Then all of its keys are asked, and this bound ends the
// drawing.
constexpr std::uint64_t draws_at_most = 4 * non_members_wanted;

using Words = std::array<std::uint64_t, SIEVE_KEY_WORDS>;

Words words_of(const sieve_key& key) {
    Words words;
    std::copy(std::begin(key.word), std::end(key.word), words.begin());
    return words;
}

bool source_is_v4(const sieve_key& key) {
    return packets::is_v4_mapped(key.word[0], key.word[1]);
}

bool destination_is_v4(const sieve_key& key) {
    return packets::is_v4_mapped(key.word[2], key.word[3]);
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

// The chance that a random key is a member after all. With 10^8 IPv4 addresses, one random address in 43 is.
// We assume that the members' shapes are distributed like those of the witnesses.
double member_share(const Image& image) {
    const std::uint32_t fields = image.lookup().fields;
    if (image.lookup().probes > 0) { // the builder knows how much the prefixes cover
        double chance = 0;
        for (const sieve_witness& witness : image.witnesses())
            chance += rate_from_bits(image.file().covered[sieve_key_family(&witness.key, fields)]);
        // A share that was counted is uncertain: of so many more keys, one more may be a member (the rule of
        // succession).
        const double uncertain = sieve_is_one_address(fields) ? 0 : 1.0 / cover_draws;
        return std::min(1.0, chance / static_cast<double>(image.witnesses().size()) + uncertain);
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

// A key that the exception covers, with random bits where they do not matter.
sieve_key key_of_exception(const sieve_exception& exception, std::uint32_t fields, SplitMix64& random) {
    sieve_key key = exception.key;
    const sieve_probe& bits = exception.bits;
    if ((fields & SIEVE_FIELD_SRC) != 0) {
        key.word[0] |= random() & ~sieve_upper_mask(bits.source);
        key.word[1] |= random() & ~sieve_lower_mask(bits.source);
    }
    if ((fields & SIEVE_FIELD_DST) != 0) {
        key.word[2] |= random() & ~sieve_upper_mask(bits.destination);
        key.word[3] |= random() & ~sieve_lower_mask(bits.destination);
    }
    const std::uint32_t open = fields & ~std::uint32_t{bits.transport};
    key.word[4] |= random() & sieve_transport_mask(open & SIEVE_FIELD_PORTS);
    if ((open & SIEVE_FIELD_PROTO) != 0) key.word[4] |= random() % 2 == 0 ? 6 : 17;
    return key;
}

PreflightQuestions::Keys witnesses_of(const Image& image) {
    PreflightQuestions::Keys questions;
    for (const sieve_witness& witness : image.witnesses()) {
        const std::string_view obstacle = packets::obstacle(witness.key, image.lookup().fields);
        if (obstacle.empty())
            questions.keys.push_back(witness.key);
        else
            questions.uncarriable[obstacle]++;
    }
    return questions;
}

PreflightQuestions::Keys non_members_of(const Image& image) {
    const std::uint32_t fields = image.lookup().fields;
    RandomKeys draw(image.witnesses(), fields, image.file().identity[0]);
    std::set<Words> asked; // asking a key twice would count one false positive twice
    PreflightQuestions::Keys questions;
    for (std::uint64_t i = 0; i < draws_at_most && questions.keys.size() < non_members_wanted; i++) {
        const sieve_key key = draw();
        if (packets::obstacle(key, fields).empty() && asked.insert(words_of(key)).second)
            questions.keys.push_back(key);
    }
    return questions;
}

// Draws keys of which each is an exception: every single key, and of prefixes some.
PreflightQuestions::Keys exceptions_of(const Image& image) {
    const std::uint32_t fields = image.lookup().fields;
    PreflightQuestions::Keys questions;
    if (image.exceptions().empty()) return questions;
    SplitMix64 random(image.file().identity[0]);
    std::set<Words> asked;
    const std::uint64_t each = std::max<std::uint64_t>(1, exceptions_wanted / image.exceptions().size());
    for (const sieve_exception& exception : image.exceptions()) {
        if (questions.keys.size() >= exceptions_wanted) break;
        for (std::uint64_t i = 0; i < each; i++) {
            const sieve_key key = key_of_exception(exception, fields, random);
            if (!asked.insert(words_of(key)).second) continue;
            if (packets::obstacle(key, fields).empty()) questions.keys.push_back(key);
        }
    }
    return questions;
}

// Asks the program about each key; tells for each whether it matched. A packet takes a few microseconds, most
// of them for the system call, so all processors ask at once.
Result<std::vector<char>> ask(const Scratch& scratch, const std::vector<sieve_key>& keys,
                              std::uint32_t fields) {
    constexpr std::size_t portion = 256;
    std::vector<char> matched(keys.size());
    std::mutex mutex;
    std::optional<Error> error;
    for_each_index((keys.size() + portion - 1) / portion, [&](std::size_t p) {
        packets::Carrier carrier;
        for (std::size_t i = p * portion; i < std::min(keys.size(), (p + 1) * portion); i++) {
            Result<std::uint32_t> verdict = scratch.run(carrier.carry(keys[i], fields));
            if (!verdict) {
                const std::lock_guard lock(mutex);
                error = std::move(verdict.error());
                return;
            }
            matched[i] = *verdict == SIEVE_VERDICT_DROP ? 1 : 0;
        }
    });
    if (error) return tl::unexpected(std::move(*error));
    return matched;
}

// Asks the program about the image's witnesses. Each of them is a member and must match.
Result<void> ask_members(PreflightReport& report, const Scratch& scratch, const Image& image,
                         const PreflightQuestions& questions, const std::string& name) {
    SIEVE_ASSIGN(const std::vector<char> matched,
                 ask(scratch, questions.witnesses().keys, image.lookup().fields));
    for (const auto& [obstacle, keys] : questions.witnesses().uncarriable) {
        report.uncarriable += keys;
        report.obstacles.emplace_back(obstacle);
    }
    report.members = matched.size();
    if (report.members == 0)
        return bad_input(
            fmt::format("set {}: no packet can carry any of its {} sampled keys ({}), so nothing would "
                        "ever match and nothing can be tested; nothing was changed",
                        name, report.uncarriable, fmt::join(report.obstacles, "; ")));
    if (const auto silent = std::count(matched.begin(), matched.end(), 0); silent > 0)
        return bad_input(
            fmt::format("set {}: {} of {} of its own keys did not match when the kernel was asked; "
                        "nothing was changed",
                        name, silent, report.members));
    return {};
}

// Asks the program about random keys. It must judge each of them as the image does. With an exact set behind
// the image, it may reject what the image matches by mistake.
Result<void> ask_non_members(PreflightReport& report, const Scratch& scratch, std::uint32_t slot,
                             const Image& image, const PreflightQuestions& questions, const std::string& name,
                             bool verified) {
    const auto avoided = [&]() -> Result<std::uint64_t> {
        SIEVE_ASSIGN(const Stats stats, read_stats(scratch.instance()));
        return stats.verified[slot].avoided;
    };
    SIEVE_ASSIGN(const std::uint64_t avoided_before, avoided());
    SIEVE_ASSIGN(const std::vector<char> matched,
                 ask(scratch, questions.non_members().keys, image.lookup().fields));
    SIEVE_ASSIGN(const std::uint64_t avoided_after, avoided());
    report.non_members = matched.size();
    report.matched = static_cast<std::uint64_t>(std::count(matched.begin(), matched.end(), 1));
    report.avoided = avoided_after - avoided_before;
    std::uint64_t otherwise = 0;
    for (std::size_t i = 0; i < matched.size(); i++) {
        const bool holds = questions.held()[i] != 0;
        const bool as_told = verified ? holds || matched[i] == 0 : holds == (matched[i] != 0);
        otherwise += as_told ? 0 : 1;
    }
    if (otherwise > 0)
        return bad_input(
            fmt::format("set {}: the kernel judged {} of {} random keys otherwise than the image "
                        "does; nothing was changed",
                        name, otherwise, report.non_members));
    return {};
}

// Asks the program about keys that must not match.
Result<void> ask_exceptions(PreflightReport& report, const Scratch& scratch, const Image& image,
                            const PreflightQuestions& questions, const std::string& name, bool verified) {
    if (image.exceptions().empty()) return {};
    // What an exact kind matches is a member, and no exception is one.
    if (image.file().excluded == 0 && !verified && kind_of(image.lookup()).exact() == nullptr)
        return bad_input(fmt::format("set {}: its exceptions were left to verification, so the set must be "
                                     "verified; nothing was changed",
                                     name));
    SIEVE_ASSIGN(const std::vector<char> matched,
                 ask(scratch, questions.exceptions().keys, image.lookup().fields));
    report.exceptions = matched.size();
    if (const auto hits = std::count(matched.begin(), matched.end(), 1); hits > 0)
        return bad_input(fmt::format("set {}: {} of {} matched when the kernel was asked; nothing was "
                                     "changed",
                                     name, hits, counted(report.exceptions, "exception")));
    return {};
}

// Compares how many random keys matched with the rate that the image promises.
Result<void> check_rates(PreflightReport& report, const Image& image, const std::string& name,
                         bool verified) {
    const double share = member_share(image);
    report.expected_rate =
        share + (1 - share) * expected_fpr_of_witnesses(image, rate_from_bits(image.file().expected_fpr));
    if (verified && !analysis::fits_rate(report.matched, report.non_members, share))
        return bad_input(fmt::format(
            "set {}: {} of {} random keys matched though the exact set was asked, {:.3g} "
            "members expected; nothing was changed",
            name, report.matched, report.non_members, share * static_cast<double>(report.non_members)));
    if (!fits_rate(image, report.matched + report.avoided, report.non_members, report.expected_rate))
        return bad_input(
            fmt::format("set {}: {} of {} random keys matched when the kernel was asked, expected "
                        "{:.3g} by its false positive rate; nothing was changed",
                        name, report.matched + report.avoided, report.non_members,
                        report.expected_rate * static_cast<double>(report.non_members)));
    return {};
}

} // namespace

PreflightQuestions::PreflightQuestions(const Image& image)
    : witnesses_(witnesses_of(image)), non_members_(non_members_of(image)), exceptions_(exceptions_of(image)),
      held_(non_members_.keys.size()) {
    // The work alone would not need TBB. But TBB takes a millisecond to start, and it is better to pay that
    // now than while the kernel is being asked.
    for_each_index(held_.size(),
                   [&](std::size_t i) { held_[i] = image.contains(non_members_.keys[i]) ? 1 : 0; });
}

Result<PreflightReport> preflight(const Scratch& scratch, std::uint32_t slot, const Image& image,
                                  const PreflightQuestions& questions, const std::string& name,
                                  bool verified) {
    const auto begin = std::chrono::steady_clock::now();
    scratch.ask_slot(slot, verified);
    PreflightReport report;
    SIEVE_TRY(ask_members(report, scratch, image, questions, name));
    SIEVE_TRY(ask_non_members(report, scratch, slot, image, questions, name, verified));
    SIEVE_TRY(ask_exceptions(report, scratch, image, questions, name, verified));
    SIEVE_TRY(check_rates(report, image, name, verified));
    report.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    return report;
}

Result<Preflight> Preflight::start(HookPoint point) {
    SIEVE_ASSIGN(Scratch scratch, Scratch::load(false, point));
    return Preflight(std::move(scratch));
}

Result<PreflightReport> Preflight::check(const Image& image, const FilterMap& map, const std::string& name,
                                         const ExactSet* exact) {
    SIEVE_TRY(scratch_.ask_only(map.fd(), exact != nullptr ? exact->fd() : -1));
    return preflight(scratch_, 0, image, PreflightQuestions(image), name, exact != nullptr);
}

} // namespace sieve::kernel
