// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Fuzzes the packet path's parser against the model in tests/model, and what it says of replies after the
// noting program has seen some of the frames leave. All are compiled for user space, as each hook has them.
//
// The input is a frame. Each execution compares the results for the frame, then for a number of its
// truncations and mutations, and of what answers them.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include <sieve/policy.h>

#include "bpf/mirror.hpp"
#include "bpf/packet.hpp"
#include "fuzz/packet_parser.h"
#include "fuzz/support.hpp"
#include "model/parse_model.hpp"
#include "model/reply_model.hpp"

namespace {

using namespace sieve::fuzz;
namespace test = sieve::test;

constexpr std::size_t longest = 2048;
constexpr int variants = 48;

// Memory for one packet that ends right before an inaccessible page: a read beyond the packet's end crashes,
// whoever reads.
class Stage {
  public:
    Stage() {
        constexpr std::size_t page = 4096;
        void* pages =
            ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
        FUZZ_REQUIRE(pages != MAP_FAILED);
        end_ = static_cast<std::uint8_t*>(pages) + page;
        FUZZ_REQUIRE(::mprotect(end_, page, PROT_NONE) == 0);
    }
    const std::uint8_t* put(const test::Bytes& packet) {
        std::uint8_t* begin = end_ - packet.size();
        if (!packet.empty()) std::memcpy(begin, packet.data(), packet.size());
        return begin;
    }
    [[nodiscard]] const std::uint8_t* end() const { return end_; }

  private:
    std::uint8_t* end_;
};

Total total("packets parsed for each hook and compared with the model");
Total noted("packets noted, or asked whether they are replies, and compared with the model");

// How a packet reaches the parser.
struct Arrival {
    sieve_link link = SIEVE_LINK_ETHERNET;
    bool segmented = false;
    std::size_t apart = 0; // bytes at its end that direct access does not reach
};

using Run = void (*)(const sieve_parser_packet*, sieve_parser_result*);

sieve_parser_result run_on(Run run, const test::Bytes& packet, Arrival arrival) {
    static Stage stage;
    sieve_parser_result result{};
    const sieve_parser_packet given{.begin = stage.put(packet),
                                    .end = stage.end(),
                                    .reach = stage.end() - std::min(arrival.apart, packet.size()),
                                    .link = arrival.link,
                                    .segmented = arrival.segmented};
    run(&given, &result);
    return result;
}

// The parser may leave anything in words that `have` does not cover.
test::Parsed parse(Run run, const test::Bytes& packet, Arrival arrival) {
    const sieve_parser_result result = run_on(run, packet, arrival);
    test::Parsed parsed;
    parsed.outcome = result.outcome;
    parsed.have = result.have;
    if ((result.have & SIEVE_FIELD_SRC) != 0)
        parsed.key[0] = result.key.word[0], parsed.key[1] = result.key.word[1];
    if ((result.have & SIEVE_FIELD_DST) != 0)
        parsed.key[2] = result.key.word[2], parsed.key[3] = result.key.word[3];
    parsed.key[4] = result.key.word[4] & sieve_transport_mask(result.have);
    return parsed;
}

void compare(const test::Bytes& packet, Arrival arrival = {}) {
    const test::Parsed wanted = test::parse_by_model(packet, arrival.link, arrival.segmented);
    total.add(1);
    for (const Run run : {sieve_parser_run_xdp, sieve_parser_run_tc}) {
        const test::Parsed seen = parse(run, packet, arrival);
        if (seen == wanted) continue;
        std::fprintf(stderr, "link %u%s, %zu bytes apart, packet:", arrival.link,
                     arrival.segmented ? ", segmented" : "", arrival.apart);
        for (const std::uint8_t byte : packet) std::fprintf(stderr, " %02x", byte);
        std::fprintf(stderr, "\noutcome %u, model %u; fields %x, model %x\n", seen.outcome, wanted.outcome,
                     seen.have, wanted.have);
        FUZZ_REQUIRE(seen == wanted);
    }
}

// A host whose frames leave and arrive, beside the model.
class Host {
  public:
    Host() {
        std::memset(sieve_parser_memory, 0, sizeof(sieve_parser_memory));
        sieve_parser_where.pages = SIEVE_PARSER_MEMORY_PAGES - 1;
        // Without a pattern: with keys in arithmetic progression, some flows and their answers have one hash.
        for (int i = 0; i < SIEVE_HASH_KEY_WORDS; i++)
            sieve_parser_where.hash_key[i] = sieve_mix(0x9e3779b97f4a7c15U * (i + 1U));
    }

    void leaves(const test::Bytes& frame) {
        noted.add(1);
        (void)run_on(sieve_parser_run_note, frame, {});
        model_.leaves(frame, 0);
    }

