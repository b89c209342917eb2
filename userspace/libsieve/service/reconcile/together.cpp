// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/reconcile/together.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <type_traits>
#include <variant>

#include <fmt/core.h>

#include "libsieve/service/live/live_set.hpp"

namespace sieve::service {

namespace {

namespace fs = std::filesystem;

// All zero: there is none.
FileStamp stamp_of(const std::string& path) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) return {};
    return service::stamp_of(info);
}

fs::path link_below(const std::string& state_directory) {
    return (fs::path(state_directory) / link_of_sets_together).lexically_normal();
}

bool is_same(const fs::path& path, const fs::path& link) {
    if (path == link) return true;
    if (path.filename() != link.filename()) return false;
    std::error_code error;
    return fs::weakly_canonical(path.parent_path(), error) == fs::weakly_canonical(link.parent_path(), error);
}

bool is_behind(const std::string& text, const fs::path& link) {
    const fs::path path = fs::path(text).lexically_normal();
    for (fs::path folder = path.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
        if (is_same(folder, link)) return true;
    return false;
}

bool names_link(const SourceSpec& source, const fs::path& link) {
    return std::visit(
        [&](const auto& spec) {
            using Spec = std::decay_t<decltype(spec)>;
            if constexpr (std::is_same_v<Spec, FileSpec>)
                return is_behind(spec.path, link);
            else if constexpr (std::is_same_v<Spec, FolderSpec>)
                return is_behind(spec.path, link);
            else if constexpr (std::is_same_v<Spec, GlobSpec>)
                return is_behind(spec.pattern, link);
            else
                return false;
        },
        source);
}

// A file must be there, too: a manifest need not have every set that is configured.
bool comes_through(const SourceSpec& source, const fs::path& link) {
    const auto* file = std::get_if<FileSpec>(&source);
    return names_link(source, link) && (file == nullptr || stamp_of(file->path) != FileStamp{});
}

} // namespace

bool follows_fleet(const SetConfiguration& set, const std::string& state_directory) {
    const fs::path link = link_below(state_directory);
    return std::ranges::any_of(set.sources,
                               [&](const SourceSpec& source) { return names_link(source, link); });
}

std::optional<std::string> parts_with_its_manifest(const SetConfiguration& set,
                                                   const std::string& state_directory) {
    if (!live::is_live(set) || !follows_fleet(set, state_directory)) return std::nullopt;
    return fmt::format(
        "set {}: {}, and so changes in place, but has {} among its sources, which comes with its "
        "manifest; expected two sets",
        set.name, live::why_live(set), link_of_sets_together);
}

bool is_published(const SetConfiguration& set, const std::string& state_directory) {
    const fs::path link = link_below(state_directory);
    return std::ranges::all_of(set.sources,
                               [&](const SourceSpec& source) { return comes_through(source, link); });
}

bool is_known_to_fleet(const SetConfiguration& set, const std::string& state_directory) {
    const fs::path folder = link_below(state_directory).parent_path() / "known";
    return is_published(set, state_directory) &&
           std::ranges::all_of(set.sources, [&](const SourceSpec& source) {
               const auto* file = std::get_if<FileSpec>(&source);
               std::error_code error;
               if (file == nullptr) return false;
               const fs::path blob = fs::read_symlink(file->path, error).filename();
               return !blob.empty() && stamp_of(folder / blob) != FileStamp{};
           });
}

bool has_gone_back(const std::string& state_directory) {
    return stamp_of(link_below(state_directory).parent_path() / "refused") != FileStamp{};
}

SetsTogether SetsTogether::of(const Configuration& configuration) {
    SetsTogether together;
    together.link_ = link_below(configuration.state_directory).string();
    together.stamp_ = stamp_of(together.link_);
    if (together.stamp_ == FileStamp{}) return together;
    for (const SetConfiguration& set : configuration.sets) {
        const bool behind = std::ranges::any_of(
            set.sources, [&](const SourceSpec& source) { return comes_through(source, together.link_); });
        if (behind && !live::is_live(set)) together.sets_.insert(set.name);
    }
    return together;
}

std::set<std::string> SetsTogether::completed(std::set<std::string> sets) const {
    if (std::ranges::any_of(sets, [this](const std::string& set) { return has(set); }))
        sets.insert(sets_.begin(), sets_.end());
    return sets;
}

bool SetsTogether::still() const {
    return stamp_of(link_) == stamp_;
}

} // namespace sieve::service
