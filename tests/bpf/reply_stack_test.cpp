// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A host that drops by default talks with a peer through the real network stack: connections, queries,
// fragments, pings, errors, in both families, and between them frames of strangers at random. Every packet
// that the model calls an answer arrives, and no other does.
//
//     SIEVE_TEST_CONVERSATION=1000000 build/bpf-tests --gtest_filter='*ReplyStack*'
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/own_network.hpp"
#include "bpf/talk.hpp"
#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/hooks/flow_memory.hpp"
#include "libsieve/kernel/hooks/noting.hpp"
#include "libsieve/kernel/maps/set_table.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "model/parse_model.hpp"
#include "model/reply_model.hpp"

namespace sieve {
namespace {

using namespace test;
using Answer = ReplyModel::Answer;

void require(bool done, const char* what) {
    if (!done) throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

UniqueFd this_network() {
    UniqueFd fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    require(fd.get() >= 0, "opening a network namespace");
    return fd;
}
void enter(const UniqueFd& network) {
    require(::setns(network.get(), CLONE_NEWNET) == 0, "entering a network namespace");
}

// Sees every frame of an interface, or those that come in, in their order; and sends frames.
class Wire {
  public:
    Wire(const char* interface, bool only_incoming) : only_incoming_(only_incoming) {
        const auto index = static_cast<int>(::if_nametoindex(interface));
        for (UniqueFd* const fd : {&seen_, &sender_}) {
            *fd = UniqueFd(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
            require(fd->get() >= 0, "a packet socket");
            sockaddr_ll at{};
            at.sll_family = AF_PACKET;
            at.sll_protocol = fd == &seen_ ? htons(ETH_P_ALL) : 0;
            at.sll_ifindex = index;
            require(::bind(fd->get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0,
                    "binding a packet socket");
        }
        const int bytes = 256 << 20;
        require(::setsockopt(seen_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) == 0,
                "the buffer of a packet socket");
    }

    struct Frame {
        Bytes bytes;
        bool outgoing;
    };
    std::optional<Frame> next() const {
        sockaddr_ll from{};
        for (;;) {
            socklen_t length = sizeof(from);
            Bytes bytes(65600);
            const ssize_t got = ::recvfrom(seen_.get(), bytes.data(), bytes.size(), MSG_TRUNC,
                                           reinterpret_cast<sockaddr*>(&from), &length);
            if (got < 0) return std::nullopt;
            bytes.resize(static_cast<std::size_t>(got));
            const bool outgoing = from.sll_pkttype == PACKET_OUTGOING;
            if (!outgoing || !only_incoming_) return Frame{std::move(bytes), outgoing};
        }
    }
    // False if the interface does not take it.
    bool send(const Bytes& frame) const {
        return ::send(sender_.get(), frame.data(), frame.size(), 0) == static_cast<ssize_t>(frame.size());
    }
    [[nodiscard]] std::uint32_t lost() const {
        tpacket_stats stats{};
        socklen_t length = sizeof(stats);
        require(::getsockopt(seen_.get(), SOL_PACKET, PACKET_STATISTICS, &stats, &length) == 0,
                "the counters of a packet socket");
        return stats.tp_drops;
    }

  private:
    UniqueFd seen_, sender_;
    bool only_incoming_;
};

sockaddr_storage address(bool v6, const std::string& text, std::uint16_t port, socklen_t& length) {
    sockaddr_storage storage{};
    if (v6) {
        auto& to = reinterpret_cast<sockaddr_in6&>(storage);
        to.sin6_family = AF_INET6;
        to.sin6_port = htons(port);
        require(::inet_pton(AF_INET6, text.c_str(), &to.sin6_addr) == 1, "an address");
        length = sizeof(to);
    } else {
        auto& to = reinterpret_cast<sockaddr_in&>(storage);
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        require(::inet_pton(AF_INET, text.c_str(), &to.sin_addr) == 1, "an address");
        length = sizeof(to);
    }
    return storage;
}

// A socket in the namespace of the calling thread; `to` connects it, else it is bound to `port`.
UniqueFd socket_to(bool v6, int type, const std::string& to, std::uint16_t port, bool connects) {
    UniqueFd fd(::socket(v6 ? AF_INET6 : AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    require(fd.get() >= 0, "a socket");
    socklen_t length = 0;
    const sockaddr_storage at = address(v6, to, port, length);
    const auto* where = reinterpret_cast<const sockaddr*>(&at);
    if (connects) {
        require(::connect(fd.get(), where, length) == 0 || errno == EINPROGRESS, "connecting");
        return fd;
    }
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (v6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    require(::bind(fd.get(), where, length) == 0, "binding");
    if (type == SOCK_STREAM) require(::listen(fd.get(), 64) == 0, "listening");
    return fd;
}

// The host and its peer, each with its own network, joined by a veth pair: `one` is the host's, `two` the
// peer's.
class Networks {
  public:
    Networks() : host_(this_network()) {
        require(::unshare(CLONE_NEWNET) == 0, "a network namespace");
        peer_ = this_network();
        enter(host_);
        const std::string there = fmt::format("/proc/{}/fd/{}", ::getpid(), peer_.get());
        run("ip link add one address 02:00:00:00:00:01 type veth peer name two address 02:00:00:00:00:02 "
            "netns " +
            there);
        settings("one");
        for (int i = 1; i <= 2; i++) {
            run(fmt::format("ip addr add 192.0.2.{}/32 dev one", i));
            run(fmt::format("ip addr add 2001:db8::{}/128 dev one nodad", i));
        }
        enter(peer_);
        settings("two");
        for (int i = 1; i <= 4; i++) {
            run(fmt::format("ip addr add 198.51.100.{}/32 dev two", i));
            run(fmt::format("ip addr add 2001:db8:1::{}/128 dev two nodad", i));
        }
        // It reports every closed port.
        std::ofstream("/proc/sys/net/ipv4/icmp_ratelimit") << 0;
        std::ofstream("/proc/sys/net/ipv6/icmp/ratelimit") << 0;
    }
    // Brings the links up: from here on there are packets.
    void start() const {
        for (const bool host : {true, false}) {
            enter(host ? host_ : peer_);
            const char* own = host ? "one" : "two";
            run(fmt::format("ip link set {} up", own));
            const std::string other = host ? "02:00:00:00:00:02" : "02:00:00:00:00:01";
            for (int i = 1; i <= 6; i++) {
                const std::string v4 = fmt::format("{}.{}", host ? "198.51.100" : "192.0.2", i);
                const std::string v6 = fmt::format("2001:db8:{}:{}", host ? "1:" : "", i);
                run(fmt::format("ip neigh add {} lladdr {} dev {}", v4, other, own));
                run(fmt::format("ip -6 neigh add {} lladdr {} dev {}", v6, other, own));
            }
            run(fmt::format("ip route add {}/24 dev {}", host ? "198.51.100.0" : "192.0.2.0", own));
            run(fmt::format("ip -6 route add {}/64 dev {}", host ? "2001:db8:1::" : "2001:db8::", own));
        }
        enter(host_);
    }
    [[nodiscard]] const UniqueFd& host() const { return host_; }
    [[nodiscard]] const UniqueFd& peer() const { return peer_; }

  private:
    static void run(const std::string& command) {
        if (std::system((command + " >/dev/null").c_str()) != 0) throw std::runtime_error(command);
    }
    // Packets leave as they are on a wire, and arrive one by one.
    static void settings(const char* interface) {
        run(fmt::format("ethtool -K {} tso off gso off gro off", interface));
    }
    UniqueFd host_, peer_;
};

// What programs on the host, and those of its peer, do with their sockets.
class Programs {
  public:
    Programs(const Networks& networks, std::uint64_t seed) : networks_(networks), random_(seed) {
        enter(networks_.peer());
        for (const bool v6 : {false, true}) {
            const std::string any = v6 ? "::" : "0.0.0.0";
            for (const std::uint16_t port : {443, 2049})
                accepting_.push_back(socket_to(v6, SOCK_STREAM, any, port, false));
            for (const std::uint16_t port : {53, 123})
                answering_.push_back(socket_to(v6, SOCK_DGRAM, any, port, false));
        }
        enter(networks_.host());
        for (const bool v6 : {false, true}) {
            pings_[v6] = UniqueFd(::socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
                                           v6 ? int{IPPROTO_ICMPV6} : int{IPPROTO_ICMP}));
            require(pings_[v6].get() >= 0, "a socket for pings");
        }
    }

    // One thing that the host, or a program of the peer, begins or goes on with.
    void act() {
        const bool v6 = one_in(2);
        const std::string peer =
            v6 ? fmt::format("2001:db8:1::{}", 1 + below(4)) : fmt::format("198.51.100.{}", 1 + below(4));
        switch (below(8)) {
        case 0:
        case 1:
            if (connections_.size() < 24)
                connections_.push_back({socket_to(v6, SOCK_STREAM, peer, one_in(6) ? 444 : 443, true), 0});
            break;
        case 2:
        case 3: { // what is too long comes back in fragments; nobody listens at 54
            UniqueFd query = socket_to(v6, SOCK_DGRAM, peer, one_in(5) ? 54 : 53, true);
            const Bytes bytes(one_in(3) ? 3000 : 40);
            ::send(query.get(), bytes.data(), bytes.size(), 0);
            queries_.push_back(std::move(query));
            if (queries_.size() > 24) queries_.pop_front();
            break;
        }
        case 4:
            ping(v6, peer);
            break;
        case 5: { // the peer begins
            enter(networks_.peer());
            const std::string host = v6 ? "2001:db8::1" : "192.0.2.1";
            strangers_.push_back(
                socket_to(v6, one_in(2) ? SOCK_STREAM : SOCK_DGRAM, host, one_in(2) ? 22 : 53, true));
            ::send(strangers_.back().get(), "x", 1, MSG_NOSIGNAL);
            if (strangers_.size() > 8) strangers_.pop_front();
            enter(networks_.host());
            break;
        }
        default:
            go_on();
        }
        pump();
    }

    std::uint64_t echoed = 0, answered = 0, pinged = 0, refused = 0;

  private:
    std::size_t below(std::size_t most) { return random_() % most; }
    bool one_in(std::size_t n) { return below(n) == 0; }

    void ping(bool v6, const std::string& peer) {
        socklen_t length = 0;
        const sockaddr_storage to = address(v6, peer, 0, length);
        Bytes echo{static_cast<std::uint8_t>(v6 ? 128 : 8), 0, 0, 0, 0x77,
                   static_cast<std::uint8_t>(below(3)),     0, 1};
        if (!v6) {
            const std::uint32_t sum = 0x0800U + (echo[4] << 8U | echo[5]) + 1;
            const auto check = static_cast<std::uint16_t>(~((sum & 0xffffU) + (sum >> 16U)));
            echo[2] = static_cast<std::uint8_t>(check >> 8U);
            echo[3] = static_cast<std::uint8_t>(check);
        }
        ::sendto(pings_[v6].get(), echo.data(), echo.size(), 0, reinterpret_cast<const sockaddr*>(&to),
                 length);
    }

    // One connection sends, or ends in one way or another.
    void go_on() {
        if (connections_.empty()) return;
        const std::size_t which = below(connections_.size());
        Connection& one = connections_[which];
        if (!one_in(4)) {
            const Bytes bytes(one_in(4) ? 20'000 : 100);
            const ssize_t sent = ::send(one.fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent > 0) one.open += static_cast<std::uint64_t>(sent);
            return;
        }
        if (one_in(3)) {
            const linger at_once{1, 0};
            ::setsockopt(one.fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)); // RST
        } else if (one_in(2)) {
            ::shutdown(one.fd.get(), SHUT_WR);
            return;
        }
        connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(which));
    }

    // Everybody reads and answers what is there.
    void pump() {
        char bytes[65536];
        for (int turn = 0; turn < 3; turn++) {
            for (const UniqueFd& each : accepting_) {
                UniqueFd fd(::accept4(each.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
                if (fd.get() >= 0) accepted_.push_back(std::move(fd));
            }
            std::erase_if(accepted_, [&](const UniqueFd& fd) {
                const ssize_t got = ::recv(fd.get(), bytes, sizeof(bytes), 0);
                if (got > 0) ::send(fd.get(), bytes, static_cast<std::size_t>(got), MSG_NOSIGNAL);
                return got == 0 || (got < 0 && errno != EAGAIN);
            });
            for (const UniqueFd& each : answering_)
                for (;;) {
                    sockaddr_storage from{};
                    iovec part{bytes, sizeof(bytes)};
                    char control[256];
                    msghdr message{&from, sizeof(from), &part, 1, control, sizeof(control), 0};
                    const int on = 1; // answers from the address that was asked
                    ::setsockopt(each.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
                    ::setsockopt(each.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
                    const ssize_t got = ::recvmsg(each.get(), &message, 0);
                    if (got < 0) break;
                    part.iov_len = static_cast<std::size_t>(got);
                    message.msg_flags = 0;
                    ::sendmsg(each.get(), &message, 0);
                }
            for (Connection& each : connections_) {
                const ssize_t got = ::recv(each.fd.get(), bytes, sizeof(bytes), 0);
                if (got > 0) echoed += each.open >= static_cast<std::uint64_t>(got) ? 1 : 0;
                if (got < 0 && errno == ECONNREFUSED) refused++;
            }
            for (const UniqueFd& each : queries_) {
                if (::recv(each.get(), bytes, sizeof(bytes), 0) > 0)
                    answered++;
                else if (errno == ECONNREFUSED)
                    refused++;
            }
            for (const bool v6 : {false, true})
                for (ssize_t got = 0; (got = ::recv(pings_[v6].get(), bytes, sizeof(bytes), 0)) > 0;)
                    if (bytes[v6 ? 0 : 20] == (v6 ? static_cast<char>(129) : 0)) pinged++;
        }
    }

    struct Connection {
        UniqueFd fd;
        std::uint64_t open; // bytes sent
    };
    const Networks& networks_;
    std::mt19937_64 random_;
    std::vector<UniqueFd> accepting_, answering_, accepted_;
    std::deque<Connection> connections_;
    std::deque<UniqueFd> queries_, strangers_;
    UniqueFd pings_[2];
};

// A frame's bytes without tags: the stack takes them off.
Bytes untagged(Bytes frame) {
    while (frame.size() >= 18 &&
           ((frame[12] == 0x81 && frame[13] == 0) || (frame[12] == 0x88 && frame[13] == 0xa8)))
        frame.erase(frame.begin() + 12, frame.begin() + 16);
    return frame;
}

// A frame of an EtherType for experiments (IEEE 802, 88B5). Frames of one processor keep their order, so once
// it has arrived, so has all that was sent before it, however late a busy kernel is.
Bytes fence_frame(std::uint8_t to, std::uint32_t number) {
    Bytes frame{2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, static_cast<std::uint8_t>(3 - to), 0x88, 0xb5};
    for (int shift = 24; shift >= 0; shift -= 8) frame.push_back(static_cast<std::uint8_t>(number >> shift));
    frame.resize(60);
    return frame;
}
bool is_fence(const Bytes& frame) {
    return frame.size() == 60 && frame[12] == 0x88 && frame[13] == 0xb5;
}

// Judges what went to the host by what had left it, and compares with what arrived. Equal frames are judged
// together, by their numbers.
class Judge {
  public:
    void left(const Bytes& frame, double time) { model_.leaves(frame, time); }
    void sent(Bytes frame, double time) {
        const Answer at_once = verdict(frame, time);
        Equal& equal = equal_[untagged(frame)];
        equal.pending++;
        sent_[turn_ % turns].push_back({std::move(frame), time, at_once, &equal});
    }
    void arrived(const Bytes& frame) { equal_[untagged(frame)].arrived++; }

    // Judges what was sent some turns ago: it has arrived, if it ever does.
    void next_turn() {
        turn_++;
        std::vector<Sent>& old = sent_[turn_ % turns];
        for (const Sent& each : old) {
            // What left while it was under way may have been noted first.
            Answer answer = verdict(each.frame, each.time);
            if (answer != each.at_once) answer = Answer::either;
            (answer == Answer::yes ? answers : answer == Answer::no ? others : open)++;
            if (answer == Answer::yes) each.equal->yes++;
            if (answer == Answer::either) each.equal->either++;
            each.equal->pending--;
        }
        old.clear();
        for (auto at = equal_.begin(); at != equal_.end();) {
            const auto& [frame, equal] = *at;
            if (equal.pending != 0) {
                ++at;
                continue;
            }
            if (equal.arrived < equal.yes || equal.arrived > equal.yes + equal.either)
                throw std::runtime_error(
                    fmt::format("of equal frames, {} answered, {} could be either, and {} "
                                "arrived: {}",
                                equal.yes, equal.either, equal.arrived, text_of(frame)));
            at = equal_.erase(at);
        }
    }

    static constexpr std::size_t turns = 3;
    std::uint64_t answers = 0, others = 0, open = 0;

  private:
    struct Equal {
        std::uint64_t pending = 0, yes = 0, either = 0, arrived = 0;
    };
    struct Sent {
        Bytes frame;
        double time;
        Answer at_once;
        Equal* equal;
    };
    // What has no key by nature passes, as without replies.
    [[nodiscard]] Answer verdict(const Bytes& frame, double time) const {
        const auto outcome = parse_by_model(frame).outcome;
        if (outcome >= SIEVE_OUTCOME_ARP && outcome <= SIEVE_OUTCOME_NON_IP) return Answer::yes;
        return model_.arrives(frame, time);
    }

    ReplyModel model_;
    std::size_t turn_ = 0;
    std::vector<Sent> sent_[turns];
    std::map<Bytes, Equal> equal_;
};

std::uint64_t counter(const char* interface, const char* name) {
    std::uint64_t value = 0;
    std::ifstream(fmt::format("/sys/class/net/{}/statistics/{}", interface, name)) >> value;
    return value;
}

class ReplyStack : public ::testing::TestWithParam<kernel::ModeChoice> {};

TEST_P(ReplyStack, AgreesWithTheModel) {
    const std::uint64_t packets = packets_of_conversation(), seed = std::random_device{}();
    in_own_network([&] {
        // One processor: what leaves and what arrives have one order.
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
        require(::sched_setaffinity(0, sizeof(one), &one) == 0, "staying on one processor");
        const Networks networks;
        enter(networks.peer());
        const Wire peer("two", false);
        enter(networks.host());
        const Wire host("one", true);

        const auto interface = value_or_fail(kernel::find_interface("one"));
        const auto memory = value_or_fail(kernel::FlowMemory::create(1'000'000));
        const auto object = value_or_fail(kernel::BpfObject::load({}));
        kernel::WantedTable table;
        table.default_action = SIEVE_ACTION_DROP;
        table.replies = SIEVE_ACTION_PASS;
        ASSERT_TRUE(memory.put_into(object.instance()));
        ASSERT_TRUE(kernel::SetTable(object.instance()).replace(table));
        value_or_fail(kernel::attach_noting(interface, memory));
        const auto attached = value_or_fail(
            kernel::attach(value_or_fail(kernel::read_hook(interface)), object, {.mode = GetParam()}));
        networks.start();

        Talk talk(seed);
        Programs programs(networks, seed);
        Judge judge;
        const auto begin = std::chrono::steady_clock::now();
        std::chrono::duration<double> moved{0};
        std::uint32_t fences = 0;
        // Sends a fence, and reads all until it arrives. A link that has just come up may lose one.
        const auto until_fence = [](const Wire& from, const Wire& to, const Bytes& fence, const auto& take) {
            constexpr auto again = std::chrono::milliseconds(100);
            constexpr int most = 600;
            for (int tries = 0; tries < most; tries++) {
                from.send(fence);
                const auto sent = std::chrono::steady_clock::now();
                while (std::chrono::steady_clock::now() - sent < again) {
                    auto frame = to.next();
                    if (!frame) {
                        ::sched_yield();
                        continue;
                    }
                    const bool is_last = !frame->outgoing && frame->bytes == fence;
                    if (!is_fence(frame->bytes)) take(std::move(*frame));
                    if (is_last) return;
                }
            }
            throw std::runtime_error("a fence has not arrived");
        };
        const auto collect = [&] {
            const double time =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() +
                moved.count();
            std::uint64_t seen = 0;
            fences++;
            // First these, so that all of them were seen on their way.
            std::vector<Bytes> arrived;
            until_fence(peer, host, fence_frame(1, fences),
                        [&](Wire::Frame frame) { arrived.push_back(std::move(frame.bytes)); });
            until_fence(host, peer, fence_frame(2, fences), [&](const Wire::Frame& frame) {
                seen++;
                if (frame.outgoing) return judge.sent(frame.bytes, time);
                judge.left(frame.bytes, time);
                if (talk.one_in(4)) talk.remember(frame.bytes);
            });
            for (const Bytes& frame : arrived) judge.arrived(frame);
            judge.next_turn();
            return seen;
        };
        std::uint64_t seen = 0;
        while (seen < packets) {
            for (int i = 0; i < 16; i++) {
                switch (talk.below(4)) {
                case 0:
                    host.send(talk.leaves());
                    break;
                case 1:
                case 2:
                    peer.send(talk.arrives());
                    break;
                default:
                    programs.act();
                }
            }
            seen += collect();
            // Often within a flow's limit, seldom beyond all limits; never while packets are under way.
            if (!talk.one_in(40)) continue;
            for (int i = 0; i < 3; i++) {
                ::usleep(1000);
                seen += collect();
            }
            constexpr std::array<int, 8> steps{1, 2, 5, 11, 31, 61, 130, 190};
            moved +=
                memory.age(std::chrono::seconds(talk.one_in(50) ? 7000 : steps[talk.below(steps.size())]));
        }
        for (int i = 0; i < 4; i++) {
            ::usleep(1000);
            (void)collect();
        }
        fmt::print("{}: {} packets: {} answers arrived, {} others were dropped, {} could be either; the "
                   "host's programs got {} parts of echoes, {} answers, {} echo replies and {} refusals\n",
                   GetParam() == kernel::ModeChoice::native ? "native" : "skb", seen, judge.answers,
                   judge.others, judge.open, programs.echoed, programs.answered, programs.pinged,
                   programs.refused);
        EXPECT_EQ(peer.lost(), 0U);
        EXPECT_EQ(host.lost(), 0U);
        EXPECT_EQ(counter("one", "rx_dropped"), 0U) << "a full queue looks as if the filter had dropped";
        for (const std::uint64_t count :
             {programs.echoed, programs.answered, programs.pinged, programs.refused, judge.answers / 100})
            EXPECT_GT(count, packets / 2000);
        EXPECT_GT(judge.others, packets / 10);
        EXPECT_EQ(value_or_fail(kernel::read_noting(interface))->counts.refused, 0U);
        ASSERT_TRUE(kernel::detach(attached.hook));
    });
}

INSTANTIATE_TEST_SUITE_P(Modes, ReplyStack,
                         ::testing::Values(kernel::ModeChoice::native, kernel::ModeChoice::skb),
                         [](const auto& info) {
                             return std::string(info.param == kernel::ModeChoice::native ? "Native" : "Skb");
                         });

} // namespace
} // namespace sieve
