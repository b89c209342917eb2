// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/feed.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sieve/image.h>

#include "libsieve/feeds/detect_format.hpp"
#include "libsieve/feeds/find_keys.hpp"
#include "libsieve/feeds/find_origin.hpp"
#include "libsieve/feeds/formats/geo.hpp"
#include "libsieve/feeds/formats/translator.hpp"
#include "libsieve/feeds/list_reader.hpp"
#include "libsieve/feeds/read_any.hpp"
#include "libsieve/feeds/text/entry.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/util/parallel/parallel.hpp"
#include "libsieve/util/results/out_of_memory.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve {
namespace {

constexpr std::size_t smallest_block = std::size_t{16} << 10;
static_assert(smallest_block > 2 * (feed_line_limit + 2),
              "what is left over from a block must leave room to read on in the next");
constexpr std::size_t skipped_shown = 5;
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

// A malformed line of a block.
struct BadLine {
    std::uint64_t line; // the block's first line is 1; 0: `why` begins with the place
    std::string why;
};

// The keys that find_keys() looks for; usually none.
using Sought = std::span<const sieve_key>;

bool covers(const KeyRange& range, const sieve_key& key) {
    const auto inside = [&](std::uint32_t field, int word, const AddressRange& addresses) {
        const uint128 address = address_number(key.word[word], key.word[word + 1]);
        return (range.fields & field) == 0 || (address >= addresses.first && address <= addresses.last &&
                                               is_ipv4(address) == is_ipv4(addresses.first));
    };
    return ((range.transport ^ key.word[4]) & sieve_transport_mask(range.fields)) == 0 &&
           inside(SIEVE_FIELD_SRC, 0, range.source) && inside(SIEVE_FIELD_DST, 2, range.destination);
}

// Where one of them was found.
struct Sighting {
    std::size_t key;
    std::uint64_t line; // like BadLine
    std::string path;
};

// How the lines of an input are read. Plain lines need no translator.
struct Reading {
    ListFormat format{ListSyntax::plain, {}};
    std::shared_ptr<const formats::LineTranslator> translator{};
};

// Whether entries are not bound to lines, so that the list is read as a whole.
bool is_document(const ListFormat& format) {
    return formats::reader_of(format.syntax).document != nullptr;
}

std::string read_as(ListSyntax syntax) {
    const ListSyntaxFacts& facts = facts_of(syntax);
    return fmt::format("read as {} (format {})", facts.summary, facts.name);
}

// A run of whole lines of one file on its way through the pipeline.
struct Block {
    explicit Block(std::uint32_t fields) : keys(fields) {}

    std::unique_ptr<char[]> text;
    std::size_t size = 0;
    std::string document{}; // the whole of an input that is one
    Reading reading{};
    std::optional<std::string> decided{}; // what the input was read as, if that is to be said
    std::size_t file = 0;                 // index into the inputs
    bool starts_file = false;             // it holds the first bytes of the file
    std::optional<Error> unreadable;      // why the file could not be read to its end
    std::optional<std::string> alien;     // if the file is no feed: what it is, and what to do

    KeySet keys;
    std::vector<AddressRange> ranges;
    std::vector<KeyRange> key_ranges;
    std::uint64_t lines = 0;
    std::uint64_t comments = 0;
    std::uint64_t omitted = 0; // of the comments
    std::uint64_t timed = 0;   // entries with a timeout
    std::uint64_t bad = 0;
    std::uint64_t masked = 0;
    std::uint64_t taken = 0;        // bytes of the file that were read for this block
    std::uint64_t consumed = 0;     // likewise, as they are in the file: packed, if it is
    std::vector<BadLine> bad_first; // the first few
    std::vector<BadLine> flushes;   // comments that are bad if an earlier block has entries of the file
    std::vector<Sighting> sightings;
    formats::GeoContents geo; // of a document that is such data
};

// First stage: cuts the files into blocks of whole lines. If a line is longer than a block, its middle is
// dropped. The rest still exceeds the line limit, which is all that matters for the error message, and no
// input can make a block grow. Unless malformed lines are skipped, reading ends with such a line, since its
// end may never come.
class Reader {
  public:
    Reader(std::span<Input> inputs, std::uint32_t fields, const FeedOptions& options)
        : inputs_(inputs), fields_(fields), format_(options.format), skip_invalid_(options.skip_invalid),
          block_bytes_(std::max(options.block_bytes, smallest_block)) {}

