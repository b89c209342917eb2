// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/xdp/attach.hpp"

#include <linux/if_link.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <xdp/libxdp.h>

#include "libsieve/kernel/hooks/xdp/attached_program.hpp"
#include "libsieve/kernel/host/capabilities.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/util/results/unfinished.hpp"

namespace sieve::kernel::xdp {

namespace {

std::uint32_t mode_flag(Mode mode) {
    switch (mode) {
    case Mode::native:
        return XDP_FLAGS_DRV_MODE;
    case Mode::skb:
        return XDP_FLAGS_SKB_MODE;
    case Mode::offload:
        return XDP_FLAGS_HW_MODE;
    }
    return 0;
}

xdp_attach_mode libxdp_mode(Mode mode) {
    return mode == Mode::skb ? XDP_MODE_SKB : XDP_MODE_NATIVE;
}

std::vector<Mode> modes_of(ModeChoice choice) {
    switch (choice) {
    case ModeChoice::native:
        return {Mode::native};
    case ModeChoice::skb:
        return {Mode::skb};
    case ModeChoice::automatic:
        break;
    }
    return {Mode::native, Mode::skb};
}

// Whether another mode, or the other program, would meet the same refusal.
bool is_final(int error) {
    switch (std::abs(error)) {
    case EPERM:
    case EACCES:
    case EBUSY:
    case EEXIST:
    case ENODEV:
        return true;
    default:
        return false;
    }
}

// Sends one request to the kernel. `replaced` < 0 means that no program may be attached yet.
int set_program(const Interface& interface, Mode mode, int program, int replaced) {
    LIBBPF_OPTS(bpf_xdp_attach_opts, options);
    options.old_prog_fd = replaced < 0 ? 0 : replaced;
    const std::uint32_t flags =
        mode_flag(mode) | (replaced < 0 ? XDP_FLAGS_UPDATE_IF_NOEXIST : XDP_FLAGS_REPLACE);
    return bpf_xdp_attach(static_cast<int>(interface.index), program, flags, &options);
}

// What became of a request. The kernel's answer can get lost (no memory for it, a signal), so after an error
// we look at what is attached now.
struct Outcome {
    int error = 0;     // 0: the requested program is attached
    bool known = true; // false: we could not even read what is attached
};

// Sends the request and finds out whether it was carried out.
Outcome request(const Interface& interface, Mode mode, int program, int replaced) {
    const int error = set_program(interface, mode, program, replaced);
    if (error == 0) return {};
    Result<std::uint32_t> wanted = program < 0 ? Result<std::uint32_t>(0) : program_id(program);
    const Result<std::uint32_t> there = program_in_mode(interface, mode);
    if (!wanted || !there) return {error, false};
    return {*there == *wanted ? 0 : error, true};
}

// The error for a failed attempt to attach or detach, with what the kernel or the driver said about it.
tl::unexpected<Error> attach_refusal(const std::string& what, int error, const LogCapture& log,
                                     ModeChoice choice) {
    std::string remedy;
    if (const std::string said = log.kernel_message(); !said.empty())
        remedy = fmt::format("the kernel says: {}", said);
    const auto add = [&remedy](const char* text) {
        remedy += (remedy.empty() ? "" : "; ") + std::string(text);
    };
    switch (std::abs(error)) {
    case EBUSY:
    case EEXIST:
        add(remedy.find("upper device") != std::string::npos
                ? "take the program off the bridge or bond that this interface belongs to first"
                : "another program was attached meanwhile, or is attached by a BPF link; its owner must "
                  "detach it");
        break;
    case EPERM:
    case EACCES:
        break;
    case ENODEV:
        add("the interface is gone");
        break;
    default:
        if (choice == ModeChoice::native) {
            Error refused = refusal(what, error, remedy).value();
            refused.kind = ErrorKind::no_native_mode;
            return tl::unexpected(std::move(refused));
        }
        add("a smaller MTU may help");
    }
    return refusal(what, error, remedy);
}

// Replaces the program that `before` found, or attaches where it found none. The kernel replaces a program
// only within one mode. In another mode the old program must be detached first; if ours is then refused, the
// old one is attached again. An error of kind unfinished means that the hook is no longer as it was.
Result<Outcome> take_place(const Hook& before, Mode mode, int program, const std::string& what) {
    const auto unknown = [&](const Outcome& outcome) {
        return outcome_unknown(what, refusal("asking what runs there", outcome.error).value());
    };
    const bool other_mode = before.attached && before.mode != mode;
    if (other_mode) {
        const Outcome gone = request(before.interface, before.mode, -1, before.attached->fd.get());
        if (!gone.known) return unknown(gone);
        if (gone.error != 0) return gone;
    }
    const bool replaces = before.attached && !other_mode;
    const Outcome outcome =
        request(before.interface, mode, program, replaces ? before.attached->fd.get() : -1);
    if (!outcome.known) return unknown(outcome);
    if (outcome.error == 0 || !other_mode) return outcome;
    const Outcome back = request(before.interface, before.mode, before.attached->fd.get(), -1);
    if (!back.known || back.error != 0)
        return unfinished(
            fmt::format("{} failed, and {}, which was detached for it, could not be attached again", what,
                        program_text(*before.attached)),
            refusal("attaching it", back.error).value());
    return outcome;
}

// Reads the hook after our program was attached.
Result<Hook> read_back(const Interface& interface) {
    Result<Hook> now = without_throwing([&] { return xdp::read_hook(interface); });
    if (!now)
        return unfinished(
            fmt::format("attaching to {} worked, but reading the hook again did not", interface.name),
            now.error());
    if (!now->ours)
        return failure(ErrorKind::unfinished,
                       fmt::format("attaching to {} worked, but another tool detached the program at once",
                                   interface.name));
    return now;
}

// Attaches without a dispatcher, in the first mode that the driver accepts.
Result<Attached> attach_alone(const Hook& before, const BpfObject& object, ModeChoice choice) {
    const LogCapture log;
    const std::string what = fmt::format("attaching to {}", before.interface.name);
    int error = 0;
    for (const Mode mode : modes_of(choice)) {
        for (const int program : {object.program_fd(), object.frags_program_fd()}) {
            if (program < 0) continue;
            SIEVE_ASSIGN(const Outcome outcome, take_place(before, mode, program, what));
            error = outcome.error;
            if (error == 0) {
                SIEVE_ASSIGN(Hook now, read_back(before.interface));
                return Attached{
                    .hook = std::move(now), .frags = program == object.frags_program_fd(), .remarks = {}};
            }
            if (is_final(error)) break;
        }
        if (is_final(error)) break;
    }
    return attach_refusal(what, error, log, choice);
}

struct CloseProgram {
    void operator()(xdp_program* program) const { xdp_program__close(program); }
};
using LibxdpProgram = std::unique_ptr<xdp_program, CloseProgram>;

// Gives libxdp a second copy of the program, which shares the first one's maps. libxdp links the copy into a
// dispatcher, or attaches it alone if no dispatcher can be used. Returns 0 or a negative errno value.
int attach_by_libxdp(const Hook& before, const BpfObject& object, bool frags, Mode mode,
                     const DispatcherRank& rank) {
    const LogCapture log;
    Result<BpfObject> copy = object.open_copy(frags);
    if (!copy) return -EINVAL;
    xdp_program* raw = xdp_program__from_bpf_obj(copy->object(), frags ? "xdp.frags" : "xdp");
    if (const long error = libxdp_get_error(raw); error != 0) return static_cast<int>(error);
    const LibxdpProgram program(raw);
    int error = xdp_program__set_run_prio(raw, rank.priority);
    // libxdp cannot tell from the section: libbpf sets the flag only when it loads the program.
    if (error == 0 && frags) error = xdp_program__set_xdp_frags_support(raw, true);
    for (unsigned verdict = XDP_ABORTED; error == 0 && verdict <= XDP_REDIRECT; verdict++)
        error = xdp_program__set_chain_call_enabled(raw, verdict, (rank.chain >> verdict & 1) != 0);
    if (error != 0) return error;
    return xdp_program__attach(raw, static_cast<int>(before.interface.index), libxdp_mode(mode), 0);
}

// Whether our program at the hook uses this instance's maps.
Result<bool> runs_with(const Hook& hook, const Instance& instance) {
    if (!hook.ours || !hook.instance) return false;
    SIEVE_ASSIGN(const std::uint32_t there, map_id(hook.instance->control_fd()));
    SIEVE_ASSIGN(const std::uint32_t here, map_id(instance.control_fd()));
    return there == here;
}

// The hook after an attempt, if it now runs our program with this instance's maps.
Result<std::optional<Hook>> attached_by_now(const Interface& interface, const Instance& instance) {
    SIEVE_ASSIGN(Hook now, xdp::read_hook(interface));
    SIEVE_ASSIGN(const bool runs, runs_with(now, instance));
    if (!runs) return std::nullopt;
    return std::optional<Hook>(std::move(now));
}

// Attaches through libxdp in the first mode that works; returns nothing if none does. We trust the hook, not
// libxdp's answer: libxdp also reports an error when it has attached the program and a later step failed.
Result<std::optional<Attached>> attach_among_others(const Hook& before, const BpfObject& object,
                                                    const AttachOptions& options) {
    for (const Mode mode : modes_of(options.mode))
        for (const bool frags : {false, true}) {
            if (frags && object.frags_program_fd() < 0) continue;
            const int error = attach_by_libxdp(before, object, frags, mode, options.rank);
            Result<std::optional<Hook>> now =
                without_throwing([&] { return attached_by_now(before.interface, object.instance()); });
            if (!now)
                return outcome_unknown(fmt::format("attaching to {}", before.interface.name), now.error());
            if (*now) return Attached{.hook = std::move(**now), .frags = frags, .remarks = {}};
            if (error == 0) return std::nullopt; // another tool attached a program first
        }
    return std::nullopt;
}

std::string alone_remark(const Interface& interface) {
    return fmt::format(
        "attached alone to {}: libxdp cannot use its dispatcher here (that takes a kernel that "
        "lets programs replace others' functions, and a bpffs on /sys/fs/bpf)",
        interface.name);
}

std::string fallback_remark(const Hook& now, ModeChoice choice) {
    return choice == ModeChoice::automatic && now.mode == Mode::skb
               ? fmt::format(
                     "{}'s driver does not take the program: attached to the generic (skb) hook, which "
                     "is slower",
                     now.interface.name)
               : std::string();
}

} // namespace

Result<Attached> attach(const Hook& before, const BpfObject& object, const AttachOptions& options) {
    const bool dispatcher = before.attached && before.attached->name == dispatcher_name;
    SIEVE_TRY(may_attach(before, options.force));

    // With libxdp the program is verified a second time, so skip the attempt where it cannot succeed.
    const bool in_vain = !dispatcher && !may_use_dispatcher();
    if ((!before.attached && !in_vain) || dispatcher) {
        SIEVE_ASSIGN(std::optional<Attached> attached, attach_among_others(before, object, options));
        if (attached) {
            if (!attached->hook.behind_dispatcher())
                attached->remarks.push_back(alone_remark(before.interface));
            if (std::string remark = fallback_remark(attached->hook, options.mode); !remark.empty())
                attached->remarks.push_back(std::move(remark));
            return std::move(*attached);
        }
    }
    if (dispatcher && !options.force)
        return foreign_program(
            before,
            fmt::format("libxdp's dispatcher (id {}), which did not accept xdp-sieve", before.attached->id));

    SIEVE_ASSIGN(Attached attached, attach_alone(before, object, options.mode));
    if (dispatcher) unpin_dispatcher(before.interface.index, before.attached->id);
    if (in_vain && !before.attached) attached.remarks.push_back(alone_remark(before.interface));
    if (!in_vain || before.attached || attached.frags)
        attached.remarks.push_back(
            fmt::format("attached alone to {}{}", before.interface.name,
                        attached.frags ? ", with the program for multi-buffer frames" : ""));
    if (std::string remark = fallback_remark(attached.hook, options.mode); !remark.empty())
        attached.remarks.push_back(std::move(remark));
    return attached;
}

namespace {

// Returns 0 or a negative errno value.
int detach_by_libxdp(const Hook& hook) {
    const LogCapture log;
    xdp_program* raw = xdp_program__from_id(hook.ours->id);
    if (const long error = libxdp_get_error(raw); error != 0) return static_cast<int>(error);
    const LibxdpProgram program(raw);
    return xdp_program__detach(raw, static_cast<int>(hook.interface.index), libxdp_mode(hook.mode), 0);
}

Status leave_dispatcher(const Hook& hook) {
    const LogCapture log;
    const int error = detach_by_libxdp(hook);
    if (error == 0) return {};
    // We trust the hook: libxdp also reports an error when it has detached the program and a later step
    // failed.
    const std::string what = fmt::format("taking xdp-sieve out of {}'s dispatcher", hook.interface.name);
    const Result<Hook> now = without_throwing([&] { return xdp::read_hook(hook.interface); });
    if (!now) return outcome_unknown(what, now.error());
    if (now->ours && now->ours->id == hook.ours->id) return refusal(what, error);
    // Somebody else took the whole hook meanwhile: our program left it by another hand than ours.
    if (now->attached && now->members.empty())
        return attach_refusal(what, EEXIST, log, ModeChoice::automatic);
    if (!now->attached || now->attached->id != hook.attached->id)
        unpin_dispatcher(hook.interface.index, hook.attached->id);
    return {};
}

} // namespace

Status detach(const Hook& hook) {
    if (hook.behind_dispatcher()) return leave_dispatcher(hook);
    const LogCapture log;
    const std::string what = fmt::format("detaching from {}", hook.interface.name);
    const Outcome outcome = request(hook.interface, hook.mode, -1, hook.attached->fd.get());
    if (!outcome.known)
        return outcome_unknown(what, refusal("asking what runs there", outcome.error).value());
    if (outcome.error != 0) return attach_refusal(what, outcome.error, log, ModeChoice::automatic);
    return {};
}

} // namespace sieve::kernel::xdp
