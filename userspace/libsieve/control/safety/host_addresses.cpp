// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/safety/host_addresses.hpp"

#include <netinet/tcp.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <utility>

#include <fmt/core.h>

#include <sieve/prefix.h>

#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/kernel/host/host_network.hpp"
#include "libsieve/keys/address_key.hpp"
#include "libsieve/util/system/small_file.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::control {

namespace {

constexpr std::size_t longest_resolv_conf = std::size_t{1} << 20;
constexpr std::uint16_t ssh_port = 22;
constexpr const char* ssh_server = "sshd";

bool is_loopback(uint128 address) {
    return is_ipv4(address) ? (static_cast<std::uint32_t>(address) >> 24) == 127 : address <= 1;
}

// An address as people write it; a zone is left out.
std::optional<uint128> parse_address(std::string_view text) {
    text = text.substr(0, text.find('%'));
    const Result<sieve_key> key = parse_key(text, SIEVE_FIELD_SRC);
    if (!key) return std::nullopt;
    return address_of_key(*key, SIEVE_FIELD_SRC);
}

std::uint16_t parse_port(std::string_view text) {
    std::uint16_t port = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    return error == std::errc() && at == text.data() + text.size() ? port : std::uint16_t{0};
}

std::vector<std::string> words_of(const std::string& line) {
    std::istringstream stream(line);
    return {std::istream_iterator<std::string>(stream), {}};
}

// The wanted addresses that are known by now, and what they need from this host's own addresses and routes.
class Collection {
  public:
    Collection(std::vector<kernel::PlacedAddress> own, const std::function<bool(uint128 address)>& wanted)
        : own_(std::move(own)), wanted_(wanted) {
        for (const kernel::PlacedAddress& one : own_)
            add({.address = one.address,
                 .what = fmt::format("this host's own address on {}", printable(one.interface)),
                 .role = HostRole::own,
                 .interface = one.interface,
                 .ours = one.address});
    }

    void add(HostAddress address) {
        if (wants(address)) all_.push_back(std::move(address));
    }

    // An address beyond one of our interfaces.
    void add_remote(HostAddress address) {
        if (!wants(address)) return;
        if (address.role == HostRole::session && address.ours)
            address.interface = interface_of(*address.ours);
        if (address.interface.empty())
            if (const std::optional<kernel::WayOut> way = kernel::way_to(address.address)) {
                address.interface = way->interface;
                if (!address.ours) address.ours = way->source;
            }
        add(std::move(address));
    }

    [[nodiscard]] std::vector<HostAddress> take() && { return std::move(all_); }

  private:
    [[nodiscard]] bool wants(const HostAddress& address) const {
        return address.address != 0 && !is_loopback(address.address) && wanted_(address.address);
    }

    // The interface with that address; empty if there is none.
    [[nodiscard]] std::string interface_of(uint128 address) const {
        for (const kernel::PlacedAddress& one : own_)
            if (one.address == address) return one.interface;
        return {};
    }

    std::vector<kernel::PlacedAddress> own_;
    const std::function<bool(uint128 address)>& wanted_;
    std::vector<HostAddress> all_;
};

// Whether one of the established sessions is of a port that is none of these, and that somebody listens on.
bool has_session_of_another_port(const std::vector<kernel::Socket>& sockets,
                                 const std::set<std::uint16_t>& ports) {
    std::set<std::uint16_t> listening;
    for (const kernel::Socket& socket : sockets)
        if (socket.state == TCP_LISTEN) listening.insert(socket.our_port);
    return std::ranges::any_of(sockets, [&](const kernel::Socket& socket) {
        return socket.state == TCP_ESTABLISHED && listening.contains(socket.our_port) &&
               !ports.contains(socket.our_port);
    });
}

} // namespace

std::vector<HostAddress> resolvers_of(std::string_view text) {
    std::vector<HostAddress> found;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        const std::vector<std::string> words = words_of(line);
        if (words.size() < 2 || words[0] != "nameserver") continue;
        if (const auto address = parse_address(words[1]))
            found.push_back({.address = *address,
                             .what = "this host's resolver (/etc/resolv.conf)",
                             .role = HostRole::resolver});
    }
    return found;
}

Result<std::vector<HostAddress>> read_resolvers(const std::string& path) {
    SIEVE_ASSIGN(const std::optional<std::string> text, read_small_file(path, longest_resolv_conf));
    return resolvers_of(text.value_or(""));
}

std::optional<HostAddress> ssh_session_of(std::string_view text) {
    const std::vector<std::string> words = words_of(std::string(text));
    if (words.empty()) return std::nullopt;
    const std::optional<uint128> theirs = parse_address(words[0]);
    if (!theirs) return std::nullopt;
    HostAddress session{.address = *theirs,
                        .what = "where this session comes from (SSH_CONNECTION)",
                        .role = HostRole::session};
    if (words.size() > 3) {
        session.their_port = parse_port(words[1]);
        session.ours = parse_address(words[2]);
        session.our_port = parse_port(words[3]);
    }
    return session;
}

