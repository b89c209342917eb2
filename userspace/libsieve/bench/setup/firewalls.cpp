// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/setup/firewalls.hpp"

#include <arpa/inet.h>
#include <linux/if_link.h>

#include <algorithm>
#include <cerrno>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>

#include "libsieve/bench/setup/bench_keys.hpp"
#include "libsieve/bench/setup/bench_object.hpp"
#include "libsieve/bench/setup/list_files.hpp"
#include "libsieve/bench/setup/private_network.hpp"
#include "libsieve/kernel/host/refusal.hpp"

namespace sieve::bench {

namespace {

constexpr const char* text_file = "firewall.txt";
constexpr const char* ingress_file = "ingress.nft";
constexpr const char* prerouting_file = "prerouting.nft";
constexpr const char* ipset_file = "firewall.ipset";

Status need_tool(const char* name) {
    if (!have_tool(name)) return kernel_refused(fmt::format("`{}` is not installed", name));
    return {};
}

// A program that a command has attached. It is detached and attached again without the command.
class AttachedProgram {
  public:
    static Result<AttachedProgram> find(const VethPair& pair) {
        std::uint32_t id = 0;
        if (const int error = bpf_xdp_query_id(pair.index(), XDP_FLAGS_DRV_MODE, &id); error != 0)
            return kernel::refusal("finding the program on a veth interface", error);
        UniqueFd program(id == 0 ? -1 : bpf_prog_get_fd_by_id(id));
        if (!program) return kernel_refused("no program was attached in native mode");
        return AttachedProgram(std::move(program));
    }
    AttachedProgram() = default;

    [[nodiscard]] int fd() const { return program_.get(); }

  private:
    explicit AttachedProgram(UniqueFd program) : program_(std::move(program)) {}
    UniqueFd program_;
};

class XdpFirewall : public Firewall {
  public:
    explicit XdpFirewall(const FirewallSite& site) : site_(site) {}

    Status switch_off() override { return site_.pair.attach(-1); }
    Status switch_on() override { return site_.pair.attach(attached_.fd()); }

  protected:
    Status find_program() {
        SIEVE_ASSIGN(attached_, AttachedProgram::find(site_.pair));
        return {};
    }

    const FirewallSite& site_;

  private:
    AttachedProgram attached_;
};

class XdpSieve : public XdpFirewall {
  public:
    XdpSieve(const FirewallSite& site, bool verify) : XdpFirewall(site), verify_(verify) {}

    [[nodiscard]] const char* name() const override {
        return verify_ ? "xdp-sieve, xorsat, verify" : "xdp-sieve";
    }

    Result<Loaded> load() override {
        const std::uint64_t before = kernel_memory();
        SIEVE_ASSIGN(const double seconds, run_tool({site_.program, "-q", "load", VethPair::receiver,
                                                     fmt::format("bench={}{}", site_.place.file(text_file),
                                                                 verify_ ? ",kind=xorsat,verify" : "")}));
        SIEVE_TRY(find_program());
        if (!verify_) return Loaded{seconds, site_.image_bytes, "the image"};
        return Loaded{seconds, std::max(kernel_memory(), before) - before, kernel_memory_lines};
    }
    Status remove() override {
        SIEVE_TRY(run_tool({site_.program, "-q", "unload", VethPair::receiver}));
        return {};
    }

  private:
    bool verify_;
};

class Nftables : public Firewall {
  public:
    Nftables(const FirewallSite& site, bool at_ingress) : site_(site), at_ingress_(at_ingress) {}

    [[nodiscard]] const char* name() const override {
        return at_ingress_ ? "nftables, netdev ingress" : "nftables, inet prerouting";
    }

    Result<Loaded> load() override {
        SIEVE_TRY(need_tool("nft"));
        const std::uint64_t before = kernel_memory();
        SIEVE_ASSIGN(const double list,
                     run_tool({"nft", "-f", site_.place.file(at_ingress_ ? ingress_file : prerouting_file)}));
        const std::uint64_t after = kernel_memory();
        SIEVE_ASSIGN(const double rule, add_chain());
        return Loaded{list + rule, std::max(after, before) - before, kernel_memory_lines};
    }
    Status switch_on() override {
        SIEVE_TRY(add_chain());
        return {};
    }
    Status switch_off() override {
        SIEVE_TRY(run_tool({"nft", fmt::format("flush chain {0} in; delete chain {0} in", table())}));
        return {};
    }
    Status remove() override {
        SIEVE_TRY(run_tool({"nft", fmt::format("delete table {}", table())}));
        return {};
    }

  private:
    [[nodiscard]] const char* table() const { return at_ingress_ ? "netdev bench" : "inet bench"; }

    Result<double> add_chain() const {
        const std::string hook = at_ingress_
                                     ? fmt::format("ingress device {} priority -500", VethPair::receiver)
                                     : "prerouting priority -300";
        return run_tool({"nft", fmt::format("add chain {0} in {{ type filter hook {1}; }}; "
                                            "add rule {0} in ip saddr @members drop",
                                            table(), hook)});
    }

    const FirewallSite& site_;
    bool at_ingress_;
};

class Iptables : public Firewall {
  public:
    explicit Iptables(const FirewallSite& site) : site_(site) {}

    [[nodiscard]] const char* name() const override { return "iptables raw, ipset"; }

