// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sandbox/confine.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include <fmt/core.h>

#include "libsieve/service/sandbox/system_calls.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

// Sanitizers reserve terabytes of addresses and write much of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool memory_can_be_limited = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
constexpr bool memory_can_be_limited = false;
#else
constexpr bool memory_can_be_limited = true;
#endif
#else
constexpr bool memory_can_be_limited = true;
#endif

// Addresses that a child may have beyond the memory that it writes: libraries, the arenas that malloc
// reserves for threads, and files mapped.
constexpr std::uint64_t spare_addresses = std::uint64_t{1} << 30;

tl::unexpected<Error> refused(const char* what) {
    return failure(ErrorKind::not_permitted, fmt::format("{}: {}", what, errno_text(errno)));
}

// An unprivileged process may lower its limits, and never fails at a limit that is low already. `grace` is
// what the hard limit has beyond the soft one.
Status limit(int resource, std::uint64_t value, std::uint64_t grace = 0) {
    rlimit old{};
    if (::getrlimit(static_cast<__rlimit_resource>(resource), &old) != 0) return refused("getrlimit");
    const auto lower = [&](rlim_t wanted) {
        return old.rlim_max == RLIM_INFINITY ? wanted : std::min<rlim_t>(wanted, old.rlim_max);
    };
    const rlimit wanted{lower(value), lower(value + grace)};
    if (::setrlimit(static_cast<__rlimit_resource>(resource), &wanted) != 0) return refused("setrlimit");
    return {};
}

Status set_limits(const Confinement& to) {
    SIEVE_TRY(limit(RLIMIT_CORE, 0));
    SIEVE_TRY(limit(RLIMIT_NOFILE, to.descriptors));
    SIEVE_TRY(limit(RLIMIT_FSIZE, to.file_bytes));
    // At the soft limit comes SIGXCPU, which says why; at the hard one SIGKILL, which cannot be ignored.
    if (to.processor.count() != 0)
        SIEVE_TRY(limit(RLIMIT_CPU, static_cast<std::uint64_t>(to.processor.count()), 5));
    if (!memory_can_be_limited || to.memory_bytes == 0) return {};
    SIEVE_TRY(limit(RLIMIT_DATA, to.memory_bytes));
    // A program in Go or Java reserves addresses as it likes.
    if (to.role != ChildRole::command) SIEVE_TRY(limit(RLIMIT_AS, to.memory_bytes + spare_addresses));
    return {};
}

struct Capabilities {
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};

    [[nodiscard]] bool has(unsigned capability) const {
        return (sets[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
    }
};

Result<Capabilities> own_capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    Capabilities own;
    if (::syscall(SYS_capget, &header, own.sets.data()) != 0) return refused("capget");
    return own;
}

Status become(const SandboxUser& user) {
    if (::setgroups(0, nullptr) != 0) return refused("setgroups");
    if (::setresgid(user.gid, user.gid, user.gid) != 0) return refused("setresgid");
    if (::setresuid(user.uid, user.uid, user.uid) != 0) return refused("setresuid");
    return {};
}

Status drop_capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const Capabilities none;
    if (::syscall(SYS_capset, &header, none.sets.data()) != 0) return refused("capset");
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return refused("prctl");
    return {};
}

Status end_with(pid_t parent) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return refused("prctl");
    // It may have gone before.
    if (::getppid() != parent) return failure(ErrorKind::changed_meanwhile, "the parent has ended");
    return {};
}

} // namespace

Result<SandboxUser> find_sandbox_user(const std::string& name) {
    const std::vector<std::string> names =
        name.empty() ? std::vector<std::string>{"xdp-sieve", "nobody"} : std::vector{name};
    for (const std::string& one : names) {
        passwd entry{};
        passwd* found = nullptr;
        std::vector<char> text(16384);
        if (::getpwnam_r(one.c_str(), &entry, text.data(), text.size(), &found) == 0 && found != nullptr)
            return SandboxUser{entry.pw_uid, entry.pw_gid};
    }
    return bad_input(fmt::format("no user {} on this machine, expected one without privileges to download "
                                 "and build lists as",
                                 printable(names.front())));
}

bool has_privileges() {
    const auto own = own_capabilities();
    return ::geteuid() == 0 || !own || std::ranges::any_of(own->sets, [](const auto& set) {
               return (set.effective | set.permitted) != 0;
           });
}

Status confine(const Confinement& to) {
    SIEVE_TRY(set_limits(to));
    // Not worth failing for.
    if (to.nice > 0) ::setpriority(PRIO_PROCESS, 0, to.nice);
    SIEVE_ASSIGN(const Capabilities own, own_capabilities());
    if (own.has(CAP_SETPCAP))
        for (unsigned capability = 0; ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0;) ++capability;
    if (own.has(CAP_SETUID) && own.has(CAP_SETGID)) SIEVE_TRY(become(to.user));
    SIEVE_TRY(drop_capabilities());
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return refused("prctl");
    // After the change of user, which resets both.
    if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return refused("prctl");
    if (to.parent != 0) SIEVE_TRY(end_with(to.parent));
    return allow_system_calls_of(to.role);
}

} // namespace sieve::service
