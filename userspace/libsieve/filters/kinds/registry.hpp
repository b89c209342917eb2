// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The registry of all filter kinds. Each line of SIEVE_KINDS (sieve/image.h) needs an object NAME_kind,
// defined in the kind's directory; without it the registry does not compile or link.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/filters/filter_kind.hpp"

namespace sieve {

/// All kinds, in the order in which users see them: that of SIEVE_KINDS.
[[nodiscard]] std::vector<const FilterKind*> filter_kinds();

/// Those that hash: all but the exact ones (FilterKind::exact).
[[nodiscard]] std::vector<const FilterKind*> hashing_kinds();

/// The kind that choose_kind (filters/kinds/choice.hpp) chooses if nothing is asked for.
[[nodiscard]] const FilterKind& standard_kind();

/// The kind with this number. For a number that no kind has, the result is a kind that accepts no header,
/// holds nothing and builds nothing.
[[nodiscard]] const FilterKind& kind_of(std::uint32_t number);
[[nodiscard]] inline const FilterKind& kind_of(const sieve_lookup& lookup) {
    return kind_of(lookup.kind);
}

/// "blocked"; "unknown" for a number that no kind has.
[[nodiscard]] const char* kind_name(std::uint32_t number);

/// The kind with this name, or a usage error that lists all names.
[[nodiscard]] Result<sieve_kind> parse_kind(std::string_view name);

/// "blocked, bloom or ddlcbf": the names of all kinds for which `wanted` is true.
[[nodiscard]] std::string names_of_kinds(bool (*wanted)(const KindFacts&) = nullptr);

/// Says what is wrong with the geometry in line 0, regardless of the filter's content; empty if nothing is.
[[nodiscard]] std::string geometry_fault(const sieve_lookup& lookup);

/// Checks the options that all kinds share against the kind's facts.
[[nodiscard]] Status check_kind_options(const KindOptions& options);

/// The builder for these options. Error: an option that the kind does not take, or an impossible value.
[[nodiscard]] Result<std::unique_ptr<KindBuilder>> kind_builder(const KindOptions& options);

/// Registers one more kind, for an experiment or a test, while this object exists. The kind gets its own
/// number. User space treats it like the others; the packet path does not know it. Add and remove kinds on
/// one thread, while no other thread uses the registry.
class AdditionalKind {
  public:
    explicit AdditionalKind(const FilterKind& kind);
    ~AdditionalKind();
    AdditionalKind(const AdditionalKind&) = delete;
    AdditionalKind& operator=(const AdditionalKind&) = delete;

  private:
    std::uint32_t number_;
};

} // namespace sieve
