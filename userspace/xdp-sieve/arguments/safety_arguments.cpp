// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/arguments/safety_arguments.hpp"

#include <chrono>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "front-end/console/output.hpp"
#include "libsieve/util/text/number.hpp"

namespace sieve::cli {

namespace {

constexpr int longest_probation = 86400;

} // namespace

void SafetyArguments::add_to(Arguments& command) {
    add_questions_to(command);
    add_confirm_to(command);
}

void SafetyArguments::add_questions_to(Arguments& command) {
    command.add_flag(
        "--allow-lockout", allow_lockout_,
        "also if it would drop an address that this host lives by: its own, a gateway, a resolver, an "
        "administrator's session");
    command
        .add("--protect", protect_,
             "more addresses that no change may drop: a file of addresses, prefixes and ranges, 65,536 "
             "addresses at most")
        .called("FILE");
    command
        .add("--admin-ports", ports_,
             "further TCP ports of administrators' sessions, besides 22 and those of sshd: a comma list")
        .called("PORTS");
}

void SafetyArguments::add_confirm_to(Arguments& command) {
    command
        .add("--confirm", confirm_within_,
             "in force at once, and taken back after SECONDS unless `xdp-sieve confirm` keeps it, whatever "
             "becomes of this command and its terminal")
        .between(1, longest_probation)
        .called("SECONDS");
}

Result<control::Safety> SafetyArguments::safety(const Context& context) {
    control::Safety safety{.confirm_within = std::chrono::seconds(confirm_within_.value_or(0))};
    std::set<std::uint16_t> ports;
    std::istringstream texts(ports_.value_or(""));
    for (std::string text; std::getline(texts, text, ',');) {
        const std::optional<std::uint64_t> port = parse_whole(text);
        if (!port || *port < 1 || *port > std::numeric_limits<std::uint16_t>::max())
            return invalid_request(fmt::format("--admin-ports {}: expected numbers from 1 to 65535",
                                               text.empty() ? "\"\"" : text));
        ports.insert(static_cast<std::uint16_t>(*port));
    }
    std::vector<control::HostAddress> listed;
    if (protect_) {
        SIEVE_ASSIGN(listed, control::read_protect_list(*protect_));
    }
    if (allow_lockout_) return safety;
    host_ = std::make_unique<control::RealHostAddresses>(std::move(ports), std::move(listed),
                                                         observer(context).remark);
    safety.host = host_.get();
    return safety;
}

void SafetyArguments::remark_on(const std::string& interface, const Context& context) const {
    if (!confirm_within_) return;
    remark(context, fmt::format("taken back in {} s unless `xdp-sieve confirm{}{}` keeps it",
                                *confirm_within_, interface.empty() ? "" : " ", interface));
}

} // namespace sieve::cli
