// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// From TOML to a Configuration. The whole file is judged, and nothing of it is taken if any of it is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/service/config/configuration.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::service {

struct Mistake {
    std::uint32_t line = 0; // from 1; 0: the file as a whole
    std::uint32_t column = 0;
    std::string key;     // "set.bad.fpr"; empty where there is none
    std::string message; // what was found and what was expected
};

// "FILE:LINE:COLUMN: KEY: MESSAGE"
[[nodiscard]] std::string mistake_text(const std::string& path, const Mistake& mistake);

// All mistakes, in the order of the file; none if the configuration was read. `path` is the file's name;
// paths of sources that are not absolute start from its folder.
struct ReadConfiguration {
    Configuration configuration;
    std::vector<Mistake> mistakes;
};
[[nodiscard]] ReadConfiguration read_configuration(std::string_view text, const std::string& path);

// Where a configuration may come from.
enum class From : std::uint8_t {
    anywhere, // a pipe is waited for
    files,    // regular files only: nothing keeps the reader waiting
};

// Reads the file. The error is the first mistake, and says how many more there are.
[[nodiscard]] Result<Configuration> load_configuration(const std::string& path, From from = From::anywhere);

} // namespace sieve::service
