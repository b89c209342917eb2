// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/unpack.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <fmt/core.h>

#include "libsieve/util/printable.hpp"

namespace sieve::service {

namespace {

constexpr std::uint64_t free_of_ratio = std::uint64_t{1} << 20;
constexpr std::size_t block_bytes = std::size_t{64} << 10;

// Where the text goes, and how much of it there may be.
class Text {
  public:
    Text(int to, const std::string& name, std::uint64_t packed, const UnpackLimits& limits)
        : to_(to), name_(name), packed_(packed), limits_(limits) {}

    [[nodiscard]] Status add(std::span<const char> bytes) {
        if (bytes.empty()) return {};
        written_ += bytes.size();
        if (written_ > limits_.bytes)
            return bad_input(
                fmt::format("{}: unpacks to more than {} bytes, the limit", name_, limits_.bytes));
        if (written_ > free_of_ratio &&
            static_cast<double>(written_) > limits_.ratio * static_cast<double>(packed_))
            return bad_input(fmt::format("{}: {} bytes unpack to more than {} times as many, the limit",
                                         name_, packed_, limits_.ratio));
        ends_line_ = bytes.back() == '\n';
        return write_all(bytes);
    }
    // So that the next part begins a line.
    [[nodiscard]] Status end_part() {
        if (ends_line_) return {};
        const char newline = '\n';
        return add({&newline, 1});
    }
    [[nodiscard]] std::uint64_t written() const { return written_; }

  private:
    [[nodiscard]] Status write_all(std::span<const char> bytes) const {
        while (!bytes.empty()) {
            const ssize_t put = ::write(to_, bytes.data(), bytes.size());
            if (put < 0 && errno == EINTR) continue;
            if (put < 0)
                return bad_input(fmt::format("{}: cannot be unpacked: {}", name_, errno_text(errno)));
            bytes = bytes.subspan(static_cast<std::size_t>(put));
        }
        return {};
    }

    int to_;
    const std::string& name_;
    std::uint64_t packed_;
    UnpackLimits limits_;
    std::uint64_t written_ = 0;
    bool ends_line_ = true;
};

tl::unexpected<Error> damaged(const std::string& name, const char* format, const std::string& why) {
    return bad_input(fmt::format("{}: damaged or cut short: {}: {}", name, format, why));
}

// zlib and not libarchive, which does not compare gzip's checksums.
class GzipReader {
  public:
    GzipReader(int from, const std::string& name, Text& text) : from_(from), name_(name), text_(text) {}
    GzipReader(const GzipReader&) = delete;
    GzipReader& operator=(const GzipReader&) = delete;
    ~GzipReader() { ::inflateEnd(&stream_); }

    // All members, one after the other.
    [[nodiscard]] Status read() {
        constexpr int gzip_only = 16;
        if (::inflateInit2(&stream_, gzip_only + MAX_WBITS) != Z_OK)
            return failure(ErrorKind::out_of_memory, fmt::format("{}: no memory to unpack it", name_));
        do {
            SIEVE_TRY(read_member());
            SIEVE_TRY(fill());
            if (stream_.avail_in != 0 && ::inflateReset(&stream_) != Z_OK) return wrong("cannot go on");
        } while (stream_.avail_in != 0);
        return {};
    }

  private:
    // Reads on, if nothing is left of what was read. At the end nothing is left still.
    [[nodiscard]] Status fill() {
        if (stream_.avail_in != 0) return {};
        ssize_t got = 0;
        do got = ::read(from_, in_.data(), in_.size());
        while (got < 0 && errno == EINTR);
        if (got < 0) return bad_input(fmt::format("{}: cannot be read: {}", name_, errno_text(errno)));
        stream_.next_in = reinterpret_cast<Bytef*>(in_.data());
        stream_.avail_in = static_cast<uInt>(got);
        return {};
    }
    [[nodiscard]] Status read_member() {
        for (int state = Z_OK; state != Z_STREAM_END;) {
            SIEVE_TRY(fill());
            const bool at_end = stream_.avail_in == 0;
            stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
            stream_.avail_out = static_cast<uInt>(out_.size());
            state = ::inflate(&stream_, Z_NO_FLUSH);
            const std::size_t made = out_.size() - stream_.avail_out;
            if (state == Z_BUF_ERROR && at_end) return wrong("it ends in the middle");
            if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
                return wrong(stream_.msg != nullptr ? stream_.msg : "it cannot be read");
            SIEVE_TRY(text_.add({out_.data(), made}));
            if (at_end && made == 0 && state != Z_STREAM_END) return wrong("it ends in the middle");
        }
        return {};
    }
    [[nodiscard]] tl::unexpected<Error> wrong(const std::string& why) const {
        return damaged(name_, "gzip", why);
    }

