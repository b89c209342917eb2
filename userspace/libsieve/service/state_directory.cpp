// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/state_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/service/exact_file.hpp"
#include "libsieve/util/boot_id.hpp"
#include "libsieve/util/output.hpp"
#include "libsieve/util/printable.hpp"
#include "libsieve/util/small_file.hpp"

namespace sieve::service {

// Each field of a record is named once, here.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FileStamp, device, inode, status_changed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SourceProvenance, source, digest, bytes, etag, last_modified, asked,
                                   changed, stamp, read)
// What an earlier version did not write is as if it were not there.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SetRecord, identity, build, list_digest, entries, keys,
                                                skipped, bytes, expected_fpr, built_at, exact, left_out,
                                                sources)

namespace {

using nlohmann::json;

constexpr std::size_t longest_version = 4096;
constexpr std::size_t longest_record = std::size_t{64} << 20; // of many sets with many sources
constexpr std::string_view version_text = "xdp-sieve state 2\n";
constexpr std::string_view version_begin = "xdp-sieve state ";

const OutputKind json_output{.name = "record of xdp-sieve", .beginnings = {"{", "["}, .mode = 0600};
const OutputKind version_output{
    .name = "version of a state directory", .beginnings = {version_begin}, .mode = 0600};

tl::unexpected<Error> fault(const std::string& path, const std::string& what) {
    return bad_input(fmt::format("state directory {}: {}", printable(path), what));
}

tl::unexpected<Error> fault(const std::string& path, const std::string& doing, int error) {
    return fault(path, fmt::format("{}: {}", doing, errno_text(error)));
}

Status make_folder(const std::string& path) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return fault(path, "cannot be made", errno);
    return {};
}

// Whoever else may write here could have us load what he likes.
Status check_owner(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return fault(path, "cannot be read", errno);
    if (!S_ISDIR(info.st_mode)) return fault(path, "is no folder");
    if (info.st_uid != ::geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return fault(path,
                     fmt::format("others may write to it (owner {}, mode {:o}); expected owner {}, mode 700",
                                 info.st_uid, info.st_mode & 07777, ::geteuid()));
    return {};
}

// Nothing: it has no version, so it is new or not ours.
Result<bool> check_version(const std::string& path) {
    SIEVE_ASSIGN(const std::optional<std::string> version,
                 read_small_file(path + "/version", longest_version));
    if (!version) return false;
    if (*version == version_text) return true;
    if (version->starts_with(version_text))
        return fault(path,
                     "has a file `version` with bytes behind its first line, expected none; move the folder "
                     "away, and it is made anew from the sources");
    return fault(
        path,
        fmt::format("is of another version (\"{}\", expected \"{}\"); move it away, and it is made anew "
                    "from the sources",
                    printable(version->substr(0, version->find('\n')), 64),
                    version_text.substr(0, version_text.size() - 1)));
}

bool is_empty_but_lock(const std::string& path) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path, error))
        if (entry.path().filename() != "lock") return false;
    return !error;
}

// Who wrote into the lock file.
std::string holder_of(int fd) {
    std::array<char, 256> text{};
    const ssize_t length = ::pread(fd, text.data(), text.size(), 0);
    std::string holder(text.data(), static_cast<std::size_t>(std::max<ssize_t>(0, length)));
    return holder.empty() ? "another process" : printable(holder.substr(0, holder.find('\n')));
}

Result<UniqueFd> take_lock(const std::string& path, std::chrono::milliseconds patience,
                           const std::function<void(const std::string& holder)>& waiting) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + patience;
    UniqueFd fd(::open((path + "/lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) return fault(path, "its lock cannot be opened", errno);
    bool told = false;
    while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return fault(path, "its lock cannot be taken", errno);
        if (Clock::now() >= deadline)
            return failure(ErrorKind::busy,
                           fmt::format("state directory {}: {} is at work with it; wait for it or end it",
                                       printable(path), holder_of(fd.get())));
        if (!std::exchange(told, true) && waiting) waiting(holder_of(fd.get()));
        std::this_thread::sleep_for(std::chrono::milliseconds(5)); // flock has no time limit
    }
    const std::string note = fmt::format("process {}\n", ::getpid());
    // The note only serves to name the holder, so it may fail.
    if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), note.data(), note.size(), 0) < 0) return fd;
    return fd;
}

