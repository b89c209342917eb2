// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A kernel in small, for tests of what adds its counters up: programs with slots, in which sets come and go
// by the rules of kernel/maps/set_table.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "libsieve/control/query/sample.hpp"

namespace sieve::service::watching::test {

class SmallKernel {
  public:
    explicit SmallKernel(std::string interface = "eth0") : interface_(std::move(interface)) {}

    // Another program in place of the present one, without a set.
    void replace_program() {
        program_id_ = ++last_id();
        stats_ = {};
        sets_.clear();
    }
    void remove_program() { program_id_ = 0; }
    [[nodiscard]] bool runs() const { return program_id_ != 0; }

    // A set comes, in the lowest free slot, and counts from zero.
    void add(const std::string& name, bool verify = false) {
        kernel::SetInForce set;
        set.name = name;
        while (std::any_of(sets_.begin(), sets_.end(), [&](const auto& s) { return s.slot == set.slot; }))
            set.slot++;
        set.baseline = stats_.hit[set.slot];
        set.verified_baseline = stats_.verified[set.slot];
        set.exact_id = verify ? 77 : 0;
        sets_.push_back(set);
    }
    void remove(const std::string& name) {
        std::erase_if(sets_, [&](const kernel::SetInForce& set) { return set.name == name; });
    }
    // Another filter: counting goes on, what verification showed begins anew.
    void swap(const std::string& name) {
        kernel::SetInForce& set = find(name);
        set.map_id++;
        set.verified_baseline = stats_.verified[set.slot];
    }
    void packets(const std::string& name, std::uint64_t count, std::uint64_t non_members = 0,
                 std::uint64_t avoided = 0) {
        const std::uint32_t slot = find(name).slot;
        stats_.hit[slot].packets += count;
        stats_.hit[slot].bytes += 60 * count;
        stats_.verified[slot].non_members += non_members;
        stats_.verified[slot].avoided += avoided;
        stats_.dropped.packets += count;
        stats_.dropped.bytes += 60 * count;
        stats_.outcome[SIEVE_OUTCOME_COMPLETE] += count;
    }
    [[nodiscard]] bool has(const std::string& name) const {
        return std::any_of(sets_.begin(), sets_.end(), [&](const auto& set) { return set.name == name; });
    }

    [[nodiscard]] std::vector<control::Sample> samples() const {
        if (!runs()) return {};
        control::Sample sample;
        sample.interface = interface_;
        sample.program_id = program_id_;
        sample.stats = stats_;
        for (const kernel::SetInForce& set : sets_) {
            control::SetStatus status{};
            status.set = set;
            sample.table.sets.push_back(status);
        }
        return {sample};
    }

  private:
    static std::uint32_t& last_id() {
        static std::uint32_t id = 100;
        return id;
    }
    kernel::SetInForce& find(const std::string& name) {
        return *std::find_if(sets_.begin(), sets_.end(), [&](const auto& set) { return set.name == name; });
    }

    std::string interface_;
    std::uint32_t program_id_ = 0;
    kernel::Stats stats_{};
    std::vector<kernel::SetInForce> sets_;
};

} // namespace sieve::service::watching::test
