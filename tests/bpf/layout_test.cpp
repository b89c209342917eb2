// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The BPF compiler's layout of the shared structs, by the object's BTF, against this compiler's layout.
#include <cstddef>
#include <map>
#include <string>

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <gtest/gtest.h>

#include <sieve/policy.h>

#include "libsieve/kernel/programs/bpf_object.hpp"

namespace sieve {
namespace {

class Layout : public ::testing::Test {
  protected:
    static void SetUpTestSuite() {
        auto loaded = kernel::BpfObject::load({});
        ASSERT_TRUE(loaded) << loaded.error().message;
        object_ = new kernel::BpfObject(std::move(*loaded));
    }
    static void TearDownTestSuite() {
        delete object_;
        object_ = nullptr;
    }

    struct Struct {
        std::size_t size = 0;
        std::map<std::string, std::size_t> offsets;
    };

    static Struct describe(const std::string& name) {
        const btf* types = bpf_object__btf(object_->object());
        const int id = btf__find_by_name_kind(types, name.c_str(), BTF_KIND_STRUCT);
        Struct result;
        if (id < 0) {
            ADD_FAILURE() << "BTF has no struct " << name;
            return result;
        }
        const btf_type* type = btf__type_by_id(types, static_cast<__u32>(id));
        result.size = type->size;
        for (int i = 0; i < btf_vlen(type); i++) {
            const btf_member* member = btf_members(type) + i;
            result.offsets[btf__name_by_offset(types, member->name_off)] =
                btf_member_bit_offset(type, static_cast<__u32>(i)) / 8;
        }
        return result;
    }

