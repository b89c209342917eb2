// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Joint filters that are tables of kind exact, against a map of the lists.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/filters/joint/check_joint_names.hpp"
#include "libsieve/filters/joint/joint_filter.hpp"
#include "libsieve/filters/kinds/exact/exact_lanes.hpp"
#include "libsieve/util/files/input.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "model/exact_model.hpp"
#include "unit/messages.hpp"

namespace sieve {
namespace {

using Address = std::pair<std::uint64_t, std::uint64_t>; // upper and lower word

sieve_key key_of(const Address& address, std::uint32_t fields) {
    const bool source = fields == SIEVE_FIELD_SRC;
    sieve_key key{};
    key.word[source ? 0 : 2] = address.first;
    key.word[source ? 1 : 3] = address.second;
    return key;
}

struct Sets {
    std::uint32_t fields;
    std::vector<KeySet> keys{};
    std::map<Address, std::uint32_t> first{}; // by address, the first set that holds it

    // Addresses of both families, many of which are in several sets.
    Sets(std::uint32_t sets, std::size_t each, std::uint32_t of = SIEVE_FIELD_SRC) : fields(of) {
        std::mt19937_64 random(sets * each);
        for (std::uint32_t set = 0; set < sets; set++) {
            keys.emplace_back(fields);
            for (std::size_t i = 0; i < each; i++) {
                const std::uint64_t number = random() % (i % 2 == 0 ? 4 * each : std::uint64_t{1} << 32);
                const Address address = random() % 4 == 0
                                            ? Address(0x20010db800000000, number)
                                            : Address(0, sieve_v4_mapped(static_cast<std::uint32_t>(number)));
                keys.back().add(key_of(address, fields));
                first.try_emplace(address, set);
            }
        }
    }
    [[nodiscard]] std::vector<const KeySet*> all() const {
        std::vector<const KeySet*> lists;
        for (const KeySet& set : keys) lists.push_back(&set);
        return lists;
    }
    [[nodiscard]] JointFilter joined() const {
        auto built = JointFilter::build(all(), {.fpr = {}, .bits_per_key = {}, .seed = 1, .exact = true});
        if (!built) throw std::runtime_error(built.error().message);
        return std::move(*built);
    }
};

TEST(ExactJointFilter, NamesTheFirstSetOfEachAddressAndOfNoOther) {
    for (const std::uint32_t fields : {std::uint32_t{SIEVE_FIELD_SRC}, std::uint32_t{SIEVE_FIELD_DST}})
        for (const std::uint32_t count : {2U, 3U, 4U, 5U, 9U, 16U})
            for (const std::size_t each : {1, 40, 3000}) {
                const Sets sets(count, each, fields);
                const JointFilter joint = sets.joined();
                ASSERT_TRUE(joint.exact());
                ASSERT_EQ(joint.sets(), count);
                ASSERT_EQ(joint.fields(), fields);
                ASSERT_EQ(joint.keys(), sets.first.size());
                EXPECT_EQ(joint.expected_rate(), 0);
                EXPECT_TRUE(check_joint_names(joint, sets.all()));
                const model::ExactImage model({reinterpret_cast<const unsigned char*>(joint.lines().data()),
                                               joint.lines().size_bytes()});
                std::mt19937_64 random(1);
                const auto ask = [&](const Address& address) {
                    const auto member = sets.first.find(address);
                    const auto named = joint.find(key_of(address, fields));
                    ASSERT_EQ(named.has_value(), member != sets.first.end());
                    if (named) {
                        ASSERT_EQ(*named, member->second);
                    }
                    ASSERT_EQ(model.value(address.first, address.second), named);
                };
                for (const auto& [address, set] : sets.first) {
                    ask(address);
                    ask({address.first, address.second ^ std::uint64_t{1} << (random() % 32)});
                }
                for (int i = 0; i < 1'000; i++) {
                    ask({0, sieve_v4_mapped(static_cast<std::uint32_t>(random()))});
                    ask({0x20010db800000000, random() % (4 * each)});
                    ask({random(), random()});
                }
            }
}

/// Sets that are the same but for one address, and many thousand of them: every number is that of the first.
TEST(ExactJointFilter, NamesTheFirstOfSetsThatAreNearlyTheSame) {
    std::mt19937_64 random(2);
    std::vector<KeySet> keys;
    std::vector<std::uint32_t> common(100'000);
    for (auto& address : common) address = static_cast<std::uint32_t>(random());
    std::vector<const KeySet*> all;
    for (std::uint32_t set = 0; set < 16; set++) {
        keys.emplace_back(SIEVE_FIELD_SRC);
        for (const std::uint32_t address : common)
            if (address % 16 <= set) keys.back().add_ipv4(address);
    }
    for (const KeySet& set : keys) all.push_back(&set);
    const JointFilter joint =
        JointFilter::build(all, {.fpr = {}, .bits_per_key = {}, .seed = 3, .exact = true}).value();
    for (const std::uint32_t address : common)
        ASSERT_EQ(joint.find(key_of({0, sieve_v4_mapped(address)}, SIEVE_FIELD_SRC)), address % 16);
}

TEST(ExactJointFilter, RefusesWhatItCannotHold) {
    KeySet flows(SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT);
    flows.add(key_of({0, sieve_v4_mapped(1)}, SIEVE_FIELD_SRC));
    const auto refused = JointFilter::build(std::vector<const KeySet*>{&flows, &flows},
                                            {.fpr = {}, .bits_per_key = {}, .seed = 1, .exact = true});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_request);
}

/// What another process hands over.
class LoadedExactJoint : public testing::Test {
  protected:
    Sets sets{3, 500};
    std::vector<sieve_line> lines;

