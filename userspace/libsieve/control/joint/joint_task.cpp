// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/joint/joint_task.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

#include <fmt/core.h>

#include "libsieve/build/exceptions.hpp"
#include "libsieve/filters/placement/distinct_hashes.hpp"
#include "libsieve/filters/placement/hash_sum.hpp"
#include "libsieve/image/exceptions.hpp"
#include "libsieve/image/header.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve::control {

namespace {

// A short list's filter may have a far lower rate. It is not worth more than 32 bits for each key of all
// sets.
constexpr double lowest_rate = 1e-9;

// Each further try takes as long as the first.
constexpr double tries_wanted = 2;

// The size of a filter follows from the prediction, which is met to within 1%.
constexpr double slack_of_prediction = 1.02;

// As for filters of sets (build/promise.hpp): how far a rate may lie above the prediction, and the number of
// keys from which filters do not differ too much from each other.
constexpr double slack_of_rate = 8;
constexpr std::uint64_t many_keys = 4096;

// What exceptions and spared keys ask a joint filter.
class Questions {
  public:
    explicit Questions(const JointTask& task) : task_(task), single_keys_{} {
        single_keys_.fields = static_cast<__u8>(task.sets.front().fields);
    }

    // How many of them name a set by mistake at the rate of one set.
    [[nodiscard]] double count() const {
        double count = static_cast<double>(task_.spared.size() * task_.sets.size());
        for (const JointSet& set : task_.sets)
            for (const sieve_exception& exception : set.exceptions)
                count += count_questions(exception, single_keys_, no_probes_);
        return count;
    }

    [[nodiscard]] bool answered_well(const JointFilter& filter, const Holds& holds) const {
        return std::ranges::all_of(task_.spared,
                                   [&](const sieve_key& key) {
                                       const std::optional<std::uint32_t> set = filter.find(key);
                                       return !set || holds(*set, key);
                                   }) &&
               names_no_exception(filter);
    }

  private:
    [[nodiscard]] bool names_no_exception(const JointFilter& filter) const {
        for (std::size_t set = 0; set < task_.sets.size(); set++)
            for (const sieve_exception& exception : task_.sets[set].exceptions)
                if (!for_each_question(exception, single_keys_, no_probes_,
                                       [&](const sieve_key& key, const sieve_probe&) {
                                           return filter.find(key) != static_cast<std::uint32_t>(set);
                                       }))
                    return false;
        return true;
    }

    const JointTask& task_;
    sieve_lookup single_keys_; // the header of their filters, as far as it matters
    sieve_probes no_probes_{};
};

bool contains(const KeySet& keys, const sieve_key& key) {
    for (std::size_t i = 0; i < keys.size(); i++) {
        const sieve_key one = keys.at(i);
        if (std::memcmp(one.word, key.word, sizeof(key.word)) == 0) return true;
    }
    return false;
}

// Whether the filter's own rate is far above the one that it was sized for. With 32 bits a key, one filter of
// a few thousand keys in two hundred or so has a line in which an equation without a bit (docs/xorsat.md)
// halves the fingerprints.
bool has_bad_luck(const JointFilter& filter, const JointTask& task) {
    return filter.keys() >= many_keys && filter.expected_rate() > task.rate() * slack_of_rate;
}

Status check_rate(const JointFilter& filter, const JointTask& task) {
    const double wanted = task.rate();
    if (filter.predicted_rate() > wanted * slack_of_prediction || has_bad_luck(filter, task))
        return bad_input(fmt::format("the joint filter has a rate of {:.3g}, predicted {:.3g}, for each set; "
                                     "expected at most {:.3g}",
                                     filter.expected_rate(), filter.predicted_rate(), wanted));
    return {};
}

Status check_members(const JointFilter& filter, const JointTask& task,
                     std::span<const std::span<const sieve_witness>> members, const Holds& holds) {
    for (std::size_t set = 0; set < task.sets.size(); set++)
        for (const sieve_witness& member : members[set]) {
            const std::optional<std::uint32_t> named = filter.find(member.key);
            if (named && (*named == set || (*named < set && holds(*named, member.key)))) continue;
            return bad_input(fmt::format("the joint filter names {} for a key of set {}",
                                         named ? "set " + task.sets[*named].name : "no set",
                                         task.sets[set].name));
        }
    return {};
}

} // namespace

