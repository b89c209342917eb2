// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/contact/ban_talk.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "libsieve/kernel/host/lock.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

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

Result<std::string> hear(int socket, std::size_t longest) {
    std::string bytes;
    for (;;) {
        const std::size_t had = bytes.size();
        bytes.resize(had == 0 ? 4096 : had * 2);
        const ssize_t got = ::recv(socket, bytes.data() + had, bytes.size() - had, 0);
        bytes.resize(had + static_cast<std::size_t>(got > 0 ? got : 0));
        if (got == 0) return bytes;
        // A daemon that refuses answers and closes without reading the question. The answer says whether it
        // is whole.
        if (got < 0 && errno == ECONNRESET && !bytes.empty()) return bytes;
        if (got < 0 && errno != EINTR) return socket_fault("cannot be read", errno);
        if (bytes.size() > longest)
            return bad_input(fmt::format("a question about bans is longer than {} MiB", longest >> 20));
    }
}

Status say(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return socket_fault("cannot be written", errno);
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return {};
}

Result<std::optional<BanAnswer>> ask_about_bans(const std::string& path, const BanQuestion& question) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) return socket_fault(printable(path), ENAMETOOLONG);
    path.copy(address.sun_path, path.size());
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) return socket_fault("cannot be made", errno);
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
    const Status said = say(socket.get(), bytes_of(question));
    ::shutdown(socket.get(), SHUT_WR);
    const Result<std::string> heard = hear(socket.get(), std::size_t{4} << 30);
    if (!heard) return tl::unexpected(said ? heard.error() : said.error());
    if (heard->empty() && !said) return tl::unexpected(said.error());
    SIEVE_ASSIGN(BanAnswer answer, ban_answer_of(*heard));
    return answer;
}

} // namespace sieve::service
