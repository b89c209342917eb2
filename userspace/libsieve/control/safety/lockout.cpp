// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/safety/lockout.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/core.h>

#include <sieve/exact.h>
#include <sieve/prefix.h>

#include "libsieve/control/spec/find_entry.hpp"
#include "libsieve/control/spec/source.hpp"
#include "libsieve/feeds/text/address_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/prefixes/prefix_entries.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/util/files/input.hpp"
#include "libsieve/util/text/name_some.hpp"

namespace sieve::control {

namespace {

constexpr std::uint16_t dns_port = 53;
// Of servers and clients of DHCP, and of DHCPv6.
constexpr std::uint16_t lease_server_port = 67, lease_client_port = 68;
constexpr std::uint16_t lease_server_port6 = 547, lease_client_port6 = 546;

// A packet between two ends: "their" end is the address in question.
struct Flow {
    std::optional<uint128> theirs{};
    std::optional<uint128> ours{};
    std::optional<std::uint16_t> their_port{};
    std::optional<std::uint16_t> our_port{};
    std::optional<std::uint8_t> protocol{};
};

void put_address(LockoutQuestion& question, std::uint32_t field, const std::optional<uint128>& address) {
    if (!address) return;
    const int word = sieve_address_word(field);
    question.key.word[word] = static_cast<std::uint64_t>(*address >> 64);
    question.key.word[word + 1] = static_cast<std::uint64_t>(*address);
    question.known |= field;
}

void put_port(LockoutQuestion& question, std::uint32_t field, unsigned shift,
              const std::optional<std::uint16_t>& port) {
    if (!port) return;
    question.key.word[4] |= std::uint64_t{*port} << shift;
    question.known |= field;
}

LockoutQuestion question_of(const Flow& flow, bool comes_in) {
    LockoutQuestion question;
    put_address(question, SIEVE_FIELD_SRC, comes_in ? flow.theirs : flow.ours);
    put_address(question, SIEVE_FIELD_DST, comes_in ? flow.ours : flow.theirs);
    put_port(question, SIEVE_FIELD_SPORT, SIEVE_SPORT_SHIFT, comes_in ? flow.their_port : flow.our_port);
    put_port(question, SIEVE_FIELD_DPORT, SIEVE_DPORT_SHIFT, comes_in ? flow.our_port : flow.their_port);
    if (flow.protocol) {
        question.key.word[4] |= std::uint64_t{*flow.protocol} << SIEVE_PROTO_SHIFT;
        question.known |= SIEVE_FIELD_PROTO;
    }
    return question;
}

// The packet's key as a set of these fields has it.
sieve_key masked(const sieve_key& key, std::uint32_t fields) {
    sieve_key out{};
    for (const std::uint32_t field : {std::uint32_t{SIEVE_FIELD_SRC}, std::uint32_t{SIEVE_FIELD_DST}})
        if ((fields & field) != 0)
            for (int word = sieve_address_word(field), i = 0; i < 2; i++)
                out.word[word + i] = key.word[word + i];
    const auto take = [&](std::uint32_t field, unsigned shift, std::uint64_t mask) {
        if ((fields & field) != 0) out.word[4] |= key.word[4] & mask << shift;
    };
    take(SIEVE_FIELD_SPORT, SIEVE_SPORT_SHIFT, 0xffff);
    take(SIEVE_FIELD_DPORT, SIEVE_DPORT_SHIFT, 0xffff);
    take(SIEVE_FIELD_PROTO, SIEVE_PROTO_SHIFT, 0xff);
    return out;
}

// Packets that agree with the question in what it knows, and differ in the port or protocol that it leaves
// open. So many, since a set may match one of them by a false positive. None if an address is open.
std::vector<sieve_key> made_up_keys(const LockoutQuestion& question, std::uint32_t fields) {
    const std::uint32_t open = fields & ~question.known;
    if ((open & SIEVE_FIELD_ADDRESSES) != 0) return {};
    const bool ports = (fields & SIEVE_FIELD_PORTS) != 0;
    struct Rest {
        std::uint16_t port;
        std::uint8_t protocol;
    };
    const Rest rests[] = {{20457, IPPROTO_TCP},
                          {443, IPPROTO_UDP},
                          {22, static_cast<std::uint8_t>(ports ? IPPROTO_TCP : IPPROTO_GRE)},
                          {61131, static_cast<std::uint8_t>(ports ? IPPROTO_UDP : IPPROTO_ICMP)}};
    std::vector<sieve_key> keys;
    for (const Rest& rest : rests) {
        LockoutQuestion one = question;
        if ((open & SIEVE_FIELD_SPORT) != 0) put_port(one, SIEVE_FIELD_SPORT, SIEVE_SPORT_SHIFT, rest.port);
        if ((open & SIEVE_FIELD_DPORT) != 0) put_port(one, SIEVE_FIELD_DPORT, SIEVE_DPORT_SHIFT, rest.port);
        if ((open & SIEVE_FIELD_PROTO) != 0)
            one.key.word[4] |= std::uint64_t{rest.protocol} << SIEVE_PROTO_SHIFT;
        keys.push_back(masked(one.key, fields));
    }
    return keys;
}

// Asks what packets of the host's addresses become at one hook.
class HostQuestions {
  public:
    HostQuestions(std::span<const HostAddress> host, const std::string& interface, kernel::HookPoint point)
        : host_(host), interface_(interface), comes_in_(point != kernel::HookPoint::egress) {}

