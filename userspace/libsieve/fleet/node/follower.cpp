// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/node/follower.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "libsieve/fleet/manifest/publication.hpp"
#include "libsieve/fleet/manifest/rollout_health.hpp"
#include "libsieve/fleet/node/server_addresses.hpp"
#include "libsieve/fleet/servers/etcd_paths.hpp"
#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/util/random/chance.hpp"
#include "libsieve/util/system/event.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::fleet {

namespace {

using Clock = std::chrono::steady_clock;
using service::LogLevel;

// Of the time between two reports: a node that missed two of them is away.
constexpr int lease_reports = 3;

} // namespace

struct Follower::State {
    State(FollowerSettings given, Node& its_node, UniqueFd its_cancel, UniqueFd its_news)
        : settings(std::move(given)), node(its_node), cancel(std::move(its_cancel)),
          news(std::move(its_news)), etcd(settings.access.etcd, cancel.get()), servers(settings.servers) {}

    FollowerSettings settings;
    Node& node;
    UniqueFd cancel; // readable: the threads are to end
    UniqueFd news;   // readable: the mailbox has something

    std::mutex mutex;
    std::optional<EtcdKeys> mailbox;
    std::string trouble;                    // why the watcher cannot ask etcd; empty: it can
    std::atomic<std::uint64_t> contact = 0; // when etcd answered last, in milliseconds of Clock

    // The worker's own.
    EtcdClient etcd;
    ServerAddresses servers;
    std::vector<ServerAddress> server_addresses;
    std::optional<Clock::time_point> next_look_up;
    std::int64_t lease = 0;
    std::string reported;
    bool reaches_etcd = true; // as far as the last report knows
    NodeReport report;
    std::optional<Result<Publication>> published; // what the last news say
    std::optional<Clock::time_point> retry;

    // What is to be done about what is published.
    enum class NextStep : std::uint8_t {
        nothing,   // is published, or it is not this node's turn
        bring_in,  // the node does it
        refused,   // it is not right
        not_valid, // it is right, and not valid now for a node that has none yet
    };
    NextStep next_step = NextStep::nothing;
    std::string refusal;

    std::thread watcher;
    std::thread worker;

    // The watcher.

    void watch() {
        EtcdClient client(settings.access.etcd, cancel.get());
        const EtcdPaths paths(settings.access.fleet);
        follow_keys(client, paths.now(), settings.view,
                    {.changed =
                         [this](const EtcdKeys& now) {
                             note_contact();
                             const std::lock_guard lock(mutex);
                             mailbox = now;
                             set_event(news.get());
                             return true;
                         },
                     .answered =
                         [this] {
                             note_contact();
                             if (!note_trouble({}).empty())
                                 node.say(LogLevel::notice, "fleet: etcd answers again");
                         },
                     .trouble =
                         [this](const Error& error, unsigned) {
                             if (!note_trouble(error.message).empty()) return;
                             node.say(
                                 LogLevel::warning,
                                 fmt::format("fleet: etcd does not answer, and what is in force stays: {}",
                                             error.message));
                         }});
    }

