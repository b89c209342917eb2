// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/ban_server.hpp"

#include <grp.h>
#include <poll.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <list>
#include <utility>

#include <fmt/core.h>

#include "libsieve/service/daemon/broken_off.hpp"
#include "libsieve/util/system/event.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

// At a time.
constexpr std::size_t most_questions = 16;
constexpr std::size_t most_of_members = 12; // all others are root's
constexpr std::size_t most_of_a_member = 4;
// So long the daemon's end waits for an answer.
constexpr std::chrono::milliseconds end_of_daemon{100};

// -1: there is none of this name.
long group_of(const std::string& name) {
    const struct group* const found = ::getgrnam(name.c_str());
    return found != nullptr ? static_cast<long>(found->gr_gid) : -1;
}

std::optional<ucred> who_asks(int socket) {
    ucred who{};
    socklen_t length = sizeof(who);
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) return std::nullopt;
    return who;
}

// New files of this thread have that group, which needs less than to change it.
class AsGroup {
  public:
    explicit AsGroup(long group) : before_(::getegid()) {
        if (group >= 0) ::setfsgid(static_cast<gid_t>(group));
    }
    AsGroup(const AsGroup&) = delete;
    AsGroup& operator=(const AsGroup&) = delete;
    ~AsGroup() { ::setfsgid(before_); }

  private:
    gid_t before_;
};

// A new socket takes that much at once.
void refuse(int socket) {
    const BanAnswer answer{.error = Error{ErrorKind::busy,
                                          "xdp-sieved answers other questions of this user or group about "
                                          "bans; expected fewer at a time",
                                          {}}};
    (void)say(socket, bytes_of(answer), {.end = std::chrono::steady_clock::now()});
}

} // namespace

BanServer::BanServer(LiveSets& live, HostAddresses& host, Log& log, BanServerSettings settings)
    : live_(live), host_(host), log_(log), settings_(std::move(settings)) {
    if (!settings_.who) settings_.who = who_asks;
}

BanServer::~BanServer() {
    close();
}

void BanServer::close() {
    if (!thread_.joinable()) return;
    ends_ = true;
    set_event(over_.get());
    thread_.join();
    ends_ = false;
    ::unlink(path_.c_str());
    listener_ = UniqueFd();
}

void BanServer::follow(std::shared_ptr<const Configuration> configuration, const std::string& path) {
    const std::string group = configuration->ban_group;
    const bool wanted = !live::sets_with_bans(*configuration).empty();
    {
        const std::lock_guard lock(mutex_);
        configuration_ = std::move(configuration);
    }
    if (thread_.joinable() && wanted && group == group_) return;
    close();
    if (!wanted) return;
    if (Status listening = listen(path, group); !listening)
        log_.error(fmt::format("bans: only commands of root without this daemon can give any: {}",
                               listening.error().message));
}

Status BanServer::listen(const std::string& path, const std::string& group) {
    path_ = path;
    group_ = group;
    group_id_ = group.empty() ? -1 : group_of(group);
    if (!group.empty() && group_id_ < 0)
        log_.warning(fmt::format("bans: there is no group {}, so only root may ban", printable(group)));
    const auto fault = [&](const char* what) {
        return kernel_refused(fmt::format("{}: {}: {}", printable(path), what, errno_text(errno)));
    };
    // Who may search the folder can see that there is a socket, and no more.
    const std::string folder = path.substr(0, path.rfind('/'));
    if (::mkdir(folder.c_str(), 0711) != 0 && errno != EEXIST) return fault("its folder cannot be made");
    if (::chmod(folder.c_str(), group_id_ < 0 ? 0700 : 0711) != 0)
        return fault("its folder cannot be opened");
    SIEVE_ASSIGN(over_, make_event());
    listener_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (!listener_ || path.size() >= sizeof(address.sun_path)) return fault("no socket");
    path.copy(address.sun_path, path.size());
    ::unlink(path.c_str()); // of a daemon that was killed; another one would hold the namespace
    {
        const AsGroup as(group_id_);
        // Nobody but root connects before it has its mode.
        if (::fchmod(listener_.get(), 0600) != 0 ||
            ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
            return fault("cannot be bound");
    }
    if (::chmod(path.c_str(), group_id_ < 0 ? 0600 : 0660) != 0 ||
        ::listen(listener_.get(), static_cast<int>(most_questions)) != 0)
        return fault("cannot be listened at");
    thread_ = std::thread([this] { serve(listener_.get(), over_.get()); });
    return {};
}

void BanServer::serve(int listener, int over) {
    struct Asking {
        uid_t uid = 0;
        std::atomic<bool> ended = false;
        std::thread thread{};
    };
    std::list<Asking> asking;
    const auto join_ended = [&] {
        asking.remove_if([](Asking& one) {
            if (!one.ended) return false;
            one.thread.join();
            return true;
        });
    };
    const auto has_place = [&](uid_t uid) {
        if (uid == 0) return true;
        const auto of_members = std::ranges::count_if(asking, [](const Asking& one) { return one.uid != 0; });
        const auto of_this = std::ranges::count(asking, uid, &Asking::uid);
        return static_cast<std::size_t>(of_members) < most_of_members &&
               static_cast<std::size_t>(of_this) < most_of_a_member;
    };
    for (;;) {
        pollfd waits[] = {
            {.fd = over, .events = POLLIN, .revents = 0},
            {.fd = asking.size() < most_questions ? listener : -1, .events = POLLIN, .revents = 0}};
        const int found = ::poll(waits, 2, asking.empty() ? -1 : 100);
        if (found < 0 && errno != EINTR) break;
        join_ended();
        if ((waits[0].revents & POLLIN) != 0) break;
        if ((waits[1].revents & POLLIN) == 0) continue;
        UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
        if (!socket) continue;
        try {
            const std::optional<ucred> who = settings_.who(socket.get());
            if (!who) continue;
            join_ended(); // whoever has got its answer may ask again at once
            if (!has_place(who->uid)) {
                refuse(socket.get());
                continue;
            }
            Asking& one = asking.emplace_back();
            one.uid = who->uid;
            // The socket closes after it has ended.
            one.thread = std::thread([this, &one, over, who = *who, socket = std::move(socket)] {
                try {
                    answer(socket.get(), who, over);
                } catch (const std::exception& error) {
                    log_.error(fmt::format("bans: a question broke off: {}", why_broken_off(error)));
                }
                one.ended = true;
            });
        } catch (const std::exception&) { // no memory or thread: it closes, and whoever asked sees that
            if (!asking.empty() && !asking.back().thread.joinable()) asking.pop_back();
        }
    }
    for (Asking& one : asking) one.thread.join();
}

// The mode of the socket says the same. Who is not meant to ask may have got it from who is.
bool BanServer::may_ask(int socket, const ucred& who) const {
    if (who.uid == 0) return true;
    if (group_id_ < 0) return false;
    if (who.gid == static_cast<gid_t>(group_id_)) return true;
    std::vector<gid_t> groups(65536);
    auto length = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &length) != 0) return false;
    groups.resize(length / sizeof(gid_t));
    return std::ranges::find(groups, static_cast<gid_t>(group_id_)) != groups.end();
}

