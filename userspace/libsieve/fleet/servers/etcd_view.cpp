// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/servers/etcd_view.hpp"

#include "libsieve/util/random/chance.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace sieve::fleet {

namespace {

class View {
  public:
    View(EtcdClient& client, const std::string& prefix, const ViewOptions& options,
         const ViewListener& listener)
        : client_(client), prefix_(prefix), options_(options), listener_(listener) {}

    void follow() {
        while (!done_ && !client_.http().cancelled()) {
            if (const Status went = read_and_watch(); !went && !done_ && !client_.http().cancelled()) {
                failures_++;
                client_.prefer_next_endpoint();
                if (listener_.trouble) listener_.trouble(went.error(), failures_);
                client_.http().wait(
                    service::backoff_delay(failures_, chance(), std::nullopt, options_.backoff));
            }
        }
    }

  private:
    Status read_and_watch() {
        SIEVE_ASSIGN(EtcdKeys keys, client_.read_prefix(prefix_));
        if (cut_off_ < most_cut_off) {
            failures_ = 0;
            if (listener_.answered) listener_.answered();
        }
        tell(std::move(keys));
        if (done_) return {};
        // It is soon known of a watch that was cut off whether the next one lasts.
        const auto longest = cut_off_ < most_cut_off
                                 ? options_.longest_watch
                                 : std::min(options_.longest_watch, options_.backoff.most);
        const auto time = service::jittered(longest, chance());
        const auto began = std::chrono::steady_clock::now();
        const Result<WatchEnd> end =
            client_.watch(prefix_, keys_.revision + 1, time,
                          [this](std::int64_t revision, const std::vector<EtcdChange>& changes) {
                              return apply(revision, changes);
                          });
        // A watch whose time is over was cut off by this side.
        const auto lasted = std::chrono::steady_clock::now() - began;
        if (!end && lasted < time) return tl::unexpected(end.error());
        // Compaction and lost data end one. If each one ends at once, asking on would load this host and
        // etcd.
        cut_off_ = lasted < options_.backoff.first && !done_ ? cut_off_ + 1 : 0;
        if (cut_off_ < most_cut_off) return {};
        return bad_input(
            "watches of etcd end as soon as they begin; expected a server, or a proxy, that lets "
            "them last");
    }

    // The first reading is told; a later one if anything differs.
    void tell(EtcdKeys keys) {
        const bool same = told_ && same_values(keys, keys_);
        keys_ = std::move(keys);
        if (same) return;
        told_ = true;
        done_ = !listener_.changed(keys_);
    }

    // Revisions count, too: an etcd that lost its data may come back with the same values.
    static bool same_values(const EtcdKeys& a, const EtcdKeys& b) {
        if (a.keys.size() != b.keys.size()) return false;
        for (auto one = a.keys.begin(), other = b.keys.begin(); one != a.keys.end(); ++one, ++other)
            if (one->first != other->first || one->second.modified != other->second.modified ||
                one->second.value != other->second.value)
                return false;
        return true;
    }

    bool apply(std::int64_t revision, const std::vector<EtcdChange>& changes) {
        keys_.revision = revision;
        for (const EtcdChange& change : changes) {
            if (change.removed)
                keys_.keys.erase(change.key);
            else
                keys_.keys[change.key] = change.value;
        }
        done_ = !listener_.changed(keys_);
        return !done_;
    }

    EtcdClient& client_;
    const std::string& prefix_;
    const ViewOptions& options_;
    const ViewListener& listener_;
    EtcdKeys keys_;
    unsigned failures_ = 0;
    static constexpr unsigned most_cut_off = 2;
    unsigned cut_off_ = 0; // watches in a row that ended at once
    bool told_ = false;
    bool done_ = false;
};

} // namespace

void follow_keys(EtcdClient& client, const std::string& prefix, const ViewOptions& options,
                 const ViewListener& listener) {
    View(client, prefix, options, listener).follow();
}

} // namespace sieve::fleet