    [[nodiscard]] std::vector<LockoutQuestion> run() && {
        for (about_ = 0; about_ < host_.size(); about_++) ask_about(host_[about_]);
        return std::move(questions_);
    }

  private:
    void ask(const Flow& flow, bool by_default, bool answers = false) {
        LockoutQuestion question = question_of(flow, comes_in_);
        question.by_default = by_default;
        question.answers = answers && comes_in_;
        question.about = about_;
        questions_.push_back(question);
    }

    // The flow, once for each of our addresses of the same family on this interface.
    void ask_with_each_end(const Flow& flow, bool by_default) {
        bool asked = false;
        for (const HostAddress& own : host_) {
            if (own.role != HostRole::own || own.interface != interface_ ||
                is_ipv4(own.address) != is_ipv4(*flow.theirs))
                continue;
            Flow with_end = flow;
            with_end.ours = own.address;
            ask(with_end, by_default);
            asked = true;
        }
        if (!asked) ask(flow, by_default);
    }

    void ask_about(const HostAddress& address) {
        const bool here = address.interface == interface_;
        switch (address.role) {
        case HostRole::own:
            if (!here) return;
            ask({.ours = address.address}, false);
            // A list with our own address is wrong, although such packets only come from forgers.
            if (comes_in_) ask({.theirs = address.address}, false);
            return;
        case HostRole::gateway:
            if (here) ask_with_each_end({.theirs = address.address}, false);
            return;
        case HostRole::resolver:
            if (here)
                ask({.theirs = address.address,
                     .ours = address.ours,
                     .their_port = dns_port,
                     .protocol = IPPROTO_UDP},
                    true, true);
            return;
        case HostRole::server:
            if (here)
                ask({.theirs = address.address,
                     .ours = address.ours,
                     .their_port = address.their_port,
                     .protocol = IPPROTO_TCP},
                    false, true);
            return;
        case HostRole::lease: {
            const bool v4 = is_ipv4(address.address);
            if (here)
                ask({.theirs = address.address,
                     .ours = address.ours,
                     .their_port = v4 ? lease_server_port : lease_server_port6,
                     .our_port = v4 ? lease_client_port : lease_client_port6,
                     .protocol = IPPROTO_UDP},
                    true, true);
            return;
        }
        case HostRole::session:
            if (address.their_port != 0 && address.ours)
                ask({.theirs = address.address,
                     .ours = address.ours,
                     .their_port = address.their_port,
                     .our_port = address.our_port,
                     .protocol = IPPROTO_TCP},
                    here);
            else
                ask({.theirs = address.address}, here);
            return;
        case HostRole::listed:
            ask_with_each_end({.theirs = address.address}, true);
            return;
        }
    }

    std::span<const HostAddress> host_;
    const std::string& interface_;
    bool comes_in_;
    std::size_t about_ = 0;
    std::vector<LockoutQuestion> questions_;
};

// A filter and the exact set behind it, by their maps' ids.
using Filter = std::pair<std::uint32_t, std::uint32_t>;

// A trial to which filters in force are added when they are needed.
class TrialSlots {
  public:
    TrialSlots(Kernel& kernel, Trial& trial, std::span<const ReadySet> fresh)
        : kernel_(kernel), trial_(trial) {
        for (const ReadySet& set : fresh)
            add({set.maps.filter_id, 0}, set.image.lookup().fields, set.maps.verified());
    }

