// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/node/node_keeper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/fleet/manifest/acceptance.hpp"
#include "libsieve/fleet/manifest/publication.hpp"
#include "libsieve/fleet/node/node_store.hpp"
#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/util/files/digest.hpp"
#include "libsieve/util/random/chance.hpp"
#include "libsieve/util/system/event.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/text/name_some.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::fleet {

namespace {

using Clock = std::chrono::steady_clock;

// Reading all counters of the kernel more often would cost more than it tells.
constexpr std::chrono::seconds traffic_lasts{1};

// The digest that the service knows contents by.
Result<std::string> content_digest(const std::string& path) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file) return bad_input(fmt::format("{}: {}", printable(path), errno_text(errno)));
    Digest digest;
    std::vector<char> block(std::size_t{1} << 16);
    for (;;) {
        const ssize_t got = ::read(file.get(), block.data(), block.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return bad_input(fmt::format("{}: {}", printable(path), errno_text(errno)));
        if (got == 0) return digest.hex();
        digest.add({block.data(), static_cast<std::size_t>(got)});
    }
}

NodeTraffic difference(const NodeTraffic& now, const NodeTraffic& then) {
    const auto since = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
    return {since(now.packets, then.packets), since(now.matched, then.matched),
            since(now.dropped, then.dropped)};
}

} // namespace

struct NodeKeeper::State {
    State(KeeperSettings given, const LocalNode& local, service::Log& its_log, NodeStore its_store,
          UniqueFd its_event)
        : settings(std::move(given)), node(local), log(its_log), store(std::move(its_store)),
          event(std::move(its_event)) {}

    KeeperSettings settings;
    const LocalNode& node;
    service::Log& log;
    const NodeStore store;
    UniqueFd event; // readable: there is something else to do than what the worker does

    std::mutex telling; // what is told last is the latest
    std::mutex mutex;   // of what follows
    std::optional<SignedManifest> wanted;
    bool ending = false;
    NodeState state = NodeState::waiting;
    std::string error;
    std::string in_force;
    bool store_failed = false;  // that is why the wanted manifest is not in force
    std::uint64_t failures = 0; // attempts
    FollowerNews news;
    std::string last_error; // of any kind
    std::chrono::system_clock::time_point last_error_at;
    NodeTraffic counted;               // when the last switch had come into force
    std::optional<NodeTraffic> before; // the last switch, since what was before it had come into force
    NodeTraffic traffic;
    std::optional<Clock::time_point> traffic_at;

    std::thread worker;

    // The worker's own.
    // By set, the first visit to its sources that is sure to have begun after a switch.
    using Visits = std::map<std::string, std::uint64_t>;
    std::string switched_to; // what it is not known of yet whether it comes into force
    Visits after_switch;

    // What was accepted of this fleet. A host may have left another one, whose serials say nothing here.
    [[nodiscard]] Result<std::optional<AcceptedManifest>> accepted() const {
        SIEVE_ASSIGN(std::optional<AcceptedManifest> last, store.accepted());
        if (last && !last->fleet.empty() && last->fleet != settings.fleet) last.reset();
        return last;
    }

    // True: something else is to be done.
    [[nodiscard]] bool wait(std::optional<std::chrono::milliseconds> time) const {
        pollfd one{event.get(), POLLIN, 0};
        return ::poll(&one, 1, time ? static_cast<int>(time->count()) : -1) > 0;
    }

    // A set of a manifest that is configured here.
    struct Expected {
        std::string content{}; // digest of its blob, as the service knows contents
        // No visit to its sources that began before the switch is under way once this one has ended. What is
        // in force then stays, unless a later visit finds something else.
        std::uint64_t settled = 0;
        std::uint64_t judged = 0; // the first visit that is sure to have begun after the switch
    };
    using Expectations = std::map<std::string, Expected>;

    void work() {
        if (const std::string held = store.held(); !held.empty() && held == store.current())
            if (await(store.sets_of(held), {})) found_in_force(held);
        (void)store.know(store.sets_of(store.held())); // it may be an older version's
        unsigned failed_in_a_row = 0;
        std::optional<std::chrono::milliseconds> retry;
        for (;;) {
            if (wait(retry)) failed_in_a_row = 0;
            clear_event(event.get());
            std::optional<SignedManifest> job;
            {
                const std::lock_guard lock(mutex);
                if (ending) return;
                job = wanted;
            }
            retry.reset();
            if (!job) continue;
            const Status done = bring(*job);
            if (is_interrupted()) continue; // it is out of date
            if (done) continue;
            failed_in_a_row++;
            log.warning(fmt::format("fleet: manifest {} is not in force, and what was before stays: {}",
                                    brief(job->digest), done.error().message));
            note_failure(job->digest, done.error().message);
            retry = service::backoff_delay(failed_in_a_row, chance(), std::nullopt, settings.retry);
        }
    }

