// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a publisher remembers beside its signing key: the serial of the last manifest that it published for
// each fleet. Whoever may write to etcd can put an older one back; without this, a publisher would take it
// for the present one and sign its sets anew.
//
//     KEY.serials    {"FLEET":SERIAL,...}
#pragma once

#include <cstdint>
#include <string>

#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

// By the file of the key; 0: nothing is known, or what is kept cannot be understood. Errors: those of
// read_small_file().
[[nodiscard]] Result<std::uint64_t> last_serial(const std::string& key_file, const std::string& fleet);

// Replaces the file as a whole. Errors: those of read_small_file() and write_output().
[[nodiscard]] Status keep_serial(const std::string& key_file, const std::string& fleet, std::uint64_t serial);

} // namespace sieve::fleet
