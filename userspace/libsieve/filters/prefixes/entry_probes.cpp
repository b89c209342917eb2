// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/prefixes/entry_probes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "libsieve/filters/prefixes/key_expansion.hpp"
#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve {

namespace {

// How many entries there are of each form that names the same fields, and their probes.
struct Class {
    std::map<EntryForm, double> counts{};
    std::vector<EntryForm> probes{};

    [[nodiscard]] double keys() const {
        double sum = 0;
        for (const auto& [form, count] : counts) sum += count * copies(form, nullptr);
        return sum;
    }
    [[nodiscard]] double keys_with(const EntryForm& more) const {
        double sum = 0;
        for (const auto& [form, count] : counts) sum += count * copies(form, &more);
        return sum;
    }
    // A probe for each length of the source together with each length of the destination.
    [[nodiscard]] std::vector<EntryForm> candidates() const {
        std::set<std::uint32_t> sources, destinations;
        for (const auto& [form, count] : counts) {
            sources.insert(form.source);
            destinations.insert(form.destination);
        }
        std::vector<EntryForm> all;
        if (counts.empty()) return all;
        for (const std::uint32_t source : sources)
            for (const std::uint32_t destination : destinations)
                all.push_back({source, destination, counts.begin()->first.transport});
        return all;
    }

  private:
    // How many keys are stored for an entry of this form.
    [[nodiscard]] double copies(const EntryForm& form, const EntryForm* more) const {
        double least = std::numeric_limits<double>::infinity();
        const auto ask = [&](const EntryForm& probe) {
            if (probe.source < form.source || probe.destination < form.destination) return;
            const std::uint32_t bits = probe.source - form.source + probe.destination - form.destination;
            least = std::min(least, std::exp2(bits));
        };
        for (const EntryForm& probe : probes) ask(probe);
        if (more != nullptr) ask(*more);
        return least;
    }
};

using Classes = std::map<std::uint32_t, Class>; // by the fields that their entries name

void add(std::vector<EntryForm>& probes, const EntryForm& probe) {
    if (std::ranges::find(probes, probe) == probes.end()) probes.push_back(probe);
}

std::size_t count_probes(const Classes& classes) {
    std::size_t sum = 0;
    for (const auto& [fields, one] : classes) sum += one.probes.size();
    return sum;
}

double count_keys(const Classes& classes) {
    double sum = 0;
    for (const auto& [fields, one] : classes) sum += one.keys();
    return sum;
}

// The probes that no choice can leave out.
void require(Classes& classes, std::uint32_t fields, const std::vector<std::uint32_t>& lengths) {
    const EntryForm whole{.source = (fields & SIEVE_FIELD_SRC) != 0 ? address_bits : 0,
                          .destination = (fields & SIEVE_FIELD_DST) != 0 ? address_bits : 0,
                          .transport = fields & SIEVE_FIELD_TRANSPORT};
    for (auto& [named, one] : classes) {
        EntryForm longest{.transport = named & SIEVE_FIELD_TRANSPORT};
        for (const auto& [form, count] : one.counts) {
            longest.source = std::max(longest.source, form.source);
            longest.destination = std::max(longest.destination, form.destination);
        }
        add(one.probes, named == fields ? whole : longest);
    }
    for (const std::uint32_t length : lengths) {
        if (whole.source != 0) add(classes[fields].probes, {length, whole.destination, whole.transport});
        if (whole.destination != 0) add(classes[fields].probes, {whole.source, length, whole.transport});
    }
}

// Adds the probe that saves most stored keys. False if none saves any.
bool add_best(Classes& classes) {
    double most = 0;
    Class* chosen = nullptr;
    EntryForm best;
    for (auto& [fields, one] : classes) {
        const double now = one.keys();
        for (const EntryForm& candidate : one.candidates()) {
            const double saved = now - one.keys_with(candidate);
            if (saved <= most) continue;
            most = saved;
            chosen = &one;
            best = candidate;
        }
    }
    if (chosen != nullptr) chosen->probes.push_back(best);
    return chosen != nullptr;
}

// Among more and more probes, the number for which a probe more does not halve the stored keys.
Classes choose(Classes classes, std::size_t max_probes) {
    const auto worth = [](const Classes& some) {
        return std::ldexp(count_keys(some), static_cast<int>(count_probes(some)));
    };
    Classes best = classes;
    while (count_probes(classes) < max_probes && add_best(classes))
        if (worth(classes) < worth(best)) best = classes;
    return best;
}

std::string forms_text(const Classes& classes, int family) {
    std::string text;
    for (const auto& [fields, one] : classes)
        for (const auto& [form, count] : one.counts) {
            if (text.size() > 300) return text + ", ...";
            text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", std::llround(count),
                                describe_probe(as_probe(form), family));
        }
    return text.empty() ? "none" : text;
}

