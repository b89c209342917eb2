// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/image/image.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/core.h>
#include <xxhash.h>

#include <sieve/prefix.h>

#include "libsieve/image/kinds.hpp"
#include "libsieve/util/unique_fd.hpp"

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
        return bad_input(fmt::format("{} MiB for the filter are not to be had: {}",
                                     (count * sizeof(sieve_line)) >> 20, errno_text(errno)));
    // The builder's accesses are random: fewer and larger pages. Only a hint, so its failure does not matter.
    ::madvise(pages, count * sizeof(sieve_line), MADV_HUGEPAGE);
    return static_cast<sieve_line*>(pages);
}

// Reads or writes all of the buffer; false with errno set if that failed, or with errno 0 at an early end.
bool read_all(int fd, void* buffer, std::size_t bytes) {
    auto* at = static_cast<char*>(buffer);
    while (bytes > 0) {
        const ssize_t got = ::read(fd, at, bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            if (got == 0) errno = 0;
            return false;
        }
        at += got;
        bytes -= static_cast<std::size_t>(got);
    }
    return true;
}

bool write_all(int fd, const void* buffer, std::size_t bytes) {
    const auto* at = static_cast<const char*>(buffer);
    while (bytes > 0) {
        const ssize_t put = ::write(fd, at, bytes);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        at += put;
        bytes -= static_cast<std::size_t>(put);
    }
    return true;
}

bool is_rate(std::uint64_t bits) {
    const double rate = rate_from_bits(bits);
    return rate >= 0.0 && rate <= 1.0; // false for NaN
}

// What is wrong with the lengths of a prefix set, or an empty string.
std::string probes_fault(const sieve_lookup& lookup, const sieve_probes& probes) {
    if (lookup.probes == 0) return {};
    if (lookup.fields != SIEVE_FIELD_SRC && lookup.fields != SIEVE_FIELD_DST)
        return "a prefix set whose keys are not one address";
    std::uint32_t most = 0;
    for (int family = 0; family < SIEVE_FAMILIES; family++) {
        const std::uint32_t count = probes.count[family];
        if (count > SIEVE_MAX_PROBES)
            return fmt::format("{} prefix lengths, at most {} can be", count, SIEVE_MAX_PROBES);
        most = std::max(most, count);
        const std::uint32_t least = family == SIEVE_FAMILY_V4 ? 96 : 0;
        for (std::uint32_t i = 0; i < count; i++) {
            const std::uint32_t length = probes.length[family][i];
            if (length < least || length > 128 || (i > 0 && length <= probes.length[family][i - 1]))
                return "its prefix lengths are not a rising list";
        }
    }
    if (most != lookup.probes) return fmt::format("{} probes, but its lengths are {}", lookup.probes, most);
    return {};
}

} // namespace

double rate_from_bits(std::uint64_t bits) {
    return std::bit_cast<double>(bits);
}
std::uint64_t rate_to_bits(double rate) {
    return std::bit_cast<std::uint64_t>(rate);
}

Image::Image(Image&& other) noexcept
    : lines_(std::exchange(other.lines_, nullptr)), count_(std::exchange(other.count_, 0)) {}

Image& Image::operator=(Image&& other) noexcept {
    std::swap(lines_, other.lines_);
    std::swap(count_, other.count_);
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
    return {lines_ + SIEVE_FIRST_LINE, count_ - SIEVE_FIRST_LINE - file().witnesses};
}
std::span<const sieve_line> Image::filter() const {
    return {lines_ + SIEVE_FIRST_LINE, count_ - SIEVE_FIRST_LINE - file().witnesses};
}
std::span<sieve_witness> Image::witnesses() {
    return {reinterpret_cast<sieve_witness*>(lines_ + count_ - file().witnesses), file().witnesses};
}
std::span<const sieve_witness> Image::witnesses() const {
    return {reinterpret_cast<const sieve_witness*>(lines_ + count_ - file().witnesses), file().witnesses};
}

Result<Image> Image::create(std::uint64_t filter_lines, std::uint32_t witnesses) {
    const std::uint64_t count = SIEVE_FIRST_LINE + filter_lines + witnesses;
    SIEVE_ASSIGN(sieve_line * lines, allocate(count));
    Image image(lines, count);
    image.lookup().magic = SIEVE_MAGIC;
    image.file().version = SIEVE_IMAGE_VERSION;
    image.file().lines = count;
    image.file().witnesses = witnesses;
    return image;
}

