// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Runs a command and makes one of its system calls fail, or kills the command there.
//
//     inject REPORT -- COMMAND...                    lists the calls
//     inject REPORT CALL INDEX FAULT -- COMMAND...   FAULT: kill, an errno value, or one with a + behind it
//
// CALL is a name such as openat. Calls of bpf(2) are told apart by their command, such as bpf.MAP_CREATE.
// INDEX counts the calls of that name from 1, over all threads, from the first call that main() makes: calls
// of the dynamic loader do not count. The call does not reach the kernel: the process dies before it, or gets
// the error. With a +, all later calls of that name fail as well.
//
// REPORT gets one line for each counted or failed call. The exit status is the command's, or 128 plus the
// signal's number if a signal ended the command, or 125 if inject itself failed.
//
// seccomp's user notification holds up the calls. There is no ptrace, so threads run on, and their number
// does not matter.
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace {

constexpr int cannot = 125;

// clang-format off
#define NAMES(X)                                                                                              \
    X(bpf) X(brk) X(mmap) X(munmap) X(mremap) X(mprotect) X(madvise)                                          \
    X(read) X(write) X(readv) X(writev) X(pread64) X(pwrite64) X(lseek)                                       \
    X(openat) X(close) X(dup) X(dup3) X(fcntl) X(flock) X(ftruncate)                                          \
    X(newfstatat) X(fstat) X(statx) X(faccessat) X(faccessat2) X(readlinkat) X(getdents64)                    \
    X(mkdirat) X(unlinkat) X(renameat2) X(statfs) X(fstatfs) X(mount) X(umask)                                \
    X(ioctl) X(socket) X(bind) X(getsockname) X(setsockopt) X(sendto) X(sendmsg) X(recvfrom) X(recvmsg)       \
    X(ppoll) X(futex) X(clone) X(clone3) X(set_robust_list) X(rseq) X(exit) X(exit_group) X(tgkill)           \
    X(sched_yield) X(sched_getaffinity) X(clock_nanosleep) X(getpid) X(gettid) X(getuid) X(geteuid)           \
    X(getrandom) X(prctl) X(prlimit64) X(uname) X(rt_sigaction) X(rt_sigprocmask) X(rt_sigreturn)             \
    X(sigaltstack) X(perf_event_open)
// clang-format on

const std::map<int, std::string>& call_names() {
    static const std::map<int, std::string> names{
#define NAME(call) {SYS_##call, #call},
        NAMES(NAME)
#ifdef SYS_mkdir // what newer architectures have with a folder's descriptor only
            NAME(mkdir) NAME(unlink) NAME(rmdir) NAME(access) NAME(open) NAME(stat) NAME(lstat) NAME(poll)
#endif
#undef NAME
    };
    return names;
}

const std::map<int, std::string>& bpf_names() {
    static const std::map<int, std::string> names{
#define COMMAND(name) {BPF_##name, "bpf." #name}
        COMMAND(MAP_CREATE),       COMMAND(MAP_LOOKUP_ELEM),
        COMMAND(MAP_UPDATE_ELEM),  COMMAND(MAP_DELETE_ELEM),
        COMMAND(MAP_GET_NEXT_KEY), COMMAND(PROG_LOAD),
        COMMAND(OBJ_PIN),          COMMAND(OBJ_GET),
        COMMAND(PROG_ATTACH),      COMMAND(PROG_DETACH),
        COMMAND(PROG_TEST_RUN),    COMMAND(PROG_GET_NEXT_ID),
        COMMAND(MAP_GET_NEXT_ID),  COMMAND(PROG_GET_FD_BY_ID),
        COMMAND(MAP_GET_FD_BY_ID), COMMAND(OBJ_GET_INFO_BY_FD),
        COMMAND(PROG_QUERY),       COMMAND(RAW_TRACEPOINT_OPEN),
        COMMAND(BTF_LOAD),         COMMAND(BTF_GET_FD_BY_ID),
        COMMAND(MAP_FREEZE),       COMMAND(BTF_GET_NEXT_ID),
        COMMAND(MAP_LOOKUP_BATCH), COMMAND(MAP_UPDATE_BATCH),
        COMMAND(MAP_DELETE_BATCH), COMMAND(LINK_CREATE),
        COMMAND(LINK_UPDATE),      COMMAND(LINK_GET_FD_BY_ID),
        COMMAND(LINK_GET_NEXT_ID), COMMAND(LINK_DETACH),
        COMMAND(PROG_BIND_MAP),
#undef COMMAND
    };
    return names;
}

std::string name_of(const seccomp_data& call) {
    const bool bpf = call.nr == SYS_bpf;
    const int number = bpf ? static_cast<int>(call.args[0]) : call.nr;
    const auto& names = bpf ? bpf_names() : call_names();
    const auto found = names.find(number);
    return found != names.end() ? found->second : (bpf ? "bpf." : "call.") + std::to_string(number);
}

// The system call's number, and for bpf() its command.
struct Target {
    int call = 0;
    std::optional<int> command;
};

std::optional<Target> target_of(const std::string& name) {
    for (const auto& [number, text] : bpf_names())
        if (text == name) return Target{SYS_bpf, number};
    for (const auto& [number, text] : call_names())
        if (text == name) return Target{number, {}};
    if (name.starts_with("bpf.")) return Target{SYS_bpf, std::atoi(name.c_str() + 4)};
    if (name.starts_with("call.")) return Target{std::atoi(name.c_str() + 5), {}};
    return std::nullopt;
}

struct Plan {
    std::string call; // empty: only list
    std::size_t index = 0;
    bool kill = false;
    bool ever_after = false;
    int error = 0;
};

// The first call of main(), which no dynamic loader makes: prepare_streams() asks for the flags of its
// standard input.
bool is_start(const seccomp_data& call) {
    return call.nr == SYS_fcntl && call.args[0] == STDIN_FILENO && call.args[1] == F_GETFD;
}

// Holds up the calls in the plan, or all calls; and fcntl(), to recognise the start.
std::vector<sock_filter> filter_of(const Plan& plan) {
    constexpr auto call_at = offsetof(seccomp_data, nr);
    constexpr auto command_at = offsetof(seccomp_data, args) + (__BYTE_ORDER == __BIG_ENDIAN ? 4 : 0);
    const sock_filter notify = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    const sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (plan.call.empty()) return {notify};
    const std::optional<Target> target = target_of(plan.call);
    if (!target) return {};
    std::vector<sock_filter> filter{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, call_at), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 1),
        notify, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<__u32>(target->call), 1, 0), allow};
    if (target->command) {
        filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, command_at));
        filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<__u32>(*target->command), 1, 0));
        filter.push_back(allow);
    }
    filter.push_back(notify);
    return filter;
}

