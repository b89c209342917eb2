// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "model/reply_model.hpp"

#include <algorithm>

#include "model/parse_model.hpp"

namespace sieve::test {

namespace {

constexpr double unit = 4.294967296; // seconds
constexpr unsigned tcp = 6, udp = 17, icmp4 = 1, icmp6 = 58, sctp = 132;

unsigned number(const Bytes& bytes, std::size_t at, std::size_t count) {
    unsigned value = 0;
    for (std::size_t i = 0; i < count; i++) value = value << 8U | bytes.at(at + i);
    return value;
}

std::string address(const Bytes& bytes, std::size_t at, std::size_t count) {
    if (at + count > bytes.size()) throw std::out_of_range("address");
    return {bytes.begin() + static_cast<std::ptrdiff_t>(at),
            bytes.begin() + static_cast<std::ptrdiff_t>(at + count)};
}

bool has_ports(unsigned proto) {
    return proto == tcp || proto == udp || proto == 33 || proto == 132 || proto == 136;
}

} // namespace

// A packet whose IP header is at `at`. Throws where it ends too early.
std::optional<ReplyModel::Seen> ReplyModel::read_ip(const Bytes& packet, std::size_t at, bool quoted) {
    Seen seen;
    Tuple& tuple = seen.tuple;
    std::size_t upper = 0;
    const unsigned version = packet.at(at) >> 4U;
    if (version == 4) {
        const std::size_t words = packet.at(at) & 15U;
        if (words < 5) return std::nullopt;
        tuple.from = address(packet, at + 12, 4);
        tuple.to = address(packet, at + 16, 4);
        tuple.proto = packet.at(at + 9);
        seen.later = (number(packet, at + 6, 2) & 0x1fffU) != 0;
        upper = at + words * 4;
    } else if (version == 6) {
        tuple.from = address(packet, at + 8, 16);
        tuple.to = address(packet, at + 24, 16);
        tuple.proto = packet.at(at + 6);
        upper = at + 40;
        while (tuple.proto == 0 || tuple.proto == 43 || tuple.proto == 44 || tuple.proto == 51 ||
               tuple.proto == 60) {
            const unsigned here = tuple.proto;
            if (quoted && (here != 44 || upper != at + 40)) break; // only a fragment header is read there
            tuple.proto = packet.at(upper);
            if (here == 44) seen.later = number(packet, upper + 2, 2) >> 3U != 0;
            if (here == 44 && packet.size() < upper + 8) return std::nullopt;
            upper += here == 44   ? 8
                     : here == 51 ? (packet.at(upper + 1) + std::size_t{2}) * 4
                                  : (packet.at(upper + 1) + std::size_t{1}) * 8;
            if (seen.later || quoted) break;
        }
    } else {
        return std::nullopt;
    }
    const bool icmp = tuple.proto == (version == 4 ? icmp4 : icmp6);
    tuple.kind = Tuple::pair;
    if (seen.later) return seen;
    // Upper headers farther away are not read, but for their ports.
    const bool far = !quoted && (at > 255 || upper - at > 255);
    if (icmp && far) return std::nullopt;
    if (icmp) {
        if (packet.size() < upper + 8) return std::nullopt;
        tuple.kind = Tuple::echo;
        tuple.a = number(packet, upper + 4, 2);
        seen.icmp = packet.at(upper);
        seen.quote.assign(packet.begin() + static_cast<std::ptrdiff_t>(upper + 8), packet.end());
    } else if (has_ports(tuple.proto)) {
        if (quoted && packet.size() < upper + 8) return std::nullopt;
        tuple.kind = Tuple::ports;
        tuple.a = number(packet, upper, 2);
        tuple.b = number(packet, upper + 2, 2);
        if (tuple.proto == tcp && !quoted)
            seen.flags = packet.size() > upper + 13 && !far ? packet.at(upper + 13) : 0x100U;
    }
    return seen;
}

std::optional<ReplyModel::Seen> ReplyModel::read(const Bytes& frame) {
    const Parsed parsed = parse_by_model(frame);
    if (parsed.outcome != SIEVE_OUTCOME_COMPLETE && parsed.outcome != SIEVE_OUTCOME_FRAGMENT)
        return std::nullopt;
    if ((parsed.have & SIEVE_FIELD_PROTO) == 0) return std::nullopt;
    std::size_t at = 12;
    while (number(frame, at, 2) == 0x8100 || number(frame, at, 2) == 0x88a8) at += 4;
    try {
        return read_ip(frame, at + 2, false);
    } catch (const std::out_of_range&) {
        return std::nullopt;
    }
}

// Begins or renews a flow.
void ReplyModel::touch(const Tuple& tuple, double time, double limit) {
    Flow& flow = flows_.try_emplace(tuple, Flow{.begun = time}).first->second;
    flow.last = time;
    flow.limit = flow.sure = limit;
}

void ReplyModel::leaves(const Bytes& frame, double time) {
    const std::optional<Seen> seen = read(frame);
    if (!seen || seen->later) return;
    const Tuple& tuple = seen->tuple;
    Tuple pair = tuple;
    pair.kind = Tuple::pair;
    pair.a = pair.b = 0;
    double shared = 0;
    const auto found = flows_.find(tuple);
    const bool is_over = found != flows_.end() && time > found->second.last + found->second.sure;
    if (tuple.proto == tcp && tuple.kind == Tuple::ports) {
        if (seen->flags > 0xff) return;
        if ((seen->flags & rst) != 0) {
            if (found != flows_.end() && found->second.last + found->second.limit > time + 10)
                touch(tuple, time, 10);
        } else if ((seen->flags & syn) != 0) {
            if ((seen->flags & ack) != 0) return;
            flows_[tuple] = {.last = time, .limit = 60, .sure = 60, .begun = time};
        } else if (found != flows_.end()) {
            Flow& flow = found->second;
            if (is_over) flow.doubtful = true;
            if ((seen->flags & fin) != 0) flow.closing = true;
            touch(tuple, time, flow.closing ? 120 : 7440);
            if ((seen->flags & fin) == 0) shared = flow.limit;
        }
    } else if (tuple.kind == Tuple::echo) {
        if (seen->icmp != (tuple.proto == icmp4 ? 8U : 128U)) return;
        touch(tuple, time, shared = 60);
    } else if (tuple.proto == udp && tuple.kind == Tuple::ports) {
        if ((tuple.a == 68 && tuple.b == 67) || (tuple.a == 546 && tuple.b == 547)) {
            touch({.from = {}, .to = {}, .proto = udp, .a = tuple.a, .b = tuple.b, .kind = Tuple::dhcp}, time,
                  60);
            return;
        }
        if (tuple.a != tuple.b && tuple.a < 1024) return;
        if (found == flows_.end() || time > found->second.last + found->second.limit + 2 * unit) {
            flows_[tuple] = {.last = time, .limit = 60, .sure = 60, .begun = time};
        } else if (tuple.a == tuple.b) {
            // Not renewed as long as it lives. Two units of time decide whether it does.
            Flow& flow = found->second;
            if (time <= flow.last + flow.limit && flow.sure > 0) return;
            flow = {.last = time, .limit = 60, .sure = 0, .begun = time};
        } else {
            // A packet in a later unit of time than the first makes it a stream, unless it comes too late.
            Flow& flow = found->second;
            const bool later = time - flow.begun > unit;
            if (later && !is_over) flow.stream = true;
            const bool open = !flow.stream || is_over;
            touch(tuple, time, 180);
            if (open) flow.sure = 60;
            if (open && is_over) flow.stream = false, flow.begun = time;
        }
        shared = flows_[tuple].limit;
    } else if (tuple.kind == Tuple::ports && tuple.proto != sctp) {
        touch(tuple, time, shared = 600);
    } else {
        touch(pair, time, 600);
    }
    if (shared == 0) return;
    const Flow& own = flows_[tuple];
    Flow& both = flows_[pair];
    const double sure = both.doubtful ? 0 : both.last + both.sure;
    const double until = std::max(both.last + both.limit, time + own.limit);
    const double sure_until = own.doubtful ? sure : std::max(sure, time + own.sure);
    both = {.last = time, .limit = until - time, .sure = sure_until - time, .begun = time};
}

ReplyModel::Answer ReplyModel::ask(const Tuple& tuple, double time) const {
    const auto found = flows_.find(tuple);
    if (found == flows_.end()) return Answer::no;
    const Flow& flow = found->second;
    const double age = time - flow.last;
    if (age > flow.limit + 2 * unit) return Answer::no;
    return age <= flow.sure && !flow.doubtful ? Answer::yes : Answer::either;
}

ReplyModel::Answer ReplyModel::arrives(const Bytes& frame, double time) const {
    const std::optional<Seen> seen = read(frame);
    if (!seen) return Answer::no;
    Tuple tuple = seen->tuple;
    const std::string error_from = tuple.from, error_to = tuple.to;
    std::swap(tuple.from, tuple.to);
    if (seen->later || tuple.kind == Tuple::pair || tuple.proto == sctp) {
        tuple.kind = Tuple::pair;
        tuple.a = tuple.b = 0;
        return ask(tuple, time);
    }
    if (tuple.kind == Tuple::ports) {
        std::swap(tuple.a, tuple.b);
        if (tuple.proto == udp && ((tuple.a == 68 && tuple.b == 67) || (tuple.a == 546 && tuple.b == 547)))
            return ask({.from = {}, .to = {}, .proto = udp, .a = tuple.a, .b = tuple.b, .kind = Tuple::dhcp},
                       time);
        return ask(tuple, time);
    }
    const bool v4 = tuple.proto == icmp4;
    if (seen->icmp == (v4 ? 0U : 129U)) return ask(tuple, time);
    const bool error =
        v4 ? seen->icmp == 3 || seen->icmp == 11 || seen->icmp == 12 : seen->icmp >= 1 && seen->icmp <= 4;
    if (!error) return Answer::no;
    try {
        const std::optional<Seen> sent = read_ip(seen->quote, 0, true);
        if (!sent || sent->tuple.from != error_to) return Answer::no;
        Tuple flow = sent->tuple;
        if (flow.kind == Tuple::echo && sent->icmp != (v4 ? 8U : 128U)) return Answer::no;
        if (flow.proto == sctp) flow.kind = Tuple::pair;
        if (flow.kind == Tuple::pair) flow.a = flow.b = 0;
        return ask(flow, time);
    } catch (const std::out_of_range&) {
        return Answer::no;
    }
}

} // namespace sieve::test
