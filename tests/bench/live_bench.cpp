// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What keeping a list of decisions current costs: a live set beside an nftables set with the same decisions,
// in a network namespace of its own.
//
//     live-bench [--output FILE.json] [DECISIONS...]     20000 and 200000 if none are given
//
// The live set gets its decisions as the service does: from a server on loopback that answers like CrowdSec's
// local API, through the fetch child. The nftables set gets them from one file for `nft -f`, which is its
// fastest way; from files of 200 elements, which is how bouncers do it; and from one `nft` for each decision
// (of a sample).
#include <malloc.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/control/real_kernel.hpp"
#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/service/live/live_image.hpp"
#include "libsieve/service/live/live_updater.hpp"
#include "libsieve/service/live/range_set_configuration.hpp"
#include "libsieve/service/reconcile/cycle.hpp"
#include "libsieve/service/sandbox/child_main.hpp"
#include "libsieve/service/sources/fetch_decisions.hpp"
#include "service/servers.hpp"

namespace {

using namespace sieve;
using namespace sieve::service;
using namespace sieve::service::live;
using Clock = std::chrono::steady_clock;
using nlohmann::json;

// An update as CrowdSec's community list gives every two hours.
constexpr std::size_t update_added = 15'000;
constexpr std::size_t update_deleted = 14'680;
constexpr std::size_t nft_sample = 200;
constexpr std::size_t bouncer_chunk = 200;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Processor time of this process and its children, in seconds.
double processor_seconds() {
    const auto of = [](int who) {
        rusage usage{};
        ::getrusage(who, &usage);
        const auto seconds = [](const timeval& time) {
            return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
        };
        return seconds(usage.ru_utime) + seconds(usage.ru_stime);
    };
    return of(RUSAGE_SELF) + of(RUSAGE_CHILDREN);
}

// A line of a file such as /proc/meminfo, in bytes.
double bytes_of(const std::string& path, const std::string& name) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(name + ":")) return 1024 * std::strtod(line.c_str() + name.size() + 1, nullptr);
    return 0;
}
double resident() {
    ::malloc_trim(0);
    return bytes_of("/proc/self/status", "VmRSS");
}
double slab() {
    return bytes_of("/proc/meminfo", "Slab");
}

[[noreturn]] void fail(const std::string& what) {
    std::cerr << "live-bench: " << what << "\n";
    std::exit(1);
}
template <class T>
T value_of(Result<T> result) {
    if (!result) fail(result.error().message);
    return std::move(*result);
}
struct Decision {
    std::uint32_t address = 0;
    std::uint64_t id = 0;
};

std::string address_text(std::uint32_t address) {
    return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
}

// Distinct addresses outside of 0/8, 10/8, 127/8 and everything from 224/4 on.
std::vector<Decision> draw(std::size_t count, std::uint64_t first_id, std::set<std::uint32_t>& taken,
                           std::mt19937_64& random) {
    std::vector<Decision> decisions;
    while (decisions.size() < count) {
        const auto address = static_cast<std::uint32_t>(random());
        const std::uint32_t upper = address >> 24;
        if (upper == 0 || upper == 10 || upper == 127 || upper >= 224 || !taken.insert(address).second)
            continue;
        decisions.push_back({address, first_id + decisions.size()});
    }
    return decisions;
}

std::string json_list(const std::vector<Decision>& decisions) {
    std::string text = "[";
    for (const Decision& one : decisions)
        text += fmt::format("{}{{\"duration\":\"167h12m3.5s\",\"id\":{},\"origin\":\"CAPI\",\"scenario\":"
                            "\"crowdsecurity/ssh-bf\",\"scope\":\"Ip\",\"type\":\"ban\",\"value\":\"{}\"}}",
                            text.size() > 1 ? "," : "", one.id, address_text(one.address));
    return text + "]";
}
std::string answer_of(const std::vector<Decision>& added, const std::vector<Decision>& deleted) {
    return "{\"deleted\":" + json_list(deleted) + ",\"new\":" + json_list(added) + "}";
}

