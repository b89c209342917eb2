// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/state/ban_ledger.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "libsieve/service/state/folder_owner.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

constexpr LogKind ledger_kind{.magic = "xdp-sieve bans 1\n", .name = "ledger of bans"};
constexpr std::uint32_t change_record = 1;

// Less is not worth the writing.
constexpr std::uint64_t small_ledger = std::uint64_t{256} << 10;

constexpr std::chrono::milliseconds pause{5}; // between two tries to take the lock

tl::unexpected<Error> fault(const std::string& path, const std::string& what, int error) {
    return kernel_refused(fmt::format("{}: {}: {}", printable(path), what, errno_text(error)));
}

// "process 123", by the kernel's list of locks, with lines such as
//
//     1: FLOCK  ADVISORY  WRITE 123 08:01:4711 0 EOF
std::string holder_of(int folder) {
    struct stat info {};
    if (::fstat(folder, &info) == 0) {
        const std::string locked =
            fmt::format("{:02x}:{:02x}:{}", major(info.st_dev), minor(info.st_dev), info.st_ino);
        std::ifstream locks("/proc/locks");
        for (std::string line; std::getline(locks, line);) {
            std::istringstream words(line);
            std::string number, kind, strength, access, process, file;
            words >> number >> kind >> strength >> access >> process >> file;
            if (kind == "FLOCK" && file == locked) return "process " + process;
        }
    }
    return "another process";
}

} // namespace

std::string ban_folder(const std::string& state) {
    return state + "/bans";
}

std::string ban_ledger_path(const std::string& state, const std::string& set) {
    return ban_folder(state) + "/" + set;
}

Result<UniqueFd> BanLedger::lock() {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + patience_;
    SIEVE_TRY(check_owner(state_));
    if (::mkdir(folder_.c_str(), 0700) == 0) {
        const UniqueFd state(::open(state_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!state || ::fsync(state.get()) != 0) return fault(folder_, "cannot be made", errno);
    } else if (errno != EEXIST) {
        return fault(folder_, "cannot be made", errno);
    }
    UniqueFd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder) return fault(folder_, "cannot be opened", errno);
    while (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return fault(folder_, "cannot be locked", errno);
        if (Clock::now() >= deadline)
            return failure(ErrorKind::busy,
                           fmt::format("{}: {} has held its lock for over {} s; wait for it or end it",
                                       printable(folder_), holder_of(folder.get()),
                                       std::chrono::duration_cast<std::chrono::seconds>(patience_).count()));
        std::this_thread::sleep_for(pause); // flock has no time limit
    }
    return folder;
}

// False: there is no ledger.
Result<bool> BanLedger::open_anew() {
    struct stat info {};
    if (::stat(state_.c_str(), &info) == 0) SIEVE_TRY(check_owner(state_));
    if (::lstat(path_.c_str(), &info) != 0) { // a link that leads nowhere is there
        const int error = errno;
        log_.reset();
        inode_ = 0;
        const bool leads_nowhere =
            ::stat(folder_.c_str(), &info) != 0 && ::lstat(folder_.c_str(), &info) == 0;
        if (error == ENOENT && !leads_nowhere) return false;
        return fault(leads_nowhere ? folder_ : path_, "cannot be read", error);
    }
    if (log_ && inode_ == info.st_ino && static_cast<std::uint64_t>(info.st_size) >= log_->bytes())
        return true;
    SIEVE_ASSIGN(log_, RecordLog::open(path_, ledger_kind));
    inode_ = info.st_ino;
    return true;
}

Result<bool> BanLedger::read_on(const std::function<void(live::BanChange&& change)>& visit) {
    return log_->read_on([&](std::uint32_t type, std::string_view payload) {
        if (type != change_record) return false;
        std::optional<std::vector<live::BanChange>> changes = live::ban_changes_of(payload);
        if (!changes) return false;
        for (live::BanChange& change : *changes) visit(std::move(change));
        return true;
    });
}

Status BanLedger::append(const std::vector<live::BanChange>& changes) {
    SIEVE_ASSIGN(const UniqueFd held, lock());
    SIEVE_ASSIGN(const bool exists, open_anew());
    if (!exists) {
        auto created = RecordLog::create(path_, ledger_kind);
        if (!created) return kernel_refused(std::move(created.error().message));
        SIEVE_TRY(open_anew());
    }
    SIEVE_ASSIGN(const bool torn, read_on([](live::BanChange&&) {}));
    if (torn) SIEVE_TRY(log_->cut_end());
    Status appended = log_->append(change_record, live::bytes_of(changes), true);
    if (appended) return {};
    log_.reset();
    return kernel_refused(std::move(appended.error().message));
}

Result<bool> BanLedger::read(const std::function<void(live::BanChange&& change)>& visit) {
    const ino_t file = inode_;
    const std::uint64_t bytes = log_ ? log_->bytes() : 0;
    SIEVE_ASSIGN(const bool exists, open_anew());
    if (!exists) return bytes > 0 || file == 0;
    const bool anew = bytes == 0 || file != inode_ || log_->bytes() < bytes;
    SIEVE_TRY(read_on(visit)); // a torn end is being written, or the next writer cuts it off
    return anew;
}

Result<live::Bans> BanLedger::bans(live::Time now,
                                   const std::function<bool(const live::Prefix& prefix)>& wanted) {
    live::Bans bans;
    read_all_next();
    SIEVE_TRY(read([&](live::BanChange&& change) {
        if (!wanted || change.step == live::BanStep::flush || wanted(change.prefix))
            live::change_bans(bans, change);
    }));
    std::erase_if(bans, [&](const auto& one) { return one.second.is_over(now); });
    return bans;
}

Status BanLedger::tidy(live::Time now) {
    struct stat info {};
    if (::stat(path_.c_str(), &info) != 0 || static_cast<std::uint64_t>(info.st_size) < small_ledger)
        return {};
    SIEVE_ASSIGN(const UniqueFd held, lock());
    SIEVE_ASSIGN(const live::Bans all, bans(now));
    const std::string bytes = live::bytes_of(live::additions(all));
    if (bytes.size() * 2 > mark().bytes) return {};
    auto created = RecordLog::create(path_, ledger_kind, {{change_record, bytes}});
    if (!created) return kernel_refused(std::move(created.error().message));
    return {};
}

Status BanLedger::take_over(const std::string& other, live::Time now) {
    SIEVE_ASSIGN(const UniqueFd held, lock());
    const std::string before = folder_ + "/" + other;
    const auto take_place = [&](unsigned flags) {
        return ::renameat2(AT_FDCWD, before.c_str(), AT_FDCWD, path_.c_str(), flags) == 0 ? 0 : errno;
    };
    int error = take_place(RENAME_NOREPLACE);
    if (error == EEXIST) {
        SIEVE_ASSIGN(const live::Bans own, bans(now));
        if (own.empty()) error = take_place(0);
    }
    if (error == 0) return ::fsync(held.get()) == 0 ? Status() : fault(folder_, "cannot be written", errno);
    if (error == ENOENT) return {}; // nobody was ever banned
    return fault(path_, fmt::format("{} cannot take its place", printable(before)), error);
}

} // namespace sieve::service
