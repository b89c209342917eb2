// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Fuzzes the two readers of bans. The first byte chooses.
//
//     0  a text as `ban --stdin` takes it (parse_ban_text): a model counts its changes, and what was read is
//     printed
//        as `ipset save` does and read back unchanged
//     1  changes as bytes, from the socket or the ledger (ban_changes_of)
//
// What must hold besides: each prefix is one, each reason is a line of text, every message is fit for a
// terminal.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "fuzz/support.hpp"
#include "libsieve/service/lists/ban.hpp"

namespace {

using namespace sieve::fuzz;
using namespace sieve::service::live;

Total total("changes of bans read");

constexpr Time now{std::chrono::milliseconds(1'764'000'000'000)};
const Ban usual{.since = now, .until = now + std::chrono::hours(4), .reason = "usual"};

void check(const std::vector<BanChange>& changes) {
    for (const BanChange& change : changes) {
        FUZZ_REQUIRE(change.prefix.length >= 1 && change.prefix.length <= 128);
        FUZZ_REQUIRE((change.prefix.address & change.prefix.host_bits()) == 0);
        FUZZ_REQUIRE(change.ban.reason.size() <= longest_reason);
        FUZZ_REQUIRE(
            std::ranges::none_of(change.ban.reason, [](unsigned char c) { return c < 0x20 || c == 0x7f; }));
    }
    const auto again = ban_changes_of(bytes_of(changes));
    FUZZ_REQUIRE(again && *again == changes);
    Bans bans;
    for (const BanChange& change : changes) change_bans(bans, change);
    FUZZ_REQUIRE(bans.size() <= changes.size());
    total.add(changes.size());
}

// Lines that are more than blank, a comment, or the two that `ipset restore` needs and bans do not.
std::size_t changes_of_model(const std::string& text) {
    std::istringstream lines(text);
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string word;
        if (words >> word && word.front() != '#' && word != "create" && word != "COMMIT") count++;
    }
    return count;
}

// As `ipset save` prints it.
std::string printed(const std::vector<BanChange>& changes) {
    std::string text;
    for (const BanChange& change : changes) {
        if (change.step == BanStep::flush) {
            text += "flush\n";
            continue;
        }
        text += fmt::format("{} {}", change.step == BanStep::add ? "add" : "del", prefix_text(change.prefix));
        if (change.step == BanStep::add) {
            const auto left = change.ban.until - now;
            text += fmt::format(" timeout {}",
                                change.ban.until == never
                                    ? 0
                                    : std::chrono::duration_cast<std::chrono::seconds>(left).count());
            text += fmt::format(" comment \"{}\"", change.ban.reason);
        }
        text += '\n';
    }
    return text;
}

void fuzz_text(const std::string& text) {
    const auto changes = parse_ban_text(text, "input", usual);
    if (!changes) {
        FUZZ_REQUIRE(changes.error().message.starts_with("input:"));
        return require_message(changes.error().message);
    }
    check(*changes);
    const bool plain = std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); });
    if (plain) FUZZ_REQUIRE(changes->size() == changes_of_model(text));
    const auto again = parse_ban_text(printed(*changes), "again", usual);
    FUZZ_REQUIRE(again);
    FUZZ_REQUIRE(*again == *changes);
}

void fuzz_bytes(const std::string& bytes) {
    if (const auto changes = ban_changes_of(bytes)) check(*changes);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string text(data + 1, data + size);
    if (data[0] % 2 == 0)
        fuzz_text(text);
    else
        fuzz_bytes(text);
    return 0;
}