TalkLimit BanServer::limit_of_talk(int over) const {
    return {.end = std::chrono::steady_clock::now() + settings_.longest_talk, .over = over};
}

void BanServer::answer(int socket, const ucred& who, int over) {
    BanAnswer answer;
    if (!may_ask(socket, who)) {
        answer.error = Error{ErrorKind::not_permitted,
                             "bans are for root and the members of the group that ban-group names",
                             {}};
    } else if (Result<std::string> heard = hear(socket, longest_ban_question, limit_of_talk(over)); !heard) {
        answer.error = std::move(heard.error());
    } else if (Result<BanQuestion> question = ban_question_of(*heard); !question) {
        answer.error = std::move(question.error());
    } else {
        answer = answer_of(*question);
    }
    // Whoever has gone away does not hear it.
    (void)say(socket, bytes_of(answer), limit_of_talk(over));
}

BanAnswer BanServer::answer_of(const BanQuestion& question) {
    std::shared_ptr<const Configuration> configuration;
    {
        const std::lock_guard lock(mutex_);
        configuration = configuration_;
    }
    BanAnswer answer;
    Status done;
    if (!question.lists) {
        done = change(question, *configuration, answer);
    } else {
        auto bans = live::list_bans(*configuration, question.request.set, live::current_time());
        if (bans)
            answer.bans = std::move(*bans);
        else
            done = tl::unexpected(std::move(bans.error()));
    }
    if (!done) answer.error = std::move(done.error());
    return answer;
}

Status BanServer::change(const BanQuestion& question, const Configuration& configuration, BanAnswer& answer) {
    live::BanRequest request = question.request;
    SIEVE_ASSIGN(request.set, live::set_for_bans(configuration, request.set));
    live::TakenBans taken;
    BanLedger::Mark known; // of what is in force, before the change
    {
        const std::lock_guard lock(changing_);
        std::shared_ptr<BanLedger>& ledger = ledgers_[request.set];
        if (!ledger) ledger = std::make_shared<BanLedger>(configuration.state_directory, request.set);
        // A ledger that the set cannot be read from is read whole before anything is added to it.
        const auto before = live_.wait(request.set, {}, [](const live::LiveUpdater::State&) { return true; });
        if (before) known = before->ledger;
        if (before && known.bytes == 0) ledger->read_all_next();
        const auto banned = [&](const live::Prefix& single) { return live_.is_banned(request.set, single); };
        SIEVE_ASSIGN(taken,
                     live::take_bans(request, configuration, host_, *ledger, live::current_time(), banned));
    }
    answer.set = taken.set;
    answer.absent = std::move(taken.absent);
    answer.lifted = taken.lifted;
    if (taken.mark.bytes == 0) return {}; // nothing was changed
    live_.wake({request.set});
    const auto is_in = [&](const live::LiveUpdater::State& state) {
        return state.ledger.bytes > 0 && state.ledger.has(taken.mark, known) && !state.settles;
    };
    std::optional<live::LiveUpdater::State> state;
    const std::chrono::seconds longest = time_for_bans(request.changes.size());
    const auto end = std::chrono::steady_clock::now() + longest;
    do {
        state = live_.wait(request.set, end_of_daemon, is_in);
    } while (!(state && is_in(*state)) && !ends_ && std::chrono::steady_clock::now() < end);
    if (!state || state->ledger.bytes == 0 || !state->ledger.has(taken.mark, known)) {
        if (!state)
            answer.not_in_force = "the set is not followed now";
        else if (!state->lacks.empty())
            answer.not_in_force = state->lacks;
        else
            answer.not_in_force = fmt::format("that takes more than {} s; it follows", longest.count());
        answer.fails = true;
    } else {
        answer.not_in_force = state->lacks;
        answer.fails = state->settles;
    }
    return {};
}

} // namespace sieve::service