Result<sieve_probes> choose_of_one_address(std::span<const sieve_key> entries, std::uint32_t fields,
                                           const PrefixLimits& wanted) {
    PrefixLimits limits = wanted;
    LengthCounts counts[SIEVE_FAMILIES] = {};
    for (const sieve_key& entry : entries) counts[*family_of(entry, fields)][form_of(entry, fields).source]++;
    for (auto& lengths : limits.lengths) {
        lengths.push_back(address_bits);
        std::sort(lengths.begin(), lengths.end());
        lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    }
    const auto worth = [](double keys, std::size_t probes) {
        return std::ldexp(keys, static_cast<int>(probes));
    };
    SIEVE_ASSIGN(const ChosenProbes chosen,
                 choose_probes(counts, limits, [&](const std::vector<double>& keys) {
                     std::size_t best = 0;
                     for (std::size_t k = 1; k < keys.size(); k++)
                         if (worth(keys[k], k) < worth(keys[best], best)) best = k;
                     return best;
                 }));
    return chosen.probes;
}

} // namespace

Result<sieve_probes> choose_probes(std::span<const sieve_key> entries, std::uint32_t fields,
                                   const PrefixLimits& limits) {
    if (sieve_is_one_address(fields)) return choose_of_one_address(entries, fields, limits);
    Classes classes[SIEVE_FAMILIES];
    for (Classes& family : classes) family[fields];
    for (const sieve_key& entry : entries) {
        const EntryForm form = form_of(entry, fields);
        const std::optional<int> own = family_of(entry, fields);
        for (int family = 0; family < SIEVE_FAMILIES; family++)
            if (family == own.value_or(family)) classes[family][form.fields()].counts[form]++;
    }
    sieve_probes probes{};
    double total = 0;
    for (int family = 0; family < SIEVE_FAMILIES; family++) {
        if ((fields & SIEVE_FIELD_ADDRESSES) == 0 && !limits.lengths[family].empty())
            return invalid_request("lengths of prefixes are named for keys that have no address");
        require(classes[family], fields, limits.lengths[family]);
        const std::size_t needed = count_probes(classes[family]);
        if (needed > limits.max_probes)
            return bad_input(fmt::format(
                "whole keys, the lengths that are named, and entries that leave fields open need {} probes "
                "of "
                "IPv{} packets, and {} allowed; allow more with --max-probes (at most {}). The entries "
                "are: {}",
                needed, family == SIEVE_FAMILY_V4 ? 4 : 6,
                counted(limits.max_probes, "probe is", "probes are"), SIEVE_MAX_PROBES,
                forms_text(classes[family], family)));
        classes[family] = choose(std::move(classes[family]), limits.max_probes);
        total += count_keys(classes[family]);
        for (const auto& [named, one] : classes[family])
            for (const EntryForm& probe : one.probes) {
                const std::uint32_t at = probes.count[family]++;
                const auto& [source, destination, transport, reserved] = as_probe(probe);
                probes.length[family][at] = source;
                probes.destination[family][at] = destination;
                probes.transport[family][at] = transport;
            }
    }
    if (total > static_cast<double>(limits.max_keys))
        return too_many_stored(total, limits, forms_text(classes[0], 0), forms_text(classes[1], 1));
    return probes;
}

} // namespace sieve
