// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/firewall_bench.hpp"

#include <sys/mount.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <memory>
#include <sstream>

#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <sieve/policy.h>

#include "libsieve/bench/setup/bench_keys.hpp"
#include "libsieve/bench/setup/firewalls.hpp"
#include "libsieve/bench/setup/private_network.hpp"
#include "libsieve/bench/setup/senders.hpp"
#include "libsieve/bench/setup/veth_pair.hpp"
#include "libsieve/bench/setup/workplace.hpp"
#include "libsieve/kernel/host/refusal.hpp"

#include "bpf/bench/bench_control.h"
#include "sieve_bench.skel.h"

namespace sieve::bench {

namespace {

constexpr std::array asked = {Traffic::non_members, Traffic::members};

// Packets that came as far as the host's routes and had no place to go: what every filter has passed.
Result<std::uint64_t> packets_passed() {
    // Of this thread's namespace.
    std::ifstream file("/proc/thread-self/net/snmp");
    std::string names, values;
    while (std::getline(file, names) && std::getline(file, values)) {
        if (!names.starts_with("Ip:")) continue;
        std::istringstream name_words(names), value_words(values);
        std::uint64_t sum = 0;
        for (std::string name, value; name_words >> name && value_words >> value;)
            if (name == "InAddrErrors" || name == "InNoRoutes") sum += std::stoull(value);
        return sum;
    }
    return kernel_refused("/proc/thread-self/net/snmp has no line of IP's counters");
}

// Puts file systems where the firewalls' commands leave things, in this thread's mount namespace only.
Status mount_private() {
    if (::mount("bpf", "/sys/fs/bpf", "bpf", 0, nullptr) != 0 ||
        ::mount("tmpfs", "/run", "tmpfs", 0, nullptr) != 0)
        return kernel::refusal("mounting /sys/fs/bpf and /run for the benchmark", errno);
    return {};
}

// A receiver that has no list: with XDP_DROP, or with nothing.
class NoList : public Firewall {
  public:
    NoList(const char* name, const VethPair& pair, int program)
        : name_(name), pair_(pair), program_(program) {}

    [[nodiscard]] const char* name() const override { return name_; }
    Result<Loaded> load() override {
        SIEVE_TRY(switch_on());
        return Loaded{};
    }
    Status switch_off() override { return program_ < 0 ? Status() : pair_.attach(-1); }
    Status switch_on() override { return program_ < 0 ? Status() : pair_.attach(program_); }
    Status remove() override { return switch_off(); }

  private:
    const char* name_;
    const VethPair& pair_;
    int program_;
};

class Bench {
  public:
    Bench(const Image& image, const BenchObject& object, const FirewallOptions& options,
          const Workplace& place, const Progress& progress)
        : image_(image), object_(object), options_(options), place_(place), progress_(progress) {}

    Status run(FirewallTable& table) {
        SIEVE_TRY(mount_private());
        SIEVE_ASSIGN(VethPair pair, VethPair::create());
        SIEVE_TRY(pair.poll_queue());
        Result<ReceiverThread> thread = ReceiverThread::start();
        if (!thread) {
            table.skipped.push_back("firewalls: " + thread.error().message);
            return {};
        }
        const std::vector<std::uint32_t> addresses = member_addresses(table.keys);
        const FirewallSite site{pair, place_, addresses, options_.program, image_.bytes()};
        SIEVE_TRY(set_up(site, table));
        SIEVE_TRY(load(table));
        pin_to_processor(0);
        const std::unique_ptr<Sender> frames = frame_sender(object_, options_.packets_a_call);
        SIEVE_ASSIGN(const std::unique_ptr<Sender> sockets, socket_sender(object_));
        const std::array<Sender*, arrivals.size()> senders = {frames.get(), sockets.get()};
        for (std::uint32_t round = 0; round < options_.rounds; round++) {
            for (std::size_t i = 0; i < firewalls_.size(); i++) {
                SIEVE_TRY(firewalls_[i]->switch_on());
                for (std::size_t arrival = 0; arrival < arrivals.size(); arrival++)
                    for (std::size_t traffic = 0; traffic < asked.size(); traffic++)
                        SIEVE_TRY(measure(*senders[arrival], asked[traffic], pair, *thread, table.keys,
                                          table.rows[i].results[arrival][traffic]));
                SIEVE_TRY(firewalls_[i]->switch_off());
            }
            progress_("firewalls", (round + 1.0) / options_.rounds);
        }
        return check(table);
    }

  private:
    Status set_up(const FirewallSite& site, FirewallTable& table) {
        firewalls_.push_back(std::make_unique<NoList>("no filter", site.pair, -1));
        firewalls_.push_back(std::make_unique<NoList>("XDP_DROP", site.pair,
                                                      bpf_program__fd(object_.skeleton().progs.bench_drop)));
        without_list_ = firewalls_.size();
        SIEVE_ASSIGN(std::vector<std::unique_ptr<Firewall>> all, firewalls(site));
        for (std::unique_ptr<Firewall>& one : all) firewalls_.push_back(std::move(one));
        for (const auto& one : firewalls_) {
            table.rows.emplace_back();
            table.rows.back().name = one->name();
        }
        return {};
    }