    void arrives(const test::Bytes& frame) const {
        noted.add(1);
        const bool wanted = model_.arrives(frame, 0) == test::ReplyModel::Answer::yes;
        for (const Run run : {sieve_parser_run_xdp, sieve_parser_run_tc}) {
            const bool seen = run_on(run, frame, {}).reply != 0;
            if (seen == wanted) continue;
            for (const std::uint8_t byte : frame) std::fprintf(stderr, " %02x", byte);
            std::fprintf(stderr, "\nreply %d, model %d\n", seen, wanted);
            FUZZ_REQUIRE(seen == wanted);
        }
    }

  private:
    test::ReplyModel model_;
};

// Bytes that decide something in some header: protocols, types, versions, lengths.
constexpr std::array<std::uint8_t, 34> telling = {0,  1,  2,   3,   4,   5,   6,   7,   8,    15,  17, 20,
                                                  33, 40, 41,  43,  44,  45,  50,  51,  58,   60,  63, 70,
                                                  88, 96, 129, 131, 132, 135, 136, 137, 0x86, 0xff};

void mutate(test::Bytes& packet, Random& random) {
    // Most bytes that matter are in the first headers.
    const std::size_t at =
        random.below(random.one_in(4) ? packet.size() : std::min<std::size_t>(packet.size(), 80));
    switch (random.below(4)) {
    case 0:
        packet[at] = telling[random.below(telling.size())];
        break;
    case 1:
        packet[at] = static_cast<std::uint8_t>(packet[at] ^ (1U << random.below(8)));
        break;
    case 2:
        packet[at] = static_cast<std::uint8_t>(random.next());
        break;
    default:
        packet[at] = static_cast<std::uint8_t>(packet[at] + random.below(5) - 2);
    }
}

// An ICMP error to the sender of a frame, which quotes the frame, or its beginning.
test::Bytes error_about(const test::Bytes& frame, Random& random) {
    std::size_t at = 14;
    while (at < frame.size() && (frame[at - 2] == 0x81 || frame[at - 2] == 0x88)) at += 4;
    test::Bytes error(frame.begin(), frame.begin() + std::min<std::ptrdiff_t>(14, std::ssize(frame)));
    test::Bytes tail(frame.begin() +
                         std::min<std::ptrdiff_t>(std::ssize(frame), static_cast<std::ptrdiff_t>(at)),
                     frame.end());
    if (random.one_in(4)) tail.resize(random.below(tail.size() + 1));
    const bool v6 = !tail.empty() && tail[0] >> 4 == 6;
    const test::Layer ip = v6 ? test::Layer(test::IPv6{}) : test::Layer(test::IPv4{});
    const test::Layer icmp =
        v6 ? test::Layer(test::Icmp6{.type = static_cast<std::uint8_t>(random.below(6))})
           : test::Layer(test::Icmp{.type = static_cast<std::uint8_t>(random.below(14))});
    error = (test::Ethernet{} / ip / icmp / test::Payload{.bytes = tail.size()}).bytes();
    std::copy(tail.begin(), tail.end(), error.end() - std::ssize(tail));
    // To whom the quoted packet is from.
    const std::size_t from = v6 ? 8 : 12, to = 14 + (v6 ? 24U : 16U), bytes = v6 ? 16 : 4;
    if (tail.size() >= from + bytes && !random.one_in(8))
        std::copy_n(tail.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                    error.begin() + static_cast<std::ptrdiff_t>(to));
    return error;
}

// A packet of layers, most of them well-formed.
class Builder {
  public:
    explicit Builder(Random& random) : random_(random) {}

    test::Bytes build() {
        test::Packet packet{test::Ethernet{}};
        if (random_.one_in(2))
            for (std::uint64_t tags = random_.below(random_.one_in(4) ? 70 : 7); tags > 0; tags--)
                packet = packet /
                         test::Vlan{.id = number16(),
                                    .tpid = static_cast<std::uint16_t>(random_.one_in(2) ? 0x8100 : 0x88a8)};
        switch (random_.below(16)) {
        case 0:
            return (packet / test::Arp{}).bytes();
        case 1:
            return (packet / test::Payload{random_.below(64)}).bytes();
        default:
            break;
        }
        packet = random_.one_in(3) ? packet / ipv4() : with_extensions(packet / ipv6());
        packet = packet / upper();
        if (random_.one_in(4)) packet = packet / test::Payload{random_.below(200)};
        return packet.bytes();
    }

  private:
    std::uint16_t number16() { return static_cast<std::uint16_t>(random_.next()); }

