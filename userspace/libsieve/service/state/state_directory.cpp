// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/state/state_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/kernel/host/lock.hpp"
#include "libsieve/service/state/exact_file.hpp"
#include "libsieve/service/state/folder_owner.hpp"
#include "libsieve/util/files/digest.hpp"
#include "libsieve/util/files/output.hpp"
#include "libsieve/util/system/boot_id.hpp"
#include "libsieve/util/system/small_file.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

// Each field of a record is named once, here.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FileStamp, device, inode, status_changed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SourceProvenance, source, digest, bytes, etag, last_modified, asked,
                                   changed, stamp, read)
// What an earlier version did not write is as if it were not there.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SetRecord, identity, build, list_digest, entries, keys,
                                                skipped, bytes, expected_fpr, built_at, exact, left_out,
                                                accepted, sources, beside, exceptions, action, earlier,
                                                former)

namespace {

using nlohmann::json;

constexpr std::size_t longest_version = 4096;
constexpr std::size_t longest_record = std::size_t{64} << 20; // of many sets with many sources
constexpr std::string_view version_text = "xdp-sieve state 2\n";
constexpr std::string_view version_begin = "xdp-sieve state ";
constexpr std::string_view set_aside_begin = "set-aside";
constexpr std::size_t most_set_aside = 3;
// A hook may miss many lists. If it misses more, the next one heals it.
constexpr std::size_t most_earlier = 32;

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

// A folder in the state directory. Who could write there once may have left a link, by which we would write
// elsewhere.
Status make_own_folder(const std::string& path) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode) && ::unlink(path.c_str()) != 0)
        return fault(path, "cannot be removed", errno);
    return make_folder(path);
}

// A file or folder that the service makes in the directory, or a file on its way to that name.
bool is_one_of(const std::string& name, std::initializer_list<std::string_view> ours) {
    return std::ranges::any_of(ours, [&](std::string_view one) {
        return name == one || (name.starts_with(one) && name[one.size()] == '.');
    });
}
bool is_ours(const std::string& name) {
    const std::string whole = name.substr(0, name.rfind('.')); // of one on its way
    return is_pause_file(name) || refused_set_of(name) || refused_set_of(whole) ||
           is_one_of(name, {"version", "lock", "sets", "hooks.json", "together.json", "counters.json",
                            "fleet", "bans", set_aside_begin});
}
// What does not go by the version: who reads it judges it.
bool has_no_version(const std::string& name) {
    return is_pause_file(name) ||
           is_one_of(name, {"lock", "hooks.json", "counters.json", "fleet", "bans", set_aside_begin});
}

Result<std::vector<std::string>> names_in(const std::string& path) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path, error))
        names.push_back(entry.path().filename().string());
    if (error) return fault(path, "cannot be read", error.value());
    return names;
}

// What is in the way of a new state, and why.
struct InTheWay {
    std::vector<std::string> names{};
    std::string why{};
    bool has_version = false; // then it is the one that is expected, and nothing is in the way
};

// Error: the directory cannot be read now, or it has files that are not ours.
Result<InTheWay> what_is_in_the_way(const std::string& path) {
    InTheWay found;
    const auto version = read_small_file(path + "/version", longest_version);
    if (!version && version.error().kind != ErrorKind::bad_input) return tl::unexpected(version.error());
    found.has_version = version && *version == version_text;
    if (found.has_version) return found;
    const bool is_another = version && *version && (*version)->starts_with(version_begin);
    if (is_another)
        found.why = fmt::format("is of another version (\"{}\", expected \"{}\")",
                                printable((*version)->substr(0, (*version)->size() - 1), 64),
                                version_text.substr(0, version_text.size() - 1));
    else if (version && !*version)
        found.why = "has no file `version`";
    else
        found.why = "has a file `version` that cannot be understood";
    SIEVE_ASSIGN(const std::vector<std::string> names, names_in(path));
    for (const std::string& name : names) {
        if (!is_another && !is_ours(name))
            return fault(path, fmt::format("has {}, but no version of ours; expected an empty folder or a "
                                           "new name",
                                           printable(name, 64)));
        std::error_code error;
        const bool is_bare = name == "sets" && std::filesystem::is_empty(path + "/sets", error);
        if (!has_no_version(name) && !is_bare) found.names.push_back(name);
    }
    // The version goes last, so that whoever is cut off here leaves a state that is still in the way.
    std::ranges::stable_partition(found.names, [](const std::string& name) { return name != "version"; });
    return found;
}