    void note_contact() {
        contact = static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count());
    }
    // What was noted before.
    std::string note_trouble(const std::string& why) {
        const std::lock_guard lock(mutex);
        return std::exchange(trouble, why);
    }

    // The worker.

    void work() {
        report.node = settings.access.node;
        report.labels = settings.labels;
        auto next_report = Clock::now();
        refresh_report();
        while (!etcd.http().cancelled()) {
            auto until = std::min(next_report, Clock::now() + pace());
            if (retry) until = std::min(until, *retry);
            if (next_look) until = std::min(until, *next_look);
            const bool told = wait_for_news(until);
            if (etcd.http().cancelled()) return;
            const bool again = retry && Clock::now() >= *retry;
            const bool has_mail = told && take_mail();
            if (has_mail) look_up_servers(); // before a list may name them
            if (has_mail || again) act();
            refresh_report();
            steer();
            tell();
            const bool due = Clock::now() >= next_report;
            if (!due && !reaches_etcd) continue;
            const bool sent = reaches_etcd = send_report(due);
            if (sent && !due) continue;
            const auto wait = sent ? settings.report : std::min(settings.report, retry_after_failure);
            next_report = Clock::now() + service::jittered(wait, chance());
        }
    }

    void look_up_servers() {
        constexpr std::chrono::minutes lasts{1};
        if (next_look_up && Clock::now() < *next_look_up) return;
        next_look_up = Clock::now() + lasts;
        server_addresses = servers.look_up();
        tell();
    }

    static constexpr std::chrono::milliseconds retry_after_failure{std::chrono::seconds(2)};

    [[nodiscard]] std::chrono::milliseconds pace() const {
        return report.state == NodeState::fetching ? settings.poll_busy : settings.poll_idle;
    }

    // True: the mailbox has something.
    bool wait_for_news(Clock::time_point until) const {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(
            std::max(until - Clock::now(), Clock::duration::zero()));
        std::array<pollfd, 2> all{{{news.get(), POLLIN, 0}, {cancel.get(), POLLIN, 0}}};
        (void)::poll(all.data(), all.size(), static_cast<int>(left.count()));
        if (all[0].revents == 0) return false;
        clear_event(news.get());
        return true;
    }

    bool take_mail() {
        std::optional<EtcdKeys> mail;
        {
            const std::lock_guard lock(mutex);
            mail = std::exchange(mailbox, std::nullopt);
        }
        if (!mail) return false;
        published = publication_in(*mail, settings.access.fleet, settings.access.pinned);
        well_since.reset();
        // Many nodes have just got the same news.
        next_look = Clock::now() + service::jittered(settings.health_interval, chance(), 0.5);
        return true;
    }

    // Finds out what this node is to do about what is published, and has it done.
    void act() {
        retry.reset();
        if (!published) return;
        const Status done = *published ? take_turn(**published) : tl::unexpected(published->error());
        if (done) return;
        (void)refuse(NextStep::refused, done.error().message);
        // It may be this host that is not right, such as a disk that is full.
        if (*published) retry = Clock::now() + settings.ask_again;
    }

    Status refuse(NextStep how, const std::string& why) {
        next_step = how;
        if (std::exchange(refusal, why) != why)
            node.say(LogLevel::error, fmt::format("fleet: refused, and what is in force stays: {}", why));
        return {};
    }

    Status take_turn(const Publication& news) {
        const FleetAccess& access = settings.access;
        const NodeView view = node.view();
        if (!news.manifest) {
            if (view.has_accepted) return bad_input("nothing is published any more");
            return to(NextStep::nothing);
        }
        const SignedManifest& manifest = *news.manifest;
        if (Status accepted = node.accept(manifest); !accepted) {
            if (accepted.error().kind != ErrorKind::no) return accepted;
            retry = Clock::now() + settings.ask_again; // by another time of day
            // No fault of the rollout's: the nodes that have the manifest go on with it.
            return refuse(NextStep::not_valid, accepted.error().message);
        }
        report.stage = stage_of(manifest.manifest, manifest.digest, access.node, settings.labels);
        if (!news.rollout) return bad_input("the rollout has no record");
        const bool has_begun = manifest.digest == view.held || manifest.digest == view.wanted;
        const std::optional<Turn> whose = turn_of(manifest, *news.rollout, report.stage, has_begun);
        if (!whose) return bad_input("the record of the rollout is about another manifest");
        if (*whose == Turn::now) return bring_in(manifest);
        const bool goes_back = news.rollout->state == RolloutState::rolled_back;
        // Its turn has not come: it keeps what it has, unless that is nothing.
        if (manifest.manifest.previous.empty() || (!goes_back && !view.held.empty()))
            return to(NextStep::nothing);
        const Result<SignedManifest> earlier =
            read_earlier(etcd, access.fleet, access.pinned, manifest.manifest.previous);
        if (!earlier) return tl::unexpected(earlier.error());
        return bring_in(*earlier);
    }

    Status to(NextStep now) {
        next_step = now;
        refusal.clear();
        return {};
    }
    Status bring_in(const SignedManifest& manifest) {
        SIEVE_TRY(node.bring_in(manifest));
        report.wanted = manifest.digest;
        return to(NextStep::bring_in);
    }

    void tell() {
        FollowerNews news;
        news.fleet = settings.access.fleet;
        if (published && !*published)
            news.published = Finding::wrong;
        else if (published)
            news.published = (*published)->manifest ? Finding::manifest : Finding::nothing;
        if (news.published == Finding::manifest) {
            const Publication& now = **published;
            news.serial = now.manifest->manifest.serial;
            news.valid_until = now.manifest->manifest.valid_until;
            news.stages = static_cast<std::uint32_t>(now.manifest->manifest.rollout.stages.size());
            news.own_stage =
                stage_of(now.manifest->manifest, now.manifest->digest, settings.access.node, settings.labels);
            if (now.rollout && now.rollout->manifest == now.manifest->digest) {
                news.rollout = now.rollout->state;
                news.stage = now.rollout->stage;
                news.why = now.rollout->why;
            }
        }
        if (next_step == NextStep::refused || next_step == NextStep::not_valid) news.refusal = refusal;
        {
            const std::lock_guard lock(mutex);
            news.etcd_trouble = trouble;
        }
        if (news.etcd_trouble.empty() && !reaches_etcd) news.etcd_trouble = "etcd does not take the report";
        news.contact = contact;
        news.servers = server_addresses;
        if (told != news) node.tell(told.emplace(std::move(news)));
    }
    std::optional<FollowerNews> told;

    void refresh_report() {
        NodeView view = node.view();
        report.manifest = view.in_force;
        report.sets = std::move(view.sets);
        report.before = view.before;
        report.after = view.after;
        switch (next_step) {
        case NextStep::nothing:
            report.wanted = view.in_force;
            return come_to(NodeState::waiting);
        case NextStep::refused:
            return come_to(NodeState::refused, refusal);
        case NextStep::not_valid:
            report.wanted = view.in_force;
            return come_to(NodeState::waiting, refusal);
        case NextStep::bring_in:
            return come_to(view.wanted == report.wanted ? view.state : NodeState::fetching, view.error);
        }
    }

    void come_to(NodeState state, const std::string& error = {}) {
        if (report.state == state && report.error == error) return;
        report.state = state;
        report.error = error;
        report.since = milliseconds_now();
    }

    // Takes the rollout further, or stops it, if that is due: any node may.
    void steer() {
        if (!published) return;
        const Publication* const news = *published ? &**published : nullptr;
        if (news == nullptr || !news->manifest || !news->rollout ||
            news->rollout->manifest != news->manifest->digest ||
            news->rollout->state != RolloutState::running) {
            watched = {};
            return next_look.reset();
        }
        // A node's own fault needs no other node's report.
        std::string fault =
            report.stage <= news->rollout->stage ? fault_of(*news->manifest, report) : std::string();
        if (!fault.empty()) return propose(*news, stopped(*news->manifest, *news->rollout, std::move(fault)));
        if (!next_look || Clock::now() < *next_look) return;
        check_health(*news);
    }

    void check_health(const Publication& news) {
        const EtcdPaths paths(settings.access.fleet);
        const Result<EtcdKeys> read = etcd.read_prefix(paths.nodes());
        // Many nodes look less often each, so that etcd is asked as often as by a few.
        const double crowd = read ? 1 + static_cast<double>(read->keys.size()) / 10 : 1;
        const auto interval =
            std::chrono::duration_cast<std::chrono::milliseconds>(settings.health_interval * crowd);
        next_look = Clock::now() + service::jittered(interval, chance(), 0.5);
        if (!read) return;
        std::vector<TakenReport> nodes;
        for (const auto& [key, value] : read->keys)
            if (Result<NodeReport> one = parse_report(value.value, key.substr(paths.nodes().size())))
                nodes.push_back({std::move(*one), value.modified});
        StageHealth found = watched.look(*news.manifest, *news.rollout, nodes);
        if (found.health == Health::unwell)
            return propose(news, stopped(*news.manifest, *news.rollout, found.why));
        RolloutRecord record = *news.rollout;
        if (found.health == Health::pending) {
            well_since.reset();
            // Whoever looks is to see what it waits for.
            if (std::exchange(record.why, found.why) == found.why) return;
            return propose(news, record);
        }
        const auto now = Clock::now();
        if (!well_since) well_since = now;
        const auto soak = std::chrono::seconds(news.manifest->manifest.rollout.soak_seconds);
        const auto over = *well_since + soak;
        if (now < over) {
            next_look = std::max(*next_look, over);
            return;
        }
        if (soak.count() != 0 && !watched.all_reported_again()) return;
        record = next_stage(*news.manifest, std::move(record));
        record.why = found.why;
        propose(news, std::move(record));
    }

    void propose(const Publication& news, RolloutRecord record) {
        // A record that only says something else is as old as before.
        const RolloutRecord& before = *news.rollout;
        if (record.state != before.state || record.stage != before.stage) record.since = milliseconds_now();
        record.by = settings.access.node;
        next_look = Clock::now() +
                    service::jittered(settings.health_interval, chance(), 0.5); // if it does not come about
        const Result<bool> won = change_rollout(etcd, news, record);
        if (!won || !*won) return; // the watch tells what somebody else did
        node.say(LogLevel::notice, fmt::format("fleet: the rollout of {} is {} at stage {}{}{}",
                                               brief(record.manifest), rollout_state_name(record.state),
                                               record.stage + 1, record.why.empty() ? "" : ": ", record.why));
    }

    std::optional<Clock::time_point> next_look; // at the health of others
    std::optional<Clock::time_point> well_since;
    RolloutWatch watched;

    // Under the node's key, with a lease. `due`: even if nothing has changed. False: etcd does not answer.
    bool send_report(bool due) {
        NodeReport bare = report; // without what changes with every packet
        bare.before = bare.after = {};
        std::string essence = report_text(bare);
        if (!due && essence == sent_essence) return true;
        if (due) reported.clear(); // whoever judges the rollout is to see that this node is there
        if (!keep_lease() || !put_report(report_text(report))) {
            sent_essence.clear();
            return false;
        }
        sent_essence = std::move(essence);
        return true;
    }

    bool keep_lease() {
        if (lease != 0) {
            const Result<bool> alive = etcd.keep_alive(lease);
            if (!alive) return false;
            note_contact();
            if (*alive) return true;
        }
        const auto life = std::max(std::chrono::seconds(5),
                                   std::chrono::ceil<std::chrono::seconds>(settings.report * lease_reports));
        const Result<std::int64_t> granted = etcd.grant_lease(life);
        if (!granted) return false;
        lease = *granted;
        reported.clear(); // what had the old lease is gone
        report_revision = 0;
        return put_report(report_text(report));
    }

    bool put_report(const std::string& text) {
        if (text == reported) return true;
        const std::string key = EtcdPaths(settings.access.fleet).node(settings.access.node);
        EtcdTransaction put{.puts = {{key, text, lease}}};
        if (const std::int64_t before = std::exchange(report_revision, 0); before != 0)
            put.conditions.push_back({key, before});
        Result<EtcdOutcome> outcome = etcd.commit(put);
        if (outcome && !outcome->succeeded) {
            look_for_twin(key);
            put.conditions.clear();
            outcome = etcd.commit(put);
        }
        if (!outcome) return false;
        report_revision = outcome->revision;
        note_contact();
        reported = text;
        return true;
    }

    // Each of two hosts with one name hides the other from `fleet status` and from the rollout. A report
    // whose answer got lost has this node's lease.
    void look_for_twin(const std::string& key) {
        const Result<EtcdKeys> now = etcd.read(key);
        if (!now || !now->keys.contains(key) || now->keys.at(key).lease == lease) return;
        if (std::exchange(told_of_twin, true)) return;
        node.say(LogLevel::warning,
                 fmt::format("fleet: somebody else reports as node {}, too; expected a name that no other "
                             "host of the fleet has",
                             settings.access.node));
    }

    std::string sent_essence;
    std::int64_t report_revision = 0; // of this node's last report; 0: not known
    bool told_of_twin = false;
};

Result<std::unique_ptr<Follower>> Follower::start(FollowerSettings settings, Node& node) {
    SIEVE_ASSIGN(UniqueFd cancel, make_event());
    SIEVE_ASSIGN(UniqueFd news, make_event());
    std::unique_ptr<Follower> follower(new Follower);
    follower->state_ = std::make_unique<State>(std::move(settings), node, std::move(cancel), std::move(news));
    State* state = follower->state_.get();
    state->watcher = std::thread([state] { state->watch(); });
    state->worker = std::thread([state] { state->work(); });
    return follower;
}

Follower::~Follower() {
    if (!state_) return;
    set_event(state_->cancel.get());
    state_->watcher.join();
    state_->worker.join();
}

} // namespace sieve::fleet
