// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/meant_command.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "libsieve/util/text/printable.hpp"

namespace sieve::cli {

namespace {

using Words = std::vector<std::string>;

// As a shell takes it.
std::string quoted(const std::string& word) {
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
    std::string text = "'";
    for (const char byte : printable(word))
        text += byte == '\'' ? std::string("'\\''") : std::string(1, byte);
    return text + "'";
}

std::string line(const Words& words) {
    std::string text = "xdp-sieve";
    for (const std::string& word : words) text += " " + quoted(word);
    return text;
}

std::string line(const char* command, const Words& words) {
    Words all{command};
    all.insert(all.end(), words.begin(), words.end());
    return line(all);
}

// An address or a prefix, as far as its looks go. No interface and no set is called so.
bool looks_like_key(const std::string& word) {
    const bool four = std::ranges::count(word, '.') == 3;
    const bool six = std::ranges::count(word, ':') >= 2;
    return (four || six) && word.find('=') == std::string::npos &&
           word.find_first_not_of("0123456789abcdefABCDEF.:/-,*") == std::string::npos;
}

struct Sorted {
    std::optional<std::string> interface {};
    std::optional<std::string> set{};
    Words keys{};
    Words tables{}; // NAME=FEED
};

Sorted sort(const Words& words, const IsInterface& is_interface) {
    Sorted sorted;
    for (const std::string& word : words) {
        if (word.starts_with('-')) continue;
        if (word.find('=') != std::string::npos)
            sorted.tables.push_back(word);
        else if (looks_like_key(word))
            sorted.keys.push_back(word);
        else if (!sorted.interface && is_interface(word))
            sorted.interface = word;
        else if (!sorted.set)
            sorted.set = word;
    }
    return sorted;
}

// "eth0 bad 192.0.2.1", with the names of what is missing.
Words place(const Sorted& sorted) {
    return {sorted.interface.value_or("IFACE"), sorted.set.value_or("NAME")};
}

Words with_keys(const Sorted& sorted) {
    Words words = place(sorted);
    if (sorted.keys.empty()) words.emplace_back("KEY");
    words.insert(words.end(), sorted.keys.begin(), sorted.keys.end());
    return words;
}

Words of_interface(const Sorted& sorted) {
    return sorted.interface ? Words{*sorted.interface} : Words{};
}

bool is_one_of(const std::string& word, std::initializer_list<std::string_view> others) {
    return std::ranges::find(others, word) != others.end();
}

std::string explain_line(const Sorted& sorted) {
    return line("explain", {sorted.interface.value_or("IFACE"),
                            sorted.keys.empty() ? std::string("KEY") : sorted.keys.front()});
}

// What one word of another tool is here; empty for a word that none of them has.
std::string translated(const std::string& word, const Words& rest, const Words& known,
                       const IsInterface& is_interface) {
    const Sorted sorted = sort(rest, is_interface);
    if (is_one_of(word, {"block", "deny", "drop", "blacklist"}))
        return fmt::format("`{}` puts a key on a list in force", line("insert", with_keys(sorted)));
    if (is_one_of(word, {"del", "rm", "unblock"}))
        return fmt::format("`{}` takes a key off a list in force", line("delete", with_keys(sorted)));
    if (is_one_of(word, {"test", "check", "contains", "lookup", "get"}))
        return fmt::format("`{}` says what becomes of a packet with this key", explain_line(sorted));
    if (word == "flush")
        return fmt::format("no set in force is emptied as a whole; `{}` takes one key out",
                           line("delete", with_keys({sorted.interface, sorted.set, {}, {}})));
    if (word == "save")
        return fmt::format("`{}` prints the keys of a set in force, as a feed", line("list", place(sorted)));
    if (is_one_of(word, {"reload", "restart", "refresh", "update"}))
        return "`systemctl reload xdp-sieved` has the service read its configuration and its lists anew; "
               "`xdp-sieve apply` does it without the service";
    if (is_one_of(word, {"start", "enable"})) return "`systemctl enable --now xdp-sieved` starts the service";
    if (is_one_of(word, {"show", "ls", "info", "lists", "sets"}))
        return fmt::format("`{}` shows what is in force", line("status", of_interface(sorted)));
    if (is_one_of(word, {"create", "new", "attach", "restore"}))
        return fmt::format("`{}` attaches to an interface and puts sets in force",
                           line("load", {sorted.interface.value_or("IFACE"),
                                         sorted.tables.empty() ? sorted.set.value_or("NAME") + "=FEED"
                                                               : sorted.tables.front()}));
    if (is_one_of(word, {"publish", "fleet"})) return "Debian's package xdp-sieve-fleet has it";
    if (word == "bench") return "`sieve-bench` measures, a program of its own (Debian's package sieve-lab)";
    if (is_one_of(word, {"version", "-V"})) return "`xdp-sieve --version` prints the version";
    if (word == "help") {
        const bool of_command = !rest.empty() && std::ranges::find(known, rest.front()) != known.end();
        return fmt::format("`xdp-sieve {}--help` prints the help",
                           of_command ? rest.front() + " " : std::string());
    }
    return {};
}

} // namespace

std::string meant_by(const Words& words, const Words& known, const IsInterface& is_interface) {
    const auto ours = [&](const std::string& word) { return std::ranges::find(known, word) != known.end(); };
    const auto first = std::ranges::find_if(
        words, [](const std::string& word) { return !word.starts_with('-') || word == "-V"; });
    if (first == words.end()) return {};
    if (const std::string text = translated(*first, {first + 1, words.end()}, known, is_interface);
        !text.empty())
        return fmt::format("\"{}\" is no command; {}", printable(*first), text);
    // The interface, or a set, came first.
    if (!is_interface(*first) && first->find('=') == std::string::npos) return {};
    const auto command = std::find_if(first + 1, words.end(), ours);
    if (command == words.end()) {
        if (!is_interface(*first)) return {};
        return fmt::format("\"{}\" is no command; `{}` shows what is in force there", printable(*first),
                           line("status", {*first}));
    }
    Words right{words.begin(), first};
    right.push_back(*command);
    right.insert(right.end(), first, command);
    right.insert(right.end(), command + 1, words.end());
    return fmt::format("the command comes first: `{}`", line(right));
}

std::string meant_instead(const std::string& command, const Words& arguments, const Words& words,
                          const IsInterface& is_interface) {
    if (std::ranges::find(arguments, "") != arguments.end()) return {}; // nobody knows what it stands for
    if (command == "list" && arguments.size() < 2) {
        const Words interface = arguments.empty() || !is_interface(arguments[0]) ? Words{} : arguments;
        return fmt::format("`{}` shows the sets in force, and `{}` prints the keys of one",
                           line("status", interface),
                           line("list", {interface.empty() ? "IFACE" : interface[0], "NAME"}));
    }
    const bool takes_keys = is_one_of(command, {"insert", "delete"});
    if (command == "add" && arguments.size() >= 2) {
        const bool no_feed = std::ranges::none_of(
            arguments, [](const std::string& word) { return word.find('=') != std::string::npos; });
        const Sorted sorted = sort(arguments, is_interface);
        if (no_feed && !sorted.keys.empty())
            return fmt::format("`{}` puts a key on a list in force", line("insert", with_keys(sorted)));
        if (no_feed && is_interface(arguments[0]))
            return fmt::format("`{}` puts one more set in force",
                               line("add", {arguments[0], arguments[1] + "=FEED"}));
    }
    if (takes_keys && arguments.size() >= 2) {
        const Sorted sorted = sort(arguments, is_interface);
        const bool in_order = is_interface(arguments[0]) && !looks_like_key(arguments[1]);
        if (!in_order && !sorted.keys.empty())
            return fmt::format("`{}` has its arguments in the right order",
                               line(command.c_str(), with_keys(sorted)));
        return {};
    }
    if (arguments.empty() || is_interface(arguments[0])) return {};
    // A query may ask an image, too.
    const bool is_query = command == "query" && looks_like_key(arguments[0]);
    if (!is_query && !is_one_of(command, {"load", "swap", "add", "set", "default", "replies", "remove",
                                          "list", "join", "explain"}))
        return {};
    const auto interface = std::find_if(arguments.begin() + 1, arguments.end(), is_interface);
    if (interface == arguments.end()) return {};
    // Only that word moves, so that options keep their values. Behind an option, it may be such a value.
    Words right = words;
    const auto there = std::ranges::find(right, *interface);
    const auto at = std::ranges::find(right, command);
    if (there == right.end() || at >= there || (there - 1)->starts_with("--")) return {};
    right.erase(there);
    right.insert(at + 1, *interface);
    return fmt::format("the interface comes first: `{}`", line(right));
}

} // namespace sieve::cli
