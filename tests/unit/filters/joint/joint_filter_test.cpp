// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/joint/joint_filter.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "libsieve/filters/joint/check_joint_names.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_plan.hpp"
#include "libsieve/util/files/input.hpp"
#include "libsieve/util/parallel/parallel.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "model/image_model.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

sieve_key address(std::uint32_t number) {
    sieve_key key{};
    key.word[1] = sieve_v4_mapped(number);
    return key;
}

// Sets of random addresses, and by the first set that holds it each member.
struct Sets {
    std::vector<KeySet> keys;
    std::map<std::uint32_t, std::uint32_t> first;

    // `shared` of `each` addresses are drawn from few, so that many of them are in several sets.
    Sets(std::uint32_t sets, std::size_t each, std::size_t shared, std::uint64_t seed = 1) {
        std::mt19937_64 random(seed);
        for (std::uint32_t set = 0; set < sets; set++) {
            keys.emplace_back(SIEVE_FIELD_SRC);
            for (std::size_t i = 0; i < each; i++) {
                const auto number = static_cast<std::uint32_t>(
                    i < shared ? random() % (2 * shared) + 1 : random() % 0x70000000 + (1 << 24));
                keys.back().add(address(number));
                first.try_emplace(number, set);
            }
        }
    }

    [[nodiscard]] Result<JointFilter> join(const JointOptions& options) const {
        std::vector<const KeySet*> all;
        for (const KeySet& set : keys) all.push_back(&set);
        return JointFilter::build(all, options);
    }

    [[nodiscard]] JointFilter joined(double bits_per_key) const {
        auto built = join({.fpr = {}, .bits_per_key = bits_per_key, .seed = 5});
        if (!built) throw std::runtime_error(built.error().message);
        return std::move(*built);
    }
};

TEST(JointFilter, NamesTheFirstSetOfEveryMember) {
    for (const std::uint32_t count : {2U, 3U, 4U, 5U, 16U})
        for (const std::size_t each : {1, 40, 3000}) {
            const Sets sets(count, each, each / 3, count * each);
            const JointFilter joint = sets.joined(16);
            ASSERT_EQ(joint.sets(), count);
            ASSERT_EQ(joint.keys(), sets.first.size());
            for (const auto& [number, set] : sets.first) ASSERT_EQ(joint.find(address(number)), set);
        }
}

// With so few bits, a line would compare fewer bits than the highest number has.
TEST(JointFilter, StatesEveryNumberWithFewBits) {
    const Sets sets(16, 500, 0);
    const JointFilter joint = sets.joined(2);
    for (const auto& [number, set] : sets.first) ASSERT_EQ(joint.find(address(number)), set);
    EXPECT_GT(joint.lines().size() * SIEVE_LINE_BITS, 2 * 16 * 500U);
}

