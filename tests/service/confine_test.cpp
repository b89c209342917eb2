// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a confined process can still ask of the kernel. Such a process asks.
#include "libsieve/service/sandbox/confine.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

#include "service/support.hpp"

namespace sieve::service {
namespace {

using namespace test;

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

Confinement confinement(ChildRole role) {
    return {.role = role,
            .user = {},
            .memory_bytes = 64 * mebibyte,
            .file_bytes = mebibyte,
            .processor = std::chrono::seconds(60),
            .descriptors = 32};
}

// The wait status of a process that confined itself and then asked the question. Its exit status is the
// answer.
int ask(ChildRole role, const std::function<int()>& question) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        if (!confine(confinement(role))) ::_exit(99);
        ::_exit(question());
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return status;
}
// The answer, or 100 plus the signal that killed the process.
int answer(ChildRole role, const std::function<int()>& question) {
    const int status = ask(role, question);
    return WIFSIGNALED(status) ? 100 + WTERMSIG(status) : WEXITSTATUS(status);
}
// 0, or the error number of a call that returns -1 on errors.
int error_of(long result) {
    return result < 0 ? errno : 0;
}

int connect_to_loopback() {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    if (socket < 0) return errno;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(1);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return error_of(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)));
}

TEST(Confine, ABuilderHasNoNetworkAndNoFiles) {
    constexpr ChildRole build = ChildRole::build;
    EXPECT_EQ(answer(build, connect_to_loopback), EPERM);
    EXPECT_EQ(answer(build, [] { return error_of(::socket(AF_UNIX, SOCK_STREAM, 0)); }), EPERM);
    EXPECT_EQ(answer(build, [] { return error_of(::socket(AF_NETLINK, SOCK_RAW, 0)); }), EPERM);
    EXPECT_EQ(answer(build, [] { return error_of(::open("/etc/passwd", O_RDONLY)); }), EPERM);
    EXPECT_EQ(answer(build, [] { return error_of(::syscall(SYS_memfd_create, "x", 0)); }), EPERM);
}

TEST(Confine, ADownloadHasTheNetworkAndReadsFiles) {
    constexpr ChildRole fetch = ChildRole::fetch;
    EXPECT_EQ(answer(fetch, connect_to_loopback), ECONNREFUSED);
    EXPECT_EQ(answer(fetch, [] { return error_of(::open("/etc/passwd", O_RDONLY)); }), 0);
    EXPECT_EQ(answer(fetch, [] { return error_of(::open("/tmp/sieve-x", O_WRONLY | O_CREAT, 0600)); }),
              EPERM);
    EXPECT_EQ(answer(fetch, [] { return error_of(::open("/etc/shadow", O_RDONLY)); }), EACCES);
    EXPECT_EQ(answer(fetch, [] { return error_of(::socket(AF_PACKET, SOCK_RAW, 0)); }), EPERM);
}

TEST(Confine, NobodyStartsAProcess) {
    for (const ChildRole role : {ChildRole::fetch, ChildRole::build}) {
        EXPECT_EQ(answer(role, [] { return error_of(::fork()); }), EPERM);
        EXPECT_EQ(answer(role,
                         [] {
                             const char* none[] = {"true", nullptr};
                             return error_of(::execve("/bin/true", const_cast<char**>(none), nullptr));
                         }),
                  100 + SIGSYS);
        EXPECT_EQ(answer(role, [] { return error_of(::syscall(SYS_bpf, 0, nullptr, 0)); }), 100 + SIGSYS);
        EXPECT_EQ(answer(role, [] { return error_of(::kill(::getppid(), 0)); }), EPERM);
        EXPECT_EQ(answer(role, [] { return error_of(::syscall(SYS_tgkill, ::getppid(), ::getppid(), 0)); }),
                  EPERM);
    }
}

TEST(Confine, ThreadsAndMemoryAreThereUpToTheLimit) {
    const auto with_threads = [] {
        int sum = 0;
        std::thread one([&] { sum += 1; });
        one.join();
        const std::vector<char> some(mebibyte, 'x');
        return sum + some.back();
    };
    const auto too_much = [] {
        try {
            const std::vector<char> much(100 * mebibyte, 'x');
            return static_cast<int>(much.back());
        } catch (const std::bad_alloc&) {
            return 1;
        }
    };
    for (const ChildRole role : {ChildRole::fetch, ChildRole::build, ChildRole::command}) {
        EXPECT_EQ(answer(role, with_threads), 1 + 'x');
        EXPECT_EQ(answer(role, too_much), 1);
    }
}

TEST(Confine, LimitsStay) {
    const auto raise = [] {
        const rlimit all{RLIM_INFINITY, RLIM_INFINITY};
        return error_of(::setrlimit(RLIMIT_DATA, &all));
    };
    for (const ChildRole role : {ChildRole::fetch, ChildRole::build, ChildRole::command})
        EXPECT_EQ(answer(role, raise), EPERM);
    const UniqueFd file = memory_file("");
    const auto write_much = [&] {
        const std::vector<char> much(2 * mebibyte, 'x');
        return ::write(file.get(), much.data(), much.size()) == mebibyte &&
                       ::write(file.get(), much.data(), much.size()) < 0
                   ? 0
                   : 1;
    };
    EXPECT_EQ(answer(ChildRole::build, write_much), 100 + SIGXFSZ);
    EXPECT_EQ(content_of(file.get()).size(), mebibyte);
}

TEST(Confine, NoNewCode) {
    const auto executable = [] {
        void* page =
            ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return page == MAP_FAILED ? errno : 0;
    };
    EXPECT_EQ(answer(ChildRole::build, executable), EPERM);
    EXPECT_EQ(answer(ChildRole::build,
                     [] {
                         void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                         return error_of(::mprotect(page, 4096, PROT_READ | PROT_EXEC));
                     }),
              EPERM);
}

TEST(Confine, RightsDoNotComeBack) {
    for (const ChildRole role : {ChildRole::fetch, ChildRole::build, ChildRole::command}) {
        EXPECT_EQ(answer(role, [] { return error_of(::setresuid(0, 0, 0)); }), EPERM);
        EXPECT_EQ(answer(role, [] { return ::getuid() == 65534 && ::getgid() == 65534 ? 0 : 1; }), 0);
    }
    EXPECT_EQ(answer(ChildRole::command, [] { return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); }), 1);
    EXPECT_EQ(answer(ChildRole::command, [] { return ::getgroups(0, nullptr); }), 0);
}

TEST(Confine, AUserMustBeThere) {
    EXPECT_EQ(find_sandbox_user("nobody")->uid, 65534U);
    EXPECT_TRUE(find_sandbox_user());
    EXPECT_FALSE(find_sandbox_user("no-such-user"));
}

} // namespace
} // namespace sieve::service
