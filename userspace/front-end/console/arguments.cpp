// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/console/arguments.hpp"

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "libsieve/util/text/number.hpp"

namespace sieve::cli {

namespace {

constexpr char not_empty[] = "not empty"; // a check's name

std::string fault_if_empty(const std::string& text) {
    return text.empty() ? "expected a value, found an empty text" : "";
}

} // namespace

Argument Argument::required() {
    option_->required();
    return *this;
}

Argument Argument::between(std::int64_t least, std::int64_t most) {
    option_->check(CLI::Range(least, most));
    return *this;
}

Argument Argument::positive() {
    // CLI11's own check has an unhelpful message: the number is not between 0 and a number of 309 digits.
    option_->check([](const std::string& text) {
        double value = 0;
        return CLI::detail::lexical_cast(text, value) && value > 0 ? std::string()
                                                                   : "expected a number above 0, not " + text;
    });
    return *this;
}

Argument Argument::show_default() {
    option_->capture_default_str();
    return *this;
}

Argument Argument::separated_by(char separator) {
    option_->delimiter(separator);
    return *this;
}

Argument Argument::optional_value(const std::string& name) {
    option_->expected(0, 1)->type_name(name);
    return *this;
}

Argument Argument::only_with(const Argument& other) {
    option_->needs(other.option_);
    return *this;
}

Argument Argument::read_as(std::function<std::string(std::string text)> change) {
    option_->transform(std::move(change), "");
    return *this;
}

Argument Argument::may_be_empty() {
    option_->get_validator(not_empty)->active(false);
    return *this;
}

bool Argument::given() const {
    return option_->count() > 0;
}

Argument Argument::called(const std::string& value) {
    option_->type_name(value);
    return *this;
}

namespace {

template <class T>
constexpr bool is_whole = std::is_integral_v<T> || std::is_same_v<T, std::optional<std::uint32_t>> ||
                          std::is_same_v<T, std::optional<std::uint64_t>>;

template <class T>
constexpr bool is_text = std::is_same_v<T, std::string> || std::is_same_v<T, std::optional<std::string>>;

} // namespace

template <class T>
Argument Arguments::add(const std::string& names, T& into, const std::string& description) {
    CLI::Option* option = app_->add_option(names, into, description);
    // CLI11 reads a whole number only if it consists of digits.
    if constexpr (is_whole<T>)
        option->transform([](std::string text) {
            const std::optional<std::uint64_t> number = parse_whole(text);
            return number ? std::to_string(*number) : text;
        });
    if constexpr (is_text<T>) option->check(fault_if_empty, "", not_empty);
    // Else an option takes the words behind it, too, which may be the command's.
    if constexpr (std::is_same_v<T, std::vector<std::string>>)
        if (names.starts_with('-')) option->allow_extra_args(false);
    return Argument(option);
}

template Argument Arguments::add(const std::string&, std::string&, const std::string&);
template Argument Arguments::add(const std::string&, std::vector<std::string>&, const std::string&);
template Argument Arguments::add(const std::string&, double&, const std::string&);
template Argument Arguments::add(const std::string&, std::uint32_t&, const std::string&);
template Argument Arguments::add(const std::string&, std::uint64_t&, const std::string&);
template Argument Arguments::add(const std::string&, std::optional<double>&, const std::string&);
template Argument Arguments::add(const std::string&, std::optional<std::uint32_t>&, const std::string&);
template Argument Arguments::add(const std::string&, std::optional<std::uint64_t>&, const std::string&);
template Argument Arguments::add(const std::string&, std::optional<std::string>&, const std::string&);

Argument Arguments::add_flag(const std::string& names, bool& into, const std::string& description) {
    return Argument(app_->add_flag(names, into, description));
}

Arguments Arguments::add_at_most_one(const std::string& name, const std::string& description) {
    auto* group = app_->add_option_group(name, description);
    group->require_option(0, 1);
    return Arguments(group);
}

Arguments Arguments::add_command(const std::string& name, const std::string& description) {
    CLI::App* command = app_->add_subcommand(name, description);
    command->group("Commands");
    command->fallthrough();
    return Arguments(command);
}

void Arguments::when_chosen(std::function<void()> work) {
    app_->callback(std::move(work));
}

bool Arguments::has(const std::string& option) const {
    return app_->get_option_no_throw(option) != nullptr;
}

} // namespace sieve::cli
