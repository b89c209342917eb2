// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Fuzzes the feed reader. The first byte chooses fields and options. The second byte chooses how the text is
// split into the reader's blocks. The rest is the feed. Each execution reads the feed, then a number of its
// mutations.
//
// What must hold for any bytes: the keys, ranges and counts are those of the model in tests/model, in the
// order of the feed; every line is counted once; blocks and threads make no difference; every key reads back
// from its text.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/support.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "model/entry_model.hpp"

namespace {

using namespace sieve::fuzz;
using sieve::model::Meaning;
using namespace std::string_view_literals;

// The smallest block that the reader accepts.
constexpr std::size_t block = std::size_t{16} << 10;
constexpr std::size_t longest = 600;
constexpr int variants = 24;

Total total("feeds read and compared with the model");

bool same(const sieve_key& a, const sieve_key& b) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
}

struct Choices {
    std::uint32_t fields;
    sieve::FeedOptions options;
};

Choices choices_of(std::uint8_t byte) {
    const std::uint32_t fields = byte & SIEVE_FIELD_ALL;
    return {.fields = (byte & 32) != 0 || fields == 0 ? std::uint32_t{SIEVE_FIELD_SRC} : fields,
            .options = {.skip_invalid = (byte & 64) != 0,
                        .ranges = (byte & 128) != 0,
                        .threads = 1,
                        .block_bytes = block}};
}

// A text that starts like this is packed, or refused as another format. The model knows neither.
bool is_alien(const std::string& text) {
    for (const std::string_view magic : {"\x1f\x8b"sv,
                                         "\xfd"
                                         "7zXZ"sv,
                                         "\x28\xb5\x2f\xfd"sv, "BZh"sv, "SIEV"sv, "\xff\xfe"sv, "\xfe\xff"sv,
                                         "\0\0\xfe\xff"sv, "PK\x03\x04"sv, "PK\x05\x06"sv})
        if (text.starts_with(magic)) return true;
    return false;
}

// Compares the reader's result with the model's reading of the lines. False if the model does not know the
// answer.
void check_against_model(const std::string& text, const Choices& choices,
                         const sieve::Result<sieve::Feed>& read) {
    std::size_t keys = 0;
    std::size_t ranges = 0;
    std::size_t comments = 0;
    std::size_t bad = 0;
    std::size_t first_bad = 0;
    std::size_t number = 0;
    for (const std::string_view line : sieve::model::lines_of(text)) {
        sieve::model::Entry entry = sieve::model::read_line(line, choices.fields);
        number++;
        if (entry.meaning == Meaning::unknown) return;
        if (entry.meaning == Meaning::range && !choices.options.ranges) entry.meaning = Meaning::bad;
        switch (entry.meaning) {
        case Meaning::key:
            if (read) {
                FUZZ_REQUIRE(keys < read->keys.size());
                const sieve_key key = read->keys.at(keys);
                FUZZ_REQUIRE(std::equal(entry.key.begin(), entry.key.end(), key.word));
            }
            keys++;
            break;
        case Meaning::range:
            if (read) {
                FUZZ_REQUIRE(ranges < read->ranges.size());
                const std::size_t word = choices.fields == SIEVE_FIELD_SRC ? 0 : 2;
                FUZZ_REQUIRE((read->ranges[ranges] ==
                              sieve::AddressRange{sieve::address_number(entry.key[word], entry.key[word + 1]),
                                                  sieve::address_number(entry.last[0], entry.last[1])}));
            }
            ranges++;
            break;
        case Meaning::comment:
            comments++;
            break;
        default:
            if (bad++ == 0) first_bad = number;
        }
    }
    const bool good = keys + ranges > 0 && (bad == 0 || choices.options.skip_invalid);
    FUZZ_REQUIRE(read.has_value() == good);
    if (!read) {
        const std::string place = ":" + std::to_string(first_bad) + ": ";
        FUZZ_REQUIRE(bad == 0 || read.error().message.find(place) != std::string::npos);
        return;
    }
    FUZZ_REQUIRE(read->keys.size() == keys && read->ranges.size() == ranges);
    FUZZ_REQUIRE(read->comments == comments && read->skipped == bad && read->lines == number);
}

void check_equal(const sieve::Result<sieve::Feed>& a, const sieve::Result<sieve::Feed>& b) {
    FUZZ_REQUIRE(a.has_value() == b.has_value());
    if (!a) {
        FUZZ_REQUIRE(a.error().message == b.error().message);
        return;
    }
    FUZZ_REQUIRE(a->lines == b->lines && a->comments == b->comments && a->skipped == b->skipped);
    FUZZ_REQUIRE(a->keys.size() == b->keys.size() && a->ranges == b->ranges);
    FUZZ_REQUIRE(a->skipped_first == b->skipped_first);
    for (std::size_t i = 0; i < a->keys.size(); i++) FUZZ_REQUIRE(same(a->keys.at(i), b->keys.at(i)));
}

