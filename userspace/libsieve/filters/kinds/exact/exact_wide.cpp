// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/exact/exact_wide.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <sieve/exact.h>
#include <sieve/records.h>

#include "libsieve/filters/build_records.hpp"
#include "libsieve/filters/kinds/exact/exact_changes.hpp"
#include "libsieve/filters/kinds/exact/exact_listing.hpp"
#include "libsieve/filters/records.hpp"
#include "libsieve/keys/key_order.hpp"
#include "libsieve/util/parallel/parallel.hpp"
#include "libsieve/util/results/unfinished.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve::exact {

namespace {

// A view to read through.
Records records_in(std::span<const sieve_line> lines) {
    return Records({const_cast<sieve_line*>(lines.data()), lines.size()});
}

std::uint32_t words_of(const sieve_lookup& lookup) {
    return sieve_record_words_of(lookup.fields, 0);
}

// The lines that a pair of rows takes: one of tags, and their records.
std::uint64_t lines_of_pair(const sieve_lookup& lookup) {
    constexpr std::uint64_t groups = 2 * SIEVE_RECORDS_IN_TAGGED_ROW / SIEVE_RECORDS_IN_GROUP;
    return 1 + groups * sieve_records_group_lines(words_of(lookup));
}

std::uint64_t rows_of(const sieve_lookup& lookup) {
    return 2 * ((lookup.buckets - std::uint64_t{SIEVE_RECORDS_FIRST_ROW}) / lines_of_pair(lookup));
}

// What is wrong with the lines' own header, of which line 0 says what it has to be.
std::string lines_fault(const sieve_lookup& lookup, std::span<const sieve_line> lines, MayChange may_change) {
    if (lines.size() != lookup.buckets)
        return fmt::format("{} lines of a filter, and its header says {}", lines.size(), lookup.buckets);
    if (std::string fault = Records::fault(lines, may_change); !fault.empty())
        return fmt::format("the filter's first line: {}", fault);
    const sieve_records& header = records_in(lines).header();
    if (header.fields != lookup.fields || header.prefixes != 0 || header.tagged == 0)
        return "the filter's first line: other keys than its header says";
    if (header.most > std::uint64_t{header.rows} * SIEVE_RECORDS_IN_TAGGED_ROW)
        return fmt::format("the filter's first line: room for {} keys in {} rows", header.most, header.rows);
    return {};
}

HashSum sum_of(const sieve_lookup& lookup, const sieve_key& key) {
    const sieve_hash hash = sieve_hash_key(&key, lookup.hash_key, lookup.fields);
    return {.locate = hash.locate, .test = hash.test};
}

std::string place_text(std::uint32_t place) {
    return fmt::format("row {}, place {}", place / SIEVE_RECORDS_IN_TAGGED_ROW,
                       place % SIEVE_RECORDS_IN_TAGGED_ROW);
}

// What is wrong with a place that has a tag, or a mark; empty if lookups find its key there.
std::string place_fault(const Records& records, std::uint32_t place, const sieve_key& key) {
    const std::uint32_t tag = records.tag(place);
    if ((tag & SIEVE_RECORDS_MARK) != 0) return place_text(place) + ": a mark, which only changes leave";
    sieve_key own;
    sieve_exact_of_key(&key, records.header().fields, &own);
    if (!same_key(own, key)) return place_text(place) + ": a key with bits in a field that the set lacks";
    const sieve_record_place at = sieve_records_locate(&records.header(), &key);
    const std::uint32_t row = place / SIEVE_RECORDS_IN_TAGGED_ROW;
    if (tag != at.tag || (row != at.first && row != at.second))
        return place_text(place) + ": a key that belongs elsewhere";
    const std::optional<std::uint32_t> found = records.find(key);
    if (!found) return place_text(place) + ": a key that no lookup finds, for others have its tag";
    if (*found != place) return place_text(place) + ": a second copy of a key";
    return {};
}

class WideFilter final : public ExactFilter {
  public:
    WideFilter(std::uint32_t fields, std::span<const __u64, SIEVE_HASH_KEY_WORDS> secret,
               HugeArray<sieve_line> lines)
        : lines_(std::move(lines)) {
        lookup_.fields = static_cast<__u8>(fields);
        lookup_.kind = SIEVE_KIND_EXACT;
        lookup_.choices = SIEVE_EXACT_CHOICES;
        lookup_.buckets = static_cast<__u32>(lines_.size());
        std::copy(secret.begin(), secret.end(), lookup_.hash_key);
        const Records records({lines_.data(), lines_.size()});
        for (std::uint32_t place = 0; place < records.places(); place++) {
            if (!records.is_used(place)) continue;
            count_.keys++;
            count_.sum += sum_of(lookup_, records.key(place));
        }
    }

