// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/decision_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "libsieve/service/lists/timed_entry_record.hpp"
#include "libsieve/util/system/write_all.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service::live {

namespace {

struct Head {
    std::uint64_t magic;
    std::uint64_t added;
    std::uint64_t deleted;
    std::uint64_t ignored;
    std::uint64_t unusable;
    std::uint64_t origins;  // names behind the head, of name_bytes each
    char first_ignored[64]; // NUL-terminated
    char first_unusable[192];
};

constexpr std::uint64_t head_magic = 0x31'73'69'63'65'64'53'49; // "ISdecis1"
constexpr std::size_t name_bytes = longest_origin + 1;          // NUL-terminated

template <std::size_t size>
void put_text(char (&to)[size], const std::string& text) {
    std::memcpy(to, text.data(), std::min(text.size(), size - 1));
}

// Whatever the bytes are, and never longer than what put_text writes.
template <std::size_t size>
std::string text_of(const char (&from)[size]) {
    return printable({from, ::strnlen(from, size - 1)}).substr(0, size - 1);
}

} // namespace

Status write_decision_file(const Decisions& decisions, int to) {
    Head head{};
    head.magic = head_magic;
    head.added = decisions.added.size();
    head.deleted = decisions.deleted.size();
    head.ignored = decisions.ignored;
    head.unusable = decisions.unusable;
    head.origins = decisions.origins.size();
    put_text(head.first_ignored, decisions.first_ignored);
    put_text(head.first_unusable, decisions.first_unusable);
    std::string text(reinterpret_cast<const char*>(&head), sizeof(head));
    for (const std::string& origin : decisions.origins) {
        char name[name_bytes]{};
        put_text(name, origin);
        text.append(name, sizeof(name));
    }
    append_entries(text, decisions.added);
    append_entries(text, decisions.deleted);
    Status written = write_all(to, text);
    if (!written) written.error().message = "the decisions " + written.error().message;
    return written;
}

Result<Decisions> read_decision_file(int from) {
    const auto nonsense = [] { return bad_input("the parsed decisions are none"); };
    struct stat info {};
    if (::fstat(from, &info) != 0)
        return bad_input(fmt::format("the decisions cannot be read: {}", errno_text(errno)));
    const auto size = static_cast<std::uint64_t>(info.st_size);
    std::string text(size, '\0');
    for (std::size_t got = 0; got < text.size();) {
        const ssize_t more = ::pread(from, text.data() + got, text.size() - got, static_cast<off_t>(got));
        if (more < 0 && errno == EINTR) continue;
        if (more <= 0) return nonsense();
        got += static_cast<std::size_t>(more);
    }
    Head head{};
    if (size < sizeof(head)) return nonsense();
    std::memcpy(&head, text.data(), sizeof(head));
    std::string_view records = std::string_view(text).substr(sizeof(head));
    if (head.magic != head_magic || head.origins > most_origins || records.size() < head.origins * name_bytes)
        return nonsense();
    Decisions decisions;
    for (std::uint64_t i = 0; i < head.origins; i++) {
        char name[name_bytes];
        std::memcpy(name, records.data(), sizeof(name));
        decisions.origins.push_back(text_of(name));
        records.remove_prefix(sizeof(name));
    }
    const std::uint64_t count = records.size() / timed_entry_record_bytes;
    if (records.size() % timed_entry_record_bytes != 0 || head.added > count ||
        head.deleted != count - head.added)
        return nonsense();
    if (!take_entries(records, head.added, decisions.added) ||
        !take_entries(records, head.deleted, decisions.deleted))
        return nonsense();
    decisions.ignored = head.ignored;
    decisions.unusable = head.unusable;
    decisions.first_ignored = text_of(head.first_ignored);
    decisions.first_unusable = text_of(head.first_unusable);
    return decisions;
}

} // namespace sieve::service::live