std::string text_of(const json& value) {
    return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

// A folder or a pipe at the path would be in the way for ever. A folder with content is somebody's.
Status write_json(const std::string& path, const json& value) {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
        std::error_code error;
        std::filesystem::remove(path, error);
        if (error) return fault(path, "cannot be removed", error.value());
    }
    return write_output(path, text_of(value), json_output, Replace::anything);
}

bool is_identity(const std::string& text) {
    return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Nothing for a text that is no record.
std::optional<SetRecord> record_of(const std::string& text) {
    try {
        SetRecord record = json::parse(text).get<SetRecord>();
        if (!is_identity(record.identity)) return std::nullopt;
        return record;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

// A file that nobody names yet: what is left of it after a crash is removed by the next discard_staged().
Result<UniqueFd> new_file(const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) return fault(path, "cannot be written", errno);
    return fd;
}

tl::unexpected<Error> unreadable(const std::string& path, const std::string& why) {
    return bad_input(fmt::format("{}: {}", printable(path), why));
}

Result<UniqueFd> open_file(const std::string& path) {
    UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file) return unreadable(path, "cannot be read: " + errno_text(errno));
    return file;
}

// Copies a whole file.
Status copy_file(int from, const std::string& path) {
    SIEVE_ASSIGN(const UniqueFd to, new_file(path));
    struct stat info {};
    if (::fstat(from, &info) != 0) return fault(path, "cannot be written", errno);
    for (off_t at = 0; at < info.st_size;) {
        const ssize_t copied = ::sendfile(to.get(), from, &at, static_cast<std::size_t>(info.st_size - at));
        if (copied < 0 && errno == EINTR) continue;
        if (copied <= 0) return fault(path, "cannot be written", copied == 0 ? EIO : errno);
    }
    if (::fsync(to.get()) != 0) return fault(path, "cannot be written", errno);
    return {};
}

Status write_exact(std::span<const sieve_key> keys, const std::string& path) {
    SIEVE_ASSIGN(const UniqueFd to, new_file(path));
    if (const Status written = write_exact_file(keys, to.get()); !written)
        return fault(path, written.error().message);
    if (::fsync(to.get()) != 0) return fault(path, "cannot be written", errno);
    return {};
}

} // namespace

std::string identity_text(const sieve_file& file) {
    return fmt::format("{:016x}{:016x}", file.identity[0], file.identity[1]);
}

Result<StateDirectory> StateDirectory::open(const std::string& path, std::chrono::milliseconds patience,
                                            const std::function<void(const std::string& holder)>& waiting) {
    SIEVE_TRY(make_folder(path));
    SIEVE_TRY(check_owner(path));
    SIEVE_ASSIGN(bool ours, check_version(path));
    if (!ours && !is_empty_but_lock(path))
        return fault(path, "has files, but no version of ours; expected an empty folder or a new name");
    SIEVE_ASSIGN(UniqueFd lock, take_lock(path, patience, waiting));
    // Whoever held the lock may have made it ours.
    SIEVE_ASSIGN(ours, check_version(path));
    if (!ours) {
        SIEVE_TRY(make_folder(path + "/sets"));
        SIEVE_TRY(write_output(path + "/version", version_text, version_output, Replace::ours));
    }
    StateDirectory state(path, std::move(lock));
    SIEVE_TRY(state.complete_commit());
    return state;
}

Result<StateDirectory> StateDirectory::look(const std::string& path) {
    if (const Result<bool> ours = check_version(path); !ours && ours.error().kind != ErrorKind::not_permitted)
        return tl::unexpected(ours.error());
    return StateDirectory(path, {});
}

std::string StateDirectory::folder_of(const std::string& set) const {
    return fmt::format("{}/sets/{}", path_, set);
}

std::string StateDirectory::image_path(const std::string& set, const std::string& identity) const {
    return fmt::format("{}/{}.sieve", folder_of(set), identity);
}

std::string StateDirectory::list_path(const std::string& set, const std::string& identity) const {
    return fmt::format("{}/{}.list", folder_of(set), identity);
}

std::string StateDirectory::exact_path(const std::string& set, const std::string& identity) const {
    return fmt::format("{}/{}.exact", folder_of(set), identity);
}