    [[nodiscard]] Result<std::uint32_t> fields_of(const Filter& filter) {
        if (const auto found = known_.find(filter); found != known_.end()) return found->second.fields;
        SIEVE_ASSIGN(const kernel::FilterHeader header, kernel_.read_filter(filter.first));
        return header.lookup.fields;
    }

    [[nodiscard]] Result<bool> matches(const Filter& filter, const sieve_key& key) {
        auto found = known_.find(filter);
        if (found == known_.end()) {
            SIEVE_ASSIGN(const std::uint32_t fields, fields_of(filter));
            if (known_.size() == SIEVE_SLOTS)
                return failure(ErrorKind::changed_meanwhile, "the table has changed meanwhile");
            SIEVE_TRY(trial_.include(static_cast<std::uint32_t>(known_.size()), filter.first, filter.second));
            found = add(filter, fields, filter.second != 0);
        }
        const TrialSlot& place = found->second;
        return trial_.matches(place.slot, place.verified, key, place.fields);
    }

  private:
    struct TrialSlot {
        std::uint32_t slot = 0;
        std::uint32_t fields = 0;
        bool verified = false;
    };

    std::map<Filter, TrialSlot>::iterator add(const Filter& filter, std::uint32_t fields, bool verified) {
        const auto slot = static_cast<std::uint32_t>(known_.size());
        return known_.emplace(filter, TrialSlot{slot, fields, verified}).first;
    }

    Kernel& kernel_;
    Trial& trial_;
    std::map<Filter, TrialSlot> known_;
};

// A table as it is asked.
struct Asked {
    std::vector<AskedSet> sets{};
    std::vector<Filter> filters{}; // of these sets
    std::vector<std::string> names{};
    sieve_action default_action = SIEVE_ACTION_PASS;
    sieve_action replies = SIEVE_ACTION_DROP;
    // The number that the joint filter gives to a key; empty if there is no such filter.
    std::function<std::optional<std::uint32_t>(const sieve_key&)> ask_joint{};
    std::vector<std::optional<std::uint32_t>> joined{}; // the sets' numbers in the joint filter

