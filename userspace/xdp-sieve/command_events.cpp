// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve events: matches as they happen, a sample of them, as lines or as a capture.
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libsieve/control/hold_lock.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/feeds/key_text.hpp"
#include "libsieve/kernel/event_ring.hpp"
#include "libsieve/kernel/hooks/attach.hpp"
#include "libsieve/kernel/libbpf_log.hpp"
#include "libsieve/kernel/set_table.hpp"
#include "libsieve/packets/capture_writer.hpp"
#include "xdp-sieve/command.hpp"
#include "xdp-sieve/format.hpp"
#include "xdp-sieve/hook_argument.hpp"
#include "xdp-sieve/interrupt.hpp"
#include "xdp-sieve/json_text.hpp"
#include "xdp-sieve/output.hpp"
#include "xdp-sieve/packet_key.hpp"

namespace sieve::cli {

namespace {

struct EventsArguments {
    std::string interface;
    std::string hook;
    std::uint32_t sample = 1;
    std::uint64_t count = 0; // 0: until interrupted
    std::string capture;
    bool force = false;
};

constexpr int poll_milliseconds = 100;

// "2026-11-21T13:37:00.123456789Z"
std::string time_text(std::uint64_t nanoseconds) {
    constexpr std::uint64_t second = 1'000'000'000;
    const auto seconds = static_cast<std::time_t>(nanoseconds / second);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                       parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, nanoseconds % second);
}

// Sets by slot as they are now; a set that has just left has no name any more.
std::vector<std::string> names_of(const kernel::TableInForce& table, std::uint64_t hits) {
    std::vector<std::string> names;
    for (const kernel::SetInForce& set : table.sets)
        if ((hits >> set.slot & 1) != 0) names.push_back(set.name);
    return names;
}

void print_event(const sieve_event& event, const kernel::TableInForce& table, const Context& context) {
    const std::uint64_t time = kernel::wall_clock(event.time);
    const std::vector<std::string> hits = names_of(table, event.hits);
    std::optional<std::string> decided;
    for (const kernel::SetInForce& set : table.sets)
        if (set.slot == event.decision) decided = set.name;
    if (!context.json) {
        print_out("{} {} {} {} bytes {}\n", time_text(time), verdict_name(event.verdict),
                  hits.empty() ? "?" : fmt::format("{}", fmt::join(hits, ",")), event.length,
                  format_key(event.key, event.have));
        return;
    }
    const nlohmann::ordered_json line = {
        {"time", time},
        {"verdict", verdict_name(event.verdict)},
        {"set", decided ? nlohmann::ordered_json(*decided) : nlohmann::ordered_json()},
        {"hits", hits},
        {"length", event.length},
        {"key", key_json(event.key, event.have)}};
    print_out("{}\n", json_text(line, json_one_line));
}

void print_summary(const EventsArguments& arguments, std::uint64_t seen, std::uint64_t lost,
                   const Context& context) {
    if (context.json && arguments.capture != "-")
        print_out("{}\n", json_text(nlohmann::json{{"summary",
                                                    {{"interface", arguments.interface},
                                                     {"events", seen},
                                                     {"lost", lost},
                                                     {"sample", arguments.sample}}}},
                                    json_one_line));
    remark(context, fmt::format("{}, {} lost", format_counted(seen, "event"), format_count(lost)));
}

Result<Exit> run_events(const EventsArguments& arguments, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const control::HookName name, parse_hook(arguments.interface, arguments.hook));
    control::RealKernel at;
    SIEVE_ASSIGN(const kernel::Hook hook, control::find_ours(at, name));
    const kernel::SetTable sets(*hook.instance);
    std::optional<packets::CaptureWriter> capture;
    if (!arguments.capture.empty()) {
        SIEVE_ASSIGN(capture,
                     packets::CaptureWriter::create(arguments.capture, SIEVE_EVENT_HEAD,
                                                    arguments.force ? Replace::anything : Replace::ours));
    }
    watch_for_interrupt();
    control::RealKernel real;
    std::uint64_t seen = 0;
    kernel::TableInForce table;
    const auto visit = [&](const sieve_event& event) {
        if (capture)
            capture->write(kernel::wall_clock(event.time), event.length, {event.head, event.captured});
        else
            print_event(event, table, context);
        return ++seen != arguments.count;
    };
    std::optional<kernel::EventRing> ring;
    {
        SIEVE_ASSIGN(const control::Held lock, control::hold_lock(real, observer(context)));
        SIEVE_ASSIGN(ring, kernel::EventRing::start(*hook.instance, arguments.sample, visit));
    }
    Status done;
    const auto flush = [&]() -> Status { return capture ? capture->flush() : Status(); };
    while (done && flush_output() && interrupted == 0 && (arguments.count == 0 || seen < arguments.count) &&
           ring->in_place()) {
        table = sets.read();
        done = ring->poll(poll_milliseconds);
        if (done) done = flush();
    }
    const bool replaced = !ring->in_place();
    {
        // Whatever happened: sampling must not go on without a listener.
        SIEVE_ASSIGN(const control::Held lock, control::hold_lock(real, observer(context)));
        SIEVE_TRY(ring->stop());
    }
    SIEVE_TRY(done);
    if (arguments.count == 0 || seen < arguments.count) { // what came until it was off
        SIEVE_TRY(ring->poll(0));
    }
    SIEVE_ASSIGN(const std::uint64_t lost, ring->lost());
    if (replaced) remark(context, "another listener has taken over");
    print_summary(arguments, seen, lost, context);
    SIEVE_TRY(flush());
    return Exit::done;
}

} // namespace

void add_events(CLI::App& app, Context& context) {
    add_command(app, context, "events", "show matches as they happen, or write them to a capture",
                [&context](Arguments command) -> Action {
                    auto arguments = std::make_shared<EventsArguments>();
                    command.add("IFACE", arguments->interface, "the interface").required();
                    command.add("--sample", arguments->sample, "one match in so many, at random")
                        .positive()
                        .show_default();
                    command.add("--count", arguments->count, "stop after so many").positive();
                    command.add("--pcap", arguments->capture,
                                "write the packets' heads to this capture instead; - is standard output");
                    command.add_flag("--force", arguments->force,
                                     "let the capture replace a file that is none of this command's, too");
                    add_hook(command, arguments->hook, hook_in_use);
                    return [arguments, &context] { return run_events(*arguments, context); };
                });
}

} // namespace sieve::cli
