// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/watched_list.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include <fmt/core.h>

#include "libsieve/service/lists/plain_addresses.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service::live {

namespace {

constexpr std::int64_t nanoseconds = 1'000'000'000;

// What is compared at a time: it stays in the processor's cache.
constexpr std::size_t block_bytes = std::size_t{64} << 10;

} // namespace

std::optional<ChangedLines> changed_lines(std::string_view before, std::uint64_t now_bytes,
                                          const ReadAt& now) {
    std::string block(block_bytes, '\0');
    const std::uint64_t shorter = std::min<std::uint64_t>(before.size(), now_bytes);
    // The common beginning.
    std::uint64_t head = 0;
    while (head < shorter) {
        const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(block_bytes, shorter - head));
        if (!now(head, block.data(), bytes)) return std::nullopt;
        const std::string_view part = before.substr(head, bytes);
        if (part == std::string_view(block.data(), bytes)) {
            head += bytes;
            continue;
        }
        head += static_cast<std::size_t>(std::mismatch(part.begin(), part.end(), block.begin()).first -
                                         part.begin());
        break;
    }
    if (head == before.size() && head == now_bytes) return ChangedLines{before.size(), before.size(), {}};
    // Back to the beginning of the line.
    const std::size_t newline = head == 0 ? std::string_view::npos : before.substr(0, head).rfind('\n');
    head = newline == std::string_view::npos ? 0 : newline + 1;
    // The common end of what is left.
    std::uint64_t tail = 0;
    const std::uint64_t most = shorter - head;
    while (tail < most) {
        const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(block_bytes, most - tail));
        if (!now(now_bytes - tail - bytes, block.data(), bytes)) return std::nullopt;
        const std::string_view part = before.substr(before.size() - tail - bytes, bytes);
        if (part == std::string_view(block.data(), bytes)) {
            tail += bytes;
            continue;
        }
        tail += static_cast<std::size_t>(
            std::mismatch(part.rbegin(), part.rend(),
                          std::make_reverse_iterator(block.begin() + static_cast<long>(bytes)))
                .first -
            part.rbegin());
        break;
    }
    // On to the beginning of a line: the lines after the first end of a line in the common end are the same.
    const std::size_t line = before.substr(before.size() - tail).find('\n');
    tail = line == std::string_view::npos ? 0 : tail - line - 1;
    ChangedLines lines{head, before.size() - static_cast<std::size_t>(tail), {}};
    lines.now.resize(static_cast<std::size_t>(now_bytes - tail - head));
    if (!now(head, lines.now.data(), lines.now.size())) return std::nullopt;
    return lines;
}

Result<std::optional<WatchedList::Version>> WatchedList::read(bool whole) const {
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
    if (kept_ && *kept_ == version.stamp) return std::nullopt;
    int error = 0;
    const ReadAt read_at = [&](std::uint64_t offset, char* to, std::size_t bytes) {
        while (bytes > 0) {
            const ssize_t got = ::pread(file.get(), to, bytes, static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) continue;
            error = got < 0 ? errno : 0;
            if (got <= 0) return false;
            to += got;
            offset += static_cast<std::uint64_t>(got);
            bytes -= static_cast<std::size_t>(got);
        }
        return true;
    };
    const std::string_view before = whole ? std::string_view() : std::string_view(kept_text_);
    std::optional<ChangedLines> lines =
        changed_lines(before, static_cast<std::uint64_t>(info.st_size), read_at);
    if (!lines && error != 0) return fault("cannot be read: " + errno_text(error));
    if (!lines || ::fstat(file.get(), &info) != 0 || stamp_of(info) != version.stamp)
        return failure(ErrorKind::changed_meanwhile,
                       fmt::format("{}: changed while it was read", printable(path_)));
    version.lines = std::move(*lines);
    if (whole) version.lines.before_end = kept_text_.size();
    return version;
}

Result<WatchedList::Look> WatchedList::look(bool whole) {
    next_.reset();
    Look look;
    if (kept_ && !whole) {
        SIEVE_ASSIGN(next_, read(false));
        if (!next_) return look;
        const ChangedLines& lines = next_->lines;
        const std::string_view gone =
            std::string_view(kept_text_).substr(lines.begin, lines.before_end - lines.begin);
        look.outcome = Outcome::lines;
        if (plain_ && take_plain_addresses(gone, look.difference.removed) &&
            take_plain_addresses(lines.now, look.difference.added))
            return look;
    }
    kept_.reset();
    SIEVE_ASSIGN(next_, read(true));
    look = {.outcome = Outcome::unknown, .difference = {}};
    return look;
}

void WatchedList::keep() {
    if (!next_) return;
    const ChangedLines& lines = next_->lines;
    kept_text_.replace(lines.begin, lines.before_end - lines.begin, lines.now);
    kept_ = next_->stamp;
    next_.reset();
}

} // namespace sieve::service::live
