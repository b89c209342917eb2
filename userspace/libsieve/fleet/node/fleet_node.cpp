// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/node/fleet_node.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "libsieve/fleet/node/fleet_tasks.hpp"
#include "libsieve/fleet/node/node_keeper.hpp"
#include "libsieve/fleet/node/node_link.hpp"
#include "libsieve/service/download/url.hpp"
#include "libsieve/service/sandbox/child_messages.hpp"
#include "libsieve/service/sources/backoff.hpp"
#include "libsieve/util/random/chance.hpp"
#include "libsieve/util/system/event.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::fleet {

namespace {

using Clock = std::chrono::steady_clock;

// A follower never ends by itself; these only bound one that has gone wrong.
constexpr std::chrono::hours follower_lasts{24 * 365};
constexpr std::chrono::hours follower_processor{24 * 30};
constexpr std::chrono::hours longest_transfer{24};
constexpr std::uint64_t child_memory = std::uint64_t{512} << 20;
constexpr service::BackoffLimits restart{.first = std::chrono::seconds(1), .most = std::chrono::minutes(1)};

struct SocketPair {
    UniqueFd ours;
    UniqueFd theirs;
};

Result<SocketPair> make_sockets() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return failure(ErrorKind::out_of_memory, "no sockets: " + errno_text(errno));
    return SocketPair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

} // namespace

struct FleetNode::State {
    FleetNodeSettings settings;
    service::Log& log;
    UniqueFd cancel; // readable: everything is to end
    std::unique_ptr<NodeKeeper> keeper;
    std::thread supervisor;

    [[nodiscard]] service::ChildOrder order_of(const char* task, std::string message,
                                               std::uint64_t file_bytes, std::chrono::seconds processor,
                                               std::vector<int> descriptors) const {
        service::SandboxSettings sandbox = settings.sandbox;
        sandbox.limits.memory_bytes = child_memory;
        sandbox.limits.source_bytes = file_bytes;
        sandbox.limits.processor = processor;
        sandbox.limits.nice = 0;
        sandbox.progress = {};
        return service::child_for(sandbox, service::TaskOrder{task, std::move(message)},
                                  std::move(descriptors));
    }

    // Why the child has not done its work; empty: it has.
    [[nodiscard]] std::string fault_of(const Result<service::ChildEnd>& end, const service::ChildOrder& order,
                                       const char* who) const {
        if (!end) return end.error().message;
        if (end->report.empty())
            return fmt::format("{} {}", who, describe(*end, order, settings.sandbox.limits));
        const auto done = service::read_report<service::WorkDone>(end->report);
        return done ? std::string() : done.error().error.message;
    }

    // The digest is checked here, when no child has the file open any more.
    Status fetch(const Blob& blob, const std::string& path, const std::string& before, int interrupt) const {
        const std::string name = service::displayed_url(settings.access.store.url + "/" + blob.digest);
        return keep_blob(blob, path, name, [&](int file) -> Status {
            const std::filesystem::path folder = std::filesystem::path(path).parent_path();
            const UniqueFd at_hand(
                before.empty() ? -1 : ::open((folder / before).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
            const BlobOrder wanted{settings.access.store, blob, at_hand ? before : std::string()};
            std::vector<int> descriptors{file};
            if (at_hand) descriptors.push_back(at_hand.get());
            service::ChildOrder order = order_of(fetch_task, message_of(wanted), blob.bytes,
                                                 settings.sandbox.limits.processor, std::move(descriptors));
            order.time_limit = longest_transfer;
            order.cancel = interrupt;
            const std::string fault = fault_of(settings.sandbox.run(order), order, "downloading");
            if (fault.empty()) return {};
            return bad_input(fault.starts_with(name) ? fault : name + ": " + fault);
        });
    }

    void supervise() {
        unsigned failures = 0;
        for (;;) {
            const auto began = Clock::now();
            const std::string fault = follow_once();
            pollfd one{cancel.get(), POLLIN, 0};
            if (::poll(&one, 1, 0) > 0) return;
            log.error(fmt::format("fleet {}: what follows it has ended, and is started again: {}",
                                  settings.access.fleet, fault));
            failures = Clock::now() - began > restart.most ? 1 : failures + 1;
            const auto wait = service::backoff_delay(failures, chance(), std::nullopt, restart);
            if (::poll(&one, 1, static_cast<int>(wait.count())) > 0) return;
        }
    }

    std::string follow_once() {
        Result<SocketPair> sockets = make_sockets();
        if (!sockets) return sockets.error().message;
        std::vector<std::string> servers = settings.access.etcd.endpoints;
        servers.push_back(settings.access.store.url);
        const Result<std::string> message =
            message_of(FollowOrder{settings.access, settings.labels, settings.report, std::move(servers)});
        if (!message) return message.error().message;
        std::thread answers([&] {
            serve_node(sockets->ours.get(), *keeper, settings.access.fleet, settings.access.pinned);
            // Whoever asks on gets no answer, and ends.
            (void)::shutdown(sockets->ours.get(), SHUT_RDWR);
        });
        service::ChildOrder order =
            order_of(follow_task, *message, 0, follower_processor, {sockets->theirs.get()});
        order.time_limit = follower_lasts;
        order.cancel = cancel.get();
        std::string fault = fault_of(settings.sandbox.run(order), order, "it");
        (void)::shutdown(sockets->ours.get(), SHUT_RDWR);
        answers.join();
        return fault;
    }
};

Result<std::unique_ptr<FleetNode>> FleetNode::start(FleetNodeSettings settings, const LocalNode& node,
                                                    service::Log& log) {
    SIEVE_ASSIGN(UniqueFd cancel, make_event());
    std::unique_ptr<FleetNode> fleet(new FleetNode);
    fleet->state_.reset(new State{std::move(settings), log, std::move(cancel), nullptr, {}});
    State* state = fleet->state_.get();
    KeeperSettings keeper;
    keeper.folder = state->settings.folder;
    keeper.fleet = state->settings.access.fleet;
    keeper.node = state->settings.access.node;
    for (const PublicKey& key : state->settings.access.pinned) keeper.trusted.push_back(key.id());
    keeper.fetch = [state](const Blob& blob, const std::string& path, const std::string& before,
                           int interrupt) { return state->fetch(blob, path, before, interrupt); };
    SIEVE_ASSIGN(state->keeper, NodeKeeper::start(std::move(keeper), node, log));
    state->supervisor = std::thread([state] { state->supervise(); });
    return fleet;
}

FleetNode::~FleetNode() {
    if (!state_) return;
    set_event(state_->cancel.get());
    if (state_->supervisor.joinable()) state_->supervisor.join();
    state_->keeper.reset();
}

void FleetNode::look_again() {
    state_->keeper->look_again();
}

} // namespace sieve::fleet
