// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Feeds: the lists of keys that people already have.
//
//   # one entry a line; this is a feed of the fields src,dport,proto
//   192.0.2.1      443  tcp
//   2001:db8::7,   53,  udp,  further columns are ignored    ; and so are comments
//
// The fields stand in the order of the field list, separated by blanks, tabs or commas, any mixture of them.
// Blank lines, CRLF, a missing last newline and a byte order mark are fine. A line that starts with '{' is a
// JSON object: for sets of one address its member "cidr", "ip", "ipv4" or "ipv6" is the entry; an object of
// "type": "metadata" is a comment. A set of one address also takes prefixes (192.0.2.0/24) and ranges
// (192.0.2.1-192.0.2.9), where the reader asks for them.
//
// Cost: one pass, a block at a time, parsed in parallel and put together in the order of the feed. Memory:
// the keys, and two blocks a thread. Files are read, not mapped: a list that is cut short while we read it
// then is an error or a short list, and not a SIGBUS; and pipes work like files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libsieve/keys/address_range.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/input.hpp"
#include "libsieve/util/progress.hpp"
#include "libsieve/util/result.hpp"

namespace sieve {

// The longest line of a feed in bytes, its end not counted. What is longer is not a list.
inline constexpr std::size_t feed_line_limit = 4096;

struct FeedOptions {
    bool skip_invalid = false; // count malformed lines and go on
    bool ranges = false;       // take prefixes and ranges of addresses, too; else they are malformed lines
    unsigned threads = 0;      // 0: one a core
    Progress progress{};       // stage "reading"; 0 until the end where the size of an input is unknown
    std::size_t block_bytes = std::size_t{256}
                              << 10; // what a thread parses at a time; at least 16 KiB are taken
};

struct Feed {
    explicit Feed(std::uint32_t fields) : keys(fields) {}

    KeySet keys;                      // in the order of the feed, repetitions included
    std::vector<AddressRange> ranges; // prefixes and ranges of more than one address, likewise
    std::uint64_t lines = 0;
    std::uint64_t comments = 0; // lines without an entry: blank, comment, metadata
    std::uint64_t skipped = 0;  // malformed lines; zero unless they are skipped
    std::uint64_t bytes = 0;    // of the inputs, all of them
    // lines = comments + skipped + keys.size() + ranges.size(); read_feed() sees to it

    std::vector<std::string> skipped_first; // "FILE:LINE: why" of the first few of them
};

// Reads all keys of these fields from the inputs, each to its end. The first malformed line, in the order of
// the feed and whatever the number of threads, is the error, unless malformed lines are skipped; so is a feed
// without a key, and an input that is a filter image or compressed. Two inputs that are one are a usage
// error.
[[nodiscard]] Result<Feed> read_feed(std::span<Input> inputs, std::uint32_t fields,
                                     const FeedOptions& options = {});

// The same for inputs by their paths; "-" is standard input.
[[nodiscard]] Result<Feed> read_feed(const std::vector<std::string>& paths, std::uint32_t fields,
                                     const FeedOptions& options = {});

} // namespace sieve
