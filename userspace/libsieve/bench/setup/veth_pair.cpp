// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/setup/veth_pair.hpp"

#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <bpf/libbpf.h>
#include <fmt/core.h>

#include "libsieve/bench/setup/private_network.hpp"
#include "libsieve/kernel/host/refusal.hpp"

namespace sieve::bench {

namespace {

constexpr const char* receiver_address = "02:00:00:00:00:01"; // the destination of ipv4_tcp_frame()

// The kernel threads that serve queues of receivers, of all network namespaces.
std::set<int> receiver_threads() {
    const std::string wanted = fmt::format("napi/{}", VethPair::receiver);
    std::set<int> threads;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        std::ifstream file(entry.path() / "comm");
        std::string name;
        if (std::getline(file, name) && name.starts_with(wanted.substr(0, 15)))
            threads.insert(std::stoi(entry.path().filename()));
    }
    return threads;
}

} // namespace

Result<VethPair> VethPair::create() {
    SIEVE_TRY(run_tool({"ip", "link", "add", sender, "numtxqueues", "1", "numrxqueues", "1", "type", "veth",
                        "peer", "name", receiver, "numtxqueues", "1", "numrxqueues", "1"}));
    SIEVE_TRY(run_tool({"ip", "link", "set", receiver, "address", receiver_address}));
    for (const char* name : {sender, receiver}) SIEVE_TRY(run_tool({"ip", "link", "set", name, "up"}));
    VethPair pair;
    pair.index_ = static_cast<int>(if_nametoindex(receiver));
    pair.socket_ = UniqueFd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!pair.socket_) return kernel::refusal("a socket to ask an interface with", errno);
    SIEVE_TRY(pair.find_counter());
    return pair;
}

Status VethPair::ask(const char* interface, void* data) const {
    ifreq request{};
    std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
    request.ifr_data = static_cast<char*>(data);
    if (::ioctl(socket_.get(), SIOCETHTOOL, &request) != 0)
        return kernel::refusal("asking a veth interface", errno);
    return {};
}

Status VethPair::find_counter() {
    constexpr const char* wanted = "rx_queue_0_xdp_packets"; // also of packets that met no XDP program
    ethtool_drvinfo driver{};
    driver.cmd = ETHTOOL_GDRVINFO;
    SIEVE_TRY(ask(receiver, &driver));
    count_ = driver.n_stats;
    std::vector<std::uint64_t> storage((sizeof(ethtool_gstrings) + count_ * ETH_GSTRING_LEN) / 8 + 1);
    auto* names = reinterpret_cast<ethtool_gstrings*>(storage.data());
    names->cmd = ETHTOOL_GSTRINGS;
    names->string_set = ETH_SS_STATS;
    names->len = count_;
    SIEVE_TRY(ask(receiver, names));
    values_.resize(sizeof(ethtool_stats) / 8 + count_ + 1);
    for (counter_ = 0; counter_ < count_; counter_++)
        if (std::strcmp(reinterpret_cast<const char*>(names->data) + counter_ * ETH_GSTRING_LEN, wanted) == 0)
            return {};
    return kernel_refused(fmt::format("this kernel's veth interfaces have no counter {}", wanted));
}

Result<std::uint64_t> VethPair::packets() {
    auto* stats = reinterpret_cast<ethtool_stats*>(values_.data());
    stats->cmd = ETHTOOL_GSTATS;
    stats->n_stats = count_;
    SIEVE_TRY(ask(receiver, stats));
    return stats->data[counter_];
}

Status VethPair::poll_queue() const {
    ethtool_value on{.cmd = ETHTOOL_SGRO, .data = 1};
    SIEVE_TRY(ask(receiver, &on));
    // The kernel lets a packet of a sender that can segment go around the queue.
    ethtool_value off{.cmd = ETHTOOL_STSO, .data = 0};
    return ask(sender, &off);
}

Status VethPair::attach(int program) const {
    if (const int error = bpf_xdp_attach(index_, program, XDP_FLAGS_DRV_MODE, nullptr); error != 0)
        return kernel::refusal("attaching to a veth interface", error);
    return {};
}

Result<ReceiverThread> ReceiverThread::start() {
    const std::set<int> before = receiver_threads();
    std::ofstream file(fmt::format("/sys/class/net/{}/threaded", VethPair::receiver));
    file << 1 << std::flush;
    if (!file.good()) return kernel_refused("no threaded NAPI in this kernel");
    for (const int pid : receiver_threads()) {
        if (before.contains(pid)) continue;
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(std::max(1U, std::thread::hardware_concurrency()) - 1, &set);
        ::sched_setaffinity(pid, sizeof(set), &set);
        return ReceiverThread(pid);
    }
    return kernel_refused("threaded NAPI started no thread: the interface does not poll its queue");
}

Status ReceiverThread::wait_until_idle() const {
    constexpr int most_looks = 60'000; // a minute: on a busy machine it waits for its turn
    for (int looks = 0; looks < most_looks; looks++) {
        // "PID (NAME) STATE ...". A thread that packets have woken is running or waits for a processor: R.
        std::ifstream file(fmt::format("/proc/{}/stat", pid_));
        std::string text;
        std::getline(file, text);
        const std::size_t name_ends = text.rfind(") ");
        if (name_ends == std::string::npos) return kernel_refused("the receiver's thread has gone");
        if (text.at(name_ends + 2) != 'R') return {};
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return kernel_refused("the receiver is never idle, although nothing is sent");
}

Result<double> ReceiverThread::processor_time() const {
    std::ifstream file(fmt::format("/proc/{}/schedstat", pid_));
    std::uint64_t nanoseconds = 0;
    if (!(file >> nanoseconds)) return kernel_refused("this kernel counts no processor time of threads");
    return static_cast<double>(nanoseconds) * 1e-9;
}

} // namespace sieve::bench
