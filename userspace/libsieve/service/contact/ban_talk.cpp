// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/contact/ban_talk.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "libsieve/kernel/host/lock.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t bans_in_a_second = 20000; // of a machine that is busy with other things
// To be heard, to wait for others' changes, and to get the answer.
constexpr std::chrono::seconds beside_the_change{60};
constexpr std::chrono::seconds busy_patience{10};
constexpr std::chrono::milliseconds between_tries{100};

constexpr std::string_view question_magic = "xdp-sieve asks 1\n";
constexpr std::string_view answer_magic = "xdp-sieve says 1\n";

void put(std::string& to, std::uint64_t number) {
    to.append(reinterpret_cast<const char*>(&number), sizeof(number));
}
void put(std::string& to, std::string_view text) {
    put(to, text.size());
    to += text;
}
void put(std::string& to, const std::vector<live::BanChange>& changes) {
    put(to, live::bytes_of(changes));
}

// Takes parts off; once one was missing, all that follows is, too.
class Parts {
  public:
    explicit Parts(std::string_view bytes) : left_(bytes) {}

    std::uint64_t number() {
        std::uint64_t number = 0;
        const std::string_view bytes = take(sizeof(number));
        if (!wrong_) std::memcpy(&number, bytes.data(), sizeof(number));
        return number;
    }
    std::string text() {
        const std::uint64_t size = number();
        return std::string(take(size));
    }
    std::vector<live::BanChange> changes() {
        const std::uint64_t size = number();
        auto changes = live::ban_changes_of(take(size));
        wrong_ = wrong_ || !changes;
        return wrong_ ? std::vector<live::BanChange>() : std::move(*changes);
    }
    [[nodiscard]] bool wrong() const { return wrong_; }
    [[nodiscard]] bool whole() const { return !wrong_ && left_.empty(); }

  private:
    std::string_view take(std::uint64_t size) {
        wrong_ = wrong_ || size > left_.size();
        if (wrong_) return {};
        const std::string_view taken = left_.substr(0, size);
        left_.remove_prefix(size);
        return taken;
    }

    std::string_view left_;
    bool wrong_ = false;
};

tl::unexpected<Error> socket_fault(const std::string& what, int error) {
    return kernel_refused(fmt::format("the daemon's socket for bans: {}: {}", what, errno_text(error)));
}

// Returns when the socket may be ready. Errors: busy (the talk is over); the time is up.
Status wait_for(int socket, short events, const char* what, const TalkLimit& limit) {
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit.end - Clock::now()).count();
        if (left <= 0) return socket_fault(what, ETIMEDOUT);
        pollfd waits[] = {{.fd = socket, .events = events, .revents = 0},
                          {.fd = limit.over, .events = POLLIN, .revents = 0}};
        const int found = ::poll(waits, 2, static_cast<int>(std::min<std::int64_t>(left, 1000000)));
        if (found < 0 && errno != EINTR) return socket_fault(what, errno);
        if (found <= 0) continue;
        if (waits[1].revents != 0) return failure(ErrorKind::busy, "xdp-sieved ends, or is being reloaded");
        return {};
    }
}

Result<std::optional<BanAnswer>> ask_once(const std::string& path, std::string_view question,
                                          const TalkLimit& limit) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) return socket_fault(printable(path), ENAMETOOLONG);
    path.copy(address.sun_path, path.size());
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) return socket_fault("cannot be made", errno);
    // connect() waits so long while the daemon accepts nobody. The clock of that is coarse: rather longer.
    const auto left = std::max<std::int64_t>(
                          0, std::chrono::ceil<std::chrono::microseconds>(limit.end - Clock::now()).count()) +
                      20000;
    const timeval longest{.tv_sec = left / 1000000, .tv_usec = left % 1000000};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof(longest));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        if (errno == ENOENT || errno == ECONNREFUSED) return std::nullopt;
        if (errno == EACCES || errno == EPERM)
            return failure(ErrorKind::not_permitted,
                           fmt::format("{}: not for this user; expected root or a member of the group that "
                                       "ban-group names",
                                       printable(path)));
        return socket_fault(printable(path), errno);
    }
    // A daemon that refuses may close before it has read all.
    const Status said = say(socket.get(), question, limit);
    ::shutdown(socket.get(), SHUT_WR);
    const Result<std::string> heard = hear(socket.get(), std::size_t{4} << 30, limit);
    if (!heard) return tl::unexpected(said ? heard.error() : said.error());
    if (heard->empty() && !said) return tl::unexpected(said.error());
    if (answer_magic.starts_with(*heard))
        return kernel_refused("xdp-sieved ended before it answered; a change may be kept all the same");
    SIEVE_ASSIGN(BanAnswer answer, ban_answer_of(*heard));
    return answer;
}

} // namespace

Result<std::string> ban_socket_path() {
    SIEVE_ASSIGN(std::string name, kernel::Lock::file_name());
    return fmt::format("{}/{}", ban_socket_folder, name.substr(0, name.rfind('.')));
}

std::string bytes_of(const BanQuestion& question) {
    std::string bytes(question_magic);
    put(bytes, question.lists ? 1 : 0);
    put(bytes, question.request.counts ? 1 : 0);
    put(bytes, question.request.set);
    put(bytes, question.request.changes);
    return bytes;
}

