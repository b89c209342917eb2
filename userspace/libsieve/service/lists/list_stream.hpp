// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A parsed list on its way out of a process that may have been taken over, while it is still being parsed. So
// whoever gets it need not parse, and nobody holds it twice.
//
// The list comes in pieces: two little-endian numbers of 32 bits, which are the piece's kind and the number
// of its bytes, and then the bytes. Keys keep the order of the list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/feeds/list_reader.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// Writes pieces to a pipe.
class ListSender {
  public:
    explicit ListSender(int to) : to_(to) {}

    // The keys that the feed holds now.
    [[nodiscard]] Status send_keys(const KeySet& keys) const;
    // All that the list has besides its keys and its numbers.
    [[nodiscard]] Status send_rest(const FoundList& list) const;

  private:
    [[nodiscard]] Status send(std::uint32_t kind, std::string_view bytes) const;
    template <class Record>
    [[nodiscard]] Status send_records(std::uint32_t kind, const Record* records, std::size_t count,
                                      std::size_t each) const;

    int to_;
};

// Puts the pieces together. What comes is taken for what it says only if any honest sender might say it: keys
// of the feed's fields without any other, ranges that go upwards, text that a terminal may see.
class ListReceiver {
  public:
    // `list` takes what comes. At most so many skipped lines, and places, are taken.
    ListReceiver(FoundList& list, std::size_t most_skipped, std::size_t most_places)
        : list_(list), most_skipped_(most_skipped), most_places_(most_places) {}

    // Takes the next bytes. Returns false if they are no such list.
    [[nodiscard]] bool take(std::string_view bytes);

    // Whether nothing is missing of the last piece.
    [[nodiscard]] bool is_whole() const { return head_.empty(); }

  private:
    [[nodiscard]] bool take_piece();
    [[nodiscard]] bool take_addresses();
    [[nodiscard]] bool take_words();
    [[nodiscard]] bool take_ranges();
    [[nodiscard]] bool take_text(std::vector<std::string>& to, std::size_t most);

    FoundList& list_;
    std::size_t most_skipped_;
    std::size_t most_places_;
    std::string head_;
    std::uint32_t kind_ = 0;
    std::size_t bytes_ = 0; // of the piece that is coming
    std::string piece_;
    std::vector<std::uint32_t> addresses_; // of a piece
    std::vector<std::uint64_t> words_;     // likewise
};

} // namespace sieve::service
