// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Filters that change under packets. One processor runs the real program over members and non-members without
// a pause. The other one swaps filters of all kinds and sizes, and inserts and deletes keys in place. No
// member is ever missed, non-members match as often as predicted, and nothing is left in the kernel
// afterwards.
//
// SIEVE_CHURN_SWAPS and SIEVE_CHURN_UPDATES set the number of swaps and updates.
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <bpf/bpf.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>

#include "bpf/bounded.hpp"
#include "bpf/images.hpp"
#include "libsieve/analysis/binomial.hpp"
#include "libsieve/filters/kinds/ddlcbf/ddlcbf_filter.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/maps/mapped_filter.hpp"
#include "libsieve/kernel/maps/stats.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/packets/carrier.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Two of the processors that this process may use, or the only one twice. The kernel then takes turns in the
// middle of either side's work.
std::vector<int> two_processors() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return {0, 0};
    std::vector<int> found;
    for (int cpu = 0; cpu < CPU_SETSIZE && found.size() < 2; cpu++)
        if (CPU_ISSET(cpu, &allowed)) found.push_back(cpu);
    if (found.size() == 1) found.push_back(found.front());
    return found;
}

void stay_on(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
}

// Distinct source addresses. Equal seeds give equal addresses.
std::vector<sieve_key> sources(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::set<std::uint64_t> drawn;
    std::vector<sieve_key> keys;
    while (keys.size() < count) {
        sieve_key key{};
        key.word[1] = sieve_v4_mapped(static_cast<std::uint32_t>(random()));
        if (drawn.insert(key.word[1]).second) keys.push_back(key);
    }
    return keys;
}

KeySet set_of(std::span<const sieve_key> keys) {
    KeySet set(SIEVE_FIELD_SRC);
    for (const sieve_key& key : keys) set.add(key);
    return set;
}

// The packets that one filter was asked about while it was in force.
struct Account {
    std::atomic<std::uint64_t> non_members{0}, matched{0};
    double least = 1, most = 0; // expected rates in that time, written by the changing side
    void expects(double rate) {
        least = std::min(least, rate);
        most = std::max(most, rate);
    }
    void check(const std::string& name) const {
        EXPECT_GT(non_members, 0U) << name;
        const double n = static_cast<double>(non_members);
        const double slack = 6; // sigma
        EXPECT_LE(static_cast<double>(matched), n * most + slack * std::sqrt(n * most) + slack) << name;
        EXPECT_GE(static_cast<double>(matched), n * least - slack * std::sqrt(n * least) - slack) << name;
    }
};

// The asking side: runs the program over members, which must all match, and over non-members. It charges them
// to the filter that was certainly in force: then `epoch_` is even, and the same before and after.
class Asker {
  public:
    Asker(const Scratch& scratch, std::span<const sieve_key> members, std::span<const sieve_key> non_members,
          std::vector<Account>& accounts)
        : scratch_(&scratch), members_(members), non_members_(non_members), accounts_(&accounts) {}

    void begin_change() { epoch_.fetch_add(1); }
    void end_change(std::size_t account) {
        account_ = account;
        epoch_.fetch_add(1);
    }
    // Returns when, since the call, non-members have been charged to the present account. Call only while
    // `run` runs.
    void await_non_members() const {
        const std::atomic<std::uint64_t>& non_members = (*accounts_)[account_].non_members;
        const auto hangs = std::chrono::steady_clock::now() + std::chrono::minutes(5);
        for (const std::uint64_t before = non_members; non_members == before; std::this_thread::yield())
            ASSERT_LT(std::chrono::steady_clock::now(), hangs) << "nobody asks for account " << account_;
    }

