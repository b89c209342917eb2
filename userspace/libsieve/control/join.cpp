// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/join.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "libsieve/build/exceptions.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/image/exceptions.hpp"

namespace sieve::control {

namespace {

// A short list's filter may have a far lower rate. It is not worth more than 32 bits for each key of all
// sets.
constexpr double lowest_rate = 1e-9;

// Each further try takes as long as the first.
constexpr double tries_wanted = 2;

// What exceptions and spared keys ask a joint filter.
class Questions {
  public:
    Questions(std::span<const Joinable> sets, std::span<const sieve_key> spared)
        : sets_(sets), spared_(spared), single_keys_{} {
        single_keys_.fields = static_cast<__u8>(sets.front().keys->fields());
    }

    // How many of them name a set by mistake at the rate of one set.
    [[nodiscard]] double count() const {
        double count = static_cast<double>(spared_.size() * sets_.size());
        for (const Joinable& set : sets_)
            for (const sieve_exception& exception : set.exceptions)
                count += count_questions(exception, single_keys_, no_probes_);
        return count;
    }

    [[nodiscard]] bool answered_well(const JointFilter& filter) const {
        return std::ranges::all_of(spared_,
                                   [&](const sieve_key& key) {
                                       const std::optional<std::uint32_t> set = filter.find(key);
                                       return !set || holds(*sets_[*set].keys, key);
                                   }) &&
               names_no_exception(filter);
    }

  private:
    static bool holds(const KeySet& keys, const sieve_key& key) {
        for (std::size_t i = 0; i < keys.size(); i++) {
            const sieve_key one = keys.at(i);
            if (std::memcmp(one.word, key.word, sizeof(key.word)) == 0) return true;
        }
        return false;
    }

    [[nodiscard]] bool names_no_exception(const JointFilter& filter) const {
        for (std::size_t set = 0; set < sets_.size(); set++)
            for (const sieve_exception& exception : sets_[set].exceptions)
                if (!for_each_question(exception, single_keys_, no_probes_,
                                       [&](const sieve_key& key, const sieve_probe&) {
                                           return filter.find(key) != static_cast<std::uint32_t>(set);
                                       }))
                    return false;
        return true;
    }

    std::span<const Joinable> sets_;
    std::span<const sieve_key> spared_;
    sieve_lookup single_keys_; // the header of their filters, as far as it matters
    sieve_probes no_probes_{};
};

Result<JointFilter> build(std::span<const Joinable> sets, std::span<const sieve_key> spared,
                          const Observer& observer) {
    double rate = 1;
    std::vector<const KeySet*> keys;
    for (const Joinable& set : sets) {
        rate = std::min(rate, set.rate);
        keys.push_back(set.keys);
    }
    const Questions questions(sets, spared);
    if (const double count = questions.count(); count > 0)
        rate = std::min(rate, rate_for_tries(static_cast<std::uint64_t>(count), tries_wanted));
    for (std::uint32_t tries = 1; tries <= most_tries; tries++) {
        SIEVE_ASSIGN(JointFilter filter,
                     JointFilter::build(keys,
                                        {.fpr = std::max(rate, lowest_rate), .bits_per_key = {}, .seed = {}},
                                        observer.progress));
        if (!questions.answered_well(filter)) continue;
        if (tries > 1)
            observer.remark(fmt::format("{} joint filters were built until none named a set for an exception "
                                        "or for an address that this host lives by",
                                        tries));
        return filter;
    }
    return bad_input(fmt::format("refused: each of {} joint filters named a set for an exception or for an "
                                 "address that this host lives by, which contradicts the predicted rate; "
                                 "report it if it happens twice",
                                 most_tries));
}

} // namespace

std::string cannot_be_joined(const sieve_lookup& lookup, bool verified) {
    const FilterKind& kind = kind_of(lookup);
    if (verified) return "its matches are verified";
    if (kind.exact() != nullptr) return fmt::format("kind {} is exact", kind.facts().name);
    if (kind.facts().changes_live)
        return fmt::format("keys come to and go from a filter of kind {}", kind.facts().name);
    if (lookup.probes != 0) return "it has prefixes";
    return {};
}

std::uint32_t fields_to_join(std::span<const std::uint32_t> fields) {
    const auto count = [&](std::uint32_t one) { return std::ranges::count(fields, one); };
    std::uint32_t most = 0;
    for (const std::uint32_t one : fields)
        if (count(one) > count(most)) most = one;
    return most;
}

std::vector<Joinable> largest_group(std::vector<Joinable> sets, const Observer& observer) {
    std::vector<std::uint32_t> all;
    for (const Joinable& set : sets) all.push_back(set.keys->fields());
    const std::uint32_t fields = fields_to_join(all);
    std::erase_if(sets, [&](const Joinable& set) {
        if (set.keys->fields() == fields) return false;
        observer.remark(fmt::format("set {} is not joined: more sets have other fields", set.name));
        return true;
    });
    if (sets.size() < SIEVE_JOINT_LEAST_SETS) {
        observer.remark("nothing is joined: that takes two sets of the same fields");
        sets.clear();
    }
    return sets;
}

Result<Joined> make_joint(Kernel& kernel, kernel::HookPoint point, std::span<const Joinable> sets,
                          std::span<const sieve_key> spared, const Observer& observer) {
    SIEVE_ASSIGN(JointFilter filter, build(sets, spared, observer));
    std::vector<kernel::JoinedSet> joined;
    std::vector<std::string> names;
    for (const Joinable& set : sets) {
        joined.push_back({.name = set.name, .filter_fd = set.filter_fd, .keys = set.keys});
        names.push_back(set.name);
    }
    SIEVE_ASSIGN(SetMaps maps, kernel.bring_in_joint(point, filter, joined));
    return Joined{.filter = std::move(filter), .maps = std::move(maps), .sets = std::move(names)};
}

} // namespace sieve::control
