// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/core.h>

#include "libsieve/kernel/maps/set_table.hpp"
#include "libsieve/service/config/configuration_depth.hpp"
#include "libsieve/service/config/configuration_fleet.hpp"
#include "libsieve/service/config/configuration_interfaces.hpp"
#include "libsieve/service/config/configuration_section.hpp"
#include "libsieve/service/config/configuration_service.hpp"
#include "libsieve/service/config/configuration_sets.hpp"
#include "libsieve/service/config/configuration_text.hpp"
#include "libsieve/service/config/configuration_toml.hpp"
#include "libsieve/service/download/libcurl_on_demand.hpp"
#include "libsieve/util/files/input.hpp"
#include "libsieve/util/text/counted.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

// A text that is longer was not meant to be read by people.
constexpr std::size_t longest_configuration = std::size_t{4} << 20;
constexpr std::size_t most_files = 1000;

// A file that was parsed.
struct ParsedFile {
    std::string path;
    toml::table root;

    [[nodiscard]] std::filesystem::path folder() const {
        return std::filesystem::absolute(path).parent_path();
    }
};

// "FILE:LINE".
std::string place_text(const toml::source_region& where) {
    return fmt::format("{}:{}", where.path ? printable(*where.path) : "", where.begin.line);
}

// The files as a whole.
class Reader {
  public:
    explicit Reader(Mistakes& mistakes) : mistakes_(mistakes) {}

    Configuration read(const std::vector<ParsedFile>& files) {
        std::vector<Section> tops;
        for (const ParsedFile& file : files) tops.emplace_back(mistakes_, file.root, "");
        read_host(tops.front(), files.front());
        for (std::size_t i = 1; i < files.size(); i++) refuse_host(tops[i], files.front().path);
        for (std::size_t i = 0; i < files.size(); i++)
            if (const toml::table* table = tops[i].table("set")) read_sets(*table, files[i].folder());
        for (const auto& [name, place] : set_places_) set_names_.push_back(name);
        for (std::size_t i = 0; i < files.size(); i++) read_interfaces(tops[i], files[i].folder());
        // A host that only publishes has none.
        if (!has_interfaces_ && !configuration_.fleet)
            mistakes_.add({}, "interface", "none: expected at least one [[interface]]");
        for (Section& top : tops) top.finish();
        check_uses();
        return std::move(configuration_);
    }

  private:
    // What is in a file, for messages about how its parts go together.
    struct Place {
        toml::source_region where;
        std::string key;
    };

    // Of what has been read so far.
    [[nodiscard]] KeyContext context(const std::filesystem::path& folder) const {
        return {folder, configuration_.http, configuration_.geo, set_names_};
    }

    // What is about the whole host.
    void read_host(Section& top, const ParsedFile& file) {
        const std::filesystem::path folder = file.folder();
        if (const toml::table* table = top.table("service"))
            read_service(mistakes_, *table, context(folder), configuration_);
        if (const toml::table* table = top.table("fleet"))
            configuration_.fleet = read_fleet(mistakes_, *table, context(folder));
    }
    void refuse_host(Section& top, const std::string& first) {
        for (const std::string_view name : {"service", "fleet"})
            if (const toml::node* node = top.find(name))
                top.mistake(*node, name,
                            fmt::format("is about the whole host; expected in {}", printable(first)));
    }

    void read_sets(const toml::table& table, const std::filesystem::path& folder) {
        for (const auto& [name, node] : table) {
            const std::string text(name.str());
            const std::string key = fmt::format("set.{}", printable(text, 64));
            const auto [known, is_new] = set_places_.emplace(text, Place{name.source(), key});
            if (!is_new) {
                mistakes_.add(name.source(), key,
                              fmt::format("{} has this set, too; expected another name here",
                                          place_text(known->second.where)));
                continue;
            }
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
            configuration_.sets.push_back(read_set(mistakes_, text, *set, key, context(folder)));
        }
    }

    void read_interfaces(Section& top, const std::filesystem::path& folder) {
        const toml::node* node = top.find("interface");
        if (node == nullptr) return;
        has_interfaces_ = true;
        const toml::array* entries = node->as_array();
        if (entries == nullptr || entries->empty())
            return top.expected(*node, "interface", "tables, each headed [[interface]]");
        const std::size_t earlier = interface_places_.size();
        for (const toml::node& entry : *entries) {
            const toml::table* table = entry.as_table();
            if (table == nullptr)
                top.expected(entry, "interface", "a table headed [[interface]]");
            else if (!binds(*table, context(folder), earlier)) {
                configuration_.interfaces.push_back(
                    read_interface(mistakes_, *table, context(folder), configuration_.interfaces));
                interface_places_.push_back(table->source());
            }
        }
    }
    // Whether the table adds sets to one of the entries of earlier files, and has done so.
    bool binds(const toml::table& table, const KeyContext& context, std::size_t earlier) {
        for (std::size_t i = 0; i < earlier; i++)
            if (bind_sets(mistakes_, table, context, configuration_.interfaces[i],
                          place_text(interface_places_[i])))
                return true;
        return false;
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
        for (const SetConfiguration& set : configuration_.sets) {
            if (set.action && set.action->action == SIEVE_ACTION_LIMIT)
                refuse_default_of_drop(set.name,
                                       "up to its limit, matches take the default, and the default of {} "
                                       "is drop; expected default = \"pass\"");
            // Without an action a set passes where the default drops.
            if (set.keeps_replies_out && !set.action)
                refuse_default_of_drop(
                    set.name, "replies = \"drop\" is for a set that drops or limits, and on {} this set "
                              "passes, since the default is drop; expected action = \"drop\"");
            if (follows_stream(set) && !set.action)
                refuse_default_of_drop(set.name,
                                       "no action, so the addresses that it bans would pass on {}, since the "
                                       "default is drop; expected action = \"drop\"");
        }
    }
    // A mistake for each interface that has the set under a default of drop; `why` takes the interface's
    // name.
    void refuse_default_of_drop(const std::string& set, fmt::string_view why) {
        const Place& place = set_places_.at(set);
        for (const InterfaceConfiguration& entry : configuration_.interfaces)
            if (entry.default_action == SIEVE_ACTION_DROP &&
                std::find(entry.sets.begin(), entry.sets.end(), set) != entry.sets.end())
                mistakes_.add(place.where, place.key, fmt::format(fmt::runtime(why), printable(entry.name)));
    }

