// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/maps/instance.hpp"

#include <fcntl.h>

#include <array>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "libsieve/kernel/programs/bpf_object.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

TEST(Instance, IsFoundThroughTheProgram) {
    const BpfObject object = value_or_fail(BpfObject::load({.tracing = false, .frags = true}));
    for (const int program : {object.program_fd(), object.frags_program_fd()}) {
        ASSERT_GE(program, 0);
        const auto found = Instance::from_program(program);
        ASSERT_TRUE(found) << found.error().message;
        ASSERT_TRUE(*found);
        // The same memory.
        object.instance().control().active = 1;
        EXPECT_EQ((*found)->control().active, 1U);
        object.instance().control().active = 0;
        EXPECT_EQ((*found)->control().active, 0U);
    }
}

TEST(Instance, OtherProgramsAreNotOurs) {
    const std::array<bpf_insn, 2> pass{
        bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = XDP_PASS},
        bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
    const UniqueFd program(
        bpf_prog_load(BPF_PROG_TYPE_XDP, SIEVE_PROGRAM, "GPL", pass.data(), pass.size(), nullptr));
    ASSERT_TRUE(program);
    const auto found = Instance::from_program(program.get());
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_FALSE(*found) << "a name makes no sieve";
}

TEST(Instance, AnotherMagicIsNotOurs) {
    const BpfObject object = value_or_fail(BpfObject::load({}));
    object.instance().control().magic = 42;
    const auto found = Instance::from_program(object.program_fd());
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_FALSE(*found);
}

TEST(Instance, AnotherVersionSaysSo) {
    const BpfObject object = value_or_fail(BpfObject::load({}));
    object.instance().control().abi = SIEVE_ABI + 1;
    const auto found = Instance::from_program(object.program_fd());
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().kind, ErrorKind::other_version);
    EXPECT_NE(found.error().message.find(std::to_string(SIEVE_ABI + 1)), std::string::npos)
        << found.error().message;
}

// A build from before has the same version while none was released, and less in its control block.
TEST(Instance, AnotherLayoutSaysSo) {
    const BpfObject object = value_or_fail(BpfObject::load({}));
    const auto copy = [](int fd) { return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); };
    const auto found_with = [&](std::size_t bytes) {
        LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
        UniqueFd control(bpf_map_create(BPF_MAP_TYPE_ARRAY, SIEVE_MAP_CONTROL, sizeof(std::uint32_t),
                                        static_cast<std::uint32_t>(bytes), 1, &options));
        return Instance::from_maps(std::move(control), copy(object.instance().sets_fd()),
                                   copy(object.instance().stats_fd()), {});
    };
    EXPECT_TRUE(found_with(sizeof(sieve_control)));
    const auto older =
        found_with(sizeof(sieve_control) - SIEVE_BANKS * sizeof(sieve_condition[SIEVE_MAX_SETS]));
    ASSERT_FALSE(older);
    EXPECT_EQ(older.error().kind, ErrorKind::other_version);
}

} // namespace
} // namespace sieve::kernel
