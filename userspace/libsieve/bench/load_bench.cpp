// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/load_bench.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "libsieve/bench/setup/bench_keys.hpp"
#include "libsieve/bench/setup/list_files.hpp"
#include "libsieve/bench/setup/private_network.hpp"
#include "libsieve/bench/setup/workplace.hpp"

namespace sieve::bench {

namespace {

constexpr const char* interface = "sieve-rx";

class Loader {
  public:
    Loader(Image& image, const LoadOptions& options, const Workplace& place)
        : image_(image), options_(options), place_(place), keys_(image.file().keys) {}

    Status run(LoadTable& table, const Progress& progress) {
        table.keys = keys_;
        SIEVE_TRY(image_.save(place_.file("set.img")));
        addresses_ = member_addresses(keys_);
        SIEVE_TRY(write_addresses(place_.file("set.txt"), addresses_, "", "", "\n", ""));
        SIEVE_TRY(run_tool({"ip", "link", "add", "sieve-tx", "type", "veth", "peer", "name", interface}));

        std::vector<std::function<Status()>> measurements;
        const auto add = [&](const std::string& name, auto method) {
            table.rows.push_back({.name = name, .seconds = {}, .bytes = 0, .bytes_by = {}});
            const std::size_t index = table.rows.size() - 1;
            measurements.emplace_back([&table, index, method] { return method(table.rows[index]); });
        };
        add("xdp-sieve load IMAGE", [this](LoadRow& row) { return ours(row, "set.img"); });
        add("xdp-sieve load FEED, which builds", [this](LoadRow& row) { return ours(row, "set.txt"); });
        if (keys_ > options_.most_list_keys) {
            table.skipped.push_back(
                fmt::format("ipset, nftables: compared at up to {} keys", options_.most_list_keys));
        } else {
            if (prepare_ipset())
                add("ipset restore", [this](LoadRow& row) { return ipset(row); });
            else
                table.skipped.emplace_back("ipset: not installed, or not in this kernel");
            if (prepare_nft())
                add("nft -f", [this](LoadRow& row) { return nft(row); });
            else
                table.skipped.emplace_back("nftables: not installed, or not in this kernel");
        }
        for (std::uint32_t round = 0; round < options_.rounds; round++)
            for (std::size_t i = 0; i < measurements.size(); i++) {
                // No repetition is needed to tell seconds from milliseconds.
                if (round > 0 && table.rows[i].seconds[0] > 3) continue;
                SIEVE_TRY(measurements[i]());
                progress("loading", static_cast<double>(round * measurements.size() + i + 1) /
                                        static_cast<double>(options_.rounds * measurements.size()));
            }
        return {};
    }

  private:
    Status ours(LoadRow& row, const char* set) {
        SIEVE_ASSIGN(const double seconds, run_tool({options_.program, "-q", "load", interface,
                                                     fmt::format("bench={}", place_.file(set))}));
        row.seconds.push_back(seconds);
        row.bytes = image_.bytes();
        row.bytes_by = "the image";
        SIEVE_TRY(run_tool({options_.program, "-q", "unload", interface}));
        return {};
    }

    Status prepare_ipset() {
        SIEVE_TRY(run_tool({"ipset", "create", "probe", "hash:ip"}));
        SIEVE_TRY(run_tool({"ipset", "destroy", "probe"}));
        return write_ipset(place_.file("set.ipset"), "bench", addresses_);
    }

    Status ipset(LoadRow& row) {
        SIEVE_ASSIGN(const double seconds, run_tool({"ipset", "restore"}, place_.file("set.ipset")));
        row.seconds.push_back(seconds);
        SIEVE_ASSIGN(row.bytes, ipset_bytes("bench", place_.file("ipset.out")));
        row.bytes_by = "ipset list";
        SIEVE_TRY(run_tool({"ipset", "destroy", "bench"}));
        return {};
    }

    Status prepare_nft() {
        SIEVE_TRY(run_tool({"nft", "add", "table", "ip", "probe"}));
        SIEVE_TRY(run_tool({"nft", "delete", "table", "ip", "probe"}));
        return write_nft(place_.file("set.nft"), "ip bench", addresses_);
    }

    Status nft(LoadRow& row) {
        const std::uint64_t before = kernel_memory();
        SIEVE_ASSIGN(const double seconds, run_tool({"nft", "-f", place_.file("set.nft")}));
        row.seconds.push_back(seconds);
        row.bytes = std::max(kernel_memory(), before) - before;
        row.bytes_by = kernel_memory_lines;
        SIEVE_TRY(run_tool({"nft", "delete", "table", "ip", "bench"}));
        return {};
    }

    Image& image_;
    const LoadOptions& options_;
    const Workplace& place_;
    std::uint64_t keys_;
    std::vector<std::uint32_t> addresses_;
};

} // namespace

Result<LoadTable> bench_loading(Image& image, const LoadOptions& options, const Progress& progress) {
    LoadTable table;
    if (!have_tool("ip")) {
        table.skipped.emplace_back("loading by command: `ip` (iproute2) is not installed");
        return table;
    }
    SIEVE_ASSIGN(const Workplace place, Workplace::create());
    SIEVE_TRY(in_private_network([&] { return Loader(image, options, place).run(table, progress); }));
    return table;
}

} // namespace sieve::bench
