// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// etcd by its v3 JSON gateway: reading keys, transactions, leases and watches.
// https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/ describes the gateway.
//
// A request goes to the endpoint that answered last. If that endpoint does not answer, or has no leader, the
// others are asked in turn. A transaction whose answer got lost may have been carried out: whoever needs to
// know reads what is there.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "libsieve/fleet/servers/http_client.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::fleet {

struct EtcdSettings {
    std::vector<std::string> endpoints{}; // "https://host:2379"
    HttpCredentials access{};             // only its files
    std::string user{};                   // of etcd; empty: etcd asks for none
    std::string password{};
    std::chrono::milliseconds patience{std::chrono::seconds(5)}; // with one endpoint
};

struct EtcdValue {
    std::string value{};
    std::int64_t created = 0;  // revision
    std::int64_t modified = 0; // revision
    std::int64_t lease = 0;    // 0: none
};

// Some keys at one revision.
struct EtcdKeys {
    std::int64_t revision = 0;
    std::map<std::string, EtcdValue> keys{};
};

// One condition, and what is written if all conditions hold.
struct EtcdCondition {
    std::string key{};
    std::int64_t modified = 0; // the key's revision; 0: the key is not there
};
struct EtcdPut {
    std::string key{};
    std::string value{};
    std::int64_t lease = 0;
};
struct EtcdTransaction {
    std::vector<EtcdCondition> conditions{};
    std::vector<EtcdPut> puts{};
    std::vector<std::string> removals{}; // keys
};
struct EtcdOutcome {
    bool succeeded = false; // all conditions held, and everything was written
    std::int64_t revision = 0;
};

struct EtcdChange {
    std::string key{};
    bool removed = false;
    EtcdValue value{};
};

enum class WatchEnd : std::uint8_t {
    ended,     // the connection, its time, or etcd ended it
    compacted, // etcd no longer has the changes from that revision on: read the keys again
    behind,    // etcd is before that revision, so it has lost data: read the keys again
    stopped,   // the caller wanted no more
};

class EtcdClient {
  public:
    // `cancel`: see HttpClient.
    explicit EtcdClient(EtcdSettings settings, int cancel = -1);
    EtcdClient(EtcdClient&&) noexcept;
    EtcdClient& operator=(EtcdClient&&) noexcept;
    ~EtcdClient();

    // All keys with this beginning, or this key alone. Linearizable. bad_input: no endpoint answered, or one
    // answered with an error; the message names both.
    [[nodiscard]] Result<EtcdKeys> read_prefix(const std::string& prefix);
    [[nodiscard]] Result<EtcdKeys> read(const std::string& key);

    [[nodiscard]] Result<EtcdOutcome> commit(const EtcdTransaction& transaction);

    // A lease of at least so many seconds. Keys that are put with it vanish when it ends.
    [[nodiscard]] Result<std::int64_t> grant_lease(std::chrono::seconds life);
    // False: there is no such lease any more.
    [[nodiscard]] Result<bool> keep_alive(std::int64_t lease);
    [[nodiscard]] Status revoke_lease(std::int64_t lease);

    // Tells changes of keys with this beginning, from this revision on, until the caller says false or
    // something ends it. All changes of one transaction come in one call. `time` is the longest it may last.
    [[nodiscard]] Result<WatchEnd>
    watch(const std::string& prefix, std::int64_t revision, std::chrono::milliseconds time,
          const std::function<bool(std::int64_t revision, const std::vector<EtcdChange>& changes)>& tell);

    // Asks another endpoint first from now on.
    void prefer_next_endpoint();

    [[nodiscard]] const HttpClient& http() const;
    // Requests that were sent so far, for measurements.
    [[nodiscard]] std::uint64_t requests() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

// The end of the range of keys with this beginning, as etcd wants it.
[[nodiscard]] std::string end_of_prefix(std::string prefix);

} // namespace sieve::fleet
