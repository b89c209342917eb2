// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/completion.hpp"

#include <net/if.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>

#include <fmt/core.h>
#include <sieve/key.h>

#include "front-end/console/output.hpp"
#include "front-end/edit_argument.hpp"
#include "front-end/hook_argument.hpp"
#include "front-end/set_argument.hpp"
#include "libsieve/control/query/status.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/control/spec/build_options.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/feeds/text/list_format.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"

namespace sieve::cli {

namespace {

using CompletionWords = std::vector<CompletionWord>;

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> pieces;
    for (;;) {
        const std::size_t end = text.find(separator);
        pieces.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) return pieces;
        text.remove_prefix(end + 1);
    }
}

// What the words before the last one say.
struct Written {
    const Surroundings& surroundings;
    std::string interface {};
    std::string hook{};
};

// The candidates for a value of which `text` is written already. A source of candidates may also return
// others; complete() drops what does not begin with the text.
using Source = CompletionWords (*)(const std::string& text, const Written& written);

CompletionWords of(const std::vector<std::string>& texts, const std::string& prefix = {},
                   const std::string& suffix = {}) {
    CompletionWords candidates;
    for (const std::string& text : texts) candidates.push_back({prefix + text + suffix, {}});
    return candidates;
}

CompletionWords with_prefix(const std::string& prefix, CompletionWords candidates) {
    for (CompletionWord& candidate : candidates) candidate.text.insert(0, prefix);
    return candidates;
}

void append(CompletionWords& to, CompletionWords more) {
    to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

CompletionWords nothing(const std::string&, const Written&) {
    return {};
}

CompletionWords files(const std::string& text, const Written&) {
    const std::size_t slash = text.rfind('/');
    const std::string folder = slash == std::string::npos ? std::string() : text.substr(0, slash + 1);
    const std::string begin = text.substr(folder.size());
    CompletionWords candidates;
    std::error_code error;
    std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        // Hidden files are offered only to those who ask for them. A line holds one candidate.
        if (!name.starts_with(begin) || (begin.empty() && name.front() == '.')) continue;
        if (name.find_first_of("\n\t") != std::string::npos) continue;
        std::error_code unknown;
        candidates.push_back({folder + name + (entry->is_directory(unknown) ? "/" : ""), {}});
    }
    std::ranges::sort(candidates, {}, &CompletionWord::text);
    return candidates;
}

CompletionWords interfaces(const std::string&, const Written& written) {
    return of(written.surroundings.interfaces());
}

CompletionWords targets(const std::string&, const Written& written) {
    CompletionWords candidates = of(written.surroundings.interfaces());
    candidates.push_back({"cpu:", "a processor by its number"});
    return candidates;
}

CompletionWords set_names(const std::string&, const Written& written) {
    if (!written.interface.empty()) return of(written.surroundings.sets(written.interface, written.hook));
    std::set<std::string> all;
    for (const std::string& interface : written.surroundings.interfaces())
        for (std::string& set : written.surroundings.sets(interface, written.hook))
            all.insert(std::move(set));
    return of({all.begin(), all.end()});
}

CompletionWords kinds(const std::string&, const Written&) {
    CompletionWords candidates{{"auto", {}}};
    for (const FilterKind* kind : filter_kinds()) candidates.push_back({kind->facts().name, {}});
    return candidates;
}

CompletionWords formats(const std::string&, const Written&) {
    CompletionWords candidates;
    for (const ListSyntaxFacts& facts : list_syntaxes()) {
        candidates.push_back({std::string(facts.name), std::string(facts.summary)});
        if (!facts.parts.empty())
            candidates.push_back({fmt::format("{}:", facts.name), std::string(facts.parts)});
    }
    return candidates;
}

// A comma list: the next of the words, which must come later in `words` than the last one that is written if
// their order matters.
CompletionWords comma_list(const std::vector<std::string>& words, bool ordered, const std::string& text) {
    const std::vector<std::string> pieces = split(text, ',');
    const std::string before = text.substr(0, text.size() - pieces.back().size());
    auto begin = words.begin();
    CompletionWords candidates;
    for (std::size_t i = 0; i + 1 < pieces.size(); i++) {
        const auto written = std::ranges::find(words, pieces[i]);
        if (written == words.end()) return {};
        if (ordered) begin = written + 1;
    }
    for (; begin != words.end(); ++begin)
        if (ordered || std::find(pieces.begin(), pieces.end() - 1, *begin) == pieces.end() - 1)
            candidates.push_back({before + *begin, {}});
    return candidates;
}