void enter_own_network() {
    if (::unshare(CLONE_NEWNET) != 0) fail("needs root");
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq loopback{};
    std::strcpy(loopback.ifr_name, "lo");
    loopback.ifr_flags = IFF_UP | IFF_RUNNING;
    if (::ioctl(socket.get(), SIOCSIFFLAGS, &loopback) != 0) fail("no loopback");
}

struct Cost {
    double seconds = 0;
    double processor = 0;
    std::size_t changes = 0;

    [[nodiscard]] double rate() const { return static_cast<double>(changes) / seconds; }
    [[nodiscard]] json to_json() const {
        return {{"seconds", seconds},
                {"processor_seconds", processor},
                {"changes", changes},
                {"per_second", rate()}};
    }
};

template <class Work>
Cost cost_of(std::size_t changes, const Work& work) {
    const double processor = processor_seconds();
    const auto begin = Clock::now();
    work();
    Cost cost{seconds_since(begin), 0, changes};
    cost.processor = processor_seconds() - processor;
    return cost;
}

// --- the live set

class LiveBench {
  public:
    LiveBench()
        : server_([this](int connection, const std::string&) {
              test::send_all(connection, fmt::format("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                                     "Connection: close\r\nContent-Length: {}\r\n\r\n",
                                                     answer_.size()) +
                                             answer_);
          }) {
        folder_.write("key", "benchmark\n");
        std::filesystem::permissions(folder_.path("key"), std::filesystem::perms(0600));
        source_.url = server_.url("");
        source_.key_file = folder_.path("key");
        set_.name = "block";
        set_.sources = {source_};
        set_.feed.build.kind.kind = SIEVE_KIND_DDLCBF;
        set_.guards.most_growth = 1e9;
        sandbox_.user = value_of(find_sandbox_user());
    }