    void note_failure(const std::string& digest, std::string why) {
        {
            const std::lock_guard lock(mutex);
            failures++;
            if (wanted->digest == digest) { // nothing newer has been wanted since
                state = NodeState::failed;
                error = std::move(why);
            }
        }
        tell_standing();
    }

    // What is in force here of sets that the manifest does not have; empty: nothing.
    [[nodiscard]] std::string left_over(const std::string& digest,
                                        const std::map<std::string, LocalSet>& local) const {
        if (digest.empty()) return {};
        const std::map<std::string, std::string> published = store.sets_of(digest);
        std::vector<std::string> names;
        for (const auto& [name, set] : local)
            if (set.follows && !set.identity.empty() && !published.contains(name)) names.push_back(name);
        if (names.empty()) return {};
        return fmt::format("the manifest does not have {}, and what was in force of {} stays",
                           name_some(names), names.size() == 1 ? "it" : "them");
    }

    // How this host stands in its fleet, to whoever shows it.
    void tell_standing() {
        const std::lock_guard order(telling);
        const std::string held = store.held();
        const std::map<std::string, LocalSet> local = node.sets();
        service::watching::FleetStanding standing;
        {
            const std::lock_guard lock(mutex);
            if (news.fleet.empty()) return; // the follower has said nothing yet
            KeptManifests kept{.in_force = in_force,
                               .in_force_serial = store.serial_of(in_force),
                               .wanted_serial = wanted ? wanted->manifest.serial : store.serial_of(held),
                               .wanted_is_in_force = !wanted || wanted->digest == in_force,
                               .state = state,
                               .store_failed = store_failed,
                               .error = error,
                               .left_over = left_over(in_force, local),
                               .failures = failures};
            standing = standing_of(news, kept);
            standing.node = settings.node;
            if (!standing.error.empty() && standing.error != last_error) {
                last_error = standing.error;
                last_error_at = std::chrono::system_clock::now();
            }
            standing.last_error = last_error;
            if (!last_error.empty()) standing.last_error_at = last_error_at;
            if (news.contact != 0)
                standing.contact =
                    std::chrono::system_clock::now() -
                    std::chrono::duration_cast<std::chrono::system_clock::duration>(
                        Clock::now().time_since_epoch() - std::chrono::milliseconds(news.contact));
        }
        node.note(standing);
    }

    Status bring(const SignedManifest& manifest) {
        const std::map<std::string, LocalSet> local = node.sets();
        std::map<std::string, std::string> blobs;
        for (const ManifestSet& set : manifest.manifest.sets) {
            const auto here = local.find(set.name);
            if (here == local.end()) continue;
            SIEVE_TRY(check_set(set, here->second));
            blobs[set.name] = set.digest;
        }
        if (store.refused() != manifest.digest) SIEVE_TRY(store.refuse({}));
        // Whatever becomes of it, manifests that never came into force do not add up.
        std::set<std::string> needed;
        for (const auto& [name, digest] : blobs) needed.insert(digest);
        store.keep_only({manifest.digest, store.held(), store.current(), manifest.manifest.previous},
                        std::move(needed));
        const std::map<std::string, std::string> before = store.sets_of(store.held());
        for (const ManifestSet& set : manifest.manifest.sets) {
            if (!blobs.contains(set.name)) continue;
            const auto known = before.find(set.name);
            const bool may_be_alike = set.as == BlobKind::feed && known != before.end();
            Status fetched = settings.fetch({set.digest, set.bytes}, store.blob_path(set.digest),
                                            may_be_alike ? known->second : std::string(), event.get());
            note_store(fetched.has_value());
            if (!fetched) return fetched;
        }
        const bool switches = store.current() != manifest.digest;
        if (switches) {
            count_traffic(When::before);
            found_in_force({});
            if (goes_back(manifest)) SIEVE_TRY(store.know(blobs));
            SIEVE_TRY(store.switch_to(manifest));
            switched_to = manifest.digest;
            after_switch = next_visits();
        }
        // Or it was interrupted after its switch.
        const bool is_fresh = switched_to == manifest.digest;
        const std::string held = store.held();
        Status came = await(blobs, is_fresh ? after_switch : Visits());
        // Something newer decides by itself.
        if (!came && is_interrupted()) return came;
        switched_to.clear();
        if (!came) {
            // All sets of a manifest, or none.
            if (held.empty() || held == manifest.digest) return came;
            SIEVE_TRY(store.refuse(manifest.digest));
            SIEVE_TRY(store.switch_back(held));
            if (await(store.sets_of(held), next_visits())) {
                count_traffic(When::after);
                found_in_force(held);
            }
            return came;
        }
        if (is_fresh) count_traffic(When::after);
        if (held != manifest.digest) SIEVE_TRY(store.hold(manifest.digest));
        SIEVE_TRY(store.refuse({}));
        SIEVE_TRY(store.know(blobs));
        if (found_in_force(manifest.digest)) {
            log.notice(fmt::format("fleet: manifest {} is in force", brief(manifest.digest)));
            if (const std::string left = left_over(manifest.digest, node.sets()); !left.empty())
                log.warning("fleet: " + left);
        }
        store.keep_only({manifest.digest, held, manifest.manifest.previous});
        return {};
    }