    // Whether a packet with the key matches the set if it was not decided before.
    [[nodiscard]] Result<bool> matches(std::size_t set, const sieve_key& key, TrialSlots& slots) const {
        if (ask_joint && joined[set]) {
            const std::optional<std::uint32_t> named = ask_joint(key);
            if (!named || *joined[set] < *named) return false;
            if (*joined[set] == *named) return true;
        }
        return slots.matches(filters[set], key);
    }
};

// The joint filter that is in force with that id.
Status ask_joint_in_force(Kernel& kernel, std::uint32_t map_id, Asked& asked) {
    SIEVE_ASSIGN(std::shared_ptr<RunningFilter> filter, kernel.open_joint(map_id));
    asked.ask_joint = [filter](const sieve_key& key) {
        return find_joint(filter->lookup(), filter->lines(), key);
    };
    return {};
}

Result<Asked> asked_of(Kernel& kernel, const ComingTable& coming, TrialSlots& slots) {
    Asked asked{.default_action = coming.table.default_action, .replies = coming.table.replies};
    for (const kernel::WantedSet& set : coming.table.sets) {
        const auto fresh = std::find_if(coming.fresh.begin(), coming.fresh.end(),
                                        [&](const ReadySet& ready) { return ready.name == set.name; });
        const kernel::SetInForce* const kept =
            coming.before != nullptr ? coming.before->find(set.name) : nullptr;
        if (fresh == coming.fresh.end() && kept == nullptr)
            return failure(ErrorKind::changed_meanwhile,
                           fmt::format("set {} is no longer in force", set.name), {.set = set.name});
        const Filter filter = fresh != coming.fresh.end() ? Filter{fresh->maps.filter_id, 0}
                                                          : Filter{kept->map_id, kept->exact_id};
        SIEVE_ASSIGN(const std::uint32_t fields, slots.fields_of(filter));
        asked.sets.push_back({set.action, fields, set.keeps_replies_out, set.condition});
        asked.filters.push_back(filter);
        asked.names.push_back(set.name);
    }
    const kernel::TableInForce before = coming.before != nullptr ? *coming.before : kernel::TableInForce{};
    asked.joined = kernel::joined_numbers(coming.table, before);
    if (std::ranges::none_of(asked.joined, [](const auto& number) { return number.has_value(); }))
        return asked;
    if (coming.joined != nullptr)
        asked.ask_joint = [joint = &coming.joined->filter](const sieve_key& key) { return joint->find(key); };
    else
        SIEVE_TRY(ask_joint_in_force(kernel, before.joint_id, asked));
    return asked;
}

Result<Asked> asked_of(Kernel& kernel, const kernel::TableInForce& table, TrialSlots& slots) {
    Asked asked{.default_action = table.default_action, .replies = table.replies};
    for (const kernel::SetInForce& set : table.sets) {
        const Filter filter{set.map_id, set.exact_id};
        SIEVE_ASSIGN(const std::uint32_t fields, slots.fields_of(filter));
        asked.sets.push_back({set.action, fields, set.keeps_replies_out, set.condition});
        asked.filters.push_back(filter);
        asked.names.push_back(set.name);
        asked.joined.push_back(set.joined);
    }
    if (table.joint_id != 0) SIEVE_TRY(ask_joint_in_force(kernel, table.joint_id, asked));
    return asked;
}

// Whether the packet passes all the same, as a reply.
bool passes_as_reply(const Asked& asked, const LockoutQuestion& question, const DropReason& reason) {
    if (asked.replies != SIEVE_ACTION_PASS || !question.answers) return false;
    return !reason.set ||
           (may_drop(asked.sets[*reason.set].action) && !asked.sets[*reason.set].keeps_replies_out);
}

Result<std::optional<DropReason>> find_drop_reason(const Asked& asked, const LockoutQuestion& question,
                                                   const AskSet& ask) {
    SIEVE_ASSIGN(const std::optional<DropReason> reason,
                 find_drop_reason(asked.sets, asked.default_action, question, ask));
    return reason && passes_as_reply(asked, question, *reason) ? std::nullopt : reason;
}

Result<std::optional<DropReason>> find_drop_reason(const Asked& asked, const LockoutQuestion& question,
                                                   TrialSlots& slots) {
    return find_drop_reason(asked, question, [&](std::size_t set, const sieve_key& key) {
        return asked.matches(set, key, slots);
    });
}

// Whether the table in force drops the packet as well, and by the same cause.
Result<bool> was_dropped(Kernel& kernel, const Asked& now, const DropReason& reason,
                         const kernel::TableInForce& before, const LockoutQuestion& question,
                         TrialSlots& slots) {
    SIEVE_ASSIGN(const Asked old, asked_of(kernel, before, slots));
    SIEVE_ASSIGN(const std::optional<DropReason> then, find_drop_reason(old, question, slots));
    if (!then) return false;
    if (!reason.set) return true;
    return then->set && old.filters[*then->set] == now.filters[*reason.set];
}

std::string address_text(uint128 address) {
    return format_address(static_cast<std::uint64_t>(address >> 64), static_cast<std::uint64_t>(address));
}

// What an image can say about where it has an address from: nothing but its rate.
std::string image_says(const SetSpec& spec) {
    if (spec.sources.size() != 1) return {};
    Result<Input> input = open_source(spec, spec.sources.front());
    if (!input || input->is_stream()) return {};
    const Result<Image> image = Image::load(*input);
    if (!image) return {};
    if (kind_of(image->lookup()).exact() != nullptr) return " (a member: the image is exact)";
    return fmt::format(
        " (a member or a false positive: the image cannot tell; one non-member in {:.3g} matches "
        "it. If it is no member, an image that is built with this address as an exception will "
        "not match it)",
        1 / rate_from_bits(image->file().expected_fpr));
}

// Where the set has the address from: " (bad.txt:7)".
std::string origin_of(std::span<const SetSpec> specs, const std::string& name, const sieve_key& key) {
    for (const SetSpec& spec : specs) {
        if (spec.name != name) continue;
        if (const std::optional<std::string> entry = find_entry(spec, key))
            return fmt::format(" ({})", *entry);
        if (can_find_entries(spec)) return " (a false positive: none of its feeds has it)";
        return image_says(spec);
    }
    return {};
}

// What a change would drop of what this host lives by: all of it, so that one refusal names it all.
class DroppedAddresses {
  public:
    void add(const DropReason& reason, const LockoutQuestion& question, const HostAddress& address) {
        Group& group = groups_[reason.set];
        if (!group.seen.insert(address.address).second) return;
        if (group.first.size() < most_named) group.first.push_back({question, address});
    }
    [[nodiscard]] bool empty() const { return groups_.empty(); }