    // Fills a block. Returns false after the last block.
    bool next(Block& block) {
        if (!block.text) block.text = std::make_unique_for_overwrite<char[]>(block_bytes_ + 1);
        block.unreadable.reset();
        block.alien.reset();
        block.size = 0;
        block.taken = block.consumed = 0;
        block.starts_file = false;
        block.document.clear();
        block.decided.reset();
        while (file_ < inputs_.size()) {
            block.file = file_;
            if (!chosen_ && !choose_reading(block)) return true;
            block.reading = reading_;
            // What was looked at, to decide how to read the file, counts for its first block.
            const std::uint64_t consumed = at_start_ ? 0 : inputs_[file_].consumed();
            const std::size_t file = file_;
            const bool goes_on = is_document(reading_.format) ? fill_document(block) : fill(block);
            block.consumed = inputs_[file].consumed() - consumed;
            block.starts_file = at_start_;
            if (block.size > 0) at_start_ = false;
            if (!goes_on) finish_file();
            if (goes_on || block.unreadable || block.decided || block.size > 0) return true;
        }
        return false;
    }

  private:
    // Decides how the next input is read. Returns false if it cannot be read; the block then says why.
    bool choose_reading(Block& block) {
        chosen_ = true;
        reading_ = block.reading = {format_, {}};
        if (Result<bool> packed = inputs_[file_].unpack(); !packed) {
            block.unreadable = std::move(packed.error());
            file_ = inputs_.size();
            return false;
        }
        Result<std::string_view> begin = inputs_[file_].peek(format_head_bytes);
        if (!begin) {
            block.unreadable = std::move(begin.error());
            file_ = inputs_.size();
            return false;
        }
        if (looks_like_html(*begin)) {
            block.alien =
                "found an HTML page, expected a list; look at it in a browser: it may be a notice, a "
                "login, or the page about the list";
            file_ = inputs_.size();
            return false;
        }
        if (format_.syntax == ListSyntax::plain) return true;
        std::string_view head = *begin;
        if (head.starts_with(byte_order_mark)) head.remove_prefix(byte_order_mark.size());
        if (begin->size() == format_head_bytes) head = head.substr(0, head.rfind('\n') + 1); // whole lines
        const bool decides = format_.syntax == ListSyntax::automatic;
        const DetectedSyntax detected =
            decides ? detect_syntax(head, fields_) : DetectedSyntax{format_.syntax};
        const ListSyntax syntax = reading_.format.syntax = detected.syntax;
        if (syntax == ListSyntax::plain) return true;
        const ListSyntaxFacts& facts = facts_of(syntax);
        if (detected.may_be_plain) {
            block.alien = fmt::format("may be {}, which would leave out some of its lines, or entries with "
                                      "further columns; choose the format {} or plain",
                                      facts.summary, facts.name);
            file_ = inputs_.size();
            return false;
        }
        if (!is_document(reading_.format)) {
            auto translator = formats::reader_of(syntax).lines(reading_.format, fields_, head);
            if (!translator) {
                block.alien = std::move(translator.error().message);
                file_ = inputs_.size();
                return false;
            }
            reading_.translator = std::move(*translator);
        }
        if (!decides) return true;
        const std::string detail = reading_.translator ? reading_.translator->remark() : std::string();
        block.decided = read_as(syntax) + (detail.empty() ? "" : ", ") + detail;
        return true;
    }

    void finish_file() {
        if (file_ == inputs_.size()) return;
        inputs_[file_++].close();
        at_start_ = true;
        chosen_ = false;
        carried_.clear();
    }

    // Reads the input to its end.
    bool fill_document(Block& block) {
        constexpr std::size_t step = std::size_t{1} << 20;
        for (;;) {
            const std::size_t size = block.document.size();
            block.document.resize(size + step);
            Result<std::size_t> got = inputs_[file_].read(block.document.data() + size, step);
            block.document.resize(size + (got ? *got : 0));
            if (!got) {
                block.unreadable = std::move(got.error());
                file_ = inputs_.size();
                return false;
            }
            if (*got == 0) break;
        }
        block.size = block.taken = block.document.size();
        return false;
    }