// Into a folder of the directory itself: nothing beside it need be ours to write to.
Result<std::string> set_aside(const std::string& path, const std::vector<std::string>& names) {
    SIEVE_ASSIGN(const std::vector<std::string> all, names_in(path));
    std::vector<unsigned long> numbers;
    for (const std::string& name : all)
        if (name.starts_with(std::string(set_aside_begin) + '.'))
            numbers.push_back(std::strtoul(name.c_str() + set_aside_begin.size() + 1, nullptr, 10));
    std::ranges::sort(numbers);
    const auto folder_of = [&](unsigned long number) {
        return fmt::format("{}/{}.{}", path, set_aside_begin, number);
    };
    std::error_code error;
    for (std::size_t i = 0; i + most_set_aside <= numbers.size(); i++)
        std::filesystem::remove_all(folder_of(numbers[i]), error);
    std::string folder = folder_of(numbers.empty() ? 1 : numbers.back() + 1);
    SIEVE_TRY(make_folder(folder));
    for (const std::string& name : names)
        if (::rename((path + '/' + name).c_str(), (folder + '/' + name).c_str()) != 0)
            return fault(path, fmt::format("{} cannot be set aside", printable(name)), errno);
    return folder;
}

bool is_named(int folder, const std::string& path) {
    struct stat open {
    }, named{};
    return ::fstat(folder, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
           open.st_ino == named.st_ino;
}

// Who wrote into the lock file.
std::string holder_of(const std::string& path) {
    const std::string holder = small_file_or_nothing(path + "/lock", longest_version);
    return holder.empty() ? "another process" : printable(holder.substr(0, holder.find('\n')));
}

// The lock is on the directory itself, so nobody can remove it without removing the directory.
Result<UniqueFd> take_lock(const std::string& path, std::chrono::milliseconds patience,
                           const std::function<void(const std::string& holder)>& waiting) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + patience;
    bool told = false;
    for (;;) {
        SIEVE_TRY(make_folder(path));
        UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!fd) return fault(path, "cannot be opened", errno);
        if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) {
            if (is_named(fd.get(), path)) return fd;
            continue; // it was removed meanwhile
        }
        if (errno != EWOULDBLOCK && errno != EINTR) return fault(path, "its lock cannot be taken", errno);
        if (Clock::now() >= deadline)
            return failure(ErrorKind::busy,
                           fmt::format("state directory {}: {} is at work with it; wait for it or end it",
                                       printable(path), holder_of(path)));
        if (!std::exchange(told, true) && waiting) waiting(holder_of(path));
        std::this_thread::sleep_for(std::chrono::milliseconds(5)); // flock has no time limit
    }
}