    // The refusal; `specs` say where sets have addresses from, `when` says when they drop them. Its facts
    // name the first set that drops; none if the default does.
    [[nodiscard]] tl::unexpected<Error> refusal(std::span<const SetSpec> specs, const std::string& interface,
                                                kernel::HookPoint point, const Asked& asked,
                                                const std::string& when = {}) const {
        Facts facts{.interface = interface};
        std::string text;
        for (const auto& [set, group] : groups_) {
            if (!set) continue;
            if (facts.set.empty()) facts.set = asked.names[*set];
            text += text.empty() ? "" : "; ";
            text += dropped_by_set(specs, asked, *set, group);
        }
        if (const auto by_default = groups_.find(std::nullopt); by_default != groups_.end()) {
            text += text.empty() ? "" : "; ";
            text += dropped_by_default(by_default->second);
        }
        return failure(ErrorKind::lockout,
                       fmt::format("{} {}: {}{}; nothing was changed", interface,
                                   kernel::hook_point_name(point), when, text),
                       std::move(facts));
    }

  private:
    struct DroppedAddress {
        LockoutQuestion question;
        HostAddress address;
    };
    // Of one set, or of the default.
    struct Group {
        std::set<uint128> seen{};
        std::vector<DroppedAddress> first{};
    };

    static std::string dropped_by_set(std::span<const SetSpec> specs, const Asked& asked, std::size_t number,
                                      const Group& group) {
        const AskedSet& set = asked.sets[number];
        const std::string& name = asked.names[number];
        std::vector<std::string> named;
        for (const DroppedAddress& one : group.first)
            named.push_back(fmt::format("{}, {}{}", address_text(one.address.address), one.address.what,
                                        origin_of(specs, name, masked(one.question.key, set.fields))));
        return fmt::format("set {} would {} {}", name, action_name(set.action),
                           name_some(named, group.seen.size()));
    }
    static std::string dropped_by_default(const Group& group) {
        std::vector<std::string> named;
        for (const DroppedAddress& one : group.first)
            named.push_back(fmt::format("{}{}{}, {}", named.empty() ? "" : "nor ",
                                        address_text(one.address.address), named.empty() ? " pass" : "",
                                        one.address.what));
        return fmt::format("no set lets {}, and the default is drop", name_some(named, group.seen.size()));
    }