    // Reads until the block is full or the file ends. Returns true if more of the file follows.
    bool fill(Block& block) {
        Input& input = inputs_[file_];
        char* text = block.text.get();
        std::size_t size = carried_.size();
        std::memcpy(text, carried_.data(), size);
        carried_.clear();
        while (size < block_bytes_) {
            Result<std::size_t> got = input.read(text + size, block_bytes_ - size);
            if (!got) {
                block.unreadable = std::move(got.error());
                file_ = inputs_.size(); // nothing is read after an error
                return false;
            }
            if (*got == 0) {
                if (size > 0 && text[size - 1] != '\n') text[size++] = '\n';
                block.size = size;
                return false;
            }
            size += *got;
            block.taken += *got;
        }
        const auto* last = static_cast<const char*>(::memrchr(text, '\n', size));
        block.size = last ? static_cast<std::size_t>(last + 1 - text) : 0;
        if (size - block.size > feed_line_limit + 1 && !skip_invalid_) {
            text[size++] = '\n';
            block.size = size;
            file_ = inputs_.size(); // nothing is read after an error
            return false;
        }
        carried_.assign(text + block.size, std::min(size - block.size, feed_line_limit + 2));
        return true;
    }

    std::span<Input> inputs_;
    std::uint32_t fields_;
    const ListFormat& format_;
    bool skip_invalid_;
    std::size_t block_bytes_;
    Reading reading_;
    std::size_t file_ = 0;
    bool chosen_ = false;  // it was decided how to read this file
    bool at_start_ = true; // no block of this file was handed out yet
    std::string carried_;  // the start of a line whose end was not in the last block
};

// Second stage: turns a block's lines into keys. Blocks are independent of each other, so any thread may
// parse any block.
class Parser {
  public:
    Parser(std::uint32_t fields, const FeedOptions& options, Sought sought)
        : fields_(fields), sought_(sought), skip_invalid_(options.skip_invalid),
          mask_(options.mask_host_bits),
          shown_(options.keep_skipped ? std::numeric_limits<std::size_t>::max() : skipped_shown),
          single_(entry::is_single_address(fields)), ranges_(options.ranges && single_),
          key_ranges_(options.key_ranges && !single_) {
        const int word = single_ ? sieve_address_word(fields) : 0;
        for (const sieve_key& key : sought)
            addresses_.push_back(address_number(key.word[word], key.word[word + 1]));
    }

    void parse(Block& block) const {
        block.keys.restart();
        block.ranges.clear();
        block.key_ranges.clear();
        block.lines = block.comments = block.omitted = block.timed = block.bad = block.masked = 0;
        block.bad_first.clear();
        block.flushes.clear();
        block.sightings.clear();
        block.geo = {};
        if (block.alien) return;
        if (is_document(block.reading.format)) return parse_document(block);
        const formats::LineTranslator* const translator = block.reading.translator.get();
        const char* p = block.text.get();
        const char* end = p + block.size;
        if (block.starts_file && !begin_file(block, p)) return;
        block.keys.reserve(block.size / (single_ ? 8 : 16));

        const bool has_nul = std::memchr(p, 0, static_cast<std::size_t>(end - p)) != nullptr;
        const bool fast = single_ && !has_nul && translator == nullptr && sought_.empty();
        std::string translated;
        Entry entry;
        while (p != end) {
            ++block.lines;
            if (std::uint32_t address = 0; fast) {
                if (const char* behind = plain_ipv4(p, end, address)) {
                    block.keys.add_ipv4(address);
                    p = behind;
                    continue;
                }
            }
            const auto* stop =
                static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
            entry::Fault fault;
            const Line line = parse_line(p, stop, has_nul, translator, translated, entry, fault);
            if (!take(block, line, entry, fault, block.lines, {})) return;
            p = stop + 1;
        }
    }

  private:
    // What a line holds: which of these it is, the line's kind says.
    struct Entry {
        sieve_key key{};
        KeyRange range{};
        bool timed = false; // it has a timeout
    };
    enum class Line { key, range, key_range, comment, omitted, flush, bad };

