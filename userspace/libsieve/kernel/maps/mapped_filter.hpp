// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The lines of a filter in force, mapped: packets see what is written here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sieve/image.h>

#include "libsieve/util/results/result.hpp"

namespace sieve::kernel {

// Move-only owner of a mapping of a filter map. A writer holds the Lock, and each single store leaves a state
// that packets may see.
class MappedFilter {
  public:
    // Maps a filter that a table names. An error if the map is no filter.
    static Result<MappedFilter> open(std::uint32_t map_id);
    // The same for a table's joint filter (sieve/joint.h).
    static Result<MappedFilter> open_joint(std::uint32_t map_id);

    MappedFilter(MappedFilter&& other) noexcept;
    MappedFilter& operator=(MappedFilter&& other) noexcept;
    ~MappedFilter();

    [[nodiscard]] const sieve_lookup& lookup() const;
    [[nodiscard]] const sieve_probes& probes() const;
    [[nodiscard]] sieve_file& file();

    // The filter's own lines, as many as its header says.
    [[nodiscard]] std::span<sieve_line> filter();

    // What its image had behind these lines. A joint filter has neither.
    [[nodiscard]] std::span<const sieve_witness> witnesses();
    [[nodiscard]] std::span<const sieve_exception> exceptions();

  private:
    MappedFilter(sieve_line* lines, std::size_t count) : lines_(lines), count_(count) {}
    static Result<MappedFilter> map(std::uint32_t map_id);
    // Whether there are as many lines as the header says, which makes sense.
    [[nodiscard]] bool has_lines();

    sieve_line* lines_ = nullptr;
    std::size_t count_ = 0;
};

} // namespace sieve::kernel
