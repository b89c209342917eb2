// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/node/node_link.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string_view>

#include "libsieve/fleet/manifest/fields.hpp"
#include "libsieve/fleet/manifest/manifest_fields.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::fleet {

namespace {

constexpr std::size_t longest_message = std::size_t{1} << 20;
constexpr std::size_t longest_sentence = 1000;
// A child that has been taken over must not fill the log.
constexpr unsigned most_sentences = 60; // a minute

enum class Question : std::uint8_t { view, accept, bring_in, tell, say };

bool send_all(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

bool receive_all(int socket, char* to, std::size_t size) {
    while (size > 0) {
        const ssize_t got = ::recv(socket, to, size, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        to += got;
        size -= static_cast<std::size_t>(got);
    }
    return true;
}

// A message is its length as a number, and itself.
bool send_message(int socket, std::string_view message) {
    FieldWriter whole;
    whole.text(message);
    return send_all(socket, whole.bytes());
}

std::optional<std::string> receive_message(int socket) {
    std::array<char, 8> head{};
    if (!receive_all(socket, head.data(), head.size())) return std::nullopt;
    FieldReader reader({head.data(), head.size()});
    const std::uint64_t size = reader.number();
    if (size > longest_message) return std::nullopt;
    std::string message(size, '\0');
    if (!receive_all(socket, message.data(), message.size())) return std::nullopt;
    return message;
}

void write_traffic(FieldWriter& to, const NodeTraffic& traffic) {
    to.number(traffic.packets);
    to.number(traffic.matched);
    to.number(traffic.dropped);
}
NodeTraffic read_traffic(FieldReader& from) {
    NodeTraffic traffic;
    traffic.packets = from.number();
    traffic.matched = from.number();
    traffic.dropped = from.number();
    return traffic;
}

// As much of a sentence as is read on the other side. What others wrote may be longer than a message.
std::string_view cut(std::string_view sentence) {
    return sentence.substr(0, longest_sentence + 1);
}

std::string view_fields(const NodeView& view) {
    FieldWriter to;
    to.number(view.has_accepted ? 1 : 0);
    to.text(view.held);
    to.text(view.in_force);
    to.text(view.wanted);
    to.number(static_cast<std::uint64_t>(view.state));
    to.text(view.error);
    to.number(view.sets.size());
    for (const auto& [name, identity] : view.sets) {
        to.text(name);
        to.text(identity);
    }
    write_traffic(to, view.before);
    write_traffic(to, view.after);
    return to.bytes();
}

NodeView read_view(std::string_view fields) {
    constexpr std::uint64_t most_sets = 4096;
    FieldReader from(fields);
    NodeView view;
    view.has_accepted = from.number() != 0;
    view.held = from.text();
    view.in_force = from.text();
    view.wanted = from.text();
    view.state = static_cast<NodeState>(from.number(static_cast<std::uint64_t>(NodeState::refused)));
    view.error = from.text();
    for (std::uint64_t left = from.number(most_sets); left > 0; left--) {
        const std::string name = from.text();
        view.sets[name] = from.text();
    }
    view.before = read_traffic(from);
    view.after = read_traffic(from);
    return view;
}

std::string news_fields(const FollowerNews& news) {
    FieldWriter to;
    to.number(static_cast<std::uint64_t>(news.published));
    to.number(news.serial);
    to.number(news.valid_until);
    to.number(news.stages);
    to.number(news.own_stage);
    to.number(news.rollout ? 1 + static_cast<std::uint64_t>(*news.rollout) : 0);
    to.number(news.stage);
    for (const std::string* text : {&news.why, &news.refusal, &news.etcd_trouble}) to.text(cut(*text));
    to.number(news.contact);
    to.number(news.servers.size());
    for (const ServerAddress& server : news.servers) {
        to.number(static_cast<std::uint64_t>(server.address >> 64));
        to.number(static_cast<std::uint64_t>(server.address));
        to.number(server.port);
    }
    return to.bytes();
}

FollowerNews read_news(std::string_view fields) {
    FieldReader from(fields);
    FollowerNews news;
    news.published = static_cast<Finding>(from.number(static_cast<std::uint64_t>(Finding::manifest)));
    news.serial = from.number();
    constexpr std::uint64_t latest = std::uint64_t{1} << 33; // a time_point counts nanoseconds
    news.valid_until = std::min(from.number(), latest);
    news.stages = static_cast<std::uint32_t>(from.number(most_stages));
    news.own_stage = static_cast<std::uint32_t>(from.number(most_stages));
    if (const std::uint64_t state = from.number(1 + static_cast<std::uint64_t>(RolloutState::complete));
        state != 0)
        news.rollout = static_cast<RolloutState>(state - 1);
    news.stage = static_cast<std::uint32_t>(from.number(most_stages));
    for (std::string* text : {&news.why, &news.refusal, &news.etcd_trouble})
        *text = printable(from.text(), longest_sentence);
    news.contact = from.number();
    for (std::uint64_t left = from.number(most_servers); left > 0; left--) {
        const std::uint64_t upper = from.number();
        const std::uint64_t lower = from.number();
        news.servers.push_back(
            {address_number(upper, lower), static_cast<std::uint16_t>(from.number(0xffff))});
    }
    return news;
}

std::string status_fields(const Status& status) {
    FieldWriter to;
    to.number(status ? 1 : status.error().kind == ErrorKind::no ? 2 : 0);
    to.text(status ? std::string() : status.error().message);
    return to.bytes();
}

Status read_status(std::string_view fields) {
    FieldReader from(fields);
    const std::uint64_t answer = from.number();
    const std::string message = from.text();
    if (answer == 1) return {};
    return failure(answer == 2 ? ErrorKind::no : ErrorKind::bad_input, message);
}

// The answering side.
class Answers {
  public:
    Answers(Node& node, const std::string& fleet, std::span<const PublicKey> pinned)
        : node_(node), fleet_(fleet), pinned_(pinned) {}

    // Nothing: what was asked makes no sense.
    std::optional<std::string> answer(std::string_view question) {
        FieldReader from(question);
        const auto kind = static_cast<Question>(from.number(static_cast<std::uint64_t>(Question::say)));
        const std::uint64_t level = from.number();
        const std::string text = from.text();
        if (!from.complete()) return std::nullopt;
        switch (kind) {
        case Question::view:
            return view_fields(node_.view());
        case Question::accept:
            return status_fields(with_manifest(text, &Node::accept));
        case Question::bring_in:
            return status_fields(with_manifest(text, &Node::bring_in));
        case Question::tell:
            tell(text);
            return std::string();
        case Question::say:
            say(level, text);
            return std::string();
        }
        return std::nullopt;
    }

  private:
    Status with_manifest(std::string_view fields, Status (Node::*act)(const SignedManifest&)) {
        SIEVE_ASSIGN(const SignedManifest manifest, open_manifest_fields(fields, fleet_, pinned_));
        return (node_.*act)(manifest);
    }
    // Names are this side's own.
    void tell(std::string_view fields) {
        FollowerNews news = read_news(fields);
        news.fleet = fleet_;
        node_.tell(news);
    }
    void say(std::uint64_t level, const std::string& sentence) {
        const auto now = std::chrono::steady_clock::now();
        if (now - minute_ >= std::chrono::minutes(1)) {
            minute_ = now;
            said_ = 0;
        }
        if (said_++ >= most_sentences) return;
        const bool known = level >= static_cast<std::uint64_t>(service::LogLevel::error) &&
                           level <= static_cast<std::uint64_t>(service::LogLevel::info);
        node_.say(known ? static_cast<service::LogLevel>(level) : service::LogLevel::info,
                  printable(sentence, longest_sentence));
    }

    Node& node_;
    const std::string& fleet_;
    std::span<const PublicKey> pinned_;
    std::chrono::steady_clock::time_point minute_ = std::chrono::steady_clock::now();
    unsigned said_ = 0;
};

std::string question(Question kind, std::uint64_t level, std::string_view text) {
    FieldWriter to;
    to.number(static_cast<std::uint64_t>(kind));
    to.number(level);
    to.text(text);
    return to.bytes();
}

} // namespace

std::string RemoteNode::ask(const std::string& question) {
    const std::lock_guard lock(asking_);
    if (send_message(socket_, question))
        if (std::optional<std::string> answer = receive_message(socket_)) return std::move(*answer);
    ::_exit(0);
}

NodeView RemoteNode::view() {
    return read_view(ask(question(Question::view, 0, {})));
}

Status RemoteNode::accept(const SignedManifest& manifest) {
    return read_status(ask(question(Question::accept, 0, manifest_fields(manifest))));
}

Status RemoteNode::bring_in(const SignedManifest& manifest) {
    return read_status(ask(question(Question::bring_in, 0, manifest_fields(manifest))));
}

void RemoteNode::tell(const FollowerNews& news) {
    (void)ask(question(Question::tell, 0, news_fields(news)));
}

void RemoteNode::say(service::LogLevel level, const std::string& sentence) {
    (void)ask(question(Question::say, static_cast<std::uint64_t>(level), cut(sentence)));
}

void serve_node(int socket, Node& node, const std::string& fleet, std::span<const PublicKey> pinned) {
    Answers answers(node, fleet, pinned);
    while (const std::optional<std::string> asked = receive_message(socket)) {
        const std::optional<std::string> answer = answers.answer(*asked);
        if (!answer || !send_message(socket, *answer)) return;
    }
}

} // namespace sieve::fleet
