// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Records (sieve/records.h) in memory: read, and changed while packets ask. build_records() makes them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <sieve/records.h>

namespace sieve {

// Whether a change of the keys may be going on.
enum class MayChange : bool { no, yes };

// A view of lines. Whoever changes them is their only writer.
class Records {
  public:
    explicit Records(std::span<sieve_line> lines) : lines_(lines) {}

    // What is wrong with the header of lines that are said to be records; empty if nothing is.
    [[nodiscard]] static std::string fault(std::span<const sieve_line> lines,
                                           MayChange may_change = MayChange::no);

    [[nodiscard]] const sieve_records& header() const {
        return *reinterpret_cast<const sieve_records*>(lines_.data());
    }
    [[nodiscard]] sieve_records& header() { return *reinterpret_cast<sieve_records*>(lines_.data()); }

    // Places are numbered from 0 on, row by row.
    [[nodiscard]] std::uint32_t in_row() const {
        return header().tagged != 0 ? SIEVE_RECORDS_IN_TAGGED_ROW : SIEVE_RECORDS_IN_PLAIN_ROW;
    }
    [[nodiscard]] std::uint32_t places() const { return header().rows * in_row(); }
    [[nodiscard]] sieve_key key(std::uint32_t place) const;
    [[nodiscard]] bool is_used(std::uint32_t place) const; // each key uses one place
    [[nodiscard]] bool is_marked(std::uint32_t place) const;

    // Whether the key is zero in all words that are not stored. Others are in no records.
    [[nodiscard]] bool fits(const sieve_key& key) const;

    // The key's place, as a packet's lookup finds it.
    [[nodiscard]] std::optional<std::uint32_t> find(const sieve_key& key) const;

    // Writes a key and nothing of its tag.
    void write(std::uint32_t place, const sieve_key& key);

    // --- the tagged form ----------------------------------------------------------------------------------

    [[nodiscard]] std::uint32_t tag(std::uint32_t place) const; // with its mark
    // Writes a tag with its mark, after all that was written before.
    void write_tag(std::uint32_t place, std::uint32_t tag);
    // The places of a row that have the tag, as sieve_records_in_row() says it.
    [[nodiscard]] std::uint64_t with_tag(std::uint32_t row, std::uint32_t tag) const {
        return sieve_records_in_row(words_of_row(row), tag);
    }
    [[nodiscard]] std::uint64_t with_tag(const sieve_record_place& at) const {
        return sieve_records_in_rows(words_of_row(at.first), words_of_row(at.second), at.tag);
    }

    enum class Added : std::uint8_t {
        done,
        must_wait, // only places are free whose records packets may still read: see use_left()
        full,      // no place is free for this key
    };
    // Adds a key that fits and is not there. Packets find it from then on.
    [[nodiscard]] Added add(const sieve_key& key, bool marked);
    void mark(std::uint32_t place, bool marked);
    // Takes the key of this place out. The place stays unused until use_left().
    void remove(std::uint32_t place);
    // Makes all places usable again whose keys were taken out. The caller has waited for a grace period since
    // then.
    void use_left();

  private:
    [[nodiscard]] __u64* words_of_row(std::uint32_t row) const {
        return &lines_[sieve_records_row_line(row)].word[sieve_records_row_word(row)];
    }
    [[nodiscard]] __u64& word_of_tag(std::uint32_t place) const {
        return words_of_row(
            place / SIEVE_RECORDS_IN_TAGGED_ROW)[place % SIEVE_RECORDS_IN_TAGGED_ROW / SIEVE_RECORDS_IN_WORD];
    }
    // Calls visit(word of a key, where this place stores it).
    template <class Visit>
    void for_each_word(std::uint32_t place, const Visit& visit) const;
    [[nodiscard]] bool holds(std::uint32_t place, const sieve_key& key) const;
    // What a writer wants to know about a row.
    struct Room {
        std::uint32_t used = 0;
        std::uint32_t same = 0;              // with this tag, those included that packets may still see
        std::uint32_t left = 0;              // usable after a grace period
        std::optional<std::uint32_t> free{}; // a place
    };
    [[nodiscard]] Room room_in(std::uint32_t row, std::uint32_t tag) const;

    std::span<sieve_line> lines_;
};

} // namespace sieve
