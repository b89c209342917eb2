// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/live/watched_list.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "libsieve/feeds/entry.hpp"
#include "libsieve/util/printable.hpp"
#include "libsieve/util/unique_fd.hpp"

namespace sieve::service::live {

namespace {

constexpr std::int64_t nanoseconds = 1'000'000'000;

// Adds the addresses of the lines. False if a line is neither an address nor a comment: whoever reads the
// whole list says what is wrong with it.
bool take_lines(std::string_view lines, std::vector<Prefix>& to) {
    while (!lines.empty()) {
        const std::size_t end = std::min(lines.find('\n'), lines.size());
        std::string_view line = lines.substr(0, end);
        lines.remove_prefix(std::min(end + 1, lines.size()));
        while (!line.empty() && (entry::is_blank(line.front()) || line.front() == '\r'))
            line.remove_prefix(1);
        if (line.empty() || entry::is_comment(line.front())) continue;
        sieve_key key{};
        entry::Fault fault;
        const char* at = line.data();
        const char* const stop = line.data() + line.size();
        if (!entry::parse_entry(at, stop, SIEVE_FIELD_SRC, key, fault)) return false;
        while (at != stop && (entry::is_blank(*at) || *at == '\r')) at++;
        if (at != stop && !entry::is_comment(*at)) return false;
        to.push_back({address_number(key.word[0], key.word[1])});
    }
    return true;
}

// Length of the common beginning, eight bytes at a time where that is possible (std::mismatch compiles to
// it).
std::size_t common_head(std::string_view a, std::string_view b) {
    constexpr std::size_t block = 4096;
    const std::size_t length = std::min(a.size(), b.size());
    std::size_t at = 0;
    while (at + block <= length && a.substr(at, block) == b.substr(at, block)) at += block;
    while (at < length && a[at] == b[at]) at++;
    return at;
}

std::size_t common_tail(std::string_view a, std::string_view b) {
    constexpr std::size_t block = 4096;
    const std::size_t length = std::min(a.size(), b.size());
    std::size_t tail = 0;
    while (tail + block <= length &&
           a.substr(a.size() - tail - block, block) == b.substr(b.size() - tail - block, block))
        tail += block;
    while (tail < length && a[a.size() - tail - 1] == b[b.size() - tail - 1]) tail++;
    return tail;
}

} // namespace

ChangedLines changed_lines(std::string_view before, std::string_view now) {
    std::size_t head = common_head(before, now);
    if (head == before.size() && head == now.size()) return {};
    // Back to the beginning of the line.
    const std::size_t newline = head == 0 ? std::string_view::npos : before.substr(0, head).rfind('\n');
    head = newline == std::string_view::npos ? 0 : newline + 1;
    before.remove_prefix(head);
    now.remove_prefix(head);
    std::size_t tail = common_tail(before, now);
    // On to the beginning of a line: the byte before the tail, which differs, belongs to another one only if
    // the tail begins after the end of a line. Of the tail, whole lines after its first newline are the same.
    const std::size_t line = before.substr(before.size() - tail).find('\n');
    tail = line == std::string_view::npos ? 0 : tail - line - 1;
    before.remove_suffix(tail);
    now.remove_suffix(tail);
    return {before, now};
}

Result<WatchedList::Version> WatchedList::read() const {
    const auto fault = [&](const std::string& what) {
        return bad_input(fmt::format("{}: {}", printable(path_), what));
    };
    const UniqueFd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0) return fault("cannot be read: " + errno_text(errno));
    if (!S_ISREG(info.st_mode)) return fault("is no regular file");
    if (static_cast<std::uint64_t>(info.st_size) > most_bytes_)
        return fault(fmt::format("larger than {} bytes, the limit", most_bytes_));
    const auto stamp_of = [](const struct stat& of) {
        return Stamp{of.st_dev, of.st_ino, of.st_size, of.st_mtim.tv_sec * nanoseconds + of.st_mtim.tv_nsec,
                     of.st_ctim.tv_sec * nanoseconds + of.st_ctim.tv_nsec};
    };
    Version version{stamp_of(info), {}};
    if (kept_ && kept_->stamp == version.stamp) return version;
    version.text.resize(static_cast<std::size_t>(info.st_size));
    for (std::size_t got = 0; got < version.text.size();) {
        const ssize_t more = ::pread(file.get(), version.text.data() + got, version.text.size() - got,
                                     static_cast<off_t>(got));
        if (more < 0 && errno == EINTR) continue;
        if (more < 0) return fault("cannot be read: " + errno_text(errno));
        if (more == 0) break;
        got += static_cast<std::size_t>(more);
    }
    if (::fstat(file.get(), &info) != 0 || stamp_of(info) != version.stamp)
        return failure(ErrorKind::changed_meanwhile,
                       fmt::format("{}: changed while it was read", printable(path_)));
    return version;
}

Result<WatchedList::Look> WatchedList::look() {
    next_.reset();
    SIEVE_ASSIGN(Version version, read());
    Look look;
    if (kept_ && kept_->stamp == version.stamp) return look;
    next_ = std::move(version);
    if (!kept_) {
        look.outcome = Outcome::unknown;
        return look;
    }
    const ChangedLines lines = changed_lines(kept_->text, next_->text);
    const bool plain =
        take_lines(lines.before, look.difference.removed) && take_lines(lines.now, look.difference.added);
    look.outcome = plain ? Outcome::lines : Outcome::unknown;
    return look;
}

void WatchedList::keep() {
    if (next_) kept_ = std::move(next_);
    next_.reset();
}

} // namespace sieve::service::live