    // Adds what a line means to the block. Returns false if reading is over.
    bool take(Block& block, Line line, const Entry& entry, const entry::Fault& fault, std::uint64_t number,
              const std::string& path) const {
        if (fault.kind == entry::FaultKind::host_bits && line != Line::bad) ++block.masked;
        for (std::size_t i = 0; i < sought_.size(); i++)
            if (holds(line, entry, fault, sought_[i])) block.sightings.push_back({i, number, path});
        const bool is_entry = line == Line::key || line == Line::range || line == Line::key_range;
        if (is_entry && entry.timed) ++block.timed;
        switch (line) {
        case Line::key:
            block.keys.add(entry.key);
            return true;
        case Line::range:
            block.ranges.push_back(entry::range_of(entry.key, fields_, fault));
            return true;
        case Line::key_range:
            block.key_ranges.push_back(entry.range);
            return true;
        case Line::omitted:
            ++block.omitted;
            ++block.comments;
            return true;
        case Line::comment:
            ++block.comments;
            return true;
        case Line::flush:
            if (!block.keys.empty() || !block.ranges.empty() || !block.key_ranges.empty()) break;
            block.flushes.push_back({number, entry::describe(fault)});
            ++block.comments;
            return true;
        case Line::bad:
            break;
        }
        ++block.bad;
        if (block.bad_first.size() < shown_) {
            const std::string why = entry::describe(fault);
            block.bad_first.push_back({number, path.empty() ? why : fmt::format("{}: {}", path, why)});
        }
        return skip_invalid_;
    }

    // Whether what a line holds includes the key.
    bool holds(Line line, const Entry& entry, const entry::Fault& fault, const sieve_key& key) const {
        if (line == Line::key) {
            KeySet one(fields_); // leaves out what the fields do not select
            one.add(entry.key);
            const sieve_key listed = one.at(0);
            return std::equal(std::begin(listed.word), std::end(listed.word), std::begin(key.word));
        }
        if (line == Line::key_range) return covers(entry.range, key);
        if (line != Line::range) return false;
        const int word = sieve_address_word(fields_);
        const uint128 address = address_number(key.word[word], key.word[word + 1]);
        const AddressRange range = entry::range_of(entry.key, fields_, fault);
        return address >= range.first && address <= range.last && is_ipv4(address) == is_ipv4(range.first);
    }

    void parse_document(Block& block) const {
        bool over = false;
        std::string_view document = block.document;
        if (document.starts_with(byte_order_mark)) document.remove_prefix(byte_order_mark.size());
        const formats::EntrySink sink = [&](const formats::Place& place, formats::Translated what,
                                            const std::string& text, entry::Fault fault) {
            if (over) return;
            ++block.lines;
            Entry entry{.timed = what == formats::Translated::timed};
            const Line line =
                what == formats::Translated::bad ? Line::bad : parse_translated(text, entry, fault);
            over = !take(block, line, entry, fault, place.line, place.path);
        };
        const ListFormat& format = block.reading.format;
        const Status read = format.syntax == ListSyntax::geo
                                ? formats::translate_geo(format, addresses_, document, sink, block.geo)
                                : formats::reader_of(format.syntax).document(format, fields_, document, sink);
        if (!block.geo.about.empty()) block.decided = "read as " + block.geo.about;
        if (!read && !over) block.alien = read.error().message;
        block.document.clear();
    }

    // Parses the text that a translator made. It is an entry and nothing else.
    Line parse_translated(const std::string& text, Entry& entry, entry::Fault& fault) const {
        fault = {};
        const char* p = text.data();
        const char* const end = p + text.size();
        const Line line = parse_one(p, end, entry, fault);
        if (line == Line::bad || p == end) return line;
        fault = {.kind = entry::FaultKind::surplus, .found = {p, end}};
        return Line::bad;
    }

    // Skips a byte order mark. Refuses a file that is not text, because its bytes would only make a puzzling
    // message.
    static bool begin_file(Block& block, const char*& p) {
        const std::string_view text(p, block.size);
        if (text.starts_with(byte_order_mark)) p += byte_order_mark.size();
        using namespace std::string_view_literals;
        const bool utf32 = text.starts_with("\xff\xfe\0\0"sv) || text.starts_with("\0\0\xfe\xff"sv);
        if (utf32 || text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
            block.alien = fmt::format("found text in UTF-{0}, expected UTF-8; convert it, as in `iconv -f "
                                      "UTF-{0} -t UTF-8 FILE | xdp-sieve ... -`",
                                      utf32 ? 32 : 16);
            return false;
        }
        if (text.starts_with("BZh")) {
            block.alien =
                "found data compressed by bzip2, expected text, gzip, zstd, xz or zip; unpack it, as "
                "in `bzcat FILE | xdp-sieve ... -`";
            return false;
        }
        constexpr std::uint32_t magic = SIEVE_MAGIC;
        if (text.size() >= sizeof(magic) && std::memcmp(text.data(), &magic, sizeof(magic)) == 0) {
            block.alien = "a filter image, expected a feed of keys (images hold no keys)";
            return false;
        }
        return true;
    }

