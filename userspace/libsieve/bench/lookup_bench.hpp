// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// One lookup of one address in the kernel: our filters, the kernel's own sets, and what any of them must
// cost.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libsieve/bench/bench_object.hpp"
#include "libsieve/bench/summary.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/util/progress.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::bench {

struct LookupOptions {
    std::uint64_t keys = 1'000'000;
    double bits_per_key = 16;
    std::uint32_t rounds = 15; // measurements of everything, in turn
    double milliseconds = 3;   // a measurement lasts
};

// Nanoseconds a lookup, a round each; what a baseline does not depend on is measured once only.
struct Times {
    std::array<std::array<Rounds, spacings>, traffics> of;
    [[nodiscard]] const Rounds& at(Traffic traffic, Spacing spacing) const {
        return of[static_cast<std::size_t>(traffic)][static_cast<std::size_t>(spacing)];
    }
};

enum class Role {
    empty, // the loop alone
    base,  // makes a key and hashes it
    floor, // base, and one random line of as many as the filter has
    touch, // base, and two lines
    filter,
    peer,
};

struct Contestant {
    std::string name;
    Role role = Role::peer;
    bool reference = false;      // what the others are compared with: one of the filters
    std::string settings;        // for people
    std::uint64_t bytes = 0;     // what the kernel holds for it
    std::optional<double> load;  // seconds from keys (peers) or image (filters) to a map in the kernel
    std::optional<double> build; // seconds from keys to image
    std::optional<double> fpr;   // expected
    std::array<double, traffics> found{}; // share of yes
    Times times;
};

struct LookupTable {
    std::uint64_t keys = 0;
    double bits_per_key = 0;
    std::vector<Contestant> contestants;
    std::vector<std::string> skipped; // and why
    std::optional<Image> image;       // of the filter with two choices, for further measurements

    [[nodiscard]] const Contestant& find(Role role) const;
    [[nodiscard]] const Contestant& reference() const;

    // Nanoseconds a lookup without what key and hash cost.
    [[nodiscard]] Rounds net(const Contestant& contestant, Traffic traffic, Spacing spacing) const;
    // That as a multiple of the floor's.
    [[nodiscard]] Rounds to_floor(const Contestant& contestant, Traffic traffic, Spacing spacing) const;
    // Likewise, of the reference's: how many times faster that is.
    [[nodiscard]] Rounds to_reference(const Contestant& contestant, Traffic traffic, Spacing spacing) const;
};

Result<LookupTable> bench_lookups(const LookupOptions& options, const Progress& progress);

} // namespace sieve::bench
