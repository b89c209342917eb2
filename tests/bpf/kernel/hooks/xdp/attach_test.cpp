// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/attach.hpp"

#include <linux/if_link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/own_network.hpp"
#include "libsieve/kernel/hooks/xdp/dispatcher.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/kernel/maps/set_table.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

// A foreign program that passes everything.
UniqueFd foreign_program() {
    const std::array<bpf_insn, 2> pass{
        bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = XDP_PASS},
        bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
    return UniqueFd(bpf_prog_load(BPF_PROG_TYPE_XDP, "foreigner", "GPL", pass.data(), pass.size(), nullptr));
}

// An end of a veth pair, which has native XDP, named "in".
Interface make_veth() {
    EXPECT_TRUE(ip("link add in type veth peer name out"));
    return value_or_fail(find_interface("in"));
}

BpfObject load(bool frags = false) {
    return value_or_fail(BpfObject::load({.tracing = false, .frags = frags}));
}

Hook hook_of(const Interface& interface) {
    return value_or_fail(read_hook(interface));
}

bool program_exists(std::uint32_t id) {
    return static_cast<bool>(UniqueFd(bpf_prog_get_fd_by_id(id)));
}

TEST(Attach, InBothModesAndAway) {
    in_own_network([] {
        const Interface in = make_veth();
        for (const ModeChoice choice : {ModeChoice::native, ModeChoice::skb, ModeChoice::automatic}) {
            std::uint32_t id = 0;
            {
                const BpfObject object = load();
                const auto attached = attach(hook_of(in), object, {.mode = choice, .force = false});
                ASSERT_TRUE(attached) << attached.error().message;
                EXPECT_EQ(attached->hook.mode, choice == ModeChoice::skb ? Mode::skb : Mode::native);
                EXPECT_FALSE(attached->frags);
                ASSERT_TRUE(attached->hook.ours);
                id = attached->hook.ours->id;
            }
            const auto found = find_ours("in");
            ASSERT_TRUE(found) << found.error().message;
            EXPECT_EQ(found->ours->id, id);
            EXPECT_EQ(found->ours->name, SIEVE_PROGRAM);
            EXPECT_TRUE(found->instance);
            const auto done = detach(*found);
            EXPECT_TRUE(done) << done.error().message;
            EXPECT_FALSE(hook_of(in).attached);
            const auto gone = find_ours("in");
            ASSERT_FALSE(gone);
            EXPECT_EQ(gone.error().kind, ErrorKind::not_attached);
        }
    });
}

TEST(Attach, SetsArePutThroughTheAttachedProgram) {
    in_own_network([] {
        const Interface in = make_veth();
        const auto map = map_of(image_of({"10.0.0.1"}));
        {
            const BpfObject object = load();
            ASSERT_TRUE(SetTable(object.instance())
                            .replace({SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, map.fd()}}}));
            ASSERT_TRUE(attach(hook_of(in), object, {}));
        }
        // The loader has gone. Its sets are found, and more sets can be put in force.
        const Hook hook = value_or_fail(find_ours("in"));
        SetTable table(*hook.instance);
        ASSERT_EQ(table.read().sets.size(), 1U);
        EXPECT_EQ(table.read().sets[0].map_id, map.id());
        ASSERT_TRUE(table.replace(
            {SIEVE_ACTION_DROP, {{"bad", SIEVE_ACTION_DROP, -1}, {"good", SIEVE_ACTION_PASS, map.fd()}}}));
        const Hook again = value_or_fail(find_ours("in"));
        EXPECT_EQ(SetTable(*again.instance).read().sets.size(), 2U);
    });
}

TEST(Attach, FallsBackToTheGenericHook) {
    in_own_network([] {
        // The loopback device has no native XDP.
        const Interface lo = value_or_fail(find_interface("lo"));
        const BpfObject object = load();
        const auto native = attach(hook_of(lo), object, {.mode = ModeChoice::native, .force = false});
        ASSERT_FALSE(native);
        EXPECT_EQ(native.error().kind, ErrorKind::no_native_mode);
        EXPECT_FALSE(hook_of(lo).attached);
        const auto attached = attach(hook_of(lo), object, {});
        ASSERT_TRUE(attached) << attached.error().message;
        EXPECT_EQ(attached->hook.mode, Mode::skb);
        ASSERT_FALSE(attached->remarks.empty());
        EXPECT_NE(attached->remarks.back().find("generic"), std::string::npos) << attached->remarks.back();
    });
}