    Mistakes& mistakes_;
    Configuration configuration_;
    std::map<std::string, Place> set_places_;
    SetNames set_names_;                                // of all files
    std::vector<toml::source_region> interface_places_; // of configuration_.interfaces
    bool has_interfaces_ = false;
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

Result<ConfigurationFile> read_file(const std::string& path, From from) {
    SIEVE_ASSIGN(Input input, from == From::files ? open_file(path) : Input::of(path));
    std::string text(longest_configuration + 1, '\0');
    SIEVE_ASSIGN(const std::size_t size, input.read_all(text.data(), text.size()));
    if (size > longest_configuration)
        return bad_input(fmt::format("{}: over {} MiB, expected a configuration", input.name(),
                                     longest_configuration >> 20));
    text.resize(size);
    return ConfigurationFile{path, std::move(text)};
}

// The files beside a configuration that add to it, by their names. Hidden files are left out: editors make
// such.
Result<std::vector<std::string>> more_files(const std::string& path) {
    std::vector<std::string> files;
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) return files;
    const std::filesystem::path folder = std::filesystem::path(path).parent_path() / "conf.d";
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::filesystem::path& file = entry->path();
        if (file.extension() == ".toml" && !file.filename().string().starts_with('.'))
            files.push_back(file.string());
    }
    if (error && error != std::errc::no_such_file_or_directory)
        return bad_input(fmt::format("{}: cannot be read: {}", printable(folder.string()), error.message()));
    if (files.size() > most_files)
        return bad_input(fmt::format("{}: {} files, expected at most {}", printable(folder.string()),
                                     files.size(), most_files));
    std::sort(files.begin(), files.end());
    return files;
}

} // namespace

std::string mistake_text(const std::string& path, const Mistake& mistake) {
    std::string text = printable(mistake.file.empty() ? path : mistake.file);
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

ReadConfiguration read_configuration(const std::vector<ConfigurationFile>& files) {
    const std::string& path = files.front().path;
    const auto in_file = [&](Mistake mistake, const std::string& file) -> ReadConfiguration {
        if (file != path) mistake.file = file;
        return {{}, {std::move(mistake)}};
    };
    Mistakes mistakes(path);
    std::vector<ParsedFile> parsed;
    for (const ConfigurationFile& file : files) {
        if (const std::optional<Mistake> deep = find_depth(file.text)) return in_file(*deep, file.path);
        if (has_fault(file.text))
            return in_file({line_of_fault(file.text), 1, "", "not TOML: expected a key"}, file.path);
        toml::parse_result result = toml::parse(file.text, file.path);
        if (!result) {
            mistakes.add(result.error().source(), "",
                         "not TOML: " + printable(result.error().description(), 200));
            return {{}, mistakes.take()};
        }
        parsed.push_back({file.path, std::move(result).table()});
    }
    ReadConfiguration read;
    read.configuration = Reader(mistakes).read(parsed);
    read.configuration.path = path;
    read.mistakes = mistakes.take();
    return read;
}

ReadConfiguration read_configuration(std::string_view text, const std::string& path) {
    return read_configuration({{path, std::string(text)}});
}

Result<std::vector<ConfigurationFile>> find_configuration(const std::string& path, From from) {
    std::vector<ConfigurationFile> files;
    SIEVE_ASSIGN(files.emplace_back(), read_file(path, from));
    SIEVE_ASSIGN(const std::vector<std::string> more, more_files(path));
    for (const std::string& one : more) {
        SIEVE_ASSIGN(files.emplace_back(), read_file(one, From::files));
    }
    return files;
}

Result<Configuration> load_configuration(const std::string& path, From from) {
    SIEVE_ASSIGN(const std::vector<ConfigurationFile> files, find_configuration(path, from));
    // URLs are understood by libcurl. A service that cannot open it now must not end.
    for (const ConfigurationFile& file : files)
        if (file.text.find("://") != std::string::npos)
            if (const Status there = libcurl_is_there(); !there)
                return kernel_refused(fmt::format("{}: a URL cannot be understood: {}", printable(file.path),
                                                  there.error().message));
    ReadConfiguration read = read_configuration(files);
    if (read.mistakes.empty()) return std::move(read.configuration);
    std::string message = mistake_text(path, read.mistakes.front());
    if (const std::size_t more = read.mistakes.size() - 1; more > 0)
        message += fmt::format(" (and {})", counted(more, "more mistake"));
    return bad_input(std::move(message));
}

} // namespace sieve::service
