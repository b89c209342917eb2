// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/configuration_reader.hpp"

namespace sieve::service {

// toml++ 3.3 asserts what a text need not keep to: that a key begins as keys do ("[[=x]]"). A mistake in a
// file must not end the process, and without the assertion its behaviour would be undefined.
struct ParserFault {};
[[noreturn]] static void give_up() {
    throw ParserFault();
}

} // namespace sieve::service

#undef NDEBUG
#define TOML_ASSERT(expression) ((expression) ? void() : ::sieve::service::give_up())
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "libsieve/control/build_options.hpp"
#include "libsieve/feeds/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/hooks/xdp/dispatcher.hpp"
#include "libsieve/kernel/set_table.hpp"
#include "libsieve/service/configuration_text.hpp"
#include "libsieve/service/duration.hpp"
#include "libsieve/util/closest_word.hpp"
#include "libsieve/util/input.hpp"
#include "libsieve/util/printable.hpp"

namespace sieve::service {

namespace {

// A text that is longer was not meant to be read by people.
constexpr std::size_t longest_configuration = std::size_t{4} << 20;

constexpr std::size_t longest_interface_name = 15; // IFNAMSIZ - 1

std::string in_quotes(std::string_view text) {
    return '"' + printable(text, 64) + '"';
}

// What stands there, for a message: `the text "x"`.
std::string found(const toml::node& node) {
    switch (node.type()) {
    case toml::node_type::string:
        return in_quotes(node.ref<std::string>());
    case toml::node_type::integer:
        return fmt::format("{}", node.ref<std::int64_t>());
    case toml::node_type::floating_point:
        return fmt::format("{}", node.ref<double>());
    case toml::node_type::boolean:
        return node.ref<bool>() ? "true" : "false";
    case toml::node_type::array:
        return "an array";
    case toml::node_type::table:
        return "a table";
    default:
        return "a date or time";
    }
}

class Mistakes {
  public:
    void add(const toml::source_region& where, std::string key, std::string message) {
        all_.push_back({where.begin.line, where.begin.column, std::move(key), std::move(message)});
    }

    [[nodiscard]] std::vector<Mistake> take() {
        std::sort(all_.begin(), all_.end(), [](const Mistake& a, const Mistake& b) {
            return std::tie(a.line, a.column, a.key, a.message) <
                   std::tie(b.line, b.column, b.key, b.message);
        });
        return std::move(all_);
    }

  private:
    std::vector<Mistake> all_;
};

// The keys of one table. Whoever reads asks for each key that there can be; finish() then knows which ones
// nobody asked for.
class Section {
  public:
    Section(Mistakes& mistakes, const toml::table& table, std::string path)
        : mistakes_(mistakes), table_(table), path_(std::move(path)) {}

    [[nodiscard]] const toml::node* find(std::string_view name) {
        known_.emplace_back(name);
        return table_.get(name);
    }

    void mistake(const toml::node& node, std::string_view name, std::string message) {
        mistakes_.add(node.source(), key(name), std::move(message));
    }
    // The section as a whole.
    void mistake(std::string message) { mistakes_.add(table_.source(), path_, std::move(message)); }

    void expected(const toml::node& node, std::string_view name, std::string_view what) {
        mistake(node, name, fmt::format("expected {}, found {}", what, found(node)));
    }

    [[nodiscard]] std::optional<std::string> text(std::string_view name, std::string_view what) {
        const toml::node* node = find(name);
        if (node == nullptr) return std::nullopt;
        if (!node->is_string()) {
            expected(*node, name, what);
            return std::nullopt;
        }
        return node->ref<std::string>();
    }

    void flag(std::string_view name, bool& into) {
        const toml::node* node = find(name);
        if (node == nullptr) return;
        if (!node->is_boolean()) return expected(*node, name, "true or false");
        into = node->ref<bool>();
    }

    // A number from `least` to `most`; `what` names it: "a share".
    void number(std::string_view name, double least, double most, std::string_view what, double& into) {
        const toml::node* node = find(name);
        if (node == nullptr) return;
        const std::optional<double> value = node->value<double>();
        if ((!node->is_integer() && !node->is_floating_point()) || !value ||
            !(*value >= least && *value <= most))
            return expected(*node, name, fmt::format("{} from {} to {}", what, least, most));
        into = *value;
    }