    int from_;
    const std::string& name_;
    Text& text_;
    z_stream stream_{};
    std::vector<char> in_ = std::vector<char>(block_bytes);
    std::vector<char> out_ = std::vector<char>(block_bytes);
};

class ArchiveReader {
  public:
    ArchiveReader(const char* format, const std::string& name, Text& text)
        : format_(format), name_(name), text_(text), archive_(::archive_read_new(), &::archive_read_free) {}

    [[nodiscard]] Status read(Packing packing, int from) {
        if (!archive_)
            return failure(ErrorKind::out_of_memory, fmt::format("{}: no memory to unpack it", name_));
        if (packing == Packing::zip) {
            // By the directory at its end: only so a part that is missing is noticed.
            ::archive_read_support_format_zip_seekable(archive_.get());
        } else {
            ::archive_read_support_format_raw(archive_.get());
            if (packing == Packing::zstd)
                ::archive_read_support_filter_zstd(archive_.get());
            else
                ::archive_read_support_filter_xz(archive_.get());
        }
        if (::archive_read_open_fd(archive_.get(), from, block_bytes) != ARCHIVE_OK) return wrong();
        std::uint64_t files = 0;
        for (archive_entry* entry = nullptr;;) {
            const int state = ::archive_read_next_header(archive_.get(), &entry);
            if (state == ARCHIVE_EOF) break;
            if (state != ARCHIVE_OK) return wrong();
            if (packing == Packing::zip && ::archive_entry_filetype(entry) != AE_IFREG) continue;
            SIEVE_TRY(read_data());
            if (packing == Packing::zip) SIEVE_TRY(text_.end_part());
            ++files;
        }
        if (files == 0) return bad_input(fmt::format("{}: the {} archive holds no file", name_, format_));
        return {};
    }

  private:
    [[nodiscard]] Status read_data() {
        for (;;) {
            const la_ssize_t got = ::archive_read_data(archive_.get(), buffer_.data(), buffer_.size());
            if (got == 0) return {};
            if (got < 0) return wrong();
            SIEVE_TRY(text_.add({buffer_.data(), static_cast<std::size_t>(got)}));
        }
    }
    [[nodiscard]] tl::unexpected<Error> wrong() const {
        const char* text = ::archive_error_string(archive_.get());
        return damaged(name_, format_, text != nullptr ? printable(text) : "it cannot be read");
    }

    const char* format_;
    const std::string& name_;
    Text& text_;
    std::unique_ptr<archive, decltype(&::archive_read_free)> archive_;
    std::vector<char> buffer_ = std::vector<char>(block_bytes);
};

bool begins_with(std::string_view text, std::string_view lower_case) {
    return text.size() >= lower_case.size() &&
           std::equal(lower_case.begin(), lower_case.end(), text.begin(), [](char wanted, char found) {
               return wanted == (found >= 'A' && found <= 'Z' ? found - 'A' + 'a' : found);
           });
}

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

bool looks_like_html(std::string_view begin) {
    if (begin.starts_with("\xef\xbb\xbf")) begin.remove_prefix(3);
    const std::size_t text = begin.find_first_not_of(" \t\r\n");
    if (text == std::string_view::npos) return false;
    begin.remove_prefix(text);
    constexpr std::string_view beginnings[] = {"<!doctype", "<html", "<head", "<body",
                                               "<script",   "<!--",  "<?xml"};
    return std::any_of(std::begin(beginnings), std::end(beginnings),
                       [&](std::string_view beginning) { return begins_with(begin, beginning); });
}

Result<std::uint64_t> unpack(Packing packing, int from, int to, const std::string& name,
                             const UnpackLimits& limits) {
    struct stat info {};
    if (::fstat(from, &info) != 0 || ::lseek(from, 0, SEEK_SET) != 0)
        return bad_input(fmt::format("{}: cannot be read: {}", name, errno_text(errno)));
    Text text(to, name, static_cast<std::uint64_t>(info.st_size), limits);
    switch (packing) {
    case Packing::none:
        return invalid_request(fmt::format("{}: is not packed", name));
    case Packing::gzip:
        SIEVE_TRY(GzipReader(from, name, text).read());
        break;
    case Packing::zstd:
        SIEVE_TRY(ArchiveReader("zstd", name, text).read(packing, from));
        break;
    case Packing::xz:
        SIEVE_TRY(ArchiveReader("xz", name, text).read(packing, from));
        break;
    case Packing::zip:
        SIEVE_TRY(ArchiveReader("zip", name, text).read(packing, from));
        break;
    }
    return text.written();
}

} // namespace sieve::service
