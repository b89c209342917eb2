// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/packets/capture.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "bpf/packet.hpp"
#include "unit/messages.hpp"

namespace sieve::packets {
namespace {

using namespace test;

void little16(Bytes& bytes, unsigned value) {
    put8(bytes, value);
    put8(bytes, value >> 8);
}
void little32(Bytes& bytes, std::uint32_t value) {
    little16(bytes, value & 0xffff);
    little16(bytes, value >> 16);
}

// A classic pcap file, written by hand.
Bytes pcap(const std::vector<Bytes>& packets, std::uint32_t link_type = 1, std::uint32_t snap = 65535) {
    Bytes file;
    little32(file, 0xa1b2c3d4);
    little16(file, 2);
    little16(file, 4);
    little32(file, 0);
    little32(file, 0);
    little32(file, snap);
    little32(file, link_type);
    for (const Bytes& packet : packets) {
        const auto kept = std::min<std::size_t>(packet.size(), snap);
        little32(file, 1);
        little32(file, 2);
        little32(file, static_cast<std::uint32_t>(kept));
        little32(file, static_cast<std::uint32_t>(packet.size()));
        file.insert(file.end(), packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(kept));
    }
    return file;
}

// A pcapng file: section header, one interface, enhanced packet blocks.
Bytes pcapng(const std::vector<Bytes>& packets) {
    Bytes file;
    const auto block = [&file](std::uint32_t type, Bytes body) {
        body.resize((body.size() + 3) / 4 * 4);
        const auto length = static_cast<std::uint32_t>(body.size() + 12);
        little32(file, type);
        little32(file, length);
        file.insert(file.end(), body.begin(), body.end());
        little32(file, length);
    };
    Bytes section;
    little32(section, 0x1a2b3c4d);
    little16(section, 1);
    little16(section, 0);
    little32(section, 0xffffffff);
    little32(section, 0xffffffff);
    block(0x0a0d0d0a, section);
    Bytes interface;
    little16(interface, 1);
    little16(interface, 0);
    little32(interface, 65535);
    block(1, interface);
    for (const Bytes& packet : packets) {
        Bytes body;
        little32(body, 0);
        little32(body, 0);
        little32(body, 0);
        little32(body, static_cast<std::uint32_t>(packet.size()));
        little32(body, static_cast<std::uint32_t>(packet.size()));
        body.insert(body.end(), packet.begin(), packet.end());
        block(6, body);
    }
    return file;
}

class CaptureTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string name = (std::filesystem::temp_directory_path() / "sieve-capture-XXXXXX").string();
        const int fd = ::mkstemp(name.data());
        ASSERT_GE(fd, 0);
        ::close(fd);
        path_ = name;
    }
    void TearDown() override { std::filesystem::remove(path_); }

    void write(const Bytes& bytes) const {
        std::ofstream file(path_, std::ios::binary);
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }

    struct Outcome {
        std::vector<Bytes> packets;
        std::vector<std::uint32_t> lengths;
        std::string error; // empty at a clean end
        std::optional<ErrorKind> kind;
    };

    [[nodiscard]] Outcome read() const {
        Outcome outcome;
        auto capture = Capture::open(path_);
        if (!capture) return {{}, {}, capture.error().message, capture.error().kind};
        for (;;) {
            const auto packet = capture->next();
            if (!packet)
                return {outcome.packets, outcome.lengths, packet.error().message, packet.error().kind};
            if (!*packet) return outcome;
            outcome.packets.emplace_back((*packet)->bytes.begin(), (*packet)->bytes.end());
            outcome.lengths.push_back((*packet)->length);
            EXPECT_EQ((*packet)->number, outcome.packets.size());
        }
    }

    std::string path_;
};

std::vector<Bytes> some_packets() {
    return {(Ethernet{} / IPv4{} / Udp{}).bytes(), Bytes{}, Bytes{1, 2, 3},
            (Ethernet{} / IPv6{} / Tcp{}).bytes(),
            (Ethernet{} / IPv4{} / Udp{} / Payload{.bytes = 9000}).bytes()};
}

TEST_F(CaptureTest, ReadsPcapAndPcapng) {
    for (const Bytes& file : {pcap(some_packets()), pcapng(some_packets())}) {
        write(file);
        const Outcome outcome = read();
        EXPECT_EQ(outcome.error, "");
        EXPECT_EQ(outcome.packets, some_packets());
    }
}

TEST_F(CaptureTest, KeepsTheLengthOnTheWire) {
    write(pcap(some_packets(), 1, 40));
    const Outcome outcome = read();
    EXPECT_EQ(outcome.error, "");
    ASSERT_EQ(outcome.packets.size(), 5U);
    EXPECT_EQ(outcome.packets[4].size(), 40U);
    EXPECT_EQ(outcome.lengths[4], some_packets()[4].size());
}

TEST_F(CaptureTest, AnEmptyCaptureIsFine) {
    write(pcap({}));
    EXPECT_EQ(read().error, "");
}

TEST_F(CaptureTest, ACutFileNamesThePacketAndTheByte) {
    const std::vector<Bytes> packets(3, Bytes(60, 7));
    const Bytes whole = pcap(packets);
    constexpr std::size_t header = 24, record = 16 + 60;
    for (std::size_t bytes = header + 1; bytes < whole.size(); bytes++) {
        write(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)));
        const Outcome outcome = read();
        const std::size_t complete = (bytes - header) / record;
        EXPECT_EQ(outcome.packets.size(), complete);
        if ((bytes - header) % record == 0) {
            EXPECT_EQ(outcome.error, "") << "cut between packets: " << bytes;
            continue;
        }
        EXPECT_EQ(outcome.kind, ErrorKind::bad_input);
        EXPECT_NE(outcome.error.find("packet " + std::to_string(complete + 1)), std::string::npos)
            << outcome.error;
        EXPECT_NE(outcome.error.find("at byte " + std::to_string(header + complete * record)),
                  std::string::npos)
            << outcome.error;
    }
}

