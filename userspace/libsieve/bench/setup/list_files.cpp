// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/setup/list_files.hpp"

#include <fstream>

#include <fmt/core.h>

#include "libsieve/bench/setup/bench_keys.hpp"
#include "libsieve/bench/setup/private_network.hpp"

namespace sieve::bench {

Status write_ipset(const std::string& path, const std::string& name,
                   std::span<const std::uint32_t> addresses) {
    return write_addresses(
        path, addresses, fmt::format("create {0} hash:ip hashsize {1} maxelem {1}\n", name, addresses.size()),
        fmt::format("add {} ", name), "\n", "");
}

Status write_nft(const std::string& path, const std::string& table,
                 std::span<const std::uint32_t> addresses) {
    return write_addresses(path, addresses,
                           fmt::format("table {} {{\nset members {{\ntype ipv4_addr\nflags constant\n"
                                       "size {}\nelements = {{\n",
                                       table, addresses.size()),
                           "", ",\n", "}\n}\n}\n");
}

Result<std::uint64_t> ipset_bytes(const std::string& name, const std::string& scratch) {
    SIEVE_TRY(run_tool({"ipset", "list", "-t", name}, {}, scratch));
    std::ifstream file(scratch);
    for (std::string line; std::getline(file, line);)
        if (const std::string mark = "Size in memory: "; line.starts_with(mark))
            return std::stoull(line.substr(mark.size()));
    return kernel_refused("`ipset list` does not say how much memory a set takes");
}

std::uint64_t kernel_memory() {
    std::ifstream file("/proc/meminfo");
    std::uint64_t sum = 0, value = 0;
    for (std::string word; file >> word;)
        if ((word == "Slab:" || word == "VmallocUsed:" || word == "Percpu:") && file >> value)
            sum += value * 1024;
    return sum;
}

} // namespace sieve::bench