    LoadedExactJoint() {
        const JointFilter joint = sets.joined();
        lines.assign(joint.lines().begin(), joint.lines().end());
    }
    sieve_exact& geometry() { return *reinterpret_cast<sieve_exact*>(lines.data()); }
    sieve_file& file() { return *reinterpret_cast<sieve_file*>(lines.data() + SIEVE_FILE_LINE); }
    sieve_exact_ipv6& part() { return *reinterpret_cast<sieve_exact_ipv6*>(lines.data() + SIEVE_FIRST_LINE); }
    __u64* words() { return lines[SIEVE_FIRST_LINE + SIEVE_EXACT_IPV4_LINE].word; }
    [[nodiscard]] Result<JointFilter> load() const {
        UniqueFd bytes(::memfd_create("joint", MFD_CLOEXEC));
        const std::size_t size = lines.size() * sizeof(sieve_line);
        EXPECT_EQ(::write(bytes.get(), lines.data(), size), static_cast<ssize_t>(size));
        EXPECT_EQ(::lseek(bytes.get(), 0, SEEK_SET), 0);
        Input input = Input::of(std::move(bytes), "its joint filter").value();
        return JointFilter::load(input);
    }
    template <class Field, class Value>
    void refused_with(Field& field, Value value) {
        const Field before = field;
        field = static_cast<Field>(value);
        expect_error(load(), ErrorKind::bad_input);
        field = before;
    }
    // The first word that has a lane with a key, and the lane.
    std::pair<__u64*, std::uint32_t> entry() {
        const exact::Lanes lanes(geometry());
        for (__u64* word = words();; word++)
            for (std::uint32_t lane = 0; lane < lanes.count(); lane++)
                if (lanes.get(*word, lane) != lanes.none()) return {word, lane};
    }
};

TEST_F(LoadedExactJoint, AnswersAsTheOneThatWasBuilt) {
    const auto joint = load();
    ASSERT_TRUE(joint) << joint.error().message;
    EXPECT_EQ(joint->sets(), 3U);
    EXPECT_EQ(joint->keys(), sets.first.size());
    for (const auto& [address, set] : sets.first)
        ASSERT_EQ(joint->find(key_of(address, SIEVE_FIELD_SRC)), set);
    EXPECT_TRUE(check_joint_names(*joint, sets.all()));
}

TEST_F(LoadedExactJoint, RefusesWhatIsNone) {
    refused_with(geometry().magic, 1);
    refused_with(geometry().kind, SIEVE_KIND_RANGES);
    refused_with(geometry().value_bits, 0);
    refused_with(geometry().words, geometry().words + 8);
    refused_with(geometry().lines, geometry().lines + 1);
    refused_with(part().meaning, SIEVE_EXACT_ENDS);
    refused_with(part().meaning, SIEVE_EXACT_PLAIN);
    refused_with(part().sets, 1);
    refused_with(part().sets, 5);
    refused_with(part().sets, 2);
    refused_with(file().keys, file().keys + 1);
    const exact::Lanes lanes(geometry());
    const auto [word, lane] = entry();
    refused_with(*word, lanes.with(*word, lane, lanes.none()));
    refused_with(*word, lanes.with(*word, lane, lanes.get(*word, lane) | 3));
    EXPECT_TRUE(load()) << "it was put right again";
}

/// A whole table that names another set, which holds the key or does not, or another key's.
TEST_F(LoadedExactJoint, IsAskedForEachKey) {
    const exact::Lanes lanes(geometry());
    const auto [word, lane] = entry();
    const std::uint64_t content = lanes.get(*word, lane);
    for (std::uint64_t value = 0; value < 3; value++) {
        if (value == lanes.value_of(content)) continue;
        const __u64 before = *word;
        *word = lanes.with(*word, lane, (content & ~std::uint64_t{3}) | value);
        const auto joint = load();
        ASSERT_TRUE(joint) << joint.error().message;
        expect_error(check_joint_names(*joint, sets.all()), ErrorKind::bad_input);
        *word = before;
    }
    std::vector<const KeySet*> turned = sets.all();
    std::swap(turned[0], turned[2]);
    EXPECT_FALSE(check_joint_names(*load(), turned));
    turned.pop_back();
    EXPECT_FALSE(check_joint_names(*load(), turned));
    KeySet less = sets.keys[0];
    less.clear();
    EXPECT_FALSE(check_joint_names(*load(), std::vector<const KeySet*>{&less, &sets.keys[1], &sets.keys[2]}));
}

} // namespace
} // namespace sieve