    // One of these words.
    template <class T>
    void choice(std::string_view name, std::span<const std::pair<std::string_view, T>> words, T& into) {
        const toml::node* node = find(name);
        if (node == nullptr) return;
        std::string all;
        std::vector<std::string> known;
        for (std::size_t i = 0; i < words.size(); i++) {
            if (node->is_string() && node->ref<std::string>() == words[i].first) {
                into = words[i].second;
                return;
            }
            all += fmt::format("{}\"{}\"",
                               i == 0                  ? ""
                               : i + 1 == words.size() ? " or "
                                                       : ", ",
                               words[i].first);
            known.emplace_back(words[i].first);
        }
        expected(*node, name, all);
    }

    // The texts of an array; `what` names one of them. A single text is taken as an array of one.
    void texts(std::string_view name, std::string_view what,
               const std::function<void(const toml::node& node, const std::string& text)>& take) {
        const toml::node* node = find(name);
        if (node == nullptr) return;
        const auto one = [&](const toml::node& element) {
            if (element.is_string())
                take(element, element.ref<std::string>());
            else
                expected(element, name, what);
        };
        if (const toml::array* array = node->as_array()) {
            for (const toml::node& element : *array) one(element);
        } else {
            one(*node);
        }
    }

    [[nodiscard]] const toml::table* table(std::string_view name) {
        const toml::node* node = find(name);
        if (node == nullptr) return nullptr;
        if (!node->is_table()) expected(*node, name, fmt::format("a table [{}]", key(name)));
        return node->as_table();
    }

    [[nodiscard]] std::string key(std::string_view name) const {
        return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
    }

    // Keys that nobody asked for.
    void finish() {
        for (const auto& [name, node] : table_) {
            const std::string text(name.str());
            if (std::find(known_.begin(), known_.end(), text) != known_.end()) continue;
            const std::string closest = closest_word(text, known_);
            std::string message = "unknown key";
            if (!closest.empty())
                message += fmt::format(", did you mean {}?", closest);
            else
                message += ", expected " + list_of_known();
            mistakes_.add(name.source(), key(printable(text, 64)), std::move(message));
        }
    }

  private:
    [[nodiscard]] std::string list_of_known() const {
        std::vector<std::string> sorted = known_;
        std::sort(sorted.begin(), sorted.end());
        std::string all;
        for (std::size_t i = 0; i < sorted.size(); i++)
            all += (i == 0 ? "" : i + 1 == sorted.size() ? " or " : ", ") + sorted[i];
        return all;
    }

    Mistakes& mistakes_;
    const toml::table& table_;
    std::string path_;
    std::vector<std::string> known_;
};

template <class T>
using Words = std::array<std::pair<std::string_view, T>, 2>;

constexpr Words<sieve_action> default_words{{{"pass", SIEVE_ACTION_PASS}, {"drop", SIEVE_ACTION_DROP}}};
constexpr Words<OnStop> stop_words{{{"keep", OnStop::keep}, {"unload", OnStop::unload}}};

// Options of a build that a service does not leave to the configuration.
constexpr std::string_view seed_option = "seed";

class Reader {
  public:
    Reader(Mistakes& mistakes, const std::string& path)
        : mistakes_(mistakes), folder_(std::filesystem::absolute(path).parent_path()) {}

    Configuration read(const toml::table& root) {
        Section top(mistakes_, root, "");
        if (const toml::table* table = top.table("service")) read_service(*table);
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
        section.finish();
    }

    void read_sets(const toml::table& table) {
        for (const auto& [name, node] : table) {
            const std::string text(name.str());
            const std::string key = fmt::format("set.{}", printable(text, 64));
            set_places_.emplace(text, Place{name.source(), key});
            if (!kernel::is_set_name(text)) {
                mistakes_.add(
                    name.source(), key,
                    fmt::format("a set's name is 1 to {} of A-Z a-z 0-9 . _ -", SIEVE_NAME_BYTES - 1));
                continue;
            }
            const toml::table* set = node.as_table();
            if (set == nullptr) {
                mistakes_.add(node.source(), key,
                              fmt::format("expected a table [{}], found {}", key, found(node)));
                continue;
            }
            read_set(text, *set, key);
        }
    }