Result<std::vector<HostAddress>> listed_addresses(const std::vector<AddressRange>& ranges,
                                                  const std::string& what) {
    std::vector<HostAddress> all;
    for (const AddressRange& range : ranges)
        for (uint128 address = range.first;; address++) {
            if (all.size() == most_listed)
                return bad_input(fmt::format("more than {} addresses; each of them is asked about, so "
                                             "expected fewer",
                                             most_listed));
            all.push_back({.address = address, .what = what, .role = HostRole::listed});
            if (address == range.last) break;
        }
    return all;
}

Result<std::vector<HostAddress>> read_protect_list(const std::string& path) {
    SIEVE_ASSIGN(const Feed list, read_feed({path}, SIEVE_FIELD_SRC, {.format = {}, .ranges = true}));
    std::vector<AddressRange> ranges = list.ranges;
    for (std::size_t i = 0; i < list.keys.size(); i++) {
        const sieve_key key = list.keys.at(i);
        const uint128 address = address_number(key.word[0], key.word[1]);
        ranges.push_back({address, address});
    }
    auto all = listed_addresses(ranges, fmt::format("protected by {}", printable(path)));
    if (!all) all.error().message = fmt::format("{}: {}", printable(path), all.error().message);
    return all;
}

Result<std::vector<HostAddress>> RealHostAddresses::resolvers() {
    Result<std::vector<HostAddress>> found = read_resolvers("/etc/resolv.conf");
    if (!found && !warn_) return found;
    const std::string warning =
        found ? std::string()
              : fmt::format("{}; this host's resolvers are not known, so no change is checked against them",
                            found.error().message);
    {
        const std::lock_guard lock(mutex_);
        if (warning == std::exchange(warned_, warning))
            return found ? std::move(found) : std::vector<HostAddress>();
    }
    if (found) return found;
    warn_(warning);
    return std::vector<HostAddress>();
}

Result<std::vector<HostAddress>>
HostAddresses::read_some(const std::function<bool(uint128 address)>& wanted) {
    SIEVE_ASSIGN(std::vector<HostAddress> all, read());
    std::erase_if(all, [&](const HostAddress& one) { return !wanted(one.address); });
    return all;
}

void RealHostAddresses::depend_on(std::vector<HostAddress> servers) {
    const std::lock_guard lock(mutex_);
    servers_ = std::move(servers);
}

std::vector<HostAddress> RealHostAddresses::servers() {
    const std::lock_guard lock(mutex_);
    return servers_;
}

Result<std::vector<HostAddress>> RealHostAddresses::read() {
    return read_some([](uint128) { return true; });
}

Result<std::vector<HostAddress>>
RealHostAddresses::read_some(const std::function<bool(uint128 address)>& wanted) {
    SIEVE_ASSIGN(const std::vector<kernel::PlacedAddress> own, kernel::own_addresses());
    Collection all(own, wanted);
    SIEVE_ASSIGN(const std::vector<kernel::PlacedAddress> gateways, kernel::gateways());
    for (const kernel::PlacedAddress& gateway : gateways)
        all.add({.address = gateway.address,
                 .what = fmt::format("a gateway of {}", printable(gateway.interface)),
                 .role = HostRole::gateway,
                 .interface = gateway.interface});
    // Who leases an address is known to the client of DHCP alone. In most networks it is a gateway.
    for (const kernel::PlacedAddress& one : own)
        for (const kernel::PlacedAddress& gateway : gateways)
            if (one.leased && gateway.interface == one.interface &&
                is_ipv4(gateway.address) == is_ipv4(one.address))
                all.add({.address = gateway.address,
                         .what = fmt::format("a gateway of {}, whose address is leased (DHCP)",
                                             printable(gateway.interface)),
                         .role = HostRole::lease,
                         .interface = gateway.interface,
                         .ours = one.address});
    SIEVE_ASSIGN(std::vector<HostAddress> resolvers, this->resolvers());
    for (HostAddress& resolver : resolvers) all.add_remote(std::move(resolver));
    for (HostAddress& server : servers()) all.add_remote(std::move(server));

    std::vector<kernel::Socket> sockets = kernel::tcp_sockets();
    std::erase_if(sockets, [&](const kernel::Socket& socket) {
        return socket.state == TCP_ESTABLISHED && !wanted(socket.theirs);
    });
    std::set<std::uint16_t> ports = more_ports_;
    ports.insert(ssh_port);
    // The kernel does not tell which process a socket is of: a question to each process of the host.
    if (has_session_of_another_port(sockets, ports)) ports.merge(kernel::ports_of(ssh_server, sockets));
    if (const char* text = std::getenv("SSH_CONNECTION")) // NOLINT(concurrency-mt-unsafe)
        if (std::optional<HostAddress> session = ssh_session_of(text)) {
            if (session->our_port != 0) ports.insert(session->our_port);
            all.add_remote(std::move(*session));
        }
    for (const kernel::TcpSession& session : kernel::sessions_among(sockets, ports))
        all.add_remote({.address = session.theirs,
                        .what = fmt::format("an administrator's session (TCP port {})", session.our_port),
                        .role = HostRole::session,
                        .ours = session.ours,
                        .our_port = session.our_port,
                        .their_port = session.their_port});
    for (const HostAddress& listed : more_) all.add(listed);
    return std::move(all).take();
}

} // namespace sieve::control