std::optional<SetRecord>
StateDirectory::read(const std::string& set,
                     const std::function<void(const std::string& text)>& remark) const {
    const std::string path = folder_of(set) + "/record.json";
    const Result<std::optional<std::string>> text = read_small_file(path, longest_record);
    if (!text && text.error().kind != ErrorKind::not_permitted)
        remark(fmt::format("{}; the set is built anew", text.error().message));
    if (!text || !*text) return std::nullopt;
    std::optional<SetRecord> record = record_of(**text);
    if (!record) {
        remark(fmt::format("{}: is damaged; the set is built anew", printable(path)));
        return std::nullopt;
    }
    const std::string image_file = image_path(set, record->identity);
    struct stat info {};
    const int error =
        ::access(image_file.c_str(), R_OK) != 0 || ::stat(image_file.c_str(), &info) != 0 ? errno : 0;
    if (error != 0 || !S_ISREG(info.st_mode)) {
        remark(fmt::format("{}: {}; the set is built anew", printable(image_file),
                           error != 0 ? errno_text(error) : "is no regular file"));
        return std::nullopt;
    }
    const Result<Image> image = Image::load(std::filesystem::path(image_file));
    if (!image || identity_text(image->file()) != record->identity) {
        remark(fmt::format("{}; the set is built anew",
                           image ? printable(path) + ": names another image" : image.error().message));
        return std::nullopt;
    }
    if (!record->exact) return record;
    if (const Status whole = check_exact(set, record->identity); !whole) {
        remark(whole.error().message + "; the set is built anew");
        return std::nullopt;
    }
    return record;
}

Status StateDirectory::check_exact(const std::string& set, const std::string& identity) const {
    const std::string path = exact_path(set, identity);
    SIEVE_ASSIGN(const UniqueFd file, open_file(path));
    struct stat info {};
    if (::fstat(file.get(), &info) != 0) return unreadable(path, errno_text(errno));
    const FileStamp stamp = stamp_of(info);
    {
        const std::lock_guard guard(whole_keys_->mutex);
        const auto known = whole_keys_->stamps.find(set);
        if (known != whole_keys_->stamps.end() && known->second == stamp) return {};
    }
    if (const Status whole = check_exact_file(file.get()); !whole)
        return unreadable(path, whole.error().message);
    const std::lock_guard guard(whole_keys_->mutex);
    whole_keys_->stamps[set] = stamp;
    return {};
}

Result<std::vector<sieve_key>> StateDirectory::exact_keys(const std::string& set,
                                                          const std::string& identity) const {
    SIEVE_ASSIGN(const Image image, Image::load(std::filesystem::path(image_path(set, identity))));
    const std::string path = exact_path(set, identity);
    SIEVE_ASSIGN(const UniqueFd file, open_file(path));
    auto keys = read_exact_file(file.get(), image);
    if (keys) return keys;
    // They were damaged without a trace in the file's stamp.
    const std::lock_guard guard(whole_keys_->mutex);
    whole_keys_->stamps.erase(set);
    return unreadable(path, keys.error().message);
}

Status StateDirectory::stage(const std::string& set, Image& image, int list,
                             std::span<const sieve_key> exact) const {
    SIEVE_TRY(make_folder(path_ + "/sets"));
    SIEVE_TRY(make_folder(folder_of(set)));
    const std::string identity = identity_text(image.file());
    SIEVE_TRY(image.save(image_path(set, identity), Replace::anything));
    if (list >= 0) SIEVE_TRY(copy_file(list, list_path(set, identity)));
    if (exact.empty()) return {};
    return write_exact(exact, exact_path(set, identity));
}

Status StateDirectory::commit(const std::string& set, const SetRecord& record) const {
    SIEVE_TRY(write_json(folder_of(set) + "/record.json", record));
    remove_all_but(set, record.identity);
    return {};
}

Status StateDirectory::commit(const std::map<std::string, SetRecord>& records) const {
    if (records.empty()) return {};
    if (records.size() == 1) return commit(records.begin()->first, records.begin()->second);
    SIEVE_TRY(write_json(path_ + "/together.json", records));
    return complete_commit();
}

bool StateDirectory::has_files_of(const std::string& set, const SetRecord& record) const {
    return ::access(image_path(set, record.identity).c_str(), R_OK) == 0 &&
           (!record.exact || ::access(exact_path(set, record.identity).c_str(), R_OK) == 0);
}

