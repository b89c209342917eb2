// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/libbpf_log.hpp"

#include <cstdarg>

#include <bpf/libbpf.h>
#include <gtest/gtest.h>

namespace sieve::kernel {
namespace {

// Prints a message as libbpf does, through the function that libbpf was told to print with.
[[gnu::format(printf, 2, 3)]] void say(libbpf_print_level level, const char* format, ...) {
    const libbpf_print_fn_t print = libbpf_set_print(nullptr);
    libbpf_set_print(print);
    va_list arguments;
    va_start(arguments, format);
    print(level, format, arguments);
    va_end(arguments);
}

TEST(LogCapture, KeepsWarningsAndDropsDetail) {
    const LogCapture log;
    say(LIBBPF_DEBUG, "libbpf: detail %d\n", 1);
    say(LIBBPF_WARN, "libbpf: %s\n", "warning");
    say(LIBBPF_INFO, "libbpf: news\n");
    EXPECT_EQ(log.text(), "libbpf: warning\nlibbpf: news\n");
    EXPECT_EQ(log.verifier_log(3), "");
    EXPECT_EQ(log.kernel_message(), "");
}

TEST(LogCapture, EndsWithItsLife) {
    {
        const LogCapture log;
        say(LIBBPF_WARN, "one\n");
    }
    const LogCapture log;
    say(LIBBPF_WARN, "two\n");
    EXPECT_EQ(log.text(), "two\n");
}

TEST(LogCapture, FindsTheEndOfTheVerifiersLog) {
    const LogCapture log;
    say(LIBBPF_WARN, "libbpf: prog 'xdp_sieve': BPF program load failed: Permission denied\n");
    say(LIBBPF_WARN, "libbpf: prog 'xdp_sieve': -- BEGIN PROG LOAD LOG --\n%s-- END PROG LOAD LOG --\n",
        "0: R1=ctx()\n1: (61) r2 = *(u32 *)(r1 +4)\n\ninvalid access to packet\nprocessed 2 insns\n");
    say(LIBBPF_WARN, "libbpf: failed to load object\n");
    EXPECT_EQ(log.verifier_log(2), "invalid access to packet\nprocessed 2 insns");
    EXPECT_EQ(log.verifier_log(100).find("0: R1=ctx()"), 0U);
}

TEST(LogCapture, FindsTheKernelsOwnWords) {
    const LogCapture log;
    say(LIBBPF_WARN, "libbpf: Kernel error message: %s\n", "Peer MTU is too large to set XDP");
    EXPECT_EQ(log.kernel_message(), "Peer MTU is too large to set XDP");
}

TEST(LogCapture, IsNotFilledWithoutEnd) {
    const LogCapture log;
    const std::string line(100'000, 'x');
    for (int i = 0; i < 100; i++) say(LIBBPF_WARN, "%s\n", line.c_str());
    EXPECT_LE(log.text().size(), std::size_t{1} << 20);
}

} // namespace
} // namespace sieve::kernel
