// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/console/remedy.hpp"

#include <fmt/format.h>

namespace sieve::cli {

namespace {

std::string with_advice(const std::string& message, const std::string& advice) {
    return advice.empty() ? message : fmt::format("{}; {}", message, advice);
}

// The interface as commands name it. Without its hook, `load` would put a table meant for tc's at XDP's.
std::string where(const Facts& facts) {
    const std::string interface = facts.interface.empty() ? "IFACE" : facts.interface;
    if (facts.hooks.size() != 1 || facts.hooks.front() == "xdp") return interface;
    return fmt::format("--hook {} {}", facts.hooks.front(), interface);
}

std::string warning_remedy(const control::Warning& warning) {
    switch (warning.kind) {
    case control::WarningKind::no_carrier:
    case control::WarningKind::one_buffer:
    case control::WarningKind::filters_before_notes:
    case control::WarningKind::changes_undone:
        return {};
    case control::WarningKind::smaller_mtu:
        return fmt::format("`ip link set {} mtu ...` raises it", warning.facts.interface);
    case control::WarningKind::sending_unknown:
        return "`-m skb` does not need driver support, and xdp-monitor shows what is dropped";
    case control::WarningKind::tap_to_cpu:
        return "`-m skb` avoids this";
    case control::WarningKind::unfinished_checksums:
        return "`-m skb` avoids this, and `ethtool -K IFACE tx off` at the other end makes senders finish "
               "checksums";
    case control::WarningKind::filters_before:
        return "after `unload`, `load` with a lower `--priority` puts it before them";
    case control::WarningKind::replies_unasked:
        return fmt::format("`xdp-sieve replies {} drop` drops them, too", where(warning.facts));
    case control::WarningKind::answers_dropped:
        return fmt::format("`xdp-sieve replies {} pass` lets them in", where(warning.facts));
    case control::WarningKind::prefix_allowlist:
        return fmt::format("`{}=FEED,verify` (or IMAGE,verify=FEED) lets no false positive in",
                           warning.facts.set);
    }
    return {};
}

} // namespace

std::string remedy(const Error& error, bool confirms) {
    const Facts& facts = error.facts;
    switch (error.kind) {
    case ErrorKind::no:
    case ErrorKind::no_such_set:
    case ErrorKind::invalid_request:
    case ErrorKind::bad_input:
    case ErrorKind::out_of_memory:
    case ErrorKind::kernel_refused:
    case ErrorKind::busy:
    case ErrorKind::changed_meanwhile:
    case ErrorKind::unfinished:
        return {};
    case ErrorKind::lockout:
        if (!confirms) return "leave out what covers it, or say `--allow-lockout` if it is meant";
        // Without a set that drops, it is the default.
        return fmt::format(
            "{}; or say `--allow-lockout` if it is meant (`--confirm 60` takes it back unless "
            "you confirm it)",
            facts.set.empty() ? "put what must pass into the list of a set that passes"
                              : "take it out of the list, or name it in a file of exceptions (`except=FILE`; "
                                "`--except FILE` for an image)");
    case ErrorKind::unconfirmed:
        return fmt::format("`xdp-sieve confirm {}` keeps it, and with `--take-back` undoes it at once",
                           facts.interface);
    case ErrorKind::not_attached:
        return facts.program_id != 0 ? std::string()
                                     : fmt::format("`xdp-sieve load {} NAME=FEED` attaches it", where(facts));
    case ErrorKind::several_hooks:
        return fmt::format("`--hook {}` names one", fmt::join(facts.hooks, "|"));
    case ErrorKind::attached_otherwise:
        return "leave -m, --priority and --chain out: they are settled when the program is attached";
    case ErrorKind::wants_force:
        if (facts.in_force.empty()) return "if that is meant, add `--force`";
        return fmt::format(
            "`--replace` says that it is meant, and `xdp-sieve add {} NAME=FEED` adds a set to "
            "those in force",
            where(facts));
    case ErrorKind::needs_feed:
        return fmt::format("name the feed that it was built of: {}={},verify=FEED", facts.set, facts.path);
    case ErrorKind::foreign_file:
        return "remove it, or use `--force`";
    case ErrorKind::fixed_keys:
        return "change its feed, build and swap (with `build --kind exact`, for single keys, or "
               "`build --kind ddlcbf`, for prefixes too, this once, to insert and delete from then on)";
    case ErrorKind::not_permitted:
        return "run it as root (CAP_SYS_ADMIN, CAP_BPF and CAP_NET_ADMIN)";
    case ErrorKind::no_native_mode:
        return "`-m skb` uses the generic hook, which every driver has";
    case ErrorKind::foreign_program:
        return "`--force` replaces it";
    case ErrorKind::other_version:
        return fmt::format("`xdp-sieve load {} NAME=FEED --force` puts this version in its place",
                           where(facts));
    }
    return {};
}

std::string error_text(const Error& error, bool confirms) {
    return with_advice(error.message, remedy(error, confirms));
}

std::string warning_text(const control::Warning& warning) {
    return with_advice(warning.message, warning_remedy(warning));
}

} // namespace sieve::cli
