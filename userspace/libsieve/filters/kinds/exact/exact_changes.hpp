// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Changes the keys of a table (sieve/exact_table.h) while packets are looked up in it. docs/live-changes.md
// proves that no lookup misses a member.
//
// What has to be done with a wait between one step and the next is a script. Many scripts run side by side,
// so that they share their waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <sieve/exact_table.h>

#include "libsieve/filters/kinds/exact/exact_ipv4.hpp"
#include "libsieve/filters/kinds/exact/exact_ipv6.hpp"
#include "libsieve/filters/kinds/exact/exact_lanes.hpp"
#include "libsieve/keys/address_range.hpp"

namespace sieve::exact {

/// One store that lookups see whole, and not before all stores that came before it.
inline void publish(__u64& word, std::uint64_t value) {
    std::atomic_ref<__u64>(word).store(value, std::memory_order_release);
}

/// Replaces a word that packets set marks in, by what `change` makes of it. No mark that is set meanwhile is
/// lost: `change` sees it.
template <class Change>
void replace_marked(__u64& word, const Change& change) {
    std::atomic_ref<__u64> at(word);
    __u64 seen = at.load(std::memory_order_relaxed);
    while (
        !at.compare_exchange_weak(seen, change(seen), std::memory_order_release, std::memory_order_relaxed)) {
    }
}

/// What became of a key that is to come.
enum class Begun {
    in,      ///< it is in the table now
    moving,  ///< keys move to make room for it; it is in once all scripts have ended
    nowhere, ///< there is no room, or only for keys that may not move before the scripts have ended
};

/// Steps of many scripts. The first step of each is done when it is added.
template <class Step>
class Scripts {
  public:
    template <class Do>
    void add(std::vector<Step> steps, const Do& make) {
        make(steps.front());
        if (steps.size() > 1) running_.push_back({std::move(steps), 1});
    }
    /// Does the next step of each. Call it after a wait.
    template <class Do>
    void go_on(const Do& make) {
        for (Script& script : running_) make(script.steps[script.next++]);
        std::erase_if(running_, [](const Script& script) { return script.next == script.steps.size(); });
    }
    [[nodiscard]] bool ended() const { return running_.empty(); }

  private:
    struct Script {
        std::vector<Step> steps;
        std::size_t next;
    };
    std::vector<Script> running_;
};

/// The IPv4 part. Every key that is a member stands in one of its words, and so does a key that moves, at
/// every moment, as the copy is there before the old lane is overwritten.
class Ipv4Changes {
  public:
    Ipv4Changes(const sieve_exact& exact, std::span<__u64> words)
        : exact_(exact), lanes_(exact), words_(words) {}

    /// The value of a key that is there; 0 in a table without values.
    [[nodiscard]] std::optional<std::uint32_t> value_of(std::uint32_t address) const;
    /// Gives a key that is there another value, by a single store. Not while scripts run.
    void set_value(std::uint32_t address, std::uint32_t value);
    /// Marks a key, if it is there, in a table with marks.
    void mark(std::uint32_t address);
    /// The key is not there from this call's single store on. Not while scripts run.
    void erase(std::uint32_t address);
    /// Begins to bring in a key that is not there.
    [[nodiscard]] Begun insert(std::uint32_t address, std::uint32_t value);

    /// Does what may be done after a wait; true: once more after another one.
    bool go_on() {
        scripts_.go_on([this](const Store& store) { make(store); });
        return !scripts_.ended();
    }
    [[nodiscard]] bool moves_keys() const { return !scripts_.ended(); }
    /// All scripts have ended: every key may move again.
    void end_round() { planned_.clear(); }

    /// Takes the second one of two copies out, which a writer left that died. All lookups that may have begun
    /// before the younger one was there have ended.
    void remove_copies();

  private:
    struct Store {
        std::uint32_t word;
        std::uint32_t lane;
        std::uint64_t content;
    };
    // A word as it will be when the scripts have ended, and the lanes that are part of one: a key there may
    // not move, as it is on its way or stands twice.
    struct Planned {
        std::uint64_t word;
        std::uint32_t held;
    };

    // A key that leaves the lane takes its mark along, to its other lane, if it is there.
    void make(const Store& store);
    void mark_in(std::uint32_t word, std::uint64_t content);
    // Where the key is, and as what; no lane of its first word if it is nowhere.
    struct Found {
        std::uint32_t word;
        std::uint64_t lanes; // those that hold it, as Lanes::equal() has them
        std::uint64_t content;
    };
    [[nodiscard]] Found find(std::uint32_t address, std::uint32_t value) const;
    [[nodiscard]] sieve_exact_place locate(std::uint32_t address) const {
        return sieve_exact_locate(&exact_, sieve_exact_permute(&exact_, address));
    }
    [[nodiscard]] std::uint64_t planned(std::uint32_t word) const {
        const auto found = planned_.find(word);
        return found == planned_.end() ? words_[word] : found->second.word;
    }
    [[nodiscard]] bool is_held(std::uint32_t word, std::uint32_t lane) const {
        const auto found = planned_.find(word);
        return found != planned_.end() && (found->second.held >> lane & 1) != 0;
    }
    void hold(const Store& store);
    void put(const Store& store);

