// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Fuzzes changes of tables of kind `exact`. The first bytes of an input choose a small table; each byte that
// follows is a step: a key comes or goes, gets another end, time passes, the keys that have ended are swept,
// or the changes so far are made, in which the writer may die at any of its waits for lookups.
//
// What must hold: at every wait, and after a death, the model in tests/model finds each key that stays, and
// none that is neither in the set nor on its way. Afterwards the table lists exactly the set, the header
// counts it, and each key has the end that it was given.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "fuzz/support.hpp"
#include "libsieve/filters/kinds/exact/exact_ends.hpp"
#include "libsieve/filters/kinds/exact/exact_kind.hpp"
#include "libsieve/filters/kinds/exact/exact_live_table.hpp"
#include "libsieve/filters/kinds/exact/exact_table.hpp"
#include "libsieve/util/system/clock.hpp"
#include "model/exact_model.hpp"

namespace {

using namespace sieve;
using namespace sieve::fuzz;

constexpr std::uint64_t hour = 3'600'000'000'000;
constexpr std::uint64_t longest = 10 * hour;
constexpr std::size_t header_bytes = 4;
constexpr std::size_t addresses = 96;

Total changed("changes made");
Total waited("waits, each with a look at every key");
Total died("writers that died");

sieve_key key_of(uint128 address) {
    sieve_key key{};
    key.word[0] = static_cast<std::uint64_t>(address >> 64);
    key.word[1] = static_cast<std::uint64_t>(address);
    return key;
}

// Neighbours, strangers, and addresses of both families.
std::vector<uint128> draw_addresses(Random& random, unsigned ipv6_eighths) {
    std::set<uint128> drawn;
    const auto base = static_cast<std::uint32_t>(random.next());
    while (drawn.size() < addresses) {
        if (random.below(8) < ipv6_eighths)
            drawn.insert(uint128{random.next() | 1} << 64 |
                         (random.one_in(2) ? random.below(4) : random.next()));
        else
            drawn.insert(sieve_v4_mapped(random.one_in(2)
                                             ? base + static_cast<std::uint32_t>(random.below(200))
                                             : static_cast<std::uint32_t>(random.next())));
    }
    return {drawn.begin(), drawn.end()};
}

class Subject {
  public:
    Subject(Bytes header) : random_(fingerprint(header)) {
        const bool ends = (header[0] & 1) != 0;
        all_ = draw_addresses(random_, header[1] % 9);
        const std::size_t members = header[2] % (addresses / 2);
        // Mostly a full table, in which keys have to move.
        const std::size_t room = members + (header[3] % 4 == 0 ? header[3] % addresses : header[3] / 64);
        if (ends) values_ = exact::ends_for(room, longest, program_now());
        std::vector<std::uint32_t> ipv4;
        std::vector<uint128> ipv6;
        for (std::size_t i = 0; i < members; i++) {
            const uint128 one = all_[random_.below(all_.size())];
            if (!ends_.emplace(one, never_ends).second) continue;
            if (is_ipv4(one))
                ipv4.push_back(static_cast<std::uint32_t>(one));
            else
                ipv6.push_back(one);
        }
        std::array<__u64, SIEVE_HASH_KEY_WORDS> secret{};
        for (auto& word : secret) word = random_.next();
        const auto no_end = static_cast<std::uint16_t>(exact::no_end(values_.bits));
        const std::vector<std::uint16_t> ipv4_ends(ends ? ipv4.size() : 0, no_end);
        const std::vector<std::uint16_t> ipv6_ends(ends ? ipv6.size() : 0, no_end);
        const auto table = exact::build_table({.ipv4 = ipv4,
                                               .ipv6 = ipv6,
                                               .ipv4_values = ipv4_ends,
                                               .ipv6_values = ipv6_ends,
                                               .ipv4_room = room,
                                               .ipv6_room = (header[0] & 2) != 0 ? room : 0},
                                              SIEVE_FIELD_SRC, secret, values_);
        FUZZ_REQUIRE(table);
        lines_.assign(table->lines.begin(), table->lines.end());
        std::memcpy(&lookup_, &table->geometry, sizeof(lookup_));
        file_.keys = table->keys;
        file_.key_sum[0] = table->sum.locate;
        file_.key_sum[1] = table->sum.test;
        open();
        look();
    }