    static kernel::BpfObject* object_;
};

kernel::BpfObject* Layout::object_ = nullptr;

// All members must be named here, so that adding one is a decision on both sides.
#define MEMBER(type, member)                                                                                 \
    { #member, offsetof(type, member) }
#define EXPECT_LAYOUT(type, ...)                                                                             \
    do {                                                                                                     \
        const Struct in_bpf = describe(#type);                                                               \
        const std::map<std::string, std::size_t> here{__VA_ARGS__};                                          \
        EXPECT_EQ(in_bpf.size, sizeof(type));                                                                \
        EXPECT_EQ(in_bpf.offsets, here);                                                                     \
    } while (0)

TEST_F(Layout, Key) {
    EXPECT_LAYOUT(sieve_key, MEMBER(sieve_key, word));
}

TEST_F(Layout, ImageHeader) {
    EXPECT_LAYOUT(sieve_lookup, MEMBER(sieve_lookup, magic), MEMBER(sieve_lookup, kind),
                  MEMBER(sieve_lookup, fields), MEMBER(sieve_lookup, choices), MEMBER(sieve_lookup, hashes),
                  MEMBER(sieve_lookup, buckets), MEMBER(sieve_lookup, alpha), MEMBER(sieve_lookup, probes),
                  MEMBER(sieve_lookup, shard_bits), MEMBER(sieve_lookup, hash_key));
    EXPECT_LAYOUT(sieve_probes, MEMBER(sieve_probes, count), MEMBER(sieve_probes, reserved0),
                  MEMBER(sieve_probes, length), MEMBER(sieve_probes, destination),
                  MEMBER(sieve_probes, transport), MEMBER(sieve_probes, reserved));
    EXPECT_LAYOUT(sieve_file, MEMBER(sieve_file, version), MEMBER(sieve_file, witnesses),
                  MEMBER(sieve_file, checksum), MEMBER(sieve_file, lines), MEMBER(sieve_file, keys),
                  MEMBER(sieve_file, identity), MEMBER(sieve_file, built_at), MEMBER(sieve_file, rounds),
                  MEMBER(sieve_file, exceptions), MEMBER(sieve_file, predicted_fpr),
                  MEMBER(sieve_file, expected_fpr), MEMBER(sieve_file, measured_fpr),
                  MEMBER(sieve_file, measured_trials), MEMBER(sieve_file, duplicates),
                  MEMBER(sieve_file, skipped), MEMBER(sieve_file, entries), MEMBER(sieve_file, covered),
                  MEMBER(sieve_file, changes), MEMBER(sieve_file, excluded), MEMBER(sieve_file, key_sum),
                  MEMBER(sieve_file, reserved), MEMBER(sieve_file, label));
    EXPECT_LAYOUT(sieve_witness, MEMBER(sieve_witness, key), MEMBER(sieve_witness, reserved));
    EXPECT_LAYOUT(sieve_exception, MEMBER(sieve_exception, key), MEMBER(sieve_exception, bits),
                  MEMBER(sieve_exception, reserved0), MEMBER(sieve_exception, reserved));
    EXPECT_LAYOUT(sieve_probe, MEMBER(sieve_probe, source), MEMBER(sieve_probe, destination),
                  MEMBER(sieve_probe, transport), MEMBER(sieve_probe, reserved));
}

TEST_F(Layout, Control) {
    EXPECT_LAYOUT(sieve_control, MEMBER(sieve_control, magic), MEMBER(sieve_control, abi),
                  MEMBER(sieve_control, active), MEMBER(sieve_control, changing),
                  MEMBER(sieve_control, loader), MEMBER(sieve_control, watch), MEMBER(sieve_control, sample),
                  MEMBER(sieve_control, link), MEMBER(sieve_control, ring_id),
                  MEMBER(sieve_control, sketch_id), MEMBER(sieve_control, sketch_since),
                  MEMBER(sieve_control, network), MEMBER(sieve_control, flows_id),
                  MEMBER(sieve_control, trial), MEMBER(sieve_control, flows), MEMBER(sieve_control, bank));
    EXPECT_LAYOUT(sieve_policy, MEMBER(sieve_policy, sets), MEMBER(sieve_policy, default_action),
                  MEMBER(sieve_policy, unreadable), MEMBER(sieve_policy, joined), MEMBER(sieve_policy, joint),
                  MEMBER(sieve_policy, joint_id), MEMBER(sieve_policy, entry), MEMBER(sieve_policy, slot),
                  MEMBER(sieve_policy, devices_id), MEMBER(sieve_policy, cpus_id),
                  MEMBER(sieve_policy, limit), MEMBER(sieve_policy, replies), MEMBER(sieve_policy, reserved),
                  MEMBER(sieve_policy, condition), MEMBER(sieve_policy, baseline));
    EXPECT_LAYOUT(sieve_condition, MEMBER(sieve_condition, fields), MEMBER(sieve_condition, spans),
                  MEMBER(sieve_condition, span));
    EXPECT_LAYOUT(sieve_span, MEMBER(sieve_span, first), MEMBER(sieve_span, last));
    EXPECT_LAYOUT(sieve_limit, MEMBER(sieve_limit, interval), MEMBER(sieve_limit, depth),
                  MEMBER(sieve_limit, step), MEMBER(sieve_limit, burst));
    EXPECT_LAYOUT(sieve_account, MEMBER(sieve_account, spent), MEMBER(sieve_account, reserved));
    EXPECT_LAYOUT(sieve_joint_order, MEMBER(sieve_joint_order, alone), MEMBER(sieve_joint_order, after),
                  MEMBER(sieve_joint_order, reserved));
    EXPECT_LAYOUT(sieve_policy_entry, MEMBER(sieve_policy_entry, slot), MEMBER(sieve_policy_entry, action),
                  MEMBER(sieve_policy_entry, flags), MEMBER(sieve_policy_entry, joined),
                  MEMBER(sieve_policy_entry, target));
    EXPECT_LAYOUT(sieve_slot, MEMBER(sieve_slot, name), MEMBER(sieve_slot, baseline),
                  MEMBER(sieve_slot, verified_baseline), MEMBER(sieve_slot, map_id),
                  MEMBER(sieve_slot, exact_id), MEMBER(sieve_slot, over_baseline),
                  MEMBER(sieve_slot, inserted_id), MEMBER(sieve_slot, reserved));
    EXPECT_LAYOUT(sieve_totals, MEMBER(sieve_totals, dropped), MEMBER(sieve_totals, passed),
                  MEMBER(sieve_totals, redirected), MEMBER(sieve_totals, outcome),
                  MEMBER(sieve_totals, redirect_failed), MEMBER(sieve_totals, decided),
                  MEMBER(sieve_totals, asked_unreadable), MEMBER(sieve_totals, replied),
                  MEMBER(sieve_totals, reserved));
}

TEST_F(Layout, Counters) {
    EXPECT_LAYOUT(sieve_counter, MEMBER(sieve_counter, packets), MEMBER(sieve_counter, bytes));
    EXPECT_LAYOUT(sieve_stats, MEMBER(sieve_stats, hit), MEMBER(sieve_stats, dropped),
                  MEMBER(sieve_stats, passed), MEMBER(sieve_stats, outcome), MEMBER(sieve_stats, redirected),
                  MEMBER(sieve_stats, redirect_failed), MEMBER(sieve_stats, events_lost),
                  MEMBER(sieve_stats, verified), MEMBER(sieve_stats, over), MEMBER(sieve_stats, purse),
                  MEMBER(sieve_stats, decided), MEMBER(sieve_stats, asked_unreadable),
                  MEMBER(sieve_stats, replied), MEMBER(sieve_stats, reserved));
    EXPECT_LAYOUT(sieve_verified, MEMBER(sieve_verified, non_members), MEMBER(sieve_verified, avoided));
}

TEST_F(Layout, Trace) {
    EXPECT_LAYOUT(sieve_trace, MEMBER(sieve_trace, key), MEMBER(sieve_trace, have),
                  MEMBER(sieve_trace, outcome), MEMBER(sieve_trace, verdict), MEMBER(sieve_trace, decision),
                  MEMBER(sieve_trace, hits));
}

} // namespace
} // namespace sieve
