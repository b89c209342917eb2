// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Random conversations of hosts behind the filter with peers and strangers, in both families, against the
// model: every packet that the model calls an answer arrives, and no other does.
#include <linux/bpf.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/note_program.hpp"
#include "bpf/talk.hpp"
#include "libsieve/kernel/hooks/flow_memory.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "model/reply_model.hpp"

namespace sieve {
namespace {

using namespace test;
using Answer = ReplyModel::Answer;

void converse(kernel::HookPoint point, std::uint64_t packets, std::uint64_t seed) {
    const auto scratch = value_or_fail(kernel::Scratch::load(true, point));
    const auto memory = value_or_fail(kernel::FlowMemory::create(100'000));
    const NoteProgram note;
    note.use(memory);
    ASSERT_TRUE(memory.put_into(scratch.instance()));
    kernel::WantedTable table;
    table.default_action = SIEVE_ACTION_DROP;
    table.replies = SIEVE_ACTION_PASS;
    ASSERT_TRUE(scratch.table().replace(table));

    ReplyModel model;
    Talk talk(seed);
    const auto begin = std::chrono::steady_clock::now();
    std::chrono::duration<double> moved{0};
    std::uint64_t answers = 0, others = 0, open = 0;
    for (std::uint64_t i = 0; i < packets; i++) {
        if (talk.one_in(10)) {
            // Often within a flow's limit, seldom beyond all limits.
            constexpr std::array<int, 8> steps{1, 2, 5, 11, 31, 61, 130, 190};
            const std::chrono::seconds step(talk.one_in(200) ? 7000 : steps[talk.below(steps.size())]);
            moved += memory.age(step);
        }
        const double time =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() + moved.count();
        if (talk.one_in(2)) {
            const Bytes frame = talk.leaves();
            note.see(frame);
            model.leaves(frame, time);
            continue;
        }
        const Bytes frame = talk.arrives();
        const Answer wanted = model.arrives(frame, time);
        const std::uint32_t verdict = value_or_fail(scratch.run(frame));
        const sieve_trace trace = scratch.trace();
        const bool passed = trace.decision == SIEVE_REPLY;
        // What has no key by nature passes, as without replies.
        const bool keyless = trace.outcome >= SIEVE_OUTCOME_ARP && trace.outcome <= SIEVE_OUTCOME_NON_IP;
        ASSERT_EQ(verdict == SIEVE_VERDICT_PASS, passed || keyless) << text_of(frame);
        if (wanted == Answer::either) {
            open++;
            continue;
        }
        (passed ? answers : others)++;
        ASSERT_EQ(passed, wanted == Answer::yes)
            << "packet " << i << ", seed " << seed << ": " << text_of(frame);
    }
    fmt::print("{}: {} packets: {} answers arrived, {} others were dropped, {} at the end of their time\n",
               kernel::hook_point_name(point), packets, answers, others, open);
    EXPECT_GT(answers, packets / 25);
    EXPECT_GT(others, packets / 5);
    EXPECT_EQ(note.counts().refused, 0U);
}

TEST(ReplyConversation, AgreesWithTheModel) {
    const std::uint64_t seed = std::random_device{}();
    for (const kernel::HookPoint point : {kernel::HookPoint::xdp, kernel::HookPoint::ingress})
        converse(point, packets_of_conversation(), seed + static_cast<std::uint64_t>(point));
}

} // namespace
} // namespace sieve