// Each set's rate is that of a filter of its own with as many bits a key, whatever the number of sets: the
// predicted one to within 10%, and the expected one to within four standard deviations, set by set.
TEST(JointFilter, KeepsTheRateOfEachSet) {
    struct Size {
        std::uint32_t sets;
        double bits_per_key;
    };
    for (const Size size : {Size{2, 8}, Size{5, 8}, Size{16, 8}, Size{16, 10}, Size{3, 12}}) {
        SCOPED_TRACE(testing::Message() << size.sets << " sets, " << size.bits_per_key << " bits a key");
        const Sets sets(size.sets, 48'000 / size.sets, 0, 3);
        const JointFilter joint = sets.joined(size.bits_per_key);
        const std::uint64_t lines = joint.lines().size() - SIEVE_FIRST_LINE;
        EXPECT_EQ(joint.predicted_rate(), predict_xorsat_fpr(joint.keys(), lines, 8));
        EXPECT_NEAR(joint.expected_rate() / joint.predicted_rate(), 1, 0.1);

        std::mt19937_64 random(11);
        constexpr double trials = 3e6;
        std::vector<double> named(size.sets);
        for (int i = 0; i < static_cast<int>(trials); i++) {
            // Above all members.
            const auto number = static_cast<std::uint32_t>(random() % 0x70000000 + 0x80000000);
            if (const auto set = joint.find(address(number))) named.at(*set)++;
        }
        double all = 0;
        const double mean = joint.expected_rate() * trials;
        for (const double count : named) {
            EXPECT_NEAR(count, mean, 4 * std::sqrt(mean));
            all += count;
        }
        EXPECT_NEAR(all, size.sets * mean, 4 * std::sqrt(size.sets * mean));
        EXPECT_NEAR(all / (size.sets * joint.predicted_rate() * trials), 1, 0.1);
    }
}

TEST(JointFilter, TakesARate) {
    const Sets sets(4, 5000, 0);
    const auto joint = sets.join({.fpr = 1e-3, .bits_per_key = {}, .seed = 1});
    ASSERT_TRUE(joint) << joint.error().message;
    EXPECT_LE(joint->predicted_rate(), 1e-3);
    EXPECT_GT(joint->predicted_rate(), 0.9e-3);
    EXPECT_EQ(sets.join({.fpr = 1e-12, .bits_per_key = {}, .seed = 1}).error().kind,
              ErrorKind::invalid_request);
}

TEST(JointFilter, AgreesWithTheModel) {
    const Sets sets(6, 3000, 1000);
    const JointFilter joint = sets.joined(6);
    const model::FilterImage model(
        {reinterpret_cast<const unsigned char*>(joint.lines().data()), joint.lines().size_bytes()});
    int matched = 0;
    std::mt19937_64 random(9);
    for (int i = 0; i < 20'000; i++) {
        const sieve_key key =
            address(static_cast<std::uint32_t>(random() % (i % 2 == 0 ? 5000 : 1ULL << 32)));
        const std::optional<std::uint32_t> found = joint.find(key);
        const std::optional<std::uint64_t> wanted = model.names({key.word[0], key.word[1], 0, 0, 0});
        ASSERT_EQ(found.has_value(), wanted.has_value());
        if (found) {
            ASSERT_EQ(*found, *wanted);
        }
        matched += found.has_value() ? 1 : 0;
    }
    EXPECT_GT(matched, 1000);
    EXPECT_LT(matched, 19'000);
}

TEST(JointFilter, TakesKeysOfSeveralFields) {
    std::vector<KeySet> sets;
    for (int set = 0; set < 3; set++) {
        sets.emplace_back(SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT);
        for (std::uint32_t i = 0; i < 100; i++) {
            sieve_key key = address(i);
            key.word[4] = std::uint64_t{80U + static_cast<unsigned>(set)} << SIEVE_DPORT_SHIFT;
            sets.back().add(key);
        }
    }
    const auto joint = JointFilter::build(std::vector<const KeySet*>{&sets[0], &sets[1], &sets[2]},
                                          {.fpr = {}, .bits_per_key = {}, .seed = 1});
    ASSERT_TRUE(joint) << joint.error().message;
    for (std::uint32_t set = 0; set < 3; set++)
        for (std::size_t i = 0; i < sets[set].size(); i++) ASSERT_EQ(joint->find(sets[set].at(i)), set);
}

// What a child hands over that somebody has taken over: a whole filter, but of other lists.
TEST(JointFilter, TellsWhetherItNamesTheRightSetForEachKey) {
    const Sets right(3, 2000, 300);
    const std::vector<const KeySet*> lists{&right.keys[0], &right.keys[1], &right.keys[2]};
    const auto fault = [&](const std::vector<const KeySet*>& built) {
        const JointFilter filter = JointFilter::build(built, {}).value();
        const Status same = check_joint_names(filter, lists);
        return same ? std::string() : same.error().message;
    };
    EXPECT_EQ(fault(lists), "");
    expect_says(fault({lists[1], lists[0], lists[2]}));
    // One key is another set's.
    KeySet first(SIEVE_FIELD_SRC);
    KeySet second(SIEVE_FIELD_SRC);
    KeySet with_lonely(SIEVE_FIELD_SRC);
    for (std::size_t i = 0; i + 1 < right.keys[0].size(); i++) first.add(right.keys[0].at(i));
    for (std::size_t i = 0; i < right.keys[1].size(); i++) second.add(right.keys[1].at(i));
    const sieve_key lonely = address(7);
    for (std::size_t i = 0; i < right.keys[0].size(); i++) with_lonely.add(right.keys[0].at(i));
    with_lonely.add(lonely);
    second.add(lonely);
    const std::vector<const KeySet*> expected{&with_lonely, lists[1], lists[2]};
    const std::vector<const KeySet*> misled{lists[0], &second, lists[2]};
    const JointFilter moved = JointFilter::build(misled, {}).value();
    EXPECT_EQ(moved.keys(), JointFilter::build(expected, {}).value().keys());
    EXPECT_FALSE(check_joint_names(moved, expected));
    // One key less, or more.
    EXPECT_NE(fault({&first, lists[1], lists[2]}), "");
    EXPECT_NE(fault({&with_lonely, lists[1], lists[2]}), "");
    expect_says(fault({lists[0], lists[1]}));
}

TEST(JointFilter, RefusesWhatCannotBeJoined) {
    EXPECT_EQ(Sets(1, 10, 0).join({}).error().kind, ErrorKind::invalid_request);
    EXPECT_EQ(Sets(17, 10, 0).join({}).error().kind, ErrorKind::invalid_request);
    KeySet sources(SIEVE_FIELD_SRC), destinations(SIEVE_FIELD_DST);
    sources.add(address(1));
    expect_error(JointFilter::build(std::vector<const KeySet*>{&sources, &destinations}, {}),
                 ErrorKind::invalid_request);
}

TEST(JointFilter, IsTheSameOnAnyNumberOfThreads) {
    const Sets sets(7, 20'000, 5'000);
    const auto bytes_on = [&](std::size_t threads) {
        const ThreadLimit limit(threads);
        const JointFilter joint = sets.joined(12);
        return std::vector<sieve_line>(joint.lines().begin(), joint.lines().end());
    };
    const auto one = bytes_on(1), four = bytes_on(4);
    ASSERT_EQ(one.size(), four.size());
    EXPECT_EQ(std::memcmp(one.data(), four.data(), one.size() * sizeof(sieve_line)), 0);
}

// What another process hands over: bytes of any content.
class LoadedJointFilter : public testing::Test {
  protected:
    Sets sets{3, 500, 100};
    std::vector<sieve_line> lines;

    LoadedJointFilter() {
        const JointFilter joint = sets.joined(16);
        lines.assign(joint.lines().begin(), joint.lines().end());
    }
    sieve_lookup& lookup() { return *reinterpret_cast<sieve_lookup*>(lines.data()); }
    sieve_file& file() { return *reinterpret_cast<sieve_file*>(lines.data() + SIEVE_FILE_LINE); }
    [[nodiscard]] Result<JointFilter> load(std::size_t bytes = SIZE_MAX) const {
        UniqueFd file(::memfd_create("joint", MFD_CLOEXEC));
        bytes = std::min(bytes, lines.size() * sizeof(sieve_line));
        EXPECT_EQ(::write(file.get(), lines.data(), bytes), static_cast<ssize_t>(bytes));
        EXPECT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
        Input input = Input::of(std::move(file), "its joint filter").value();
        return JointFilter::load(input);
    }
    // What was changed is put right again.
    template <class Field, class Value>
    void refused_with(Field& field, Value value) {
        const Field before = field;
        field = static_cast<Field>(value);
        expect_error(load(), ErrorKind::bad_input);
        field = before;
    }
};

TEST_F(LoadedJointFilter, AnswersAsTheOneThatWasBuilt) {
    const JointFilter built = sets.joined(16);
    // The header's rates are not believed.
    file().predicted_fpr = file().expected_fpr = 0;
    const auto joint = load();
    ASSERT_TRUE(joint) << joint.error().message;
    EXPECT_EQ(joint->sets(), 3U);
    EXPECT_EQ(joint->keys(), built.keys());
    EXPECT_EQ(joint->expected_rate(), built.expected_rate());
    EXPECT_EQ(joint->predicted_rate(), built.predicted_rate());
    EXPECT_EQ(joint->identity()[1], built.identity()[1]);
    for (const auto& [number, set] : sets.first) ASSERT_EQ(joint->find(address(number)), set);
    ASSERT_EQ(joint->lines().size(), built.lines().size());
    EXPECT_EQ(std::memcmp(joint->lines().data(), built.lines().data(), built.lines().size_bytes()), 0);
}

TEST_F(LoadedJointFilter, RefusesWhatIsNone) {
    refused_with(lookup().magic, 1);
    refused_with(lookup().kind, SIEVE_KIND_BLOCKED);
    refused_with(file().version, SIEVE_IMAGE_VERSION + 1);
    refused_with(lookup().hashes, 1);
    refused_with(lookup().hashes, 17);
    refused_with(lookup().hashes, 0);
    refused_with(lookup().fields, 0);
    refused_with(lookup().choices, 9);
    refused_with(lookup().alpha, 1);
    refused_with(lookup().shard_bits, 1);
    refused_with(lookup().probes, 1);
    refused_with(lookup().buckets, 0);
    refused_with(lookup().buckets, lookup().buckets - 1);
    refused_with(lookup().buckets, ~0U);
    refused_with(file().lines, 7);
    refused_with(file().keys, 0);
    refused_with(file().keys, std::uint64_t{1} << 40);
    EXPECT_TRUE(load()) << "it was put right again";
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{63}, lines.size() * sizeof(sieve_line) - 1})
        EXPECT_FALSE(load(bytes)) << bytes;
    // More lines than there are: no memory is asked for them.
    lookup().buckets = 0xfffffffd;
    file().lines = std::uint64_t{0xfffffffd} + SIEVE_FIRST_LINE;
    expect_error(load(), ErrorKind::bad_input);
    lookup().buckets = 0xf0000000;
    file().lines = std::uint64_t{0xf0000000} + SIEVE_FIRST_LINE;
    expect_error(load(), ErrorKind::bad_input);
}

