// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Reads feeds: the lists of keys that people already have.
//
//   # one entry a line; this is a feed of the fields src,dport,proto
//   192.0.2.1      443  tcp
//   2001:db8::7,   53,  udp,  further columns are ignored    ; and so are comments
//
// The fields come in the order of the field list, separated by any mixture of blanks, tabs and commas; a
// colon may part an address from its port (192.0.2.1:443, [2001:db8::7]:53). No further column may be an
// address, not even one directly behind a semicolon. Blank lines, CRLF, a missing last newline and a byte
// order mark are fine. A line that starts with '{' is a JSON object. In a set of one address, its member
// "cidr", "ip", "ipv4" or "ipv6" is the entry, and no other member may be another address; an object of
// "type": "metadata" counts as a comment. A set of one address also takes prefixes (192.0.2.0/24,
// or with a netmask 192.0.2.0/255.255.255.0) and ranges (192.0.2.1-192.0.2.9), if the caller asks for them;
// blanks may stand around the slash and the dash.
// So does, on request, an address among several fields; there, * stands for any value of a field.
// An IPv6 address with a protocol that no IPv6 packet has (sieve/extensions.h) is malformed.
//
// Inputs that are packed (util/files/unpack.hpp) are unpacked on the way, within its limits.
//
// Other formats (list_format.hpp) are translated into this one, entry by entry (formats/). Documents, whose
// entries are not bound to lines, are held in memory as a whole while they are translated.
//
// Cost: one pass. Blocks are parsed in parallel and joined in the order of the feed. Memory: the keys, and
// two blocks a thread. Files are read, not mapped: a list that is truncated during the read leads to an error
// or a short list, not to a SIGBUS. Pipes work like files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "libsieve/feeds/text/list_format.hpp"
#include "libsieve/keys/address_range.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/keys/members.hpp"
#include "libsieve/util/files/input.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

// The longest line of a feed in bytes, without its end. A file with longer lines is not a list.
inline constexpr std::size_t feed_line_limit = 4096;

struct Feed;

struct FeedOptions {
    ListFormat format{ListSyntax::plain, {}};
    bool skip_invalid = false; // count malformed lines and go on
    bool ranges = false;       // also take prefixes and ranges of addresses; otherwise they are malformed
    bool key_ranges = false;   // likewise among several fields, and * for any value of a field
    bool mask_host_bits =
        false; // clear the bits behind a prefix's length; otherwise they make the line malformed
    bool keep_skipped = false; // Feed::skipped_first holds all malformed lines
    unsigned threads = 0;      // 0: one for each core
    Progress progress{};       // stage "reading"; stays 0 until the end if the size of an input is unknown
    std::size_t block_bytes = std::size_t{256}
                              << 10; // what a thread parses at a time; at least 16 KiB are taken
    // For lists that must not take more than some memory: whenever `most_entries` or more were read, the feed
    // so far is passed to `overflow`, which takes its keys. From then on the feed counts them instead of
    // holding them. An error of `overflow` ends reading and is returned.
    std::size_t most_entries = 0;
    std::function<Status(Feed&)> overflow{};
};

struct Feed {
    explicit Feed(std::uint32_t fields) : keys(fields) {}

    KeySet keys;                      // in the order of the feed, with repetitions
    std::vector<AddressRange> ranges; // prefixes and ranges of more than one address, likewise
    std::vector<KeyRange> key_ranges; // entries of several fields with a prefix, a range or *, likewise
    std::uint64_t overflowed = 0;     // keys that were passed on before those in `keys`
    std::uint64_t lines = 0;          // of a document: the places where an entry was found or expected
    std::uint64_t comments = 0;       // lines without an entry: blank, comment, metadata, heading
    std::uint64_t skipped = 0;        // malformed lines; 0 unless skip_invalid
    std::uint64_t masked = 0;         // prefixes whose bits behind the length were cleared
    std::uint64_t bytes = 0;          // of all inputs together
    // read_feed() guarantees: lines = comments + skipped + overflowed + entries()

    std::vector<std::string> skipped_first; // "FILE:LINE: why" for the first few malformed lines, or all
    // "FILE: read as ..." for each input whose format was not given and is not plain, or leaves lines out.
    std::vector<std::string> decided;

    [[nodiscard]] std::size_t entries() const { return keys.size() + ranges.size() + key_ranges.size(); }
    [[nodiscard]] bool has_ranges() const { return !ranges.empty() || !key_ranges.empty(); }
};

// What the list says, without where it says so.
[[nodiscard]] inline Members members_of(Feed feed) {
    return {std::move(feed.keys), std::move(feed.ranges), std::move(feed.key_ranges)};
}

// Reads all keys of these fields from the inputs, each to its end. Errors: a malformed line, unless malformed
// lines are skipped; a feed without a key; an input that is a filter image, or packed and damaged; a usage
// error if one input is named twice. If several lines are malformed, the error names the first one in the
// order of the feed, whatever the number of threads. Its facts say which input is to blame, if it is one.
[[nodiscard]] Result<Feed> read_feed(std::span<Input> inputs, std::uint32_t fields,
                                     const FeedOptions& options = {});

// The same for the inputs at these paths; "-" is standard input.
[[nodiscard]] Result<Feed> read_feed(const std::vector<std::string>& paths, std::uint32_t fields,
                                     const FeedOptions& options = {});

} // namespace sieve
