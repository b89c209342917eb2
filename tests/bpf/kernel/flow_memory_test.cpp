// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/flow_memory.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include <bpf/bpf.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/mirror.hpp"
#include "bpf/note_program.hpp"
#include "bpf/packet.hpp"
#include "bpf/shared_program.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/util/system/clock.hpp"

namespace sieve::kernel {
namespace {

using namespace test;
using namespace std::chrono_literals;

// The i-th flow of 192.0.2.1 to port 443 of many addresses.
std::uint32_t peer_of(std::uint32_t i) {
    return 0x0b000000U + i / 16;
}
std::uint16_t port_of(std::uint32_t i) {
    return static_cast<std::uint16_t>(32768 + i % 16 * 1999);
}
sieve_key key_of(std::uint32_t i, std::uint8_t proto = 6) {
    return {{0, sieve_v4_mapped(0xc0000201), 0, sieve_v4_mapped(peer_of(i)),
             sieve_transport_word(port_of(i), 443, proto)}};
}
Bytes frame_of(std::uint32_t i, std::uint8_t flags) {
    Bytes frame = (Ethernet{} / IPv4{.src = "192.0.2.1"} / Tcp{.dport = 443, .flags = flags}).bytes();
    for (int byte = 0; byte < 4; byte++)
        frame[30 + byte] = static_cast<std::uint8_t>(peer_of(i) >> (24 - 8 * byte));
    frame[34] = static_cast<std::uint8_t>(port_of(i) >> 8U);
    frame[35] = static_cast<std::uint8_t>(port_of(i));
    return frame;
}

// Pages as the kernel has them.
sieve_flow_page page_of(const FlowMemory& memory, std::uint32_t number) {
    sieve_flow_page page{};
    EXPECT_EQ(bpf_map_lookup_elem(memory.fd(), &number, &page), 0);
    return page;
}
void write_page(const FlowMemory& memory, std::uint32_t number, const sieve_flow_page& page) {
    EXPECT_EQ(bpf_map_update_elem(memory.fd(), &number, &page, BPF_ANY), 0);
}
sieve_flow_head head_of(const FlowMemory& memory) {
    sieve_flow_head head{};
    const sieve_flow_page page = page_of(memory, 0);
    std::memcpy(&head, &page, sizeof(head));
    return head;
}
void write_head(const FlowMemory& memory, const sieve_flow_head& head) {
    sieve_flow_page page = page_of(memory, 0);
    std::memcpy(&page, &head, sizeof(head));
    write_page(memory, 0, page);
}

TEST(FlowMemory, HasBounds) {
    EXPECT_EQ(FlowMemory::create(least_flows - 1).error().kind, ErrorKind::invalid_request);
    EXPECT_EQ(FlowMemory::create(most_flows + 1).error().kind, ErrorKind::invalid_request);
    const FlowMemory memory = value_or_fail(FlowMemory::create(100'000));
    EXPECT_EQ(memory.max_flows(), 100'000U);
    const FlowMemoryFacts facts = memory.facts();
    EXPECT_EQ(facts.bytes, flow_memory_bytes(100'000));
    EXPECT_EQ(facts.bytes, (100'000U * 3 / 512 + 1 + 1) * 4096);
    EXPECT_EQ(facts.entries, (100'000U * 3 / 512 + 1) * 512);
    EXPECT_EQ(facts.used, 0U);
}

TEST(FlowMemory, OpensOnlyItsOwnLayout) {
    const FlowMemory memory = value_or_fail(FlowMemory::create(1000));
    ASSERT_TRUE(memory.note(key_of(1), FlowAge::begun));
    EXPECT_TRUE(value_or_fail(FlowMemory::open(memory.id())).holds(key_of(1)));

    // A map that is none.
    std::vector<sieve_line> lines(100);
    const FilterMap filter = value_or_fail(FilterMap::create(lines, "other"));
    EXPECT_EQ(FlowMemory::open(filter.id()).error().kind, ErrorKind::kernel_refused);
    // One of another version.
    const FilterMap older = value_or_fail(FilterMap::create(lines, "sieve_flow_mem"));
    EXPECT_EQ(FlowMemory::open(older.id()).error().kind, ErrorKind::other_version);
    const sieve_flow_head head = head_of(memory);
    for (const bool of_magic : {true, false}) {
        sieve_flow_head other = head;
        (of_magic ? other.magic : other.where.pages)++;
        write_head(memory, other);
        EXPECT_EQ(FlowMemory::open(memory.id()).error().kind, ErrorKind::other_version);
    }
}

TEST(FlowMemory, HasSecretsOfItsOwn) {
    std::set<std::uint64_t> words;
    for (int i = 0; i < 2; i++) {
        const FlowMemory memory = value_or_fail(FlowMemory::create(1000));
        const sieve_flow_where where = head_of(memory).where;
        words.insert(where.hash_key, where.hash_key + SIEVE_HASH_KEY_WORDS);
    }
    EXPECT_EQ(words.size(), 2U * SIEVE_HASH_KEY_WORDS);
}

TEST(FlowMemory, NotesAsThePacketPathDoes) {
    const FlowMemory memory = value_or_fail(FlowMemory::create(1000));
    const NoteProgram note;
    note.use(memory);
    note.see(frame_of(1, syn));
    EXPECT_TRUE(memory.holds(key_of(1)));
    EXPECT_FALSE(memory.holds(key_of(2)));
    memory.age(69s);
    EXPECT_FALSE(memory.holds(key_of(1)));

    ASSERT_TRUE(memory.note(key_of(2), FlowAge::established));
    EXPECT_EQ(memory.facts().used, 2U) << "the flow, and its pair of addresses";
    EXPECT_EQ(memory.facts().established, 2U);
    memory.age(7430s);
    EXPECT_TRUE(memory.holds(key_of(2)));
    note.see(frame_of(2, ack));
    memory.age(7430s);
    EXPECT_TRUE(memory.holds(key_of(2))) << "renewed, and not noted once more";
    EXPECT_EQ(note.counts().begun, 1U);
    ASSERT_TRUE(memory.note(key_of(2), FlowAge::begun));
    memory.age(7430s);
    EXPECT_FALSE(memory.holds(key_of(2)))
        << "a shorter life replaces no longer one, but the flow was at its end";

    ASSERT_TRUE(memory.note(key_of(5), FlowAge::closing));
    memory.age(110s);
    EXPECT_TRUE(memory.holds(key_of(5)));
    note.see(frame_of(5, ack));
    memory.age(110s);
    EXPECT_TRUE(memory.holds(key_of(5)));
    memory.age(20s);
    EXPECT_FALSE(memory.holds(key_of(5))) << "what follows the FIN keeps it no longer";

    const sieve_key sctp = key_of(3, 132), esp = key_of(4, 50);
    ASSERT_TRUE(memory.note(sctp, FlowAge::begun));
    ASSERT_TRUE(memory.note(esp, FlowAge::begun));
    EXPECT_TRUE(memory.holds(sctp));
    EXPECT_TRUE(memory.holds(esp));
}

TEST(FlowMemory, IsSwept) {
    const FlowMemory memory = value_or_fail(FlowMemory::create(1000));
    for (std::uint32_t i = 0; i < 100; i++) ASSERT_TRUE(memory.note(key_of(16 * i, 17), FlowAge::begun));
    ASSERT_TRUE(memory.note(key_of(5), FlowAge::established));
    EXPECT_EQ(memory.facts().used, 202U);
    memory.age(100s);
    EXPECT_EQ(memory.facts().used, 2U);
    const auto filled = [&] {
        std::uint64_t words = 0;
        for (std::uint32_t page = 1; page <= 1000 * 3 / 512 + 1; page++) {
            const sieve_flow_page value = page_of(memory, page);
            for (const sieve_flow_line& line : value.line)
                for (const std::uint64_t entry : line.entry) words += entry != 0;
        }
        return words;
    };
    EXPECT_EQ(filled(), 202U);
    memory.sweep();
    EXPECT_EQ(filled(), 2U);
    EXPECT_TRUE(memory.holds(key_of(5)));
}

// Established connections at load 0.5, then a flood of new ones, as from a program on this host that begins
// connections without end.
TEST(FlowMemory, NoFloodEvictsWhatIsEstablished) {
    const FlowMemory memory = value_or_fail(FlowMemory::create(2000)); // 6,000 entries
    const NoteProgram note;
    note.use(memory);
    constexpr std::uint32_t connections = 2800, flood = 60'000;
    for (std::uint32_t i = 0; i < connections; i++)
        ASSERT_TRUE(memory.note(key_of(i), FlowAge::established)) << i;
    for (std::uint32_t i = 0; i < flood; i++) {
        note.see(frame_of(1'000'000 + i, syn));
        if (i % 10'000 == 0) memory.age(20s);
    }
    for (std::uint32_t i = 0; i < connections; i++) EXPECT_TRUE(memory.holds(key_of(i))) << i;
    const sieve_note_counts counts = note.counts();
    EXPECT_EQ(counts.packets, flood);
    EXPECT_EQ(counts.begun + counts.refused + counts.lost, flood) << "each packet was of a new flow";
    EXPECT_GT(counts.evicted, flood / 2) << "of their own kind";

    // Full of connections: a new one is refused, and counted.
    const FlowMemory full = value_or_fail(FlowMemory::create(least_flows));
    std::uint32_t held = 0;
    for (std::uint32_t i = 0; i < 2000; i++) held += full.note(key_of(16 * i), FlowAge::established) ? 1 : 0;
    EXPECT_LE(held, full.facts().entries);
    EXPECT_GT(full.facts().load(), 0.98);
    note.use(full);
    const std::uint64_t used = full.facts().established;
    for (std::uint32_t i = 0; i < 100; i++) note.see(frame_of(2'000'000 + i, syn));
    EXPECT_EQ(full.facts().established, used);
    EXPECT_GT(note.counts().refused, counts.refused + 80);
}

// Strangers who send from a server's own port make its answers begin flows. They keep nobody from beginning
// others.
TEST(FlowMemory, AnswersOfAServerKeepNoNewFlowOut) {
    const FlowMemory memory = value_or_fail(FlowMemory::create(least_flows));
    const NoteProgram note;
    note.use(memory);
    for (int round = 0; round < 2; round++) {
        for (std::uint32_t i = 0; i < 4000; i++)
            note.see(Ethernet{} /
                     IPv4{.src = "192.0.2.1", .dst = fmt::format("20.0.{}.{}", i / 250, i % 250)} /
                     Udp{.sport = 53, .dport = 53});
        memory.age(5s);
    }
    EXPECT_GT(memory.facts().load(), 0.98);
    const sieve_note_counts before = note.counts();
    for (std::uint32_t i = 0; i < 100; i++) {
        note.see(frame_of(2'000'000 + i, syn));
        note.see(Ethernet{} / IPv4{.src = "192.0.2.1", .dst = fmt::format("198.51.100.{}", i)} /
                 Icmp{.type = 8, .id = 7});
    }
    EXPECT_EQ(note.counts().refused, before.refused);
    EXPECT_EQ(note.counts().lost, before.lost);
}

// How many connections have no entry, by how full the memory is: they were refused, or a later one took their
// place, since an older one expires sooner. Nothing else is in it, and none has expired.
TEST(FlowMemory, HasRoomUntilItIsNearlyFull) {
    const FlowMemory memory = value_or_fail(FlowMemory::create(5000));
    const auto entries = static_cast<double>(memory.facts().entries);
    std::uint32_t asked = 0;
    for (const double share : {0.5, 0.6, 0.7, 0.8, 0.9, 1.0}) {
        // Sixteen connections have one pair of addresses.
        for (; asked * 17.0 / 16 < share * entries; asked++)
            (void)memory.note(key_of(asked), FlowAge::established);
        std::uint32_t missing = 0;
        for (std::uint32_t i = 0; i < asked; i++) missing += memory.holds(key_of(i)) ? 0 : 1;
        fmt::print("{} connections for {:.0f}% of the entries: {} have none, {:.2f}%\n", asked, share * 100,
                   missing, 100.0 * missing / asked);
        // A page that is fuller than the others is where it begins.
        EXPECT_LE(missing, share < 0.65 ? 0 : share < 0.75 ? asked / 500 : asked / 15) << share;
    }
}

TEST(FlowMemory, AnswersToAFloodWriteNothing) {
    const FlowMemory memory = value_or_fail(FlowMemory::create(1000));
    const NoteProgram note;
    note.use(memory);
    for (std::uint32_t i = 0; i < 1000; i++)
        for (const std::uint8_t flags : {std::uint8_t{syn | ack}, rst, std::uint8_t{rst | ack}, ack, fin})
            note.see(frame_of(i, flags));
    note.see(Ethernet{} / IPv4{.src = "192.0.2.1"} / Udp{.sport = 53, .dport = 40000});
    note.see(Ethernet{} / IPv4{.src = "192.0.2.1"} / Icmp{.type = 0, .id = 7});
    note.see(Ethernet{} / IPv4{.src = "192.0.2.1"} / Icmp{.type = 3} / Payload{28});
    EXPECT_EQ(memory.facts().used, 0U);
    EXPECT_EQ(note.counts().packets, 5003U);
    EXPECT_EQ(note.counts().begun, 0U);
}

// The two lines of one flow, entry by entry, to be filled at will.
class Lines {
  public:
    explicit Lines(const FlowMemory& memory) : memory_(memory) {
        place_ = sieve_flow_locate(&memory.where(), &key_);
        now_ = program_now() >> SIEVE_FLOW_CLOCK_SHIFT;
        EXPECT_NE(place_.line[0], place_.line[1]);
    }
    [[nodiscard]] const sieve_key& key() const { return key_; }
    [[nodiscard]] Bytes frame(std::uint8_t flags) const { return frame_of(7, flags); }
    [[nodiscard]] std::uint64_t tag() const { return place_.tag; }
    [[nodiscard]] static std::uint64_t other_tag(std::size_t i) {
        return (1000 + i) << (SIEVE_FLOW_TAG_SHIFT + 1) | 1ULL << SIEVE_FLOW_TAG_SHIFT;
    }
    // An entry that has so many units to live.
    [[nodiscard]] std::uint64_t entry(std::uint64_t tag, std::uint64_t left) const {
        return sieve_flow_entry(tag, 0, now_, left);
    }

    std::uint64_t entries[SIEVE_FLOW_PLACES]{};
    void write() const {
        sieve_flow_page page = page_of(memory_, place_.page);
        for (std::uint32_t line = 0; line < SIEVE_FLOW_LINES; line++)
            std::memcpy(page.line[place_.line[line]].entry, entries + line * SIEVE_FLOW_ENTRIES,
                        sizeof(sieve_flow_line));
        write_page(memory_, place_.page, page);
    }
    // The number of the entry that differs from what was written: -1: none; -2: several.
    [[nodiscard]] int changed() const {
        int which = -1;
        const sieve_flow_page page = page_of(memory_, place_.page);
        for (std::uint32_t line = 0; line < SIEVE_FLOW_LINES; line++)
            for (int i = 0; i < SIEVE_FLOW_ENTRIES; i++)
                if (const int number = static_cast<int>(line) * SIEVE_FLOW_ENTRIES + i;
                    page.line[place_.line[line]].entry[i] != entries[number])
                    which = which == -1 ? number : -2;
        return which;
    }

  private:
    const FlowMemory& memory_;
    sieve_key key_ = key_of(7);
    sieve_flow_place place_{};
    std::uint64_t now_ = 0;
};

// Of an entry's 40 bits, each counts, wherever the entry is.
TEST(FlowMemory, AnEntryOfAnotherTagIsAnotherFlows) {
    const FlowMemory memory = value_or_fail(FlowMemory::create(1000));
    Lines lines(memory);
    for (std::size_t i = 0; i < SIEVE_FLOW_PLACES; i++) {
        std::fill(std::begin(lines.entries), std::end(lines.entries), 0);
        lines.entries[i] = lines.entry(lines.tag(), 100);
        lines.write();
        EXPECT_TRUE(memory.holds(lines.key())) << i;
        const Scratch& scratch = shared_program();
        ASSERT_TRUE(memory.put_into(scratch.instance()));
        ASSERT_TRUE(scratch.table().replace(
            {.default_action = SIEVE_ACTION_DROP, .sets = {}, .replies = SIEVE_ACTION_PASS}));
        const Bytes answer = mirror(lines.frame(ack));
        EXPECT_EQ(value_or_fail(scratch.run(answer)), SIEVE_VERDICT_PASS) << i;
        for (int bit = SIEVE_FLOW_TAG_SHIFT; bit < 64; bit++) {
            lines.entries[i] = lines.entry(lines.tag() ^ 1ULL << bit, 100);
            lines.write();
            EXPECT_EQ(value_or_fail(scratch.run(answer)), SIEVE_VERDICT_DROP) << i << ", bit " << bit;
        }
    }
}

// Which entry a new flow takes; by how long the others have to live.
TEST(FlowMemory, ANewFlowTakesWhatExpiresFirstAndNothingThatOutlivesIt) {
    const FlowMemory memory = value_or_fail(FlowMemory::create(1000));
    const NoteProgram note;
    note.use(memory);
    Lines lines(memory);
    const auto taken = [&](const std::vector<std::uint64_t>& left) {
        for (std::size_t i = 0; i < SIEVE_FLOW_PLACES; i++)
            lines.entries[i] = left[i] == 0 ? 0 : lines.entry(Lines::other_tag(i), left[i]);
        lines.write();
        note.see(lines.frame(syn));
        return lines.changed();
    };
    constexpr std::uint64_t half_open = SIEVE_FLOW_TCP_NEW, established = SIEVE_FLOW_TCP_ESTABLISHED;
    for (int i = 0; i < SIEVE_FLOW_PLACES; i++) {
        std::vector<std::uint64_t> left(SIEVE_FLOW_PLACES, established);
        left[static_cast<std::size_t>(i)] = 0;
        EXPECT_EQ(taken(left), i) << "the only free one";
        left[static_cast<std::size_t>(i)] = half_open - 2;
        EXPECT_EQ(taken(left), i) << "half-open";
        left[static_cast<std::size_t>(i)] = half_open + 4;
        const std::uint64_t refused = note.counts().refused;
        EXPECT_EQ(taken(left), -1) << "it would outlive the new one";
        EXPECT_EQ(note.counts().refused, refused + 1);
        std::fill(left.begin(), left.end(), half_open - 2);
        left[static_cast<std::size_t>(i)] = half_open - 4;
        EXPECT_EQ(taken(left), i) << "the one that expires first";
    }
    // The line with more free entries, whichever it is.
    for (const int emptier : {0, 1}) {
        std::vector<std::uint64_t> left(SIEVE_FLOW_PLACES, established);
        for (const int free : {2, 5, 7})
            left[static_cast<std::size_t>(emptier * SIEVE_FLOW_ENTRIES + free)] = 0;
        for (const int free : {1, 3})
            left[static_cast<std::size_t>((1 - emptier) * SIEVE_FLOW_ENTRIES + free)] = 0;
        EXPECT_EQ(taken(left) / SIEVE_FLOW_ENTRIES, emptier);
    }
}

// The clock comes round after 208 days. Flows live over that moment as at any other.
TEST(FlowMemory, LivesOnWhenItsClockComesRound) {
    constexpr std::uint64_t tag = 0xabcdef0123ULL << SIEVE_FLOW_TAG_SHIFT, round = SIEVE_FLOW_TIME_MASK + 1;
    for (const std::uint64_t limit : {SIEVE_FLOW_TCP_RESET, SIEVE_FLOW_TCP_NEW, SIEVE_FLOW_TCP_ESTABLISHED})
        for (std::uint64_t now = 5 * round - limit - 3; now < 5 * round + 3; now++) {
            const std::uint64_t entry = sieve_flow_entry(tag, SIEVE_FLOW_ESTABLISHED, now, limit);
            EXPECT_TRUE(sieve_flow_is(entry, tag));
            for (const std::uint64_t later :
                 {std::uint64_t{0}, std::uint64_t{1}, limit / 2, limit - 1, limit})
                ASSERT_EQ(sieve_flow_left(entry, now + later), limit - later) << now << " " << later;
            const std::uint64_t next = sieve_flow_next(entry, SIEVE_FLOW_GOES_ON, 0, limit, now + limit - 1);
            EXPECT_EQ(sieve_flow_left(next, now + limit), limit - 1) << "renewed";
        }
}

// What nobody swept away would be a flow again.
TEST(FlowMemory, SweptFlowsDoNotComeAgain) {
    const FlowMemory memory = value_or_fail(FlowMemory::create(1000));
    constexpr std::chrono::seconds day{86400};
    ASSERT_TRUE(memory.note(key_of(1), FlowAge::established));
    ASSERT_TRUE(memory.note(key_of(20), FlowAge::established));
    const auto days_later = [&](int days) {
        memory.age(days * day);
        return memory.holds(key_of(1));
    };
    EXPECT_FALSE(days_later(100));
    EXPECT_FALSE(days_later(100));
    memory.sweep();
    for (int i = 0; i < 24; i++) EXPECT_FALSE(days_later(1)) << i;
}

// Threads that each have a CPU of their own, if there are two.
template <class Work>
void on_two_cpus(const Work& work) {
    std::vector<std::thread> threads;
    for (unsigned cpu = 0; cpu < 2; cpu++)
        threads.emplace_back([&work, cpu] {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            ::sched_setaffinity(0, sizeof(one), &one); // in vain with one CPU
            work(cpu);
        });
    for (std::thread& thread : threads) thread.join();
}

TEST(FlowMemory, TwoCpusAtOnceLoseOnlyWhatTheyCount) {
    const FlowMemory memory = value_or_fail(FlowMemory::create(100'000));
    const NoteProgram note;
    note.use(memory);
    constexpr std::uint32_t flows = 30'000;
    on_two_cpus([&](unsigned cpu) {
        for (std::uint32_t i = cpu; i < flows; i += 2) note.see(frame_of(i, syn));
    });
    std::uint64_t held = 0;
    for (std::uint32_t i = 0; i < flows; i++) held += memory.holds(key_of(i)) ? 1 : 0;
    const sieve_note_counts counts = note.counts();
    EXPECT_EQ(held + counts.lost + counts.refused, flows);
    EXPECT_EQ(counts.evicted, 0U);
    // The same flows on both at once: each is held, few twice.
    const FlowMemory same = value_or_fail(FlowMemory::create(100'000));
    note.use(same);
    on_two_cpus([&](unsigned) {
        for (std::uint32_t i = 0; i < flows; i++) note.see(frame_of(i, syn));
    });
    for (std::uint32_t i = 0; i < flows; i++) EXPECT_TRUE(same.holds(key_of(i))) << i;
    EXPECT_LT(same.facts().used, flows * 1.2);
}

// A controller that seeds a memory while packets flow overwrites nothing that was noted meanwhile.
TEST(FlowMemory, IsSeededWhilePacketsFlow) {
    const FlowMemory memory = value_or_fail(FlowMemory::create(50'000));
    const NoteProgram note;
    note.use(memory);
    constexpr std::uint32_t flows = 20'000;
    on_two_cpus([&](unsigned which) {
        for (std::uint32_t i = 0; i < flows; i++) {
            if (which == 0)
                note.see(frame_of(2 * i, syn));
            else
                EXPECT_TRUE(memory.note(key_of(2 * i + 1), FlowAge::established));
        }
    });
    std::uint64_t missing = 0;
    for (std::uint32_t i = 0; i < flows; i++) {
        EXPECT_TRUE(memory.holds(key_of(2 * i + 1))) << i;
        missing += memory.holds(key_of(2 * i)) ? 0 : 1;
    }
    EXPECT_LE(missing, note.counts().lost);
}

TEST(FlowMemory, IsFoundThroughAnInstance) {
    const Scratch scratch = value_or_fail(Scratch::load(false));
    EXPECT_FALSE(value_or_fail(FlowMemory::of_instance(scratch.instance())));
    const FlowMemory memory = value_or_fail(FlowMemory::create(1000));
    ASSERT_TRUE(memory.put_into(scratch.instance()));
    EXPECT_EQ(value_or_fail(FlowMemory::of_instance(scratch.instance()))->id(), memory.id());
    ASSERT_TRUE(FlowMemory::take_out_of(scratch.instance()));
    EXPECT_FALSE(value_or_fail(FlowMemory::of_instance(scratch.instance())));
}

} // namespace
} // namespace sieve::kernel