JointSet joint_set_of(const std::string& name, const sieve_lookup& lookup, const sieve_file& file,
                      std::span<const sieve_exception> exceptions) {
    JointSet set{.name = name,
                 .fields = lookup.fields,
                 .rate = rate_from_bits(file.expected_fpr),
                 .keys = file.keys,
                 .key_sum = {file.key_sum[0], file.key_sum[1]},
                 .exceptions = {exceptions.begin(), exceptions.end()}};
    std::copy(std::begin(lookup.hash_key), std::end(lookup.hash_key), set.hash_key.begin());
    return set;
}

double JointTask::rate() const {
    double rate = 1;
    for (const JointSet& set : sets) rate = std::min(rate, set.rate);
    if (const double count = Questions(*this).count(); count > 0)
        rate = std::min(rate, rate_for_tries(static_cast<std::uint64_t>(count), tries_wanted));
    return std::max(rate, lowest_rate);
}

Status check_list(const JointSet& set, const KeySet& keys) {
    const auto other_list = [&](const std::string& why) {
        return bad_input(fmt::format("set {}: its list is not the one that its filter was built from: {}; "
                                     "swap the set first",
                                     set.name, why));
    };
    if (keys.fields() != set.fields) return other_list("the fields differ");
    const std::vector<__u64> hash_key(set.hash_key.begin(), set.hash_key.end());
    const HugeArray<sieve_hash> hashes = distinct_hashes(keys, hash_key.data());
    if (hashes.size() != set.keys)
        return other_list(
            fmt::format("it has {}, and the filter {}", counted(hashes.size(), "key"), set.keys));
    if (sum_of({hashes.data(), hashes.size()}) != HashSum{.locate = set.key_sum[0], .test = set.key_sum[1]})
        return other_list("it has as many keys as the filter, but not the same");
    return {};
}

Result<JointFilter> build_joint(const JointTask& task, std::span<const KeySet* const> lists,
                                const Observer& observer, std::optional<std::uint64_t> seed) {
    const Questions questions(task);
    const Holds holds = [&](std::size_t set, const sieve_key& key) { return contains(*lists[set], key); };
    // Addresses: a table, which errs for no key, so nothing has to be asked.
    if (sieve_is_one_address(task.sets.front().fields))
        return JointFilter::build(lists, {.fpr = {}, .bits_per_key = {}, .seed = seed, .exact = true},
                                  observer.progress);
    JointOptions options{.fpr = task.rate(), .bits_per_key = {}, .seed = seed};
    for (std::uint32_t tries = 1; tries <= most_tries; tries++) {
        if (seed) options.seed = *seed + tries - 1;
        SIEVE_ASSIGN(JointFilter filter, JointFilter::build(lists, options, observer.progress));
        if (has_bad_luck(filter, task) || !questions.answered_well(filter, holds)) continue;
        if (tries > 1)
            observer.remark(fmt::format("{} joint filters were built until one had the predicted rate and "
                                        "named no set for an exception or for an address that this host "
                                        "lives by",
                                        tries));
        return filter;
    }
    return bad_input(fmt::format("refused: each of {} joint filters named a set for an exception or for an "
                                 "address that this host lives by, or had a higher rate than predicted; "
                                 "report it if it happens twice",
                                 most_tries));
}

Status check_joint(const JointFilter& filter, const JointTask& task,
                   std::span<const std::span<const sieve_witness>> members, const Holds& holds) {
    std::uint64_t most = 0;
    std::uint64_t all = 0;
    for (const JointSet& set : task.sets) {
        most = std::max(most, set.keys);
        all += set.keys;
    }
    if (filter.sets() != task.sets.size() || filter.fields() != task.sets.front().fields ||
        filter.keys() < most || filter.keys() > all)
        return bad_input("the joint filter is one of other sets");
    SIEVE_TRY(check_rate(filter, task));
    SIEVE_TRY(check_members(filter, task, members, holds));
    if (Questions(task).answered_well(filter, holds)) return {};
    return bad_input("the joint filter names a set for an exception or for an address that this host lives "
                     "by");
}

} // namespace sieve::control
