// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/build_records.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <fmt/core.h>

#include "libsieve/filters/records.hpp"
#include "libsieve/keys/key_order.hpp"
#include "libsieve/util/parallel/parallel.hpp"
#include "libsieve/util/random/secret.hpp"

namespace sieve {

namespace {

// Two rows of four places carry 0.977, two of sixteen more than 0.999 if keys may move (Dietzfelbinger,
// Weidling, TCS 380, 2007). Keys that come later do not move. They find room as long as a row has a free
// place, and the fullest of n rows, each chosen as the emptier one of two, has log2 log2 n places more than
// the average (Berenbrink, Czumaj, Steger, Voecking, "Balanced Allocations: The Heavily Loaded Case", SIAM J.
// Comput. 35, 2006).
constexpr double plain_load = 0.965, tagged_load = 0.96, load_with_room = 0.75;
constexpr std::size_t most_steps = 1U << 14;
constexpr int draws_of_a_size = 8, most_sizes = 64;
constexpr std::uint32_t nobody = ~std::uint32_t{0};

// All of the header but its secrets.
sieve_records header_for(std::uint64_t keys, const RecordsOrder& order) {
    sieve_records header{};
    header.magic = SIEVE_RECORDS_MAGIC;
    header.words = static_cast<__u8>(sieve_record_words_of(order.fields, order.prefixes ? 1 : 0));
    header.fields = static_cast<__u8>(order.fields);
    header.prefixes = order.prefixes ? 1 : 0;
    const bool address = header.words == SIEVE_RECORD_SRC || header.words == SIEVE_RECORD_DST;
    header.tagged = address && keys > 0 && order.room == 0 ? 0 : 1;
    header.most = static_cast<__u32>(keys + order.room);
    const double load = header.tagged == 0 ? plain_load : order.room > 0 ? load_with_room : tagged_load;
    const int in_row = header.tagged == 0 ? SIEVE_RECORDS_IN_PLAIN_ROW : SIEVE_RECORDS_IN_TAGGED_ROW;
    const double rows = std::ceil(static_cast<double>(keys + order.room) / (load * in_row));
    header.rows = std::max<__u32>(1, static_cast<__u32>(rows));
    header.rows += header.tagged & header.rows;
    return header;
}

// Chooses the keys' places, and writes their tags, or plain keys. Places of a row fill from the first one on.
class Placement {
  public:
    Placement(Records records, std::span<const sieve_key> keys)
        : records_(records), keys_(keys), tagged_(records.header().tagged != 0), in_row_(records.in_row()),
          owner_(records.places()), used_(records.header().rows) {
        std::fill(owner_.begin(), owner_.end(), nobody);
    }

    // False: no room.
    bool place_all() {
        for (std::uint32_t key = 0; key < keys_.size(); key++)
            if (!place(key)) return false;
        return true;
    }

    // The key at a place, by its index, or `nobody`.
    [[nodiscard]] std::uint32_t owner(std::uint32_t place) const { return owner_[place]; }

    // Fills the places of plain rows that are left over.
    void fill() {
        for (std::uint32_t row = 0; row < used_.size(); row++)
            for (std::uint32_t i = used_[row]; i < in_row_; i++)
                records_.write(row * in_row_ + i, keys_[used_[row] == 0 ? 0 : owner_[row * in_row_]]);
    }

  private:
    struct Step {
        std::uint32_t row;
        std::int32_t before; // the step whose key would come here; -1: the new one would
        std::uint32_t place; // of the key that would leave that step's row
    };

    [[nodiscard]] sieve_record_place locate(std::uint32_t key) const {
        return sieve_records_locate(&records_.header(), &keys_[key]);
    }
    [[nodiscard]] bool may_have(std::uint32_t row, std::uint32_t tag) const {
        return !tagged_ || std::popcount(records_.with_tag(row, tag)) < SIEVE_RECORDS_SAME_TAG;
    }
    [[nodiscard]] bool is_there(const sieve_record_place& at, std::uint32_t key) const {
        if (!tagged_) {
            for (const std::uint32_t row : {at.first, at.second})
                for (std::uint32_t i = 0; i < used_[row]; i++)
                    if (same_key(records_.key(row * in_row_ + i), keys_[key])) return true;
            return false;
        }
        for (std::uint64_t places = records_.with_tag(at); places != 0; places &= places - 1)
            if (same_key(keys_[owner_[sieve_records_number(&at, places)]], keys_[key])) return true;
        return false;
    }
    void put(std::uint32_t place, std::uint32_t key, std::uint32_t tag) {
        owner_[place] = key;
        if (tagged_)
            records_.write_tag(place, tag);
        else
            records_.write(place, keys_[key]);
    }
    [[nodiscard]] std::uint32_t take(std::uint32_t row) { return row * in_row_ + used_[row]++; }

    bool place(std::uint32_t key) {
        const sieve_record_place at = locate(key);
        if (is_there(at, key)) return true;
        const bool first_is_emptier = used_[at.first] <= used_[at.second];
        for (const std::uint32_t row :
             {first_is_emptier ? at.first : at.second, first_is_emptier ? at.second : at.first})
            if (used_[row] < in_row_ && may_have(row, at.tag)) {
                put(take(row), key, at.tag);
                return true;
            }
        return make_room(at, key);
    }

