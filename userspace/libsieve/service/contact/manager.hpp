// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Who keeps a configuration in force in this network namespace. The daemon leaves a note beside the lock of
// controllers, /run/xdp-sieve/net-INODE.manager:
//
//     {"pid": 812, "started": 1753000000, "listen": "127.0.0.1:19273", "state": "/var/lib/xdp-sieve",
//      "version": "0.9.0", "configuration": "/etc/xdp-sieve/xdp-sieve.toml"}
//     "2 sets in force on eth0"
//
// The second line says how things stand. It changes while the note is read, and the first one does not.
//
// Nobody can take away what keeps a second daemon from the namespace: a socket with an abstract name, which
// belongs to the namespace itself. So daemons see each other, too, that have different /run folders. Since
// anybody may take that name first, it counts only if the holder is the same user.
//
// The daemon holds an flock(2) on the note, and the note counts only while somebody does: a daemon that was
// killed manages nothing. A child that it had just forked shares its lock until the child runs for the first
// time, and whoever asks who manages this namespace holds the lock for a moment.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "libsieve/kernel/host/lock.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::service::watching {

struct Manager {
    pid_t pid = 0;
    std::int64_t started = 0; // seconds since 1970
    std::string listen{};     // of the status page; empty: there is none
    std::string state{};      // the state directory
    std::string version{};
    std::string configuration{}; // the file that is kept in force
    std::string standing{};      // what is in force and what is wrong; empty: it is not known

    [[nodiscard]] friend bool operator==(const Manager&, const Manager&) = default;
};

// How long the last children of a killed daemon are waited for: on a busy host, one of nice 19 may take
// seconds to run for the first time.
inline constexpr std::chrono::seconds patience_with_children{20};

// What to do while the note of a process that has ended is held.
struct NoteWait {
    std::chrono::milliseconds patience = patience_with_children;
    std::function<void()> begun{}; // called once
};

// The right to manage the network namespace of the calling thread.
class NamespaceClaim {
  public:
    // Error: busy, if another process of this user manages this namespace. `remark` is told if another user
    // has taken the name: then the note alone keeps a second daemon away.
    [[nodiscard]] static Result<NamespaceClaim>
    take(const std::function<void(const std::string& text)>& remark, const NoteWait& wait = {});

  private:
    explicit NamespaceClaim(UniqueFd socket) : socket_(std::move(socket)) {}

    UniqueFd socket_;
};

// The note of a running daemon. It is removed when this object goes.
class ManagerNote {
  public:
    // For the network namespace of the calling thread. Makes the folder if it is not there. Errors: busy, if
    // another process manages this namespace; kernel_refused, if the note cannot be written.
    [[nodiscard]] static Result<ManagerNote> leave(const Manager& manager,
                                                   const std::string& folder = kernel::Lock::folder,
                                                   const NoteWait& wait = {});
    ManagerNote(ManagerNote&&) noexcept = default;
    ManagerNote& operator=(ManagerNote&&) = delete;
    ~ManagerNote();

    // How things stand from now on. Error: kernel_refused.
    [[nodiscard]] Status update(const std::string& standing);
    // False if somebody has removed the note.
    [[nodiscard]] bool is_there() const;

  private:
    ManagerNote(std::string path, UniqueFd held, std::size_t first_line)
        : path_(std::move(path)), held_(std::move(held)), first_line_(first_line) {}

    std::string path_;
    UniqueFd held_;
    std::size_t first_line_; // bytes
};

// The manager that runs now; nothing if there is none, or if we may not know.
[[nodiscard]] std::optional<Manager> find_manager(const std::string& folder = kernel::Lock::folder);

} // namespace sieve::service::watching