    json run(const std::vector<Decision>& first, const std::vector<Decision>& added,
             const std::vector<Decision>& deleted) {
        const double memory_before = resident();
        LiveSet live = value_of(LiveSet::open({set_, {}}, kernel_, state_, {}));
        value_of(rebuild(live));
        put_in_force();

        // The first list: a filter of that size is built and swapped in.
        answer_ = answer_of(first, {});
        json out;
        Decisions decisions;
        out["download"] =
            cost_of(first.size(), [&] { decisions = fetch(SourceSchedule::Fetch::whole_list); }).to_json();
        out["first"] = cost_of(first.size(), [&] {
                           const LiveChange done =
                               value_of(live.replace(Part::followed, std::move(decisions.added)));
                           if (done.refusal) fail(done.refusal->message);
                           if (live.rebuild_due()) value_of(rebuild(live));
                       }).to_json();

        answer_ = answer_of(added, deleted);
        LiveChange change;
        double change_processor = 0; // with the list and the journal
        const Cost whole = cost_of(added.size() + deleted.size(), [&] {
            out["update_download"] = cost_of(added.size() + deleted.size(), [&] {
                                         decisions = fetch(SourceSchedule::Fetch::difference);
                                     }).to_json();
            const double before = processor_seconds();
            change = value_of(
                live.change(Part::followed, {std::move(decisions.deleted), std::move(decisions.added)}));
            change_processor = processor_seconds() - before;
        });
        // A larger table may be due before as many keys come again.
        const bool waits = change.rebuild_due && is_urgent(*change.rebuild_due);
        if (change.keys != added.size() + deleted.size() || waits) fail("the update did not go in place");
        out["update_from_poll"] = whole.to_json();
        out["update_in_force"] =
            Cost{1e-6 * static_cast<double>(change.taken.count()), change_processor, change.keys}.to_json();

        answer_ = answer_of({}, {});
        constexpr std::size_t polls = 20;
        out["empty_poll"] = cost_of(polls, [&] {
                                for (std::size_t i = 0; i < polls; i++)
                                    (void)fetch(SourceSchedule::Fetch::difference);
                            }).to_json();

        // One decision after the other.
        std::vector<double> single;
        const double processor_before = processor_seconds();
        for (std::size_t i = 0; i < nft_sample; i++) {
            const TimedEntry timed_entry{
                {address_number(0, sieve_v4_mapped(0xe0000000 + static_cast<std::uint32_t>(i)))},
                1'000'000'000 + i};
            const auto begin = Clock::now();
            value_of(live.change(Part::followed, {{}, {timed_entry}}));
            single.push_back(seconds_since(begin));
        }
        std::sort(single.begin(), single.end());
        out["one_by_one"] =
            Cost{single[single.size() / 2], (processor_seconds() - processor_before) / nft_sample, 1}
                .to_json();
        answer_ = {};
        decisions = {};
        out["daemon_bytes"] = std::max(0.0, resident() - memory_before);
        const auto record = state_.read("block", [](const std::string&) {});
        out["kernel_bytes"] = record ? record->bytes : 0;
        check(live, added, deleted);
        take_away();
        return out;
    }

  private:
    Result<LiveChange> rebuild(LiveSet& live) {
        SIEVE_ASSIGN(RebuildOrder order, live.begin_rebuild());
        SIEVE_ASSIGN(Image image, build_live_image(std::move(order), sandbox_));
        return live.finish_rebuild(std::move(image));
    }
    Decisions fetch(SourceSchedule::Fetch part) {
        auto decisions = fetch_decisions(source_, part, service::live::current_time(), sandbox_);
        if (!decisions) fail(decisions.error().error.message);
        return std::move(*decisions);
    }
    void put_in_force() {
        Configuration configuration;
        configuration.sets = {set_};
        configuration.interfaces = {{.name = "lo", .mode = kernel::ModeChoice::skb, .sets = {"block"}}};
        CycleOptions options;
        options.ask = Ask::nothing;
        const CycleReport report = value_of(run_cycle(kernel_, configuration, state_, host_, options, {}));
        for (const HookReport& hook : report.hooks)
            if (hook.error) fail(hook.error->message);
    }
    void check(const LiveSet& live, const std::vector<Decision>& added,
               const std::vector<Decision>& deleted) {
        if (!live.list().contains({address_number(0, sieve_v4_mapped(added.front().address))}) ||
            live.list().contains({address_number(0, sieve_v4_mapped(deleted.front().address))}))
            fail("the list is wrong");
    }
    void take_away() {
        const auto interface = value_of(kernel_.find_interface("lo"));
        const auto hook = value_of(kernel_.read_hook(interface, kernel::HookPoint::xdp));
        if (hook.ours) (void)kernel::detach(hook);
    }

    test::Folder folder_;
    std::string answer_;
    test::ScriptedServer server_;
    CrowdsecSpec source_;
    SetConfiguration set_;
    SandboxSettings sandbox_;
    control::RealKernel kernel_;
    RealHostAddresses host_;
    StateDirectory state_ =
        value_of(StateDirectory::open(folder_.path("state"), std::chrono::seconds(1), {}));
};

// --- nftables

class NftBench {
  public:
    json run(const std::vector<Decision>& first, const std::vector<Decision>& added,
             const std::vector<Decision>& deleted) {
        json out;
        nft("add table inet bench\nadd set inet bench block { type ipv4_addr; flags timeout; }\n");
        const double before = slab();
        out["first"] = cost_of(first.size(), [&] { nft(elements("add", first, first.size())); }).to_json();
        out["kernel_bytes"] = std::max(0.0, slab() - before);
        out["update_in_force"] =
            cost_of(added.size() + deleted.size(), [&] {
                nft(elements("delete", deleted, deleted.size()) + elements("add", added, added.size()));
            }).to_json();
        const std::vector<Decision> some(added.begin(), added.begin() + 4000);
        nft(elements("delete", some, some.size()));
        out["in_chunks"] = cost_of(some.size(), [&] {
                               for (std::size_t i = 0; i < some.size(); i += bouncer_chunk)
                                   nft(elements("add",
                                                {some.begin() + static_cast<long>(i),
                                                 some.begin() + static_cast<long>(i + bouncer_chunk)},
                                                bouncer_chunk));
                           }).to_json();
        const std::vector<Decision> sample(some.begin(), some.begin() + nft_sample);
        nft(elements("delete", sample, sample.size()));
        out["one_by_one"] = cost_of(sample.size(), [&] {
                                for (const Decision& one : sample) nft(elements("add", {one}, 1));
                            }).to_json();
        nft("delete table inet bench\n");
        return out;
    }