    [[nodiscard]] std::uint64_t keys() const override { return count_.keys; }
    [[nodiscard]] HashSum sum() const override { return count_.sum; }
    [[nodiscard]] std::uint64_t lines() const override { return lines_.size(); }

    [[nodiscard]] Status describe(sieve_lookup& lookup) const override {
        const __u32 magic = lookup.magic;
        lookup = lookup_;
        lookup.magic = magic;
        return {};
    }

    void fill(std::span<sieve_line> lines) const override {
        std::copy(lines_.begin(), lines_.end(), lines.begin());
    }

  private:
    sieve_lookup lookup_{};
    HugeArray<sieve_line> lines_;
    KeySum count_{};
};

// No key moves (sieve/records.h), so that a key is in with one store and out with one. What is left to wait
// for is that no lookup reads the record of a key that went any more.
class WideTable final : public ChangeableTable {
  public:
    WideTable(const sieve_lookup& lookup, sieve_file& file, std::span<sieve_line> lines)
        : lookup_(lookup), file_(file), lines_(lines), records_(lines) {}

    [[nodiscard]] bool unsettled() const override { return records_.header().unsettled != 0; }

    [[nodiscard]] Status settle(const WaitForLookups& wait) override {
        publish(records_.header().unsettled, SIEVE_EXACT_CHANGING);
        SIEVE_TRY(wait());
        records_.use_left();
        publish(records_.header().unsettled, 0); // what follows reads a table as others are
        auto sum = add_up_wide(lookup_, lines_);
        publish(records_.header().unsettled, SIEVE_EXACT_CHANGING);
        SIEVE_TRY(sum);
        publish(file_.keys, sum->keys);
        publish(file_.key_sum[0], sum->sum.locate);
        publish(file_.key_sum[1], sum->sum.test);
        publish(file_.changes, file_.changes + 1); // nobody knows how many there were
        publish(records_.header().unsettled, 0);
        return {};
    }

    // A record has no room for an end.
    [[nodiscard]] std::optional<std::uint64_t> end_of(const sieve_key& key) const override {
        if (!records_.find(key)) return std::nullopt;
        return never_ends;
    }
    [[nodiscard]] bool can_state(std::uint64_t) const override { return false; }
    [[nodiscard]] std::uint64_t delay_of_ends() const override { return 0; }
    [[nodiscard]] Status set_end(const sieve_key&, std::uint64_t end) override {
        if (end != never_ends) return invalid_request("an end of a key of several fields");
        return {};
    }
    [[nodiscard]] Result<std::uint64_t> sweep(const WaitForLookups&) override { return std::uint64_t{0}; }

    void mark(const sieve_key&) override {} // there are none
    [[nodiscard]] bool has_room_for(const KeySet& keys) const override {
        return file_.keys + keys.size() <= records_.header().most;
    }

    [[nodiscard]] Result<TableChangeResult> change(const KeySet& removed, const KeySet& added,
                                                   const WaitForLookups& wait, std::uint64_t end) override {
        if (end != never_ends) return invalid_request("an end of a key of several fields");
        TableChangeResult change;
        HashSum sum;
        publish(records_.header().unsettled, SIEVE_EXACT_CHANGING);
        removed.for_each(0, removed.size(), [&](const sieve_key& key) {
            const std::optional<std::uint32_t> place = records_.find(key);
            if (!place) return;
            records_.remove(*place);
            left_.push_back(*place);
            change.removed++;
            sum -= sum_of(lookup_, key);
        });
        if (!left_.empty()) {
            if (const Status waited = wait(); !waited)
                return unfinished("some keys have been deleted, and the next change will settle the rest",
                                  waited.error());
            for (const std::uint32_t place : std::exchange(left_, {})) records_.write_tag(place, 0);
        }
        added.for_each(0, added.size(), [&](const sieve_key& key) {
            if (records_.add(key, false) != Records::Added::done) {
                change.full.push_back(key);
                return;
            }
            change.added++;
            sum += sum_of(lookup_, key);
        });
        publish(file_.keys, file_.keys + change.added - change.removed);
        publish(file_.key_sum[0], file_.key_sum[0] + sum.locate);
        publish(file_.key_sum[1], file_.key_sum[1] + sum.test);
        publish(file_.changes, file_.changes + change.added + change.removed);
        publish(records_.header().unsettled, 0);
        return change;
    }

  private:
    const sieve_lookup& lookup_;
    sieve_file& file_;
    std::span<sieve_line> lines_;
    Records records_;
    std::vector<std::uint32_t> left_; // places whose keys went
};

} // namespace