// The note only serves to name the holder, so it may fail.
void leave_note(const std::string& path) {
    const UniqueFd file(::open((path + "/lock").c_str(),
                               O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    const std::string note = fmt::format("process {}\n", ::getpid());
    if (!file || ::write(file.get(), note.data(), note.size()) < 0) return;
}

std::string text_of(const json& value) {
    return json_text(value) + "\n";
}

// A folder or a pipe at the path would be in the way for ever. A folder with content is somebody's.
Status write_json(const std::string& path, const json& value) {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
        std::error_code error;
        std::filesystem::remove(path, error);
        if (error) return fault(path, "cannot be removed", error.value());
    }
    return write_output(path, text_of(value), json_output, Replace::own);
}

// An identity or a digest: a file's name may have it.
bool is_hexadecimal(const std::string& text) {
    return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Nothing for a text that is no record.
std::optional<SetRecord> record_of(const std::string& text) {
    try {
        SetRecord record = parse_json(text).get<SetRecord>();
        if (!is_hexadecimal(record.identity)) return std::nullopt;
        return record;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

std::string folder_in(const std::string& root, const std::string& set) {
    return fmt::format("{}/sets/{}", root, set);
}

Status make_set_folder(const std::string& root, const std::string& set) {
    SIEVE_TRY(make_own_folder(root + "/sets"));
    return make_own_folder(folder_in(root, set));
}

// Nothing for a record that is not there, or cannot be read or understood.
std::optional<SetRecord> record_in(const std::string& root, const std::string& set) {
    const auto text = read_small_file(folder_in(root, set) + "/record.json", longest_record);
    return text && *text ? record_of(**text) : std::nullopt;
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

std::string standard_spare(const std::string& path) {
    return fmt::format("{}/spare-{}", kernel::Lock::folder, digest_of(path).substr(0, 16));
}

// --- the directory and its spare folder

Result<StateDirectory> StateDirectory::open(const std::string& path, std::chrono::milliseconds patience,
                                            const std::function<void(const std::string& holder)>& waiting,
                                            StateSettings settings) {
    StateDirectory state(path, std::move(settings));
    if (Status claimed = state.claim(patience, waiting); !claimed) {
        if (state.settings_.spare.empty() || claimed.error().kind == ErrorKind::busy)
            return tl::unexpected(std::move(claimed.error()));
        state.note_trouble(claimed.error().message);
    }
    if (!state.settings_.spare.empty()) SIEVE_TRY(state.complete_commit(state.settings_.spare));
    return state;
}

StateDirectory StateDirectory::look(const std::string& path, const std::string& spare) {
    StateDirectory state(path, {.spare = spare, .tell = {}});
    const auto version = read_small_file(path + "/version", longest_version);
    state.hold_->usable = version && *version == version_text;
    return state;
}

Status StateDirectory::claim(std::chrono::milliseconds patience,
                             const std::function<void(const std::string& holder)>& waiting) const {
    SIEVE_TRY(make_folder(path_));
    SIEVE_TRY(check_owner(path_));
    const bool is_held = hold_->directory && is_named(hold_->directory.get(), path_);
    if (!is_held) {
        SIEVE_ASSIGN(hold_->directory, take_lock(path_, patience, waiting));
        hold_->taken++;
    }
    SIEVE_ASSIGN(InTheWay found, what_is_in_the_way(path_));
    // What this process wrote itself only lacks the file that somebody removed.
    if (is_held) std::erase_if(found.names, [](const std::string& name) { return name != "version"; });
    if (!found.names.empty()) {
        SIEVE_ASSIGN(const std::string folder, set_aside(path_, found.names));
        tell(fmt::format("state directory {} {}; what it had is in {} now, and the sets are built anew from "
                         "their sources",
                         printable(path_), found.why, printable(folder)));
    }
    SIEVE_TRY(make_own_folder(path_ + "/sets"));
    if (!found.has_version)
        SIEVE_TRY(write_output(path_ + "/version", version_text, version_output, Replace::own));
    leave_note(path_);
    hold_->usable = true;
    Status complete = complete_commit(path_);
    if (!complete) hold_->usable = false;
    return complete;
}

bool StateDirectory::is_in_place() const {
    return hold_->directory && is_named(hold_->directory.get(), path_) &&
           ::access((path_ + "/version").c_str(), F_OK) == 0;
}

void StateDirectory::reclaim() const {
    const std::lock_guard guard(hold_->claiming);
    const bool was_usable = hold_->usable;
    if (was_usable && is_in_place()) return;
    if (Status claimed = claim(std::chrono::milliseconds(0), {}); !claimed) {
        hold_->usable = false;
        return note_trouble(claimed.error().message);
    }
    if (was_usable)
        tell(fmt::format("state directory {} was removed while it was in use; it is made anew",
                         printable(path_)));
}

Result<Pauses> StateDirectory::pauses() const {
    return read_pauses(path_);
}

std::optional<RefusedList> StateDirectory::refused(const std::string& set) const {
    std::optional<RefusedList> newest;
    for (const std::string& root : roots()) // the newest is in the spare folder, if one is there
        if (std::optional<RefusedList> list = read_refusal(root, set); list && check_owner(root))
            newest = std::move(list);
    return newest;
}

bool StateDirectory::is_accepted(const std::string& set, const RefusedList& list) const {
    const std::optional<RefusedList> noted = refused(set);
    return noted && noted->accepted && noted->is_same_list(list);
}

Status StateDirectory::note_refused(const std::string& set, const RefusedList& list) const {
    reclaim();
    if (const std::optional<RefusedList> noted = refused(set); noted && noted->is_same_list(list)) return {};
    return into_directory_or_spare([&](const std::string& root) -> Status {
        SIEVE_TRY(write_refusal(root, set, list));
        if (root != settings_.spare && !settings_.spare.empty()) remove_refusal(settings_.spare, set);
        return {};
    });
}

void StateDirectory::forget_refused(const std::string& set) const {
    for (const std::string& root : roots()) remove_refusal(root, set);
}

void StateDirectory::give_refused(const std::string& set, const std::string& to) const {
    const std::optional<RefusedList> list = refused(set);
    forget_refused(to);
    if (list && note_refused(to, *list)) forget_refused(set);
}

std::map<std::string, std::string> StateDirectory::accepted() const {
    std::map<std::string, std::string> digests;
    for (const std::string& root : roots())
        for (const std::string& set : refused_sets(root))
            if (const auto list = refused(set); list && list->accepted) digests[set] = list->digest;
    return digests;
}

Status StateDirectory::hold_spare() const {
    const std::lock_guard guard(hold_->mutex);
    const std::string& spare = settings_.spare;
    if (hold_->spare && is_named(hold_->spare.get(), spare)) return {};
    SIEVE_TRY(make_folder(std::filesystem::path(spare).parent_path()));
    SIEVE_TRY(make_folder(spare));
    SIEVE_TRY(check_owner(spare));
    SIEVE_ASSIGN(hold_->spare, take_lock(spare, std::chrono::milliseconds(0), {}));
    return {};
}

void StateDirectory::note_trouble(std::optional<std::string> why) const {
    const std::lock_guard guard(hold_->mutex);
    hold_->why = std::move(why);
}

std::optional<std::string> StateDirectory::trouble() const {
    const std::lock_guard guard(hold_->mutex);
    return hold_->why;
}

void StateDirectory::tell(const std::string& text) const {
    if (settings_.tell) settings_.tell(text);
}

Status
StateDirectory::into_directory_or_spare(const std::function<Status(const std::string& root)>& write) const {
    Status done;
    if (hold_->usable)
        done = write(path_);
    else
        done = bad_input(trouble().value_or("state directory " + path_ + " is not held"));
    if (done || settings_.spare.empty() || !hold_spare() || !write(settings_.spare)) return done;
    note_trouble(std::move(done.error().message));
    return {};
}

std::vector<std::string> StateDirectory::roots() const {
    std::vector<std::string> all;
    if (hold_->usable) all.push_back(path_);
    if (!settings_.spare.empty()) all.push_back(settings_.spare);
    return all;
}

void StateDirectory::mend() const {
    reclaim();
    const std::string& spare = settings_.spare;
    if (!hold_->usable || spare.empty()) return;
    std::error_code error;
    std::vector<std::string> sets;
    for (const auto& entry : std::filesystem::directory_iterator(spare + "/sets", error))
        sets.push_back(entry.path().filename().string());
    bool is_left = false;
    if (const std::string path = spare + "/hooks.json"; ::access(path.c_str(), F_OK) == 0) {
        const auto noted = hooks([](const std::string&) {});
        is_left = !noted || !keep_hooks(*noted) || ::access(path.c_str(), F_OK) == 0;
    }
    for (const std::string& set : sets) {
        if (Status home = bring_home(set); !home) {
            note_trouble(std::move(home.error().message));
            is_left = true;
        }
        // What a refresh has staged there comes with its record, and the trouble that it noted stays until
        // then.
        const std::string folder = folder_in(spare, set);
        if (std::filesystem::exists(folder, error) && !std::filesystem::is_empty(folder, error))
            is_left = true;
    }
    if (!is_left) note_trouble(std::nullopt);
}

Status StateDirectory::bring_home(const std::string& set) const {
    const std::string from = folder_in(settings_.spare, set);
    const std::string to = folder_in(path_, set);
    const std::optional<SetRecord> record = record_in(settings_.spare, set);
    const std::optional<SetRecord> at_home = record_in(path_, set);
    std::error_code error;
    if (!record || (at_home && at_home->built_at > record->built_at)) {
        if (!record) return {};
        std::filesystem::remove(from + "/record.json", error);
        remove_unnamed(set, {});
        return {};
    }
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(from, error)) {
        const std::string name = entry.path().filename().string();
        if (name.ends_with(".journal"))
            return fault(path_, fmt::format("set {} moves there with its next image", set));
        if (name.starts_with(record->identity + '.')) names.push_back(name);
    }
    SIEVE_TRY(make_set_folder(path_, set));
    for (const std::string& name : names) {
        SIEVE_ASSIGN(const UniqueFd file, open_file(from + '/' + name));
        if (Status copied = copy_file(file.get(), to + '/' + name); !copied) {
            for (const std::string& one : names) std::filesystem::remove(to + '/' + one, error);
            return copied;
        }
    }
    SIEVE_TRY(write_json(to + "/record.json", *record));
    std::filesystem::remove(from + "/record.json", error);
    for (const std::string& name : names) std::filesystem::remove(from + '/' + name, error);
    remove_unnamed(set, record->identity);
    return {};
}

bool StateDirectory::is_in_spare(const std::string& set, const std::string& identity) const {
    return root_with(set, identity) == settings_.spare;
}

// A list is there twice while its image is made.
bool StateDirectory::has_room_again(const std::string& set, const std::string& identity) const {
    if (!hold_->usable || !is_in_spare(set, identity) || !make_set_folder(path_, set)) return false;
    std::error_code error;
    std::uintmax_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_in(settings_.spare, set), error))
        if (const std::uintmax_t size = entry.file_size(error); !error) bytes += size;
    const std::string path = folder_in(path_, set) + "/room";
    const Result<UniqueFd> file = new_file(path);
    const bool has_room = file && ::posix_fallocate(file->get(), 0, static_cast<off_t>(2 * bytes)) == 0;
    std::filesystem::remove(path, error);
    return has_room;
}

// --- the files of a set

std::string StateDirectory::root_with(const std::string& set, const std::string& identity) const {
    const std::string& spare = settings_.spare;
    const auto has = [&](const char* kind) {
        return ::access((folder_in(spare, set) + '/' + identity + kind).c_str(), F_OK) == 0;
    };
    const bool is_spare = !spare.empty() && (!hold_->usable || has(".sieve") || has(".list"));
    return is_spare ? spare : path_;
}

std::string StateDirectory::file_of(const std::string& set, const std::string& identity,
                                    const char* kind) const {
    return fmt::format("{}/{}{}", folder_in(root_with(set, identity), set), identity, kind);
}

std::string StateDirectory::image_path(const std::string& set, const std::string& identity) const {
    return file_of(set, identity, ".sieve");
}

std::string StateDirectory::list_path(const std::string& set, const std::string& identity) const {
    return file_of(set, identity, ".list");
}

std::string StateDirectory::exact_path(const std::string& set, const std::string& identity) const {
    return file_of(set, identity, ".exact");
}

Status StateDirectory::write_beside(const std::string& set, const std::string& name,
                                    const std::function<Status(const std::string& path)>& write) const {
    reclaim();
    remove_beside(set, name);
    {
        const std::lock_guard guard(staged_->mutex);
        staged_->beside[set] = name;
    }
    return into_directory_or_spare([&](const std::string& root) -> Status {
        SIEVE_TRY(make_set_folder(root, set));
        const std::string path = folder_in(root, set) + '/' + name;
        Status done = write(path);
        std::error_code error;
        if (!done) std::filesystem::remove(path, error);
        return done;
    });
}

void StateDirectory::remove_beside(const std::string& set, const std::string& name) const {
    {
        const std::lock_guard guard(staged_->mutex);
        staged_->beside.erase(set);
    }
    std::error_code error;
    for (const std::string& root : roots()) std::filesystem::remove(folder_in(root, set) + '/' + name, error);
}

std::optional<SetRecord>
StateDirectory::read(const std::string& set,
                     const std::function<void(const std::string& text)>& remark) const {
    std::vector<std::pair<SetRecord, std::string>> found;
    for (const std::string& root : roots()) {
        const std::string path = folder_in(root, set) + "/record.json";
        const Result<std::optional<std::string>> text = read_small_file(path, longest_record);
        if (!text && text.error().kind != ErrorKind::not_permitted)
            remark(fmt::format("{}; the set is built anew", text.error().message));
        if (!text || !*text) continue;
        if (std::optional<SetRecord> record = record_of(**text))
            found.emplace_back(std::move(*record), path);
        else
            remark(fmt::format("{}: is damaged; the set is built anew", printable(path)));
    }
    std::ranges::stable_sort(found, [](const auto& a, const auto& b) {
        return a.first.built_at > b.first.built_at; // the directory's own, if they are as old
    });
    for (const auto& [record, path] : found)
        if (auto whole = check_record(set, record, path, remark)) return whole;
    return std::nullopt;
}

std::optional<SetRecord> StateDirectory::named(const std::string& set) const {
    std::optional<SetRecord> newest;
    for (const std::string& root : roots()) {
        std::optional<SetRecord> record = record_in(root, set);
        if (record && (!newest || record->built_at > newest->built_at)) newest = std::move(record);
    }
    return newest;
}

std::optional<SetRecord>
StateDirectory::check_record(const std::string& set, const SetRecord& record, const std::string& path,
                             const std::function<void(const std::string& text)>& remark) const {
    const std::string image_file = image_path(set, record.identity);
    struct stat info {};
    const int error =
        ::access(image_file.c_str(), R_OK) != 0 || ::stat(image_file.c_str(), &info) != 0 ? errno : 0;
    if (error != 0 || !S_ISREG(info.st_mode)) {
        remark(fmt::format("{}: {}; the set is built anew", printable(image_file),
                           error != 0 ? errno_text(error) : "is no regular file"));
        return std::nullopt;
    }
    const Result<Image> image = Image::load(std::filesystem::path(image_file));
    if (!image || identity_text(image->file()) != record.identity) {
        remark(fmt::format("{}; the set is built anew",
                           image ? printable(path) + ": names another image" : image.error().message));
        return std::nullopt;
    }
    if (!record.exact) return record;
    if (const Status whole = check_exact(set, record.identity); !whole) {
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

Result<UniqueFd> StateDirectory::open_list(const std::string& set, const std::string& identity) const {
    return open_file(list_path(set, identity));
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

std::string StateDirectory::source_path(const std::string& set, const std::string& identity,
                                        const std::string& digest) const {
    return file_of(set, identity, (".source-" + digest).c_str());
}

Result<UniqueFd> StateDirectory::open_source(const std::string& set, const std::string& identity,
                                             const std::string& digest) const {
    if (!is_hexadecimal(digest)) return bad_input("nothing is kept without a digest");
    return open_file(source_path(set, identity, digest));
}

Status StateDirectory::keep_source(const std::string& set, const std::string& identity,
                                   const std::string& digest, int content) const {
    if (root_with(set, identity) == settings_.spare)
        return fault(settings_.spare, "takes nothing that sources said");
    const std::string path = source_path(set, identity, digest);
    Status kept = copy_file(content, path + ".new");
    std::error_code error;
    if (kept) std::filesystem::rename(path + ".new", path, error);
    if (!kept || error) std::filesystem::remove(path + ".new", error);
    return kept;
}

void StateDirectory::forget_sources_but(const std::string& set, const std::string& identity,
                                        std::set<std::string> digests) const {
    if (const std::optional<SetRecord> record = named(set))
        for (const auto* sources : {&record->sources, &record->beside})
            for (const SourceProvenance& source : *sources) digests.insert(source.digest);
    std::set<std::string> kept;
    for (const std::string& digest : digests) kept.insert(source_path(set, identity, digest));
    const std::string all = source_path(set, identity, {});
    std::error_code error;
    std::vector<std::string> others;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(all).parent_path(), error))
        if (const std::string path = entry.path().string(); path.starts_with(all) && !kept.contains(path))
            others.push_back(path);
    for (const std::string& other : others) std::filesystem::remove(other, error);
}

Status StateDirectory::stage(const std::string& set, Image& image, int list,
                             std::span<const sieve_key> exact) const {
    reclaim();
    const std::string identity = identity_text(image.file());
    const auto stage_in = [&](const std::string& folder) -> Status {
        SIEVE_TRY(image.save(folder + '/' + identity + ".sieve", Replace::anything));
        if (list >= 0) SIEVE_TRY(copy_file(list, folder + '/' + identity + ".list"));
        if (exact.empty()) return {};
        return write_exact(exact, folder + '/' + identity + ".exact");
    };
    note_staged(set, identity);
    Status done = into_directory_or_spare([&](const std::string& root) -> Status {
        const std::string folder = folder_in(root, set);
        SIEVE_TRY(make_set_folder(root, set));
        Status staged = stage_in(folder);
        std::error_code error;
        if (!staged)
            for (const char* kind : {".sieve", ".list", ".exact"})
                std::filesystem::remove(folder + '/' + identity + kind, error);
        return staged;
    });
    if (!done) forget_staged(set, identity);
    return done;
}

void StateDirectory::note_staged(const std::string& set, const std::string& identity) const {
    const std::lock_guard guard(staged_->mutex);
    staged_->identities[set] = identity;
}

void StateDirectory::forget_staged(const std::string& set, const std::string& identity) const {
    const std::lock_guard guard(staged_->mutex);
    const auto found = staged_->identities.find(set);
    if (found != staged_->identities.end() && (identity.empty() || found->second == identity))
        staged_->identities.erase(found);
}

Status StateDirectory::commit(const std::string& set, const SetRecord& record) const {
    reclaim();
    return put_record(set, record);
}

Status StateDirectory::commit(const std::map<std::string, SetRecord>& records) const {
    if (records.empty()) return {};
    if (records.size() == 1) return commit(records.begin()->first, records.begin()->second);
    reclaim();
    SIEVE_TRY(into_directory_or_spare(
        [&](const std::string& root) { return write_json(root + "/together.json", records); }));
    for (const std::string& root : roots()) SIEVE_TRY(complete_commit(root));
    return {};
}

// SetRecord::earlier of a record that follows this one.
static std::vector<std::string> earlier_after(SetRecord before, const std::string& identity) {
    std::vector<std::string>& earlier = before.earlier;
    earlier.push_back(std::move(before.identity));
    std::erase(earlier, identity);
    if (earlier.size() > most_earlier) earlier.erase(earlier.begin(), earlier.end() - most_earlier);
    return std::move(earlier);
}

Status StateDirectory::put_record(const std::string& set, SetRecord record) const {
    if (std::optional<SetRecord> before = named(set))
        record.earlier = earlier_after(std::move(*before), record.identity);
    const std::string& spare = settings_.spare;
    std::error_code error;
    const auto put = [&](const std::string& root) -> Status {
        SIEVE_TRY(make_set_folder(root, set));
        SIEVE_TRY(write_json(folder_in(root, set) + "/record.json", record));
        if (root != spare && !spare.empty())
            std::filesystem::remove(folder_in(spare, set) + "/record.json", error);
        return {};
    };
    if (root_with(set, record.identity) == spare)
        SIEVE_TRY(put(spare));
    else
        SIEVE_TRY(into_directory_or_spare(put));
    forget_staged(set, record.identity);
    remove_unnamed(set, record.identity);
    return {};
}

bool StateDirectory::has_files_of(const std::string& set, const SetRecord& record) const {
    return ::access(image_path(set, record.identity).c_str(), R_OK) == 0 &&
           (!record.exact || ::access(exact_path(set, record.identity).c_str(), R_OK) == 0);
}

Status StateDirectory::complete_commit(const std::string& root) const {
    const std::string path = root + "/together.json";
    const Result<std::optional<std::string>> text = read_small_file(path, longest_record);
    if (!text && text.error().kind != ErrorKind::bad_input) return tl::unexpected(text.error());
    if (text && !*text) return {};
    std::map<std::string, SetRecord> records;
    if (text) try {
            records = parse_json(**text).get<std::map<std::string, SetRecord>>();
        } catch (const json::exception&) { // damaged: no record was replaced by what it says
            records.clear();
        }
    const bool whole = std::ranges::all_of(records, [this](const auto& one) {
        return is_hexadecimal(one.second.identity) && has_files_of(one.first, one.second);
    });
    if (whole)
        for (const auto& [set, record] : records) SIEVE_TRY(put_record(set, record));
    std::error_code error;
    std::filesystem::remove_all(path, error); // a folder is no work of ours
    if (error) return fault(path, "cannot be removed", error.value());
    return {};
}

// Removes the files of the set's images that no record and not this identity names, and that are not staged.
void StateDirectory::remove_unnamed(const std::string& set, const std::string& identity) const {
    std::vector<std::string> named;
    if (!identity.empty()) named.push_back(identity + '.');
    const std::string& spare = settings_.spare;
    bool is_in_use = false;
    {
        const std::lock_guard guard(staged_->mutex);
        is_in_use = staged_->identities.contains(set) || staged_->beside.contains(set);
        const auto staged = staged_->identities.find(set);
        if (staged != staged_->identities.end()) named.push_back(staged->second + '.');
        const auto beside = staged_->beside.find(set);
        if (beside != staged_->beside.end()) named.push_back(beside->second);
    }
    for (const std::string& root : roots()) {
        const auto text = read_small_file(folder_in(root, set) + "/record.json", longest_record);
        if (!text) return; // it may name any of these files
        const std::optional<SetRecord> record = *text ? record_of(**text) : std::nullopt;
        if (!record) continue;
        named.push_back(record->identity + '.');
        if (!record->beside.empty()) named.push_back(std::string(beside_stream) + '.');
    }
    std::error_code error;
    std::vector<std::filesystem::path> others;
    for (const std::string& root : roots())
        for (const auto& entry : std::filesystem::directory_iterator(folder_in(root, set), error)) {
            const std::string name = entry.path().filename().string();
            const bool is_named =
                std::ranges::any_of(named, [&](const std::string& one) { return name.starts_with(one); });
            if (name != "record.json" && !is_named) others.push_back(entry.path());
        }
    for (const std::filesystem::path& other : others) std::filesystem::remove(other, error);
    if (!is_in_use && !spare.empty()) std::filesystem::remove(folder_in(spare, set), error); // if it is empty
}

void StateDirectory::discard_staged(const std::string& set) const {
    forget_staged(set, {});
    remove_unnamed(set, {});
}

std::vector<std::string> StateDirectory::sets() const {
    std::error_code error;
    std::set<std::string> all;
    for (const std::string& root : roots())
        for (const auto& entry : std::filesystem::directory_iterator(root + "/sets", error))
            all.insert(entry.path().filename().string());
    return {all.begin(), all.end()};
}

bool StateDirectory::put_in_place(const std::string& set, const std::string& to,
                                  void (*put)(const std::filesystem::path& from,
                                              const std::filesystem::path& to,
                                              std::error_code& error)) const {
    bool any = false;
    for (const std::string& root : roots()) {
        std::error_code error;
        std::filesystem::remove_all(folder_in(root, to), error);
        if (error || !std::filesystem::exists(folder_in(root, set), error)) continue;
        put(folder_in(root, set), folder_in(root, to), error);
        if (error) return false;
        any = true;
    }
    return any;
}

bool StateDirectory::rename(const std::string& set, const std::string& to) const {
    return put_in_place(set, to, &std::filesystem::rename);
}

bool StateDirectory::copy(const std::string& set, const std::string& to) const {
    return put_in_place(
        set, to,
        [](const std::filesystem::path& from, const std::filesystem::path& to, std::error_code& error) {
            std::filesystem::copy(from, to, std::filesystem::copy_options::recursive, error);
        });
}

void StateDirectory::forget_all_but(const std::vector<std::string>& sets) const {
    std::error_code error;
    for (const std::string& set : this->sets())
        if (std::find(sets.begin(), sets.end(), set) == sets.end())
            for (const std::string& root : roots()) std::filesystem::remove_all(folder_in(root, set), error);
    for (const std::string& root : roots())
        for (const std::string& set : refused_sets(root))
            if (std::find(sets.begin(), sets.end(), set) == sets.end()) forget_refused(set);
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
    std::string path;
    Result<std::optional<std::string>> text = std::optional<std::string>();
    for (const std::string& root : roots()) { // the newest is in the spare folder, if one is there
        auto one = read_small_file(root + "/hooks.json", longest_record);
        if (one && !*one) continue;
        path = root + "/hooks.json";
        text = std::move(one);
    }
    if (!text && text.error().kind == ErrorKind::kernel_refused) return tl::unexpected(text.error());
    if (!text) return unknown(text.error().message);
    if (!*text) return {};
    const std::string now = boot_id();
    std::vector<ManagedHook> hooks;
    try {
        const json all = parse_json(**text);
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
    reclaim();
    return into_directory_or_spare([&](const std::string& root) -> Status {
        const std::string path = root + "/hooks.json";
        const auto there = read_small_file(path, longest_record);
        if (!there || *there != text_of(all)) SIEVE_TRY(write_json(path, all));
        const std::string& spare = settings_.spare;
        if (root != spare && !spare.empty()) (void)::unlink((spare + "/hooks.json").c_str());
        return {};
    });
}

} // namespace sieve::service
