// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/question_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::service {
namespace {

control::JointTask task_of(std::size_t sets) {
    control::JointTask task;
    task.sets.resize(sets);
    return task;
}

TEST(QuestionFile, ComesBackAsItWasWritten) {
    control::JointTask task = task_of(3);
    for (std::uint64_t i = 0; i < 5; i++) {
        sieve_exception exception{};
        exception.key.word[1] = i;
        exception.bits.source = 128;
        task.sets[i % 2 == 0 ? 0 : 2].exceptions.push_back(exception);
        sieve_key key{};
        key.word[4] = i + 9;
        task.spared.push_back(key);
    }
    const UniqueFd file(::memfd_create("questions", MFD_CLOEXEC));
    ASSERT_TRUE(write_question_file(task, file.get()));
    control::JointTask back = task_of(3);
    ASSERT_TRUE(read_question_file(file.get(), back));
    EXPECT_EQ(back.sets[0].exceptions.size(), 3U);
    EXPECT_EQ(back.sets[1].exceptions.size(), 0U);
    ASSERT_EQ(back.sets[2].exceptions.size(), 2U);
    EXPECT_EQ(back.sets[2].exceptions[1].key.word[1], 3U);
    EXPECT_EQ(back.sets[2].exceptions[1].bits.source, 128);
    ASSERT_EQ(back.spared.size(), 5U);
    EXPECT_EQ(back.spared[4].word[4], 13U);
    // Of another number of sets, cut short, or longer.
    for (const std::size_t sets : {2U, 4U}) {
        control::JointTask other = task_of(sets);
        EXPECT_FALSE(read_question_file(file.get(), other)) << sets;
    }
    const off_t size = ::lseek(file.get(), 0, SEEK_END);
    for (const off_t wrong : {off_t{0}, off_t{8}, size - 40, size + 40}) {
        ASSERT_EQ(::ftruncate(file.get(), wrong), 0);
        control::JointTask other = task_of(3);
        EXPECT_FALSE(read_question_file(file.get(), other)) << wrong;
    }
}

TEST(QuestionFile, MayBeEmpty) {
    const UniqueFd file(::memfd_create("questions", MFD_CLOEXEC));
    ASSERT_TRUE(write_question_file(task_of(2), file.get()));
    control::JointTask back = task_of(2);
    EXPECT_TRUE(read_question_file(file.get(), back));
    EXPECT_TRUE(back.spared.empty());
}

} // namespace
} // namespace sieve::service
