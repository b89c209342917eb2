// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The service's log: sentences for people, with fields for machines.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libsieve/util/results/result.hpp"

namespace sieve::service {

// The numbers are those of syslog(3).
enum class LogLevel : std::uint8_t {
    error = 3,
    warning = 4,
    notice = 5, // something of what is in force has changed
    info = 6,
};

// Names are in capitals, such as "SET" and "INTERFACE"; xdp-sieved(8) lists them.
using LogFields = std::vector<std::pair<std::string, std::string>>;

// Every thread may write.
class Log {
  public:
    virtual ~Log() = default;
    virtual void write(LogLevel level, const std::string& sentence, const LogFields& fields) = 0;

    void error(const std::string& sentence, const LogFields& fields = {}) {
        write(LogLevel::error, sentence, fields);
    }
    void warning(const std::string& sentence, const LogFields& fields = {}) {
        write(LogLevel::warning, sentence, fields);
    }
    void notice(const std::string& sentence, const LogFields& fields = {}) {
        write(LogLevel::notice, sentence, fields);
    }
    void info(const std::string& sentence, const LogFields& fields = {}) {
        write(LogLevel::info, sentence, fields);
    }
};

enum class LogChoice : std::uint8_t {
    automatic, // the journal if standard error goes there, else standard error
    journal,   // standard error where there is none
    standard_error,
};

// "auto", "journal" or "stderr".
[[nodiscard]] Result<LogChoice> parse_log_choice(std::string_view text);

[[nodiscard]] std::unique_ptr<Log> make_log(LogChoice choice);

} // namespace sieve::service
