// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tables of kind `exact` that change: against a plain set, and store by store. The second test runs a change
// in a child process that stops after every instruction that writes to the table, so it sees every state that
// memory takes, in the order in which lookups may see them, and can let the writer die in any of them.
#include "libsieve/filters/kinds/exact/exact_live_table.hpp"

#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "libsieve/filters/kinds/exact/exact_geometry.hpp"
#include "libsieve/filters/kinds/exact/exact_kind.hpp"
#include "libsieve/filters/kinds/exact/exact_table.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/util/system/clock.hpp"

namespace sieve {
namespace {

using Addresses = std::set<uint128>;

Status no_wait() {
    return {};
}

sieve_key key_of(uint128 address) {
    sieve_key key{};
    key.word[0] = static_cast<std::uint64_t>(address >> 64);
    key.word[1] = static_cast<std::uint64_t>(address);
    return key;
}

template <class Range>
KeySet set_of(const Range& addresses) {
    KeySet keys(SIEVE_FIELD_SRC);
    for (const uint128 address : addresses) {
        if (is_ipv4(address))
            keys.add_ipv4(static_cast<std::uint32_t>(address));
        else
            keys.add(key_of(address));
    }
    return keys;
}

uint128 random_address(std::mt19937_64& random, bool ipv6) {
    if (!ipv6) return sieve_v4_mapped(static_cast<std::uint32_t>(random()));
    return static_cast<uint128>(random() | 1) << 64 | random();
}

/// The same, of those that a table with marks can hold.
uint128 random_markable_address(std::mt19937_64& random, bool ipv6) {
    const uint128 one = random_address(random, ipv6);
    return address_number(sieve_exact_unmarked(static_cast<std::uint64_t>(one >> 64)),
                          static_cast<std::uint64_t>(one));
}

/// The number of the address in a set's copy of the key.
uint128 number_of(const sieve_key& key) {
    return address_number(key.word[0], key.word[1]);
}

/// A table in memory, as in a map: header, counts, lines.
struct Memory {
    sieve_lookup lookup{};
    sieve_file file{};
    std::vector<sieve_line> lines;

