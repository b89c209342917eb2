// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a command and the daemon say to each other about bans: one question, one answer, over a socket of this
// network namespace, /run/xdp-sieve-bans/net-INODE. The command ends its question by closing its half. Both
// sides speak the same version, or the daemon says that they do not.
//
// The folder is not that of the lock, which is root's alone: whoever may ban has to reach the socket.
#pragma once

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

// Everything until the other side closes. Error: it takes too long, or is too long.
[[nodiscard]] Result<std::string> hear(int socket, std::size_t longest);
[[nodiscard]] Status say(int socket, std::string_view bytes);

// Asks the daemon. Nothing: none listens. Errors: not_permitted; those of the connection.
[[nodiscard]] Result<std::optional<BanAnswer>> ask_about_bans(const std::string& path,
                                                              const BanQuestion& question);

} // namespace sieve::service
