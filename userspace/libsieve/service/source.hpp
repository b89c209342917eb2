// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Where lists come from: the seam between the service and files, folders, and whatever else holds lists.
//
// A source is asked what it holds now and answers with pieces: texts that can be read one after the other.
// What a piece was when a list went live is kept as its record; a piece whose digest is in the record has not
// changed, and a source that can tell so without reading it, from a file's stamp or a server's "not
// modified", need not read it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libsieve/service/configuration.hpp"
#include "libsieve/util/input.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::service {

// What is kept of a piece.
struct PieceRecord {
    std::string name{};   // where it came from: a path
    std::string digest{}; // of its bytes (util/digest.hpp)
    std::uint64_t bytes = 0;
    std::int64_t modified = 0; // by its own word, in seconds since 1970
    std::int64_t read = 0;     // when the digest was made, in seconds since 1970
    std::uint64_t device = 0;  // of a file: with `inode` and `changed` its stamp
    std::uint64_t inode = 0;
    std::int64_t changed = 0; // its last change of status, in nanoseconds since 1970
};

class Piece {
  public:
    virtual ~Piece() = default;
    [[nodiscard]] virtual const PieceRecord& record() const = 0;
    // Its text, from the beginning.
    [[nodiscard]] virtual Result<Input> open() const = 0;
    // An error if it is no longer what the record says: its text was then read half old, half new.
    [[nodiscard]] virtual Status confirm() const = 0;
};

using Pieces = std::vector<std::unique_ptr<Piece>>;

class Source {
  public:
    virtual ~Source() = default;

    // What the source holds now, in an order that stays. `before` are the records of the list in force, from
    // whichever source. No piece is no error here. Errors: bad_input where something cannot be read.
    [[nodiscard]] virtual Result<Pieces> fetch(std::span<const PieceRecord> before) = 0;

    // Folders in which something happens when the source changes, for whoever waits for that; none for a
    // source that has to be asked.
    [[nodiscard]] virtual std::vector<std::string> folders() const = 0;
};

// The source of that description.
[[nodiscard]] std::unique_ptr<Source> make_source(const SourceSpec& spec);

// What all sources hold together. A piece that two sources hold is there once.
[[nodiscard]] Result<Pieces> fetch_all(const std::vector<SourceSpec>& sources,
                                       std::span<const PieceRecord> before);

// Whether the pieces are what the records say, in the same order.
[[nodiscard]] bool same_content(const Pieces& pieces, std::span<const PieceRecord> records);

} // namespace sieve::service