TEST_F(LoadedJointFilter, RefusesALineThatCannotStateEveryNumber) {
    lines.back().word[0] &= ~__u64{255}; // it compares no bit
    expect_error(load(), ErrorKind::bad_input);
}

TEST(JointFilter, GoldenBytes) {
    // The packet path reads these bytes: a change of their meaning raises SIEVE_ABI.
    const JointFilter joint = Sets(3, 1000, 200).joined(16);
    std::vector<sieve_line> lines(joint.lines().begin(), joint.lines().end());
    // A rate's last bit depends on the mathematical library.
    sieve_file& file = *reinterpret_cast<sieve_file*>(&lines[SIEVE_FILE_LINE]);
    EXPECT_NEAR(std::bit_cast<double>(std::uint64_t{file.predicted_fpr}), 2.327583889024892e-05, 1e-14);
    EXPECT_NEAR(std::bit_cast<double>(std::uint64_t{file.expected_fpr}), 2.3358709671918083e-05, 1e-14);
    file.predicted_fpr = 0;
    file.expected_fpr = 0;
    EXPECT_EQ(XXH3_64bits(lines.data(), lines.size() * sizeof(sieve_line)), 6421430272608067234U);
}

TEST(Joint, FindsTheLowestBit) {
    for (std::uint32_t mask = 1; mask < 1U << 16; mask++) {
        std::uint32_t lowest = 0;
        while ((mask >> lowest & 1) == 0) lowest++;
        ASSERT_EQ(sieve_lowest_bit(mask), lowest);
    }
}

} // namespace
} // namespace sieve
