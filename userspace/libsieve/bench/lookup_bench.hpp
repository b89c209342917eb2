// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Measures one lookup of one address in the kernel: in our filters, in the kernel's own sets, and in
// baselines that show what any lookup must cost.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/bench/setup/bench_object.hpp"
#include "libsieve/bench/setup/summary.hpp"
#include "libsieve/util/parallel/progress.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::bench {

struct LookupOptions {
    std::uint64_t keys = 1'000'000;
    double bits_per_key = 16;
    std::uint32_t rounds = 15; // each contestant is measured once in every round
    double milliseconds = 3;   // how long one measurement lasts
};

// Nanoseconds per lookup, one number for each round. A contestant that a setting does not affect is measured
// only once.
struct Times {
    std::array<std::array<Rounds, spacings>, traffics> of;
    [[nodiscard]] const Rounds& at(Traffic traffic, Spacing spacing) const {
        return of[static_cast<std::size_t>(traffic)][static_cast<std::size_t>(spacing)];
    }
};

enum class Role {
    empty, // the loop alone
    base,  // makes a key and hashes it
    floor, // base, then reads one random line of as many as the filter has
    touch, // base, then reads two lines
    filter,
    peer,
};

struct Contestant {
    std::string name;
    Role role = Role::peer;
    bool reference = false;      // the filter that the others are compared with
    std::string settings;        // text for people
    std::uint64_t bytes = 0;     // that the kernel holds for it
    std::optional<double> load;  // seconds from keys (peers) or image (filters) to a map in the kernel
    std::optional<double> build; // seconds from keys to image
    std::optional<double> fpr;   // expected
    std::array<double, traffics> found{}; // share of lookups that answered yes
    Times times;
    Times floor; // of the floor in the same map, which took turns with the contestant; of filters only
};

struct LookupTable {
    std::uint64_t keys = 0;
    double bits_per_key = 0;
    std::vector<Contestant> contestants;
    std::vector<std::string> skipped; // what was left out, and why

    [[nodiscard]] const Contestant& find(Role role) const;
    [[nodiscard]] const Contestant& reference() const;

    // Nanoseconds per lookup, less the cost of key and hash.
    [[nodiscard]] Rounds net(const Contestant& contestant, Traffic traffic, Spacing spacing) const;
    // The net cost as a multiple of the floor's.
    [[nodiscard]] Rounds to_floor(const Contestant& contestant, Traffic traffic, Spacing spacing) const;
    // The net cost as a multiple of the reference's: how many times faster the reference is.
    [[nodiscard]] Rounds to_reference(const Contestant& contestant, Traffic traffic, Spacing spacing) const;
};

Result<LookupTable> bench_lookups(const LookupOptions& options, const Progress& progress);

} // namespace sieve::bench