    void step(std::uint8_t byte) {
        const uint128 one = all_[random_.below(all_.size())];
        switch (byte % 8) {
        case 0:
        case 1: // comes
            if (!out_.contains(one) && !is_member(one)) in_.insert(one);
            break;
        case 2:
        case 3: // goes
            if (!in_.contains(one) && is_member(one)) out_.insert(one);
            break;
        case 4: // lives on, or shorter
            if (!out_.contains(one) && is_member(one) && values_.bits > 0) {
                FUZZ_REQUIRE(table_->set_end(key_of(one), some_end()));
                ends_[one] = *table_->end_of(key_of(one));
            }
            break;
        case 5:
            if (values_.bits > 0) pass(random_.below(2 * hour));
            break;
        case 6:
            sweep();
            break;
        default: // one of four writers dies at a wait
            change(byte / 8 % 4 == 0 ? 1 + byte / 32 : 0);
        }
    }

    void finish() {
        change(0);
        look();
    }

  private:
    [[nodiscard]] static bool is_over(std::uint64_t end) {
        return end != never_ends && static_cast<std::int64_t>(end - program_now()) <= 0;
    }
    [[nodiscard]] bool is_member(uint128 one) const {
        const auto found = ends_.find(one);
        return found != ends_.end() && !is_over(found->second);
    }
    [[nodiscard]] std::uint64_t some_end() {
        return values_.bits == 0 || random_.one_in(4) ? never_ends
                                                      : program_now() + 1 + random_.below(longest - passed_);
    }
    [[nodiscard]] static KeySet set_of(const std::set<uint128>& some) {
        KeySet keys(SIEVE_FIELD_SRC);
        for (const uint128 one : some) keys.add(key_of(one));
        return keys;
    }
    void open() {
        auto table = exact_kind.open_table(lookup_, file_, lines_);
        FUZZ_REQUIRE(table);
        table_ = std::move(*table);
    }
    [[nodiscard]] model::ExactImage read_by_model() const {
        std::vector<unsigned char> bytes((SIEVE_FIRST_LINE + lines_.size()) * SIEVE_LINE_BYTES);
        std::memcpy(bytes.data(), &lookup_, sizeof(lookup_));
        std::memcpy(bytes.data() + SIEVE_FIRST_LINE * SIEVE_LINE_BYTES, lines_.data(),
                    lines_.size() * SIEVE_LINE_BYTES);
        return model::ExactImage(bytes);
    }

    // Time passes by moving the base that ends are counted from. Ends lie on whole units: afterwards it is
    // the middle of one, so that nothing ends before the next time.
    void pass(std::uint64_t step) {
        auto& part = reinterpret_cast<sieve_exact_ipv6&>(lines_.front());
        const std::uint64_t unit = std::uint64_t{1} << part.unit;
        step += unit - (program_now() - part.base + step + unit / 2) % unit;
        if (passed_ + step >= longest) return;
        passed_ += step;
        part.base -= step;
        for (auto& [one, end] : ends_)
            if (end != never_ends) end -= step;
        std::erase_if(in_, [&](uint128 one) { return is_member(one); });
        std::erase_if(out_, [&](uint128 one) { return !is_member(one); });
        open();
    }

    // What a packet finds while the change is under way.
    void look_amid() {
        const model::ExactImage image = read_by_model();
        for (const uint128 one : all_) {
            const bool found = image.contains(static_cast<std::uint64_t>(one >> 64),
                                              static_cast<std::uint64_t>(one), program_now());
            if (in_.contains(one) || out_.contains(one)) continue;
            FUZZ_REQUIRE(found == is_member(one));
        }
    }

