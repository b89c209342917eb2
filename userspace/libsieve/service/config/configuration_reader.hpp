// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// From TOML to a Configuration. All of it is checked, and nothing of it is taken if any of it is wrong.
//
// A configuration is a file, and the files conf.d/*.toml beside it, in the order of their names. These add
// sets, and bind them to interfaces: an [[interface]] that an earlier file has, too, gets further sets behind
// its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::service {

struct Mistake {
    std::uint32_t line = 0; // from 1; 0: the file as a whole
    std::uint32_t column = 0;
    std::string key;     // "set.bad.fpr"; empty where there is none
    std::string message; // what was found and what was expected
    std::string file{};  // where it is; empty: in the first file
};

// "FILE:LINE:COLUMN: KEY: MESSAGE"; `path` is that of the first file.
[[nodiscard]] std::string mistake_text(const std::string& path, const Mistake& mistake);

// A file's text. Paths of sources that are not absolute start from the file's folder.
struct ConfigurationFile {
    std::string path;
    std::string text;
};

// All mistakes, in the order of the files; none if the configuration was read.
struct ReadConfiguration {
    Configuration configuration;
    std::vector<Mistake> mistakes;
};
[[nodiscard]] ReadConfiguration read_configuration(const std::vector<ConfigurationFile>& files);
[[nodiscard]] ReadConfiguration read_configuration(std::string_view text, const std::string& path);

// Where a configuration may come from.
enum class From : std::uint8_t {
    anywhere, // a pipe is waited for
    files,    // regular files only: nothing keeps the reader waiting
};

// The file, and those of conf.d beside it, if it is a regular file. Error: one cannot be read.
[[nodiscard]] Result<std::vector<ConfigurationFile>> find_configuration(const std::string& path,
                                                                        From from = From::anywhere);

// Reads these files. The error is the first mistake, and says how many more there are.
[[nodiscard]] Result<Configuration> load_configuration(const std::string& path, From from = From::anywhere);

} // namespace sieve::service