    test::IPv4 ipv4() {
        test::IPv4 ip;
        if (random_.one_in(4)) ip.options = options();
        if (random_.one_in(8)) ip.offset = static_cast<unsigned>(random_.below(0x2000));
        if (random_.one_in(8)) ip.more = true;
        if (random_.one_in(8)) ip.ihl = static_cast<unsigned>(random_.below(16));
        if (random_.one_in(8)) ip.total = static_cast<std::uint16_t>(random_.below(80));
        if (random_.one_in(16)) ip.total = std::uint16_t{0};
        if (random_.one_in(32)) ip.version = static_cast<unsigned>(random_.below(16));
        return ip;
    }
    // A multiple of four bytes, at most 40.
    test::Bytes options() {
        constexpr std::array<std::uint8_t, 8> types = {0, 7, 68, 130, 131, 137, 148, 131};
        test::Bytes bytes;
        const std::size_t most = 4 * random_.below(11);
        while (bytes.size() < most) {
            const std::size_t begin = bytes.size();
            if (random_.one_in(3)) {
                bytes.push_back(1);
                continue;
            }
            const std::size_t length = 2 + random_.below(12);
            bytes.resize(std::min(begin + length, most));
            for (std::size_t i = begin; i < bytes.size(); i++)
                bytes[i] = static_cast<std::uint8_t>(random_.below(20));
            bytes[begin] = types[random_.below(types.size())];
            if (begin + 1 < bytes.size() && !random_.one_in(8))
                bytes[begin + 1] = static_cast<std::uint8_t>(length);
        }
        return bytes;
    }
    test::IPv6 ipv6() {
        test::IPv6 ip;
        if (random_.one_in(8)) ip.length = static_cast<std::uint16_t>(random_.below(100));
        if (random_.one_in(16)) ip.length = std::uint16_t{0};
        if (random_.one_in(4)) ip.hop_limit = 255;
        if (random_.one_in(32)) ip.version = static_cast<unsigned>(random_.below(16));
        return ip;
    }
    test::Packet with_extensions(test::Packet packet) {
        constexpr std::array<std::uint8_t, 7> types = {0, 43, 51, 60, 135, 139, 140};
        const std::uint64_t most = random_.one_in(4) ? 70 : 4;
        for (std::uint64_t left = random_.below(most + 1); left > 0; left--) {
            if (random_.one_in(5))
                packet = packet / test::Fragment6{.offset = static_cast<unsigned>(
                                                      random_.one_in(3) ? random_.below(0x2000) : 0),
                                                  .more = random_.one_in(2)};
            else
                packet =
                    packet / test::Extension{
                                 .type = types[random_.below(types.size())],
                                 .units = static_cast<unsigned>(random_.one_in(3) ? random_.below(6) : 0),
                                 .route = static_cast<std::uint8_t>(random_.below(5)),
                                 .left = static_cast<std::uint8_t>(random_.one_in(8) ? random_.below(4) : 0)};
        }
        return packet;
    }
    test::Layer upper() {
        switch (random_.below(9)) {
        case 0:
            return test::Tcp{.sport = number16(), .dport = number16()};
        case 1:
            return test::Udp{.sport = number16(), .dport = number16()};
        case 2:
            return test::Sctp{.sport = number16(), .dport = number16()};
        case 3:
            return test::Icmp{};
        case 4:
            return test::Icmp6{.type = static_cast<std::uint8_t>(130 + random_.below(10))};
        case 5:
            return test::Payload{random_.below(8), telling[random_.below(telling.size())]};
        case 6:
            return test::Dccp{.sport = number16(), .dport = number16()};
        case 7:
            return test::UdpLite{.sport = number16(), .dport = number16()};
        default:
            return test::Payload{random_.below(40), static_cast<std::uint8_t>(random_.next())};
        }
    }

    Random& random_;
};

} // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
    Random random(seed);
    if (random.one_in(2)) return LLVMFuzzerMutate(data, size, most);
    test::Bytes packet = Builder(random).build();
    for (std::uint64_t changes = random.below(4); changes > 0; changes--) mutate(packet, random);
    packet.resize(std::min(packet.size(), most));
    std::copy(packet.begin(), packet.end(), data);
    return packet.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const test::Bytes frame(data, data + std::min(size, longest));
    compare(frame);
    if (frame.empty()) return 0;
    Random random(fingerprint(frame));
    test::Bytes variant;
    Host host;
    host.leaves(frame);
    host.arrives(test::mirror(frame));
    for (int i = 0; i < variants; i++) {
        variant.assign(frame.begin(), frame.end());
        if (random.one_in(4)) variant.resize(random.below(variant.size()) + 1);
        for (std::uint64_t changes = random.below(4); changes > 0; changes--) mutate(variant, random);
        Arrival arrival{.segmented = random.one_in(8)};
        if (random.one_in(4)) arrival.apart = random.below(variant.size() + 1);
        if (random.one_in(4)) {
            // The same packet without its Ethernet header.
            arrival.link = SIEVE_LINK_IP;
            variant.erase(variant.begin(),
                          variant.begin() + std::min<std::ptrdiff_t>(14, std::ssize(variant)));
        }
        compare(variant, arrival);
        if (arrival.link == SIEVE_LINK_IP) continue;
        if (random.one_in(4)) host.leaves(variant);
        host.arrives(random.one_in(2) ? variant : test::mirror(variant));
        if (random.one_in(4)) host.arrives(error_about(variant, random));
    }
    return 0;
}
