// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/prefixes/key_expansion.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <sieve/prefix.h>

#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/keys/key_order.hpp"
#include "libsieve/util/parallel/parallel_sort.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve {

namespace {

constexpr std::uint32_t v4_shift = 96; // an IPv4 address is the end of a v4-mapped one

using Lengths = std::pair<std::uint32_t, std::uint32_t>; // of source and destination

// Entries that leave the same fields open can share probes.
struct Class {
    std::uint32_t fields = 0; // those that matter
    std::map<Lengths, double> counts{};
    // For each number of probes from 1 up: how many stored keys they make, and which probe takes an entry of
    // given lengths.
    std::vector<double> keys{};
    std::vector<std::map<Lengths, Lengths>> targets{};
};

Lengths longer(const Lengths& a, const Lengths& b) {
    return {std::max(a.first, b.first), std::max(a.second, b.second)};
}

double copies(const Lengths& from, const Lengths& to) {
    return std::exp2(static_cast<double>(to.first - from.first + to.second - from.second));
}

double keys_of(const Class& entries, const std::map<Lengths, Lengths>& target) {
    double sum = 0;
    for (const auto& [lengths, count] : entries.counts) sum += count * copies(lengths, target.at(lengths));
    return sum;
}

// One address has several lengths: the best choice.
void choose_of_one(Class& entries, bool source, std::uint32_t most) {
    LengthCounts counts{};
    Lengths other;
    for (const auto& [lengths, count] : entries.counts) {
        counts[source ? lengths.first : lengths.second] += count;
        other = lengths;
    }
    const LengthChoices choices = choose_lengths(counts, most);
    for (const std::vector<std::uint32_t>& chosen : choices.lengths) {
        std::map<Lengths, Lengths> target;
        for (const auto& [lengths, count] : entries.counts) {
            const std::uint32_t length = source ? lengths.first : lengths.second;
            const std::uint32_t to = *std::lower_bound(chosen.begin(), chosen.end(), length);
            target[lengths] = source ? Lengths{to, other.second} : Lengths{other.first, to};
        }
        entries.keys.push_back(keys_of(entries, target));
        entries.targets.push_back(std::move(target));
    }
}

// Both addresses have several lengths: starts with one probe for each pair and merges the two whose merging
// costs the fewest stored keys, until one probe is left.
void choose_of_both(Class& entries, std::uint32_t most) {
    struct Group {
        Lengths to;
        std::vector<Lengths> members;
    };
    std::vector<Group> groups;
    for (const auto& [lengths, count] : entries.counts) groups.push_back({lengths, {lengths}});
    const auto cost = [&](const Group& group, const Lengths& to) {
        double sum = 0;
        for (const Lengths& member : group.members) sum += entries.counts.at(member) * copies(member, to);
        return sum;
    };
    std::vector<std::pair<double, std::map<Lengths, Lengths>>> found; // from many probes to one
    for (;;) {
        if (groups.size() <= most) {
            std::map<Lengths, Lengths> target;
            for (const Group& group : groups)
                for (const Lengths& member : group.members) target[member] = group.to;
            found.emplace_back(keys_of(entries, target), std::move(target));
        }
        if (groups.size() == 1) break;
        double least = std::numeric_limits<double>::infinity();
        std::pair<std::size_t, std::size_t> merged{0, 1};
        std::vector<double> now(groups.size());
        for (std::size_t i = 0; i < groups.size(); i++) now[i] = cost(groups[i], groups[i].to);
        for (std::size_t i = 0; i < groups.size(); i++)
            for (std::size_t j = i + 1; j < groups.size(); j++) {
                const Lengths to = longer(groups[i].to, groups[j].to);
                const double more =
                    now[i] * copies(groups[i].to, to) + now[j] * copies(groups[j].to, to) - now[i] - now[j];
                if (more < least) {
                    least = more;
                    merged = {i, j};
                }
            }
        Group& into = groups[merged.first];
        Group& from = groups[merged.second];
        into.to = longer(into.to, from.to);
        into.members.insert(into.members.end(), from.members.begin(), from.members.end());
        groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(merged.second));
    }
    std::reverse(found.begin(), found.end());
    for (auto& [keys, target] : found) {
        entries.keys.push_back(keys);
        entries.targets.push_back(std::move(target));
    }
}

void choose(Class& entries, std::uint32_t most) {
    const Lengths& first = entries.counts.begin()->first;
    const auto all = [&](auto part) {
        return std::all_of(entries.counts.begin(), entries.counts.end(),
                           [&](const auto& entry) { return entry.first.*part == first.*part; });
    };
    if (all(&Lengths::second)) return choose_of_one(entries, true, most);
    if (all(&Lengths::first)) return choose_of_one(entries, false, most);
    choose_of_both(entries, most);
}

// The probes of one family.
struct FamilyPlan {
    std::map<std::uint32_t, Class> classes{}; // by the fields that matter
    // How many probes each class gets, in the order of `classes`.
    std::vector<std::size_t> taken{};
    double keys = 0;

