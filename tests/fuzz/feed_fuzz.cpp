// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Fuzzes the feed reader. The first byte chooses fields and options, the second one how the text lies in the
// reader's blocks; the rest is the feed.
//
// What must hold of any bytes: the keys, ranges and counts are those of the model in tests/model, in the
// order of the feed; every line is counted once; blocks and threads make no difference; every key reads back
// from its text.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "fuzz/support.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/key_text.hpp"
#include "model/entry_model.hpp"

namespace {

using namespace sieve::fuzz;
using sieve::model::Meaning;

// The reader takes blocks of no less.
constexpr std::size_t block = std::size_t{16} << 10;

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

// What starts like this is another format, and refused as such.
bool is_alien(const std::string& text) {
    using namespace std::string_view_literals;
    for (const std::string_view magic : {"\x1f\x8b"sv,
                                         "\xfd"
                                         "7zXZ"sv,
                                         "\x28\xb5\x2f\xfd"sv, "BZh"sv, "SIEV"sv})
        if (text.starts_with(magic)) return true;
    return false;
}

// Holds what was read against the model's reading of the lines. False if the model does not know.
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

// The text behind so many bytes of comments that a block ends within it.
std::string moved(const std::string& text, std::uint8_t where) {
    const std::size_t cut = text.size() * where / 256;
    std::string longer = std::string(block - 1 - std::min(cut, block / 2), '#');
    for (std::size_t at = 1000; at < longer.size(); at += 1000) longer[at] = '\n';
    return longer + '\n' + text;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    static MemoryFile file("feed");
    const Choices choices = choices_of(data[0]);
    const std::string text(data + 2, data + size);
    file.assign(text.data(), text.size());

    const auto read = sieve::read_feed({file.path()}, choices.fields, choices.options);
    if (!read) require_message(read.error().message);
    if (!is_alien(text)) check_against_model(text, choices, read);
    if (read) {
        FUZZ_REQUIRE(read->lines == read->keys.size() + read->ranges.size() + read->comments + read->skipped);
        for (const std::string& reason : read->skipped_first) require_message(reason);
        for (std::size_t i = 0; i < read->keys.size(); ++i) {
            const sieve_key key = read->keys.at(i);
            const auto back = sieve::parse_key(sieve::format_key(key, choices.fields), choices.fields);
            FUZZ_REQUIRE(back && same(*back, key));
        }
    }
    if (data[1] % 8 == 1) {
        const std::string longer = moved(text, data[1]);
        file.assign(longer.data(), longer.size());
        sieve::FeedOptions options = choices.options;
        const auto blocks = sieve::read_feed({file.path()}, choices.fields, options);
        options.block_bytes = 4 * block;
        check_equal(blocks, sieve::read_feed({file.path()}, choices.fields, options));
        if (data[1] % 64 == 1) {
            options.block_bytes = block;
            options.threads = 2;
            check_equal(blocks, sieve::read_feed({file.path()}, choices.fields, options));
        }
    }
    return 0;
}