    void run(const std::atomic<bool>& stop) {
        std::size_t member = 0, non_member = 0;
        do {
            for (int i = 0; i < 8; i++) {
                asked_++;
                if (!matches(members_[member++ % members_.size()])) missed_++;
            }
            for (int i = 0; i < 8; i++) {
                const std::uint64_t before = epoch_;
                const std::size_t account = account_;
                const bool hit = matches(non_members_[non_member++ % non_members_.size()]);
                if (!hit) passed_++;
                if (before % 2 != 0 || epoch_ != before) continue;
                (*accounts_)[account].non_members++;
                (*accounts_)[account].matched += hit ? 1 : 0;
            }
        } while (!stop);
    }

    void check() const {
        EXPECT_GT(asked_, 0U);
        EXPECT_EQ(missed_, 0U) << "members, of " << asked_;
        EXPECT_EQ(failed_, 0U);
        // The program's own counters: it passed non-members only.
        const auto stats = read_stats(scratch_->instance());
        ASSERT_TRUE(stats) << stats.error().message;
        EXPECT_EQ(stats->passed.packets, passed_);
    }
    [[nodiscard]] std::uint64_t asked() const { return asked_; }
    [[nodiscard]] std::uint64_t missed() const { return missed_; }

  private:
    // One run at a time, because the kernel waits for grace periods before several runs in one call.
    bool matches(const sieve_key& key) {
        const auto verdict = scratch_->run(carrier_.carry(key, SIEVE_FIELD_SRC));
        if (!verdict) failed_++;
        return verdict && *verdict == XDP_DROP;
    }

    const Scratch* scratch_;
    std::span<const sieve_key> members_, non_members_;
    std::vector<Account>* accounts_;
    packets::Carrier carrier_;
    std::atomic<std::uint64_t> epoch_{0};
    std::atomic<std::size_t> account_{0};
    std::uint64_t asked_ = 0, missed_ = 0, passed_ = 0, failed_ = 0;
};

// Runs `change` on one processor while the asker runs on the other one.
void side_by_side(Asker& asker, const std::vector<int>& processors, const std::function<void()>& change) {
    std::atomic<bool> stop{false};
    std::thread asking([&] {
        stay_on(processors[0]);
        asker.run(stop);
    });
    std::thread changing([&] {
        stay_on(processors[1]);
        change();
    });
    changing.join();
    stop = true;
    asking.join();
}

// Guests are inserted into a filter in force and deleted, at random. On average, half of them are in.
class Guests {
  public:
    Guests(std::span<const sieve_key> keys, const sieve_lookup& lookup) {
        for (const sieve_key& key : keys)
            hashes_.push_back(sieve_hash_key(&key, lookup.hash_key, lookup.fields));
        in_.resize(keys.size());
    }
    void change(DdlcbfFilter& filter, std::uint64_t updates, std::mt19937_64& random) {
        for (std::uint64_t i = 0; i < updates; i++) {
            const std::size_t guest = random() % hashes_.size();
            if (in_[guest]) {
                ASSERT_TRUE(filter.erase(hashes_[guest]));
                in_[guest] = false;
                done_++;
            } else if (filter.insert(hashes_[guest])) {
                ASSERT_TRUE(filter.contains(hashes_[guest]));
                in_[guest] = true;
                done_++;
            } else {
                full_++;
            }
        }
    }
    [[nodiscard]] std::uint64_t done() const { return done_; }
    [[nodiscard]] std::uint64_t full() const { return full_; }

  private:
    std::vector<sieve_hash> hashes_;
    std::vector<bool> in_;
    std::uint64_t done_ = 0, full_ = 0;
};