// The text behind this many bytes of comments, so that a block ends within it.
std::string moved(const std::string& text, std::uint8_t where) {
    const std::size_t cut = text.size() * where / 256;
    std::string longer = std::string(block - 1 - std::min(cut, block / 2), '#');
    for (std::size_t at = 1000; at < longer.size(); at += 1000) longer[at] = '\n';
    return longer + '\n' + text;
}

sieve::Result<sieve::Feed> read_standard_input(const Choices& choices) {
    return sieve::read_feed({"-"}, choices.fields, choices.options);
}

void check(StandardInput& input, const std::string& text, const Choices& choices) {
    total.add(1);
    sieve::fuzz::subject() = text;
    input.assign(text.data(), text.size());
    const auto read = read_standard_input(choices);
    if (!read) require_message(read.error().message);
    if (!is_alien(text)) check_against_model(text, choices, read);
    if (!read) return;
    FUZZ_REQUIRE(read->lines == read->keys.size() + read->ranges.size() + read->comments + read->skipped);
    for (const std::string& reason : read->skipped_first) require_message(reason);
    for (std::size_t i = 0; i < read->keys.size(); ++i) {
        const sieve_key key = read->keys.at(i);
        const auto back = sieve::parse_key(sieve::format_key(key, choices.fields), choices.fields);
        FUZZ_REQUIRE(back && same(*back, key));
    }
}

void check_blocks(StandardInput& input, const std::string& text, Choices choices, bool with_threads) {
    input.assign(text.data(), text.size());
    const auto blocks = read_standard_input(choices);
    choices.options.block_bytes = 4 * block;
    input.rewind();
    check_equal(blocks, read_standard_input(choices));
    if (!with_threads) return;
    choices.options.block_bytes = block;
    choices.options.threads = 2;
    input.rewind();
    check_equal(blocks, read_standard_input(choices));
}

// Letters and words that have a meaning in some line.
constexpr std::string_view letters = "0123456789abcdefABCDEFx.:/-,;#{}[]\"\\+ \t\r\n\0\x7f\xff"sv;
constexpr std::array<std::string_view, 22> words = {
    "192.0.2.1", "2001:db8::",   "::ffff:", "::",        "/24",       "/32",         "/128", " - ",
    "\r\n",      "tcp",          "udp",     "icmpv6",    "65535",     "65536",       "255",  "256",
    "00",        "{\"cidr\":\"", "\"}",     "\"ipv6\":", "\"ip\":\"", "\xef\xbb\xbf"};

void mutate(std::string& text, Random& random) {
    const std::size_t at = random.below(text.size() + 1);
    const std::size_t from = random.below(text.size() + 1);
    const std::size_t length = random.below(random.one_in(4) ? text.size() + 1 : 5);
    switch (random.below(8)) {
    case 0:
        text.insert(at, 1, letters[random.below(letters.size())]);
        break;
    case 1:
        text.insert(at, words[random.below(words.size())]);
        break;
    case 2:
        text.erase(at, length);
        break;
    case 3: // a part repeated elsewhere
        text.insert(at, std::string(text, from, length));
        break;
    case 4:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random.below(8)));
        break;
    case 5: // usually another digit
        if (at < text.size()) text[at] = static_cast<char>(text[at] + static_cast<int>(random.below(5)) - 2);
        break;
    case 6:
        if (at < text.size() && from < text.size()) std::swap(text[at], text[from]);
        break;
    default:
        if (at < text.size()) text[at] = letters[random.below(letters.size())];
    }
    text.resize(std::min(text.size(), longest));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    static StandardInput input("feed");
    const std::string text(data + 2, data + size);
    check(input, text, choices_of(data[0]));

    Random random(fingerprint({data, size}));
    for (int i = 0; i < variants; i++) {
        std::string variant = text;
        for (std::uint64_t changes = random.below(4) + 1; changes > 0; changes--) mutate(variant, random);
        check(input, variant,
              choices_of(random.one_in(4) ? static_cast<std::uint8_t>(random.next()) : data[0]));
    }
    if (data[1] % 8 == 1) check_blocks(input, moved(text, data[1]), choices_of(data[0]), data[1] % 64 == 1);
    return 0;
}
