// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/file_source.hpp"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "libsieve/util/digest.hpp"
#include "libsieve/util/printable.hpp"

namespace sieve::service {

namespace {

// A file that was changed so shortly before it was read may change again without another stamp: file systems
// count time in steps of up to two seconds.
constexpr std::int64_t coarsest_stamp = 2;

constexpr std::int64_t nanoseconds = 1'000'000'000;

tl::unexpected<Error> unreadable(const std::string& path, int error) {
    return bad_input(fmt::format("{}: cannot be read: {}", printable(path), errno_text(error)));
}

// The record of a file as the file system describes it, without its digest.
Result<PieceRecord> stamp_of(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return unreadable(path, errno);
    if (!S_ISREG(info.st_mode))
        return bad_input(
            fmt::format("{}: is {}, expected a regular file", printable(path),
                        S_ISDIR(info.st_mode) ? "a folder (named without / at its end)" : "no file"));
    PieceRecord record;
    record.name = path;
    record.bytes = static_cast<std::uint64_t>(info.st_size);
    record.modified = info.st_mtim.tv_sec;
    record.device = info.st_dev;
    record.inode = info.st_ino;
    record.changed = info.st_ctim.tv_sec * nanoseconds + info.st_ctim.tv_nsec;
    return record;
}

bool same_stamp(const PieceRecord& a, const PieceRecord& b) {
    return a.device == b.device && a.inode == b.inode && a.changed == b.changed && a.bytes == b.bytes;
}

bool digest_still_holds(const PieceRecord& before, const PieceRecord& now) {
    return before.name == now.name && same_stamp(before, now) &&
           before.changed / nanoseconds + coarsest_stamp < before.read;
}

Result<std::string> digest_of_file(const std::string& path) {
    SIEVE_ASSIGN(Input input, Input::of(path));
    Digest digest;
    std::vector<char> block(std::size_t{256} << 10);
    for (;;) {
        SIEVE_ASSIGN(const std::size_t got, input.read(block.data(), block.size()));
        if (got == 0) return digest.hex();
        digest.add({block.data(), got});
    }
}

class FilePiece final : public Piece {
  public:
    static Result<std::unique_ptr<Piece>> of(const std::string& path, std::span<const PieceRecord> before) {
        SIEVE_ASSIGN(PieceRecord record, stamp_of(path));
        const auto known = std::find_if(before.begin(), before.end(), [&](const PieceRecord& old) {
            return digest_still_holds(old, record);
        });
        if (known != before.end()) {
            record.digest = known->digest;
            record.read = known->read;
        } else {
            record.read = std::time(nullptr);
            SIEVE_ASSIGN(record.digest, digest_of_file(path));
        }
        return std::make_unique<FilePiece>(std::move(record));
    }

    explicit FilePiece(PieceRecord record) : record_(std::move(record)) {}

    const PieceRecord& record() const override { return record_; }
    Result<Input> open() const override { return Input::of(record_.name); }
    Status confirm() const override {
        SIEVE_ASSIGN(const PieceRecord now, stamp_of(record_.name));
        if (same_stamp(now, record_)) return {};
        return failure(ErrorKind::changed_meanwhile,
                       fmt::format("{}: was changed while it was read", printable(record_.name)));
    }

  private:
    PieceRecord record_;
};

Result<std::vector<std::string>> files_of_folder(const std::string& path) {
    std::error_code error;
    std::vector<std::string> files;
    for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
        std::error_code gone; // a file that goes away meanwhile is none
        if (entry->is_regular_file(gone) && is_list_name(entry->path().filename().string()))
            files.push_back(entry->path().string());
    }
    if (error) return unreadable(path, error.value());
    std::sort(files.begin(), files.end());
    return files;
}

Result<std::vector<std::string>> files_of_glob(const std::string& pattern) {
    glob_t matches{};
    const int error = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches);
    std::vector<std::string> files;
    if (error == 0)
        for (std::size_t i = 0; i < matches.gl_pathc; i++) {
            std::error_code gone;
            if (std::filesystem::is_regular_file(matches.gl_pathv[i], gone))
                files.emplace_back(matches.gl_pathv[i]);
        }
    ::globfree(&matches);
    if (error != 0 && error != GLOB_NOMATCH) return unreadable(pattern, error == GLOB_NOSPACE ? ENOMEM : EIO);
    std::sort(files.begin(), files.end());
    return files;
}

// What a source names that is a file, a folder or a pattern; empty for others.
std::string path_of(const SourceSpec& spec) {
    if (const auto* file = std::get_if<FileSpec>(&spec)) return file->path;
    if (const auto* folder = std::get_if<FolderSpec>(&spec)) return folder->path;
    if (const auto* glob = std::get_if<GlobSpec>(&spec)) return glob->pattern;
    return {};
}

class FileSource final : public Source {
  public:
    explicit FileSource(SourceSpec spec) : spec_(std::move(spec)) {}

    Result<Pieces> fetch(std::span<const PieceRecord> before) override {
        SIEVE_ASSIGN(const std::vector<std::string> paths, files());
        Pieces pieces;
        for (const std::string& path : paths) {
            SIEVE_ASSIGN(std::unique_ptr<Piece> piece, FilePiece::of(path, before));
            pieces.push_back(std::move(piece));
        }
        return pieces;
    }

    std::vector<std::string> folders() const override {
        const std::filesystem::path path(path_of(spec_));
        if (std::holds_alternative<FolderSpec>(spec_)) return {path.string()};
        if (!std::holds_alternative<GlobSpec>(spec_)) return {path.parent_path().string()};
        // Below a folder that is itself a pattern, only those that are there now are known.
        glob_t matches{};
        std::vector<std::string> folders;
        if (::glob(path.parent_path().c_str(), GLOB_ONLYDIR, nullptr, &matches) == 0)
            folders.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
        ::globfree(&matches);
        return folders;
    }

  private:
    [[nodiscard]] Result<std::vector<std::string>> files() const {
        if (const auto* file = std::get_if<FileSpec>(&spec_)) return std::vector{file->path};
        if (const auto* folder = std::get_if<FolderSpec>(&spec_)) return files_of_folder(folder->path);
        if (const auto* glob = std::get_if<GlobSpec>(&spec_)) return files_of_glob(glob->pattern);
        return bad_input(fmt::format("{}: cannot be read yet", source_name(spec_)));
    }

    SourceSpec spec_;
};

} // namespace

std::unique_ptr<Source> make_file_source(const SourceSpec& spec) {
    return std::make_unique<FileSource>(spec);
}

bool is_list_name(std::string_view name) {
    constexpr std::array<std::string_view, 6> endings{"~", ".bak", ".tmp", ".swp", ".part", ".new"};
    if (name.empty() || name.front() == '.') return false;
    if (name.find(".dpkg-") != std::string_view::npos || name.find(".rpm") != std::string_view::npos)
        return false;
    return std::none_of(endings.begin(), endings.end(),
                        [&](std::string_view ending) { return name.ends_with(ending); });
}

} // namespace sieve::service