// Messages between child and parent. They cannot be system calls, because the filter would hold these up.
struct Shared {
    std::atomic<int> listener = 0; // the child's descriptor; negative: an errno value
    std::atomic<bool> taken = false;
};

[[noreturn]] void become(char** command, const std::vector<sock_filter>& filter, Shared& shared) {
    const sock_fprog program{static_cast<unsigned short>(filter.size()),
                             const_cast<sock_filter*>(filter.data())};
    const long listener =
        ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    shared.listener = listener < 0 ? -errno : static_cast<int>(listener);
    while (!shared.taken) {
    }
    ::execvp(command[0], command);
    ::_exit(cannot);
}

class Supervisor {
  public:
    Supervisor(const Plan& plan, pid_t child, int process, int listener, std::FILE* report)
        : plan_(plan), child_(child), process_(process), listener_(listener), report_(report) {}

    // Returns the command's wait status when no process of the command is left.
    std::optional<int> run() {
        std::array<pollfd, 2> polls{pollfd{.fd = listener_, .events = POLLIN, .revents = 0},
                                    pollfd{.fd = process_, .events = POLLIN, .revents = 0}};
        auto& [calls, end] = polls;
        std::optional<int> status;
        while (true) {
            if (::poll(polls.data(), polls.size(), -1) < 0) {
                if (errno == EINTR) continue;
                return std::nullopt;
            }
            // Before Linux 6.11, a dead process keeps its filter until it is reaped. The listener hangs up
            // only then.
            if (end.revents != 0 && !status) {
                status = reap();
                if (!status) return std::nullopt;
                end.fd = -1;
            }
            if ((calls.revents & POLLIN) != 0)
                take();
            else if (calls.revents != 0)
                return status ? status : reap();
        }
    }

