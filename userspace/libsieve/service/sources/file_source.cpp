// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/file_source.hpp"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/core.h>

#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

tl::unexpected<Error> unreadable(const std::string& path, int error) {
    return bad_input(fmt::format("{}: cannot be read: {}", printable(path), errno_text(error)));
}

// Whether a name in a folder stands for a file. What goes away meanwhile is none, unless its folder
// goes; a link that leads nowhere may stand for a list that went.
Result<bool> is_file(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) return S_ISREG(info.st_mode);
    const int error = errno;
    if (error != ENOENT) return unreadable(path, error);
    if (::lstat(path.c_str(), &info) != 0) {
        if (errno != ENOENT) return unreadable(path, errno);
        const std::string folder = path.substr(0, path.rfind('/') + 1);
        if (!folder.empty() && ::stat(folder.c_str(), &info) != 0) return unreadable(folder, errno);
        return false;
    }
    if (!S_ISLNK(info.st_mode)) return S_ISREG(info.st_mode); // another one has come
    if (::stat(path.c_str(), &info) != 0) return unreadable(path, error);
    return S_ISREG(info.st_mode);
}

Result<std::vector<std::string>> files_among(const std::vector<std::string>& names) {
    std::vector<std::string> files;
    for (const std::string& name : names) {
        SIEVE_ASSIGN(const bool file, is_file(name));
        if (file) files.push_back(name);
    }
    std::sort(files.begin(), files.end());
    return files;
}

// The folder in front of a pattern's first wildcard, as it is named on the disk.
std::string folder_of_pattern(const std::string& pattern) {
    std::string text;
    std::size_t folder = 0;
    for (std::size_t i = 0; i < pattern.size(); i++) {
        if (std::string_view("*?[").find(pattern[i]) != std::string_view::npos) break;
        if (pattern[i] == '\\' && i + 1 < pattern.size()) i++;
        text += pattern[i];
        if (pattern[i] == '/') folder = text.size();
    }
    return folder == 0 ? "." : text.substr(0, folder);
}

// The folder that glob() could not read last. It gives its callback nothing else to write to.
struct UnreadFolder {
    std::string path;
    int error = 0;
};
thread_local std::optional<UnreadFolder> unread_folder;

} // namespace

Result<std::vector<std::string>> files_of_folder(const std::string& path) {
    std::error_code error;
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error))
        if (is_list_name(entry->path().filename().string())) names.push_back(entry->path().string());
    if (error) return unreadable(path, error.value());
    return files_among(names);
}

Result<std::vector<std::string>> files_of_glob(const std::string& pattern) {
    // glob() finds nothing in a folder that is not there, or that has become a file.
    const std::string folder = folder_of_pattern(pattern);
    std::error_code missing;
    const std::filesystem::directory_iterator there(folder, missing);
    if (missing) return unreadable(folder, missing.value());
    unread_folder.reset();
    const auto note = [](const char* path, int error) {
        unread_folder = UnreadFolder{path, error};
        return 1;
    };
    glob_t matches{};
    const int error = ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_ERR, note, &matches);
    std::vector<std::string> names;
    if (error == 0) names.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
    ::globfree(&matches);
    if (unread_folder) return unreadable(unread_folder->path, unread_folder->error);
    if (error != 0 && error != GLOB_NOMATCH) return unreadable(pattern, error == GLOB_NOSPACE ? ENOMEM : EIO);
    return files_among(names);
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
