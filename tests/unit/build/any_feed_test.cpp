// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A random list in any form that the grammar of feeds allows: one file or several, any kind, any options. If
// the build succeeds, the set holds every member. SIEVE_TEST_FEEDS sets the number of lists.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "libsieve/build/set_builder.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/registry.hpp"

namespace sieve {
namespace {

/// Writes keys as text, and knows what it wrote without using the parser.
class Dresser {
  public:
    Dresser(std::uint64_t seed, std::uint32_t fields) : random_(seed), fields_(fields) {}

    std::uint64_t below(std::uint64_t count) { return random_() % count; }
    bool chance(std::uint64_t in) { return below(in) == 0; }

    struct Line {
        std::string text;
        std::vector<sieve_key> members; ///< of a prefix or range its ends and one between
    };

    Line line(bool ranges) {
        if (ranges && chance(4)) return range();
        Line out;
        sieve_key key{};
        const bool v4 = !chance(3);
        std::vector<std::string> words;
        if (fields_ & SIEVE_FIELD_SRC) words.push_back(address(key, 0, v4));
        if (fields_ & SIEVE_FIELD_DST) words.push_back(address(key, 2, v4));
        std::uint16_t ports[2] = {0, 0};
        for (int i = 0; i < 2; i++)
            if (fields_ & (i == 0 ? SIEVE_FIELD_SPORT : SIEVE_FIELD_DPORT)) {
                ports[i] = static_cast<std::uint16_t>(random_());
                words.push_back(std::to_string(ports[i]));
            }
        std::uint8_t protocol = 0;
        if (fields_ & SIEVE_FIELD_PROTO) {
            constexpr std::pair<const char*, std::uint8_t> names[] = {
                {"tcp", 6}, {"UDP", 17}, {"icmp", 1}, {"sctp", 132}, {"6", 6}, {"17", 17}, {"255", 255}};
            const auto& [name, number] = names[below(std::size(names))];
            protocol = number;
            words.push_back(name);
        }
        key.word[4] = sieve_transport_word(ports[0], ports[1], protocol);
        out.text = blanks();
        for (std::size_t i = 0; i < words.size(); i++) out.text += (i == 0 ? "" : separator()) + words[i];
        if (chance(5)) out.text += separator() + "listed" + separator() + "x-y";
        out.text += tail();
        out.members = {key};
        return out;
    }

    /// A line without an entry.
    std::string filler() {
        constexpr const char* fillers[] = {"", "  ", "\t", "# 1.2.3.4", "; nothing", "  # x"};
        return fillers[below(std::size(fillers))];
    }
    std::string end() { return chance(4) ? "\r\n" : "\n"; }

  private:
    static constexpr uint128 v4_mapped = uint128{0xffff} << 32;

    std::string blanks() { return chance(6) ? " \t" : ""; }
    std::string separator() {
        constexpr const char* separators[] = {" ", "\t", ",", ", ", " , ", "   ", "\t,\t"};
        return separators[below(std::size(separators))];
    }
    std::string tail() {
        constexpr const char* tails[] = {" # why", "\t; SBL1", " ", "", ""};
        return tails[below(std::size(tails))];
    }

    static void set(sieve_key& key, int at, uint128 address) {
        key.word[at] = static_cast<std::uint64_t>(address >> 64);
        key.word[at + 1] = static_cast<std::uint64_t>(address);
    }

    uint128 draw(bool v4) {
        if (v4) return v4_mapped | (random_() & 0xffffffff);
        uint128 address = uint128{0x2001000000000000U | (random_() >> 16)} << 64 | random_();
        // Groups of zeros, for `::`.
        if (chance(2)) address &= ~(((uint128{1} << 16 * (1 + below(5))) - 1) << 16 * below(3));
        return address;
    }

