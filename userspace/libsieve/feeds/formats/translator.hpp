// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Every format but the plain one is translated: a translator turns what stands for one entry into the text
// that a plain feed would have for it, and the grammar of entry.hpp judges that text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "libsieve/feeds/text/entry.hpp"
#include "libsieve/feeds/text/list_format.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::formats {

enum class Translated : std::uint8_t {
    entry,   // `text` is an entry
    timed,   // likewise, which where the list comes from has a timeout
    nothing, // the line has none: a heading, another set's entry
    omitted, // the line has an address that the format does not mean as an entry
    flush,   // the line takes out all entries before it; bad, as `fault` says, if there are any
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
    // Which lines are omitted, to follow their number, such as "whose address leads nowhere".
    [[nodiscard]] virtual std::string_view omits() const { return {}; }
};

// Where an entry stands in a document.
struct Place {
    std::uint64_t line = 0; // from 1; 0: `path` says where
    std::string path{};
};

// What a document has in one place: an entry's text, or why there is none.
using EntrySink = std::function<void(const Place& place, Translated what, const std::string& text,
                                     const entry::Fault& fault)>;

// One of a list's first lines.
struct SampledLine {
    std::string_view text;
    bool is_plain = false; // a plain list may have this line
};

// What a list's first lines say of a format together.
enum class Likeness : std::uint8_t {
    none,
    doubtful, // the list may have the format, or be plain
    certain,
};

// How lists of a format are recognised and read.
struct FormatReader {
    // What tells the format of a list with this key: its first line that is no comment; one of its first
    // hundred such lines; all of these together; its beginning, if no format has its first line. Null: that
    // tells nothing.
    bool (*is_first_line)(std::string_view line, std::uint32_t fields) = nullptr;
    bool (*is_line)(std::string_view line, std::uint32_t fields) = nullptr;
    Likeness (*likeness)(std::span<const SampledLine> lines, std::uint32_t fields) = nullptr;
    bool (*is_head)(std::string_view head) = nullptr;

    // Reads line by line. `head` is the list's beginning, or all of it. The error says why the list is not of
    // the format, without the list's name.
    Result<std::unique_ptr<const LineTranslator>> (*lines)(const ListFormat& format, std::uint32_t fields,
                                                           std::string_view head) = nullptr;
    // Or entries are not bound to lines: passes all entries of the document to the sink, in order. The error
    // says why the document cannot be read at all, without the list's name.
    Status (*document)(const ListFormat& format, std::uint32_t fields, std::string_view document,
                       const EntrySink& sink) = nullptr;
};

// NAME_format is in NAME.cpp.
#define SIEVE_READER(name, parts, several, summary) extern const FormatReader name##_format;
SIEVE_LIST_FORMATS(SIEVE_READER)
#undef SIEVE_READER

// `syntax` is that of a list, neither plain nor automatic.
[[nodiscard]] const FormatReader& reader_of(ListSyntax syntax);

} // namespace sieve::formats
