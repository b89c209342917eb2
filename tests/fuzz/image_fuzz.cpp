// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Fuzzes the code that reads filter images. The first byte says which parts of the image are repaired after a
// mutation, so that neither the checksum nor the counts protect the code behind them. The rest is the image.
// Each execution judges the image, then a number of its mutations.
//
// What must hold: an image is refused with a message, or every use of it stays within its lines and gives
// sensible answers. Blocked and XORSAT filters, and those of ranges and exact addresses, answer as the model
// in tests/model does. An exact table lists as many keys as its header counts, and holds each of them. The
// file and the memory are judged alike.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <sieve/exact.h>
#include <sieve/exact_table.h>
#include <sieve/records.h>

#include "fuzz/guarded_pages.hpp"
#include "fuzz/support.hpp"
#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/records.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/packets/carrier.hpp"
#include "libsieve/util/system/clock.hpp"
#include "model/image_model.hpp"

namespace {

using namespace sieve::fuzz;

constexpr std::size_t line_bytes = SIEVE_LINE_BYTES;
constexpr std::size_t header_bytes = SIEVE_FIRST_LINE * line_bytes;
constexpr std::size_t most_lines = 200;
constexpr std::size_t file_at = SIEVE_FILE_LINE * line_bytes;

// Bits of the first byte: which parts stay as the mutation made them, and whether the filter is made to hold
// every key, because few mutated filters would hold their witnesses.
enum Leave : std::uint8_t {
    leave_identity = 1,
    leave_lines = 2,
    leave_checksum = 4,
    leave_counts = 8,
    leave_size = 16,
    leave_rest = 32,
    fill_filter = 64,
};

constexpr int variants = 12;

Total judged("images judged");
Total used("of them accepted and used");

struct Field {
    std::size_t at;
    std::size_t bytes;
};

// The header's fields that other checks depend on.
constexpr auto fields = std::to_array<Field>({
    {offsetof(sieve_lookup, magic), 4},
    {offsetof(sieve_lookup, kind), 1},
    {offsetof(sieve_lookup, fields), 1},
    {offsetof(sieve_lookup, choices), 1},
    {offsetof(sieve_lookup, hashes), 1},
    {offsetof(sieve_lookup, buckets), 4},
    {offsetof(sieve_lookup, alpha), 2},
    {offsetof(sieve_lookup, probes), 1},
    {offsetof(sieve_lookup, shard_bits), 1},
    {offsetof(sieve_lookup, hash_key), 8},
    {offsetof(sieve_exact, words), 4},
    {offsetof(sieve_exact, range), 4},
    {offsetof(sieve_exact, add), 4},
    {offsetof(sieve_exact, multiply), 4},
    {offsetof(sieve_exact, spread), 4},
    {offsetof(sieve_exact, reach), 4},
    {offsetof(sieve_exact, feet), 8},
    {offsetof(sieve_exact, second), 8},
    {header_bytes + offsetof(sieve_exact_ipv6, lines), 4},
    {header_bytes + offsetof(sieve_exact_ipv6, hash_key), 8},
    {header_bytes + offsetof(sieve_exact_ipv6, meaning), 1},
    {header_bytes + offsetof(sieve_exact_ipv6, unit), 1},
    {header_bytes + offsetof(sieve_exact_ipv6, sets), 1},
    {header_bytes + offsetof(sieve_exact_ipv6, base), 8},
    {header_bytes + offsetof(sieve_exact_ipv6, unsettled), 8},
    {header_bytes + offsetof(sieve_records, words), 1},
    {header_bytes + offsetof(sieve_records, fields), 1},
    {header_bytes + offsetof(sieve_records, rows), 4},
    {header_bytes + offsetof(sieve_records, most), 4},
    {header_bytes + offsetof(sieve_records, hash_key), 8},
    {header_bytes + offsetof(sieve_records, unsettled), 8},
    {line_bytes + offsetof(sieve_probes, count), 1},
    {line_bytes + offsetof(sieve_probes, count) + 1, 1},
    {line_bytes + offsetof(sieve_probes, length), 8},
    {line_bytes + offsetof(sieve_probes, length) + SIEVE_MAX_PROBES, 8},
    {line_bytes + offsetof(sieve_probes, length) + 1, 1},
    {line_bytes + offsetof(sieve_probes, destination), 8},
    {line_bytes + offsetof(sieve_probes, transport), 8},
    {line_bytes + offsetof(sieve_probes, reserved), 1},
    {file_at + offsetof(sieve_file, version), 4},
    {file_at + offsetof(sieve_file, witnesses), 4},
    {file_at + offsetof(sieve_file, exceptions), 4},
    {file_at + offsetof(sieve_file, excluded), 8},
    {file_at + offsetof(sieve_file, lines), 8},
    {file_at + offsetof(sieve_file, keys), 8},
    {file_at + offsetof(sieve_file, built_at), 8},
    {file_at + offsetof(sieve_file, predicted_fpr), 8},
    {file_at + offsetof(sieve_file, expected_fpr), 8},
    {file_at + offsetof(sieve_file, measured_fpr), 8},
    {file_at + offsetof(sieve_file, measured_trials), 8},
    {file_at + offsetof(sieve_file, duplicates), 8},
    {file_at + offsetof(sieve_file, entries), 8},
    {file_at + offsetof(sieve_file, covered), 8},
    {file_at + offsetof(sieve_file, covered) + 8, 8},
    {file_at + offsetof(sieve_file, label), 64},
});

// Numbers at which behaviour changes, doubles among them.
constexpr std::array<std::uint64_t, 24> telling = {0,
                                                   1,
                                                   2,
                                                   3,
                                                   4,
                                                   5,
                                                   7,
                                                   8,
                                                   9,
                                                   16,
                                                   24,
                                                   31,
                                                   32,
                                                   63,
                                                   64,
                                                   96,
                                                   128,
                                                   255,
                                                   0xffff,
                                                   0xffffffff,
                                                   ~std::uint64_t{0},
                                                   0x3ff0000000000000,
                                                   0x7ff8000000000000,
                                                   0xbff0000000000000};

void store(std::uint8_t* image, std::size_t at, std::uint64_t value, std::size_t bytes) {
    std::memcpy(image + at, &value, std::min<std::size_t>(bytes, 8));
}

// Removes from a witness what its fields do not select.
void strip_witness(std::uint8_t* line, const sieve_lookup& lookup) {
    sieve_witness witness;
    std::memcpy(&witness, line, sizeof(witness));
    for (int word = 0; word < 4; word++)
        if ((lookup.fields & (word < 2 ? SIEVE_FIELD_SRC : SIEVE_FIELD_DST)) == 0) witness.key.word[word] = 0;
    witness.key.word[4] &= sieve_transport_mask(lookup.fields);
    std::fill(std::begin(witness.reserved), std::end(witness.reserved), 0);
    std::memcpy(line, &witness, sizeof(witness));
}

// Makes a header count what its filter lists.
void count_keys(const sieve_lookup& lookup, std::span<const sieve_line> filter, sieve_file& file) {
    const auto own = sieve::kind_of(lookup).exact()->add_up(lookup, filter);
    if (!own || own->keys == 0) return;
    file.keys = own->keys;
    file.entries = file.keys + file.duplicates;
    file.key_sum[0] = own->sum.locate;
    file.key_sum[1] = own->sum.test;
}

// The same for an exact filter whose key has several fields: its own header is that of its fields, and of the
// keys those stay that lookups find.
void put_records_right(std::vector<std::uint8_t>& bytes, sieve_lookup& lookup, sieve_file& file) {
    lookup.hashes = 0;
    lookup.alpha = 0;
    if (!sieve::geometry_fault(lookup).empty() ||
        (SIEVE_FIRST_LINE + std::uint64_t{lookup.buckets}) * line_bytes > bytes.size())
        return;
    std::vector<sieve_line> filter(lookup.buckets);
    std::memcpy(filter.data(), bytes.data() + header_bytes, filter.size() * line_bytes);
    sieve::Records records(filter);
    sieve_records& header = records.header();
    header.magic = SIEVE_RECORDS_MAGIC;
    header.words = static_cast<std::uint8_t>(sieve_record_words_of(lookup.fields, 0));
    header.tagged = 1;
    header.fields = lookup.fields;
    header.prefixes = 0;
    header.rows = 2;
    while (sieve_records_lines(&header) < filter.size()) header.rows += 2;
    if (sieve_records_lines(&header) != filter.size()) return;
    header.most = std::min(header.most, records.places());
    header.unsettled = 0;
    for (std::uint32_t place = 0; place < records.places(); place++) {
        sieve_key key;
        const sieve_key stored = records.key(place);
        sieve_exact_of_key(&stored, lookup.fields, &key);
        records.write(place, key);
        const auto found = records.find(key);
        if (found != place || records.is_marked(place)) records.write_tag(place, 0);
    }
    std::memcpy(bytes.data() + header_bytes, filter.data(), filter.size() * line_bytes);
    count_keys(lookup, filter, file);
}

// Makes the masks and sums of an exact table agree with its width and its keys, where its geometry allows it.
void put_exact_right(std::vector<std::uint8_t>& bytes, sieve_lookup& lookup, sieve_file& file) {
    if (sieve_is_one_address(lookup.fields) == 0) return put_records_right(bytes, lookup, file);
    auto& exact = reinterpret_cast<sieve_exact&>(lookup);
    if (exact.width == 0 || exact.width > 63 || exact.words == 0) return;
    exact.range = static_cast<std::uint32_t>(((std::uint64_t{1} << 32) + exact.words - 1) / exact.words);
    exact.feet = 0;
    for (int lane = 0; lane < 64 / exact.width; lane++)
        exact.feet |= std::uint64_t{1} << (lane * exact.width);
    exact.value_bits %= SIEVE_EXACT_MOST_VALUE_BITS + 1;
    exact.last = static_cast<std::uint8_t>(exact.value_bits > 0 ? (64 / exact.width - 1) * exact.width : 0);
    exact.second = (std::uint64_t{exact.range} << exact.value_bits) * exact.feet;
    if (!sieve::geometry_fault(lookup).empty() ||
        (SIEVE_FIRST_LINE + std::uint64_t{exact.lines}) * line_bytes > bytes.size())
        return;
    std::vector<sieve_line> filter(exact.lines);
    auto& part = reinterpret_cast<sieve_exact_ipv6&>(filter.front());
    std::memcpy(filter.data(), bytes.data() + header_bytes, filter.size() * line_bytes);
    // As many lines of addresses as there are, with those of their values.
    const std::uint32_t rest = exact.lines - sieve_exact_ipv6_line(&exact);
    part.lines = exact.value_bits > 0 ? rest * SIEVE_LINE_WORDS / (SIEVE_LINE_WORDS + 1) : rest;
    if (exact.value_bits == 0)
        part.meaning = SIEVE_EXACT_PLAIN;
    else if (part.meaning != SIEVE_EXACT_ENDS)
        part.meaning = SIEVE_EXACT_SETS;
    if (part.meaning == SIEVE_EXACT_ENDS)
        part.unit = static_cast<std::uint8_t>(20 + part.unit % 31);
    else
        part.unit = 0, part.base = 0;
    std::memcpy(bytes.data() + header_bytes, &part, sizeof(part));
    count_keys(lookup, filter, file);
}

// Makes the header's sizes, counts and witnesses agree with the actual bytes, where that is possible.
void put_right(std::vector<std::uint8_t>& bytes, std::uint8_t leave) {
    if ((leave & leave_size) == 0) bytes.resize(bytes.size() / line_bytes * line_bytes);
    if (bytes.size() < header_bytes) return;
    sieve_lookup lookup;
    sieve_file file;
    std::memcpy(&lookup, bytes.data(), sizeof(lookup));
    std::memcpy(&file, bytes.data() + file_at, sizeof(file));
    if ((leave & leave_identity) == 0) {
        lookup.magic = SIEVE_MAGIC;
        file.version = SIEVE_IMAGE_VERSION;
    }
    const std::uint64_t lines = bytes.size() / line_bytes;
    if ((leave & leave_lines) == 0) {
        file.lines = lines;
        if ((leave & leave_rest) == 0) file.exceptions = 0;
        const std::uint64_t behind = lines - SIEVE_FIRST_LINE;
        if (behind > 1) {
            if (file.witnesses == 0 || file.witnesses >= behind) file.witnesses = 1;
            const std::uint64_t filter = behind - file.witnesses;
            lookup.buckets = static_cast<std::uint32_t>(filter);
            if (lookup.kind >= SIEVE_KIND_DLEFT64 && lookup.kind <= SIEVE_KIND_DDLCBF && lookup.choices != 0)
                lookup.buckets = static_cast<std::uint32_t>(filter / lookup.choices);
        }
    }
    if ((leave & leave_counts) == 0) {
        file.changes = 0;
        if (file.exceptions == 0) file.excluded = 0;
        file.keys %= 1000;
        file.duplicates %= 1000;
        file.keys = std::max<std::uint64_t>(file.keys, file.witnesses);
        file.entries = file.keys + file.duplicates;
        if (file.measured_trials == 0) file.measured_fpr = 0;
    }
    if ((leave & leave_rest) == 0) {
        // Inputs are shorter than two shards.
        lookup.shard_bits = 0;
        std::fill(std::begin(file.reserved), std::end(file.reserved), 0);
        if (lookup.kind == SIEVE_KIND_RANGES) {
            std::memset(bytes.data() + line_bytes, 0, line_bytes);
            std::fill(std::begin(file.key_sum), std::end(file.key_sum), 0);
        }
        if (lookup.probes == 0) {
            std::memset(bytes.data() + line_bytes, 0, line_bytes);
            std::fill(std::begin(file.covered), std::end(file.covered), 0);
        } else if (sieve_is_one_address(lookup.fields)) {
            constexpr std::size_t at = line_bytes + offsetof(sieve_probes, destination);
            std::memset(bytes.data() + at, 0, 2 * line_bytes - at);
        }
        auto* end = std::find(std::begin(file.label), std::end(file.label) - 1, 0);
        std::fill(end, std::end(file.label), 0);
        for (auto* letter = std::begin(file.label); letter != end; letter++)
            if (*letter < ' ' || *letter == 0x7f) *letter = 'x';
    }
    if ((leave & leave_lines) == 0 && file.witnesses < lines - SIEVE_FIRST_LINE) {
        const std::uint64_t first = lines - file.witnesses;
        for (std::uint64_t line = first; (leave & leave_rest) == 0 && line < lines; line++)
            strip_witness(bytes.data() + line * line_bytes, lookup);
        if ((leave & fill_filter) != 0)
            // A XORSAT line of zeros compares nothing.
            std::memset(bytes.data() + header_bytes, lookup.kind == SIEVE_KIND_XORSAT ? 0 : 0xff,
                        (first - SIEVE_FIRST_LINE) * line_bytes);
    }
    if ((leave & leave_counts) == 0 && lookup.kind == SIEVE_KIND_EXACT) put_exact_right(bytes, lookup, file);
    std::memcpy(bytes.data(), &lookup, sizeof(lookup));
    std::memcpy(bytes.data() + file_at, &file, sizeof(file));
}

sieve_key random_key(Random& random) {
    sieve_key key{};
    for (auto& word : key.word) word = random.next();
    if (random.one_in(2))
        for (const int word : {0, 2}) {
            key.word[word] = 0;
            key.word[word + 1] = SIEVE_V4_MAPPED | (key.word[word + 1] & 0xffffffff);
        }
    key.word[4] &= sieve_transport_mask(SIEVE_FIELD_ALL);
    return key;
}

// What an exact filter lists must be what it holds, whoever wrote its lines.
void list_addresses(const sieve::Image& image, const sieve::ExactKind& kind) {
    const std::uint32_t fields = image.lookup().fields;
    // A key may end meanwhile.
    const bool ends =
        image.lookup().kind == SIEVE_KIND_EXACT && sieve_exact_of(&image.lookup())->value_bits > 0;
    std::size_t left = 1000;
    (void)kind.for_each_range(image.lookup(), image.filter(), [&](const sieve::AddressRange& range) {
        FUZZ_REQUIRE(range.first <= range.last);
        if (left == 0) return;
        left--;
        for (const sieve::uint128 address : {range.first, range.last}) {
            // An IPv6 range that includes the v4-mapped addresses does not mean IPv4.
            if (sieve::is_ipv4(address) && sieve::family_of(range) != SIEVE_FAMILY_V4) continue;
            sieve_key key{};
            key.word[sieve_address_word(fields)] = static_cast<std::uint64_t>(address >> 64);
            key.word[sieve_address_word(fields) + 1] = static_cast<std::uint64_t>(address);
            FUZZ_REQUIRE(image.contains(key) || ends);
        }
    });
}

// All questions that programs ask of an image that passed its check.
void use(const sieve::Image& image, Random& random) {
    used.add(1);
    const sieve_lookup& lookup = image.lookup();
    const sieve_file& file = image.file();
    FUZZ_REQUIRE(SIEVE_FIRST_LINE + image.filter().size() + image.witnesses().size() +
                     image.exceptions().size() ==
                 image.lines().size());
    FUZZ_REQUIRE(!image.filter().empty() && !image.witnesses().empty());
    const sieve::FilterKind& kind = sieve::kind_of(lookup);
    FUZZ_REQUIRE(kind.lines(lookup) == image.filter().size());
    FUZZ_REQUIRE(!kind.geometry(lookup).empty() && !kind.parameters(lookup, file.keys).empty());
    FUZZ_REQUIRE(file.label[sizeof(file.label) - 1] == 0);
    for (const char c : sieve::label_text(file)) FUZZ_REQUIRE(c >= ' ' && c <= '~');
    FUZZ_REQUIRE(lookup.probes <= SIEVE_MAX_PROBES);
    for (int family = 0; family < SIEVE_FAMILIES; family++)
        FUZZ_REQUIRE(image.probes().count[family] <= lookup.probes);
    for (const std::uint64_t rate : {file.predicted_fpr, file.expected_fpr, file.measured_fpr})
        FUZZ_REQUIRE(sieve::rate_from_bits(rate) >= 0 && sieve::rate_from_bits(rate) <= 1);

    const double rate = kind.expected_rate(lookup, image.filter(), file.keys);
    FUZZ_REQUIRE(rate >= 0 && rate <= 1.0000001);
    FUZZ_REQUIRE(kind.lines_touched(lookup, rate).member > 0);
    std::vector<sieve_line> lines(image.filter().begin(), image.filter().end());
    (void)kind.open_for_change(lookup, lines);
    if (const sieve::ExactKind* exact = kind.exact()) list_addresses(image, *exact);

    if (const sieve::ExactKind* exact = kind.exact(); exact != nullptr && exact->is_of_keys()) {
        const auto own = exact->list(lookup, image.filter());
        // Only members that have ended may be missing, and one may end meanwhile.
        const bool ends = sieve_exact_of(&lookup)->value_bits > 0;
        FUZZ_REQUIRE(own && (ends ? own->size() <= file.keys : own->size() == file.keys));
        for (std::size_t i = 0; !ends && i < own->size(); i++) FUZZ_REQUIRE(image.contains(own->at(i)));
    }

    std::vector<sieve_key> keys;
    sieve::packets::Carrier carrier;
    for (const sieve_witness& witness : image.witnesses()) {
        FUZZ_REQUIRE(image.contains(witness.key) ||
                     (lookup.kind == SIEVE_KIND_EXACT && sieve_exact_of(&lookup)->value_bits > 0));
        (void)carrier.carry(witness.key, lookup.fields);
        keys.push_back(witness.key);
    }
    for (int i = 0; i < 8; i++) keys.push_back(random_key(random));
    if (!sieve::model::FilterImage::reads(lookup.kind)) {
        for (const sieve_key& key : keys) (void)image.contains(key);
        return;
    }
    const sieve::model::FilterImage model(
        {reinterpret_cast<const unsigned char*>(image.lines().data()), image.bytes()});
    for (const sieve_key& key : keys) {
        const sieve::model::Key same = {key.word[0], key.word[1], key.word[2], key.word[3], key.word[4]};
        // The answer may change from the one moment to the other.
        const bool before = model.contains(same, sieve::program_now());
        const bool found = image.contains(key);
        FUZZ_REQUIRE(found == before || found == model.contains(same, sieve::program_now()));
    }
}

// The target's input: the byte that says what is repaired, and the image.
using Input = std::vector<std::uint8_t>;

// Changes fields, lines and the size of an input that holds at least a whole header.
void mutate(Input& input, Random& random, std::size_t most) {
    const std::size_t lines = (input.size() - 1) / line_bytes;
    std::uint8_t* image = input.data() + 1;
    for (std::uint64_t changes = random.below(4) + 1; changes > 0; changes--) {
        const Field& field = fields[random.below(fields.size())];
        if (field.at + sizeof(std::uint64_t) >= input.size()) continue; // of a filter that has no line
        switch (random.below(7)) {
        case 0:
        case 1:
            store(image, field.at, telling[random.below(telling.size())], field.bytes);
            break;
        case 2:
            store(image, field.at, random.next() >> random.below(64), field.bytes);
            break;
        case 3: // one more, one less
            image[field.at] = static_cast<std::uint8_t>(image[field.at] + random.below(3) - 1);
            break;
        case 4: { // a line of the filter or a witness
            const std::size_t line = SIEVE_FIRST_LINE + random.below(lines - SIEVE_FIRST_LINE + 1) - 1;
            for (std::size_t i = 0; i < line_bytes; i++)
                image[line * line_bytes + i] = static_cast<std::uint8_t>(random.next());
            break;
        }
        case 5: // a filter that holds every key, so that its witnesses match
            std::memset(image + header_bytes, random.one_in(4) ? 0 : 0xff,
                        (lines - SIEVE_FIRST_LINE) * line_bytes * random.below(9) / 8);
            break;
        default:
            input[0] = random.one_in(4)   ? static_cast<std::uint8_t>(random.next())
                       : random.one_in(2) ? std::uint8_t{fill_filter}
                                          : std::uint8_t{0};
        }
    }
    if (random.one_in(8)) {
        // Longer or shorter by whole lines.
        const std::size_t wanted = 1 + (SIEVE_FIRST_LINE + random.below(40)) * line_bytes;
        if (wanted <= most) input.resize(wanted, random.one_in(2) ? 0xff : 0);
    }
}

// Judges one image, in memory as a builder has it, and as a file. Most whole images that are refused are
// judged in memory only, which is faster.
void judge(StandardInput& file, const Input& input) {
    judged.add(1);
    const std::uint8_t leave = input[0];
    std::vector<std::uint8_t> bytes(input.begin() + 1, input.end());
    put_right(bytes, leave);
    Random random(fingerprint(bytes));

    bool accepted = false;
    const bool whole = bytes.size() >= header_bytes && bytes.size() % line_bytes == 0;
    if (whole) {
        auto image = sieve::Image::create(bytes.size() / line_bytes - SIEVE_FIRST_LINE, 0);
        FUZZ_REQUIRE(image);
        std::memcpy(reinterpret_cast<std::uint8_t*>(&image->lookup()), bytes.data(), bytes.size());
        if ((leave & leave_checksum) == 0) {
            image->seal();
            std::memcpy(bytes.data(), image->lines().data(), bytes.size());
        }
        const auto status = image->check("the image");
        accepted = status.has_value();
        if (accepted)
            use(*image, random);
        else
            require_message(status.error().message);
    }
    if (!whole || random.one_in(accepted ? 4 : 16)) {
        file.assign(bytes.data(), bytes.size());
        const auto image = sieve::Image::load("-");
        FUZZ_REQUIRE(image.has_value() == accepted);
        if (!image)
            require_message(image.error().message);
        else
            FUZZ_REQUIRE(std::memcmp(image->lines().data(), bytes.data(), bytes.size()) == 0);
    }
    FUZZ_REQUIRE(!guarded_pages_in_use());
}

} // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
    Random random(seed);
    if (size <= header_bytes || random.one_in(4)) return LLVMFuzzerMutate(data, size, most);
    Input input(data, data + size);
    mutate(input, random, most);
    std::copy(input.begin(), input.end(), data);
    return input.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2 || size > most_lines * line_bytes) return 0;
    static StandardInput file("image");
    const Input input(data, data + size);
    judge(file, input);
    if (size <= header_bytes) return 0;

    Random random(fingerprint(input));
    for (int i = 0; i < variants; i++) {
        Input variant = input;
        mutate(variant, random, most_lines * line_bytes);
        judge(file, variant);
    }
    return 0;
}