    Result<Loaded> load() override {
        SIEVE_TRY(need_tool("ipset"));
        SIEVE_TRY(need_tool("iptables"));
        SIEVE_ASSIGN(const double list, run_tool({"ipset", "restore"}, site_.place.file(ipset_file)));
        SIEVE_ASSIGN(const double rule, run_tool(rule_command("-I")));
        SIEVE_ASSIGN(const std::uint64_t bytes, ipset_bytes("bench", site_.place.file("ipset.out")));
        return Loaded{list + rule, bytes, "ipset list"};
    }
    Status switch_on() override {
        SIEVE_TRY(run_tool(rule_command("-I")));
        return {};
    }
    Status switch_off() override {
        SIEVE_TRY(run_tool(rule_command("-D")));
        // The chain is left, and packets would still go through it. Only iptables over nf_tables, which
        // Debian installs, lets it be deleted.
        static_cast<void>(run_tool({"nft", "add table ip raw; delete table ip raw"}));
        return {};
    }
    Status remove() override {
        SIEVE_TRY(switch_off());
        SIEVE_TRY(run_tool({"ipset", "destroy", "bench"}));
        return {};
    }

  private:
    static std::vector<std::string> rule_command(const char* action) {
        return {"iptables", "-t",          "raw",   action, "PREROUTING", "-m",
                "set",      "--match-set", "bench", "src",  "-j",         "DROP"};
    }

    const FirewallSite& site_;
};

class XdpFilter : public XdpFirewall {
  public:
    using XdpFirewall::XdpFirewall;

    [[nodiscard]] const char* name() const override { return "xdp-filter"; }

    Result<Loaded> load() override {
        SIEVE_TRY(need_tool("xdp-filter"));
        SIEVE_ASSIGN(double seconds,
                     run_tool({"xdp-filter", "load", VethPair::receiver, "-f", "ipv4", "-m", "native"}));
        Result<Loaded> loaded = add_addresses(seconds);
        if (!loaded) {
            SIEVE_TRY(remove());
            return loaded;
        }
        SIEVE_TRY(find_program());
        return loaded;
    }
    Status remove() override {
        SIEVE_TRY(run_tool({"xdp-filter", "unload", VethPair::receiver}));
        return {};
    }

  private:
    // The command takes one address. These many are added by it, which tells the time that all take; the rest
    // goes into its map with what the command has written for the first.
    static constexpr std::size_t by_command = 64;

    Result<Loaded> add_addresses(double seconds) const {
        const UniqueFd map(bpf_obj_get("/sys/fs/bpf/xdp-filter/filter_ipv4"));
        if (!map) return kernel::refusal("opening xdp-filter's map", errno);
        bpf_map_info info{};
        std::uint32_t size = sizeof(info);
        if (bpf_obj_get_info_by_fd(map.get(), &info, &size) != 0)
            return kernel::refusal("asking xdp-filter's map", errno);
        const std::span<const std::uint32_t> addresses = site_.addresses;
        if (addresses.size() > info.max_entries)
            return kernel_refused(fmt::format("its map has room for {} addresses", info.max_entries));
        double adding = 0;
        const std::size_t first = std::min(by_command, addresses.size());
        for (std::size_t i = 0; i < first; i++) {
            const std::uint32_t address = addresses[i];
            SIEVE_ASSIGN(const double one,
                         run_tool({"xdp-filter", "ip", "-m", "src",
                                   fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255,
                                               address >> 8 & 255, address & 255)}));
            adding += one;
        }
        std::vector<std::uint64_t> value(static_cast<std::size_t>(std::max(1, libbpf_num_possible_cpus())));
        const std::uint32_t example = htonl(addresses[0]);
        if (bpf_map_lookup_elem(map.get(), &example, value.data()) != 0)
            return kernel::refusal("reading xdp-filter's map", errno);
        for (const std::uint32_t address : addresses.subspan(first)) {
            const std::uint32_t key = htonl(address);
            if (bpf_map_update_elem(map.get(), &key, value.data(), BPF_ANY) != 0)
                return kernel::refusal("filling xdp-filter's map", errno);
        }
        return Loaded{seconds + adding / static_cast<double>(first) * static_cast<double>(addresses.size()),
                      map_bytes(map.get()), "its map; one command an address, 64 of them timed"};
    }
};

} // namespace

Result<std::vector<std::unique_ptr<Firewall>>> firewalls(const FirewallSite& site) {
    SIEVE_TRY(write_addresses(site.place.file(text_file), site.addresses, "", "", "\n", ""));
    SIEVE_TRY(write_nft(site.place.file(ingress_file), "netdev bench", site.addresses));
    SIEVE_TRY(write_nft(site.place.file(prerouting_file), "inet bench", site.addresses));
    SIEVE_TRY(write_ipset(site.place.file(ipset_file), "bench", site.addresses));
    std::vector<std::unique_ptr<Firewall>> all;
    all.push_back(std::make_unique<XdpSieve>(site, false));
    all.push_back(std::make_unique<XdpSieve>(site, true));
    all.push_back(std::make_unique<Nftables>(site, true));
    all.push_back(std::make_unique<Nftables>(site, false));
    all.push_back(std::make_unique<Iptables>(site));
    all.push_back(std::make_unique<XdpFilter>(site));
    return all;
}

} // namespace sieve::bench
