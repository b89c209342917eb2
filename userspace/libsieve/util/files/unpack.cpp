// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/files/unpack.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/util/text/printable.hpp"

namespace sieve {

namespace {

constexpr std::uint64_t free_of_ratio = std::uint64_t{1} << 20;
constexpr std::size_t block_bytes = std::size_t{64} << 10;
// So many bytes of a part show whether it is an archive.
constexpr std::size_t head_bytes = 512;

const char* name_of(Packing packing) {
    switch (packing) {
    case Packing::gzip:
        return "gzip";
    case Packing::zstd:
        return "zstd";
    case Packing::xz:
        return "xz";
    case Packing::zip:
        return "zip";
    case Packing::none:
        break;
    }
    return "unpacked";
}

tl::unexpected<Error> damaged(const std::string& name, Packing packing, const std::string& why) {
    return bad_input(fmt::format("{}: damaged or cut short: {}: {}", name, name_of(packing), why));
}

tl::unexpected<Error> no_memory(const std::string& name) {
    return failure(ErrorKind::out_of_memory, fmt::format("{}: no memory to unpack it", name));
}

// The packed bytes, counted.
class Packed {
  public:
    explicit Packed(Unpacker::Source source) : source_(std::move(source)) {}
    Result<std::size_t> read(char* to, std::size_t bytes) {
        SIEVE_ASSIGN(const std::size_t got, source_(to, bytes));
        consumed_ += got;
        return got;
    }
    [[nodiscard]] std::uint64_t consumed() const { return consumed_; }

  private:
    Unpacker::Source source_;
    std::uint64_t consumed_ = 0;
};

// An unsigned little-endian number of these bytes; 0 if the text ends before.
std::uint64_t number_at(std::string_view text, std::uint64_t at, unsigned bytes) {
    if (text.size() < bytes || at > text.size() - bytes) return 0;
    std::uint64_t number = 0;
    for (unsigned i = bytes; i-- > 0;) number = number << 8 | static_cast<unsigned char>(text[at + i]);
    return number;
}

// Whether a zip archive fills the text: its directory ends where the record of its end begins, by an offset
// from the text's first byte, and a comment ends the text (APPNOTE.TXT 4.3.14 to 4.3.16). True, too, if there
// is no whole record: then the archive is cut short.
bool fills(std::string_view zip) {
    constexpr std::size_t end_bytes = 22;
    constexpr std::size_t locator_bytes = 20;
    const std::size_t end = zip.rfind("PK\5\6");
    if (end == std::string_view::npos || zip.size() - end < end_bytes) return true;
    if (end + end_bytes + number_at(zip, end + 20, 2) != zip.size()) return false;
    if (end < locator_bytes || !zip.substr(end - locator_bytes).starts_with("PK\6\7"))
        return number_at(zip, end + 12, 4) + number_at(zip, end + 16, 4) == end;
    const std::size_t locator = end - locator_bytes;
    const std::uint64_t record = number_at(zip, locator + 8, 8);
    return record < locator && zip.substr(record).starts_with("PK\6\6") &&
           record + 12 + number_at(zip, record + 4, 8) == locator &&
           number_at(zip, record + 40, 8) + number_at(zip, record + 48, 8) == record;
}

// One format's parts, one after the other.
class Parts {
  public:
    virtual ~Parts() = default;
    // Goes to the next part. False: there is none.
    virtual Result<bool> next() = 0;
    // Up to `bytes` bytes of the part; 0 at its end.
    virtual Result<std::size_t> read(char* to, std::size_t bytes) = 0;
};

// zlib and not libarchive, which does not compare gzip's checksums. All members are one part.
class GzipParts final : public Parts {
  public:
    GzipParts(Packed& packed, const std::string& name) : packed_(packed), name_(name) {}
    GzipParts(const GzipParts&) = delete;
    GzipParts& operator=(const GzipParts&) = delete;
    ~GzipParts() override { ::inflateEnd(&stream_); }

    Result<bool> next() override {
        if (started_) return false;
        started_ = true;
        constexpr int gzip_only = 16;
        if (::inflateInit2(&stream_, gzip_only + MAX_WBITS) != Z_OK) return no_memory(name_);
        return true;
    }
    Result<std::size_t> read(char* to, std::size_t bytes) override {
        while (!over_) {
            SIEVE_TRY(fill());
            const bool at_end = stream_.avail_in == 0;
            if (member_ended_) {
                over_ = at_end;
                if (!over_ && ::inflateReset(&stream_) != Z_OK) return wrong("cannot go on");
                member_ended_ = false;
                continue;
            }
            stream_.next_out = reinterpret_cast<Bytef*>(to);
            stream_.avail_out = static_cast<uInt>(std::min(bytes, block_bytes));
            const uInt room = stream_.avail_out;
            const int state = ::inflate(&stream_, Z_NO_FLUSH);
            const std::size_t made = room - stream_.avail_out;
            member_ended_ = state == Z_STREAM_END;
            if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
                return wrong(stream_.msg != nullptr ? stream_.msg : "it cannot be read");
            if (made > 0) return made;
            if (at_end && !member_ended_) return wrong("it ends in the middle");
        }
        return std::size_t{0};
    }

