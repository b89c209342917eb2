// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Every format but the plain one is translated: a translator turns what stands for one entry into the text
// that a plain feed would have for it, and the grammar of entry.hpp judges that text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "libsieve/feeds/text/entry.hpp"
#include "libsieve/feeds/text/list_format.hpp"
#include "libsieve/util/result.hpp"

namespace sieve::formats {

enum class Translated : std::uint8_t {
    entry,   // `text` is an entry
    nothing, // the line has none: a heading, another set's entry, a name without an address
    bad,     // `fault` says why the line cannot be read
};

// Translates lines, in any order and by any number of threads.
class LineTranslator {
  public:
    virtual ~LineTranslator() = default;
    // `line` is not empty, is no comment, and has neither blanks at its start nor its end of line.
    [[nodiscard]] virtual Translated translate(std::string_view line, std::string& text,
                                               entry::Fault& fault) const = 0;
    // What a person should know about how the list is read, such as "column 2 (dst_ip)"; may be empty.
    [[nodiscard]] virtual std::string remark() const { return {}; }
};

// `head` is the list's beginning, or all of it. The error says why the list is not of the format, without the
// list's name.
[[nodiscard]] Result<std::unique_ptr<const LineTranslator>>
make_line_translator(const ListFormat& format, std::uint32_t fields, std::string_view head);

// Whether the format's entries are not bound to lines, so that the list is read as a whole.
[[nodiscard]] constexpr bool is_document(ListSyntax syntax) {
    return syntax == ListSyntax::json || syntax == ListSyntax::nft || syntax == ListSyntax::geo;
}

// Where an entry stands in a document.
struct Place {
    std::uint64_t line = 0; // from 1; 0: `path` says where
    std::string path{};
};

// What a document has in one place: an entry's text, or why there is none.
using EntrySink = std::function<void(const Place& place, Translated what, const std::string& text,
                                     const entry::Fault& fault)>;

// Passes all entries of a document to the sink, in order. The error says why the document cannot be read at
// all, without the list's name.
[[nodiscard]] Status translate_document(const ListFormat& format, std::uint32_t fields,
                                        std::string_view document, const EntrySink& sink);

// --- one function for each format (NAME.cpp) ---

[[nodiscard]] std::unique_ptr<const LineTranslator> hosts_translator();
[[nodiscard]] std::unique_ptr<const LineTranslator> dshield_translator();
[[nodiscard]] std::unique_ptr<const LineTranslator> p2p_translator();
[[nodiscard]] std::unique_ptr<const LineTranslator>
ipset_translator(const ListFormat& format, std::uint32_t fields, std::string_view head);
[[nodiscard]] Result<std::unique_ptr<const LineTranslator>>
csv_translator(const ListFormat& format, std::uint32_t fields, std::string_view head);
// Whether rows of several columns follow a heading, and a column holds an address in each of them.
[[nodiscard]] bool is_table(std::string_view head);
[[nodiscard]] Status translate_json(const ListFormat& format, std::uint32_t fields, std::string_view document,
                                    const EntrySink& sink);
[[nodiscard]] Status translate_nft(const ListFormat& format, std::uint32_t fields, std::string_view document,
                                   const EntrySink& sink);

} // namespace sieve::formats