    // Handles the most common line: an IPv4 address at its start, followed by the end of the line or by
    // columns and comments that do not matter. Returns the start of the next line, or null if the line is
    // anything else.
    static const char* plain_ipv4(const char* p, const char* end, std::uint32_t& address) {
        const char* start = p;
        p = entry::parse_ipv4(p, end, address);
        if (!p) return nullptr;
        if (*p == '\n') return p + 1;
        if (*p == '\r' && p[1] == '\n') return p + 2;
        if (!entry::is_separator(*p) && !entry::is_comment(*p)) return nullptr;
        while (entry::is_blank(*p)) ++p;
        if (*p == '-' || *p == '/') return nullptr; // may be a range or a prefix
        const auto* stop = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
        if (static_cast<std::size_t>(stop - start) > feed_line_limit) return nullptr;
        const char* text_end = stop[-1] == '\r' ? stop - 1 : stop;
        return entry::find_second_address(p, text_end) ? nullptr : stop + 1;
    }

    Line parse_line(const char* p, const char* end, bool may_have_nul,
                    const formats::LineTranslator* translator, std::string& translated, Entry& entry,
                    entry::Fault& fault) const {
        using enum entry::FaultKind;
        if (p != end && end[-1] == '\r') --end;
        const auto size = static_cast<std::size_t>(end - p);
        if (size > feed_line_limit) {
            fault = {.kind = too_long, .limit = feed_line_limit, .found = {p, 64}};
            return Line::bad;
        }
        if (may_have_nul && std::memchr(p, 0, size)) {
            fault.kind = nul;
            return Line::bad;
        }
        while (p != end && entry::is_blank(*p)) ++p;
        if (p == end || entry::is_comment(*p)) return Line::comment;
        if (translator != nullptr) {
            const formats::Translated what = translator->translate({p, end}, translated, fault);
            entry.timed = what == formats::Translated::timed;
            switch (what) {
            case formats::Translated::entry:
            case formats::Translated::timed:
                return parse_translated(translated, entry, fault);
            case formats::Translated::nothing:
                return Line::comment;
            case formats::Translated::omitted:
                return Line::omitted;
            case formats::Translated::flush:
                return Line::flush;
            case formats::Translated::bad:
                return Line::bad;
            }
        }
        if (*p == '{') {
            bool has_key = false;
            if (!entry::parse_json({p, end}, fields_, entry.key, has_key, fault)) return range_or_bad(fault);
            return has_key ? Line::key : Line::comment;
        }
        const Line line = parse_one(p, end, entry, fault);
        if (line == Line::bad) return line;
        const char* second = entry::find_second_address(p, end);
        if (!second) return line;
        fault = entry::second_address(second, end);
        return Line::bad;
    }

    // Parses an entry at p, and moves p behind it.
    Line parse_one(const char*& p, const char* end, Entry& entry, entry::Fault& fault) const {
        const char* const begin = p;
        if (entry::parse_entry(p, end, fields_, entry.key, fault)) return Line::key;
        if (!key_ranges_ || !entry::may_be_key_range(fault)) return range_or_bad(fault);
        p = begin;
        return entry::parse_key_range(p, end, fields_, entry.range, fault, mask_) ? Line::key_range
                                                                                  : Line::bad;
    }

    [[nodiscard]] Line range_or_bad(const entry::Fault& fault) const {
        const bool masked = mask_ && fault.kind == entry::FaultKind::host_bits;
        return (entry::is_range(fault) || masked) && ranges_ ? Line::range : Line::bad;
    }

    std::uint32_t fields_;
    Sought sought_;
    std::vector<uint128> addresses_; // that are sought
    bool skip_invalid_;
    bool mask_;
    std::size_t shown_; // malformed lines to spell out
    bool single_;
    bool ranges_;
    bool key_ranges_;
};

std::string names_of(std::span<const Input> inputs) {
    const std::size_t more = inputs.size() - 1;
    return inputs.front().name() + (more == 0 ? std::string() : fmt::format(" and {} more", more));
}

// Third stage: joins the blocks in the order of the feed and stops at the first error.
class Collector {
  public:
    Collector(std::span<const Input> inputs, std::uint32_t fields, const FeedOptions& options,
              std::uint64_t total_bytes)
        : inputs_(inputs), options_(options), total_bytes_(total_bytes), feed_(fields) {}

