// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/image/image.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>

#include <fmt/core.h>
#include <xxhash.h>

#include <sieve/prefix.h>

#include "libsieve/filters/exact_kind.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/image/exceptions.hpp"
#include "libsieve/util/parallel/first_use.hpp"

namespace sieve {

namespace {

// A BPF array is indexed by 32 bits.
constexpr std::uint64_t max_lines = std::numeric_limits<std::uint32_t>::max();

Result<sieve_line*> allocate(std::uint64_t count) {
    if (count > max_lines)
        return bad_input(fmt::format(
            "a filter of {} lines is larger than a BPF map can be ({} lines of 64 bytes)", count, max_lines));
    void* pages = ::mmap(nullptr, count * sizeof(sieve_line), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return failure(ErrorKind::out_of_memory,
                       fmt::format("{} MiB for the filter are not to be had: {}",
                                   (count * sizeof(sieve_line)) >> 20, errno_text(errno)));
    // The builder accesses the pages at random, so fewer and larger pages help. This is only a hint; its
    // failure does not matter.
    ::madvise(pages, count * sizeof(sieve_line), MADV_HUGEPAGE);
    return static_cast<sieve_line*>(pages);
}

} // namespace

Image::Image(Image&& other) noexcept
    : lines_(std::exchange(other.lines_, nullptr)), count_(std::exchange(other.count_, 0)),
      kinds_(other.kinds_) {}

Image& Image::operator=(Image&& other) noexcept {
    std::swap(lines_, other.lines_);
    std::swap(count_, other.count_);
    std::swap(kinds_, other.kinds_);
    return *this;
}

Image::~Image() {
    if (lines_ != nullptr) ::munmap(lines_, bytes());
}

sieve_lookup& Image::lookup() {
    return *reinterpret_cast<sieve_lookup*>(lines_);
}
const sieve_lookup& Image::lookup() const {
    return *reinterpret_cast<const sieve_lookup*>(lines_);
}
const FilterKind& Image::kind() const {
    return kinds_->of(lookup());
}

sieve_file& Image::file() {
    return *reinterpret_cast<sieve_file*>(lines_ + SIEVE_FILE_LINE);
}
const sieve_file& Image::file() const {
    return *reinterpret_cast<const sieve_file*>(lines_ + SIEVE_FILE_LINE);
}

sieve_probes& Image::probes() {
    return *reinterpret_cast<sieve_probes*>(lines_ + SIEVE_PROBES_LINE);
}
const sieve_probes& Image::probes() const {
    return *reinterpret_cast<const sieve_probes*>(lines_ + SIEVE_PROBES_LINE);
}

std::span<sieve_line> Image::filter() {
    return {lines_ + SIEVE_FIRST_LINE, count_ - SIEVE_FIRST_LINE - file().witnesses - file().exceptions};
}
std::span<const sieve_line> Image::filter() const {
    return {lines_ + SIEVE_FIRST_LINE, count_ - SIEVE_FIRST_LINE - file().witnesses - file().exceptions};
}
std::span<sieve_witness> Image::witnesses() {
    return {reinterpret_cast<sieve_witness*>(lines_ + count_ - file().exceptions - file().witnesses),
            file().witnesses};
}
std::span<const sieve_witness> Image::witnesses() const {
    return {reinterpret_cast<const sieve_witness*>(lines_ + count_ - file().exceptions - file().witnesses),
            file().witnesses};
}
std::span<sieve_exception> Image::exceptions() {
    return {reinterpret_cast<sieve_exception*>(lines_ + count_ - file().exceptions), file().exceptions};
}
std::span<const sieve_exception> Image::exceptions() const {
    return {reinterpret_cast<const sieve_exception*>(lines_ + count_ - file().exceptions), file().exceptions};
}

Result<Image> Image::create(std::uint64_t filter_lines, std::uint32_t witnesses, std::uint32_t exceptions,
                            const Kinds& kinds) {
    const std::uint64_t count = SIEVE_FIRST_LINE + filter_lines + witnesses + exceptions;
    SIEVE_ASSIGN(sieve_line * lines, allocate(count));
    Image image(lines, count, kinds);
    image.lookup().magic = SIEVE_MAGIC;
    image.file().version = SIEVE_IMAGE_VERSION;
    image.file().lines = count;
    image.file().witnesses = witnesses;
    image.file().exceptions = exceptions;
    return image;
}

Result<Image> Image::load(Input& input, const Kinds& kinds) {
    const std::string name = input.name();
    ImageHeader header{};
    SIEVE_ASSIGN(const std::string_view first, input.peek(sizeof(header)));
    if (first.size() < sizeof(header))
        return bad_input(
            fmt::format("{}: {} bytes are not a filter image (it is a number of 64-byte lines, more than {})",
                        name, first.size(), SIEVE_FIRST_LINE));
    std::memcpy(&header, first.data(), sizeof(header));
    if (const std::string fault = header_fault(header, kinds); !fault.empty())
        return bad_input(fmt::format("{}: {}", name, fault));
    const auto wrong_size = [&](std::uint64_t bytes) {
        return bad_input(
            fmt::format("{}: {} bytes, but its header says {} lines of 64 bytes; the file was cut "
                        "or mixed up",
                        name, bytes, header.file.lines));
    };
    const std::uint64_t bytes = header.file.lines * sizeof(sieve_line);
    if (input.size() && *input.size() != bytes) return wrong_size(*input.size());
    SIEVE_ASSIGN(sieve_line * lines, allocate(header.file.lines));
    Image image(lines, header.file.lines, kinds);
    SIEVE_ASSIGN(const std::size_t got, input.read_all(reinterpret_cast<char*>(lines), bytes));
    if (got < bytes) return wrong_size(got);
    SIEVE_ASSIGN(const std::string_view behind, input.peek(1));
    if (!behind.empty())
        return bad_input(
            fmt::format("{}: more bytes than its header's {} lines of 64 bytes; the file was cut "
                        "or mixed up",
                        name, header.file.lines));
    input.close();
    SIEVE_TRY(image.check(name));
    return image;
}

Result<Image> Image::load(const std::filesystem::path& path, const Kinds& kinds) {
    SIEVE_ASSIGN(Input input, Input::of(path.string()));
    return load(input, kinds);
}

std::uint64_t Image::checksum() const {
    // The checksum covers everything except the eight bytes that hold it.
    const auto* begin = reinterpret_cast<const char*>(lines_);
    const std::size_t at = SIEVE_FILE_LINE * sizeof(sieve_line) + offsetof(sieve_file, checksum);
    const std::size_t after = at + sizeof(std::uint64_t);
    const std::uint64_t head = XXH3_64bits(begin, at);
    return XXH3_64bits_withSeed(begin + after, bytes() - after, head);
}

void Image::seal() {
    file().checksum = checksum();
}

Status Image::check(const std::string& origin) const {
    const auto fail = [&origin](const std::string& fault) {
        return bad_input(fmt::format("{}: {}", origin, fault));
    };
    if (const std::string fault = header_fault({lookup(), probes(), file()}, *kinds_); !fault.empty())
        return fail(fault);
    if (file().lines != count_)
        return fail(fmt::format("{} lines of 64 bytes, but its header says {}; the file was cut or mixed up",
                                count_, file().lines));
    if (file().checksum != checksum())
        return fail(fmt::format("checksum {:016x}, expected {:016x}; the file was altered or damaged",
                                checksum(), file().checksum));
    if (const ExactKind* exact = kind().exact(); exact != nullptr && exact->is_of_keys()) {
        const Result<KeySum> own = exact->add_up(lookup(), filter());
        if (!own) return fail(own.error().message);
        if (own->keys != file().keys)
            return fail(
                fmt::format("its filter lists {} keys, and its header counts {}", own->keys, file().keys));
        if (own->sum != HashSum{.locate = file().key_sum[0], .test = file().key_sum[1]})
            return fail("its filter lists other keys than those that its header has the sum of");
    }
    for (const sieve_witness& witness : witnesses()) {
        if (const std::string fault = witness_fault(witness, lookup()); !fault.empty()) return fail(fault);
        if (!contains(witness.key)) return fail("its filter does not hold one of its own witnesses");
    }
    double questions = 0;
    for (const sieve_exception& exception : exceptions()) {
        if (const std::string fault = exception_fault(exception, lookup()); !fault.empty())
            return fail(fault);
        questions += count_questions(exception, lookup(), probes());
    }
    if (file().excluded == 0) return {};
    if (questions != static_cast<double>(file().excluded))
        return fail(fmt::format("its exceptions ask {} questions, and its header counts {}", questions,
                                file().excluded));
    if (!excludes(exceptions())) return fail("its filter matches one of its own exceptions");
    return {};
}

Status Image::save(const std::filesystem::path& path, Replace replace) {
    seal();
    return write_output(path.string(), {reinterpret_cast<const char*>(lines_), bytes()}, image_output(),
                        replace);
}

bool Image::contains_hash(sieve_hash hash) const {
    return kind().holds(lookup(), hash, lines_ + SIEVE_FIRST_LINE);
}

bool Image::contains(const sieve_key& key) const {
    if (const ExactKind* exact = kind().exact()) return exact->holds_key(lookup(), key, filter());
    if (lookup().probes == 0) return contains_hash(sieve_hash_key(&key, lookup().hash_key, lookup().fields));
    const __u64* address = key.word + sieve_address_word(lookup().fields);
    const int family = sieve_family(address[0], address[1]);
    if (!sieve_is_one_address(lookup().fields)) {
        for (int i = 0; i < probes().count[family]; i++)
            if (holds(key, {probes().length[family][i], probes().destination[family][i],
                            probes().transport[family][i], 0}))
                return true;
        return false;
    }
    for (int i = 0; i < probes().count[family]; i++)
        if (contains_hash(
                sieve_hash_prefix(address[0], address[1], probes().length[family][i], lookup().hash_key)))
            return true;
    return false;
}

bool Image::holds(const sieve_key& key, const sieve_probe& probe) const {
    const __u64* hash_key = lookup().hash_key;
    const std::uint32_t fields = lookup().fields;
    if (kind().exact() != nullptr) return contains(key);
    if (lookup().probes == 0) return contains_hash(sieve_hash_key(&key, hash_key, fields));
    if (sieve_is_one_address(fields))
        return contains_hash(
            sieve_hash_prefix(sieve_address_upper(&key, fields), sieve_address_lower(&key, fields),
                              sieve_address_word(fields) == 0 ? probe.source : probe.destination, hash_key));
    sieve_key stored;
    sieve_store_key(&key, sieve_pack_probe(probe.source, probe.destination, probe.transport), &stored);
    return contains_hash(sieve_hash_stored(&stored, hash_key));
}

bool Image::excludes(std::span<const sieve_exception> exceptions) const {
    return std::all_of(exceptions.begin(), exceptions.end(), [&](const sieve_exception& exception) {
        return for_each_question(
            exception, lookup(), probes(),
            [&](const sieve_key& key, const sieve_probe& probe) { return !holds(key, probe); });
    });
}

Result<bool> is_image(Input& input) {
    constexpr std::uint32_t magic = SIEVE_MAGIC;
    SIEVE_ASSIGN(const std::string_view first, input.peek(sizeof(magic)));
    return first.size() == sizeof(magic) && std::memcmp(first.data(), &magic, sizeof(magic)) == 0;
}

const OutputKind& image_output() {
    static std::atomic<const OutputKind*> known = nullptr;
    return first_use(known,
                     [] { return OutputKind{.name = "filter image", .beginnings = {"SIEV"}, .mode = 0600}; });
}

} // namespace sieve