TEST(Attach, LargeFramesGetTheProgramForThem) {
    in_own_network([] {
        const Interface in = make_veth();
        // A frame that fits into a page needs one buffer, and pages have 4 to 64 KiB.
        const int mtu = std::min(2 * ::getpagesize(), 65535);
        ASSERT_TRUE(ip(fmt::format("link set in mtu {}", mtu)) &&
                    ip(fmt::format("link set out mtu {}", mtu)));
        EXPECT_EQ(interface_mtu(in), mtu);
        const auto refused = attach(hook_of(in), load(), {.mode = ModeChoice::native, .force = false});
        ASSERT_FALSE(refused);
        EXPECT_NE(refused.error().message.find("MTU"), std::string::npos) << refused.error().message;
        const auto attached = attach(hook_of(in), load(true), {.mode = ModeChoice::native, .force = false});
        ASSERT_TRUE(attached) << attached.error().message;
        EXPECT_TRUE(attached->frags);
        EXPECT_EQ(attached->hook.ours->name, SIEVE_PROGRAM_FRAGS);
        EXPECT_TRUE(find_ours("in"));
    });
}

TEST(Attach, AForeignProgramStays) {
    in_own_network([] {
        const Interface in = make_veth();
        const UniqueFd foreign = foreign_program();
        ASSERT_EQ(bpf_xdp_attach(static_cast<int>(in.index), foreign.get(), XDP_FLAGS_DRV_MODE, nullptr), 0);
        const Hook before = hook_of(in);
        ASSERT_TRUE(before.foreign());
        const auto refused = attach(before, load(), {});
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().kind, ErrorKind::foreign_program);
        EXPECT_NE(refused.error().message.find("foreigner"), std::string::npos) << refused.error().message;
        EXPECT_NE(refused.error().message.find(std::to_string(before.attached->id)), std::string::npos);
        EXPECT_EQ(hook_of(in).attached->id, before.attached->id);
        EXPECT_FALSE(find_ours("in"));
    });
}

TEST(Attach, ForceTakesAForeignProgramsPlace) {
    for (const std::uint32_t mode : {XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE})
        for (const ModeChoice choice : {ModeChoice::native, ModeChoice::skb})
            in_own_network([&] {
                const Interface in = make_veth();
                const UniqueFd foreign = foreign_program();
                ASSERT_EQ(bpf_xdp_attach(static_cast<int>(in.index), foreign.get(), mode, nullptr), 0);
                const auto attached = attach(hook_of(in), load(), {.mode = choice, .force = true});
                ASSERT_TRUE(attached) << attached.error().message;
                EXPECT_TRUE(attached->hook.ours);
                EXPECT_EQ(attached->hook.mode, choice == ModeChoice::skb ? Mode::skb : Mode::native);
            });
}

TEST(Attach, AFailedForceLeavesTheForeignProgram) {
    in_own_network([] {
        const Interface lo = value_or_fail(find_interface("lo"));
        const UniqueFd foreign = foreign_program();
        ASSERT_EQ(bpf_xdp_attach(static_cast<int>(lo.index), foreign.get(), XDP_FLAGS_SKB_MODE, nullptr), 0);
        const Hook before = hook_of(lo);
        EXPECT_FALSE(attach(before, load(), {.mode = ModeChoice::native, .force = true}));
        const Hook after = hook_of(lo);
        ASSERT_TRUE(after.attached);
        EXPECT_EQ(after.attached->id, before.attached->id);
    });
}

