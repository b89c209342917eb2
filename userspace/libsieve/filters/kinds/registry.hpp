// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kinds of filter that there are. Each line of SIEVE_KINDS (sieve/image.h) needs an object NAME_kind,
// defined in its room; without it the registry does not compile or link.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/filters/filter_kind.hpp"

namespace sieve {

/// All kinds, in the order in which people are shown them: that of SIEVE_KINDS.
[[nodiscard]] std::vector<const FilterKind*> filter_kinds();

/// The kind that is built if nobody chooses one.
[[nodiscard]] const FilterKind& standard_kind();

/// The kind of that number. Numbers that no kind has lead to a kind that has no valid header, holds nothing
/// and builds nothing.
[[nodiscard]] const FilterKind& kind_of(std::uint32_t number);
[[nodiscard]] inline const FilterKind& kind_of(const sieve_lookup& lookup) {
    return kind_of(lookup.kind);
}

/// "blocked"; "unknown" for a number that no kind has.
[[nodiscard]] const char* kind_name(std::uint32_t number);

/// The kind of that name, or a usage error that lists all.
[[nodiscard]] Result<sieve_kind> parse_kind(std::string_view name);

/// "blocked, bloom or ddlcbf": the names of all kinds of which that is true.
[[nodiscard]] std::string names_of_kinds(bool (*wanted)(const KindFacts&) = nullptr);

/// What is wrong with line 0's geometry, whatever the filter's content; empty if nothing is.
[[nodiscard]] std::string geometry_fault(const sieve_lookup& lookup);

/// The builder for these options. Error: an option that the kind does not take, or a value that cannot be.
[[nodiscard]] Result<std::unique_ptr<KindBuilder>> kind_builder(const KindOptions& options);

/// One more kind, for as long as this object lives: an experiment, or a test. It has a number of its own and
/// everything in user space treats it as it does the others; packets do not know it. Kinds come and go on one
/// thread, while no other asks for any.
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
