// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/text/list_format.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "libsieve/feeds/text/geo_code.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve {

namespace {

constexpr ListSyntaxFacts syntaxes[] = {
    {ListSyntax::automatic, "auto", "", false, "the format that the first lines have"},
    {ListSyntax::plain, "plain", "", false, "one entry a line"},
#define SIEVE_FACTS(name, parts, several, summary) {ListSyntax::name, #name, parts, several, summary},
    SIEVE_LIST_FORMATS(SIEVE_FACTS)
#undef SIEVE_FACTS
};

} // namespace

std::span<const ListSyntaxFacts> list_syntaxes() {
    return syntaxes;
}

const ListSyntaxFacts& facts_of(ListSyntax syntax) {
    return *std::ranges::find(syntaxes, syntax, &ListSyntaxFacts::syntax);
}

std::string names_of_syntaxes() {
    std::vector<std::string_view> names;
    for (const ListSyntaxFacts& facts : syntaxes) names.push_back(facts.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

Result<ListFormat> parse_list_format(std::string_view text) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const std::string_view name = text.substr(0, colon);
    const auto* const facts = std::ranges::find(syntaxes, name, &ListSyntaxFacts::name);
    if (facts == std::end(syntaxes))
        return invalid_request(fmt::format("expected one of {}, found \"{}\"", names_of_syntaxes(),
                                           printable(std::string(name), 64)));
    ListFormat format{facts->syntax, {}};
    if (colon == text.size()) return format;
    if (facts->parts.empty())
        return invalid_request(fmt::format("the format {} takes no parts, found \"{}\"", name,
                                           printable(std::string(text), 64)));
    std::string_view rest = text.substr(colon + 1);
    for (;;) {
        const std::size_t plus = std::min(rest.find('+'), rest.size());
        if (plus == 0)
            return invalid_request(fmt::format("expected {0}:{1} or {0}:{1}+{1}, found \"{2}\"", name,
                                               facts->parts, printable(std::string(text), 64)));
        format.parts.emplace_back(rest.substr(0, plus));
        if (format.syntax == ListSyntax::geo) {
            SIEVE_ASSIGN(format.parts.back(), parse_geo_code(format.parts.back()));
        }
        if (plus == rest.size()) break;
        rest.remove_prefix(plus + 1);
    }
    if (!facts->several && format.parts.size() > 1)
        return invalid_request(fmt::format("expected {}:{}, found \"{}\"", name, facts->parts,
                                           printable(std::string(text), 64)));
    return format;
}

std::string format_list_format(const ListFormat& format) {
    const std::string name(facts_of(format.syntax).name);
    return format.parts.empty() ? name : fmt::format("{}:{}", name, fmt::join(format.parts, "+"));
}

} // namespace sieve
