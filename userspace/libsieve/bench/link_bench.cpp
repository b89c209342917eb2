// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <sieve/policy.h>

#include "bpf/bench/bench_control.h"
#include "libsieve/bench/frames.hpp"
#include "libsieve/bench/packet_bench.hpp"
#include "libsieve/bench/private_network.hpp"
#include "libsieve/kernel/filter_map.hpp"
#include "libsieve/kernel/refusal.hpp"
#include "libsieve/kernel/scratch.hpp"
#include "sieve_bench.skel.h"

namespace sieve::bench {

namespace {

constexpr const char* sender_name = "sieve-tx";
constexpr const char* receiver_name = "sieve-rx";
constexpr std::uint32_t batch = 64;

// What the first queue of the receiving interface saw, from ethtool's counters. These exist whatever program
// runs.
class Counters {
  public:
    static Result<Counters> open() {
        UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        if (!socket) return kernel::refusal("a socket to ask an interface with", errno);
        Counters counters(std::move(socket));
        SIEVE_TRY(counters.find("rx_queue_0_xdp_packets"));
        return counters;
    }

    [[nodiscard]] Result<std::uint64_t> packets() {
        auto* stats = reinterpret_cast<ethtool_stats*>(values_.data());
        stats->cmd = ETHTOOL_GSTATS;
        stats->n_stats = count_;
        SIEVE_TRY(ask(stats));
        return stats->data[index_];
    }

  private:
    explicit Counters(UniqueFd socket) : socket_(std::move(socket)) {}

    Status ask(void* data) const {
        ifreq request{};
        std::strncpy(request.ifr_name, receiver_name, IFNAMSIZ - 1);
        request.ifr_data = static_cast<char*>(data);
        if (::ioctl(socket_.get(), SIOCETHTOOL, &request) != 0)
            return kernel::refusal("the counters of a veth interface", errno);
        return {};
    }

    Status find(const char* name) {
        ethtool_drvinfo driver{};
        driver.cmd = ETHTOOL_GDRVINFO;
        SIEVE_TRY(ask(&driver));
        count_ = driver.n_stats;
        std::vector<std::uint64_t> storage((sizeof(ethtool_gstrings) + count_ * ETH_GSTRING_LEN) / 8 + 1);
        auto* names = reinterpret_cast<ethtool_gstrings*>(storage.data());
        names->cmd = ETHTOOL_GSTRINGS;
        names->string_set = ETH_SS_STATS;
        names->len = count_;
        SIEVE_TRY(ask(names));
        values_.resize(sizeof(ethtool_stats) / 8 + count_ + 1);
        for (index_ = 0; index_ < count_; index_++)
            if (std::strcmp(reinterpret_cast<const char*>(names->data) + index_ * ETH_GSTRING_LEN, name) == 0)
                return {};
        return kernel_refused(fmt::format("this kernel's veth interfaces have no counter {}", name));
    }

    UniqueFd socket_;
    std::vector<std::uint64_t> values_;
    std::uint32_t count_ = 0;
    std::uint32_t index_ = 0;
};

// Sends until it is told to stop, then returns the number of packets.
class Sender {
  public:
    virtual ~Sender() = default;
    virtual Result<std::uint64_t> send_for(std::chrono::duration<double> time) = 0;
};

class FrameSender : public Sender {
  public:
    explicit FrameSender(const BenchObject& object)
        : program_(bpf_program__fd(object.skeleton().progs.bench_send_ipv4)) {
        object.control().interface = if_nametoindex(sender_name);
    }

    Result<std::uint64_t> send_for(std::chrono::duration<double> time) override {
        // Each call first waits for grace periods, 4 ms and more. The repeat count is high to make that wait
        // negligible.
        constexpr int repeat = 1 << 19;
        const auto start = std::chrono::steady_clock::now();
        std::uint64_t sent = 0;
        for (; std::chrono::steady_clock::now() - start < time; sent += repeat) {
            xdp_md context{};
            context.data_end = frame_bytes;
            LIBBPF_OPTS(bpf_test_run_opts, options);
            options.data_in = frame_.data();
            options.data_size_in = frame_bytes;
            options.ctx_in = &context;
            options.ctx_size_in = sizeof(context);
            options.repeat = repeat;
            options.batch_size = batch;
            options.flags = BPF_F_TEST_XDP_LIVE_FRAMES;
            if (bpf_prog_test_run_opts(program_, &options) != 0 && errno != EINTR)
                return kernel::refusal("sending XDP frames", errno);
        }
        return sent;
    }