    void read_set(const std::string& name, const toml::table& table, const std::string& key) {
        Section section(mistakes_, table, key);
        SetConfiguration set;
        set.name = name;
        read_sources(section, set);
        read_action(section, set);
        section.flag("verify", set.verify);
        read_refresh(section, table, set);
        const bool options_read = read_build_options(section, set);
        if (const toml::table* guards = section.table("guards"))
            read_guards(*guards, section.key("guards"), set);
        section.finish();
        if (table.get("sources") == nullptr)
            section.mistake("no sources: expected sources = [\"FILE\", \"FOLDER/\", \"FOLDER/*.txt\"]");
        if (options_read) fill_in(section, set);
        configuration_.sets.push_back(std::move(set));
    }

    void read_sources(Section& section, SetConfiguration& set) {
        constexpr std::string_view what = "a file, a folder/ or a pattern";
        bool any = false;
        section.texts("sources", what, [&](const toml::node& node, const std::string& text) {
            any = true;
            if (text.empty() || text.find('\0') != std::string::npos)
                return section.expected(node, "sources", what);
            if (text.find("://") != std::string::npos)
                return section.mistake(
                    node, "sources",
                    fmt::format("{}: sources on the network are not supported yet, expected {}",
                                in_quotes(text), what));
            const SourceSpec source = source_of(text);
            if (std::find(set.sources.begin(), set.sources.end(), source) != set.sources.end())
                return section.mistake(node, "sources", fmt::format("{} is named twice", in_quotes(text)));
            set.sources.push_back(source);
        });
        if (const toml::node* node = section.find("sources");
            node != nullptr && !any && node->is_array() && node->as_array()->empty())
            section.mistake(*node, "sources", fmt::format("empty, expected at least one: {}", what));
    }

    [[nodiscard]] SourceSpec source_of(const std::string& text) const {
        SourceSpec source;
        source.path = (folder_ / text).lexically_normal().string();
        if (source.path.find_first_of("*?[") != std::string::npos)
            source.kind = SourceKind::glob;
        else if (source.path.back() == '/')
            source.kind = SourceKind::folder;
        return source;
    }

    static void read_action(Section& section, SetConfiguration& set) {
        if (const toml::node* node = section.find("action")) {
            const Result<control::WantedAction> action =
                control::parse_action(node->is_string() ? node->ref<std::string>() : std::string());
            if (action)
                set.action = *action;
            else
                section.expected(*node, "action",
                                 R"("drop", "pass" or "count" (or redirect = "INTERFACE|cpu:NUMBER"))");
        }
        const toml::node* node = section.find("redirect");
        if (node == nullptr) return;
        if (!node->is_string() || node->ref<std::string>().empty())
            return section.expected(*node, "redirect", R"(an interface or "cpu:NUMBER")");
        if (set.action) return section.mistake(*node, "redirect", "the set has an action already");
        set.action = control::WantedAction{SIEVE_ACTION_REDIRECT_DEVICE, node->ref<std::string>()};
    }

    static void read_refresh(Section& section, const toml::table& table, SetConfiguration& set) {
        constexpr std::string_view what = R"(a time from "1s" to "3650d", such as "30s", "5m", "1h" or "1d")";
        const auto text = section.text("refresh", what);
        if (!text) return;
        const auto span = parse_duration(*text);
        if (!span || span->count() < 1) return section.expected(*table.get("refresh"), "refresh", what);
        set.refresh = *span;
    }

    // The options of `build`, from the one table of them. False if one was wrong.
    static bool read_build_options(Section& section, SetConfiguration& set) {
        bool right = true;
        for (const control::BuildOption& option : control::build_options()) {
            if (option.name == seed_option) continue;
            const toml::node* node = section.find(option.name);
            if (node == nullptr) continue;
            const std::string problem = set_option(option, *node, set.feed);
            if (problem.empty()) continue;
            section.mistake(*node, option.name, problem);
            right = false;
        }
        return right;
    }

