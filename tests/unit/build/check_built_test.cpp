// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Filters that a process handed over which somebody has taken over: each is a whole image, with its checksum.
#include "libsieve/build/check_built.hpp"

#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/build/measure.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "unit/messages.hpp"
#include "unit/service/lists.hpp"

namespace sieve {
namespace {

using test::addresses;
using test::list_of;

struct Order {
    std::vector<std::string> entries;
    BuildOptions options{};
    std::uint32_t fields = SIEVE_FIELD_SRC;
    std::vector<std::string> except{};
};

Members members(const Order& order) {
    return members_of(list_of(order.entries, order.fields));
}

Exceptions exceptions(const Order& order) {
    if (order.except.empty()) return {};
    return {.lines = prefixes_of(members_of(list_of(order.except, order.fields)))};
}

Image built(const Order& order) {
    BuildOptions options = order.options;
    options.trials = 1000;
    auto built = build_set(members(order), options, {}, exceptions(order));
    if (!built) throw std::runtime_error(built.error().message);
    return std::move(built->image);
}

std::string fault(const Image& image, const Order& order) {
    const Status right = check_built(image, members(order), order.options, exceptions(order));
    return right ? "" : right.error().message;
}

// Every kind that holds single keys or prefixes. More effort lowers the rates, and takes most of the time.
std::vector<Order> orders(Effort effort = Effort::fast) {
    std::vector<Order> all;
    std::vector<std::string> flows;
    for (const std::string& address : addresses(400)) flows.push_back(address + " 443");
    std::vector<std::string> mixed = addresses(300);
    mixed.insert(mixed.end(), {"10.0.0.0/12", "2001:db8::/33", "192.0.2.64/27", "2001:db9::1"});
    for (const FilterKind* kind : filter_kinds()) {
        Order order{.entries = addresses(777)};
        order.options.kind.kind = kind->facts().number;
        order.options.kind.effort = effort;
        if (kind->facts().number != SIEVE_KIND_RANGES && kind->exact() != nullptr) {
            all.push_back(order); // single addresses only
            continue;
        }
        all.push_back(order);
        order.entries = mixed;
        all.push_back(order);
        if (kind->exact() != nullptr) continue;
        order.entries = flows;
        order.fields = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;
        all.push_back(order);
        order.entries.emplace_back("10.0.0.0/12 80");
        all.push_back(order);
    }
    Order automatic{.entries = addresses(777)};
    automatic.options.kind.kind = automatic_kind;
    automatic.options.kind.effort = effort;
    all.push_back(automatic);
    automatic.entries = mixed;
    all.push_back(automatic);
    return all;
}

std::string name(const Order& order) {
    return std::string(kind_of(built(order).lookup()).facts().name) + ", " + order.entries.back();
}

TEST(CheckBuilt, TakesWhatTheBuilderMakes) {
    for (const Effort effort : {Effort::fast, Effort::normal})
        for (const Order& order : orders(effort)) EXPECT_EQ(fault(built(order), order), "") << name(order);
}

// The rates of small filters differ much from each other, and none of a builder's may be refused, whatever
// its effort.
TEST(CheckBuilt, TakesSmallFilters) {
    for (const FilterKind* kind : filter_kinds())
        for (const int keys : {1, 2, 3, 5, 10, 20, 50, 100, 200, 1000, 4000})
            for (int round = 0; round < (keys < 1000 ? 5 : 1); round++) {
                Order order{.entries = addresses(keys)};
                order.options.kind.kind = kind->facts().number;
                order.options.kind.effort = round % 2 == 0 ? Effort::normal : Effort::fast;
                ASSERT_EQ(fault(built(order), order), "") << kind->facts().name << ", " << keys;
            }
}

TEST(CheckBuilt, RefusesTheFilterOfAnotherList) {
    for (const Order& order : orders()) {
        Order one = order;
        one.entries = {order.entries.front()};
        if (order.entries.back().find('/') != std::string::npos) one.entries.push_back(order.entries.back());
        EXPECT_NE(fault(built(one), order), "") << "one key instead of all: " << name(order);
        Order less = order;
        less.entries.erase(less.entries.begin() + 7);
        EXPECT_NE(fault(built(less), order), "") << "one key less: " << name(order);
        Order other = order;
        other.entries[7].replace(0, 3, "12.");
        EXPECT_NE(fault(built(other), order), "") << "another key: " << name(order);
        Order more = order;
        more.entries.push_back("12" + order.entries[7].substr(2));
        EXPECT_NE(fault(built(more), order), "") << "one key more: " << name(order);
    }
}

TEST(CheckBuilt, RefusesAnotherKindAndAnotherSize) {
    for (const Order& order : orders()) {
        const FilterKind& own = kind_of(built(order).lookup());
        for (const FilterKind* kind : filter_kinds()) {
            if (kind == &own) continue;
            if (kind->exact() != nullptr && order.fields != SIEVE_FIELD_SRC) continue;
            if (kind->exact() != nullptr && kind->facts().number != SIEVE_KIND_RANGES) continue;
            Order other = order;
            other.options.kind.kind = kind->facts().number;
            EXPECT_NE(fault(built(other), order).find(kind->facts().name), std::string::npos) << name(order);
        }
        if (own.exact() != nullptr) continue;
        Order small = order;
        small.options.bits_per_key = order.options.kind.kind == SIEVE_KIND_DDLCBF ? 64 : 8;
        if (order.options.kind.kind == automatic_kind) continue;
        EXPECT_NE(fault(built(small), order), "") << name(order);
    }
}

// Half of all addresses match beside the members, and the header says so or does not.
TEST(CheckBuilt, RefusesAFilterThatMatchesFarTooMuch) {
    for (const Order& order : orders()) {
        for (const bool honest : {false, true}) {
            Image image = built(order);
            if (kind_of(image.lookup()).exact() != nullptr) {
                Order wide = order;
                wide.entries.emplace_back("0.0.0.0/1");
                if (image.lookup().kind == SIEVE_KIND_RANGES) {
                    EXPECT_NE(fault(built(wide), order), "") << name(order);
                }
                continue;
            }
            // Ones let more match in Bloom kinds. In the others, some lines of another filter do.
            for (std::size_t i = 0; i < image.filter().size(); i += 2)
                std::memset(image.filter()[i].word, 0xff, sizeof(sieve_line));
            if (honest) {
                image.file().expected_fpr = rate_to_bits(expected_fpr(image));
            }
            image.seal();
            EXPECT_NE(fault(image, order), "") << name(order);
        }
    }
}

TEST(CheckBuilt, RefusesAFilterWithoutItsExceptions) {
    Order order{.entries = addresses(777), .except = {"192.0.2.1", "198.51.100.0/30"}};
    order.options.kind.kind = SIEVE_KIND_BLOCKED;
    EXPECT_EQ(fault(built(order), order), "");
    Order without = order;
    without.except.clear();
    expect_says(fault(built(without), order));
    without.except = {"192.0.2.2", "198.51.100.0/30"};
    expect_says(fault(built(without), order));
    Image unasked = built(order);
    unasked.file().excluded = 0;
    unasked.seal();
    expect_says(fault(unasked, order));
}

// The header's own claims.
TEST(CheckBuilt, RefusesAHeaderThatLies) {
    Order order{.entries = addresses(777)};
    order.options.kind.kind = SIEVE_KIND_BLOCKED;
    const auto lying = [&](const std::function<void(sieve_file&)>& lie) {
        Image image = built(order);
        lie(image.file());
        image.seal();
        return fault(image, order);
    };
    EXPECT_NE(lying([](sieve_file& file) { file.keys++; }), "");
    EXPECT_NE(lying([](sieve_file& file) { file.entries++; }), "");
    EXPECT_NE(lying([](sieve_file& file) { file.key_sum[0]++; }), "");
    EXPECT_NE(lying([](sieve_file& file) { file.key_sum[1]++; }), "");
    EXPECT_NE(lying([](sieve_file& file) { file.expected_fpr = 0; }), "");
    order.entries.emplace_back("10.0.0.0/12");
    EXPECT_NE(lying([](sieve_file& file) { file.covered[0] = 0; }), "");
}

} // namespace
} // namespace sieve