    // Returns false when reading is over.
    bool take(Block& block) {
        if (block.file != file_) {
            tell_loss();
            file_ = block.file;
            line_ = 0;
            entries_before_ = feed_.overflowed + feed_.entries();
        }
        if (!block.flushes.empty() && feed_.overflowed + feed_.entries() > entries_before_) {
            block.bad += block.flushes.size();
            block.comments -= block.flushes.size();
            block.bad_first.insert(block.bad_first.begin(), block.flushes.begin(), block.flushes.end());
            std::ranges::sort(block.bad_first, {}, &BadLine::line);
        }
        if (block.decided) {
            told_ = feed_.decided.size();
            feed_.decided.push_back(inputs_[file_].name() + ": " + *block.decided);
        }
        omitted_ += block.omitted;
        timed_ += block.timed;
        if (block.omitted + block.timed > 0) reading_ = block.reading;
        if (block.bad > 0 && !options_.skip_invalid)
            return fail({ErrorKind::bad_input, located(block.bad_first.front())});
        for (const BadLine& bad : block.bad_first)
            if (options_.keep_skipped || feed_.skipped_first.size() < skipped_shown)
                feed_.skipped_first.push_back(located(bad));
        for (const Sighting& seen : block.sightings) found_.try_emplace(seen.key, located(seen));
        geo_.add(std::move(block.geo));
        make_room(block);
        feed_.keys.append(block.keys);
        feed_.ranges.insert(feed_.ranges.end(), block.ranges.begin(), block.ranges.end());
        feed_.key_ranges.insert(feed_.key_ranges.end(), block.key_ranges.begin(), block.key_ranges.end());
        feed_.lines += block.lines;
        feed_.comments += block.comments;
        feed_.skipped += block.bad;
        feed_.masked += block.masked;
        line_ += block.lines;
        feed_.bytes += block.taken;
        consumed_ += block.consumed;
        if (block.unreadable) return fail(std::move(*block.unreadable));
        if (block.alien) return fail({ErrorKind::bad_input, inputs_[file_].name() + ": " + *block.alien});
        if (!pass_on()) return false;
        if (options_.progress)
            options_.progress("reading", total_bytes_ ? std::min(1.0, static_cast<double>(consumed_) /
                                                                          static_cast<double>(total_bytes_))
                                                      : 0.0);
        return true;
    }

    // For each key that was found, its first place. Valid before finish().
    [[nodiscard]] const std::map<std::size_t, std::string>& found() const { return found_; }

    // `may_be_empty`: no entry is no error.
    Result<Feed> finish(bool may_be_empty) && {
        if (error_) return tl::unexpected(std::move(*error_));
        tell_loss();
        const std::uint64_t entries = feed_.overflowed + feed_.entries();
        if (options_.format.syntax == ListSyntax::geo)
            for (const std::string& code : options_.format.parts)
                if (!geo_.found.contains(code))
                    return bad_input(fmt::format("no addresses of {} in {}: {}", code, names_of(inputs_),
                                                 formats::why_without(code, geo_)));
        if (entries == 0 && !may_be_empty) return no_keys(feed_, inputs_);
        // If a member were lost here, nobody would ever notice. So the numbers must add up.
        std::uint64_t taken = 0;
        for (const Input& input : inputs_) taken += input.taken();
        if (feed_.lines != feed_.comments + feed_.skipped + entries || feed_.bytes != taken)
            return bad_input(
                fmt::format("{}: {} lines in {} bytes were read and {} entries, {} comments and {} "
                            "skipped lines in {} bytes understood; this is a bug, please report it",
                            inputs_.front().name(), feed_.lines, taken, entries, feed_.comments,
                            feed_.skipped, feed_.bytes));
        if (options_.progress) options_.progress("reading", 1.0);
        return std::move(feed_);
    }

  private:
    // What is wrong with the present file.
    bool fail(Error error) {
        error.facts.input = file_;
        error_ = std::move(error);
        return false;
    }

    [[nodiscard]] std::string located(const BadLine& bad) const {
        if (bad.line == 0) return fmt::format("{}: {}", inputs_[file_].name(), bad.why);
        return fmt::format("{}:{}: {}", inputs_[file_].name(), line_ + bad.line, bad.why);
    }

    [[nodiscard]] std::string located(const Sighting& seen) const {
        const std::string file = inputs_[file_].name();
        if (seen.line != 0) return fmt::format("{}:{}", file, line_ + seen.line);
        return seen.path.empty() ? file : fmt::format("{}: {}", file, seen.path);
    }

