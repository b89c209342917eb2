// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/core.h>

#include "libsieve/kernel/set_table.hpp"
#include "libsieve/service/config/configuration_depth.hpp"
#include "libsieve/service/config/configuration_fleet.hpp"
#include "libsieve/service/config/configuration_interfaces.hpp"
#include "libsieve/service/config/configuration_section.hpp"
#include "libsieve/service/config/configuration_sets.hpp"
#include "libsieve/service/config/configuration_text.hpp"
#include "libsieve/service/config/configuration_toml.hpp"
#include "libsieve/service/config/listen_address.hpp"
#include "libsieve/service/download/libcurl_on_demand.hpp"
#include "libsieve/util/input.hpp"
#include "libsieve/util/printable.hpp"

namespace sieve::service {

namespace {

// A text that is longer was not meant to be read by people.
constexpr std::size_t longest_configuration = std::size_t{4} << 20;

constexpr std::array<std::pair<std::string_view, OnStop>, 2> stop_words{
    {{"keep", OnStop::keep}, {"unload", OnStop::unload}}};

// The file as a whole.
class Reader {
  public:
    Reader(Mistakes& mistakes, const std::string& path)
        : mistakes_(mistakes), folder_(std::filesystem::absolute(path).parent_path()) {}

    Configuration read(const toml::table& root) {
        Section top(mistakes_, root, "");
        if (const toml::table* table = top.table("service")) read_service(*table);
        if (const toml::table* table = top.table("fleet"))
            configuration_.fleet = read_fleet(mistakes_, *table, folder_);
        if (const toml::table* table = top.table("set")) read_sets(*table);
        read_interfaces(top);
        top.finish();
        check_uses();
        return std::move(configuration_);
    }

  private:
    // What is in the file, for messages about how its parts go together.
    struct Place {
        toml::source_region where;
        std::string key;
    };

    void read_service(const toml::table& table) {
        Section section(mistakes_, table, "service");
        if (const auto text = section.text("state-directory", "the path of a folder")) {
            if (text->empty() || text->front() != '/' || text->find('\0') != std::string::npos)
                section.expected(*table.get("state-directory"), "state-directory", "an absolute path");
            configuration_.state_directory = *text;
        }
        section.choice<OnStop>("on-stop", stop_words, configuration_.on_stop);
        constexpr std::string_view address = R"("ADDRESS:PORT", "[ADDRESS]:PORT", or "" for none)";
        if (const auto text = section.text("listen", address)) {
            if (!text->empty() && !parse_listen_address(*text))
                section.expected(*table.get("listen"), "listen", address);
            configuration_.listen = *text;
        }
        constexpr std::string_view group = "the name of a group";
        if (const auto text = section.text("ban-group", group)) {
            if (text->find('\0') != std::string::npos)
                section.expected(*table.get("ban-group"), "ban-group", group);
            configuration_.ban_group = *text;
        }
        section.finish();
    }

    void read_sets(const toml::table& table) {
        for (const auto& [name, node] : table) {
            const std::string text(name.str());
            const std::string key = fmt::format("set.{}", printable(text, 64));
            set_places_.emplace(text, Place{name.source(), key});
            if (!kernel::is_set_name(text)) {
                mistakes_.add(name.source(), key, fmt::format("a set's name is {}", kernel::set_name_form()));
                continue;
            }
            const toml::table* set = node.as_table();
            if (set == nullptr) {
                mistakes_.add(node.source(), key,
                              fmt::format("expected a table [{}], found {}", key, found(node)));
                continue;
            }
            configuration_.sets.push_back(read_set(mistakes_, text, *set, key, folder_));
        }
    }

    void read_interfaces(Section& top) {
        const toml::node* node = top.find("interface");
        // A host that only publishes has none.
        if (node == nullptr && configuration_.fleet) return;
        if (node == nullptr)
            return mistakes_.add({}, "interface", "none: expected at least one [[interface]]");
        const toml::array* entries = node->as_array();
        if (entries == nullptr || entries->empty())
            return top.expected(*node, "interface", "tables, each headed [[interface]]");
        SetNames sets;
        for (const auto& [name, place] : set_places_) sets.push_back(name);
        for (const toml::node& entry : *entries) {
            if (const toml::table* table = entry.as_table())
                configuration_.interfaces.push_back(
                    read_interface(mistakes_, *table, sets, configuration_.interfaces));
            else
                top.expected(entry, "interface", "a table headed [[interface]]");
        }
    }

    [[nodiscard]] bool is_used(const std::string& set) const {
        return std::any_of(configuration_.interfaces.begin(), configuration_.interfaces.end(),
                           [&](const InterfaceConfiguration& entry) {
                               return std::find(entry.sets.begin(), entry.sets.end(), set) !=
                                      entry.sets.end();
                           });
    }

