// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/log.hpp"

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdlib>

#include <fmt/core.h>
#include <systemd/sd-journal.h>

namespace sieve::service {

namespace {

// One write(2) for each line, so that lines of two threads do not mix.
class StandardErrorLog final : public Log {
  public:
    void write(LogLevel level, const std::string& sentence, const LogFields&) override {
        const char* word = level == LogLevel::error     ? "error: "
                           : level == LogLevel::warning ? "warning: "
                                                        : "";
        const std::string line = fmt::format("xdp-sieved: {}{}\n", word, sentence);
        (void)!::write(STDERR_FILENO, line.data(), line.size());
    }
};

class JournalLog final : public Log {
  public:
    void write(LogLevel level, const std::string& sentence, const LogFields& fields) override {
        std::vector<std::string> texts{"MESSAGE=" + sentence,
                                       fmt::format("PRIORITY={}", static_cast<int>(level))};
        for (const auto& [name, value] : fields) texts.push_back(fmt::format("{}={}", name, value));
        std::vector<iovec> parts;
        for (std::string& text : texts) parts.push_back({text.data(), text.size()});
        // Where there is no journal, sd_journal_sendv() has no error.
        if (::access(journal_socket, F_OK) != 0 ||
            ::sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) < 0)
            instead_.write(level, sentence, fields);
    }

  private:
    static constexpr const char* journal_socket = "/run/systemd/journal/socket";
    StandardErrorLog instead_;
};

// systemd names the device and inode of the journal's stream in $JOURNAL_STREAM.
bool standard_error_is_the_journal() {
    const char* stream = std::getenv("JOURNAL_STREAM"); // NOLINT(concurrency-mt-unsafe)
    struct stat info {};
    return stream != nullptr && ::fstat(STDERR_FILENO, &info) == 0 &&
           fmt::format("{}:{}", info.st_dev, info.st_ino) == stream;
}

} // namespace

Result<LogChoice> parse_log_choice(std::string_view text) {
    if (text == "auto") return LogChoice::automatic;
    if (text == "journal") return LogChoice::journal;
    if (text == "stderr") return LogChoice::standard_error;
    return invalid_request(fmt::format("--log: {}: expected auto, journal or stderr", text));
}

std::unique_ptr<Log> make_log(LogChoice choice) {
    const bool journal =
        choice == LogChoice::journal || (choice == LogChoice::automatic && standard_error_is_the_journal());
    if (journal) return std::make_unique<JournalLog>();
    return std::make_unique<StandardErrorLog>();
}

} // namespace sieve::service