  private:
    static std::string elements(const char* verb, const std::vector<Decision>& decisions, std::size_t chunk) {
        std::string text;
        for (std::size_t i = 0; i < decisions.size(); i += chunk) {
            text += fmt::format("{} element inet bench block {{ ", verb);
            for (std::size_t k = i; k < std::min(i + chunk, decisions.size()); k++) {
                if (k > i) text += ", ";
                text += address_text(decisions[k].address);
                if (verb[0] == 'a') text += " timeout 167h";
            }
            text += " }\n";
        }
        return text;
    }
    void nft(const std::string& commands) const {
        folder_.write("commands", commands);
        folder_.shell("nft -f commands");
    }
    test::Folder folder_;
};

// --- a watched list of a million addresses

json run_watched(std::size_t addresses) {
    const test::Folder folder;
    control::RealKernel kernel;
    RealHostAddresses host;
    const StateDirectory state =
        value_of(StateDirectory::open(folder.path("state"), std::chrono::seconds(1), {}));
    std::mt19937_64 random(5);
    std::set<std::uint32_t> taken;
    std::string text;
    for (const Decision& one : draw(addresses, 0, taken, random)) text += address_text(one.address) + "\n";
    folder.write("list.txt", text);
    Configuration configuration;
    SetConfiguration set;
    set.name = "watched";
    set.sources = {FileSpec{folder.path("list.txt")}};
    set.feed.build.kind.kind = SIEVE_KIND_EXACT;
    configuration.sets = {set};
    configuration.interfaces = {{.name = "lo", .mode = kernel::ModeChoice::skb, .sets = {"watched"}}};
    LiveUpdaterSettings settings;
    settings.configuration = configuration;
    settings.set = "watched";
    std::uint64_t in_place = 0;
    settings.tell = [&](const LiveEvent& event) {
        if (event.what == LiveEvent::What::changed) in_place++;
        if (event.error) fail(event.error->message);
    };
    const double memory_before = resident();
    const auto updater = value_of(LiveUpdater::open(std::move(settings), kernel, state, host));
    CycleOptions options;
    options.ask = Ask::nothing;
    // The first step reads the list, and a thread of its own builds the table.
    const auto end = Clock::now() + std::chrono::minutes(1);
    while (!updater->state().in_step) {
        if (Clock::now() > end) fail("the list does not come into force");
        updater->step();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const CycleReport report = value_of(run_cycle(kernel, configuration, state, host, options, {}));
    for (const HookReport& hook : report.hooks)
        if (hook.error) fail(hook.error->message);
    updater->reconcile_soon();
    updater->step();
    in_place = 0;
    std::vector<double> taken_seconds;
    double processor = 0;
    for (int i = 0; i < 50; i++) {
        const std::size_t at = text.find('\n', random() % text.size()) + 1;
        std::string more = address_text(0xe0000000U + static_cast<std::uint32_t>(i)) + "\n";
        text.insert(at, more);
        folder.write("list.new", text);
        std::filesystem::rename(folder.path("list.new"), folder.path("list.txt"));
        const double processor_before = processor_seconds();
        const auto begin = Clock::now();
        updater->wake();
        updater->step();
        taken_seconds.push_back(seconds_since(begin));
        processor += (processor_seconds() - processor_before) / 50;
    }
    if (in_place != 50) fail("the lines did not go in place");
    std::sort(taken_seconds.begin(), taken_seconds.end());
    const auto interface = value_of(kernel.find_interface("lo"));
    const auto hook = value_of(kernel.read_hook(interface, kernel::HookPoint::xdp));
    if (hook.ours) (void)kernel::detach(hook);
    return {{"addresses", addresses},
            {"median_seconds", taken_seconds[taken_seconds.size() / 2]},
            {"worst_seconds", taken_seconds.back()},
            {"processor_seconds", processor},
            {"daemon_bytes", std::max(0.0, resident() - memory_before)}};
}

void print_row(const char* what, const json& ours, const json& theirs) {
    const auto text = [](const json& cost) {
        if (cost.is_null()) return std::string("-");
        return fmt::format("{:.3f} s, {:.3f} s CPU, {:.0f}/s", cost.at("seconds").get<double>(),
                           cost.at("processor_seconds").get<double>(), cost.at("per_second").get<double>());
    };
    fmt::print("  {:<34} {:<40} {}\n", what, text(ours), text(theirs));
}

} // namespace

int main(int argc, char** argv) {
    if (const auto done = run_as_child(argc, argv)) return *done;
    (void)std::signal(SIGPIPE, SIG_IGN);
    std::string output;
    std::vector<std::size_t> sizes;
    for (int i = 1; i < argc; i++)
        if (std::string(argv[i]) == "--output" && i + 1 < argc)
            output = argv[++i];
        else
            sizes.push_back(std::strtoull(argv[i], nullptr, 10));
    if (sizes.empty()) sizes = {20'000, 200'000};
    enter_own_network();
    json all = json::array();
    for (const std::size_t size : sizes) {
        if (size <= update_deleted) fail("too few decisions");
        std::mt19937_64 random(size);
        std::set<std::uint32_t> taken;
        const std::vector<Decision> first = draw(size, 1, taken, random);
        const std::vector<Decision> added = draw(update_added, size + 1, taken, random);
        const std::vector<Decision> deleted(first.begin(), first.begin() + update_deleted);
        json row{{"decisions", size}};
        row["live"] = LiveBench().run(first, added, deleted);
        row["nftables"] = NftBench().run(first, added, deleted);
        const json& ours = row["live"];
        const json& theirs = row["nftables"];
        fmt::print("{} decisions                        {:<40} {}\n", size, "live set", "nftables set");
        print_row("downloaded and parsed", ours["download"], {});
        print_row("the first list in force", ours["first"], theirs["first"]);
        print_row("15,000 come and 14,680 go", ours["update_in_force"], theirs["update_in_force"]);
        print_row("  from the poll on", ours["update_from_poll"], {});
        print_row("polls with nothing new", ours["empty_poll"], {});
        print_row("in chunks of 200", {}, theirs["in_chunks"]);
        print_row("one by one", ours["one_by_one"], theirs["one_by_one"]);
        fmt::print("  {:<34} {:<40} {:.1f} MB\n", "memory in the kernel",
                   fmt::format("{:.1f} MB", ours["kernel_bytes"].get<double>() / 1e6),
                   theirs["kernel_bytes"].get<double>() / 1e6);
        fmt::print("  {:<34} {:.1f} MB\n", "memory of the process", ours["daemon_bytes"].get<double>() / 1e6);
        all.push_back(std::move(row));
    }
    const json watched = run_watched(1'000'000);
    const auto milliseconds = [&](const char* name) { return 1e3 * watched[name].get<double>(); };
    fmt::print("one more address in a watched list of 1,000,000: median {:.1f} ms, worst of 50 {:.1f} ms, "
               "{:.1f} ms CPU; "
               "memory of the process {:.0f} MB\n",
               milliseconds("median_seconds"), milliseconds("worst_seconds"),
               milliseconds("processor_seconds"), watched["daemon_bytes"].get<double>() / 1e6);
    if (!output.empty())
        std::ofstream(output) << json{{"streams", all}, {"watched", watched}}.dump(2) << "\n";
    return 0;
}