  private:
    // Reads on, if nothing is left of what was read. At the end nothing is left still.
    Status fill() {
        if (stream_.avail_in != 0) return {};
        SIEVE_ASSIGN(const std::size_t got, packed_.read(in_.data(), in_.size()));
        stream_.next_in = reinterpret_cast<Bytef*>(in_.data());
        stream_.avail_in = static_cast<uInt>(got);
        return {};
    }
    [[nodiscard]] tl::unexpected<Error> wrong(const std::string& why) const {
        return damaged(name_, Packing::gzip, why);
    }

    Packed& packed_;
    const std::string& name_;
    z_stream stream_{};
    std::vector<char> in_ = std::vector<char>(block_bytes);
    bool started_ = false;
    bool member_ended_ = false;
    bool over_ = false;
};

// zstd, xz and zip.
class ArchiveParts final : public Parts {
  public:
    ArchiveParts(Packing packing, Packed& packed, const std::string& name, std::uint64_t zip_bytes)
        : packing_(packing), packed_(packed), name_(name), zip_bytes_(zip_bytes),
          archive_(::archive_read_new(), &::archive_read_free) {}

    Result<bool> next() override {
        if (!opened_) SIEVE_TRY(open());
        for (archive_entry* entry = nullptr;;) {
            const int state = ::archive_read_next_header(archive_.get(), &entry);
            if (state == ARCHIVE_EOF) break;
            if (state != ARCHIVE_OK) return wrong();
            if (packing_ == Packing::zip) {
                if (::archive_entry_filetype(entry) == AE_IFDIR) continue;
                SIEVE_TRY(check_member(entry));
            }
            files_++;
            return true;
        }
        if (files_ == 0)
            return bad_input(fmt::format("{}: the {} archive holds no file", name_, name_of(packing_)));
        return false;
    }
    Result<std::size_t> read(char* to, std::size_t bytes) override {
        const la_ssize_t got = ::archive_read_data(archive_.get(), to, bytes);
        if (got < 0) return wrong();
        return static_cast<std::size_t>(got);
    }

  private:
    Status open() {
        opened_ = true;
        if (!archive_) return no_memory(name_);
        if (packing_ == Packing::zip) {
            // By the directory at its end: only so a part that is missing is noticed.
            SIEVE_TRY(take_whole());
            if (!fills({whole_.data(), whole_.size()}))
                return bad_input(fmt::format(
                    "{}: found bytes before or behind a zip archive, expected one archive alone", name_));
            ::archive_read_support_format_zip_seekable(archive_.get());
            if (::archive_read_open_memory(archive_.get(), whole_.data(), whole_.size()) != ARCHIVE_OK)
                return wrong();
            return {};
        }
        ::archive_read_support_format_raw(archive_.get());
        // Exactly one filter: left to itself, libarchive would unpack an archive within the archive as well.
        ::archive_read_append_filter(archive_.get(),
                                     packing_ == Packing::zstd ? ARCHIVE_FILTER_ZSTD : ARCHIVE_FILTER_XZ);
        if (::archive_read_open(archive_.get(), this, nullptr, &give, nullptr) != ARCHIVE_OK) return wrong();
        return {};
    }
    Status take_whole() {
        for (std::size_t size = 0;;) {
            if (size > zip_bytes_)
                return bad_input(
                    fmt::format("{}: a zip archive of more than {} bytes, the limit", name_, zip_bytes_));
            whole_.resize(std::max(2 * size, block_bytes));
            SIEVE_ASSIGN(const std::size_t got, packed_.read(whole_.data() + size, whole_.size() - size));
            size += got;
            if (got != 0) continue;
            whole_.resize(size);
            return {};
        }
    }
    [[nodiscard]] Status check_member(archive_entry* entry) const {
        const char* const path = ::archive_entry_pathname(entry);
        const std::string member = path != nullptr ? printable(path) : "a file";
        if (::archive_entry_is_encrypted(entry) != 0)
            return bad_input(
                fmt::format("{}: {} is encrypted, expected an archive without a password", name_, member));
        if (::archive_entry_filetype(entry) != AE_IFREG)
            return bad_input(fmt::format("{}: {} is no regular file, expected a list", name_, member));
        return {};
    }

    static la_ssize_t give(archive*, void* self, const void** bytes) {
        auto& parts = *static_cast<ArchiveParts*>(self);
        *bytes = parts.block_.data();
        Result<std::size_t> got = parts.packed_.read(parts.block_.data(), parts.block_.size());
        if (got) return static_cast<la_ssize_t>(*got);
        parts.source_error_ = std::move(got.error());
        return -1;
    }
    [[nodiscard]] tl::unexpected<Error> wrong() const {
        if (source_error_) return tl::unexpected(*source_error_);
        const char* text = archive_ ? ::archive_error_string(archive_.get()) : nullptr;
        return damaged(name_, packing_, text != nullptr ? printable(text) : "it cannot be read");
    }

