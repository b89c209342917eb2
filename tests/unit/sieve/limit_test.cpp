// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The token bucket against a slow model that counts tokens, and against the promise itself: so many packets
// in any window.
#include "sieve/limit.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace sieve {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

// The bucket as textbooks have it: tokens, here in units of 1 / (a packet's nanoseconds * rate), are added as
// time passes, up to the burst, and a packet takes one.
class TokenModel {
  public:
    TokenModel(std::uint32_t rate, std::uint32_t burst, std::uint64_t now)
        : rate_(rate), most_(burst * second), tokens_(most_), then_(now) {}

    bool passes(std::uint64_t now) {
        tokens_ =
            std::min<unsigned __int128>(most_, tokens_ + static_cast<unsigned __int128>(now - then_) * rate_);
        then_ = now;
        if (tokens_ < second) return false;
        tokens_ -= second;
        return true;
    }

  private:
    std::uint64_t rate_;
    std::uint64_t most_;
    unsigned __int128 tokens_;
    std::uint64_t then_;
};

// One CPU, as bpf/limit.h has it.
class Cpu {
  public:
    explicit Cpu(const sieve_limit& limit) : limit_(limit) {}

    bool passes(sieve_account& account, std::uint64_t now) {
        if (purse_ > 0) {
            purse_--;
            return true;
        }
        __u64 after = 0;
        const std::uint64_t taken = sieve_limit_take(limit_.interval, limit_.depth, limit_.step,
                                                     account.spent, sieve_limit_now(now), &after);
        if (taken == 0) return false;
        account.spent = after;
        purse_ = taken - 1;
        return true;
    }

  private:
    sieve_limit limit_;
    std::uint64_t purse_ = 0;
};

TEST(Limit, IsTheTextbooksTokenBucket) {
    std::mt19937_64 random(1);
    // Rates whose interval is a whole number of ticks: the answers agree packet by packet.
    for (const std::uint32_t rate : {1U, 2U, 100U, 1000U, 15625U, 100'000U})
        for (const std::uint32_t burst : {1U, 2U, 7U, 1000U}) {
            const sieve_limit limit = sieve_limit_of(rate, burst);
            ASSERT_EQ(limit.step, 1U);
            std::uint64_t now = 17; // the machine has just started, and the bucket is full
            TokenModel model(rate, burst, now);
            sieve_account account{};
            Cpu cpu(limit);
            std::uniform_int_distribution<std::uint64_t> gap(0, 3 * second / rate);
            std::bernoulli_distribution pause(0.001);
            for (int packet = 0; packet < 20'000; packet++) {
                now += random() % 4 != 0 ? 0 : gap(random);
                if (pause(random)) now += 2 * second * burst / rate;
                ASSERT_EQ(cpu.passes(account, now), model.passes(now))
                    << rate << "/" << burst << ", packet " << packet;
            }
        }
}

// In no window pass more packets than the rate and the burst allow, however many CPUs take part. What CPUs
// have in their purses may pass besides.
TEST(Limit, HoldsForAllCpusTogether) {
    std::mt19937_64 random(2);
    constexpr std::uint32_t cpus = 8;
    for (const std::uint32_t rate : {3U, 999U, 131'071U, 131'072U, 1'000'003U, SIEVE_LIMIT_MOST_RATE}) {
        // With a burst of one packet, what a bucket gains while it is full is lost.
        const std::uint32_t burst = std::max(2U, rate / 1000);
        const sieve_limit limit = sieve_limit_of(rate, burst);
        EXPECT_EQ(limit.step == 1, rate < 2 * SIEVE_LIMIT_WITHDRAWALS) << rate;
        sieve_account account{};
        std::vector<Cpu> all(cpus, Cpu(limit));
        std::vector<std::uint64_t> passed; // when
        std::uint64_t now = 5;
        // Four times as many packets as may pass.
        std::uniform_int_distribution<std::uint64_t> gap(0, std::max<std::uint64_t>(1, second / rate / 2));
        for (int packet = 0; packet < 40'000; packet++) {
            now += gap(random);
            if (all[random() % cpus].passes(account, now)) passed.push_back(now);
        }
        const double purses = cpus * (limit.step - 1.0);
        for (std::size_t first = 0; first < passed.size(); first += 97)
            for (std::size_t last = first; last < passed.size(); last += 89) {
                const double seconds = static_cast<double>(passed[last] - passed[first]) / second;
                ASSERT_LE(static_cast<double>(last - first + 1), 1.004 * rate * seconds + burst + purses + 1)
                    << rate << " from " << first << " to " << last;
            }
        // And not much less than allowed.
        const double seconds = static_cast<double>(now) / second;
        EXPECT_GE(static_cast<double>(passed.size()) + purses + 1, std::min(40'000.0, 0.996 * rate * seconds))
            << rate;
    }
}

TEST(Limit, RatesAreRightWithinTheirTicks) {
    for (std::uint32_t rate = 1; rate < SIEVE_LIMIT_MOST_RATE; rate += rate / 3 + 1) {
        const double real = static_cast<double>(SIEVE_LIMIT_TICKS_PER_SECOND) /
                            static_cast<double>(sieve_limit_of(rate, 1).interval);
        EXPECT_NEAR(real / rate, 1, 0.004) << rate;
    }
}

// Clocks of two CPUs differ a little, and a set may come with another limit than the account was used with.
TEST(Limit, AnAccountAheadOfTheClockIsEmpty) {
    const sieve_limit limit = sieve_limit_of(1000, 10);
    __u64 after = 0;
    EXPECT_EQ(sieve_limit_take(limit.interval, limit.depth, 1, sieve_limit_now(1001), sieve_limit_now(1000),
                               &after),
              0U);
    EXPECT_EQ(sieve_limit_take(0, 0, 1, 0, sieve_limit_now(1000), &after), 0U) << "no limit is set";
}

// The longest burst at the slowest rate, right after the machine started and at the end of the clock.
TEST(Limit, NothingOverflows) {
    for (const std::uint64_t now : {std::uint64_t{0}, (std::uint64_t{1} << 59) - 1}) {
        const sieve_limit limit = sieve_limit_of(1, SIEVE_LIMIT_MOST_SECONDS);
        sieve_account account{};
        Cpu cpu(limit);
        std::uint32_t passed = 0;
        while (cpu.passes(account, now)) passed++;
        EXPECT_EQ(passed, SIEVE_LIMIT_MOST_SECONDS);
    }
    const sieve_limit most = sieve_limit_of(SIEVE_LIMIT_MOST_RATE, 0xffffffff);
    EXPECT_EQ(most.depth, 160ULL * 0xffffffff);
}

} // namespace
} // namespace sieve