    // Moves keys along the shortest chain that ends in a row with a free place.
    bool make_room(const sieve_record_place& at, std::uint32_t key) {
        steps_.clear();
        for (const std::uint32_t row : {at.first, at.second})
            if (may_have(row, at.tag)) steps_.push_back({row, -1, 0});
        for (std::size_t step = 0; step < steps_.size() && steps_.size() < most_steps; step++) {
            const std::uint32_t from = steps_[step].row;
            for (std::uint32_t i = 0; i < in_row_; i++) {
                const std::uint32_t place = from * in_row_ + i;
                if (owner_[place] == nobody) continue;
                const sieve_record_place moving = locate(owner_[place]);
                const std::uint32_t to = moving.first == from ? moving.second : moving.first;
                if (!may_have(to, moving.tag) || visited(static_cast<std::int32_t>(step), to)) continue;
                steps_.push_back({to, static_cast<std::int32_t>(step), place});
                if (used_[to] == in_row_) continue;
                move_along(key, at.tag);
                return true;
            }
        }
        return false;
    }

    [[nodiscard]] bool visited(std::int32_t step, std::uint32_t row) const {
        for (; step >= 0; step = steps_[static_cast<std::size_t>(step)].before)
            if (steps_[static_cast<std::size_t>(step)].row == row) return true;
        return false;
    }

    // From the last step back to the first: each key goes to the place that was left before.
    void move_along(std::uint32_t key, std::uint32_t tag) {
        Step to = steps_.back();
        std::uint32_t free = take(to.row);
        while (to.before >= 0) {
            put(free, owner_[to.place], tagged_ ? records_.tag(to.place) : 0);
            free = to.place;
            to = steps_[static_cast<std::size_t>(to.before)];
        }
        put(free, key, tag);
    }

    Records records_;
    std::span<const sieve_key> keys_;
    bool tagged_;
    std::uint32_t in_row_;
    HugeArray<std::uint32_t> owner_;
    std::vector<std::uint8_t> used_;
    std::vector<Step> steps_;
};

// Nothing: no room under these secrets.
std::optional<HugeArray<sieve_line>> attempt(std::span<const sieve_key> keys, const sieve_records& header) {
    HugeArray<sieve_line> lines(sieve_records_lines(&header));
    Records records({lines.data(), lines.size()});
    records.header() = header;
    Placement placement(records, keys);
    if (!placement.place_all()) return std::nullopt;
    if (header.tagged == 0) {
        placement.fill();
        return lines;
    }
    constexpr std::uint32_t portion = 256; // rows
    for_each_index((header.rows + portion - 1) / portion, [&](std::size_t p) {
        const auto first = static_cast<std::uint32_t>(p * portion * SIEVE_RECORDS_IN_TAGGED_ROW);
        const std::uint32_t last = std::min(records.places(), first + portion * SIEVE_RECORDS_IN_TAGGED_ROW);
        for (std::uint32_t place = first; place < last; place++)
            if (placement.owner(place) != nobody) records.write(place, keys[placement.owner(place)]);
    });
    return lines;
}

} // namespace

std::uint64_t record_lines_for(std::uint64_t keys, const RecordsOrder& order) {
    const sieve_records header = header_for(keys, order);
    return sieve_records_lines(&header);
}

Result<HugeArray<sieve_line>> build_records(std::span<const sieve_key> keys, const RecordsOrder& order) {
    std::array<std::uint64_t, SIEVE_HASH_KEY_WORDS> secret{};
    SIEVE_TRY(draw_secret(order.seed, secret));
    std::array<std::uint32_t, 2 * SIEVE_HASH_KEY_WORDS> halves{};
    std::memcpy(halves.data(), secret.data(), sizeof(halves));
    std::seed_seq seed(halves.begin(), halves.end());
    std::mt19937_64 random(seed);
    return build_records(keys, order, random);
}

Result<HugeArray<sieve_line>> build_records(std::span<const sieve_key> keys, const RecordsOrder& order,
                                            std::mt19937_64& random) {
    constexpr std::uint64_t most_keys = std::uint64_t{1} << 31;
    if (keys.size() + order.room > most_keys)
        return invalid_request(
            fmt::format("{} keys are more than an exact set holds", keys.size() + order.room));
    sieve_records header = header_for(keys.size(), order);
    for (std::size_t i = 0; i < keys.size(); i++)
        if (!Records({reinterpret_cast<sieve_line*>(&header), 1}).fits(keys[i]))
            return bad_input(fmt::format("key {} of an exact set has bits in a field that the set lacks", i));
    for (int size = 0; size < most_sizes; size++, header.rows += 2 + header.rows / 128 * 2)
        for (int draw = 0; draw < draws_of_a_size; draw++) {
            for (__u64& word : header.hash_key) word = random();
            std::optional<HugeArray<sieve_line>> lines = attempt(keys, header);
            if (lines) return std::move(*lines);
        }
    return bad_input(fmt::format("no room for {} keys in {} rows, which has practically no chance; "
                                 "report it if it happens twice",
                                 keys.size(), header.rows));
}

} // namespace sieve