    // Whether this node leaves a manifest for what was before it. A new node has left none.
    [[nodiscard]] bool goes_back(const SignedManifest& manifest) const {
        const std::optional<AcceptedManifest> last = accepted().value_or(std::nullopt);
        const bool is_before = last && last->digest != manifest.digest;
        return !store.held().empty() && (is_before || !manifest.manifest.rolls_back.empty());
    }

    void note_store(bool gives) {
        const std::lock_guard lock(mutex);
        store_failed = !gives;
    }

    // Whoever sees a manifest in force sees the state that goes with it. False: that was known.
    bool found_in_force(const std::string& digest) {
        bool news_to_us = false, arrives = false;
        {
            const std::lock_guard lock(mutex);
            news_to_us = std::exchange(in_force, digest) != digest;
            arrives = wanted && wanted->digest == digest && state != NodeState::in_force;
            if (arrives) {
                state = NodeState::in_force;
                error.clear();
            }
        }
        if (news_to_us || arrives) tell_standing();
        return news_to_us;
    }
    [[nodiscard]] bool is_interrupted() const { return wait(std::chrono::milliseconds(0)); }

    static Status check_set(const ManifestSet& set, const LocalSet& here) {
        if (!set.action.empty() && !here.action.empty() && set.action != here.action)
            return bad_input(fmt::format("set {}: the manifest says {}, and this node is configured to {}",
                                         set.name, set.action, here.action));
        if (!here.in_place.empty())
            return bad_input(
                fmt::format("set {}: {} on this node, and so changes in place; expected a set that "
                            "changes as a whole, with its manifest",
                            set.name, here.in_place));
        return {};
    }

    [[nodiscard]] Visits next_visits() const {
        Visits next;
        for (const auto& [name, set] : node.sets()) next[name] = set.begun + 1;
        return next;
    }

    // What must come about for the sets with these blobs. Called after the switch, if there is one.
    [[nodiscard]] Result<Expectations> expect(const std::map<std::string, std::string>& blobs,
                                              const Visits& after) const {
        Expectations expected;
        const std::map<std::string, LocalSet> local = node.sets();
        for (const auto& [name, digest] : blobs) {
            const auto here = local.find(name);
            if (here == local.end()) continue;
            Expected& one = expected[name];
            SIEVE_ASSIGN(one.content, content_digest(store.blob_path(digest)));
            one.settled = std::max<std::uint64_t>(1, here->second.begun);
            const auto first = after.find(name);
            one.judged = first == after.end() ? one.settled : std::min(first->second, here->second.begun + 1);
        }
        return expected;
    }

    // Waits until the sets with these blobs are in force: for the daemon, and then for the kernel.
    [[nodiscard]] Status await(const std::map<std::string, std::string>& blobs, const Visits& after) const {
        SIEVE_ASSIGN(const Expectations expected, expect(blobs, after));
        const auto deadline = Clock::now() + settings.patience;
        for (;;) {
            SIEVE_ASSIGN(const bool visited, were_visited(expected));
            std::string trouble;
            if (visited) {
                SIEVE_ASSIGN(const bool all, all_run(expected, trouble));
                if (all) return {};
                if (!trouble.empty()) return bad_input(trouble);
            }
            if (Clock::now() >= deadline) return bad_input("the daemon did not bring it in");
            if (wait(settings.poll_busy)) return bad_input("something newer is to be brought in");
        }
    }

    // Whether each set was asked and taken. Errors: one was refused, or does not have the fleet's file as a
    // source.
    [[nodiscard]] Result<bool> were_visited(const Expectations& expected) const {
        bool all = true;
        const std::map<std::string, LocalSet> local = node.sets();
        for (const auto& [name, wanted] : expected) {
            const auto here = local.find(name);
            if (here == local.end()) continue; // a reload took it away
            const LocalSet& set = here->second;
            const bool has_it = std::ranges::find(set.contents, wanted.content) != set.contents.end();
            if (set.ended >= wanted.settled && set.trouble.empty() && has_it) continue;
            all = false;
            if (set.ended < wanted.judged) continue;
            if (!set.trouble.empty()) return bad_input(set.trouble);
            if (has_it) continue; // a later visit is under way
            return bad_input(
                fmt::format("set {}: does not read the fleet's file, expected {}/current/{} among its "
                            "sources",
                            name, store.folder(), name));
        }
        return all;
    }