std::string wide_fault(const sieve_lookup& lookup) {
    if (lookup.probes != 0 || lookup.hashes != 0 || lookup.alpha != 0 || lookup.shard_bits != 0)
        return "fields of other kinds in a header of kind exact";
    if (lookup.buckets < SIEVE_RECORDS_FIRST_ROW + lines_of_pair(lookup) ||
        (lookup.buckets - SIEVE_RECORDS_FIRST_ROW) % lines_of_pair(lookup) != 0)
        return fmt::format("{} of records, expected one and a multiple of {}",
                           counted(lookup.buckets, "line"), lines_of_pair(lookup));
    return {};
}

std::string wide_geometry(const sieve_lookup& lookup) {
    const std::uint32_t words = words_of(lookup);
    const std::uint32_t bytes = sieve_records_group_lines(words) * SIEVE_LINE_BYTES / SIEVE_RECORDS_IN_GROUP;
    return fmt::format("{} rows of {} tags, records of {} bytes", rows_of(lookup),
                       SIEVE_RECORDS_IN_TAGGED_ROW, bytes);
}

LinesTouched wide_lines_touched(const sieve_lookup& lookup) {
    return {.non_member = 2, .member = 2.0 + std::popcount(words_of(lookup))};
}

bool wide_holds(const sieve_lookup& lookup, const sieve_key& key, std::span<const sieve_line> filter) {
    if (!lines_fault(lookup, filter, MayChange::yes).empty()) return false;
    sieve_key own;
    sieve_exact_of_key(&key, lookup.fields, &own);
    return records_in(filter).find(own).has_value();
}

Result<std::unique_ptr<ExactFilter>> work_out_wide(const KeySet& keys, std::uint64_t room,
                                                   std::span<const __u64, SIEVE_HASH_KEY_WORDS> secret) {
    const RecordsOrder order{.fields = keys.fields(), .room = room};
    if (record_lines_for(keys.size(), order) > std::numeric_limits<std::uint32_t>::max() / SIEVE_LINE_WORDS)
        return invalid_request(
            fmt::format("{} keys are more than a filter of kind exact holds", keys.size()));
    std::vector<sieve_key> all;
    all.reserve(keys.size());
    keys.for_each(0, keys.size(), [&](const sieve_key& key) { all.push_back(key); });
    // The rows' secrets are not those of the sum, which many images may share.
    std::array<std::uint32_t, 2 * SIEVE_HASH_KEY_WORDS> halves{};
    std::memcpy(halves.data(), secret.data(), secret.size_bytes());
    std::seed_seq seed(halves.begin(), halves.end());
    std::mt19937_64 random(seed);
    SIEVE_ASSIGN(HugeArray<sieve_line> lines, build_records(all, order, random));
    return std::make_unique<WideFilter>(keys.fields(), secret, std::move(lines));
}

Result<KeySet> list_wide(const sieve_lookup& lookup, std::span<const sieve_line> filter) {
    if (const std::string fault = lines_fault(lookup, filter, MayChange::no); !fault.empty())
        return bad_input(fault);
    const Records records = records_in(filter);
    KeySet keys(lookup.fields);
    for (std::uint32_t place = 0; place < records.places(); place++) {
        if (records.tag(place) == 0) continue;
        const sieve_key key = records.key(place);
        if (const std::string fault = place_fault(records, place, key); !fault.empty())
            return bad_input(fault);
        keys.add(key);
    }
    return keys;
}

Result<KeySum> add_up_wide(const sieve_lookup& lookup, std::span<const sieve_line> filter) {
    if (const std::string fault = lines_fault(lookup, filter, MayChange::no); !fault.empty())
        return bad_input(fault);
    constexpr std::uint32_t portion = 1U << 12; // places
    const Records records = records_in(filter);
    const auto add_up = [&](std::size_t i) {
        PortionSum one;
        const auto first = static_cast<std::uint32_t>(i * portion);
        const std::uint32_t last = std::min(records.places() - first, portion) + first;
        for (std::uint32_t place = first; place < last; place++) {
            if (records.tag(place) == 0) continue;
            const sieve_key key = records.key(place);
            one.fault = place_fault(records, place, key);
            if (!one.fault.empty()) break;
            one.sum.keys++;
            one.sum.sum += sum_of(lookup, key);
        }
        return one;
    };
    SIEVE_ASSIGN(const KeySum all,
                 sum_of_portions((records.places() + std::uint64_t{portion} - 1) / portion, add_up));
    if (all.keys > records.header().most)
        return bad_input(fmt::format("{} keys, and the filter's first line says room for {}", all.keys,
                                     records.header().most));
    return all;
}

Result<std::unique_ptr<ChangeableTable>> open_wide(const sieve_lookup& lookup, sieve_file& file,
                                                   std::span<sieve_line> lines) {
    if (std::string fault = wide_fault(lookup); !fault.empty()) return bad_input(fault);
    if (std::string fault = lines_fault(lookup, lines, MayChange::yes); !fault.empty())
        return bad_input(fault);
    return std::make_unique<WideTable>(lookup, file, lines);
}

} // namespace sieve::exact