    explicit Memory(const exact::Table& table) : lines(table.lines.begin(), table.lines.end()) {
        std::memcpy(&lookup, &table.geometry, sizeof(lookup));
        file.keys = table.keys;
        file.key_sum[0] = table.sum.locate;
        file.key_sum[1] = table.sum.test;
    }
    [[nodiscard]] std::unique_ptr<ChangeableTable> open() {
        auto table = exact_kind.open_table(lookup, file, lines);
        if (!table) {
            ADD_FAILURE() << table.error().message;
            std::abort();
        }
        return std::move(*table);
    }
    /// Whether the table would pass as an image, and lists exactly these.
    void expect_holds(const Addresses& members) const {
        const auto sum = exact_kind.add_up(lookup, lines);
        ASSERT_TRUE(sum) << sum.error().message;
        ASSERT_EQ(sum->keys, file.keys);
        ASSERT_EQ(sum->sum, (HashSum{.locate = file.key_sum[0], .test = file.key_sum[1]}));
        const auto listed = exact_kind.list(lookup, lines);
        ASSERT_TRUE(listed) << listed.error().message;
        Addresses all;
        listed->for_each(0, listed->size(), [&](const sieve_key& key) { all.insert(number_of(key)); });
        ASSERT_EQ(listed->size(), all.size());
        ASSERT_TRUE(all == members) << all.size() << " keys listed, " << members.size() << " expected";
    }
    [[nodiscard]] Addresses marked() const {
        Addresses marked;
        EXPECT_TRUE(
            exact_kind.for_each_entry(lookup, lines, 0, [&](const sieve_key& key, std::uint64_t, bool mark) {
                if (mark) marked.insert(number_of(key));
            }));
        return marked;
    }
    /// Whether exactly these are marked.
    void expect_marked(const Addresses& hit) const {
        const Addresses marked = this->marked();
        ASSERT_TRUE(marked == hit) << marked.size() << " keys marked, " << hit.size() << " expected";
    }
};

constexpr std::uint64_t hour = 3'600'000'000'000;

/// `ends`: of a table whose keys may end. Those that it is built of do not. `marks`: 1 for one with marks.
exact::Table built(const Addresses& members, std::uint64_t ipv4_room, std::uint64_t ipv6_room,
                   std::uint64_t seed, const exact::Values& ends = {}, std::uint32_t marks = 0) {
    std::mt19937_64 random(seed);
    std::array<__u64, SIEVE_HASH_KEY_WORDS> secret{};
    for (auto& word : secret) word = random();
    std::vector<std::uint32_t> ipv4;
    std::vector<uint128> ipv6;
    for (const uint128 address : members) {
        if (is_ipv4(address))
            ipv4.push_back(static_cast<std::uint32_t>(address));
        else
            ipv6.push_back(address);
    }
    std::vector<std::uint16_t> ipv4_ends, ipv6_ends;
    if (ends.bits > 0) {
        ipv4_ends.assign(ipv4.size(), static_cast<std::uint16_t>(exact::no_end(ends.bits)));
        ipv6_ends.assign(ipv6.size(), static_cast<std::uint16_t>(exact::no_end(ends.bits)));
    }
    return exact::build_table({.ipv4 = ipv4,
                               .ipv6 = ipv6,
                               .ipv4_values = ipv4_ends,
                               .ipv6_values = ipv6_ends,
                               .ipv4_room = ipv4_room,
                               .ipv6_room = ipv6_room,
                               .marks = marks},
                              SIEVE_FIELD_SRC, secret, ends)
        .value();
}

/// Random changes of random sizes, up to the load where keys find no room, and down again. With marks,
/// members get theirs before a change and within, whenever it waits.
void follows_a_set(std::size_t keys, std::uint64_t ipv6_share, std::size_t rounds, std::uint64_t seed,
                   std::uint32_t marks = 0) {
    std::mt19937_64 random(seed);
    const auto fresh = [&] {
        const bool ipv6 = random() % 100 < ipv6_share;
        return marks != 0 ? random_markable_address(random, ipv6) : random_address(random, ipv6);
    };
    Addresses members, hit;
    while (members.size() < keys) members.insert(fresh());
    Memory memory(built(members, 0, 0, seed, {}, marks));
    const auto table = memory.open();
    std::uint64_t waits = 0, full = 0, changes = 0;
    std::vector<uint128> order(members.begin(), members.end());
    const auto mark_some = [&](std::size_t count) {
        for (; count > 0 && !order.empty() && marks != 0; count--) {
            const uint128 one = order[random() % order.size()];
            table->mark(key_of(one));
            hit.insert(one);
        }
    };
    for (std::size_t round = 0; round < rounds; round++) {
        mark_some(order.size() / 4);
        Addresses out, in;
        for (std::size_t i = random() % (1 + order.size() / 8); i > 0 && !order.empty(); i--) {
            const std::size_t at = random() % order.size();
            out.insert(order[at]);
            order[at] = order.back();
            order.pop_back();
        }
        // More come than go in half of the rounds.
        for (std::size_t i = random() % (2 + keys / (round % 2 == 0 ? 4 : 16)); i > 0; i--)
            if (const uint128 one = fresh(); !members.contains(one)) in.insert(one);
        for (const uint128 one : out) ASSERT_TRUE(table->contains(key_of(one)));
        for (const uint128 one : in) ASSERT_FALSE(table->contains(key_of(one)));
        for (const uint128 one : out) hit.erase(one);
        const auto did = table->change(set_of(out), set_of(in), [&] {
            waits++;
            mark_some(3);
            return Status();
        });
        ASSERT_TRUE(did) << did.error().message;
        for (const uint128 one : out) members.erase(one);
        for (const sieve_key& key : did->full) in.erase(number_of(key));
        members.insert(in.begin(), in.end());
        order.insert(order.end(), in.begin(), in.end());
        ASSERT_EQ(did->removed, out.size());
        ASSERT_EQ(did->added, in.size());
        full += did->full.size();
        changes += did->removed + did->added;
        ASSERT_EQ(memory.file.changes, changes);
        ASSERT_FALSE(table->unsettled());
        memory.expect_holds(members);
        memory.expect_marked(hit);
        if (testing::Test::HasFatalFailure()) return;
    }
    if (keys >= 50 && keys < 1000) {
        EXPECT_GT(full, 0U) << "it never was full";
        EXPECT_GT(waits, 0U) << "no key ever moved";
    }
    // Empty, and full again.
    ASSERT_TRUE(table->change(set_of(members), set_of(Addresses()), no_wait));
    memory.expect_holds({});
    const auto again = table->change(set_of(Addresses()), set_of(members), no_wait);
    ASSERT_TRUE(again) << again.error().message;
    ASSERT_LE(again->full.size(), members.size() / 8);
    for (const sieve_key& key : again->full) members.erase(number_of(key));
    memory.expect_holds(members);
    memory.expect_marked({});
}

TEST(ExactLiveTable, FollowsASetWithMarks) {
    for (const std::uint64_t ipv6_share : {0, 50, 100})
        for (const std::size_t keys : {1, 3, 13, 27, 100, 300})
            for (std::uint64_t seed = 1; seed <= 3; seed++) {
                SCOPED_TRACE(fmt::format("{} keys, {}% IPv6, seed {}", keys, ipv6_share, seed));
                follows_a_set(keys, ipv6_share, 40, seed, 1);
                if (HasFatalFailure()) return;
            }
    follows_a_set(12'000, 10, 4, 1, 1);
}

TEST(ExactLiveTable, FollowsASetOfIpv4Addresses) {
    for (const std::size_t keys : {0, 1, 2, 3, 5, 10, 13, 27, 50, 100, 300})
        for (std::uint64_t seed = 1; seed <= 3; seed++) {
            SCOPED_TRACE(fmt::format("{} keys, seed {}", keys, seed));
            follows_a_set(keys, 0, 60, seed);
            if (HasFatalFailure()) return;
        }
    follows_a_set(12'000, 0, 4, 1); // three lanes
}

/// Four lanes, at the load of the builder: guests come and go among half a million keys.
TEST(ExactLiveTable, TakesGuestsAtTheBuildersLoad) {
    std::mt19937_64 random(1);
    std::vector<std::uint32_t> list(520'000), guests(5'000);
    for (std::uint32_t& address : list) address = static_cast<std::uint32_t>(random());
    for (std::uint32_t& address : guests) address = static_cast<std::uint32_t>(random());
    const std::array<__u64, SIEVE_HASH_KEY_WORDS> secret{1, 2, 3};
    auto table = exact::build_table({.ipv4 = list}, SIEVE_FIELD_SRC, secret);
    ASSERT_TRUE(table);
    EXPECT_EQ(table->geometry.width, 16U);
    Memory memory(*table);
    const auto live = memory.open();
    std::uint64_t waits = 0;
    const auto wait = [&] {
        waits++;
        return Status();
    };
    for (int round = 0; round < 3; round++) {
        KeySet in(SIEVE_FIELD_SRC);
        for (const std::uint32_t guest : guests)
            if (!live->contains(key_of(sieve_v4_mapped(guest)))) in.add_ipv4(guest);
        const auto came = live->change(KeySet(SIEVE_FIELD_SRC), in, wait);
        ASSERT_TRUE(came && came->full.empty());
        for (const std::uint32_t guest : guests) ASSERT_TRUE(live->contains(key_of(sieve_v4_mapped(guest))));
        const auto went = live->change(in, KeySet(SIEVE_FIELD_SRC), wait);
        ASSERT_TRUE(went && went->removed == came->added);
        const auto sum = exact_kind.add_up(memory.lookup, memory.lines);
        ASSERT_TRUE(sum) << sum.error().message;
        EXPECT_EQ(sum->keys, table->keys);
        EXPECT_EQ(sum->sum, table->sum);
    }
    for (const std::uint32_t member : list) ASSERT_TRUE(live->contains(key_of(sieve_v4_mapped(member))));
    EXPECT_GT(waits, 0U);
    EXPECT_LT(waits, 60U) << "insertions do not share their waits";
}

TEST(ExactLiveTable, FollowsASetOfBothFamilies) {
    for (const std::size_t keys : {1, 4, 10, 30, 100, 300})
        for (const std::uint64_t share : {50, 100}) {
            SCOPED_TRACE(fmt::format("{} keys, {}% of IPv6", keys, share));
            follows_a_set(keys, share, 60, keys + share);
            if (HasFatalFailure()) return;
        }
    follows_a_set(5'000, 60, 4, 1);
}

/// A list as it is built has room for a few keys more, and a table with room for all that it was built for.
TEST(ExactLiveTable, KnowsWhatItHasRoomFor) {
    std::mt19937_64 random(1);
    for (const std::size_t keys : {50, 1'000, 30'000}) {
        Addresses members;
        while (members.size() < keys) members.insert(random_address(random, false));
        Addresses more;
        while (more.size() < keys / 4)
            if (const uint128 one = random_address(random, false); !members.contains(one)) more.insert(one);
        Memory roomy(built(members, keys / 4, 0, keys));
        const auto table = roomy.open();
        EXPECT_TRUE(table->has_room_for(set_of(more)));
        const auto did = table->change(set_of(Addresses()), set_of(more), no_wait);
        ASSERT_TRUE(did);
        EXPECT_EQ(did->full.size(), 0U) << keys;
        Memory tight(built(members, 0, 0, keys));
        EXPECT_FALSE(tight.open()->has_room_for(set_of(more))) << keys;
        // No table takes a family that it has no part for.
        EXPECT_FALSE(tight.open()->has_room_for(set_of(Addresses{uint128{1} << 100})));
    }
}

/// Keys come for a time, end as time passes, come again while their entries are still there, and get other
/// ends. Time passes by moving the base that ends are counted from.
struct Ended {
    std::size_t ended = 0, revived = 0, swept = 0;
};

void follows_keys_that_end(std::size_t keys, std::uint64_t ipv6_share, std::uint64_t seed, Ended& all) {
    constexpr std::uint64_t longest = 10 * hour;
    std::mt19937_64 random(seed);
    Addresses built_of;
    while (built_of.size() < keys) built_of.insert(random_address(random, random() % 100 < ipv6_share));
    const exact::Values values = exact::ends_for(keys, longest, program_now());
    const std::uint64_t unit = std::uint64_t{1} << values.unit;
    Memory memory(built(built_of, keys, ipv6_share > 0 ? keys : 0, seed, values));
    std::unique_ptr<ChangeableTable> live = memory.open();
    std::map<uint128, std::uint64_t> ends; // of members, and of those that have ended
    for (const uint128 one : built_of) ends[one] = never_ends;
    std::uint64_t past = 0; // since the table was built
    // Times wrap: on a machine that was started lately, the base and ends move to before its start.
    const auto is_over = [](std::uint64_t end) {
        return end != never_ends && static_cast<std::int64_t>(end - program_now()) <= 0;
    };
    const auto look = [&] {
        std::size_t entries = 0;
        ASSERT_TRUE(exact_kind.for_each_entry(memory.lookup, memory.lines, program_now(),
                                              [&](const sieve_key& key, std::uint64_t end, bool) {
                                                  entries++;
                                                  const auto found = ends.find(number_of(key));
                                                  ASSERT_TRUE(found != ends.end());
                                                  if (is_over(found->second))
                                                      EXPECT_TRUE(is_over(end));
                                                  else
                                                      EXPECT_EQ(end, found->second);
                                              }));
        ASSERT_EQ(entries, ends.size());
        for (const auto& [address, end] : ends) {
            const auto now = live->end_of(key_of(address));
            ASSERT_EQ(now, is_over(end) ? std::nullopt : std::optional(end));
        }
        const auto sum = exact_kind.add_up(memory.lookup, memory.lines);
        ASSERT_TRUE(sum) << sum.error().message;
        ASSERT_EQ(sum->keys, memory.file.keys);
        ASSERT_EQ(sum->keys, ends.size());
        ASSERT_EQ(sum->sum, (HashSum{.locate = memory.file.key_sum[0], .test = memory.file.key_sum[1]}));
    };
    for (int round = 0; round < 60; round++) {
        // Half of the range at most, so that every end can be stated. Ends lie on whole units, and the clock
        // goes on: a round begins amid a unit, so that nothing ends during the round.
        auto& base = reinterpret_cast<sieve_exact_ipv6&>(memory.lines.front()).base;
        std::uint64_t step = random() % (hour / 8);
        step += unit - (program_now() - base + step + unit / 2) % unit;
        if (past + step < longest) {
            past += step;
            base -= step;
            live = memory.open();
            for (auto& [address, end] : ends)
                if (end != never_ends) end -= step;
        }
        const std::uint64_t life = random() % 4 == 0 ? never_ends : 1 + random() % longest;
        const std::uint64_t end = life == never_ends ? never_ends : program_now() + life;
        Addresses in, out;
        for (std::size_t i = random() % (1 + keys / 8); i > 0; i--) {
            const auto old = std::next(ends.begin(), static_cast<std::ptrdiff_t>(random() % ends.size()));
            const bool is_member = !is_over(old->second);
            switch (random() % 4) {
            case 0:
                in.insert(random_address(random, random() % 100 < ipv6_share));
                break;
            case 1:
                if (is_member) out.insert(old->first);
                break;
            case 2:
                if (is_member && !out.contains(old->first)) {
                    ASSERT_TRUE(live->set_end(key_of(old->first), end));
                    old->second = *live->end_of(key_of(old->first));
                }
                break;
            default:
                for (const auto& [address, its_end] : ends)
                    if (is_over(its_end) && random() % 4 == 0) in.insert(address);
            }
        }
        for (const auto& [address, its_end] : ends)
            if (!is_over(its_end)) in.erase(address);
        const auto did = live->change(set_of(out), set_of(in), no_wait, end);
        ASSERT_TRUE(did) << did.error().message;
        for (const sieve_key& key : did->full) in.erase(number_of(key));
        ASSERT_EQ(did->added, in.size());
        ASSERT_EQ(did->removed, out.size());
        for (const uint128 one : out) ends.erase(one);
        for (const uint128 one : in) {
            const auto stated = live->end_of(key_of(one));
            ASSERT_TRUE(stated);
            if (life == never_ends) {
                ASSERT_EQ(*stated, never_ends);
            } else {
                ASSERT_GE(*stated, end);
                ASSERT_LT(*stated, end + unit);
            }
            all.revived += ends.contains(one) ? 1 : 0;
            ends[one] = *stated;
        }
        for (const auto& [address, its_end] : ends) all.ended += is_over(its_end) ? 1 : 0;
        look();
        if (testing::Test::HasFailure()) return;
        if (round % 7 != 6) continue;
        const auto gone = live->sweep(no_wait);
        ASSERT_TRUE(gone) << gone.error().message;
        ASSERT_EQ(*gone, std::erase_if(ends, [&](const auto& one) { return is_over(one.second); }));
        all.swept += *gone;
        look();
        if (testing::Test::HasFailure()) return;
    }
}

TEST(ExactLiveTable, FollowsKeysThatEnd) {
    Ended all;
    for (const std::uint64_t share : {0, 40, 100})
        for (std::uint64_t seed = 1; seed <= 5; seed++) {
            SCOPED_TRACE(fmt::format("{}% of IPv6, seed {}", share, seed));
            follows_keys_that_end(200, share, seed, all);
            if (HasFailure()) return;
        }
    EXPECT_GT(all.ended, 100U);
    EXPECT_GT(all.revived, 100U);
    EXPECT_GT(all.swept, 20U);
    std::cout << fmt::format("{} ended, {} came again, {} were swept\n", all.ended, all.revived, all.swept);
}

TEST(ExactLiveTable, SaysWhichLivesItCanState) {
    const Addresses members{sieve_v4_mapped(1), sieve_v4_mapped(2)};
    Memory plain(built(members, 0, 0, 1));
    EXPECT_FALSE(plain.open()->can_state(hour));
    EXPECT_FALSE(plain.open()->set_end(key_of(sieve_v4_mapped(1)), program_now() + hour));
    EXPECT_TRUE(plain.open()->set_end(key_of(sieve_v4_mapped(1)), never_ends));
    EXPECT_FALSE(plain.open()->change(set_of(Addresses()), set_of(Addresses{sieve_v4_mapped(3)}), no_wait,
                                      program_now() + hour));
    Memory hours(
        built(members, 0, 0, 1, {.bits = 8, .meaning = SIEVE_EXACT_ENDS, .unit = 37, .base = program_now()}));
    EXPECT_TRUE(hours.open()->can_state(hour));
    EXPECT_FALSE(hours.open()->can_state(12 * hour)) << "it is beyond the last unit";
    EXPECT_FALSE(hours.open()->can_state(hour / 60)) << "a unit is over two minutes";
    const exact::Values fine = exact::ends_for(2, hour, program_now(), 1'000'000'000);
    EXPECT_LE(std::uint64_t{1} << fine.unit, 1'000'000'000U);
    Memory seconds(built(members, 0, 0, 1, fine));
    EXPECT_TRUE(seconds.open()->can_state(hour) && seconds.open()->can_state(1'000'000'000));
    const exact::Values years = exact::ends_for(2, 3650 * 24 * hour, program_now());
    EXPECT_TRUE(exact::end_of(years, program_now(), 3650 * 24 * hour));
}

// --- instruction by instruction ---------------------------------------------------------------------------

/// What a lookup, or the next writer, may find.
struct State {
    Memory memory;
    std::uint64_t waits; // that had ended
};

/// What a table's memory shares with the writer of a change: a header, and the lines behind it.
struct Shared {
    sieve_file file;
    std::uint64_t waits;

    [[nodiscard]] sieve_line* lines() { return reinterpret_cast<sieve_line*>(this + 1); }
    static std::size_t bytes(std::size_t lines) { return sizeof(Shared) + lines * sizeof(sieve_line); }
};

void* map_shared(std::size_t bytes, int flags = 0) {
    void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | flags, -1, 0);
    if (pages == MAP_FAILED) std::abort();
    return pages;
}

void add_state(std::vector<State>& states, Shared& shared) {
    State& last = states.back();
    const std::size_t bytes = last.memory.lines.size() * sizeof(sieve_line);
    if (std::memcmp(shared.lines(), last.memory.lines.data(), bytes) == 0 &&
        std::memcmp(&shared.file, &last.memory.file, sizeof(shared.file)) == 0 && shared.waits == last.waits)
        return;
    states.push_back(last);
    State& now = states.back();
    std::memcpy(now.memory.lines.data(), shared.lines(), bytes);
    now.memory.file = shared.file;
    now.waits = shared.waits;
}

#ifdef __x86_64__
/// Records the memory after each instruction that writes to it. The pages can only be read, so each such
/// instruction faults. The fault's handler makes them writable and sets the trap flag, so that the processor
/// stops again after this one instruction (of `rep movs`, after this one word).
class Recorder {
  public:
    Recorder(Shared& shared, std::size_t bytes)
        : shared_(shared), bytes_(bytes), copies_(map_shared(size, MAP_NORESERVE)) {}
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;
    ~Recorder() { ::munmap(copies_, size); }

    /// In the child that is to write.
    void begin() {
        own = this;
        struct sigaction action {};
        action.sa_flags = SA_SIGINFO;
        action.sa_sigaction = on_fault;
        ::sigaction(SIGSEGV, &action, nullptr);
        action.sa_sigaction = on_trap;
        ::sigaction(SIGTRAP, &action, nullptr);
        protect(PROT_READ);
    }
    void add_to(std::vector<State>& states) const {
        for (std::size_t i = 0; i < count(); i++) add_state(states, *static_cast<Shared*>(copy(i)));
    }

  private:
    static constexpr std::size_t size = std::size_t{1} << 30; // only what is used takes memory
    static constexpr greg_t trap_flag = 0x100;
    static inline Recorder* own = nullptr;

    static void on_fault(int, siginfo_t* fault, void* context) {
        const auto at =
            static_cast<const char*>(fault->si_addr) - reinterpret_cast<const char*>(&own->shared_);
        if (at < 0 || static_cast<std::size_t>(at) >= own->bytes_) {
            ::signal(SIGSEGV, SIG_DFL); // somebody else's fault, which comes again
            return;
        }
        protect(PROT_READ | PROT_WRITE);
        static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] |= trap_flag;
    }
    static void on_trap(int, siginfo_t*, void* context) {
        static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~trap_flag;
        if (static_cast<char*>(own->copy(own->count() + 1)) > static_cast<char*>(own->copies_) + size)
            ::_exit(2);
        std::memcpy(own->copy(own->count()), &own->shared_, own->bytes_);
        own->count()++;
        protect(PROT_READ);
    }
    static void protect(int access) {
        if (::mprotect(&own->shared_, own->bytes_, access) != 0) ::_exit(3);
    }
    [[nodiscard]] std::size_t& count() const { return *static_cast<std::size_t*>(copies_); }
    [[nodiscard]] void* copy(std::size_t i) const {
        return static_cast<char*>(copies_) + sizeof(sieve_line) + i * bytes_;
    }

    Shared& shared_;
    std::size_t bytes_;
    void* copies_;
};
#else
/// The same on other processors: the child stops after every instruction, which takes much longer.
class Recorder {
  public:
    Recorder(Shared&, std::size_t) {}
    void begin() {
        ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        ::raise(SIGSTOP);
    }
};
#endif

/// All states of the memory while `out` go and `in` come, the first and the last one included.
std::vector<State> states_of(const Memory& before, const KeySet& out, const KeySet& in, std::uint64_t end) {
    const std::size_t bytes = Shared::bytes(before.lines.size());
    auto& shared = *static_cast<Shared*>(map_shared(bytes));
    const std::span<sieve_line> all(shared.lines(), before.lines.size());
    shared.file = before.file;
    std::copy(before.lines.begin(), before.lines.end(), all.begin());
    const auto table = exact_kind.open_table(before.lookup, shared.file, all);
    EXPECT_TRUE(table);

    Recorder recorder(shared, bytes);
    const pid_t child = ::fork();
    if (child == 0) {
        recorder.begin();
        const auto did = (*table)->change(
            out, in,
            [&] {
                shared.waits++;
                return Status();
            },
            end);
        ::_exit(did ? 0 : 1);
    }
    std::vector<State> states{{before, 0}};
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
#ifdef __x86_64__
    recorder.add_to(states);
#else
    while (WIFSTOPPED(status)) {
        add_state(states, shared);
        if (::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) {
            ADD_FAILURE() << "ptrace: " << std::strerror(errno);
            break;
        }
        EXPECT_EQ(::waitpid(child, &status, 0), child);
    }
#endif
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    ::munmap(&shared, bytes);
    return states;
}

/// Every word or place that holds a key in all of these states: a lookup that reads each word in whichever of
/// them finds the key there.
class Epoch {
  public:
    explicit Epoch(std::span<const State> states) : states_(states) {}

    [[nodiscard]] bool surely_finds(uint128 address) const {
        const sieve_exact& exact = *sieve_exact_of(&states_.front().memory.lookup);
        if (exact.value_bits > 0) return surely_finds_alive(address);
        if (is_ipv4(address)) {
            const sieve_exact_place at =
                sieve_exact_locate(&exact, sieve_exact_permute(&exact, static_cast<std::uint32_t>(address)));
            constexpr std::uint64_t none = ~std::uint64_t{0}; // no lane matches
            return always([&](const Memory& memory) {
                       return sieve_exact_test(&exact, word(memory, at.first), none, at.rest) != 0;
                   }) ||
                   always([&](const Memory& memory) {
                       return sieve_exact_test(&exact, none, word(memory, at.second), at.rest) != 0;
                   });
        }
        const auto& part = reinterpret_cast<const sieve_exact_ipv6&>(states_.front().memory.lines.front());
        const sieve_exact_lines at = exact::lines_of(part, address);
        for (const std::uint32_t line : {at.first, at.second})
            for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++)
                if (always([&](const Memory& memory) {
                        return exact::address_at(memory.lines[sieve_exact_ipv6_line(&exact) + line], place,
                                                 exact.marks) == address;
                    }))
                    return true;
        return false;
    }

    /// Everything that some lookup may match, by reading each word in any of the states.
    [[nodiscard]] Addresses may_match() const {
        Addresses all;
        const Memory& first = states_.front().memory;
        const sieve_exact& exact = *sieve_exact_of(&first.lookup);
        for (const State& state : states_) {
            const auto parts = exact::Parts::of(state.memory.lookup, state.memory.lines);
            EXPECT_EQ(exact::list_lines(parts, SIEVE_EXACT_IPV4_LINE, sieve_exact_ipv6_line(&exact), false,
                                        [&](uint128 address, std::uint32_t, bool) { all.insert(address); }),
                      "");
        }
        const auto ipv6 = exact::Parts::of(first.lookup, first.lines).ipv6_lines().size();
        for (std::size_t line = sieve_exact_ipv6_line(&exact); line < sieve_exact_ipv6_line(&exact) + ipv6;
             line++)
            for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++)
                for (const State& one : states_)
                    for (const State& two : states_) {
                        const std::uint64_t upper = one.memory.lines[line].word[place];
                        const uint128 address =
                            address_number(exact.marks != 0 ? sieve_exact_unmarked(upper) : upper,
                                           two.memory.lines[line].word[place + SIEVE_EXACT_IPV6_WAYS]);
                        if (!is_ipv4(address)) all.insert(address);
                    }
        return all;
    }

  private:
    /// The same of a table of ends: a lookup takes the address where it sees it first, and the value there.
    /// An address of IPv6 and its value are read one after the other, or on a processor of weak order the
    /// other way round.
    [[nodiscard]] bool surely_finds_alive(uint128 address) const {
        const auto parts = [](const Memory& memory) { return exact::Parts::of(memory.lookup, memory.lines); };
        const exact::Values values = parts(states_.front().memory).values();
        const auto is_alive = [&](std::uint32_t value) {
            return exact::left_of(values, value, program_now()) != std::uint64_t{0};
        };
        if (is_ipv4(address)) {
            const sieve_exact& exact = *sieve_exact_of(&states_.front().memory.lookup);
            const auto lower = static_cast<std::uint32_t>(address);
            const sieve_exact_place at = sieve_exact_locate(&exact, sieve_exact_permute(&exact, lower));
            for (const State& first : states_)
                for (const State& second : states_) {
                    const std::uint64_t a = word(first.memory, at.first), b = word(second.memory, at.second);
                    const sieve_exact_match match = sieve_exact_find(&exact, a, b, at.rest);
                    if ((match.first | match.second) == 0) return false;
                    if (!is_alive(match.first != 0 ? sieve_exact_lane_value(&exact, a, match.first)
                                                   : sieve_exact_lane_value(&exact, b, match.second)))
                        return false;
                }
            return true;
        }
        const auto& part = reinterpret_cast<const sieve_exact_ipv6&>(states_.front().memory.lines.front());
        const sieve_exact_lines at = exact::lines_of(part, address);
        bool found = false;
        for (const std::uint32_t line : {at.first, at.second})
            for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++) {
                const auto holds = [&](const Memory& memory) {
                    return exact::address_at(parts(memory).ipv6_lines()[line], place) == address;
                };
                found = found || always(holds);
                const bool ever = std::any_of(states_.begin(), states_.end(),
                                              [&](const State& state) { return holds(state.memory); });
                if (ever && !always([&](const Memory& memory) {
                        return is_alive(exact::value_at(parts(memory).ipv6_values(), line, place));
                    }))
                    return false;
            }
        return found;
    }

    template <class Holds>
    [[nodiscard]] bool always(const Holds& holds) const {
        return std::all_of(states_.begin(), states_.end(),
                           [&](const State& state) { return holds(state.memory); });
    }
    static std::uint64_t word(const Memory& memory, std::uint32_t word) {
        return memory.lines[sieve_exact_line(word)].word[sieve_exact_index(word)];
    }

    std::span<const State> states_;
};

/// What the next writer makes of a state in which the writer died. `hit`: the members that had marks.
void settles(Memory memory, const Addresses& stay, const Addresses& may_be, const Addresses& hit) {
    const auto table = memory.open();
    if (table->unsettled()) {
        const std::uint64_t changes = memory.file.changes;
        std::uint64_t waits = 0;
        const Status settled = table->settle([&] {
            waits++;
            return Status();
        });
        ASSERT_TRUE(settled) << settled.error().message;
        EXPECT_GE(waits, 1U);
        EXPECT_GT(memory.file.changes, changes);
    }
    ASSERT_FALSE(table->unsettled());
    const auto listed = exact_kind.list(memory.lookup, memory.lines);
    ASSERT_TRUE(listed) << listed.error().message;
    Addresses all;
    listed->for_each(0, listed->size(), [&](const sieve_key& key) { all.insert(number_of(key)); });
    EXPECT_TRUE(std::includes(all.begin(), all.end(), stay.begin(), stay.end())) << "a member is lost";
    EXPECT_TRUE(std::includes(may_be.begin(), may_be.end(), all.begin(), all.end())) << "a stranger came";
    const Addresses marked = memory.marked();
    for (const uint128 address : marked) EXPECT_TRUE(hit.contains(address)) << "a mark came by itself";
    for (const uint128 address : hit)
        EXPECT_TRUE(marked.contains(address) || !stay.contains(address)) << "a mark is lost";
    memory.expect_holds(all);
}

struct Seen {
    std::size_t states = 0;
    std::uint64_t waits = 0;
    std::size_t unsettled = 0;
};

enum class Sort : std::uint8_t { plain, ends, marks };

/// One change of a table that is nearly full, so that keys move.
Seen watch_a_change(std::size_t keys, std::uint64_t ipv6_share, std::size_t come, std::uint64_t seed,
                    std::size_t refill, Sort sort) {
    std::mt19937_64 random(seed);
    const bool ends = sort == Sort::ends;
    const auto fresh = [&] {
        const bool ipv6 = random() % 100 < ipv6_share;
        return sort == Sort::marks ? random_markable_address(random, ipv6) : random_address(random, ipv6);
    };
    Addresses members;
    while (members.size() < keys) members.insert(fresh());
    const std::uint64_t end = ends ? program_now() + hour : never_ends;
    Memory memory(built(members, 0, 0, seed,
                        ends ? exact::ends_for(keys, 2 * hour, program_now()) : exact::Values(),
                        sort == Sort::marks ? 1 : 0));
    // Fill it until there is no room for one more.
    for (std::size_t i = 0; i < refill; i++) {
        const uint128 one = fresh();
        const auto did = memory.open()->change(set_of(Addresses()), set_of(Addresses{one}), no_wait, end);
        if (did->full.empty()) members.insert(one);
    }
    Addresses hit;
    for (const uint128 member : members) {
        if (sort != Sort::marks || random() % 2 == 0) continue;
        memory.open()->mark(key_of(member));
        hit.insert(member);
    }
    Addresses out, in;
    for (std::size_t i = 0; i < come; i++) {
        out.insert(*std::next(members.begin(), static_cast<std::ptrdiff_t>(random() % members.size())));
        in.insert(fresh());
    }
    std::vector<State> states = states_of(memory, set_of(out), set_of(in), end);
    Addresses stay, may_be = members;
    std::set_difference(members.begin(), members.end(), out.begin(), out.end(),
                        std::inserter(stay, stay.end()));
    may_be.insert(in.begin(), in.end());

    Seen seen{.states = states.size(), .waits = states.back().waits};
    for (std::size_t first = 0; first < states.size();) {
        // What a lookup may see that does not last from before a wait to after it: the states between two
        // waits.
        std::size_t last = first;
        while (last + 1 < states.size() && states[last + 1].waits == states[first].waits) last++;
        const Epoch epoch(std::span<const State>(states).subspan(first, last - first + 1));
        for (const uint128 member : stay)
            EXPECT_TRUE(epoch.surely_finds(member))
                << "a member may be missed after wait " << states[first].waits;
        for (const uint128 address : epoch.may_match()) {
            const auto upper = static_cast<std::uint64_t>(address >> 64);
            const auto lower = static_cast<std::uint64_t>(address);
            const bool half = upper == 0 || lower == static_cast<std::uint64_t>(exact::no_address);
            EXPECT_TRUE(may_be.contains(address) || (!is_ipv4(address) && half))
                << fmt::format("{:x}:{:x} may match", upper, lower);
        }
        if (testing::Test::HasFailure()) return seen;
        first = last + 1;
    }
    for (const State& state : states) {
        settles(state.memory, stay, may_be, hit);
        seen.unsettled +=
            reinterpret_cast<const sieve_exact_ipv6&>(state.memory.lines.front()).unsettled != 0;
        if (testing::Test::HasFailure()) return seen;
    }
    return seen;
}

TEST(ExactLiveTable, MissesNoMemberInAnyStateAndSettlesEachOfThem) {
    Seen all;
    const auto watch = [&](std::size_t keys, std::uint64_t share, std::size_t come, std::size_t refill) {
        for (std::uint64_t seed = 1; seed <= 2; seed++) {
            SCOPED_TRACE(fmt::format("{} keys, {}% of IPv6, {} come, seed {}", keys, share, come, seed));
            for (const Sort sort : {Sort::plain, Sort::ends, Sort::marks}) {
                const Seen seen = watch_a_change(keys, share, come, seed, refill, sort);
                if (testing::Test::HasFailure()) return;
                all.states += seen.states;
                all.waits += seen.waits;
                all.unsettled += seen.unsettled;
            }
        }
    };
    watch(3, 0, 2, 20);
    watch(27, 0, 3, 20);
    watch(50, 0, 1, 20);
    watch(4, 100, 2, 8);
    watch(15, 100, 3, 8);
    watch(40, 50, 3, 20);
    std::cout << fmt::format("{} states, {} of them unsettled, {} waits\n", all.states, all.unsettled,
                             all.waits);
    EXPECT_GT(all.waits, 24U) << "too few keys moved";
    EXPECT_GT(all.unsettled, 100U);
}

} // namespace
} // namespace sieve
