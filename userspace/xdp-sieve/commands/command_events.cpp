// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve events: shows a sample of matches as they happen, as lines or as a capture.
#include <ctime>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sieve/event.h>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "front-end/hook_argument.hpp"
#include "libsieve/control/query/listen.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/packets/capture_writer.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/interrupt.hpp"
#include "xdp-sieve/arguments/packet_key.hpp"

namespace sieve::cli {

namespace {

struct EventsArguments {
    std::string interface;
    std::string hook;
    control::ListenOptions listening;
    std::string capture;
    bool force = false;
    bool by_default = false;
    bool rejected = false;
    bool replies = false;
    bool matches = false;
};

// Which packets the listener wants: matches, unless others are named.
std::uint32_t which(const EventsArguments& arguments) {
    const bool others = arguments.by_default || arguments.rejected || arguments.replies;
    return (arguments.matches || !others ? std::uint32_t{SIEVE_WATCH_EVENTS} : 0U) |
           (arguments.by_default ? std::uint32_t{SIEVE_WATCH_DEFAULT} : 0U) |
           (arguments.rejected ? std::uint32_t{SIEVE_WATCH_REJECTED} : 0U) |
           (arguments.replies ? std::uint32_t{SIEVE_WATCH_REPLIES} : 0U);
}

// The sets that matched, those whose match was rejected, and the default if it decided and no set matched;
// and whether the packet passed as a reply.
std::string sets_text(const control::Event& event) {
    std::vector<std::string> words = event.sets;
    for (const std::string& set : event.rejected) words.push_back(fmt::format("{} (rejected)", set));
    if (event.by_default && event.sets.empty()) words.emplace_back("default");
    if (event.reply) words.emplace_back("reply");
    return words.empty() ? "?" : fmt::format("{}", fmt::join(words, ","));
}

// "2026-11-21T13:37:00.123456789Z"
std::string time_text(std::uint64_t nanoseconds) {
    constexpr std::uint64_t second = 1'000'000'000;
    const auto seconds = static_cast<std::time_t>(nanoseconds / second);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                       parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, nanoseconds % second);
}

void print_event(const control::Event& event, const Context& context) {
    if (!context.json) {
        print_out("{} {} {} {} bytes {}\n", time_text(event.time), verdict_name(event.verdict),
                  sets_text(event), event.length, format_key(event.key, event.have));
        return;
    }
    const nlohmann::ordered_json line = {
        {"time", event.time},
        {"verdict", verdict_name(event.verdict)},
        {"set", event.decided_by ? nlohmann::ordered_json(*event.decided_by) : nlohmann::ordered_json()},
        {"by_default", event.by_default},
        {"reply", event.reply},
        {"hits", event.sets},
        {"rejected", event.rejected},
        {"length", event.length},
        {"key", key_json(event.key, event.have)}};
    print_out("{}\n", json_text(line, json_one_line));
}

void print_summary(const EventsArguments& arguments, const control::Heard& heard, const Context& context) {
    if (context.json && arguments.capture != "-")
        print_out("{}\n", json_text(nlohmann::json{{"summary",
                                                    {{"interface", arguments.interface},
                                                     {"hook", kernel::hook_point_name(heard.point)},
                                                     {"events", heard.events},
                                                     {"lost", heard.lost},
                                                     {"sample", arguments.listening.sampling.sample}}}},
                                    json_one_line));
    if (heard.taken_over) remark(context, "another listener has taken over");
    remark(context,
           fmt::format("{}, {} lost", format_counted(heard.events, "event"), format_count(heard.lost)));
}

Result<Exit> run_events(const EventsArguments& arguments, const Context& context) {
    kernel::set_verbose(context.verbose);
    SIEVE_ASSIGN(const control::HookName name, parse_hook(arguments.interface, arguments.hook));
    control::RealKernel kernel;
    SIEVE_TRY(control::find_ours(kernel, name)); // create no capture where there is nothing to listen to
    std::optional<packets::CaptureWriter> capture;
    if (!arguments.capture.empty()) {
        SIEVE_ASSIGN(capture,
                     packets::CaptureWriter::create(arguments.capture, SIEVE_EVENT_HEAD,
                                                    arguments.force ? Replace::anything : Replace::ours));
    }
    watch_for_interrupt();
    const auto flush = [&]() -> Status {
        if (capture && arguments.capture != "-") return capture->flush();
        (void)flush_output(); // the program tells at its end what could not be written
        return {};
    };
    const control::Listener listener{.event =
                                         [&](const control::Event& event) {
                                             if (capture)
                                                 capture->write(event.time, event.length, event.head);
                                             else
                                                 print_event(event, context);
                                         },
                                     .go_on = [&]() -> Result<bool> {
                                         SIEVE_TRY(flush());
                                         return flush_output() && interrupted == 0;
                                     }};
    SIEVE_ASSIGN(const control::Heard heard,
                 control::listen(kernel, name, arguments.listening, listener, observer(context)));
    print_summary(arguments, heard, context);
    SIEVE_TRY(flush());
    if (heard.gone)
        return failure(ErrorKind::no,
                       fmt::format("{}: the program that was listened to no longer runs at the {} hook",
                                   arguments.interface, kernel::hook_point_name(heard.point)));
    return Exit::done;
}

} // namespace

void add_events(CLI::App& app, Context& context) {
    add_command(
        app, context, "events", "show matches, or other packets, as they happen, or write them to a capture",
        [&context](Arguments command) -> Action {
            auto arguments = std::make_shared<EventsArguments>();
            add_interface(command, arguments->interface, "the interface").required();
            command
                .add("--sample", arguments->listening.sampling.sample,
                     "sample one packet in this many, at random")
                .positive()
                .show_default();
            command.add("--count", arguments->listening.most, "stop after this many events").positive();
            command
                .add("--pcap", arguments->capture,
                     "write the packets' heads to this capture instead; - is standard output")
                .called("FILE");
            command.add_flag("--force", arguments->force,
                             "also replace a file that is not a capture of this command");
            command.add_flag("--default", arguments->by_default,
                             "show packets that the default decided, instead of matches");
            command.add_flag("--rejected", arguments->rejected,
                             "show packets whose match verification rejected, instead of matches");
            command.add_flag(
                "--replies", arguments->replies,
                "show packets that pass since they answer what this host began, instead of matches");
            command.add_flag("--matches", arguments->matches, "besides these, also show matches");
            add_hook(command, arguments->hook, hook_in_use);
            return [arguments, &context] {
                arguments->listening.sampling.which = which(*arguments);
                return run_events(*arguments, context);
            };
        });
}

} // namespace sieve::cli
