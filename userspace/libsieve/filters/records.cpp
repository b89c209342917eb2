// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/records.hpp"

#include <atomic>

#include <fmt/core.h>

namespace sieve {

namespace {

std::uint32_t shift_of_tag(std::uint32_t place) {
    return place % SIEVE_RECORDS_IN_WORD * 16;
}

bool is_tag(std::uint32_t tag) {
    return (tag & SIEVE_RECORDS_TAG) != 0;
}

} // namespace

std::string Records::fault(std::span<const sieve_line> lines, MayChange may_change) {
    if (lines.empty()) return "no lines";
    const auto& header = *reinterpret_cast<const sieve_records*>(lines.data());
    if (header.magic != SIEVE_RECORDS_MAGIC) return "another magic";
    if (header.fields == 0 || header.fields > SIEVE_FIELD_ALL)
        return fmt::format("fields {:#x}, expected 1 to {:#x}", header.fields, SIEVE_FIELD_ALL + 0U);
    if (header.prefixes > 1) return fmt::format("prefixes {}, expected 0 or 1", header.prefixes);
    if (const std::uint32_t words = sieve_record_words_of(header.fields, header.prefixes);
        header.words != words)
        return fmt::format("words {:#x}, expected {:#x}", header.words, words);
    if (header.tagged > 1) return fmt::format("form {}, expected 0 or 1", header.tagged);
    if (header.tagged == 0 && header.words != SIEVE_RECORD_SRC && header.words != SIEVE_RECORD_DST)
        return "the plain form, of other keys than addresses";
    if (header.rows == 0 || (header.tagged != 0 && header.rows % 2 != 0))
        return fmt::format("{} rows, expected at least one, and whole lines of them", header.rows);
    if (may_change == MayChange::no && header.unsettled != 0)
        return "a change of its keys that did not come to its end";
    if (const std::uint64_t expected = sieve_records_lines(&header); expected != lines.size())
        return fmt::format("{} lines, expected {}", lines.size(), expected);
    return {};
}

template <class Visit>
void Records::for_each_word(std::uint32_t place, const Visit& visit) const {
    const std::uint32_t words = header().words;
    if (header().tagged == 0) {
        sieve_line& row = lines_[SIEVE_RECORDS_FIRST_ROW + place / SIEVE_RECORDS_IN_PLAIN_ROW];
        const std::uint32_t at = place % SIEVE_RECORDS_IN_PLAIN_ROW;
        const int upper = words == SIEVE_RECORD_SRC ? 0 : 2;
        visit(upper, row.word[at]);
        visit(upper + 1, row.word[at + SIEVE_RECORDS_IN_PLAIN_ROW]);
        return;
    }
    std::uint32_t at = sieve_records_group(&header(), place);
    const auto pair = [&](int first) {
        sieve_line& line = lines_[at + sieve_records_pair_line(place)];
        const std::uint32_t word = sieve_records_pair_word(place);
        visit(first, line.word[word]);
        visit(first + 1, line.word[word + 1]);
        at += 2;
    };
    if ((words & SIEVE_RECORD_SRC) != 0) pair(0);
    if ((words & SIEVE_RECORD_DST) != 0) pair(2);
    if ((words & SIEVE_RECORD_LAST) != 0) visit(4, lines_[at].word[sieve_records_last_word(place)]);
}

sieve_key Records::key(std::uint32_t place) const {
    sieve_key key{};
    for_each_word(place, [&](int word, std::uint64_t stored) { key.word[word] = stored; });
    return key;
}

bool Records::holds(std::uint32_t place, const sieve_key& key) const {
    bool same = true;
    for_each_word(place, [&](int word, std::uint64_t stored) { same &= stored == key.word[word]; });
    return same;
}

bool Records::is_used(std::uint32_t place) const {
    return header().tagged != 0 ? is_tag(tag(place)) : find(key(place)) == place;
}

bool Records::is_marked(std::uint32_t place) const {
    return header().tagged != 0 && (tag(place) & SIEVE_RECORDS_MARK) != 0;
}

bool Records::fits(const sieve_key& key) const {
    const std::uint32_t words = header().words;
    return ((words & SIEVE_RECORD_SRC) != 0 || (key.word[0] | key.word[1]) == 0) &&
           ((words & SIEVE_RECORD_DST) != 0 || (key.word[2] | key.word[3]) == 0) &&
           ((words & SIEVE_RECORD_LAST) != 0 || key.word[4] == 0);
}

std::optional<std::uint32_t> Records::find(const sieve_key& key) const {
    if (!fits(key)) return std::nullopt;
    const sieve_record_place at = sieve_records_locate(&header(), &key);
    if (header().tagged == 0) {
        for (const std::uint32_t row : {at.first, at.second})
            for (std::uint32_t i = 0; i < SIEVE_RECORDS_IN_PLAIN_ROW; i++)
                if (holds(row * SIEVE_RECORDS_IN_PLAIN_ROW + i, key))
                    return row * SIEVE_RECORDS_IN_PLAIN_ROW + i;
        return std::nullopt;
    }
    std::uint64_t places = with_tag(at);
    for (int i = 0; i < SIEVE_RECORDS_CANDIDATES && places != 0; i++, places &= places - 1) {
        const std::uint32_t place = sieve_records_number(&at, places);
        if (holds(place, key)) return place;
    }
    return std::nullopt;
}

void Records::write(std::uint32_t place, const sieve_key& key) {
    for_each_word(place, [&](int word, __u64& stored) {
        std::atomic_ref<__u64>(stored).store(key.word[word], std::memory_order_relaxed);
    });
}

std::uint32_t Records::tag(std::uint32_t place) const {
    return static_cast<std::uint16_t>(word_of_tag(place) >> shift_of_tag(place));
}

void Records::write_tag(std::uint32_t place, std::uint32_t tag) {
    __u64& word = word_of_tag(place);
    const std::uint64_t others = word & ~(std::uint64_t{0xffff} << shift_of_tag(place));
    std::atomic_ref<__u64>(word).store(others | std::uint64_t{tag} << shift_of_tag(place),
                                       std::memory_order_release);
}

Records::Room Records::room_in(std::uint32_t row, std::uint32_t tag) const {
    Room room;
    for (std::uint32_t i = 0; i < SIEVE_RECORDS_IN_TAGGED_ROW; i++) {
        const std::uint32_t place = row * SIEVE_RECORDS_IN_TAGGED_ROW + i;
        std::uint32_t there = this->tag(place);
        if (there == 0) {
            if (!room.free) room.free = place;
            continue;
        }
        if (there == SIEVE_RECORDS_LEFT) {
            // A packet that saw the tag before may still count it, and it looks at no more than four records.
            const sieve_key gone = key(place);
            there = sieve_records_locate(&header(), &gone).tag;
            room.left++;
        } else {
            room.used++;
        }
        if ((there & SIEVE_RECORDS_TAG) == tag) room.same++;
    }
    return room;
}

Records::Added Records::add(const sieve_key& key, bool marked) {
    const sieve_record_place at = sieve_records_locate(&header(), &key);
    const Room rooms[] = {room_in(at.first, at.tag), room_in(at.second, at.tag)};
    const Room* best = nullptr;
    for (const Room& room : rooms)
        if (room.free && room.same < SIEVE_RECORDS_SAME_TAG && (best == nullptr || room.used < best->used))
            best = &room;
    if (best == nullptr) return rooms[0].left + rooms[1].left > 0 ? Added::must_wait : Added::full;
    write(*best->free, key);
    write_tag(*best->free, at.tag | (marked ? SIEVE_RECORDS_MARK : 0));
    return Added::done;
}

void Records::mark(std::uint32_t place, bool marked) {
    write_tag(place, (tag(place) & SIEVE_RECORDS_TAG) | (marked ? SIEVE_RECORDS_MARK : 0));
}

void Records::remove(std::uint32_t place) {
    write_tag(place, SIEVE_RECORDS_LEFT);
}

void Records::use_left() {
    for (std::uint32_t place = 0; place < places(); place++)
        if (tag(place) == SIEVE_RECORDS_LEFT) write_tag(place, 0);
}

} // namespace sieve