Result<BanQuestion> ban_question_of(std::string_view bytes) {
    if (!bytes.starts_with(question_magic))
        return bad_input(
            "the question is none of this version; expected xdp-sieve and xdp-sieved of one version");
    Parts parts(bytes.substr(question_magic.size()));
    BanQuestion question;
    question.lists = parts.number() != 0;
    question.request.counts = parts.number() != 0;
    question.request.set = parts.text();
    question.request.changes = parts.changes();
    if (!parts.whole()) return bad_input("the question about bans is damaged");
    return question;
}

std::string bytes_of(const BanAnswer& answer) {
    std::string bytes(answer_magic);
    put(bytes, answer.error ? static_cast<std::uint64_t>(answer.error->kind) + 1 : 0);
    put(bytes, answer.error ? answer.error->message : std::string());
    put(bytes, answer.set);
    std::vector<live::BanChange> absent;
    for (const live::Prefix& prefix : answer.absent)
        absent.push_back({.step = live::BanStep::remove, .prefix = prefix});
    put(bytes, absent);
    put(bytes, answer.lifted);
    put(bytes, answer.not_in_force);
    put(bytes, answer.fails ? 1 : 0);
    put(bytes, answer.bans.size());
    for (const live::SetBans& set : answer.bans) {
        put(bytes, set.set);
        put(bytes, set.bans);
    }
    return bytes;
}

Result<BanAnswer> ban_answer_of(std::string_view bytes) {
    if (!bytes.starts_with(answer_magic))
        return kernel_refused(
            "xdp-sieved did not answer about bans as this version does; expected xdp-sieve and "
            "xdp-sieved of one version");
    Parts parts(bytes.substr(answer_magic.size()));
    BanAnswer answer;
    const std::uint64_t kind = parts.number();
    std::string message = parts.text();
    if (kind > 0) answer.error = Error{static_cast<ErrorKind>(kind - 1), std::move(message), {}};
    answer.set = parts.text();
    for (const live::BanChange& change : parts.changes()) answer.absent.push_back(change.prefix);
    answer.lifted = parts.number();
    answer.not_in_force = parts.text();
    answer.fails = parts.number() != 0;
    for (std::uint64_t sets = parts.number(); sets > 0 && !parts.wrong(); sets--) {
        live::SetBans set;
        set.set = parts.text();
        set.bans = parts.changes();
        answer.bans.push_back(std::move(set));
    }
    if (!parts.whole()) return kernel_refused("xdp-sieved's answer about bans was cut off");
    return answer;
}

Result<std::string> hear(int socket, std::size_t longest, const TalkLimit& limit) {
    std::string bytes;
    for (;;) {
        SIEVE_TRY(wait_for(socket, POLLIN, "cannot be read", limit));
        const std::size_t had = bytes.size();
        bytes.resize(had == 0 ? 4096 : had * 2);
        const ssize_t got = ::recv(socket, bytes.data() + had, bytes.size() - had, MSG_DONTWAIT);
        bytes.resize(had + static_cast<std::size_t>(got > 0 ? got : 0));
        if (got == 0) return bytes;
        // Who closes without having read all, such as a daemon that refuses, or one that was ended. What was
        // said says whether it is whole.
        if (got < 0 && errno == ECONNRESET) return bytes;
        if (got < 0 && errno != EINTR && errno != EAGAIN) return socket_fault("cannot be read", errno);
        if (bytes.size() > longest)
            return bad_input(fmt::format("a question about bans is longer than {} MiB", longest >> 20));
    }
}

Status say(int socket, std::string_view bytes, const TalkLimit& limit) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0)
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        else if (errno != EAGAIN && errno != EINTR)
            return socket_fault("cannot be written", errno);
        else
            SIEVE_TRY(wait_for(socket, POLLOUT, "cannot be written", limit));
    }
    return {};
}

std::chrono::seconds time_for_bans(std::size_t changes) {
    return std::chrono::seconds(10 + changes / bans_in_a_second);
}

std::chrono::seconds time_for_answer(const BanQuestion& question) {
    return time_for_bans(question.request.changes.size()) + beside_the_change;
}

Result<std::optional<BanAnswer>> ask_about_bans(const std::string& path, const BanQuestion& question,
                                                std::chrono::milliseconds patience) {
    const std::string bytes = bytes_of(question);
    const TalkLimit limit{.end = Clock::now() + patience};
    const auto last_try = std::min(limit.end, Clock::now() + busy_patience);
    for (;;) {
        Result<std::optional<BanAnswer>> answer = ask_once(path, bytes, limit);
        if (!answer && Clock::now() >= limit.end)
            return kernel_refused(
                fmt::format("xdp-sieved did not answer about bans within {} s; a change may be kept all "
                            "the same",
                            std::chrono::ceil<std::chrono::seconds>(patience).count()));
        const bool busy = answer && *answer && (*answer)->error && (*answer)->error->kind == ErrorKind::busy;
        if (!busy || Clock::now() + between_tries >= last_try) return answer;
        std::this_thread::sleep_for(between_tries);
    }
}

} // namespace sieve::service