CompletionWords fields(const std::string& text, const Written&) {
    static const std::vector<std::string> all =
        split(format_fields(SIEVE_FIELD_SRC | SIEVE_FIELD_DST | SIEVE_FIELD_SPORT | SIEVE_FIELD_DPORT |
                            SIEVE_FIELD_PROTO),
              ',');
    return comma_list(all, true, text);
}

// Those that people name most.
CompletionWords protocols(const std::string& text, const Written&) {
    return comma_list({"tcp", "udp", "icmp", "icmpv6", "sctp", "gre"}, false, text);
}

CompletionWords verdicts(const std::string& text, const Written&) {
    CompletionWords candidates = comma_list({"pass", "drop", "redirect", "tx", "aborted"}, false, text);
    if (text.find(',') == std::string::npos) candidates.push_back({"none", {}});
    return candidates;
}

CompletionWords values(std::string_view name, const std::string& text, const Written& written);

// One option of a set, after a comma: the options, or a value of the one that is written.
CompletionWords set_option(const std::string& piece, const Written& written) {
    const std::size_t equals = piece.find('=');
    CompletionWords candidates;
    const auto offer = [&](std::string_view name, const char* value, bool alone, const std::string& help) {
        if (equals == std::string::npos) {
            if (alone) candidates.push_back({std::string(name), help});
            if (value != nullptr) candidates.push_back({fmt::format("{}=", name), help});
        } else if (value != nullptr && piece.substr(0, equals) == name) {
            append(candidates, with_prefix(piece.substr(0, equals + 1),
                                           values(value, piece.substr(equals + 1), written)));
        }
    };
    for (const SetOption& option : set_options())
        offer(option.name, option.value, option.value_optional, option.help);
    for (const control::BuildOption& option : control::build_options())
        offer(option.name, option.value, option.value == nullptr, option.help);
    return candidates;
}

// NAME=SOURCE[,OPTION]..., or a file alone where no name is known.
CompletionWords set_arguments(const std::string& text, const Written& written) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
        if (written.interface.empty()) return files(text, written);
        return of(written.surroundings.sets(written.interface, written.hook), {}, "=");
    }
    const std::size_t comma = text.rfind(',');
    if (comma == std::string::npos || comma < equals)
        return with_prefix(text.substr(0, equals + 1), files(text.substr(equals + 1), written));
    CompletionWords candidates =
        with_prefix(text.substr(0, comma + 1), set_option(text.substr(comma + 1), written));
    // A comma may also separate the fields of a key.
    const std::size_t key = text.rfind(",key=");
    if (key != std::string::npos && key < comma)
        append(candidates, with_prefix(text.substr(0, key + 5), fields(text.substr(key + 5), written)));
    return candidates;
}

// The words of `set` and `add`; `only_places`: those of `add`.
CompletionWords edits(const std::string& text, const Written& written, bool only_places) {
    const std::size_t equals = text.find('=');
    CompletionWords candidates;
    for (const EditWord& word : edit_words()) {
        if (only_places && !word.places) continue;
        const std::string name = std::string(word.name) + (word.value != nullptr ? "=" : "");
        if (equals == std::string::npos)
            candidates.push_back({name, word.help});
        else if (text.substr(0, equals + 1) == name)
            append(candidates, with_prefix(name, values(word.value, text.substr(equals + 1), written)));
    }
    return candidates;
}

CompletionWords set_edits(const std::string& text, const Written& written) {
    return edits(text, written, false);
}

CompletionWords places(const std::string& text, const Written& written) {
    return edits(text, written, true);
}

CompletionWords pass_or_drop(const std::string&, const Written&) {
    return of({"pass", "drop"});
}

struct Value {
    const char* name;
    Source source;
};

