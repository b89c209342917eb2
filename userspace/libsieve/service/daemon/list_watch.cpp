// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/list_watch.hpp"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "libsieve/service/state/ban_ledger.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

constexpr std::uint32_t of_itself = IN_DELETE_SELF | IN_MOVE_SELF;
constexpr std::uint32_t of_names =
    IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB;
// A folder that changes while it is looked at is looked at again, so often.
constexpr int most_looks = 8;

// A regular file with one name has just been created by open(2), and is being written: its IN_CLOSE_WRITE
// follows. Anything else that is created is complete, such as a file that got this name by link(2): that
// changed its status later than its content.
bool is_being_written(const std::string& folder, const inotify_event& event) {
    if ((event.mask & IN_CREATE) == 0 || (event.mask & IN_ISDIR) != 0) return false;
    struct stat info {};
    const std::string path = folder + "/" + event.name;
    return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1 &&
           info.st_ctim.tv_sec == info.st_mtim.tv_sec && info.st_ctim.tv_nsec == info.st_mtim.tv_nsec;
}

} // namespace

ListWatch::ListWatch(EventLoop& loop, Log& log, Changed changed)
    : loop_(loop), log_(log), changed_(std::move(changed)) {}

Status ListWatch::follow(const Configuration& configuration) {
    if (!again_) {
        inotify_ = UniqueFd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
        if (!inotify_) return failure(ErrorKind::out_of_memory, "inotify_init1: " + errno_text(errno));
        SIEVE_ASSIGN(readable_, loop_.on_readable(inotify_.get(), [this] { read(); }));
        SIEVE_ASSIGN(again_, loop_.timer([this] { look_again(); }));
    }
    sets_.clear();
    for (const SetConfiguration& set : configuration.sets) {
        SetConfiguration kept;
        kept.name = set.name;
        kept.sources = set.sources;
        if (follows_bans(set))
            kept.sources.emplace_back(FileSpec{ban_ledger_path(configuration.state_directory, set.name)});
        if (!set.feed.except.empty()) kept.sources.emplace_back(FileSpec{set.feed.except});
        sets_.push_back(std::move(kept));
    }
    unwatched_.clear();
    watch();
    return {};
}

ListWatch::Interests ListWatch::find() const {
    Interests found;
    for (const SetConfiguration& set : sets_)
        for (const SourceSpec& source : set.sources)
            for (WatchPoint& point : watch_points(source)) {
                const std::string folder = point.folder;
                found[folder].push_back({set.name, std::move(point)});
            }
    return found;
}

void ListWatch::watch() {
    for (int look = 0; look < most_looks; look++) {
        interests_ = find();
        std::map<int, std::set<std::string>> folders;
        for (const auto& [folder, interests] : interests_) {
            const bool names = std::any_of(interests.begin(), interests.end(), [](const Interest& interest) {
                return interest.point.names != WatchPoint::Names::none;
            });
            const int watch =
                ::inotify_add_watch(inotify_.get(), folder.c_str(),
                                    (names ? of_itself | of_names : of_itself) | IN_ONLYDIR | IN_MASK_ADD);
            if (watch >= 0) {
                folders[watch].insert(folder);
            } else if (errno != ENOENT && errno != ENOTDIR && names && unwatched_.insert(folder).second) {
                log_.warning(fmt::format("{}: cannot be watched: {}; changes there are found when the timers "
                                         "of its sets run out",
                                         printable(folder), errno_text(errno)));
            }
        }
        // After the new ones have come, so that a folder that stays is never without its watch.
        for (const auto& [watch, paths] : folders_)
            if (!folders.contains(watch)) (void)::inotify_rm_watch(inotify_.get(), watch);
        folders_ = std::move(folders);
        // Whatever has changed since find() may have been missed.
        const Interests now = find();
        const auto same = [](const auto& a, const auto& b) {
            return a.first == b.first &&
                   std::equal(a.second.begin(), a.second.end(), b.second.begin(), b.second.end(),
                              [](const Interest& x, const Interest& y) { return x.point == y.point; });
        };
        if (std::equal(now.begin(), now.end(), interests_.begin(), interests_.end(), same)) return;
    }
}

void ListWatch::read() {
    alignas(inotify_event) std::array<char, 16384> buffer;
    for (;;) {
        const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return;
        for (ssize_t at = 0; at < got;) {
            const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
            take(*event);
            at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
        }
    }
}

void ListWatch::take(const inotify_event& event) {
    if ((event.mask & IN_Q_OVERFLOW) != 0) {
        for (const SetConfiguration& set : sets_) moved_.insert(set.name);
        again_.set(std::chrono::steady_clock::now());
        return;
    }
    // A watch that has been removed may still have events.
    if (const auto found = folders_.find(event.wd); found != folders_.end())
        for (const std::string& folder : found->second) take(folder, event);
}

void ListWatch::take(const std::string& folder, const inotify_event& event) {
    const std::string_view name = event.len > 0 ? std::string_view(event.name) : std::string_view();
    const bool itself = (event.mask & (of_itself | IN_IGNORED | IN_UNMOUNT)) != 0;
    const bool writing = !itself && !name.empty() && is_being_written(folder, event);
    std::set<std::string> changed;
    for (const Interest& interest : interests_[folder]) {
        const bool of_folder = interest.point.names == WatchPoint::Names::none;
        if (of_folder != itself || (!of_folder && !interest.point.concerns(name))) continue;
        if (writing) continue;
        // What was created or came by a rename may be a symbolic link.
        if (interest.point.on_the_way || (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0)
            moved_.insert(interest.set);
        if (!interest.point.on_the_way) changed.insert(interest.set);
    }
    // Later: further events of this change may be in the queue, and they belong to the watches that are.
    if (!moved_.empty()) again_.set(std::chrono::steady_clock::now());
    if (!changed.empty()) changed_(changed);
}

void ListWatch::look_again() {
    const std::set<std::string> moved = std::exchange(moved_, {});
    watch();
    if (!moved.empty()) changed_(moved);
}

} // namespace sieve::service
