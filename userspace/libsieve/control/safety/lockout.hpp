// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Would a table cut this host off? The table that is about to go live is asked, in the kernel, about the
// addresses that this host lives by, before any packet meets it.
//
// What is asked depends on the hook: packets from those addresses to this host where packets come in, packets
// to them where packets leave. Each question is a packet of which only some fields are known: of a session
// all, of a gateway the addresses alone. A set whose key needs a port or a protocol that is not known is
// asked about several; only if it matches each of them does it match whatever the field is, as `192.0.2.1 *
// *` does. Otherwise it gives no answer. If such a set may let the packet pass, the table is given the
// benefit of the doubt. The same holds of a set with a condition on ports or a protocol that are not known.
//
// A match of a set that drops, limits or redirects counts, whatever the address is. That no set matches under
// a default of drop counts for addresses that must reach this host through this interface: resolvers,
// sessions, listed addresses. It does not count for gateways, whose ARP and neighbour discovery pass without
// a set. Where replies pass, what answers this host is dropped by no default, and only by sets that keep
// replies out. Where they do not, an address that this host has leased needs the answers of DHCP, too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sieve/key.h>

#include "libsieve/control/access/kernel.hpp"
#include "libsieve/control/access/ready_set.hpp"
#include "libsieve/control/joint/join.hpp"
#include "libsieve/control/safety/host_addresses.hpp"
#include "libsieve/control/spec/condition.hpp"
#include "libsieve/control/spec/safety.hpp"
#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/keys/key_set.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::control {

// A packet that must not be dropped.
struct LockoutQuestion {
    sieve_key key{};
    std::uint32_t known = 0; // enum sieve_field bits: the fields of `key` that mean something
    bool by_default = false; // must not be dropped by the default either
    bool answers = false;    // it answers what this host asked, so that it passes where replies do
    std::size_t about = 0;   // index of the host address
};

// The packets of these addresses at a hook of an interface.
[[nodiscard]] std::vector<LockoutQuestion>
lockout_questions(std::span<const HostAddress> host, const std::string& interface, kernel::HookPoint point);

// Likewise for the host that `safety` names; none if it names no host.
[[nodiscard]] Result<std::vector<LockoutQuestion>>
lockout_questions(const Safety& safety, const std::string& interface, kernel::HookPoint point);

// Asks for these questions when they are needed, for the host may be slow to answer.
using FindQuestions = std::function<Result<std::vector<LockoutQuestion>>()>;

// Whether the question's packet meets the condition, whatever the ports and the protocol are that the
// question does not know.
[[nodiscard]] Met is_met(const sieve_condition& condition, const LockoutQuestion& question);

// What the questions ask a set of these fields. Distinct.
[[nodiscard]] std::vector<sieve_key> keys_of(std::span<const LockoutQuestion> questions,
                                             std::uint32_t fields);

// A set of a table, as far as a verdict needs it.
struct AskedSet {
    sieve_action action = SIEVE_ACTION_DROP;
    std::uint32_t fields = 0;
    bool keeps_replies_out = false;
    sieve_condition condition{};
};

// What drops a question's packet.
struct DropReason {
    std::optional<std::size_t> set; // nothing: the default
};

// Whether the set matches the key.
using AskSet = std::function<Result<bool>(std::size_t set, const sieve_key& key)>;

// Nothing if the packet passes, or if that cannot be known. A limit and a redirection count as drop. Asks
// sets of fields that are not known about several packets.
[[nodiscard]] Result<std::optional<DropReason>> find_drop_reason(std::span<const AskedSet> sets,
                                                                 sieve_action default_action,
                                                                 const LockoutQuestion& question,
                                                                 const AskSet& ask);

// A table that is about to replace another.
struct ComingTable {
    const kernel::WantedTable& table;
    std::span<const ReadySet> fresh{}; // the sets that bring a filter, in slots 0, 1, ... of the trial
    std::span<const SetSpec> specs{};  // where these filters come from, for the message
    const kernel::TableInForce* before = nullptr; // the table in force, if there is one
    const Joined* joined = nullptr;               // the joint filter that the table brings, if any
};

// Error lockout if the table would drop what it must not drop. What the table in force drops already, by the
// same filter or by default, is no reason to refuse a change of something else. `trial` must have tested the
// fresh sets; the function puts other sets into its further slots. Nothing is asked if `safety` names no
// host.
[[nodiscard]] Status refuse_lockout(Kernel& kernel, Trial& trial, const std::string& interface,
                                    kernel::HookPoint point, const ComingTable& coming, const Safety& safety);

// Keys that are about to be put into a set in force, or to be taken out of it.
struct ComingKeys {
    std::uint32_t map_id = 0; // the set's filter
    std::uint32_t fields = 0;
    std::span<const sieve_key> entries{}; // filters/prefixes/prefix_entries.hpp
    bool prefixes = false;                // the set holds prefixes
    bool erased = false;
};

// Error lockout if these keys make the hook's table drop what it must not drop. While a change is on
// probation, the table that may come back is asked as well, since it may have the same filter.
[[nodiscard]] Status refuse_lockout(Kernel& kernel, const kernel::Hook& hook, const ComingKeys& coming,
                                    const Safety& safety);

// The same for a change that brings no filter; starts a trial if there is something to ask.
[[nodiscard]] Status refuse_lockout(Kernel& kernel, const std::string& interface, kernel::HookPoint point,
                                    const ComingTable& coming, const Safety& safety);

} // namespace sieve::control