// What the help calls values, and where their candidates come from. A name such as "pass|drop" lists its
// candidates itself.
constexpr std::array known_values = {
    Value{"IFACE", interfaces},    Value{"NAME", set_names},      Value{"SET", set_arguments},
    Value{"IMAGE", files},         Value{"FEED", files},          Value{"FILE", files},
    Value{"CONFIG", files},        Value{"KIND", kinds},          Value{"FORMAT", formats},
    Value{"FIELDS", fields},       Value{"TARGET", targets},      Value{"VERDICTS", verdicts},
    Value{"KEY", nothing},         Value{"NUMBER", nothing},      Value{"BITS", nothing},
    Value{"RATE", nothing},        Value{"BYTES", nothing},       Value{"SHARE", nothing},
    Value{"BEFORE", files},        Value{"NOW", files},           Value{"[SECONDS]", nothing},
    Value{"UINT", nothing},        Value{"FLOAT", nothing},       Value{"SECONDS", nothing},
    Value{"PORTS", nothing},       Value{"PPS[/BURST]", nothing}, Value{"LIST", files},
    Value{"EDIT", set_edits},      Value{"PLACE", places},        Value{"VERDICT", pass_or_drop},
    Value{"TIME", nothing},        Value{"FLEET", nothing},       Value{"STAGES", nothing},
    Value{"DIGEST", nothing},      Value{"LENGTHS", nothing},     Value{"DAYS", nothing},
    Value{"ADDRESS", nothing},     Value{"TEXT", nothing},        Value{"URL", nothing},
    Value{"PROTOCOLS", protocols},
};

CompletionWords values(std::string_view name, const std::string& text, const Written& written) {
    if (name.find('|') != std::string_view::npos) return of(split(name, '|'));
    const auto* value =
        std::ranges::find_if(known_values, [&](const Value& known) { return known.name == name; });
    return value == known_values.end() ? CompletionWords() : value->source(text, written);
}

bool is_called(const ArgumentDescription& argument, std::string_view word) {
    if (word.starts_with("--")) {
        word.remove_prefix(2);
        return std::ranges::find(argument.long_names, word) != argument.long_names.end();
    }
    if (word.size() != 2 || word.front() != '-') return false;
    word.remove_prefix(1);
    return std::ranges::find(argument.short_names, word) != argument.short_names.end();
}

// Up to the first semicolon; what follows is detail.
std::string brief(const std::string& description) {
    const std::string line = description.substr(0, description.find('\n'));
    return line.substr(0, line.find(';'));
}

// Reads the words before the last one, and completes the last one.
class Completer {
  public:
    Completer(const CommandDescription& program, const CommandDescription& command,
              const Surroundings& surroundings)
        : written_{surroundings} {
        for (const ArgumentDescription& argument : command.arguments) arguments_.push_back(&argument);
        if (&program != &command)
            for (const ArgumentDescription& argument : program.arguments) arguments_.push_back(&argument);
    }

    void read(const std::string& word) {
        if (pending_ != nullptr) {
            note(*pending_, word);
            pending_ = nullptr;
        } else if (word == "--") {
            only_positionals_ = true;
        } else if (!only_positionals_ && word.size() > 1 && word.front() == '-') {
            read_option(word);
        } else if (const ArgumentDescription* positional = next_positional()) {
            note(*positional, word);
            positional_words_++;
        }
    }

    [[nodiscard]] CompletionWords finish(const std::string& word) const {
        if (pending_ != nullptr) return values(pending_->value, word, written_);
        if (!only_positionals_ && word.starts_with('-')) return finish_option(word);
        const ArgumentDescription* positional = next_positional();
        return positional == nullptr ? CompletionWords() : values(positional->value, word, written_);
    }

    [[nodiscard]] CompletionWords option_names(const std::string& word) const {
        CompletionWords candidates;
        for (const ArgumentDescription* option : arguments_) {
            if (option->positional || std::ranges::find(given_, option) != given_.end()) continue;
            for (const std::string& name : option->long_names)
                candidates.push_back({"--" + name, brief(option->help)});
            // A short name is offered where it is all there is, or is written already.
            for (const std::string& name : option->short_names)
                if (option->long_names.empty() || word == "-" + name)
                    candidates.push_back({"-" + name, brief(option->help)});
        }
        return candidates;
    }

  private:
    void note(const ArgumentDescription& option, const std::string& value) {
        if (option.value == "IFACE") written_.interface = value;
        if (is_called(option, "--hook")) written_.hook = value;
    }

    [[nodiscard]] const ArgumentDescription* find(std::string_view name) const {
        const auto option = std::ranges::find_if(
            arguments_, [&](const ArgumentDescription* one) { return is_called(*one, name); });
        return option == arguments_.end() ? nullptr : *option;
    }