    [[nodiscard]] std::size_t probes() const {
        std::size_t sum = 0;
        for (const std::size_t count : taken) sum += count;
        return sum;
    }
};

std::string probes_text(const FamilyPlan& plan, int family) {
    std::string text;
    for (const auto& [fields, entries] : plan.classes)
        for (const auto& [lengths, count] : entries.counts) {
            sieve_probe probe{};
            probe.source = static_cast<__u8>(lengths.first);
            probe.destination = static_cast<__u8>(lengths.second);
            probe.transport = static_cast<__u8>(fields & SIEVE_FIELD_TRANSPORT);
            if (text.size() > 300) return text + ", ...";
            text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", std::llround(count),
                                describe_probe(probe, family));
        }
    return text.empty() ? "none" : text;
}

// Gives each class some of the probes: the fewest in all that keep the filter cheap, else those that make the
// fewest stored keys. False if there are more classes than probes.
bool share_probes(FamilyPlan& plan, std::uint32_t most) {
    plan.taken.assign(plan.classes.size(), 1);
    plan.keys = 0;
    if (plan.classes.empty()) return true;
    if (plan.classes.size() > most) return false;
    // best[t]: the fewest keys with t probes for the classes so far, and how many each of them takes.
    struct Best {
        double keys = std::numeric_limits<double>::infinity();
        std::vector<std::size_t> taken{};
    };
    std::vector<Best> best(most + 1);
    best[0].keys = 0;
    for (const auto& [fields, entries] : plan.classes) {
        std::vector<Best> next(most + 1);
        for (std::size_t used = 0; used <= most; used++) {
            if (!std::isfinite(best[used].keys)) continue;
            for (std::size_t k = 1; k <= entries.keys.size() && used + k <= most; k++) {
                const double keys = best[used].keys + entries.keys[k - 1];
                if (keys >= next[used + k].keys) continue;
                next[used + k] = {keys, best[used].taken};
                next[used + k].taken.push_back(k);
            }
        }
        best = std::move(next);
    }
    const Best* chosen = nullptr;
    for (const Best& candidate : best) {
        if (!std::isfinite(candidate.keys)) continue;
        if (chosen != nullptr &&
            (chosen->keys <= static_cast<double>(cheap_keys) || candidate.keys >= chosen->keys))
            continue;
        chosen = &candidate;
    }
    plan.taken = chosen->taken;
    plan.keys = chosen->keys;
    return true;
}

// Calls visit(line, fields, family) for each prefix that the list holds; the family is -1 for an entry that
// leaves the addresses open, or has none.
using Visit = std::function<void(const sieve_exception& line, std::uint32_t fields, int family)>;

void for_each_entry(const KeySet& keys, const std::vector<KeyRange>& ranges, const Visit& visit) {
    const std::uint32_t all = keys.fields();
    const bool addressed = (all & SIEVE_FIELD_ADDRESSES) != 0;
    sieve_exception line{};
    line.bits.source = (all & SIEVE_FIELD_SRC) != 0 ? address_bits : 0;
    line.bits.destination = (all & SIEVE_FIELD_DST) != 0 ? address_bits : 0;
    line.bits.transport = static_cast<__u8>(all & SIEVE_FIELD_TRANSPORT);
    for (std::size_t i = 0; i < keys.size(); i++) {
        line.key = keys.at(i);
        visit(line, all, addressed ? sieve_key_family(&line.key, all) : -1);
    }
    for (const KeyRange& range : ranges) {
        int family = -1;
        if ((range.fields & SIEVE_FIELD_SRC) != 0)
            family = family_of(range.source);
        else if ((range.fields & SIEVE_FIELD_DST) != 0)
            family = family_of(range.destination);
        for_each_prefix(range, [&](const sieve_exception& prefix) { visit(prefix, range.fields, family); });
    }
}

// Adds the stored keys of a prefix under a probe of at least its lengths.
void expand(const sieve_exception& line, const Lengths& to, std::vector<sieve_key>& stored) {
    const std::uint32_t probe = sieve_pack_probe(to.first, to.second, line.bits.transport);
    const auto put = [](__u64* words, uint128 address) {
        words[0] = static_cast<std::uint64_t>(address >> 64);
        words[1] = static_cast<std::uint64_t>(address);
    };
    const uint128 source = address_number(line.key.word[0], line.key.word[1]);
    const uint128 destination = address_number(line.key.word[2], line.key.word[3]);
    const auto at = [](uint128 first, std::uint64_t i, std::uint32_t length) {
        return length == 0 ? first : first + (static_cast<uint128>(i) << (address_bits - length));
    };
    for (std::uint64_t s = 0; s < std::uint64_t{1} << (to.first - line.bits.source); s++)
        for (std::uint64_t d = 0; d < std::uint64_t{1} << (to.second - line.bits.destination); d++) {
            sieve_key key = line.key;
            put(key.word, at(source, s, to.first));
            put(key.word + 2, at(destination, d, to.second));
            sieve_store_key(&key, probe, &stored.emplace_back());
        }
}

} // namespace