    // Whether the kernel runs what the daemon remembers of these sets, and nothing else in their names.
    [[nodiscard]] Result<bool> all_run(const Expectations& expected, std::string& trouble) const {
        SIEVE_ASSIGN(const FiltersInForce running, node.running());
        const std::map<std::string, LocalSet> local = node.sets();
        for (const auto& [name, wanted] : expected) {
            const auto here = local.find(name);
            const auto found = running.identities.find(name);
            if (here == local.end()) continue;
            // A set without an interface runs nowhere, and has no verdict to get wrong.
            if (found == running.identities.end() && running.trouble.empty()) continue;
            if (found != running.identities.end() &&
                found->second == std::set<std::string>{here->second.identity})
                continue;
            trouble = running.trouble;
            return false;
        }
        return true;
    }

    // Packets that come while a manifest is on its way in are neither before nor after.
    enum class When : std::uint8_t { before, after };
    void count_traffic(When when) {
        const NodeTraffic now = node.traffic();
        const std::lock_guard lock(mutex);
        if (when == When::before)
            before = difference(now, counted);
        else
            counted = now;
        traffic = now;
        traffic_at = Clock::now();
    }

    NodeView view() {
        NodeView view;
        view.has_accepted = accepted().value_or(std::nullopt).has_value();
        view.held = store.held();
        const std::map<std::string, LocalSet> local = node.sets();
        for (const auto& [name, set] : local)
            if (!set.identity.empty()) view.sets[name] = set.identity;
        const std::lock_guard lock(mutex);
        if (!traffic_at || Clock::now() - *traffic_at >= traffic_lasts) {
            traffic = node.traffic();
            traffic_at = Clock::now();
        }
        view.in_force = in_force;
        view.wanted = wanted ? wanted->digest : std::string();
        view.state = state;
        view.error = state == NodeState::in_force ? left_over(in_force, local) : error;
        view.before = before.value_or(NodeTraffic{});
        view.after = difference(traffic, counted);
        return view;
    }
};

Result<std::unique_ptr<NodeKeeper>> NodeKeeper::start(KeeperSettings settings, const LocalNode& node,
                                                      service::Log& log) {
    SIEVE_ASSIGN(NodeStore store, NodeStore::open(settings.folder));
    SIEVE_ASSIGN(UniqueFd event, make_event());
    std::unique_ptr<NodeKeeper> keeper(new NodeKeeper);
    keeper->state_ =
        std::make_unique<State>(std::move(settings), node, log, std::move(store), std::move(event));
    State* state = keeper->state_.get();
    state->worker = std::thread([state] { state->work(); });
    return keeper;
}

NodeKeeper::~NodeKeeper() {
    if (!state_) return;
    {
        const std::lock_guard lock(state_->mutex);
        state_->ending = true;
    }
    set_event(state_->event.get());
    state_->worker.join();
}

NodeView NodeKeeper::view() {
    return state_->view();
}

Status NodeKeeper::accept(const SignedManifest& manifest) {
    SIEVE_ASSIGN(const std::optional<AcceptedManifest> before, state_->accepted());
    SIEVE_TRY(check_succession(manifest, before, state_->settings.trusted, milliseconds_now()));
    const AcceptedManifest accepted = accepted_as(manifest, before);
    if (before == accepted) return {};
    return state_->store.accept(accepted);
}

Status NodeKeeper::bring_in(const SignedManifest& manifest) {
    SIEVE_ASSIGN(const std::optional<AcceptedManifest> accepted, state_->accepted());
    SIEVE_TRY(check_turn(manifest, accepted, state_->store.held().empty()));
    {
        const std::lock_guard lock(state_->mutex);
        if (state_->wanted && state_->wanted->digest == manifest.digest) return {};
        state_->wanted = manifest;
        state_->state = NodeState::fetching;
        state_->error.clear();
        state_->store_failed = false;
    }
    state_->tell_standing();
    set_event(state_->event.get());
    return {};
}

void NodeKeeper::tell(const FollowerNews& news) {
    state_->node.depend_on(news.servers);
    {
        const std::lock_guard lock(state_->mutex);
        state_->news = news;
    }
    state_->tell_standing();
}

void NodeKeeper::say(service::LogLevel level, const std::string& sentence) {
    state_->log.write(level, sentence, {});
}

void NodeKeeper::look_again() {
    set_event(state_->event.get());
}

} // namespace sieve::fleet
