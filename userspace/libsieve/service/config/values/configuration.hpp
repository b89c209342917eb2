// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What an operator wants of the whole host, as values: which sets, from which sources, on which interfaces.
// Every default is filled in. configuration_reader makes one out of TOML, configuration_text makes TOML out
// of one; xdp-sieve.toml(5) describes each key.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/control/spec/table_spec.hpp"
#include "libsieve/keys/address_range.hpp"
#include "libsieve/service/config/values/fleet_configuration.hpp"
#include "libsieve/service/config/values/source_spec.hpp"

namespace sieve::service {

inline constexpr char standard_configuration[] = "/etc/xdp-sieve/xdp-sieve.toml";
inline constexpr char standard_state_directory[] = "/var/lib/xdp-sieve";
inline constexpr char standard_listen[] = "127.0.0.1:19273";

// Which new lists are too implausible to go live (guards.hpp).
struct GuardLimits {
    double most_shrink = 0.5;           // share of its entries or addresses that a list may lose at once
    double most_growth = 10;            // how many times its entries or addresses a list may have at once
    double most_ipv4 = 0.25;            // share of all IPv4 addresses that a list may cover
    double most_ipv6 = 0.01;            // likewise of IPv6
    bool protect_host = true;           // never drop what this host lives by
    std::vector<std::string> protect{}; // nor these addresses, prefixes and ranges, as they were written
    bool skip_own = false;              // a list that holds some of these is taken without them
    bool unchecked_images = false;      // images that cannot say what they cover are taken
};

struct SetConfiguration {
    std::string name{};
    std::vector<SourceSpec> sources{};
    std::optional<control::WantedAction> action{}; // nothing: the opposite of the interface's default
    bool keeps_replies_out = false; // what it drops stays dropped, even a reply (control::SetAction)
    sieve_condition condition{};    // which packets match (likewise)
    bool verify = false;
    bool empty = false; // its list may have no entry, as that of a set that follows a stream always may
    std::chrono::seconds refresh = std::chrono::hours(1); // how often the sources are asked at the latest
    control::FeedSpec feed{};
    GuardLimits guards{};
};

struct InterfaceConfiguration {
    std::string name{}; // or a pattern, such as "eth*"
    kernel::HookPoint hook = kernel::HookPoint::xdp;
    kernel::ModeChoice mode = kernel::ModeChoice::automatic;
    sieve_action default_action = SIEVE_ACTION_PASS;
    sieve_action unreadable = SIEVE_ACTION_DROP; // or pass: packets that cannot be read to their end
    std::optional<sieve_action> replies{};       // pass or drop; nothing: control::replies_of() decides
    std::optional<std::uint64_t> max_flows{};    // remembered for replies; nothing: by the machine's memory
    std::optional<std::uint32_t> priority{};
    std::optional<std::uint32_t> chain{};
    bool protect_host = true;           // never drop what this host lives by, by a set or by default
    std::vector<std::string> protect{}; // nor these addresses, prefixes and ranges, as they were written
    std::vector<std::string> sets{};    // in the order in which they are asked
    bool join = false;                  // one lookup for all sets that can be joined (control/join.hpp)

    [[nodiscard]] bool is_pattern() const { return name.find_first_of("*?[") != std::string::npos; }
};

enum class OnStop : std::uint8_t {
    keep,   // what is in force stays
    unload, // the daemon takes its programs away
};

struct Configuration {
    std::string path = standard_configuration; // of its file
    std::string state_directory = standard_state_directory;
    OnStop on_stop = OnStop::keep;
    std::string listen =
        standard_listen; // of metrics and status page: "ADDRESS:PORT" or "[ADDRESS]:PORT"; empty: off
    HttpAccess http{};   // what sources have that say nothing else: a proxy, and how we call ourselves
    std::vector<InterfaceConfiguration> interfaces{}; // in the order of the file
    std::vector<SetConfiguration> sets{};             // by name
    std::string ban_group{};                          // whose members may ban; empty: only root may
    std::vector<SourceSpec> geo{}; // data of countries and networks, for sources such as "country:DE"
    std::optional<FleetConfiguration> fleet{}; // that this host belongs to, or publishes to

    [[nodiscard]] const SetConfiguration* find_set(std::string_view name) const;
};

// The entry for that hook of that interface: the one of its very name, else the first whose pattern fits;
// nothing if there is none. A pattern never means the loopback interface.
[[nodiscard]] const InterfaceConfiguration* entry_for(const Configuration& configuration,
                                                      const std::string& interface, kernel::HookPoint hook);

// The API whose stream the set follows; nothing for any other set.
[[nodiscard]] const CrowdsecSpec* followed_stream(const SetConfiguration& set);
// Whether one of the set's sources is the ledger of bans, a stream as well.
[[nodiscard]] bool follows_bans(const SetConfiguration& set);
// Whether one is either.
[[nodiscard]] bool follows_stream(const SetConfiguration& set);
// Those of the set's sources that are no streams: each has a whole list.
[[nodiscard]] std::vector<SourceSpec> sources_of_lists(const SetConfiguration& set);

// Whether a match with the set keeps a packet from where it goes, on any interface.
[[nodiscard]] bool takes_packets(const Configuration& configuration, const SetConfiguration& set);
// Whether a match with the set lets a packet pass, on any interface.
[[nodiscard]] bool passes_packets(const Configuration& configuration, const SetConfiguration& set);

// An element of a `protect` list, which was checked when the configuration was read.
[[nodiscard]] AddressRange protected_range(const std::string& text);

// Whether guards look at the addresses of the set's list: a key of several fields names flows, not hosts.
[[nodiscard]] bool guards_addresses(const SetConfiguration& set);

// Whether a filter is asked for whose keys change in place, so that it follows its files.
[[nodiscard]] bool asks_for_changes_in_place(const SetConfiguration& set);

} // namespace sieve::service