TEST(Attach, ARaceWithAnotherToolEndsInARefusal) {
    in_own_network([] {
        const Interface in = make_veth();
        const auto index = static_cast<int>(in.index);
        const LogCapture quiet;
        // The hook was free when we looked. Then another program was attached.
        const Hook looked_free = hook_of(in);
        const UniqueFd foreign = foreign_program();
        ASSERT_EQ(bpf_xdp_attach(index, foreign.get(), XDP_FLAGS_DRV_MODE, nullptr), 0);
        const std::uint32_t id = hook_of(in).attached->id;
        const auto refused = attach(looked_free, load(), {});
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().kind, ErrorKind::kernel_refused);
        EXPECT_EQ(hook_of(in).attached->id, id);
        // --force was meant for the program that we saw. Now another program is there.
        const Hook looked_foreign = hook_of(in);
        const UniqueFd other = foreign_program();
        ASSERT_EQ(bpf_xdp_attach(index, other.get(), XDP_FLAGS_DRV_MODE, nullptr), 0);
        const std::uint32_t other_id = hook_of(in).attached->id;
        ASSERT_NE(other_id, id);
        EXPECT_FALSE(attach(looked_foreign, load(), {.mode = ModeChoice::native, .force = true}));
        EXPECT_EQ(hook_of(in).attached->id, other_id);
        // Our program was there when we looked. Now the program is not ours to remove.
        ASSERT_EQ(bpf_xdp_detach(index, XDP_FLAGS_DRV_MODE, nullptr), 0);
        ASSERT_TRUE(attach(hook_of(in), load(), {}));
        const Hook ours = hook_of(in);
        ASSERT_EQ(bpf_xdp_attach(index, other.get(), XDP_FLAGS_DRV_MODE, nullptr), 0);
        EXPECT_FALSE(detach(ours));
        EXPECT_EQ(hook_of(in).attached->id, other_id);
        unpin_dispatcher(in.index, ours.attached->id); // the program was removed by force
    });
}

// Attaches a set and removes it again, as two runs of a controller would; returns the ids of program and
// filter.
std::array<std::uint32_t, 2> attach_and_detach() {
    std::array<std::uint32_t, 2> ids{};
    in_own_network([&] {
        const Interface in = make_veth();
        {
            const auto map = map_of(image_of({"10.0.0.1"}));
            const BpfObject object = load();
            ASSERT_TRUE(SetTable(object.instance())
                            .replace({SIEVE_ACTION_PASS, {{"bad", SIEVE_ACTION_DROP, map.fd()}}}));
            const Attached attached = value_or_fail(attach(hook_of(in), object, {}));
            ids = {attached.hook.ours->id, map.id()};
        }
        EXPECT_TRUE(program_exists(ids[0]));
        ASSERT_TRUE(detach(hook_of(in)));
    });
    return ids;
}

TEST(Attach, NothingStaysBehind) {
    // In a separate process, because libxdp keeps some descriptors open until the process ends.
    int result[2];
    ASSERT_EQ(::pipe(result), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const auto ids = attach_and_detach();
        const bool told = ::write(result[1], ids.data(), sizeof(ids)) == sizeof(ids);
        ::_exit(told && !::testing::Test::HasFailure() ? 0 : 1);
    }
    std::array<std::uint32_t, 2> ids{};
    ASSERT_EQ(::read(result[0], ids.data(), sizeof(ids)), static_cast<ssize_t>(sizeof(ids)));
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(result[0]);
    ::close(result[1]);
    EXPECT_EQ(status, 0);
    ASSERT_NE(ids[0], 0U);
    // The kernel frees a program and its maps a little later, after a grace period.
    const auto exists = [&ids] { return program_exists(ids[0]) || UniqueFd(bpf_map_get_fd_by_id(ids[1])); };
    for (int i = 0; i < 6000 && exists(); i++) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(exists());
}

TEST(Attach, UnknownInterfaces) {
    in_own_network([] {
        const auto missing = find_interface("nonesuch0");
        ASSERT_FALSE(missing);
        EXPECT_EQ(missing.error().kind, ErrorKind::kernel_refused);
        EXPECT_NE(missing.error().message.find("nonesuch0"), std::string::npos);
        EXPECT_EQ(all_interfaces().size(), 1U);
    });
}

} // namespace
} // namespace sieve::kernel