    // Loads every list several times, in turn, and leaves it loaded and switched off.
    Status load(FirewallTable& table) {
        for (std::uint32_t round = 0; round < options_.load_rounds; round++)
            for (std::size_t i = 0; i < firewalls_.size();) {
                FirewallRow& row = table.rows[i];
                Firewall& firewall = *firewalls_[i];
                constexpr double long_enough = 3; // no repetition is needed to tell seconds from milliseconds
                if (round > 0 && (i < without_list_ || row.load_seconds[0] > long_enough)) {
                    i++;
                    continue;
                }
                if (round > 0) {
                    SIEVE_TRY(firewall.switch_on());
                    SIEVE_TRY(firewall.remove());
                }
                Result<Loaded> loaded = firewall.load();
                if (!loaded) {
                    table.skipped.push_back(fmt::format("{}: {}", row.name, loaded.error().message));
                    firewalls_.erase(firewalls_.begin() + static_cast<std::ptrdiff_t>(i));
                    table.rows.erase(table.rows.begin() + static_cast<std::ptrdiff_t>(i));
                    continue;
                }
                SIEVE_TRY(firewall.switch_off());
                if (i >= without_list_) row.load_seconds.push_back(loaded->seconds);
                row.bytes = loaded->bytes;
                row.bytes_by = loaded->bytes_by;
                i++;
                progress_("loading firewalls", static_cast<double>(round * firewalls_.size() + i) /
                                                   (options_.load_rounds * firewalls_.size()));
            }
        return {};
    }

    Status measure(Sender& sender, Traffic traffic, VethPair& pair, const ReceiverThread& thread,
                   std::uint64_t keys, FirewallResult& result) const {
        const auto time = std::chrono::duration<double, std::milli>(options_.milliseconds);
        object_.draw(traffic, keys);
        SIEVE_TRY(sender.send_for(time / 10));
        SIEVE_TRY(thread.wait_until_idle());
        SIEVE_ASSIGN(const std::uint64_t packets_before, pair.packets());
        SIEVE_ASSIGN(const std::uint64_t passed_before, packets_passed());
        SIEVE_ASSIGN(const double processor_before, thread.processor_time());
        const auto start = std::chrono::steady_clock::now();
        SIEVE_TRY(sender.send_for(time));
        SIEVE_TRY(thread.wait_until_idle());
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        SIEVE_ASSIGN(const std::uint64_t packets_after, pair.packets());
        SIEVE_ASSIGN(const std::uint64_t passed_after, packets_passed());
        SIEVE_ASSIGN(const double processor_after, thread.processor_time());
        const double packets =
            static_cast<double>(std::max<std::uint64_t>(packets_after - packets_before, 1));
        result.rate.push_back(packets / seconds);
        result.nanoseconds.push_back((processor_after - processor_before) * 1e9 / packets);
        result.passed += static_cast<double>(passed_after - passed_before) / packets / options_.rounds;
        return {};
    }

    // Refuses to report a firewall that judges wrongly. Of random sources, the stack itself drops those that
    // no host may have, such as multicast addresses: a sixteenth and a bit.
    Status check(const FirewallTable& table) const {
        constexpr double least_passed = 0.85;
        constexpr double most_missed = 0;
        for (std::size_t i = 0; i < table.rows.size(); i++)
            for (const auto& by_traffic : table.rows[i].results) {
                const double strangers = by_traffic[0].passed, members = by_traffic[1].passed;
                if (i < without_list_) continue;
                if (strangers >= least_passed && members <= most_missed) continue;
                return bad_input(
                    fmt::format("{} passed {:.1f}% of non-members and {:.1f}% of members, so its "
                                "times mean nothing",
                                table.rows[i].name, 100 * strangers, 100 * members));
            }
        return {};
    }

    const Image& image_;
    const BenchObject& object_;
    const FirewallOptions& options_;
    const Workplace& place_;
    const Progress& progress_;
    std::vector<std::unique_ptr<Firewall>> firewalls_; // entry i belongs to row i of the table
    std::size_t without_list_ = 0;                     // the first entries are NoList
};

} // namespace

const char* arrival_name(Arrival arrival) {
    return std::array{"frames", "packet socket"}[static_cast<std::size_t>(arrival)];
}

Result<FirewallTable> bench_firewalls(const Image& image, const FirewallOptions& options,
                                      const Progress& progress) {
    FirewallTable table;
    table.keys = image.file().keys;
    if (table.keys > options.most_keys) {
        table.skipped.push_back(fmt::format("firewalls: compared at up to {} keys", options.most_keys));
        return table;
    }
    if (!have_tool("ip")) {
        table.skipped.emplace_back("firewalls: `ip` (iproute2) is not installed");
        return table;
    }
    SIEVE_ASSIGN(const BenchObject object, BenchObject::load(BenchSizes::without_peers(1, -1)));
    SIEVE_ASSIGN(const Workplace place, Workplace::create());
    SIEVE_TRY(in_private_network([&] { return Bench(image, object, options, place, progress).run(table); }));
    return table;
}

} // namespace sieve::bench