  private:
    int program_;
    Frame frame_ = ipv4_tcp_frame();
};

class SocketSender : public Sender {
  public:
    static Result<std::unique_ptr<Sender>> open(const BenchObject& object) {
        UniqueFd socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
        if (!socket) return kernel::refusal("a packet socket", errno);
        const int yes = 1;
        ::setsockopt(socket.get(), SOL_PACKET, PACKET_QDISC_BYPASS, &yes, sizeof(yes));
        sockaddr_ll address{};
        address.sll_family = AF_PACKET;
        address.sll_ifindex = static_cast<int>(if_nametoindex(sender_name));
        if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
            return kernel::refusal("binding a packet socket", errno);
        return std::unique_ptr<Sender>(new SocketSender(std::move(socket), object));
    }

    Result<std::uint64_t> send_for(std::chrono::duration<double> time) override {
        const auto start = std::chrono::steady_clock::now();
        std::uint64_t sent = 0;
        bench_control& control = object_->control();
        while (std::chrono::steady_clock::now() - start < time)
            for (int i = 0; i < 64; i++) {
                for (Frame& frame : frames_) {
                    const std::uint32_t address =
                        htonl(bench_address(bench_draw(&state_, control.first, control.indices)));
                    std::memcpy(frame.data() + ipv4_source, &address, sizeof(address));
                }
                const int count = ::sendmmsg(socket_.get(), messages_.data(), batch, 0);
                if (count > 0)
                    sent += static_cast<std::uint64_t>(count);
                else if (errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
                    return kernel::refusal("sending on a packet socket", errno);
            }
        return sent;
    }

  private:
    SocketSender(UniqueFd socket, const BenchObject& object)
        : socket_(std::move(socket)), object_(&object), frames_(batch, ipv4_tcp_frame()), vectors_(batch),
          messages_(batch) {
        for (std::size_t i = 0; i < batch; i++) {
            vectors_[i] = {frames_[i].data(), frame_bytes};
            messages_[i].msg_hdr.msg_iov = &vectors_[i];
            messages_[i].msg_hdr.msg_iovlen = 1;
        }
    }

    UniqueFd socket_;
    const BenchObject* object_;
    __u64 state_ = 1;
    std::vector<Frame> frames_;
    std::vector<iovec> vectors_;
    std::vector<mmsghdr> messages_;
};

// Switches whether a kernel thread serves the receiver's queue. Returns true if that worked.
bool serve_by_thread(bool on) {
    std::ofstream file(fmt::format("/sys/class/net/{}/threaded", receiver_name));
    file << (on ? 1 : 0) << std::flush;
    return file.good();
}

// Ties the receiver's kernel thread to one processor.
void pin_receiver(unsigned processor) {
    const std::string wanted = fmt::format("napi/{}", receiver_name);
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        std::ifstream file(entry.path() / "comm");
        std::string name;
        if (!std::getline(file, name) || !name.starts_with(wanted.substr(0, 15))) continue;
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(processor, &set);
        ::sched_setaffinity(std::stoi(entry.path().filename()), sizeof(set), &set);
    }
}

struct Tested {
    const char* name;
    int program;
    Traffic traffic;
};

class Link {
  public:
    Link(const BenchObject& object, const kernel::Scratch& filtering, const PacketOptions& options)
        : object_(object), filtering_(filtering), options_(options) {}

    Status run(LinkTable& table, const Progress& progress) {
        SIEVE_TRY(run_tool({"ip", "link", "add", sender_name, "numtxqueues", "1", "numrxqueues", "1", "type",
                            "veth", "peer", "name", receiver_name, "numtxqueues", "1", "numrxqueues", "1"}));
        for (const char* name : {sender_name, receiver_name})
            SIEVE_TRY(run_tool({"ip", "link", "set", name, "up"}));
        receiver_ = static_cast<int>(if_nametoindex(receiver_name));
        SIEVE_TRY(attach(bpf_program__fd(object_.skeleton().progs.bench_drop)));
        SIEVE_ASSIGN(Counters counters, Counters::open());
        pin_to_processor(0);

        FrameSender frames(object_);
        SIEVE_ASSIGN(const std::unique_ptr<Sender> sockets, SocketSender::open(object_));
        SIEVE_TRY(measure(Generator::sockets, *sockets, counters, table, progress));
        SIEVE_TRY(measure(Generator::frames, frames, counters, table, progress));
        if (std::thread::hardware_concurrency() < 2) {
            table.skipped.emplace_back("a receiver apart from the sender: one processor only");
        } else if (!serve_by_thread(true)) {
            table.skipped.emplace_back("a receiver apart from the sender: no threaded NAPI in this kernel");
        } else {
            pin_receiver(1);
            SIEVE_TRY(measure(Generator::frames_apart, frames, counters, table, progress));
        }
        return {};
    }