    Packing packing_;
    Packed& packed_;
    const std::string& name_;
    std::uint64_t zip_bytes_;
    std::optional<Error> source_error_;
    std::vector<char> block_ = std::vector<char>(block_bytes);
    std::vector<char> whole_;
    bool opened_ = false;
    std::uint64_t files_ = 0;
    std::unique_ptr<archive, decltype(&::archive_read_free)> archive_; // goes first: it uses the others
};

// What else a part may be, for a message; empty if it may be a list.
std::string archive_within(std::string_view head) {
    constexpr std::size_t tar_magic = 257;
    if (const Packing packing = packing_of(head); packing != Packing::none) return name_of(packing);
    if (head.starts_with("BZh")) return "bzip2";
    if (head.size() > tar_magic && head.substr(tar_magic).starts_with("ustar")) return "tar";
    return {};
}

class Reader final : public Unpacker {
  public:
    Reader(Packing packing, Source source, std::string name, const UnpackLimits& limits)
        : packing_(packing), name_(std::move(name)), limits_(limits), packed_(std::move(source)) {
        if (packing == Packing::gzip)
            parts_ = std::make_unique<GzipParts>(packed_, name_);
        else
            parts_ = std::make_unique<ArchiveParts>(packing, packed_, name_, limits.zip_bytes);
    }

    Result<std::size_t> read(char* to, std::size_t bytes) override {
        while (!over_ && bytes > 0) {
            if (taken_ < head_.size()) {
                const std::size_t size = std::min(bytes, head_.size() - taken_);
                std::memcpy(to, head_.data() + taken_, size);
                taken_ += size;
                return count(to, size);
            }
            if (!in_part_) {
                SIEVE_TRY(begin_part());
                continue;
            }
            SIEVE_ASSIGN(const std::size_t got, parts_->read(to, bytes));
            if (got > 0) return count(to, got);
            in_part_ = false;
            if (packing_ != Packing::zip || ends_line_) continue;
            *to = '\n'; // so that the next part begins a line
            return count(to, 1);
        }
        return std::size_t{0};
    }
    [[nodiscard]] std::uint64_t consumed() const override { return packed_.consumed(); }

  private:
    Status begin_part() {
        SIEVE_ASSIGN(in_part_, parts_->next());
        over_ = !in_part_;
        head_.resize(in_part_ ? head_bytes : 0);
        taken_ = 0;
        std::size_t size = 0;
        while (size < head_.size()) {
            SIEVE_ASSIGN(const std::size_t got, parts_->read(head_.data() + size, head_.size() - size));
            if (got == 0) break;
            size += got;
        }
        head_.resize(size);
        if (const std::string inner = archive_within(head_); !inner.empty())
            return bad_input(
                fmt::format("{}: holds another archive ({}), expected a list as text", name_, inner));
        return {};
    }
    Result<std::size_t> count(const char* bytes, std::size_t size) {
        written_ += size;
        if (written_ > limits_.bytes)
            return bad_input(
                fmt::format("{}: unpacks to more than {} bytes, the limit", name_, limits_.bytes));
        if (written_ > free_of_ratio &&
            static_cast<double>(written_) > limits_.ratio * static_cast<double>(packed_.consumed()))
            return bad_input(fmt::format("{}: {} bytes unpack to more than {} times as many, the limit",
                                         name_, packed_.consumed(), limits_.ratio));
        ends_line_ = bytes[size - 1] == '\n';
        return size;
    }

    Packing packing_;
    std::string name_;
    UnpackLimits limits_;
    Packed packed_;
    std::unique_ptr<Parts> parts_;
    std::string head_; // a part's first bytes, which were looked at
    std::size_t taken_ = 0;
    bool in_part_ = false;
    bool over_ = false;
    bool ends_line_ = true;
    std::uint64_t written_ = 0;
};

} // namespace

Packing packing_of(std::string_view begin) {
    using namespace std::string_view_literals;
    if (begin.starts_with("\x1f\x8b"sv)) return Packing::gzip;
    if (begin.starts_with("\x28\xb5\x2f\xfd"sv)) return Packing::zstd;
    if (begin.starts_with("\xfd"
                          "7zXZ\0"sv))
        return Packing::xz;
    // A first file, or the end of an archive without any.
    if (begin.starts_with("PK\x03\x04"sv) || begin.starts_with("PK\x05\x06"sv)) return Packing::zip;
    return Packing::none;
}

Result<std::unique_ptr<Unpacker>> Unpacker::of(Packing packing, Source source, std::string name,
                                               const UnpackLimits& limits) {
    if (packing == Packing::none) return invalid_request(fmt::format("{}: is not packed", name));
    return std::make_unique<Reader>(packing, std::move(source), std::move(name), limits);
}

} // namespace sieve