    std::string text_of(uint128 address) {
        if (address >> 32 == 0xffff) {
            const auto a = static_cast<std::uint32_t>(address);
            const std::string quad =
                fmt::format("{}.{}.{}.{}", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
            if (!chance(6)) return quad;
            return chance(2) ? "::ffff:" + quad : fmt::format("::FFFF:{:x}:{:x}", a >> 16, a & 0xffff);
        }
        std::string groups[8];
        const bool upper = chance(4);
        const bool padded = chance(4);
        bool zero[8];
        for (int i = 0; i < 8; i++) {
            const auto group = static_cast<unsigned>(address >> (112 - 16 * i) & 0xffff);
            zero[i] = group == 0;
            groups[i] = padded ? fmt::format("{:04x}", group) : fmt::format("{:x}", group);
            if (upper) std::ranges::transform(groups[i], groups[i].begin(), ::toupper);
        }
        // Any run of zeros may be left out, once.
        std::vector<std::pair<int, int>> runs;
        for (int i = 0; i < 8; i++)
            for (int j = i; j < 8 && zero[j]; j++) runs.emplace_back(i, j + 1);
        const auto whole = [&](int from, int to) {
            std::string text;
            for (int i = from; i < to; i++) text += (i == from ? "" : ":") + groups[i];
            return text;
        };
        if (runs.empty() || chance(3)) return whole(0, 8);
        const auto [from, to] = runs[below(runs.size())];
        return whole(0, from) + "::" + whole(to, 8);
    }

    std::string address(sieve_key& key, int at, bool v4) {
        const uint128 drawn = draw(v4);
        set(key, at, drawn);
        return text_of(drawn);
    }

    Line range() {
        const bool v4 = !chance(3);
        const int bits = static_cast<int>(below(10)); // of hosts
        const uint128 size = uint128{1} << bits;
        uint128 first = draw(v4) & ~(size - 1);
        uint128 last = first + (size - 1);
        Line out;
        if (chance(2)) {
            out.text = fmt::format("{}/{}", text_of(first), 0);
            // The length in the family that the address is written in.
            const bool quad = out.text.find(':') == std::string::npos;
            out.text.pop_back();
            out.text += std::to_string((quad ? 32 : 128) - bits);
        } else {
            first += below(static_cast<std::uint64_t>(size));
            last = first + below(static_cast<std::uint64_t>(last - first) + 1);
            out.text = text_of(first) + "-" + text_of(last);
        }
        out.text = blanks() + out.text + tail();
        for (const uint128 address : {first, last, first + (last - first) / 2}) {
            sieve_key key{};
            set(key, fields_ == SIEVE_FIELD_SRC ? 0 : 2, address);
            out.members.push_back(key);
        }
        return out;
    }

    std::mt19937_64 random_;
    std::uint32_t fields_;
};

/// Any options that `build` takes for a list of these fields, with sizes that no kind refuses.
BuildOptions any_options(Dresser& dice, std::uint32_t fields, bool ranges, std::uint64_t seed) {
    const bool addresses = fields == SIEVE_FIELD_SRC || fields == SIEVE_FIELD_DST;
    std::vector<const FilterKind*> kinds = addresses ? filter_kinds() : hashing_kinds();
    if (ranges)
        std::erase_if(kinds, [](const FilterKind* kind) {
            return kind->exact() != nullptr && kind->exact()->is_of_keys();
        });
    const FilterKind& kind = *kinds[dice.below(kinds.size())];
    const KindFacts& facts = kind.facts();
    const Choices& choices = facts.choices;
    BuildOptions options;
    options.kind.kind = facts.number;
    if (dice.chance(2))
        options.kind.choices =
            choices.least + static_cast<std::uint32_t>(dice.below(choices.most - choices.least + 1));
    if (facts.takes_alpha && dice.chance(4)) options.kind.alpha = 0.1 * static_cast<double>(dice.below(11));
    if (facts.takes_hashes && dice.chance(4))
        options.kind.hashes = 1 + static_cast<std::uint32_t>(dice.below(16));
    options.kind.effort = static_cast<Effort>(dice.below(3));
    if (dice.chance(3)) options.kind.rounds = static_cast<std::uint32_t>(dice.below(5));
    if (kind.exact() == nullptr)
        options.bits_per_key = std::max<double>(facts.least_bits_per_key + 8 * (facts.changes_live ? 1 : 0),
                                                4 + static_cast<double>(dice.below(30)));
    options.seed = seed;
    options.threads = 1 + static_cast<std::uint32_t>(dice.below(4));
    options.trials = 2'000;
    return options;
}

void build_and_ask(std::uint64_t seed, const std::filesystem::path& folder) {
    constexpr std::uint32_t fields_tried[] = {SIEVE_FIELD_SRC,
                                              SIEVE_FIELD_DST,
                                              SIEVE_FIELD_SRC | SIEVE_FIELD_DST,
                                              SIEVE_FIELD_DPORT | SIEVE_FIELD_PROTO,
                                              SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT,
                                              SIEVE_FIELD_ALL};
    std::mt19937_64 first(seed);
    const std::uint32_t fields = fields_tried[first() % std::size(fields_tried)];
    Dresser dresser(first(), fields);
    const bool ranges = (fields == SIEVE_FIELD_SRC || fields == SIEVE_FIELD_DST) && dresser.chance(2);

    std::vector<sieve_key> members;
    std::vector<std::string> paths;
    const std::uint64_t files = 1 + dresser.below(3);
    for (std::uint64_t f = 0; f < files; f++) {
        std::string text = dresser.chance(5) ? "\xef\xbb\xbf" : "";
        std::vector<std::string> lines;
        for (std::uint64_t entries = 1 + dresser.below(60); entries > 0; entries--) {
            while (dresser.chance(5)) lines.push_back(dresser.filler());
            if (!lines.empty() && !members.empty() && dresser.chance(10)) {
                lines.push_back(lines.back()); // once more
                continue;
            }
            const Dresser::Line line = dresser.line(ranges);
            lines.push_back(line.text);
            members.insert(members.end(), line.members.begin(), line.members.end());
        }
        for (std::size_t i = 0; i < lines.size(); i++)
            text += lines[i] + (i + 1 == lines.size() && dresser.chance(3) ? "" : dresser.end());
        paths.push_back(folder / fmt::format("{}.txt", f));
        std::ofstream(paths.back(), std::ios::binary) << text;
    }
    auto feed = read_feed(paths, fields, {.ranges = ranges});
    ASSERT_TRUE(feed) << feed.error().message;
    const BuildOptions options = any_options(dresser, fields, ranges, seed);
    const auto built = build_set(std::move(feed->keys), std::move(feed->ranges), options, {});
    ASSERT_TRUE(built) << kind_name(options.kind.kind) << ": " << built.error().message;
    for (const sieve_key& member : members)
        ASSERT_TRUE(built->image.contains(member))
            << kind_name(options.kind.kind)
            << fmt::format(": missed {:016x} {:016x} {:016x} {:016x} {:016x}", member.word[0], member.word[1],
                           member.word[2], member.word[3], member.word[4]);
    // The witnesses are members, each of them once.
    std::set<std::vector<__u64>> witnesses;
    for (const sieve_witness& witness : built->image.witnesses()) {
        EXPECT_TRUE(built->image.contains(witness.key));
        witnesses.insert({std::begin(witness.key.word), std::end(witness.key.word)});
    }
    EXPECT_EQ(witnesses.size(), built->image.witnesses().size());
    EXPECT_EQ(witnesses.size(), std::min<std::uint64_t>(64, built->report.keys));
}

TEST(AnyFeed, LosesNoMember) {
    const char* asked = std::getenv("SIEVE_TEST_FEEDS");
    const std::uint64_t rounds = asked == nullptr ? 60 : std::strtoull(asked, nullptr, 10);
    const auto folder = std::filesystem::temp_directory_path() / fmt::format("sieve-feeds-{}", ::getpid());
    std::filesystem::create_directories(folder);
    for (std::uint64_t seed = 1; seed <= rounds && !testing::Test::HasFailure(); seed++) {
        SCOPED_TRACE(fmt::format("seed {}, files in {}", seed, folder.string()));
        build_and_ask(seed, folder);
    }
    if (!testing::Test::HasFailure()) std::filesystem::remove_all(folder);
}

/// A list with one key many times, and a list with a few keys, one of which fills nearly all of it.
TEST(AnyFeed, WitnessesAreAllDifferent) {
    for (const std::size_t repeated : {3U, 100'000U}) {
        KeySet keys(SIEVE_FIELD_SRC);
        sieve_key key{};
        for (std::uint32_t i = 0; i < 5; i++) {
            key.word[1] = sieve_v4_mapped(0x01020300 + i);
            keys.add(key);
        }
        for (std::size_t i = 0; i < repeated; i++) keys.add(key);
        BuildOptions options;
        options.seed = 1;
        options.trials = 1'000;
        const auto built = build_set(std::move(keys), options, {});
        ASSERT_TRUE(built) << built.error().message;
        EXPECT_EQ(built->report.keys, 5U);
        EXPECT_EQ(built->image.file().witnesses, 5U);
    }
}

} // namespace
} // namespace sieve
