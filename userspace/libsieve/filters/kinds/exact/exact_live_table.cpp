// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/exact/exact_live_table.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "libsieve/filters/kinds/exact/exact_geometry.hpp"
#include "libsieve/filters/kinds/exact/exact_kind.hpp"
#include "libsieve/filters/kinds/exact/exact_table.hpp"
#include "libsieve/util/results/unfinished.hpp"
#include "libsieve/util/system/clock.hpp"

namespace sieve::exact {

namespace {

// A table is filled a little beyond what its builder aims at, so that one that was just built takes some keys
// before it grows. Refusals begin at loads that are 0.9% higher or more (docs/exact.md).
constexpr double beyond_builder = 1.005;

// Keys that find no room because all lanes near them are part of a chain get another try after that chain.
constexpr int most_rounds = 16;
// A table without room tells so by as many searches, not by one for each key.
constexpr std::size_t most_in_vain = 64;

std::span<__u64> words_of(const sieve_exact& exact, std::span<sieve_line> lines) {
    return {lines[SIEVE_EXACT_IPV4_LINE].word, exact.words};
}

double load_of(const sieve_exact& exact) {
    const std::span<const Shape> all = shapes();
    return std::find_if(all.begin(), all.end() - 1,
                        [&](const Shape& shape) { return shape.lanes >= 64U / lane_bits(exact); })
        ->load;
}

} // namespace

Result<std::unique_ptr<ChangeableTable>> LiveTable::open(const sieve_lookup& lookup, sieve_file& file,
                                                         std::span<sieve_line> lines) {
    if (std::string fault = exact::fault(*sieve_exact_of(&lookup)); !fault.empty()) return bad_input(fault);
    if (lines.size() != sieve_exact_of(&lookup)->lines)
        return bad_input("lines that are not as many as their header says");
    if (std::string fault = parts_fault(Parts::of(lookup, lines)); !fault.empty()) return bad_input(fault);
    if (Parts::of(lookup, lines).values().meaning == SIEVE_EXACT_SETS)
        return invalid_request("a table whose values name sets");
    return std::make_unique<LiveTable>(lookup, file, lines);
}

LiveTable::LiveTable(const sieve_lookup& lookup, sieve_file& file, std::span<sieve_line> lines)
    : lookup_(lookup), file_(file), lines_(lines), part_(reinterpret_cast<sieve_exact_ipv6&>(lines.front())),
      values_(Parts::of(lookup, lines).values()),
      ipv4_(*sieve_exact_of(&lookup), words_of(*sieve_exact_of(&lookup), lines)),
      ipv6_(part_, lines.subspan(sieve_exact_ipv6_line(sieve_exact_of(&lookup)), part_.lines),
            lines.subspan(sieve_exact_ipv6_line(sieve_exact_of(&lookup)) + part_.lines),
            sieve_exact_of(&lookup)->marks) {}

uint128 LiveTable::address_of(const sieve_key& key) const {
    return address_number(sieve_address_upper(&key, lookup_.fields),
                          sieve_address_lower(&key, lookup_.fields));
}

std::optional<std::uint32_t> LiveTable::value_of(uint128 address) const {
    return is_ipv4(address) ? ipv4_.value_of(static_cast<std::uint32_t>(address)) : ipv6_.value_of(address);
}

void LiveTable::set_value(uint128 address, std::uint32_t value) {
    if (is_ipv4(address))
        ipv4_.set_value(static_cast<std::uint32_t>(address), value);
    else
        ipv6_.set_value(address, value);
}

std::optional<std::uint64_t> LiveTable::end_of(const sieve_key& key) const {
    const std::optional<std::uint32_t> value = value_of(address_of(key));
    if (!value) return std::nullopt;
    if (values_.meaning == SIEVE_EXACT_PLAIN) return never_ends;
    const std::uint64_t now = program_now();
    const std::uint64_t end = time_of_end(values_, *value, now);
    if (end <= now) return std::nullopt;
    return end;
}

bool LiveTable::can_state(std::uint64_t life) const {
    const std::uint64_t unit = delay_of_ends();
    // A unit more: time goes on until the end is stated.
    return unit != 0 && exact::end_of(values_, program_now(), life + unit) &&
           unit <=
               (values_.bits == SIEVE_EXACT_MOST_VALUE_BITS ? longest_delay(life) : tolerated_delay(life));
}

Status LiveTable::set_end(const sieve_key& key, std::uint64_t end) {
    if (values_.meaning == SIEVE_EXACT_PLAIN && end == never_ends) return {};
    const std::optional<std::uint32_t> value =
        values_.meaning == SIEVE_EXACT_ENDS ? value_of_end(values_, end) : std::nullopt;
    if (!value) return invalid_request("an end that the table cannot state");
    set_value(address_of(key), *value);
    return {};
}

void LiveTable::mark(const sieve_key& key) {
    const uint128 address = address_of(key);
    if (is_ipv4(address))
        ipv4_.mark(static_cast<std::uint32_t>(address));
    else
        ipv6_.mark(address);
}

bool LiveTable::has_room_for(const KeySet& keys) const {
    const sieve_exact& exact = *sieve_exact_of(&lookup_);
    std::uint64_t ipv6 = 0;
    keys.for_each(keys.addresses().size(), keys.size(),
                  [&](const sieve_key& key) { ipv6 += is_ipv4(address_of(key)) ? 0 : 1; });
    const std::uint64_t ipv6_now = ipv6_.count();
    const std::uint64_t ipv4 =
        keys.size() - ipv6 + file_.keys - std::min<std::uint64_t>(file_.keys, ipv6_now);
    const double lanes = static_cast<double>(exact.words) * (64U / lane_bits(exact));
    if (static_cast<double>(ipv4) > beyond_builder * load_of(exact) * lanes) return false;
    if (ipv6 == 0 || part_.lines == 0) return ipv6 == 0;
    const double taken = static_cast<double>(ipv6 + ipv6_now) / beyond_builder;
    return ipv6_lines_for(static_cast<std::uint64_t>(taken)) <= part_.lines;
}

Status LiveTable::settle(const WaitForLookups& wait) {
    if (part_.unsettled == 0) publish(part_.unsettled, SIEVE_EXACT_CHANGING);
    SIEVE_TRY(wait());
    ipv4_.remove_copies();
    ipv6_.remove_copies();
    SIEVE_TRY(wait());
    ipv6_.clear_values();
    SIEVE_ASSIGN(const KeySum sum, sum_of_table(lookup_, lines_));
    publish(file_.keys, sum.keys);
    publish(file_.key_sum[0], sum.sum.locate);
    publish(file_.key_sum[1], sum.sum.test);
    publish(file_.changes, file_.changes + 1); // nobody knows how many there were
    publish(part_.unsettled, 0);
    return {};
}

// What has been done so far, whether or not more could be done.
void LiveTable::count(const TableChangeResult& change) {
    publish(file_.keys, file_.keys + change.added - revived_ - change.removed);
    publish(file_.key_sum[0], file_.key_sum[0] + sum_.locate);
    publish(file_.key_sum[1], file_.key_sum[1] + sum_.test);
    publish(file_.changes, file_.changes + change.added + change.removed);
}

Result<TableChangeResult> LiveTable::change(const KeySet& removed, const KeySet& added,
                                            const WaitForLookups& wait, std::uint64_t end) {
    std::optional<std::uint32_t> value = 0;
    if (values_.meaning == SIEVE_EXACT_ENDS) value = value_of_end(values_, end);
    if (!value || (values_.meaning == SIEVE_EXACT_PLAIN && end != never_ends))
        return invalid_request("an end that the table cannot state");
    TableChangeResult change;
    sum_ = {};
    revived_ = 0;
    publish(part_.unsettled, SIEVE_EXACT_CHANGING);
    Status done = remove(removed, wait, change);
    if (done) done = add(added, *value, wait, change);
    if (done && ipv6_.has_stale_values()) {
        done = wait();
        if (done) ipv6_.clear_values();
    }
    if (!done)
        return unfinished("some keys have been changed, and the next change will settle the rest",
                          done.error());
    count(change);
    publish(part_.unsettled, 0);
    return change;
}

Status LiveTable::remove(const KeySet& keys, const WaitForLookups& wait, TableChangeResult& change) {
    bool frees_places = false;
    keys.for_each(0, keys.size(), [&](const sieve_key& key) {
        const uint128 address = address_of(key);
        if (is_ipv4(address)) {
            ipv4_.erase(static_cast<std::uint32_t>(address));
        } else {
            ipv6_.erase(address);
            frees_places = true;
        }
        change.removed++;
        sum_ -= sum_of_key(lookup_, address);
    });
    if (!frees_places) return {};
    SIEVE_TRY(wait());
    ipv6_.clear_values();
    return {};
}

Result<std::uint64_t> LiveTable::sweep(const WaitForLookups& wait) {
    if (values_.meaning != SIEVE_EXACT_ENDS) return std::uint64_t{0};
    const std::uint64_t now = program_now();
    KeySet ended(lookup_.fields);
    SIEVE_TRY(
        exact_kind.for_each_entry(lookup_, lines_, now, [&](const sieve_key& key, std::uint64_t end, bool) {
            if (end <= now) ended.add(key);
        }));
    if (ended.empty()) return std::uint64_t{0};
    SIEVE_ASSIGN(const TableChangeResult did, change(ended, KeySet(lookup_.fields), wait, never_ends));
    return did.removed;
}

Begun LiveTable::begin(uint128 address, std::uint32_t value) {
    return is_ipv4(address) ? ipv4_.insert(static_cast<std::uint32_t>(address), value)
                            : ipv6_.insert(address, value);
}

Status LiveTable::add(const KeySet& keys, std::uint32_t value, const WaitForLookups& wait,
                      TableChangeResult& change) {
    std::vector<sieve_key> left; // for the next round
    const auto one_round = [&](std::size_t count, const auto& key_at) {
        std::size_t in_vain = 0;
        for (std::size_t i = 0; i < count; i++) {
            const sieve_key key = key_at(i);
            const uint128 address = address_of(key);
            if (values_.bits > 0 && value_of(address)) { // it has ended, and was not swept
                set_value(address, value);
                change.added++;
                revived_++;
                continue;
            }
            if (in_vain < most_in_vain && begin(address, value) != Begun::nowhere) {
                change.added++;
                sum_ += sum_of_key(lookup_, address);
                continue;
            }
            in_vain++;
            left.push_back(key);
        }
    };
    one_round(keys.size(), [&](std::size_t i) { return keys.at(i); });
    for (int round = 0;; round++) {
        const bool moves = ipv4_.moves_keys() || ipv6_.moves_keys();
        for (bool more = moves; more;) {
            SIEVE_TRY(wait());
            const bool ipv4 = ipv4_.go_on();
            const bool ipv6 = ipv6_.go_on();
            more = ipv4 || ipv6;
        }
        ipv4_.end_round();
        ipv6_.end_round();
        if (left.empty() || !moves || round == most_rounds) break;
        const std::vector<sieve_key> again = std::exchange(left, {});
        one_round(again.size(), [&](std::size_t i) { return again[i]; });
    }
    change.full = std::move(left);
    return {};
}

} // namespace sieve::exact