TEST_F(CaptureTest, RefusesWhatIsNoCapture) {
    const Bytes text{'#', ' ', 'f', 'e',  'e', 'd', '\n', '1', '0', '.', '0', '.',
                     '0', '.', '1', '\n', 0,   0,   0,    0,   0,   0,   0,   0};
    const Bytes good = pcap(some_packets());
    for (const Bytes& file : {Bytes{}, Bytes{1}, text, Bytes(good.begin(), good.begin() + 20)}) {
        write(file);
        const Outcome outcome = read();
        EXPECT_EQ(outcome.kind, ErrorKind::bad_input);
        EXPECT_NE(outcome.error.find(path_), std::string::npos) << outcome.error;
    }
    std::filesystem::remove(path_);
    EXPECT_EQ(read().kind, ErrorKind::bad_input);
}

TEST_F(CaptureTest, RefusesLinksThatAreNotUnderstood) {
    write(pcap(some_packets(), 105)); // 802.11
    const Outcome outcome = read();
    EXPECT_EQ(outcome.kind, ErrorKind::bad_input);
    expect_says(outcome.error);
}

// The numbers are the LINKTYPE_ values in files, as listed at tcpdump.org/linktypes.html.
TEST_F(CaptureTest, MakesFramesOfWhatOtherLinksCarry) {
    struct Case {
        std::uint32_t link_type;
        Bytes header;            // before the packet
        std::uint16_t ethertype; // of the frame
        bool v6 = false;
    };
    const Bytes cooked_v4{0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0};
    Bytes cooked_arp = cooked_v4, cooked_netlink = cooked_v4, cooked_gre = cooked_v4;
    cooked_arp[15] = 6;
    cooked_netlink[2] = 3, cooked_netlink[3] = 0x38; // ARPHRD_NETLINK, whose families are no EtherTypes
    cooked_gre[2] = 3, cooked_gre[3] = 0x0a; // ARPHRD_IPGRE, whose protocol types are EtherTypes (RFC 2784)
    const Bytes cooked2_v6{0x86, 0xdd, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0};
    const std::vector<Case> cases = {
        {101, {}, 0x0800},
        {101, {}, 0x86dd, true},
        {228, {}, 0x0800},
        {229, {}, 0x86dd, true},
        {0, {2, 0, 0, 0}, 0x0800},
        {0, {0, 0, 0, 2}, 0x0800},
        {0, {10, 0, 0, 0}, 0x86dd, true},
        {0, {24, 0, 0, 0}, 0x86dd, true},
        {0, {0, 0, 0, 28}, 0x86dd, true},
        {0, {30, 0, 0, 0}, 0x86dd, true},
        {0, {7, 0, 0, 0}, 0},
        {0, {2, 0, 1, 0}, 0},
        {108, {0, 0, 0, 2}, 0x0800},
        {113, cooked_v4, 0x0800},
        {113, cooked_arp, 0x0806},
        {113, cooked_netlink, 0},
        {113, cooked_gre, 0x0800},
        {276, cooked2_v6, 0x86dd, true},
    };
    for (const Case& one : cases) {
        const Bytes ethernet =
            one.v6 ? (Ethernet{} / IPv6{} / Tcp{}).bytes() : (Ethernet{} / IPv4{} / Udp{}).bytes();
        const Bytes packet(ethernet.begin() + 14, ethernet.end());
        Bytes captured = one.header;
        captured.insert(captured.end(), packet.begin(), packet.end());
        Bytes frame(12);
        put8(frame, one.ethertype >> 8);
        put8(frame, one.ethertype);
        frame.insert(frame.end(), packet.begin(), packet.end());
        const Bytes cut(captured.begin(),
                        captured.begin() +
                            static_cast<std::ptrdiff_t>(std::max<std::size_t>(one.header.size(), 1)) - 1);
        write(pcap({captured, cut}, one.link_type));
        const Outcome outcome = read();
        EXPECT_EQ(outcome.error, "");
        EXPECT_EQ(outcome.packets, (std::vector{frame, Bytes{}})) << "link type " << one.link_type;
        ASSERT_EQ(outcome.lengths.size(), 2U);
        EXPECT_EQ(outcome.lengths[0], captured.size());
    }
}

TEST_F(CaptureTest, RawPacketsOfNoVersionAreNotIp) {
    write(pcap({Bytes(40, 0x55)}, 101));
    const Outcome outcome = read();
    ASSERT_EQ(outcome.packets.size(), 1U);
    EXPECT_EQ(outcome.packets[0][12], 0);
    EXPECT_EQ(outcome.packets[0][13], 0);
}

TEST_F(CaptureTest, SurvivesGarbage) {
    // Any byte changed: the reader ends or fails, and never returns more than the file holds.
    const Bytes good = pcap({Bytes(60, 7), Bytes(60, 8)});
    for (std::size_t at = 0; at < good.size(); at++) {
        Bytes bad = good;
        bad[at] ^= 0xff;
        write(bad);
        const Outcome outcome = read();
        EXPECT_LE(outcome.packets.size(), 3U);
    }
}

} // namespace
} // namespace sieve::packets
