// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sandbox/system_calls.hpp"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include <fmt/core.h>

namespace sieve::service {

namespace {

// What the C++ library, glibc's malloc and threads, oneTBB and the builder need: memory, threads, time, and
// the descriptors that are open already.
constexpr const char* work[] = {
    "read",         "readv",
    "pread64",      "preadv",
    "write",        "writev",
    "pwrite64",     "pwritev",
    "lseek",        "close",
    "fstat",        "newfstatat",
    "ftruncate",    "fsync",
    "fdatasync",    "fcntl",
    "poll",         "ppoll",
    "munmap",       "mremap",
    "madvise",      "brk",
    "futex",        "set_robust_list",
    "rseq",         "membarrier",
    "rt_sigaction", "rt_sigprocmask",
    "rt_sigreturn", "sigaltstack",
    "sched_yield",  "sched_getaffinity",
    "getcpu",       "clock_gettime",
    "clock_getres", "clock_nanosleep",
    "nanosleep",    "gettimeofday",
    "time",         "getpid",
    "gettid",       "getuid",
    "geteuid",      "getgid",
    "getegid",      "getrandom",
    "getrusage",    "sysinfo",
    "uname",        "restart_syscall",
    "exit",         "exit_group",
};

// What libcurl and the resolver need besides.
constexpr const char* network[] = {
    "connect",  "bind",          "getsockname", "getpeername", "getsockopt",  "setsockopt", "sendto",
    "sendmsg",  "sendmmsg",      "recvfrom",    "recvmsg",     "recvmmsg",    "shutdown",   "select",
    "pselect6", "epoll_create1", "epoll_ctl",   "epoll_wait",  "epoll_pwait", "eventfd2",   "pipe2",
    "access",   "faccessat",     "faccessat2",  "readlink",    "readlinkat",  "getdents64", "stat",
    "lstat",    "statfs",        "fstatfs",     "statx",
};

// An attempt at these is no mistake, so that it shall be seen.
constexpr const char* hostile[] = {
    "execve",
    "execveat",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "bpf",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "setns",
    "unshare",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "keyctl",
    "add_key",
    "request_key",
    "perf_event_open",
    "userfaultfd",
    "io_uring_setup",
    "open_by_handle_at",
    "reboot",
};

class Filter {
  public:
    Filter() : context_(::seccomp_init(SCMP_ACT_ERRNO(EPERM)), &::seccomp_release) {}

    template <std::size_t Count>
    void add(std::uint32_t action, const char* const (&names)[Count]) {
        for (const char* name : names) add(action, name, {});
    }
    // All conditions must hold. A call that this processor's kernel does not have is left out.
    void add(std::uint32_t action, const char* name, const std::vector<scmp_arg_cmp>& conditions) {
        const int number = ::seccomp_syscall_resolve_name(name);
        if (number < 0 || !context_) return;
        const int error = ::seccomp_rule_add_array(
            context_.get(), action, number, static_cast<unsigned>(conditions.size()), conditions.data());
        if (error_ == 0 && error < 0) error_ = -error;
    }
    // 0 or an error number.
    [[nodiscard]] int load() {
        if (!context_) return ENOMEM;
        return error_ != 0 ? error_ : -::seccomp_load(context_.get());
    }

  private:
    std::unique_ptr<void, decltype(&::seccomp_release)> context_;
    int error_ = 0;
};

constexpr scmp_datum_t no_write = O_ACCMODE | O_CREAT | O_TRUNC;

scmp_arg_cmp equal(unsigned argument, scmp_datum_t value) {
    return {argument, SCMP_CMP_EQ, value, 0};
}
// Of the bits in `mask`, exactly those in `value` are set.
scmp_arg_cmp bits(unsigned argument, scmp_datum_t mask, scmp_datum_t value) {
    return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}

void add_work(Filter& filter) {
    constexpr std::uint32_t allow = SCMP_ACT_ALLOW;
    filter.add(allow, work);
    filter.add(SCMP_ACT_KILL_PROCESS, hostile);
    // Threads, and no processes. The flags of clone3 lie in memory, where a filter cannot look; glibc takes
    // clone where clone3 does not exist.
    filter.add(allow, "clone", {bits(0, CLONE_THREAD, CLONE_THREAD)});
    filter.add(SCMP_ACT_ERRNO(ENOSYS), "clone3", {});
    filter.add(allow, "prctl", {equal(0, PR_SET_NAME)});
    filter.add(allow, "prlimit64", {equal(2, 0)}); // asking only
    // abort() and pthread_kill(): its own threads only.
    filter.add(allow, "tgkill", {equal(0, static_cast<scmp_datum_t>(::getpid()))});
}

} // namespace

Status allow_system_calls_of(ChildRole role) {
    if (role == ChildRole::command) return {};
    constexpr std::uint32_t allow = SCMP_ACT_ALLOW;
    Filter filter;
    add_work(filter);
    if (role == ChildRole::build) {
        // No new code: all libraries are loaded.
        filter.add(allow, "mmap", {bits(2, PROT_EXEC, 0)});
        filter.add(allow, "mprotect", {bits(2, PROT_EXEC, 0)});
    } else {
        filter.add(allow, network);
        for (const int family : {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK})
            filter.add(allow, "socket", {equal(0, static_cast<scmp_datum_t>(family))});
        filter.add(allow, "socketpair", {equal(0, AF_UNIX)});
        filter.add(allow, "ioctl", {equal(1, FIONREAD)});
        // The resolver's configuration and modules, and certificates.
        filter.add(allow, "openat", {bits(2, no_write, O_RDONLY)});
        filter.add(allow, "open", {bits(1, no_write, O_RDONLY)});
        filter.add(allow, "mmap", {});
        filter.add(allow, "mprotect", {});
    }
    if (const int error = filter.load(); error != 0)
        return failure(ErrorKind::not_permitted,
                       fmt::format("the filter of system calls cannot be loaded: {}", errno_text(error)));
    return {};
}

} // namespace sieve::service