    std::map<std::optional<std::size_t>, Group> groups_;
};

// The questions about packets whose key, as far as it is known, is one of the entries or in one of them.
std::vector<LockoutQuestion> named_by(const ComingKeys& coming,
                                      const std::vector<LockoutQuestion>& questions) {
    std::set<std::array<__u64, SIEVE_KEY_WORDS>> entries;
    for (const sieve_key& entry : coming.entries) entries.insert(std::to_array(entry.word));
    std::set<EntryForm> forms;
    if (coming.prefixes)
        for (const sieve_key& entry : coming.entries) forms.insert(form_of(entry, coming.fields));
    const bool one = sieve_is_one_address(coming.fields) != 0;
    const auto names = [&](const LockoutQuestion& question) {
        const bool known = (coming.fields & ~question.known) == 0;
        const sieve_key key = masked(question.key, coming.fields);
        if (!coming.prefixes) return known && entries.contains(std::to_array(key.word));
        return std::ranges::any_of(forms, [&](const EntryForm& form) {
            if (one ? !known : (form.fields() & ~question.known) != 0) return false;
            return entries.contains(std::to_array(cut_key(key, form, coming.fields).word));
        });
    };
    std::vector<LockoutQuestion> named;
    std::ranges::copy_if(questions, std::back_inserter(named), names);
    return named;
}

// Whether any packet may be dropped at all.
bool may_drop(const kernel::WantedTable& table) {
    return table.default_action == SIEVE_ACTION_DROP ||
           std::any_of(table.sets.begin(), table.sets.end(),
                       [](const kernel::WantedSet& set) { return takes_packets(set.action); });
}

Status refuse_drops(Kernel& kernel, Trial& trial, const std::string& interface, kernel::HookPoint point,
                    const ComingTable& coming, std::span<const HostAddress> host, const Safety& safety) {
    TrialSlots slots(kernel, trial, coming.fresh);
    SIEVE_ASSIGN(const Asked asked, asked_of(kernel, coming, slots));
    DroppedAddresses dropped;
    for (const LockoutQuestion& question : lockout_questions(host, interface, point)) {
        SIEVE_ASSIGN(const std::optional<DropReason> reason, find_drop_reason(asked, question, slots));
        if (!reason) continue;
        if (reason->set && safety.exempt.contains(asked.names[*reason->set])) continue;
        if (coming.before != nullptr) {
            SIEVE_ASSIGN(const bool was,
                         was_dropped(kernel, asked, *reason, *coming.before, question, slots));
            if (was) continue;
        }
        dropped.add(*reason, question, host[question.about]);
    }
    if (dropped.empty()) return {};
    return dropped.refusal(coming.specs, interface, point, asked);
}

// A table with the set whose keys are about to change.
struct KeysInTable {
    const kernel::TableInForce& table;
    std::size_t changed = 0; // that set
    std::string when{};      // for the message: when the table is in force, if that is not now
};

// The set of the table whose keys change, if the change can take packets.
std::optional<std::size_t> find_changed(const kernel::TableInForce& table, const ComingKeys& coming) {
    const auto set = std::ranges::find(table.sets, coming.map_id, &kernel::SetInForce::map_id);
    if (set == table.sets.end()) return std::nullopt;
    if (coming.erased ? set->action != SIEVE_ACTION_PASS : !takes_packets(set->action)) return std::nullopt;
    return static_cast<std::size_t>(set - table.sets.begin());
}

// Error lockout if the change of keys makes the table drop a question's packet.
Status refuse_drops(Kernel& kernel, TrialSlots& slots, const kernel::Hook& hook, const KeysInTable& keys,
                    const ComingKeys& coming, const std::vector<LockoutQuestion>& questions,
                    const std::vector<HostAddress>& host) {
    SIEVE_ASSIGN(const Asked asked, asked_of(kernel, keys.table, slots));
    DroppedAddresses dropped;
    for (const LockoutQuestion& question : questions) {
        SIEVE_ASSIGN(const std::optional<DropReason> before, find_drop_reason(asked, question, slots));
        if (before) continue;
        SIEVE_ASSIGN(
            const std::optional<DropReason> reason,
            find_drop_reason(asked, question, [&](std::size_t i, const sieve_key& key) -> Result<bool> {
                if (i == keys.changed) return !coming.erased;
                return asked.matches(i, key, slots);
            }));
        if (reason) dropped.add(*reason, question, host[question.about]);
    }
    if (dropped.empty()) return {};
    return dropped.refusal({}, hook.interface.name, hook.point, asked, keys.when);
}

} // namespace

std::vector<LockoutQuestion> lockout_questions(std::span<const HostAddress> host,
                                               const std::string& interface, kernel::HookPoint point) {
    return HostQuestions(host, interface, point).run();
}

Met is_met(const sieve_condition& condition, const LockoutQuestion& question) {
    const Met met = is_met(condition, question.key, question.known);
    if (met != Met::depends) return met;
    const bool always =
        std::ranges::all_of(made_up_keys(question, condition.fields), [&](const sieve_key& key) {
            return is_met(condition, key, condition.fields) == Met::yes;
        });
    return always ? Met::yes : Met::depends;
}

Result<std::optional<DropReason>> find_drop_reason(std::span<const AskedSet> sets,
                                                   sieve_action default_action,
                                                   const LockoutQuestion& question, const AskSet& ask) {
    bool may_pass = false; // a set that gives no answer might have let the packet pass
    for (std::size_t i = 0; i < sets.size() && !may_pass; i++) {
        const AskedSet& set = sets[i];
        if (!facts_of(set.action).decides) continue;
        const Met met = is_met(set.condition, question);
        if (met == Met::no) continue;
        const bool open = (set.fields & ~question.known) != 0;
        const std::vector<sieve_key> keys =
            open ? made_up_keys(question, set.fields) : std::vector{masked(question.key, set.fields)};
        bool matches = !keys.empty();
        for (std::size_t at = 0; matches && at < keys.size(); at++) {
            SIEVE_ASSIGN(matches, ask(i, keys[at]));
        }
        if (!matches) {
            may_pass = open && set.action == SIEVE_ACTION_PASS;
            continue;
        }
        if (set.action == SIEVE_ACTION_PASS) return std::optional<DropReason>();
        if (met == Met::yes) return std::optional<DropReason>(DropReason{i});
    }
    if (!may_pass && question.by_default && default_action == SIEVE_ACTION_DROP)
        return std::optional<DropReason>(DropReason{std::nullopt});
    return std::optional<DropReason>();
}

Result<std::vector<LockoutQuestion>> lockout_questions(const Safety& safety, const std::string& interface,
                                                       kernel::HookPoint point) {
    if (safety.host == nullptr) return std::vector<LockoutQuestion>();
    SIEVE_ASSIGN(const std::vector<HostAddress> host, safety.host->read());
    return lockout_questions(host, interface, point);
}

std::vector<sieve_key> keys_of(std::span<const LockoutQuestion> questions, std::uint32_t fields) {
    std::vector<sieve_key> keys;
    for (const LockoutQuestion& question : questions)
        if ((fields & ~question.known) == 0) keys.push_back(masked(question.key, fields));
    const auto less = [](const sieve_key& a, const sieve_key& b) {
        return std::to_array(a.word) < std::to_array(b.word);
    };
    std::sort(keys.begin(), keys.end(), less);
    const auto same = [&](const sieve_key& a, const sieve_key& b) { return !less(a, b); };
    keys.erase(std::unique(keys.begin(), keys.end(), same), keys.end());
    return keys;
}

Status refuse_lockout(Kernel& kernel, Trial& trial, const std::string& interface, kernel::HookPoint point,
                      const ComingTable& coming, const Safety& safety) {
    if (safety.host == nullptr || !may_drop(coming.table)) return {};
    SIEVE_ASSIGN(const std::vector<HostAddress> host, safety.host->read());
    return refuse_drops(kernel, trial, interface, point, coming, host, safety);
}

Status refuse_lockout(Kernel& kernel, const kernel::Hook& hook, const ComingKeys& coming,
                      const Safety& safety) {
    if (safety.host == nullptr) return {};
    const std::optional<kernel::TableInForce> returning = kernel.read_returning(hook);
    const kernel::TableInForce now = kernel.read_table(hook);
    std::vector<KeysInTable> tables;
    if (const auto changed = find_changed(now, coming)) tables.push_back({now, *changed, ""});
    if (returning)
        if (const auto changed = find_changed(*returning, coming))
            tables.push_back({*returning, *changed, "once the change on probation is taken back, "});
    if (tables.empty()) return {};
    SIEVE_ASSIGN(const std::vector<HostAddress> host, safety.host->read());
    const std::vector<LockoutQuestion> questions =
        named_by(coming, lockout_questions(host, hook.interface.name, hook.point));
    if (questions.empty()) return {};

    SIEVE_ASSIGN(const std::unique_ptr<Trial> trial,
                 kernel.start_trial(hook.point, false, [] { return std::vector<const ReadySet*>(); }));
    TrialSlots slots(kernel, *trial, {});
    for (const KeysInTable& one : tables)
        SIEVE_TRY(refuse_drops(kernel, slots, hook, one, coming, questions, host));
    return {};
}

Status refuse_lockout(Kernel& kernel, const std::string& interface, kernel::HookPoint point,
                      const ComingTable& coming, const Safety& safety) {
    if (safety.host == nullptr || !may_drop(coming.table)) return {};
    SIEVE_ASSIGN(const std::vector<HostAddress> host, safety.host->read());
    SIEVE_ASSIGN(const std::unique_ptr<Trial> trial,
                 kernel.start_trial(point, false, [] { return std::vector<const ReadySet*>(); }));
    return refuse_drops(kernel, *trial, interface, point, coming, host, safety);
}

} // namespace sieve::control