tl::unexpected<Error> too_many_stored(double keys, const PrefixLimits& limits, const std::string& ipv4,
                                      const std::string& ipv6) {
    return bad_input(fmt::format("the prefixes do not fit: expanded to at most {} for each family "
                                 "they are {:.3g} keys, the "
                                 "limit is {}; allow more with --max-probes (at most {}) or --max-keys, "
                                 "or give fewer lengths. The "
                                 "entries are, IPv4: {}; IPv6: {}",
                                 counted(limits.max_probes, "probe"), keys, limits.max_keys, SIEVE_MAX_PROBES,
                                 ipv4, ipv6));
}

std::string describe_probe(const sieve_probe& probe, int family) {
    const std::uint32_t shift = family == SIEVE_FAMILY_V4 ? v4_shift : 0;
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : " ") + part; };
    const auto add_address = [&](const char* name, std::uint32_t length) {
        if (length == address_bits) return add(name);
        if (length > 0) add(fmt::format("{}/{}", name, length - shift));
    };
    add_address("src", probe.source);
    add_address("dst", probe.destination);
    if ((probe.transport & SIEVE_FIELD_SPORT) != 0) add("sport");
    if ((probe.transport & SIEVE_FIELD_DPORT) != 0) add("dport");
    if ((probe.transport & SIEVE_FIELD_PROTO) != 0) add("proto");
    return text.empty() ? "any" : text;
}

Result<KeyPlan> plan_keys(const KeySet& keys, const std::vector<KeyRange>& ranges,
                          const PrefixLimits& limits) {
    KeyPlan plan;
    plan.fields = keys.fields();
    FamilyPlan families[SIEVE_FAMILIES];
    for_each_entry(keys, ranges, [&](const sieve_exception& line, std::uint32_t fields, int family) {
        for (int f = 0; f < SIEVE_FAMILIES; f++)
            if (family < 0 || f == family)
                families[f].classes[fields].counts[{line.bits.source, line.bits.destination}]++;
    });
    double total = 0;
    for (int family = 0; family < SIEVE_FAMILIES; family++) {
        FamilyPlan& part = families[family];
        for (auto& [fields, entries] : part.classes) {
            entries.fields = fields;
            choose(entries, limits.max_probes);
        }
        if (!share_probes(part, limits.max_probes))
            return bad_input(fmt::format(
                "the entries leave fields open in {} ways, each of which needs a probe of its own, and {} "
                "allowed; allow more with --max-probes (at most {}). The entries are: {}",
                part.classes.size(), counted(limits.max_probes, "probe is", "probes are"), SIEVE_MAX_PROBES,
                probes_text(part, family)));
        total += part.keys;
        std::size_t i = 0;
        std::vector<sieve_probe> probes;
        for (const auto& [fields, entries] : part.classes) {
            std::vector<Lengths> used;
            for (const auto& [from, to] : entries.targets[part.taken[i] - 1]) used.push_back(to);
            std::sort(used.begin(), used.end());
            used.erase(std::unique(used.begin(), used.end()), used.end());
            for (const Lengths& lengths : used) {
                sieve_probe probe{};
                probe.source = static_cast<__u8>(lengths.first);
                probe.destination = static_cast<__u8>(lengths.second);
                probe.transport = static_cast<__u8>(fields & SIEVE_FIELD_TRANSPORT);
                probes.push_back(probe);
            }
            i++;
        }
        plan.probes.count[family] = static_cast<__u8>(probes.size());
        for (std::size_t p = 0; p < probes.size(); p++) {
            plan.probes.length[family][p] = probes[p].source;
            plan.probes.destination[family][p] = probes[p].destination;
            plan.probes.transport[family][p] = probes[p].transport;
        }
    }
    if (total > static_cast<double>(limits.max_keys))
        return too_many_stored(total, limits, probes_text(families[0], 0), probes_text(families[1], 1));
    plan.stored.reserve(static_cast<std::size_t>(total));
    for_each_entry(keys, ranges, [&](const sieve_exception& line, std::uint32_t fields, int family) {
        const FamilyPlan& part = families[std::max(family, 0)];
        const auto found = part.classes.find(fields);
        const auto index = static_cast<std::size_t>(std::distance(part.classes.begin(), found));
        const auto& target = found->second.targets[part.taken[index] - 1];
        expand(line, target.at({line.bits.source, line.bits.destination}), plan.stored);
    });
    plan.expanded = plan.stored.size();
    sort_in_parallel(plan.stored.data(), plan.stored.data() + plan.stored.size(), key_order);
    plan.stored.erase(std::unique(plan.stored.begin(), plan.stored.end(), same_key), plan.stored.end());
    return plan;
}

bool is_member(const KeyPlan& plan, const sieve_key& key) {
    const int family = sieve_key_family(&key, plan.fields);
    for (int i = 0; i < plan.probes.count[family]; i++) {
        sieve_key stored;
        sieve_store_key(&key,
                        sieve_pack_probe(plan.probes.length[family][i], plan.probes.destination[family][i],
                                         plan.probes.transport[family][i]),
                        &stored);
        if (std::binary_search(plan.stored.begin(), plan.stored.end(), stored, key_order)) return true;
    }
    return false;
}

} // namespace sieve