    // What is wrong; empty if nothing is.
    static std::string set_option(const control::BuildOption& option, const toml::node& node,
                                  control::FeedSpec& feed) {
        if (option.value == nullptr) {
            if (!node.is_boolean()) return fmt::format("expected true or false, found {}", found(node));
            if (node.ref<bool>()) static_cast<void>(option.set(feed, ""));
            return {};
        }
        std::string text;
        if (node.is_string())
            text = node.ref<std::string>();
        else if (node.is_integer() || node.is_floating_point())
            text = found(node);
        else
            return fmt::format("expected a number or a text, found {}", found(node));
        const Status set = option.set(feed, text);
        return set ? std::string() : fmt::format("{}, found {}", set.error().message, found(node));
    }

    // What was not chosen, and how the options go together.
    void fill_in(Section& section, SetConfiguration& set) {
        BuildOptions& build = set.feed.build;
        const FilterKind& kind = kind_of(build.kind.kind);
        if (const Status right = check_build_options(build); !right)
            return section.mistake(right.error().message);
        if (!build.bits_per_key && !build.fpr && !build.memory)
            build.bits_per_key = kind.facts().bits_per_key;
        build.kind.choices = kind.choices_of(build.kind);
        build.kind.rounds = kind.rounds_of(build.kind);
        set.feed.chosen.clear(); // it is a feed, whatever was chosen
    }

    void read_guards(const toml::table& table, const std::string& key, SetConfiguration& set) {
        Section section(mistakes_, table, key);
        GuardLimits& guards = set.guards;
        section.number("most-shrink", 0, 1, "a share", guards.most_shrink);
        section.number("most-growth", 1, 1e9, "a factor", guards.most_growth);
        section.number("most-ipv4", 0, 1, "a share of all IPv4 addresses", guards.most_ipv4);
        section.number("most-ipv6", 0, 1, "a share of all IPv6 addresses", guards.most_ipv6);
        section.flag("protect-host", guards.protect_host);
        section.texts("protect", "an address, a prefix or a range",
                      [&](const toml::node& node, const std::string& text) {
                          if (const auto member = parse_member(text, SIEVE_FIELD_SRC); !member)
                              section.mistake(node, "protect", member.error().message);
                          else
                              guards.protect.push_back(text);
                      });
        section.finish();
    }

    void read_interfaces(Section& top) {
        const toml::node* node = top.find("interface");
        if (node == nullptr)
            return mistakes_.add({}, "interface", "none: expected at least one [[interface]]");
        const toml::array* entries = node->as_array();
        if (entries == nullptr || entries->empty())
            return top.expected(*node, "interface", "tables, each headed [[interface]]");
        for (const toml::node& entry : *entries) {
            if (const toml::table* table = entry.as_table())
                read_interface(*table);
            else
                top.expected(entry, "interface", "a table headed [[interface]]");
        }
    }

    void read_interface(const toml::table& table) {
        Section section(mistakes_, table, "interface");
        InterfaceConfiguration entry;
        const auto name = section.text("name", R"(an interface or a pattern, such as "eth0" or "eth*")");
        if (table.get("name") == nullptr) section.mistake("no name: expected name = \"INTERFACE\"");
        if (name) {
            entry.name = *name;
            if (name->empty() || name->size() > longest_interface_name ||
                std::any_of(name->begin(), name->end(),
                            [](unsigned char c) { return c <= ' ' || c == 0x7f || c == '/'; }))
                section.expected(
                    *table.get("name"), "name",
                    fmt::format("1 to {} characters without blanks and slashes", longest_interface_name));
        }
        read_hook(section, entry);
        read_mode(section, entry);
        section.choice<sieve_action>("default", default_words, entry.default_action);
        read_rank(section, entry);
        read_order(section, table, entry);
        section.finish();
        const bool twice = std::any_of(configuration_.interfaces.begin(), configuration_.interfaces.end(),
                                       [&](const InterfaceConfiguration& other) {
                                           return other.name == entry.name && other.hook == entry.hook;
                                       });
        if (twice && name)
            section.mistake(*table.get("name"), "name",
                            fmt::format("{} has this hook ({}) in an entry before", in_quotes(*name),
                                        kernel::hook_point_name(entry.hook)));
        configuration_.interfaces.push_back(std::move(entry));
    }

    static void read_hook(Section& section, InterfaceConfiguration& entry) {
        std::vector<std::pair<std::string_view, kernel::HookPoint>> words;
        for (const kernel::HookPoint point : kernel::all_hook_points)
            words.emplace_back(kernel::hook_point_name(point), point);
        section.choice<kernel::HookPoint>("hook", words, entry.hook);
    }