    void check_uses() {
        for (const auto& [name, place] : set_places_)
            if (!is_used(name) && kernel::is_set_name(name))
                mistakes_.add(place.where, place.key,
                              "no interface has this set among its sets; name it there or remove the table");
        for (const SetConfiguration& set : configuration_.sets)
            if (set.action && set.action->action == SIEVE_ACTION_LIMIT) check_limit(set.name);
        for (const SetConfiguration& set : configuration_.sets)
            if (set.keeps_replies_out && !set.action) check_replies(set.name);
    }
    // Without an action a set passes where the default drops.
    void check_replies(const std::string& set) {
        for (const InterfaceConfiguration& entry : configuration_.interfaces)
            if (entry.default_action == SIEVE_ACTION_DROP &&
                std::find(entry.sets.begin(), entry.sets.end(), set) != entry.sets.end())
                mistakes_.add(
                    set_places_.at(set).where, set_places_.at(set).key,
                    fmt::format("replies = \"drop\" is for a set that drops or limits, and on {} this "
                                "set passes, since the default is drop; expected action = \"drop\"",
                                printable(entry.name)));
    }
    // Up to a limit, matches take the default.
    void check_limit(const std::string& set) {
        for (const InterfaceConfiguration& entry : configuration_.interfaces)
            if (entry.default_action == SIEVE_ACTION_DROP &&
                std::find(entry.sets.begin(), entry.sets.end(), set) != entry.sets.end())
                mistakes_.add(
                    set_places_.at(set).where, set_places_.at(set).key,
                    fmt::format("up to its limit, matches take the default, and the default of {} is "
                                "drop; expected default = \"pass\"",
                                printable(entry.name)));
    }

    Mistakes& mistakes_;
    std::filesystem::path folder_;
    Configuration configuration_;
    std::map<std::string, Place> set_places_;
};

// Whether the parser gives up on the text.
bool has_fault(std::string_view text) {
    try {
        static_cast<void>(toml::parse(text));
        return false;
    } catch (const ParserFault&) {
        return true;
    }
}

// The number of the line that the parser gives up at. It reads from the beginning, so a text that ends before
// this line has no fault, and every longer one has it.
std::uint32_t line_of_fault(std::string_view text) {
    std::vector<std::size_t> ends; // of each line
    for (std::size_t at = 0; at < text.size(); at++)
        if (text[at] == '\n') ends.push_back(at + 1);
    if (ends.empty() || ends.back() != text.size()) ends.push_back(text.size());
    const auto line = std::partition_point(ends.begin(), ends.end(),
                                           [&](std::size_t end) { return !has_fault(text.substr(0, end)); });
    return static_cast<std::uint32_t>(std::min(line - ends.begin() + 1, std::ssize(ends)));
}

// Whoever writes a pipe may never come.
Result<Input> open_file(const std::string& path) {
    UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0)
        return bad_input(fmt::format("{}: cannot be read: {}", printable(path), errno_text(errno)));
    if (!S_ISREG(info.st_mode))
        return bad_input(fmt::format("{}: is no regular file, expected a configuration", printable(path)));
    return Input::of(std::move(file), path);
}

} // namespace

std::string mistake_text(const std::string& path, const Mistake& mistake) {
    std::string text = printable(path);
    if (mistake.line > 0) text += fmt::format(":{}:{}", mistake.line, mistake.column);
    text += ": ";
    if (!mistake.key.empty()) text += mistake.key + ": ";
    return text + mistake.message;
}

std::string configuration_json(const Configuration& configuration) {
    const toml::parse_result parsed = toml::parse(configuration_text(configuration));
    if (!parsed) return "{}"; // the text is our own
    std::ostringstream out;
    out << toml::json_formatter{parsed.table()};
    return out.str();
}

ReadConfiguration read_configuration(std::string_view text, const std::string& path) {
    if (const std::optional<Mistake> deep = find_depth(text)) return {{}, {*deep}};
    if (has_fault(text)) return {{}, {{line_of_fault(text), 1, "", "not TOML: expected a key"}}};
    Mistakes mistakes;
    const toml::parse_result parsed = toml::parse(text, path);
    if (!parsed) {
        mistakes.add(parsed.error().source(), "",
                     "not TOML: " + printable(parsed.error().description(), 200));
        return {{}, mistakes.take()};
    }
    ReadConfiguration read;
    read.configuration = Reader(mistakes, path).read(parsed.table());
    read.configuration.path = path;
    read.mistakes = mistakes.take();
    return read;
}

Result<Configuration> load_configuration(const std::string& path, From from) {
    SIEVE_ASSIGN(Input input, from == From::files ? open_file(path) : Input::of(path));
    std::string text(longest_configuration + 1, '\0');
    SIEVE_ASSIGN(const std::size_t size, input.read_all(text.data(), text.size()));
    if (size > longest_configuration)
        return bad_input(fmt::format("{}: over {} MiB, expected a configuration", input.name(),
                                     longest_configuration >> 20));
    text.resize(size);
    // URLs are understood by libcurl. A service that cannot open it now must not end.
    if (text.find("://") != std::string::npos)
        if (const Status there = libcurl_is_there(); !there)
            return kernel_refused(
                fmt::format("{}: a URL cannot be understood: {}", input.name(), there.error().message));
    ReadConfiguration read = read_configuration(text, path);
    if (read.mistakes.empty()) return std::move(read.configuration);
    std::string message = mistake_text(path, read.mistakes.front());
    if (const std::size_t more = read.mistakes.size() - 1; more > 0)
        message += fmt::format(" (and {} more mistake{})", more, more == 1 ? "" : "s");
    return bad_input(std::move(message));
}

} // namespace sieve::service