    void change(unsigned dies_at) {
        const std::uint64_t end = some_end();
        unsigned waits = 0;
        const WaitForLookups wait = [&]() -> Status {
            waited.add(1);
            look_amid();
            if (++waits == dies_at) return invalid_request("the writer dies");
            return {};
        };
        const auto did = table_->change(set_of(out_), set_of(in_), wait, end);
        changed.add(1);
        if (!did) {
            FUZZ_REQUIRE(dies_at != 0 && waits == dies_at);
            died.add(1);
            look_amid();
            open();
            FUZZ_REQUIRE(table_->unsettled());
            const WaitForLookups survive = [&]() -> Status {
                look_amid();
                return {};
            };
            FUZZ_REQUIRE(table_->settle(survive));
            look_amid();
            for (const auto& some : {in_, out_})
                for (const uint128 one : some) {
                    const auto now = table_->end_of(key_of(one));
                    if (now)
                        ends_[one] = *now;
                    else if (!ends_.contains(one) || !is_over(ends_.at(one)))
                        ends_.erase(one);
                }
            forget_what_went_with_the_writer();
        } else {
            std::set<uint128> came = in_;
            for (const sieve_key& key : did->full) {
                const uint128 one = address_number(key.word[0], key.word[1]);
                FUZZ_REQUIRE(came.erase(one) == 1);
                FUZZ_REQUIRE(!table_->contains(key));
            }
            FUZZ_REQUIRE(did->added == came.size() && did->removed == out_.size());
            for (const uint128 one : out_) ends_.erase(one);
            for (const uint128 one : came) {
                const auto stated = table_->end_of(key_of(one));
                FUZZ_REQUIRE(stated && (end == never_ends ? *stated == end : *stated >= end));
                ends_[one] = *stated;
            }
        }
        in_.clear();
        out_.clear();
        look();
    }

    // A key that had ended may have been on its way in when the writer died: its old entry is there or gone.
    void forget_what_went_with_the_writer() {
        std::set<uint128> listed;
        FUZZ_REQUIRE(exact_kind.for_each_entry(lookup_, lines_, program_now(),
                                               [&](const sieve_key& key, std::uint64_t, bool) {
                                                   listed.insert(address_number(key.word[0], key.word[1]));
                                               }));
        std::erase_if(ends_,
                      [&](const auto& one) { return is_over(one.second) && !listed.contains(one.first); });
    }

    void sweep() {
        const auto gone = table_->sweep([&]() -> Status {
            look_amid();
            return {};
        });
        FUZZ_REQUIRE(gone);
        FUZZ_REQUIRE(*gone == std::erase_if(ends_, [&](const auto& one) { return is_over(one.second); }));
        look();
    }

    void look() {
        std::set<uint128> listed;
        FUZZ_REQUIRE(exact_kind.for_each_entry(
            lookup_, lines_, program_now(), [&](const sieve_key& key, std::uint64_t end, bool) {
                const uint128 one = address_number(key.word[0], key.word[1]);
                FUZZ_REQUIRE(listed.insert(one).second);
                const auto found = ends_.find(one);
                FUZZ_REQUIRE(found != ends_.end());
                FUZZ_REQUIRE(is_over(found->second) ? is_over(end) : end == found->second);
            }));
        FUZZ_REQUIRE(listed.size() == ends_.size());
        const auto sum = exact_kind.add_up(lookup_, lines_);
        FUZZ_REQUIRE(sum && sum->keys == file_.keys && sum->keys == ends_.size());
        FUZZ_REQUIRE(sum->sum.locate == file_.key_sum[0] && sum->sum.test == file_.key_sum[1]);
        FUZZ_REQUIRE(!table_->unsettled());
        for (const uint128 one : all_) FUZZ_REQUIRE(table_->contains(key_of(one)) == is_member(one));
        look_amid();
    }

    Random random_;
    std::vector<uint128> all_;
    exact::Values values_{};
    sieve_lookup lookup_{};
    sieve_file file_{};
    std::vector<sieve_line> lines_;
    std::unique_ptr<ChangeableTable> table_;
    std::map<uint128, std::uint64_t> ends_; // of the entries: of members, and of those that have ended
    std::set<uint128> in_, out_;            // of the next change
    std::uint64_t passed_ = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size <= header_bytes) return 0;
    const Bytes input(data, size);
    Subject subject(input.first(header_bytes));
    for (const std::uint8_t byte : input.subspan(header_bytes)) subject.step(byte);
    subject.finish();
    return 0;
}