  private:
    Status attach(int program) const {
        if (const int error = bpf_xdp_attach(receiver_, program, XDP_FLAGS_DRV_MODE, nullptr); error != 0)
            return kernel::refusal("attaching to a veth interface", error);
        return {};
    }

    Status measure(Generator generator, Sender& sender, Counters& counters, LinkTable& table,
                   const Progress& progress) const {
        LinkRow row;
        row.generator = generator;
        const int ours = filtering_.object().program_fd();
        const auto& programs = object_.skeleton().progs;
        const Tested tested[] = {
            {"XDP_DROP", bpf_program__fd(programs.bench_drop), Traffic::non_members},
            {"XDP_DROP, address read", bpf_program__fd(programs.bench_read), Traffic::non_members},
            {"floor", bpf_program__fd(programs.bench_floor), Traffic::non_members},
            {"xdp-sieve, non-members", ours, Traffic::non_members},
            {"xdp-sieve, members", ours, Traffic::members},
        };
        for (const Tested& one : tested) row.results.push_back({.program = one.name, .rate = {}});
        const auto time = std::chrono::duration<double, std::milli>(options_.link_milliseconds);
        std::uint64_t sent_to_drop = 0, taken_by_drop = 0;
        for (std::uint32_t round = 0; round < options_.rounds; round++) {
            for (std::size_t i = 0; i < std::size(tested); i++) {
                const Tested& one = tested[i];
                SIEVE_TRY(attach(one.program));
                // The default drops non-members, so that only our program is measured.
                SIEVE_TRY(filtering_.table().replace(
                    {.default_action =
                         one.traffic == Traffic::non_members ? SIEVE_ACTION_DROP : SIEVE_ACTION_PASS,
                     .sets = {{.name = "bench",
                               .action = one.traffic == Traffic::non_members ? SIEVE_ACTION_PASS
                                                                             : SIEVE_ACTION_DROP,
                               .map_fd = -1}}}));
                object_.draw(one.traffic, table.keys);
                SIEVE_TRY(sender.send_for(time / 10));
                SIEVE_ASSIGN(const std::uint64_t before, counters.packets());
                const auto start = std::chrono::steady_clock::now();
                SIEVE_ASSIGN(const std::uint64_t sent, sender.send_for(time));
                SIEVE_ASSIGN(const std::uint64_t after, counters.packets());
                const double seconds =
                    std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
                row.results[i].rate.push_back(static_cast<double>(after - before) / seconds);
                if (i != 0) continue;
                sent_to_drop += sent;
                taken_by_drop += after - before;
            }
            progress(generator_name(row.generator), (round + 1.0) / options_.rounds);
        }
        row.offered = static_cast<double>(sent_to_drop) /
                      static_cast<double>(std::max<std::uint64_t>(taken_by_drop, 1));
        table.rows.push_back(std::move(row));
        return {};
    }

    const BenchObject& object_;
    const kernel::Scratch& filtering_;
    const PacketOptions& options_;
    int receiver_ = 0;
};

} // namespace

const char* generator_name(Generator generator) {
    return std::array{"frames", "frames, receiver apart",
                      "packet socket"}[static_cast<std::size_t>(generator)];
}

Result<LinkTable> bench_link(const Image& image, const PacketOptions& options, const Progress& progress) {
    LinkTable table{.keys = image.file().keys, .rows = {}, .skipped = {}};
    if (!have_tool("ip")) {
        table.skipped.emplace_back("packets over a veth pair: `ip` (iproute2) is not installed");
        return table;
    }
    SIEVE_ASSIGN(const kernel::Scratch filtering, kernel::Scratch::load(false));
    SIEVE_ASSIGN(const kernel::FilterMap map, kernel::FilterMap::create(image, "bench"));
    SIEVE_ASSIGN(const BenchObject object,
                 BenchObject::load(BenchSizes::floor_only(image.lookup().buckets, map.fd())));
    SIEVE_TRY(filtering.table().replace(
        {.default_action = SIEVE_ACTION_DROP,
         .sets = {{.name = "bench", .action = SIEVE_ACTION_PASS, .map_fd = map.fd()}}}));
    SIEVE_TRY(in_private_network([&] { return Link(object, filtering, options).run(table, progress); }));
    return table;
}

} // namespace sieve::bench