    // Says how many lines of the file that was read are no entries of its format, and why; and how many
    // entries lose their timeout.
    void tell_loss() {
        if (omitted_ + timed_ > 0) {
            if (!told_) {
                told_ = feed_.decided.size();
                feed_.decided.push_back(inputs_[file_].name() + ": " + read_as(reading_.format.syntax));
            }
            std::string& decided = feed_.decided[*told_];
            if (omitted_ > 0)
                decided +=
                    fmt::format(", without {} {}", counted(omitted_, "line"), reading_.translator->omits());
            if (timed_ > 0) decided += fmt::format(", without {}", counted(timed_, "timeout"));
        }
        omitted_ = timed_ = 0;
        told_.reset();
    }

    // Passes the keys on if they are too many to hold. Returns false if that failed.
    bool pass_on() {
        if (!options_.overflow) return true;
        if (feed_.entries() < options_.most_entries) return true;
        const std::size_t held = feed_.keys.size();
        if (Status passed = options_.overflow(feed_); !passed) {
            error_ = std::move(passed.error());
            return false;
        }
        feed_.overflowed += held;
        feed_.keys.clear();
        reserve_most();
        return true;
    }

    // Growing by doubling would take more than the caller has allowed.
    void reserve_most() {
        constexpr std::size_t block_keys = std::size_t{1} << 16;
        feed_.keys.reserve(options_.most_entries + block_keys);
    }

    // Reserves memory for all keys as soon as the first block tells about how many there will be. Growing by
    // doubling would hold the keys twice for a while. Reserved memory that is not used costs nothing.
    void make_room(const Block& block) {
        if (made_room_ || block.keys.empty()) return;
        made_room_ = true;
        if (options_.overflow) return reserve_most();
        if (total_bytes_ <= block.consumed || block.consumed == 0) return;
        const double ratio = static_cast<double>(total_bytes_) / static_cast<double>(block.consumed);
        try {
            feed_.keys.reserve(
                static_cast<std::size_t>(static_cast<double>(block.keys.size()) * ratio * 1.05));
        } catch (const std::exception&) {
            // The guess was too high; the keys may still fit.
        }
    }

    std::span<const Input> inputs_;
    const FeedOptions& options_;
    std::uint64_t total_bytes_;
    std::uint64_t consumed_ = 0; // of them
    Feed feed_;
    std::optional<Error> error_;
    std::size_t file_ = 0;
    std::uint64_t line_ = 0;           // lines of the current file that were taken
    std::uint64_t entries_before_ = 0; // of the files before it
    std::uint64_t omitted_ = 0;        // of the lines
    std::uint64_t timed_ = 0;          // entries with a timeout
    Reading reading_{};                // if there are such: how the file is read
    std::optional<std::size_t> told_;  // index in Feed::decided of what was said of the file
    bool made_room_ = false;
    formats::GeoContents geo_;
    std::map<std::size_t, std::string> found_;
};

// The total size of all inputs; 0 if the size of any input is unknown.
std::uint64_t total_size(std::span<const Input> inputs) {
    std::uint64_t total = 0;
    for (const Input& input : inputs) {
        if (!input.size()) return 0;
        total += *input.size();
    }
    return total;
}

Status check_feeds(std::span<const Input> inputs) {
    if (inputs.empty())
        return invalid_request("no feed was named: expected one or more files, or - for standard input");
    std::vector<const Input*> named;
    for (const Input& input : inputs) named.push_back(&input);
    return check_repeated(named, Repeated::nothing);
}

void run(Reader& reader, const Parser& parser, Collector& collector, std::uint32_t fields, unsigned threads) {
    std::vector<Block> blocks;
    blocks.reserve(std::size_t{2} * threads);
    for (std::size_t i = 0; i < std::size_t{2} * threads; ++i) blocks.emplace_back(fields);
    run_in_order(threads, blocks.size(),
                 {.fill = [&](std::size_t slot) { return reader.next(blocks[slot]); },
                  .work = [&](std::size_t slot) { parser.parse(blocks[slot]); },
                  .take = [&](std::size_t slot) { return collector.take(blocks[slot]); }});
}

// Null: this process reads its lists itself.
ListReader& reader_of_lists() {
    static ListReader reader;
    return reader;
}

Result<FoundList> read(std::span<Input> inputs, const ListQuestion& question) {
    if (question.fields == 0 || (question.fields & ~std::uint32_t{SIEVE_FIELD_ALL}) != 0)
        return invalid_request("a feed needs one or more of the fields src, dst, sport, dport, proto");
    SIEVE_TRY(check_feeds(inputs));
    const ListReader& reader = reader_of_lists();
    return reader ? reader(inputs, question) : read_here(inputs, question);
}

} // namespace

