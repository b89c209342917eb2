// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The command line's numbers, plurals, suggestions, advice and exit codes.
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "front-end/console/exit_code.hpp"
#include "front-end/console/format.hpp"
#include "front-end/console/remedy.hpp"
#include "libsieve/util/text/closest_word.hpp"
#include "libsieve/util/text/number.hpp"
#include "unit/messages.hpp"
#include "xdp-sieve/unknown_command.hpp"

namespace sieve::cli {
namespace {

TEST(Number, WholeOnes) {
    EXPECT_EQ(parse_whole("0"), 0U);
    EXPECT_EQ(parse_whole("1e6"), 1'000'000U);
    EXPECT_EQ(parse_whole("2.5e1"), 25U);
    EXPECT_EQ(parse_whole("18446744073709551615"), ~std::uint64_t{0});
    for (const char* text :
         {"", "-1", "1.5", "1e-3", "1e17", "x", "1e6x", " 1", "inf", "nan", "18446744073709551616"})
        EXPECT_FALSE(parse_whole(text)) << text;
}

TEST(Number, Bytes) {
    EXPECT_EQ(parse_bytes("65536").value(), 65536U);
    EXPECT_EQ(parse_bytes("1e6").value(), 1'000'000U);
    EXPECT_EQ(parse_bytes("64M").value(), 64U << 20);
    EXPECT_EQ(parse_bytes("1.5G").value(), 3U << 29);
    for (const char* text : {"", "M", "1.5", "-1K", "1T", "17179869184G"}) {
        const auto bytes = parse_bytes(text);
        ASSERT_FALSE(bytes) << text;
        EXPECT_EQ(bytes.error().kind, ErrorKind::invalid_request);
    }
}

TEST(Plural, OneAndMany) {
    EXPECT_EQ(format_counted(0, "set"), "0 sets");
    EXPECT_EQ(format_counted(1, "set"), "1 set");
    EXPECT_EQ(format_counted(1234, "entry", "entries"), "1,234 entries");
}

TEST(UnknownCommand, SuggestsWhatIsClose) {
    const std::vector<std::string> known{"build", "load", "unload", "status", "stats", "top"};
    EXPECT_EQ(closest_word("laod", known), "load");
    EXPECT_EQ(closest_word("unlaod", known), "unload");
    EXPECT_EQ(closest_word("statu", known), "status");
    EXPECT_EQ(closest_word("frobnicate", known), "");
    EXPECT_EQ(closest_word("x", known), "");
    expect_says(unknown_command("frobnicate", known));
}

TEST(Remedy, OfWarningsToo) {
    using control::WarningKind;
    const auto text = [](WarningKind kind) {
        return warning_text({kind, "it", {.interface = "eth1", .set = "friends"}});
    };
    EXPECT_EQ(text(WarningKind::no_carrier), "it");
    EXPECT_EQ(text(WarningKind::one_buffer), "it");
    EXPECT_EQ(text(WarningKind::changes_undone), "it");
    expect_says(text(WarningKind::smaller_mtu));
    expect_says(text(WarningKind::replies_unasked));
    expect_says(
        warning_text({WarningKind::answers_dropped, "it", {.interface = "eth1", .hooks = {"ingress"}}}));
    for (const auto& [kind, flag] : {std::pair{WarningKind::sending_unknown, "`-m skb`"},
                                     {WarningKind::tap_to_cpu, "`-m skb`"},
                                     {WarningKind::unfinished_checksums, "`ethtool -K IFACE tx off`"},
                                     {WarningKind::prefix_allowlist, "`friends=FEED,verify`"}})
        EXPECT_NE(text(kind).find(flag), std::string::npos) << text(kind);
}

// What keeps an address out decides what lets it in.
TEST(Remedy, OfALockout) {
    const auto text = [](const std::string& set) {
        return error_text({ErrorKind::lockout, "it", {.interface = "eth0", .set = set}});
    };
    expect_says(text("bad"));
    expect_says(text(""));
    // Of a command without --confirm.
    EXPECT_EQ(error_text({ErrorKind::lockout, "it", {.set = "bad"}}, false),
              "it; leave out what covers it, or say `--allow-lockout` if it is meant");
}

TEST(Remedy, SpeaksOfFlags) {
    const auto text = [](ErrorKind kind, Facts facts = {}) {
        return error_text({kind, "it", std::move(facts)});
    };
    expect_says(text(ErrorKind::foreign_program));
    expect_says(text(ErrorKind::no_native_mode));
    expect_says(text(ErrorKind::foreign_file));
    EXPECT_EQ(text(ErrorKind::bad_input), "it");
    Facts facts;
    facts.interface = "eth0";
    expect_says(text(ErrorKind::not_attached, facts));
    facts.program_id = 4;
    EXPECT_EQ(text(ErrorKind::not_attached, facts), "it") << "another program runs there";
    // At tc's hooks, a command without the hook would put its table at XDP's.
    expect_says(text(ErrorKind::not_attached, {.interface = "eth0", .hooks = {"egress"}}));
    expect_says(text(ErrorKind::other_version, {.interface = "eth0", .hooks = {"ingress"}}));
    expect_says(
        text(ErrorKind::wants_force, {.interface = "eth0", .in_force = {"bad"}, .hooks = {"ingress"}}));
}

TEST(ExitCode, FollowsFromTheKind) {
    EXPECT_EQ(exit_code(ErrorKind::not_attached), Exit::no);
    EXPECT_EQ(exit_code(ErrorKind::no_such_set), Exit::no);
    EXPECT_EQ(exit_code(ErrorKind::needs_feed), Exit::usage);
    EXPECT_EQ(exit_code(ErrorKind::out_of_memory), Exit::bad_input);
    EXPECT_EQ(exit_code(ErrorKind::busy), Exit::kernel_refused);
    EXPECT_EQ(exit_code(ErrorKind::unconfirmed), Exit::kernel_refused);
    EXPECT_EQ(exit_code(ErrorKind::lockout), Exit::bad_input);
    EXPECT_EQ(exit_code(ErrorKind::not_permitted), Exit::kernel_refused);
}

/// The pages have each exit code that an error can lead to, and no other.
TEST(ExitCode, AreThoseOfThePages) {
    std::set<int> codes;
    std::set<std::string> names;
    int kinds = 0;
    for (; facts_of(static_cast<ErrorKind>(kinds)).name != std::string("unknown"); kinds++) {
        codes.insert(static_cast<int>(exit_code(static_cast<ErrorKind>(kinds))));
        names.insert(facts_of(static_cast<ErrorKind>(kinds)).name);
    }
    EXPECT_GT(kinds, static_cast<int>(ErrorKind::wants_force));
    EXPECT_EQ(names.size(), static_cast<std::size_t>(kinds)) << "two kinds of one name";

    const auto page = [](const char* path) {
        std::ifstream stream(path);
        EXPECT_TRUE(stream) << path;
        std::stringstream text;
        text << stream.rdbuf();
        return text.str();
    };
    const auto codes_in = [](const std::string& text, const char* expression) {
        std::set<int> found;
        const std::regex pattern(expression);
        for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
            found.insert(std::stoi((*at)[1]));
        return found;
    };
    std::string manual = page("docs/xdp-sieve.8");
    manual = manual.substr(manual.find("\n.Sh EXIT STATUS\n"));
    std::set<int> described = codes_in(manual.substr(0, manual.find("\n.El\n")), "\n\\.It ([0-9]+)\n");
    EXPECT_EQ(described.erase(static_cast<int>(Exit::done)), 1U);
    EXPECT_EQ(described, codes);
    for (const int code : codes_in(page("docs/debugging.md"), "\n### [^\n]*\\(exit code ([0-9]+)\\)"))
        EXPECT_TRUE(codes.contains(code)) << code;
}

} // namespace
} // namespace sieve::cli