struct People {
    // So many that hardly any filter is asked about a non-member twice: its answers would not be independent.
    std::size_t strangers = std::min<std::size_t>(198'400, 10 * bounded(198'400));
    std::size_t further = bounded(100'000);
    std::vector<sieve_key> all = sources(1'600 + further + strangers, 11);
    std::span<const sieve_key> members{all.data(), 1'000};
    std::span<const sieve_key> guests{all.data() + 1'000, 600};
    std::span<const sieve_key> others{all.data() + 1'600, further}; // further members, of some sets
    std::span<const sieve_key> non_members{all.data() + 1'600 + further, strangers};
};

TEST(LiveChange, NoMemberIsMissedWhileItsBucketsAreRewritten) {
    const auto processors = two_processors();
    const std::uint64_t updates = number_from("SIEVE_CHURN_UPDATES", bounded(1'000'000));
    const People people;
    const Image image = image_of_keys(set_of(people.members), 1, 32, SIEVE_KIND_DDLCBF);
    const FilterMap map = map_of(image, "churn");
    const Scratch scratch = value_or_fail(Scratch::load(false));
    ASSERT_TRUE(scratch.ask_only(map.fd()));

    constexpr std::size_t phases = 20;
    std::vector<Account> accounts(phases);
    Asker asker(scratch, people.members, people.non_members, accounts);
    MappedFilter live = value_or_fail(MappedFilter::open(map.id()));
    DdlcbfFilter filter = value_or_fail(DdlcbfFilter::open(live.lookup(), live.filter()));
    Guests guests(people.guests, live.lookup());
    side_by_side(asker, processors, [&] {
        std::mt19937_64 random(5);
        // For one phase. The rate of each filter is computed.
        const std::uint64_t batches = std::max<std::uint64_t>(1, updates / phases / 1000);
        for (std::size_t phase = 0; phase < phases; phase++) {
            asker.begin_change();
            accounts[phase].expects(filter.expected_fpr());
            asker.end_change(phase);
            asker.await_non_members();
            for (std::uint64_t batch = 0; batch < batches; batch++) {
                guests.change(filter, updates / phases / batches, random);
                accounts[phase].expects(filter.expected_fpr());
            }
        }
    });
    asker.check();
    for (std::size_t phase = 0; phase < phases; phase++)
        accounts[phase].check(fmt::format("phase {}", phase));
    EXPECT_GT(guests.done(), updates * 9 / 10) << guests.full() << " did not fit";
    std::cout << fmt::format(
        "{} updates, {} did not fit; {} lookups of members, {} missed; FPR {:.2e} to {:.2e}\n", guests.done(),
        guests.full(), asker.asked(), asker.missed(), accounts.front().least, accounts.back().most);
}

std::size_t open_descriptors() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) count++;
    return count;
}

// The kernel frees a map some grace periods after its last user left.
bool comes_to_nothing(const std::function<int()>& open) {
    for (int attempt = 0; attempt < 6000; attempt++) {
        const UniqueFd fd(open());
        if (!fd && errno == ENOENT) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

TEST(LiveChange, SwapsOfAllKindsAndUpdatesAtOnce) {
    const auto processors = two_processors();
    const std::uint64_t updates = number_from("SIEVE_CHURN_UPDATES", bounded(100'000));
    const People people;
    std::vector<Image> images;
    for (const auto& [kind, others, bits] :
         std::vector<std::tuple<sieve_kind, std::size_t, double>>{{SIEVE_KIND_BLOCKED, 0, 16},
                                                                  {SIEVE_KIND_DDLCBF, 0, 40},
                                                                  {SIEVE_KIND_BLOOM, 20'000, 12},
                                                                  {SIEVE_KIND_DDLCBF, 10'000, 30},
                                                                  {SIEVE_KIND_DLEFT64, 5'000, 14},
                                                                  {SIEVE_KIND_DDLCBF, 2'000, 36},
                                                                  {SIEVE_KIND_DLEFT128, 50'000, 14},
                                                                  {SIEVE_KIND_DDLCBF, 100, 40},
                                                                  {SIEVE_KIND_BLOCKED, 100'000, 10}}) {
        KeySet keys = set_of(people.members);
        keys.append(set_of(people.others.first(bounded(others))));
        images.push_back(image_of_keys(std::move(keys), images.size() + 1, bits, kind));
    }

    // Each image comes into force once more.
    const std::uint64_t swaps =
        std::max<std::uint64_t>(images.size(), number_from("SIEVE_CHURN_SWAPS", bounded(20'000) / 200));
    std::vector<std::uint32_t> map_ids;
    std::uint32_t program_id = 0;
    const std::size_t descriptors = open_descriptors();
    std::uint64_t done = 0, full = 0, asked = 0, missed = 0;
    {
        const Scratch scratch = value_or_fail(Scratch::load(false));
        bpf_prog_info info{};
        __u32 length = sizeof(info);
        ASSERT_EQ(bpf_obj_get_info_by_fd(scratch.object().program_fd(), &info, &length), 0);
        program_id = info.id;
        SetTable table = scratch.table();
        std::vector<Account> accounts(images.size());
        Asker asker(scratch, people.members, people.non_members, accounts);
        const auto put = [&](std::size_t i) {
            const FilterMap map = map_of(images[i], "churn");
            map_ids.push_back(map.id());
            asker.begin_change();
            const Status replaced = table.replace({.sets = {{.name = "churn", .map_fd = map.fd()}}});
            ASSERT_TRUE(replaced) << replaced.error().message;
            accounts[i].expects(rate_from_bits(images[i].file().expected_fpr));
            asker.end_change(i);
        };
        put(0);
        side_by_side(asker, processors, [&] {
            std::mt19937_64 random(6);
            const std::uint64_t each = updates / std::max<std::uint64_t>(1, swaps * 4 / 9) + 1;
            for (std::uint64_t swap = 1; swap <= swaps; swap++) {
                const std::size_t i = swap % images.size();
                put(i);
                asker.await_non_members();
                if (images[i].lookup().kind != SIEVE_KIND_DDLCBF) continue;
                MappedFilter live = value_or_fail(MappedFilter::open(map_ids.back()));
                DdlcbfFilter filter = value_or_fail(DdlcbfFilter::open(live.lookup(), live.filter()));
                Guests guests(people.guests, live.lookup());
                guests.change(filter, each, random);
                accounts[i].expects(filter.expected_fpr());
                done += guests.done();
                full += guests.full();
            }
        });
        asker.check();
        for (std::size_t i = 0; i < images.size(); i++)
            accounts[i].check(fmt::format("image {} ({})", i, kind_name(images[i].lookup().kind)));
        asked = asker.asked();
        missed = asker.missed();
    }
    EXPECT_GE(done + full, updates * 9 / 10);
    // Back to the start.
    EXPECT_EQ(open_descriptors(), descriptors);
    for (const std::uint32_t id : map_ids)
        ASSERT_TRUE(comes_to_nothing([id] { return bpf_map_get_fd_by_id(id); }))
            << "map " << id << " is left";
    EXPECT_TRUE(comes_to_nothing([program_id] { return bpf_prog_get_fd_by_id(program_id); }));
    std::cout << fmt::format("{} swaps, {} updates, {} did not fit; {} lookups of members, {} missed\n",
                             swaps, done, full, asked, missed);
}

TEST(MappedFilter, IsTheRunningFilter) {
    const Image image = random_image(1'000, 4, 20, SIEVE_KIND_DDLCBF);
    const FilterMap map = map_of(image);
    MappedFilter live = value_or_fail(MappedFilter::open(map.id()));
    ASSERT_EQ(live.filter().size(), image.filter().size());
    EXPECT_EQ(live.file().keys, image.file().keys);
    live.filter()[3].word[5] = 0x1234567;
    sieve_line line{};
    const std::uint32_t at = SIEVE_FIRST_LINE + 3;
    ASSERT_EQ(bpf_map_lookup_elem(map.fd(), &at, &line), 0);
    EXPECT_EQ(line.word[5], 0x1234567U);

    EXPECT_FALSE(MappedFilter::open(0));
    const Scratch scratch = value_or_fail(Scratch::load(false));
    bpf_map_info info{};
    __u32 length = sizeof(info);
    ASSERT_EQ(bpf_obj_get_info_by_fd(scratch.instance().control_fd(), &info, &length), 0);
    EXPECT_FALSE(MappedFilter::open(info.id));
}

} // namespace
} // namespace sieve::kernel
