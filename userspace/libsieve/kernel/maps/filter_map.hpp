// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A filter image inside the kernel: the same bytes, in a BPF array.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "libsieve/image/image.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {

// A set's name as the name of a map: the kernel takes 15 letters, digits, underscores and dots.
[[nodiscard]] std::string map_name(const std::string& name);

// An empty array of `lines` lines, with the flags of a filter map. `name` comes from map_name().
[[nodiscard]] UniqueFd create_line_array(const char* name, std::uint32_t lines);

class FilterMap {
  public:
    // Makes a map and copies the image into it, in one memcpy. `bpftool map` shows `name`.
    static Result<FilterMap> create(const Image& image, const std::string& name);
    // The same for lines that are no image.
    static Result<FilterMap> create(std::span<const sieve_line> lines, const std::string& name);

    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] std::uint32_t id() const { return id_; }

  private:
    FilterMap(UniqueFd fd, std::uint32_t id) : fd_(std::move(fd)), id_(id) {}

    UniqueFd fd_;
    std::uint32_t id_;
};

} // namespace sieve::kernel
