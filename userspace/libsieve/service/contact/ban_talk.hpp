// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a command and the daemon say to each other about bans: one question, one answer, over a socket of this
// network namespace, /run/xdp-sieve-bans/net-INODE. The command ends its question by closing its half. Both
// sides speak the same version, or the daemon says that they do not.
//
// The folder is not that of the lock, which is root's alone: whoever may ban has to reach the socket.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libsieve/service/live/take_bans.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::service {

inline constexpr const char* ban_socket_folder = "/run/xdp-sieve-bans";
// For the network namespace of the calling thread.
[[nodiscard]] Result<std::string> ban_socket_path();

struct BanQuestion {
    bool lists = false; // asks for the bans there are; else for the change
    live::BanRequest request{};
};

struct BanAnswer {
    std::optional<Error> error{};
    std::string set{};
    std::vector<live::Prefix> absent{};
    std::uint64_t lifted = 0;
    std::string not_in_force{}; // why; empty: the change is in force
    bool fails = false;         // that should not be so
    std::vector<live::SetBans> bans{};
};

// Longer questions are refused.
inline constexpr std::size_t longest_ban_question = std::size_t{256} << 20;

[[nodiscard]] std::string bytes_of(const BanQuestion& question);
[[nodiscard]] std::string bytes_of(const BanAnswer& answer);
[[nodiscard]] Result<BanQuestion> ban_question_of(std::string_view bytes);
[[nodiscard]] Result<BanAnswer> ban_answer_of(std::string_view bytes);

// What ends a talk that the other side does not end.
struct TalkLimit {
    std::chrono::steady_clock::time_point end; // of the whole talk, however many parts it comes in
    int over = -1;                             // an event (event.hpp) that ends it at once; -1: none
};

// Everything until the other side closes. Errors: busy (it is over); it takes too long, or is too long.
[[nodiscard]] Result<std::string> hear(int socket, std::size_t longest, const TalkLimit& limit);
// What the other side can take at once is sent, whatever the limit.
[[nodiscard]] Status say(int socket, std::string_view bytes, const TalkLimit& limit);

// So long the daemon waits until a change is in force.
[[nodiscard]] std::chrono::seconds time_for_bans(std::size_t changes);
// So long a command waits for the answer.
[[nodiscard]] std::chrono::seconds time_for_answer(const BanQuestion& question);

// Asks the daemon, and again for some seconds while it answers others of this user. Nothing: none listens.
// Errors: not_permitted; busy; it does not answer in this time; those of the connection.
[[nodiscard]] Result<std::optional<BanAnswer>>
ask_about_bans(const std::string& path, const BanQuestion& question, std::chrono::milliseconds patience);

} // namespace sieve::service
