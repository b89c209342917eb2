// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// HTML that only this program's own literals can shape: everything else is escaped where it enters.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace sieve::service::watching {

// Text as it stands in an element or in a quoted attribute. Bytes that are no UTF-8, control characters, and
// characters that turn the direction of writing become U+FFFD.
[[nodiscard]] std::string escape_html(std::string_view text);

// A string that the compiler knows.
class Markup {
  public:
    consteval Markup(const char* text) : text_(text) {} // NOLINT(google-explicit-constructor)
    [[nodiscard]] std::string_view text() const { return text_; }

  private:
    std::string_view text_;
};

class Html {
  public:
    Html() = default;

    // Appends the markup; each {} stands for the next argument: escaped text, or other Html as it is.
    template <class... Arguments>
    Html& add(Markup markup, const Arguments&... arguments) {
        const std::array<std::string, sizeof...(Arguments)> texts{escaped(arguments)...};
        append(markup.text(), texts);
        return *this;
    }

    [[nodiscard]] const std::string& text() const { return text_; }
    [[nodiscard]] bool empty() const { return text_.empty(); }

  private:
    static std::string escaped(const Html& html) { return html.text_; }
    static std::string escaped(std::string_view text) { return escape_html(text); }
    void append(std::string_view markup, std::span<const std::string> texts);

    std::string text_;
};

// Markup with arguments, as Html of its own.
template <class... Arguments>
[[nodiscard]] Html html(Markup markup, const Arguments&... arguments) {
    Html part;
    part.add(markup, arguments...);
    return part;
}

} // namespace sieve::service::watching