Result<Image> Image::load(const std::filesystem::path& path) {
    const std::string name = path.string();
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return bad_input(fmt::format("{}: cannot be opened: {}", name, errno_text(errno)));
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return bad_input(fmt::format("{}: {}", name, errno_text(errno)));
    if (!S_ISREG(status.st_mode))
        return bad_input(fmt::format("{}: not a regular file, expected a filter image", name));
    const auto bytes = static_cast<std::uint64_t>(status.st_size);
    if (bytes < SIEVE_FIRST_LINE * sizeof(sieve_line) || bytes % sizeof(sieve_line) != 0)
        return bad_input(
            fmt::format("{}: {} bytes are not a filter image (it is a number of 64-byte lines, at least {})",
                        name, bytes, SIEVE_FIRST_LINE));
    SIEVE_ASSIGN(sieve_line * lines, allocate(bytes / sizeof(sieve_line)));
    Image image(lines, bytes / sizeof(sieve_line));
    if (!read_all(fd.get(), lines, bytes))
        return bad_input(
            fmt::format("{}: {}", name,
                        errno != 0 ? errno_text(errno) : std::string("became shorter while it was read")));
    SIEVE_TRY(image.check(name));
    return image;
}

std::uint64_t Image::checksum() const {
    // Everything but the eight bytes that hold it.
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
    const sieve_file& info = file();
    if (lookup().magic != SIEVE_MAGIC)
        return bad_input(fmt::format("{}: not a filter image (magic {:08x}, expected {:08x})", origin,
                                     lookup().magic, SIEVE_MAGIC));
    if (info.version != SIEVE_IMAGE_VERSION)
        return bad_input(
            fmt::format("{}: image format {}, this program reads format {}; rebuild it from its feed", origin,
                        info.version, SIEVE_IMAGE_VERSION));
    if (info.lines != count_)
        return bad_input(
            fmt::format("{}: {} lines of 64 bytes, but its header says {}; the file was cut or mixed up",
                        origin, count_, info.lines));
    if (info.checksum != checksum())
        return bad_input(
            fmt::format("{}: checksum {:016x}, expected {:016x}; the file was altered or damaged", origin,
                        checksum(), info.checksum));
    if (const std::string fault = geometry_fault(lookup()); !fault.empty())
        return bad_input(fmt::format("{}: {}", origin, fault));
    if (const std::string fault = probes_fault(lookup(), probes()); !fault.empty())
        return bad_input(fmt::format("{}: {}", origin, fault));
    const std::uint64_t expected = SIEVE_FIRST_LINE + filter_lines(lookup()) + info.witnesses;
    if (expected != count_)
        return bad_input(
            fmt::format("{}: its header asks for {} lines, the file has {}", origin, expected, count_));
    if (info.keys == 0 || info.witnesses == 0)
        return bad_input(fmt::format("{}: an image without keys", origin));
    if (!is_rate(info.predicted_fpr) || !is_rate(info.expected_fpr) || !is_rate(info.measured_fpr))
        return bad_input(fmt::format("{}: its false positive rates are not rates", origin));
    if (info.label[sizeof(info.label) - 1] != 0)
        return bad_input(fmt::format("{}: its label is not terminated", origin));
    return {};
}

Status Image::save(const std::filesystem::path& path) {
    seal();
    const std::string name = path.string();
    std::string temporary = name + ".XXXXXX";
    const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
    if (!fd) return bad_input(fmt::format("{}: cannot be written: {}", name, errno_text(errno)));
    // The image holds the secret hash keys: readable by its owner alone, which is what mkostemp gives it.
    if (!write_all(fd.get(), lines_, bytes()) || ::fsync(fd.get()) != 0 ||
        ::rename(temporary.c_str(), path.c_str()) != 0) {
        const int error = errno;
        ::unlink(temporary.c_str());
        return bad_input(fmt::format("{}: cannot be written: {}", name, errno_text(error)));
    }
    return {};
}

bool Image::contains_hash(sieve_hash hash) const {
    return filter_holds(lookup(), hash, lines_ + SIEVE_FIRST_LINE);
}

bool Image::contains(const sieve_key& key) const {
    if (lookup().probes == 0) return contains_hash(sieve_hash_key(&key, lookup().hash_key, lookup().fields));
    const __u64* address = key.word + sieve_address_word(lookup().fields);
    const int family = sieve_family(address[0], address[1]);
    for (int i = 0; i < probes().count[family]; i++)
        if (contains_hash(
                sieve_hash_prefix(address[0], address[1], probes().length[family][i], lookup().hash_key)))
            return true;
    return false;
}

} // namespace sieve
