// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#pragma once

#include <filesystem>
#include <string>

#include "libsieve/util/results/result.hpp"

namespace sieve::bench {

// A temporary directory that is removed with everything in it.
class Workplace {
  public:
    static Result<Workplace> create();
    Workplace(Workplace&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
    Workplace& operator=(Workplace&&) = delete;
    ~Workplace();

    [[nodiscard]] std::string file(const char* name) const { return path_ / name; }

  private:
    explicit Workplace(std::filesystem::path path) : path_(std::move(path)) {}

    std::filesystem::path path_;
};

} // namespace sieve::bench