tl::unexpected<Error> no_keys(const Feed& feed, std::span<const Input> inputs) {
    std::string message = "no keys in " + names_of(inputs);
    const std::uint32_t fields = feed.keys.fields();
    if (entry::is_single_address(fields))
        message += fmt::format(": expected one {} a line",
                               fields == SIEVE_FIELD_SRC ? "source address" : "destination address");
    else
        message += fmt::format(": expected one {} a line", format_fields(fields));
    for (const std::string& decided : feed.decided) message += "; " + decided;
    if (feed.skipped > 0)
        message += fmt::format("; {} skipped, the first: {}",
                               counted(feed.skipped, "malformed line was", "malformed lines were"),
                               feed.skipped_first.front());
    return bad_input(std::move(message));
}

void let_lists_be_read_by(ListReader reader) {
    reader_of_lists() = std::move(reader);
}

Result<FoundList> read_here(std::span<Input> inputs, const ListQuestion& question) {
    const auto& [fields, options, sought, may_be_empty] = question;
    const unsigned threads =
        options.threads ? options.threads : std::max(1U, std::thread::hardware_concurrency());
    try {
        Reader reader(inputs, fields, options);
        const Parser parser(fields, options, sought);
        Collector collector(inputs, fields, options, total_size(inputs));
        run(reader, parser, collector, fields, threads);
        std::vector<std::string> places(sought.size());
        for (const auto& [key, place] : collector.found()) places[key] = place;
        SIEVE_ASSIGN(Feed feed, std::move(collector).finish(may_be_empty));
        return FoundList{std::move(feed), std::move(places)};
    } catch (const std::exception& problem) {
        if (is_out_of_memory(problem))
            return failure(ErrorKind::out_of_memory,
                           fmt::format("{}: its keys do not fit into memory", inputs.front().name()));
        return bad_input(fmt::format("{}: cannot be read: {}", inputs.front().name(), problem.what()));
    }
}

Result<Feed> read_feed(std::span<Input> inputs, std::uint32_t fields, const FeedOptions& options) {
    SIEVE_ASSIGN(FoundList found, read(inputs, {.fields = fields, .options = options}));
    return std::move(found.feed);
}

Result<Feed> read_feed_if_any(std::span<Input> inputs, std::uint32_t fields, const FeedOptions& options) {
    SIEVE_ASSIGN(FoundList found, read(inputs, {.fields = fields, .options = options, .may_be_empty = true}));
    return std::move(found.feed);
}

Result<std::vector<std::string>> find_keys(std::span<Input> inputs, const KeySet& keys,
                                           const FeedOptions& options) {
    std::vector<sieve_key> sought;
    for (std::size_t i = 0; i < keys.size(); i++) sought.push_back(keys.at(i));
    SIEVE_ASSIGN(FoundList found,
                 read(inputs, {.fields = keys.fields(), .options = options, .sought = sought}));
    return std::move(found.places);
}

Result<std::vector<std::string>> find_origin(std::span<Input> data, uint128 address) {
    const FeedOptions options{.format = {ListSyntax::geo, {}}, .ranges = true, .threads = 1};
    const sieve_key key{{static_cast<std::uint64_t>(address >> 64), static_cast<std::uint64_t>(address)}};
    std::vector<std::string> origin;
    for (Input& one : data) {
        const std::string name = one.name() + ": ";
        SIEVE_ASSIGN(
            const FoundList found,
            read({&one, 1},
                 {.fields = SIEVE_FIELD_SRC, .options = options, .sought = {&key, 1}, .may_be_empty = true}));
        const std::string& place = found.places.front();
        if (place.starts_with(name)) origin.push_back(place.substr(name.size()));
    }
    return origin;
}

Result<Feed> read_feed(const std::vector<std::string>& paths, std::uint32_t fields,
                       const FeedOptions& options) {
    SIEVE_ASSIGN(std::vector<Input> inputs, Input::of_all(paths));
    return read_feed(inputs, fields, options);
}

} // namespace sieve