Status StateDirectory::complete_commit() const {
    const std::string path = path_ + "/together.json";
    const Result<std::optional<std::string>> text = read_small_file(path, longest_record);
    if (!text && text.error().kind != ErrorKind::bad_input) return tl::unexpected(text.error());
    if (text && !*text) return {};
    std::map<std::string, SetRecord> records;
    if (text) try {
            records = json::parse(**text).get<std::map<std::string, SetRecord>>();
        } catch (const json::exception&) { // damaged: no record was replaced by what it says
            records.clear();
        }
    const bool whole = std::ranges::all_of(records, [this](const auto& one) {
        return is_identity(one.second.identity) && has_files_of(one.first, one.second);
    });
    if (whole)
        for (const auto& [set, record] : records) SIEVE_TRY(commit(set, record));
    std::error_code error;
    std::filesystem::remove_all(path, error); // a folder is no work of ours
    if (error) return fault(path, "cannot be removed", error.value());
    return {};
}

void StateDirectory::remove_all_but(const std::string& set, const std::string& identity) const {
    std::error_code error;
    std::vector<std::filesystem::path> others;
    for (const auto& entry : std::filesystem::directory_iterator(folder_of(set), error)) {
        const std::string name = entry.path().filename().string();
        if (name != "record.json" && (identity.empty() || !name.starts_with(identity + '.')))
            others.push_back(entry.path());
    }
    for (const std::filesystem::path& other : others) std::filesystem::remove(other, error);
}

void StateDirectory::discard_staged(const std::string& set) const {
    const auto text = read_small_file(folder_of(set) + "/record.json", longest_record);
    if (!text) return; // it may name any of these files
    const std::optional<SetRecord> record = *text ? record_of(**text) : std::nullopt;
    remove_all_but(set, record ? record->identity : std::string());
}

void StateDirectory::forget_all_but(const std::vector<std::string>& sets) const {
    std::error_code error;
    std::vector<std::filesystem::path> others;
    for (const auto& entry : std::filesystem::directory_iterator(path_ + "/sets", error))
        if (std::find(sets.begin(), sets.end(), entry.path().filename().string()) == sets.end())
            others.push_back(entry.path());
    for (const std::filesystem::path& other : others) std::filesystem::remove_all(other, error);
}

Result<std::vector<ManagedHook>>
StateDirectory::hooks(const std::function<void(const std::string& text)>& remark) const {
    // Nothing is taken away that we do not know to be ours.
    const auto unknown = [&](const std::string& why) {
        remark(fmt::format("{}; what the service put on hooks that the configuration no longer names stays "
                           "there until `xdp-sieve unload`",
                           why));
        return std::vector<ManagedHook>();
    };
    const std::string path = path_ + "/hooks.json";
    const Result<std::optional<std::string>> text = read_small_file(path, longest_record);
    if (!text && text.error().kind == ErrorKind::kernel_refused) return tl::unexpected(text.error());
    if (!text) return unknown(text.error().message);
    if (!*text) return {};
    const std::string now = boot_id();
    std::vector<ManagedHook> hooks;
    try {
        const json all = json::parse(**text);
        for (const json& hook : all) {
            const std::string boot = hook.value("boot", now); // earlier releases did not note it
            if (boot != now && !boot.empty() && !now.empty()) continue;
            const auto point = kernel::parse_hook_point(hook.at("hook").get<std::string>());
            if (point)
                hooks.push_back({hook.at("interface").get<std::string>(), *point,
                                 hook.at("program_id").get<std::uint32_t>()});
        }
    } catch (const json::exception&) {
        return unknown(printable(path) + ": is damaged");
    }
    return hooks;
}

Status StateDirectory::keep_hooks(const std::vector<ManagedHook>& hooks) const {
    const std::string boot = boot_id();
    json all = json::array();
    for (const ManagedHook& hook : hooks)
        all.push_back({{"interface", hook.interface},
                       {"hook", kernel::hook_point_name(hook.point)},
                       {"program_id", hook.program_id},
                       {"boot", boot}});
    const std::string path = path_ + "/hooks.json";
    const auto there = read_small_file(path, longest_record);
    if (there && *there == text_of(all)) return {};
    return write_json(path, all);
}

} // namespace sieve::service