  private:
    std::optional<int> reap() const {
        int status = 0;
        if (::waitpid(child_, &status, 0) != child_) return std::nullopt;
        return status;
    }

    void take() {
        seccomp_notif call{};
        if (::ioctl(listener_, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) return; // the child has died
        seccomp_notif_resp answer{};
        answer.id = call.id;
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        started_ = started_ || is_start(call.data);
        if (started_ && must_fail(name_of(call.data))) {
            if (plan_.kill) {
                ::syscall(SYS_pidfd_send_signal, process_, SIGKILL, nullptr, 0);
                return;
            }
            answer.flags = 0;
            // brk() reports a failure by an address below the requested one.
            answer.error = call.data.nr == SYS_brk ? 0 : -plan_.error;
        }
        ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }

    bool must_fail(const std::string& name) {
        if (plan_.call.empty()) {
            std::fprintf(report_, "%s\n", name.c_str());
            return false;
        }
        if (name != plan_.call) return false;
        seen_++;
        if (seen_ != plan_.index && !(plan_.ever_after && seen_ > plan_.index)) return false;
        std::fprintf(report_, "%s %zu\n", name.c_str(), seen_);
        return true;
    }

    const Plan& plan_;
    pid_t child_;
    int process_; // the child's pidfd
    int listener_;
    std::FILE* report_;
    bool started_ = false;
    std::size_t seen_ = 0;
};

int supervise(const Plan& plan, char** command, std::FILE* report) {
    const std::vector<sock_filter> filter = filter_of(plan);
    if (filter.empty()) return cannot;
    void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return cannot;
    Shared& shared = *new (memory) Shared;
    const pid_t child = ::fork();
    if (child == 0) become(command, filter, shared);
    while (shared.listener == 0) ::usleep(100);
    const auto process = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
    const auto listener = static_cast<int>(::syscall(SYS_pidfd_getfd, process, shared.listener.load(), 0));
    if (shared.listener < 0 || listener < 0) {
        std::perror("inject: seccomp");
        ::kill(child, SIGKILL);
        return cannot;
    }
    shared.taken = true;
    const std::optional<int> status = Supervisor(plan, child, process, listener, report).run();
    if (!status) return cannot;
    return WIFSIGNALED(*status) ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status);
}

int usage() {
    std::fputs("usage: inject REPORT [CALL INDEX kill|ERRNO|ERRNO+] -- COMMAND...\n", stderr);
    return cannot;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 4) return usage();
    Plan plan;
    int at = 2;
    if (std::strcmp(argv[at], "--") != 0) {
        if (argc < 7 || std::strcmp(argv[5], "--") != 0) return usage();
        const std::string fault = argv[4];
        plan = {.call = argv[2],
                .index = std::strtoul(argv[3], nullptr, 10),
                .kill = fault == "kill",
                .ever_after = fault.ends_with('+'),
                .error = std::atoi(fault.c_str())};
        if (plan.index == 0 || (!plan.kill && plan.error <= 0)) return usage();
        at = 5;
    }
    std::FILE* report = std::fopen(argv[1], "we");
    if (report == nullptr) return cannot;
    const int status = supervise(plan, argv + at + 1, report);
    std::fclose(report);
    return status;
}
