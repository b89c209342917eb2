// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Fuzzes the formats of lists. The first byte chooses the format and the options, the second the fields. The
// rest is the list.
//
// What must hold for any bytes: every line is counted once; blocks and threads make no difference; the format
// that "auto" decides reads the same keys as that format when it is named; skipping malformed lines finds no
// fewer entries; every message is fit for a terminal.
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "fuzz/support.hpp"
#include "libsieve/feeds/detect_format.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/util/files/unpack.hpp"

namespace {

using namespace sieve::fuzz;

constexpr std::size_t block = std::size_t{16} << 10;

Total total("lists read in a format");

const std::array<const char*, 10> parts = {
    "", ":1", ":2+3", ":ip", ":bad", ":a+b", ":dst_ip+dst_port", ":val", ":DE", ":AT+AS64500"};

sieve::ListFormat format_of(std::uint8_t byte) {
    const auto syntaxes = sieve::list_syntaxes();
    // A new format takes a number that the corpus does not use.
    const std::string name(syntaxes[byte % 16 < syntaxes.size() ? byte % 16 : 0].name);
    auto format = sieve::parse_list_format(name + parts[byte / 16 % parts.size()]);
    return format ? *format : sieve::parse_list_format(name).value();
}

constexpr char bug[] = "this is a bug";

// `has_bug`: the list itself has these words, which a message may quote.
sieve::Result<sieve::Feed> read(StandardInput& input, bool has_bug, std::uint32_t fields,
                                const sieve::FeedOptions& options) {
    total.add(1);
    input.rewind();
    auto feed = sieve::read_feed({"-"}, fields, options);
    if (!feed) {
        require_message(feed.error().message);
        FUZZ_REQUIRE(has_bug || feed.error().message.find(bug) == std::string::npos);
        return feed;
    }
    FUZZ_REQUIRE(feed->lines == feed->keys.size() + feed->ranges.size() + feed->comments + feed->skipped);
    for (const std::string& reason : feed->skipped_first) require_message(reason);
    for (const std::string& decided : feed->decided) require_message(decided);
    return feed;
}

void check_equal(const sieve::Result<sieve::Feed>& a, const sieve::Result<sieve::Feed>& b) {
    FUZZ_REQUIRE(a.has_value() == b.has_value());
    if (!a) return;
    FUZZ_REQUIRE(a->lines == b->lines && a->comments == b->comments && a->skipped == b->skipped);
    FUZZ_REQUIRE(a->keys.size() == b->keys.size() && a->ranges == b->ranges);
    for (std::size_t i = 0; i < a->keys.size(); i++) {
        const sieve_key one = a->keys.at(i);
        const sieve_key other = b->keys.at(i);
        FUZZ_REQUIRE(std::memcmp(&one, &other, sizeof(one)) == 0);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    static StandardInput input("list");
    const std::string text(data + 2, data + size);
    input.assign(text.data(), text.size());
    const bool has_bug = text.find(bug) != std::string::npos;
    const std::uint32_t fields = (data[1] & SIEVE_FIELD_ALL) == 0 ? 1 : data[1] & SIEVE_FIELD_ALL;
    sieve::FeedOptions options{
        .format = format_of(data[0]), .ranges = true, .threads = 1, .block_bytes = block};

    const auto strict = read(input, has_bug, fields, options);
    options.skip_invalid = true;
    const auto lenient = read(input, has_bug, fields, options);
    if (strict) check_equal(strict, lenient);

    options.block_bytes = 4 * block;
    options.threads = (data[1] & 128) != 0 ? 2 : 1;
    check_equal(lenient, read(input, has_bug, fields, options));

    if (options.format.syntax == sieve::ListSyntax::automatic && text.size() < sieve::format_head_bytes &&
        sieve::packing_of(text) == sieve::Packing::none) {
        const sieve::DetectedSyntax detected = sieve::detect_syntax(text, fields);
        if (detected.may_be_plain) {
            FUZZ_REQUIRE(!lenient);
            return 0;
        }
        options.format.syntax = detected.syntax;
        check_equal(lenient, read(input, has_bug, fields, options));
    }
    return 0;
}