    const sieve_exact& exact_;
    Lanes lanes_;
    std::span<__u64> words_;
    std::unordered_map<std::uint32_t, Planned> planned_;
    Scripts<Store> scripts_;
    RoomSearch search_;
};

/// The IPv6 part. An address is two words of a line, so nothing puts it there, or takes it out, at once.
/// While this happens, lookups may see the one word of the address and the other one of the free place. So
/// nothing is put where another address was before a wait: no lookup sees words of two addresses.
///
/// Values are words of their own. A lookup reads the address first, then the value. So a member's copy gets
/// its value a wait before its address, and the value of a place that was freed goes a wait after the address
/// (clear_values()).
class Ipv6Changes {
  public:
    /// `values` is empty in a table without values. `marks`: 1 in a table with marks.
    Ipv6Changes(sieve_exact_ipv6& part, std::span<sieve_line> lines, std::span<sieve_line> values,
                std::uint32_t marks)
        : part_(part), lines_(lines), values_(values), marks_(marks) {}

    /// The value of an address that is there; 0 in a table without values.
    [[nodiscard]] std::optional<std::uint32_t> value_of(uint128 address) const;
    /// Gives an address that is there another value, by a single store. Not while scripts run.
    void set_value(uint128 address, std::uint32_t value);
    /// Marks an address, if it is there, in a table with marks.
    void mark(uint128 address);
    /// Wait before something is inserted, and before the change ends. Not while scripts run.
    void erase(uint128 address);
    [[nodiscard]] Begun insert(uint128 address, std::uint32_t value);
    bool go_on() {
        scripts_.go_on([this](const Put& put) { make(put); });
        return !scripts_.ended();
    }
    [[nodiscard]] bool moves_keys() const { return !scripts_.ended(); }
    void end_round() { planned_.clear(); }

    /// Whether places were freed whose values are still there. Then wait, and clear_values().
    [[nodiscard]] bool has_stale_values() const { return !stale_.empty(); }
    void clear_values();

    /// Frees the place that a writer was writing when it died, and takes the second one of two copies out.
    /// Wait before and afterwards.
    void remove_copies();
    [[nodiscard]] std::uint64_t count() const; ///< addresses, each copy counted

  private:
    struct Place {
        std::uint32_t line;
        int place;
    };
    // A step: an address is stored, or a value.
    struct Put {
        std::uint32_t line;
        int place;
        uint128 address;
        std::optional<std::uint32_t> value{};
    };
    struct Planned {
        uint128 address[SIEVE_EXACT_IPV6_WAYS];
        std::uint32_t held;
    };
    struct Step {
        std::uint32_t line;
        std::int32_t before; // the step whose address would come here; -1: the new one would
        int place;           // in that step's line
    };

    void make(const Put& put);
    // An address that leaves the place takes its mark along, to its other place, if it is there.
    void clear_upper(const Put& put);
    void mark_at(const Place& at);
    [[nodiscard]] uint128 now_at(std::uint32_t line, int place) const {
        return address_at(lines_[line], place, marks_);
    }
    [[nodiscard]] uint128 planned(std::uint32_t line, int place) const {
        const auto found = planned_.find(line);
        return found == planned_.end() ? now_at(line, place) : found->second.address[place];
    }
    [[nodiscard]] bool is_held(std::uint32_t line, int place) const {
        const auto found = planned_.find(line);
        return found != planned_.end() && (found->second.held >> place & 1) != 0;
    }
    void hold(const Put& put);
    [[nodiscard]] int free_places(std::uint32_t line) const;
    [[nodiscard]] int first_free(std::uint32_t line) const;
    [[nodiscard]] bool visited(std::int32_t step, std::uint32_t line) const;
    void begin_moves(uint128 address, std::uint32_t value, int free);
    [[nodiscard]] std::optional<Place> find(uint128 address, const Place& but = {0, -1}) const;
    void store_value(const Place& at, std::uint32_t value);

    sieve_exact_ipv6& part_;
    std::span<sieve_line> lines_;
    std::span<sieve_line> values_;
    std::uint32_t marks_;
    std::vector<Place> stale_;
    std::unordered_map<std::uint32_t, Planned> planned_;
    Scripts<Put> scripts_;
    std::vector<Step> steps_;
};

} // namespace sieve::exact