    static void read_mode(Section& section, InterfaceConfiguration& entry) {
        std::vector<std::pair<std::string_view, kernel::ModeChoice>> words;
        for (const control::ModeWord& mode : control::mode_words) words.emplace_back(mode.word, mode.choice);
        section.choice<kernel::ModeChoice>("mode", words, entry.mode);
        if (entry.mode != kernel::ModeChoice::automatic && entry.hook != kernel::HookPoint::xdp)
            section.mistake(*section.find("mode"), "mode", "only the hook xdp has modes");
    }

    static void read_rank(Section& section, InterfaceConfiguration& entry) {
        if (const toml::node* node = section.find("priority")) {
            const auto priority = node->is_integer() ? node->ref<std::int64_t>() : 0;
            if (priority < 1 || priority > 65535)
                section.expected(*node, "priority", "a whole number from 1 to 65535");
            else
                entry.priority = static_cast<std::uint32_t>(priority);
        }
        const toml::node* node = section.find("chain");
        if (node == nullptr) return;
        if (node->is_string()) entry.chain = kernel::parse_chain(node->ref<std::string>());
        if (!entry.chain)
            section.expected(*node, "chain",
                             R"("none", or a comma list of aborted, drop, pass, tx and redirect)");
        else if (entry.hook != kernel::HookPoint::xdp)
            section.mistake(*node, "chain", "only the hook xdp has a chain");
    }

    void read_order(Section& section, const toml::table& table, InterfaceConfiguration& entry) {
        section.texts("sets", "the name of a set", [&](const toml::node& node, const std::string& name) {
            if (const auto set = set_places_.find(name); set == set_places_.end()) {
                std::vector<std::string> known;
                for (const auto& [other, place] : set_places_) known.push_back(other);
                const std::string closest = closest_word(name, known);
                section.mistake(node, "sets",
                                closest.empty()
                                    ? fmt::format("there is no table [set.{}]", printable(name, 64))
                                    : fmt::format("there is no table [set.{}], did you mean {}?",
                                                  printable(name, 64), closest));
                return;
            }
            used_.insert(name);
            if (std::find(entry.sets.begin(), entry.sets.end(), name) != entry.sets.end())
                return section.mistake(node, "sets", fmt::format("set {} is named twice", name));
            entry.sets.push_back(name);
        });
        const toml::node* node = table.get("sets");
        if (node == nullptr)
            section.mistake("no sets: expected sets = [\"NAME\", ...], in the order in which they are asked");
        else if (node->is_array() && node->as_array()->empty())
            section.mistake(*node, "sets", "empty, expected the name of at least one set");
        else if (entry.sets.size() > SIEVE_MAX_SETS)
            section.mistake(
                *node, "sets",
                fmt::format("{} sets, but the program takes at most {}", entry.sets.size(), SIEVE_MAX_SETS));
    }

    void check_uses() {
        for (const auto& [name, place] : set_places_)
            if (!used_.contains(name) && kernel::is_set_name(name))
                mistakes_.add(place.where, place.key,
                              "no interface has this set among its sets; name it there or remove the table");
    }

    Mistakes& mistakes_;
    std::filesystem::path folder_;
    Configuration configuration_;
    std::map<std::string, Place> set_places_;
    std::set<std::string> used_;
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
    read.mistakes = mistakes.take();
    return read;
}

Result<Configuration> load_configuration(const std::string& path) {
    SIEVE_ASSIGN(Input input, Input::of(path));
    std::string text(longest_configuration + 1, '\0');
    SIEVE_ASSIGN(const std::size_t size, input.read_all(text.data(), text.size()));
    if (size > longest_configuration)
        return bad_input(fmt::format("{}: over {} MiB, expected a configuration", input.name(),
                                     longest_configuration >> 20));
    text.resize(size);
    ReadConfiguration read = read_configuration(text, path);
    if (read.mistakes.empty()) return std::move(read.configuration);
    std::string message = mistake_text(path, read.mistakes.front());
    if (const std::size_t more = read.mistakes.size() - 1; more > 0)
        message += fmt::format(" (and {} more mistake{})", more, more == 1 ? "" : "s");
    return bad_input(std::move(message));
}

} // namespace sieve::service
