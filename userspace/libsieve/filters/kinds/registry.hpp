// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The registry of all filter kinds. Each line of SIEVE_KINDS (sieve/image.h) needs an object NAME_kind,
// defined in the kind's directory; without it the registry does not compile or link.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/filters/filter_kind.hpp"

namespace sieve {

/// Which number and which name mean which kind. A value that does not change: whoever needs other kinds makes
/// another one and passes it. The programs pass built_in_kinds().
class Kinds {
  public:
    /// The same kinds and one more, with a number and a name of its own, for an experiment or a test. User
    /// space treats the kind like the others; the packet path does not know it. The kind must outlive the
    /// result.
    [[nodiscard]] Kinds with(const FilterKind& kind) const;

    /// All kinds, in the order in which users see them: that of SIEVE_KINDS.
    [[nodiscard]] std::vector<const FilterKind*> all() const;

    /// The kind with this number. For a number that no kind has, the result is a kind that accepts no header,
    /// holds nothing and builds nothing.
    [[nodiscard]] const FilterKind& of(std::uint32_t number) const;
    [[nodiscard]] const FilterKind& of(const sieve_lookup& lookup) const { return of(lookup.kind); }

    /// The kind with this name, or a usage error that lists all names.
    [[nodiscard]] Result<sieve_kind> parse(std::string_view name) const;

    /// "blocked, bloom or ddlcbf": the names of all kinds for which `wanted` is true.
    [[nodiscard]] std::string names(bool (*wanted)(const KindFacts&) = nullptr) const;

    /// Says what is wrong with the geometry in line 0, regardless of the filter's content; empty if nothing
    /// is.
    [[nodiscard]] std::string geometry_fault(const sieve_lookup& lookup) const;

    /// Checks the options that all kinds share against the kind's facts.
    [[nodiscard]] Status check(const KindOptions& options) const;

    /// The builder for these options. Error: an option that the kind does not take, or an impossible value.
    [[nodiscard]] Result<std::unique_ptr<KindBuilder>> builder(const KindOptions& options) const;

  private:
    friend const Kinds& built_in_kinds();
    /// Those of SIEVE_KINDS.
    constexpr Kinds();

    std::array<const FilterKind*, std::numeric_limits<__u8>::max() + 1> by_number_{};
};

[[nodiscard]] const Kinds& built_in_kinds();

/// Of the built-in kinds: those that hash, which are all but the exact ones (FilterKind::exact).
[[nodiscard]] std::vector<const FilterKind*> hashing_kinds();

/// The kind that choose_kind (filters/kinds/choice.hpp) chooses if nothing is asked for.
[[nodiscard]] const FilterKind& standard_kind();

/// "blocked"; "unknown" for a number that no built-in kind has.
[[nodiscard]] const char* kind_name(std::uint32_t number);

// What Kinds says of the built-in kinds.
[[nodiscard]] inline std::vector<const FilterKind*> filter_kinds() {
    return built_in_kinds().all();
}
[[nodiscard]] inline const FilterKind& kind_of(std::uint32_t number) {
    return built_in_kinds().of(number);
}
[[nodiscard]] inline const FilterKind& kind_of(const sieve_lookup& lookup) {
    return built_in_kinds().of(lookup);
}
[[nodiscard]] inline Result<sieve_kind> parse_kind(std::string_view name) {
    return built_in_kinds().parse(name);
}
[[nodiscard]] inline std::string names_of_kinds(bool (*wanted)(const KindFacts&) = nullptr) {
    return built_in_kinds().names(wanted);
}
[[nodiscard]] inline std::string geometry_fault(const sieve_lookup& lookup) {
    return built_in_kinds().geometry_fault(lookup);
}
[[nodiscard]] inline Status check_kind_options(const KindOptions& options) {
    return built_in_kinds().check(options);
}
[[nodiscard]] inline Result<std::unique_ptr<KindBuilder>> kind_builder(const KindOptions& options) {
    return built_in_kinds().builder(options);
}

} // namespace sieve
