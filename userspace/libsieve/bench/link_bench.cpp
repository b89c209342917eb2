// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <sieve/policy.h>

#include "libsieve/bench/packet_bench.hpp"
#include "libsieve/bench/setup/private_network.hpp"
#include "libsieve/bench/setup/senders.hpp"
#include "libsieve/bench/setup/veth_pair.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "libsieve/kernel/programs/scratch.hpp"

#include "bpf/bench/bench_control.h"
#include "sieve_bench.skel.h"

namespace sieve::bench {

namespace {

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
        SIEVE_ASSIGN(VethPair pair, VethPair::create());
        SIEVE_TRY(pair.attach(bpf_program__fd(object_.skeleton().progs.bench_drop)));
        pin_to_processor(0);

        const std::unique_ptr<Sender> frames = frame_sender(object_);
        SIEVE_ASSIGN(const std::unique_ptr<Sender> sockets, socket_sender(object_));
        SIEVE_TRY(measure(Generator::sockets, *sockets, pair, table, progress));
        SIEVE_TRY(measure(Generator::frames, *frames, pair, table, progress));
        if (std::thread::hardware_concurrency() < 2)
            table.skipped.emplace_back("a receiver apart from the sender: one processor only");
        else if (const Result<ReceiverThread> thread = ReceiverThread::start(); !thread)
            table.skipped.emplace_back("a receiver apart from the sender: " + thread.error().message);
        else
            SIEVE_TRY(measure(Generator::frames_apart, *frames, pair, table, progress));
        return {};
    }

  private:
    Status measure(Generator generator, Sender& sender, VethPair& pair, LinkTable& table,
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
                SIEVE_TRY(pair.attach(one.program));
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
                SIEVE_ASSIGN(const std::uint64_t before, pair.packets());
                const auto start = std::chrono::steady_clock::now();
                SIEVE_ASSIGN(const std::uint64_t sent, sender.send_for(time));
                SIEVE_ASSIGN(const std::uint64_t after, pair.packets());
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
                 BenchObject::load(BenchSizes::without_peers(image.lookup().buckets, map.fd())));
    SIEVE_TRY(filtering.table().replace(
        {.default_action = SIEVE_ACTION_DROP,
         .sets = {{.name = "bench", .action = SIEVE_ACTION_PASS, .map_fd = map.fd()}}}));
    SIEVE_TRY(in_private_network([&] { return Link(object, filtering, options).run(table, progress); }));
    return table;
}

} // namespace sieve::bench
