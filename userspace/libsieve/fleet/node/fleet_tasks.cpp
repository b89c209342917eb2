// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/node/fleet_tasks.hpp"

#include <poll.h>

#include <array>
#include <csignal>
#include <memory>
#include <utility>

#include "libsieve/fleet/manifest/fields.hpp"
#include "libsieve/fleet/node/follower.hpp"
#include "libsieve/fleet/node/node_link.hpp"
#include "libsieve/fleet/servers/delta.hpp"
#include "libsieve/fleet/servers/object_store.hpp"
#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/service/sandbox/child.hpp"

namespace sieve::fleet {

namespace {

constexpr std::uint64_t most_elements = 65536; // of an order's lists

void write(FieldWriter& to, const std::vector<std::string>& texts) {
    to.number(texts.size());
    for (const std::string& text : texts) to.text(text);
}
void read(FieldReader& from, std::vector<std::string>& texts) {
    texts.resize(from.number(most_elements));
    for (std::string& text : texts) text = from.text();
}

void write(FieldWriter& to, const HttpCredentials& access) {
    for (const auto* text : {&access.server.authorities, &access.server.certificate, &access.server.key,
                             &access.user, &access.password, &access.region})
        to.text(*text);
}
void read(FieldReader& from, HttpCredentials& access) {
    for (auto* text : {&access.server.authorities, &access.server.certificate, &access.server.key,
                       &access.user, &access.password, &access.region})
        *text = from.text();
}

// Orders hold secrets of any bytes, and travel as JSON.
std::string as_text(const FieldWriter& fields) {
    return to_base64(fields.bytes());
}

Result<FollowOrder> read_follow(std::string_view fields) {
    FieldReader from(fields);
    FollowOrder order;
    order.access.fleet = from.text();
    order.access.node = from.text();
    read(from, order.access.etcd.endpoints);
    read(from, order.access.etcd.access);
    order.access.etcd.user = from.text();
    order.access.etcd.password = from.text();
    order.access.etcd.patience = std::chrono::milliseconds(from.number());
    std::vector<std::string> keys;
    read(from, keys);
    for (const std::string& pem : keys) {
        SIEVE_ASSIGN(PublicKey key, PublicKey::from_pem(pem, "a trusted key"));
        order.access.pinned.push_back(std::move(key));
    }
    read(from, order.labels);
    order.report = std::chrono::milliseconds(from.number());
    read(from, order.servers);
    if (!from.complete()) return bad_input("expected the order of a follower");
    return order;
}

Result<BlobOrder> read_blob(std::string_view fields) {
    FieldReader from(fields);
    BlobOrder order;
    order.store.url = from.text();
    read(from, order.store.access);
    order.store.rate = from.number();
    order.store.silence = std::chrono::seconds(from.number());
    order.blob.digest = from.text();
    order.blob.bytes = from.number();
    order.before = from.text();
    if (!from.complete()) return bad_input("expected the order for a blob");
    return order;
}

// Until the parent ends it.
Status follow(const std::string& message) {
    const auto fields = from_base64(message);
    if (!fields) return bad_input("expected the order of a follower");
    SIEVE_ASSIGN(FollowOrder order, read_follow(*fields));
    RemoteNode node(service::child_descriptor::first);
    FollowerSettings settings;
    settings.access = std::move(order.access);
    settings.labels = std::move(order.labels);
    settings.report = order.report;
    settings.servers = std::move(order.servers);
    SIEVE_ASSIGN(const std::unique_ptr<Follower> follower, Follower::start(std::move(settings), node));
    for (;;) (void)::poll(nullptr, 0, -1);
}

Status fetch(const std::string& message) {
    const auto fields = from_base64(message);
    if (!fields) return bad_input("expected the order for a blob");
    SIEVE_ASSIGN(const BlobOrder order, read_blob(*fields));
    ObjectStore store(order.store);
    std::optional<BlobAtHand> before;
    if (!order.before.empty()) before = BlobAtHand{order.before, service::child_descriptor::first + 1};
    return bring_blob(store, order.blob, before, service::child_descriptor::first);
}

Status deaf(Status (*work)(const std::string&), const std::string& message) {
    // TLS writes without a flag against it.
    (void)std::signal(SIGPIPE, SIG_IGN);
    return work(message);
}

} // namespace

std::span<const service::ChildTask> fleet_tasks() {
    static const std::array<service::ChildTask, 2> tasks{{
        {follow_task, [](const std::string& message) { return deaf(follow, message); }},
        {fetch_task, [](const std::string& message) { return deaf(fetch, message); }},
    }};
    return tasks;
}

Result<std::string> message_of(const FollowOrder& order) {
    FieldWriter to;
    to.text(order.access.fleet);
    to.text(order.access.node);
    write(to, order.access.etcd.endpoints);
    write(to, order.access.etcd.access);
    to.text(order.access.etcd.user);
    to.text(order.access.etcd.password);
    to.number(static_cast<std::uint64_t>(order.access.etcd.patience.count()));
    std::vector<std::string> keys;
    for (const PublicKey& key : order.access.pinned) {
        SIEVE_ASSIGN(std::string pem, key.pem());
        keys.push_back(std::move(pem));
    }
    write(to, keys);
    write(to, order.labels);
    to.number(static_cast<std::uint64_t>(order.report.count()));
    write(to, order.servers);
    return as_text(to);
}

std::string message_of(const BlobOrder& order) {
    FieldWriter to;
    to.text(order.store.url);
    write(to, order.store.access);
    to.number(order.store.rate);
    to.number(static_cast<std::uint64_t>(order.store.silence.count()));
    to.text(order.blob.digest);
    to.number(order.blob.bytes);
    to.text(order.before);
    return as_text(to);
}

} // namespace sieve::fleet