    void read_option(const std::string& word) {
        const std::size_t equals = word.find('=');
        const ArgumentDescription* option = find(std::string_view(word).substr(0, equals));
        if (option == nullptr) return;
        given_.push_back(option);
        if (equals != std::string::npos)
            note(*option, word.substr(equals + 1));
        else if (option->most_values > 0)
            pending_ = option;
    }

    [[nodiscard]] CompletionWords finish_option(const std::string& word) const {
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos) return option_names(word);
        const ArgumentDescription* option = find(std::string_view(word).substr(0, equals));
        if (option == nullptr || option->most_values == 0) return {};
        return with_prefix(word.substr(0, equals + 1),
                           values(option->value, word.substr(equals + 1), written_));
    }

    // The argument that the next word would be.
    [[nodiscard]] const ArgumentDescription* next_positional() const {
        std::size_t left = positional_words_;
        for (const ArgumentDescription* argument : arguments_) {
            if (!argument->positional) continue;
            if (left < argument->most_values) return argument;
            left -= argument->most_values;
        }
        return nullptr;
    }

    Written written_;
    std::vector<const ArgumentDescription*> arguments_, given_;
    const ArgumentDescription* pending_ = nullptr; // awaits its value
    std::size_t positional_words_ = 0;
    bool only_positionals_ = false;
};

CompletionWords command_names(const CommandDescription& program) {
    CompletionWords candidates;
    for (const CommandDescription& command : program.commands)
        candidates.push_back({command.name, brief(command.help)});
    return candidates;
}

CompletionWords all_candidates(const CommandDescription& program, const std::vector<std::string>& words,
                               const Surroundings& surroundings) {
    const auto last = words.end() - 1;
    if (program.commands.empty()) { // such as xdp-sieved
        Completer completer(program, program, surroundings);
        for (auto word = words.begin(); word != last; ++word) completer.read(*word);
        return completer.finish(*last);
    }
    // The options in front of the command take no values.
    const auto name =
        std::find_if(words.begin(), last, [](const std::string& w) { return !w.starts_with('-'); });
    if (name == last) {
        Completer completer(program, program, surroundings);
        for (auto word = words.begin(); word != last; ++word) completer.read(*word);
        return last->starts_with('-') ? completer.option_names(*last) : command_names(program);
    }
    const auto command = std::ranges::find(program.commands, *name, &CommandDescription::name);
    if (command == program.commands.end()) return {};
    Completer completer(program, *command, surroundings);
    for (auto word = name + 1; word != last; ++word) completer.read(*word);
    return completer.finish(*last);
}

} // namespace

std::vector<CompletionWord> complete(const CommandDescription& program, std::vector<std::string> words,
                                     const Surroundings& surroundings) {
    if (words.empty()) words.emplace_back();
    CompletionWords candidates = all_candidates(program, words, surroundings);
    std::erase_if(candidates,
                  [&](const CompletionWord& candidate) { return !candidate.text.starts_with(words.back()); });
    return candidates;
}

bool is_known_value(std::string_view name) {
    return name.find('|') != std::string_view::npos ||
           std::ranges::any_of(known_values, [&](const Value& known) { return known.name == name; });
}

Surroundings this_machine() {
    const auto all_interfaces = [] {
        std::vector<std::string> names;
        const std::unique_ptr<struct if_nameindex, decltype(&if_freenameindex)> list(::if_nameindex(),
                                                                                     &if_freenameindex);
        for (const auto* one = list.get(); one != nullptr && one->if_index != 0; one++)
            names.emplace_back(one->if_name);
        return names;
    };
    const auto sets = [](const std::string& interface, const std::string& hook) {
        std::vector<std::string> names;
        const Result<control::HookName> name = parse_hook(interface, hook);
        if (!name) return names;
        control::RealKernel kernel;
        const Result<control::Overview> overview = control::read_status(kernel, *name);
        if (!overview) return names;
        for (const control::HookStatus& status : overview->ours)
            for (const control::SetStatus& set : status.table.sets)
                if (std::ranges::find(names, set.set.name) == names.end()) names.push_back(set.set.name);
        return names;
    };
    return {all_interfaces, sets};
}

void print_candidates(const CommandDescription& program, std::vector<std::string> words) {
    if (!words.empty() && words.front() == "--") words.erase(words.begin());
    for (const CompletionWord& candidate : complete(program, std::move(words), this_machine()))
        print_out("{}\t{}\n", candidate.text, candidate.description);
}

} // namespace sieve::cli
