// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tests that need no dispatcher, because some kernels refuse dispatchers. tests/vm/coexistence.sh has the
// other tests.
#include "libsieve/kernel/hooks/xdp/dispatcher.hpp"

#include <linux/bpf.h>

#include <bpf/bpf.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "libsieve/kernel/programs/bpf_object.hpp"

namespace sieve::kernel {
namespace {

TEST(Dispatcher, ChainsAreReadAsTheyAreWritten) {
    EXPECT_EQ(parse_chain("none"), 0U);
    EXPECT_EQ(parse_chain("pass"), 1U << XDP_PASS);
    EXPECT_EQ(parse_chain("redirect,drop"), 1U << XDP_REDIRECT | 1U << XDP_DROP);
    EXPECT_EQ(parse_chain("tx,aborted,tx"), 1U << XDP_TX | 1U << XDP_ABORTED);
    for (std::uint32_t chain = 0; chain < 1U << 5; chain++)
        EXPECT_EQ(parse_chain(chain_text(chain)), chain) << chain_text(chain);
    EXPECT_EQ(DispatcherRank{}.chain, 1U << XDP_PASS);
}

TEST(Dispatcher, OtherChainsAreNone) {
    for (const char* text :
         {"", ",", "pass,", ",pass", "pass,,drop", "pass, drop", "PASS", "pas", "none,pass", "2"})
        EXPECT_FALSE(parse_chain(text)) << text;
}

TEST(Dispatcher, OurOwnProgramIsNone) {
    const BpfObject object = test::value_or_fail(BpfObject::load({.tracing = false, .frags = false}));
    bpf_prog_info info{};
    __u32 length = sizeof(info);
    ASSERT_EQ(bpf_obj_get_info_by_fd(object.program_fd(), &info, &length), 0);
    const Program program = test::value_or_fail(open_program(info.id));
    EXPECT_EQ(program.name, "xdp_sieve");
    EXPECT_TRUE(test::value_or_fail(dispatcher_members(program)).empty());
}

} // namespace
} // namespace sieve::kernel
