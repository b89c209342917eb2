// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/contact/manager.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/util/text/json_text.hpp"

namespace sieve::service::watching {

namespace {

using nlohmann::json;

constexpr std::size_t longest_note = 32768;
constexpr std::size_t longest_standing = 4096; // six times as long at most, as JSON

// Abstract: the first byte is 0.
constexpr std::string_view socket_name{"\0xdp-sieve/manager", 18};

// While the lock or the name of a process that has ended is held.
constexpr std::chrono::milliseconds pause{5};
// Between taking the name and listening.
constexpr std::chrono::seconds longest_until_listening{1};

Result<std::string> note_path(const std::string& folder) {
    SIEVE_ASSIGN(std::string name, kernel::Lock::file_name());
    return folder + "/" + name.substr(0, name.rfind('.')) + ".manager";
}

std::optional<Manager> read_note(int file) {
    std::array<char, longest_note> text{};
    const ssize_t length = ::pread(file, text.data(), text.size(), 0);
    if (length <= 0) return std::nullopt;
    try {
        const std::string_view all(text.data(), static_cast<std::size_t>(length));
        const std::size_t line = std::min(all.find('\n'), all.size());
        const json note = parse_json(all.substr(0, line));
        const json standing = parse_json(all.substr(line));
        return Manager{.pid = note.at("pid").get<pid_t>(),
                       .started = note.at("started").get<std::int64_t>(),
                       .listen = note.at("listen").get<std::string>(),
                       .state = note.at("state").get<std::string>(),
                       .version = note.at("version").get<std::string>(),
                       .configuration = note.value("configuration", std::string()),
                       .standing = standing.is_string() ? standing.get<std::string>() : std::string()};
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

std::string text_of(const Manager& manager) {
    const json note = {{"pid", manager.pid},         {"started", manager.started},
                       {"listen", manager.listen},   {"state", manager.state},
                       {"version", manager.version}, {"configuration", manager.configuration}};
    return json_line(note) + "\n";
}

bool same_file(int file, const std::string& path) {
    struct stat open {
    }, named{};
    return ::fstat(file, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
           open.st_ino == named.st_ino;
}

bool runs(pid_t process) {
    return ::kill(process, 0) == 0 || errno != ESRCH;
}

// `process`: 0 if it cannot be named.
tl::unexpected<Error> managed_by(pid_t process) {
    const std::string who = process != 0 ? fmt::format("process {}", process) : "another process";
    return failure(ErrorKind::busy, who + " manages this network namespace already");
}

Result<UniqueFd> new_socket() {
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return kernel_refused("a socket for the manager: " + errno_text(errno));
    return socket;
}

// bind(2) or connect(2) with the manager's name; returns 0 or an errno value.
template <class Call>
int with_name(const Call& call, int socket) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_name.copy(address.sun_path, socket_name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_name.size());
    return call(socket, reinterpret_cast<const sockaddr*>(&address), length) == 0 ? 0 : errno;
}

// Who listens at the manager's name; an errno value if that does not come out.
tl::expected<ucred, int> who_listens() {
    const Result<UniqueFd> socket = new_socket();
    if (!socket) return tl::unexpected(EMFILE);
    if (const int error = with_name(::connect, socket->get()); error != 0) return tl::unexpected(error);
    ucred peer{};
    socklen_t length = sizeof(peer);
    if (::getsockopt(socket->get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
        return tl::unexpected(errno);
    return peer;
}

} // namespace

Result<NamespaceClaim> NamespaceClaim::take(const std::function<void(const std::string& text)>& remark,
                                            const NoteWait& wait) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    bool waited = false;
    SIEVE_ASSIGN(UniqueFd socket, new_socket());
    for (;; std::this_thread::sleep_for(pause)) {
        const int error = with_name(::bind, socket.get());
        if (error == 0 && ::listen(socket.get(), SOMAXCONN) == 0) return NamespaceClaim(std::move(socket));
        if (error != EADDRINUSE)
            return kernel_refused("the socket of the manager: " + errno_text(error != 0 ? error : errno));
        const auto holder = who_listens();
        if (holder && holder->uid == ::geteuid()) {
            if (holder->pid == 0 || runs(holder->pid) || Clock::now() - begin >= wait.patience)
                return managed_by(holder->pid);
            if (!std::exchange(waited, true) && wait.begun) wait.begun();
            continue;
        }
        if (!holder && holder.error() == ECONNREFUSED && Clock::now() - begin < longest_until_listening)
            continue;
        remark(fmt::format("{} has taken the name by which daemons notice each other; only the note in {} "
                           "keeps a second daemon away",
                           holder ? fmt::format("process {} of user {}", holder->pid, holder->uid)
                                  : std::string("somebody"),
                           kernel::Lock::folder));
        return NamespaceClaim(UniqueFd());
    }
}

bool ManagerNote::is_there() const {
    return same_file(held_.get(), path_);
}

Result<ManagerNote> ManagerNote::leave(const Manager& manager, const std::string& folder,
                                       const NoteWait& wait) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + wait.patience;
    bool waited = false;
    SIEVE_ASSIGN(const std::string path, note_path(folder));
    const auto refused = [&path](int error) {
        return kernel_refused(fmt::format("the manager's note {}: {}", path, errno_text(error)));
    };
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return refused(errno);
    for (;;) {
        UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!file) return refused(errno);
        if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK) return refused(errno);
            const auto other = read_note(file.get());
            if (!(other && runs(other->pid)) && Clock::now() < deadline) {
                if (!std::exchange(waited, true) && wait.begun) wait.begun();
                std::this_thread::sleep_for(pause); // flock has no time limit
                continue;
            }
            return managed_by(other ? other->pid : 0);
        }
        // Its previous holder may have removed the file between our open and our lock.
        if (!same_file(file.get(), path)) continue;
        const std::string text = text_of(manager);
        if (::ftruncate(file.get(), 0) != 0 ||
            ::pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
            return refused(errno);
        ManagerNote note(path, std::move(file), text.size());
        SIEVE_TRY(note.update(manager.standing));
        return note;
    }
}

Status ManagerNote::update(const std::string& standing) {
    const std::string text = json_line(standing.substr(0, longest_standing));
    const auto begin = static_cast<off_t>(first_line_);
    const auto length = static_cast<ssize_t>(text.size());
    if (::pwrite(held_.get(), text.data(), text.size(), begin) != length ||
        ::ftruncate(held_.get(), begin + length) != 0)
        return kernel_refused(fmt::format("the manager's note {}: {}", path_, errno_text(errno)));
    return {};
}

ManagerNote::~ManagerNote() {
    if (held_ && is_there()) (void)::unlink(path_.c_str());
}

std::optional<Manager> find_manager(const std::string& folder) {
    const auto path = note_path(folder);
    if (!path) return std::nullopt;
    const UniqueFd file(::open(path->c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!file) return std::nullopt;
    // A lock that we get is one that nobody holds.
    if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return std::nullopt;
    return read_note(file.get());
}

} // namespace sieve::service::watching
