// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/spilled_keys.hpp"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "libsieve/build/default_kind.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/util/parallel/huge_array.hpp"
#include "libsieve/util/parallel/parallel.hpp"

namespace sieve {

namespace {

// While a feed is read, a quarter of the limit holds keys, an eighth their hashes, and an eighth what waits
// to be written. The rest is for what the reader parses.
constexpr std::uint64_t share_of_keys = 4;
constexpr std::uint64_t share_of_hashes = 8;

// What share of the keys on disk was placed. Called from any thread.
class Placing {
  public:
    Placing(std::uint64_t keys, const Progress& progress) : keys_(keys), progress_(progress) {}

    void add(const Result<std::uint32_t>& rounds, std::uint64_t keys) {
        const std::lock_guard lock(mutex_);
        placed_ += keys;
        if (rounds)
            rounds_ = std::max(rounds_, *rounds);
        else
            failed_ = rounds.error();
        if (progress_) progress_("placing", static_cast<double>(placed_) / static_cast<double>(keys_));
    }
    [[nodiscard]] Result<std::uint32_t> rounds() const {
        if (failed_) return tl::unexpected(*failed_);
        return rounds_;
    }

  private:
    std::mutex mutex_;
    std::uint64_t keys_;
    const Progress& progress_;
    std::uint64_t placed_ = 0;
    std::uint32_t rounds_ = 0;
    std::optional<Error> failed_;
};

} // namespace

std::size_t keys_at_once(std::uint32_t fields, std::uint64_t memory_limit) {
    const bool small = sieve_is_one_address(fields);
    return memory_limit / share_of_keys / (small ? 2 * sizeof(std::uint64_t) : sizeof(sieve_key));
}

Result<SpilledKeys> SpilledKeys::create(std::uint32_t fields, const BuildOptions& options,
                                        const Exceptions& exceptions) {
    const std::uint64_t limit = options.memory_limit.value_or(0);
    const KindFacts& facts =
        options.kinds->of(chosen_kind(options, {.fields = fields, .spilled = true}).kind).facts();
    if (!facts.has_shards)
        return invalid_request(fmt::format(
            "the list takes more memory than the limit of {} bytes allows, and a filter of kind {} needs all "
            "of its keys at once, unlike kind {}",
            limit, facts.name, options.kinds->names([](const KindFacts& f) { return f.has_shards; })));
    SIEVE_ASSIGN(const BuildSecret secret, draw_build_secret(options.seed));
    SIEVE_ASSIGN(HashFile hashes, HashFile::create(limit / share_of_hashes));
    std::optional<KeyFile> keys;
    if (!exceptions.lines.empty() || (!options.seed && !exceptions.spared.empty())) {
        SIEVE_ASSIGN(keys, KeyFile::create(fields));
    }
    return SpilledKeys(fields, limit, secret, std::move(hashes), std::move(keys));
}

SpilledKeys::SpilledKeys(std::uint32_t fields, std::uint64_t limit, const BuildSecret& secret,
                         HashFile hashes, std::optional<KeyFile> keys)
    : fields_(fields), limit_(limit), secret_(secret), hashes_(std::move(hashes)), witnesses_(secret),
      keys_(std::move(keys)) {}

Status SpilledKeys::add(const KeySet& keys) {
    entries_ += keys.size();
    if (keys_) SIEVE_TRY(keys_->append(keys));
    return hash(keys);
}

Status SpilledKeys::hash_again(const BuildSecret& secret) {
    if (!keys_) return invalid_request("the keys were not kept, so they cannot be hashed again");
    secret_ = secret;
    witnesses_ = WitnessDraw(secret);
    SIEVE_ASSIGN(hashes_, HashFile::create(limit_ / share_of_hashes));
    return keys_->for_each([&](const KeySet& keys) { return hash(keys); });
}

Status SpilledKeys::hash(const KeySet& keys) {
    constexpr std::size_t portion_keys = 4096;
    witnesses_.add(keys);
    const std::size_t most =
        std::max<std::size_t>(portion_keys, limit_ / share_of_hashes / sizeof(sieve_hash));
    HugeArray<sieve_hash> hashes(std::min(most, keys.size()));
    for (std::size_t first = 0; first < keys.size(); first += most) {
        const std::size_t count = std::min(most, keys.size() - first);
        for_each_index((count + portion_keys - 1) / portion_keys, [&](std::size_t portion) {
            for (std::size_t i = portion * portion_keys; i < std::min(count, (portion + 1) * portion_keys);
                 i++) {
                const sieve_key key = keys.at(first + i);
                hashes[i] = sieve_hash_key(&key, secret_.hash_key.data(), fields_);
            }
        });
        SIEVE_TRY(hashes_.append({hashes.data(), count}));
    }
    return {};
}

Status SpilledKeys::sort() {
    return hashes_.sort(limit_ / 2);
}

// A unit is as many parts of the file as make up whole shards, or as many shards as
// make up a part.
Result<std::uint32_t> SpilledKeys::place(const KindBuilder& builder, Image& image, std::uint64_t seed,
                                         const Progress& progress) const {
    const sieve_lookup& lookup = image.lookup();
    const unsigned unit_bits = std::min<unsigned>(lookup.shard_bits, HashFile::part_bits);
    const unsigned parts_of_unit = HashFile::part_bits - unit_bits;
    const unsigned shards_of_unit = lookup.shard_bits - unit_bits;
    // A line's counters and rate, or the loads of its buckets, take up to 200 bytes; a key 16, and up to 21
    // more while it is placed.
    const std::uint64_t most = hashes_.bytes_of_largest(parts_of_unit);
    const std::uint64_t unit_bytes =
        most + most / sizeof(sieve_hash) * 21 + (image.kind().lines(lookup) >> unit_bits) * 200;
    if (image.bytes() + unit_bytes > limit_)
        return invalid_request(fmt::format("a memory limit of {} bytes is too low for {} keys: their filter "
                                           "takes {} bytes, and placing them "
                                           "{} more",
                                           limit_, hashes_.size(), image.bytes(), unit_bytes));
    const ThreadLimit threads(std::clamp<std::uint64_t>((limit_ - image.bytes()) / unit_bytes, 1,
                                                        std::max(1U, std::thread::hardware_concurrency())));
    Placing placing(hashes_.size(), progress);
    for_each_index(std::size_t{1} << unit_bits, [&](std::size_t unit) {
        const auto keys = hashes_.read(unit << parts_of_unit, std::size_t{1} << parts_of_unit);
        if (!keys) return placing.add(tl::unexpected(keys.error()), 0);
        placing.add(builder.fill_shards({keys->data(), keys->size()}, lookup, image.filter(),
                                        static_cast<std::uint32_t>(unit << shards_of_unit),
                                        std::uint32_t{1} << shards_of_unit, seed),
                    keys->size());
    });
    return placing.rounds();
}

} // namespace sieve
