// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve ban, xdp-sieve unban, xdp-sieve banned: the ledger of bans. The daemon keeps it, and is asked
// over its socket. Where none runs, the command writes the ledger itself.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "front-end/console/output.hpp"
#include "libsieve/service/config/configuration_reader.hpp"
#include "libsieve/service/config/values/duration.hpp"
#include "libsieve/service/contact/ban_talk.hpp"
#include "libsieve/service/contact/manager.hpp"
#include "libsieve/service/live/take_bans.hpp"
#include "libsieve/util/files/input.hpp"
#include "libsieve/util/results/unfinished.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/printable.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/managed_hook.hpp"

namespace sieve::cli {

namespace {

using service::BanAnswer;
using service::BanQuestion;
using service::live::BanChange;
using service::live::BanStep;
using service::live::current_time;
using service::live::Time;

struct BanArguments {
    std::vector<std::string> addresses{};
    std::string set{};
    std::optional<std::string> lasts{};
    std::string reason{};
    bool from_input = false;
    bool all = false;
    std::string configuration = service::standard_configuration;
};

constexpr char no_daemon[] = "xdp-sieved does not run here, so that comes into force when it does";

Result<BanAnswer> answer_without_daemon(const BanQuestion& question, const BanArguments& arguments,
                                        const Context& context) {
    const auto manager = service::watching::find_manager();
    SIEVE_ASSIGN(const service::Configuration configuration,
                 service::load_configuration(manager ? manager->configuration : arguments.configuration));
    BanAnswer answer;
    service::live::BanRequest request = question.request;
    if (question.lists) {
        SIEVE_ASSIGN(answer.bans, service::live::list_bans(configuration, request.set, current_time()));
        return answer;
    }
    SIEVE_ASSIGN(request.set, service::live::set_for_bans(configuration, request.set));
    SIEVE_TRY(make_state(configuration.state_directory, context));
    service::RealHostAddresses host;
    service::BanLedger ledger(configuration.state_directory, request.set);
    SIEVE_ASSIGN(service::live::TakenBans taken,
                 service::live::take_bans(request, configuration, host, ledger, current_time()));
    answer.set = std::move(taken.set);
    answer.absent = std::move(taken.absent);
    answer.lifted = taken.lifted;
    answer.not_in_force = no_daemon;
    return answer;
}

Result<BanAnswer> ask(const BanQuestion& question, const BanArguments& arguments, const Context& context) {
    SIEVE_ASSIGN(const std::string path, service::ban_socket_path());
    SIEVE_ASSIGN(std::optional<BanAnswer> answer,
                 service::ask_about_bans(path, question, service::time_for_answer(question)));
    if (!answer) return answer_without_daemon(question, arguments, context);
    if (answer->error) return tl::unexpected(std::move(*answer->error));
    return std::move(*answer);
}

Result<std::string> read_input() {
    SIEVE_ASSIGN(Input input, Input::of("-"));
    std::string text;
    for (;;) {
        const std::size_t had = text.size();
        text.resize(std::max<std::size_t>(65536, had * 2));
        SIEVE_ASSIGN(const std::size_t got, input.read_all(text.data() + had, text.size() - had));
        text.resize(had + got);
        if (got == 0) return text;
        if (text.size() > service::longest_ban_question)
            return bad_input(
                fmt::format("{}: longer than {} MiB", input.name(), service::longest_ban_question >> 20));
    }
}

// The end and the reason of each ban that says neither.
Result<service::live::Ban> usual_ban(const BanArguments& arguments) {
    service::live::Ban ban{.since = current_time(), .reason = arguments.reason};
    if (const Status right = service::live::check_reason(arguments.reason); !right)
        return invalid_request("--reason: " + right.error().message);
    if (!arguments.lasts) return ban;
    const auto lasts = service::parse_duration(*arguments.lasts);
    if (!lasts || lasts->count() == 0)
        return invalid_request(
            fmt::format("--for {}: expected 1s to 3650d, as a whole number and s, m, h, d or w, such as 90s "
                        "or 4h",
                        *arguments.lasts));
    ban.until = ban.since + *lasts;
    return ban;
}

Result<std::vector<BanChange>> changes_of(const BanArguments& arguments, BanStep step) {
    SIEVE_ASSIGN(const service::live::Ban usual, usual_ban(arguments));
    if (arguments.from_input) {
        SIEVE_ASSIGN(const std::string text, read_input());
        return service::live::parse_ban_text(text, "standard input", usual);
    }
    std::vector<BanChange> changes;
    for (const std::string& address : arguments.addresses) {
        SIEVE_ASSIGN(const service::live::Prefix prefix, service::live::parse_banned(address));
        changes.push_back(
            {.step = step, .prefix = prefix, .ban = step == BanStep::add ? usual : service::live::Ban()});
    }
    return changes;
}

std::uint64_t count(const std::vector<BanChange>& changes, BanStep step) {
    return static_cast<std::uint64_t>(std::ranges::count(changes, step, &BanChange::step));
}

std::string addresses(std::uint64_t number) {
    return fmt::format("{} {}", number, number == 1 ? "address or prefix" : "addresses and prefixes");
}

std::string local_time(Time time) {
    return fmt::format("{:%F %T}", fmt::localtime(std::chrono::system_clock::to_time_t(time)));
}

// What was done, in one line; "" if it was nothing.
std::string done_text(const std::vector<BanChange>& changes, const BanAnswer& answer) {
    const std::uint64_t added = count(changes, BanStep::add);
    std::string text;
    if (added == 1 && changes.size() == 1) {
        const BanChange& one = changes.front();
        text =
            fmt::format("{} is banned{}", service::live::prefix_text(one.prefix),
                        one.ban.until == service::live::never ? "" : " until " + local_time(one.ban.until));
    } else if (added > 0) {
        text = fmt::format("{} banned", addresses(added));
    }
    if (count(changes, BanStep::flush) + count(changes, BanStep::remove) > 0)
        text += fmt::format("{}{} unbanned", text.empty() ? "" : ", ", addresses(answer.lifted));
    return text;
}

void print_done(const std::vector<BanChange>& changes, const BanAnswer& answer, const Context& context) {
    if (context.json) {
        nlohmann::json absent = nlohmann::json::array();
        for (const service::live::Prefix& one : answer.absent)
            absent.push_back(service::live::prefix_text(one));
        print_out("{}\n", json_text(nlohmann::json{{"set", answer.set},
                                                   {"banned", count(changes, BanStep::add)},
                                                   {"unbanned", answer.lifted},
                                                   {"not_banned", absent},
                                                   {"in_force", answer.not_in_force.empty()},
                                                   {"why_not", answer.not_in_force.empty()
                                                                   ? nlohmann::json()
                                                                   : nlohmann::json(answer.not_in_force)}}));
        return;
    }
    if (context.quiet) return;
    if (answer.not_in_force.empty())
        print_out("set {}: {}, in force\n", answer.set, done_text(changes, answer));
    else if (!answer.fails)
        print_out("set {}: {}; kept, not in force: {}\n", answer.set, done_text(changes, answer),
                  answer.not_in_force);
}

Result<Exit> change(const std::vector<BanChange>& changes, const BanArguments& arguments, bool counts,
                    Context& context) {
    if (changes.empty()) return Exit::done;
    BanQuestion question;
    question.request = {.set = arguments.set, .changes = changes, .counts = counts};
    SIEVE_ASSIGN(const BanAnswer answer, ask(question, arguments, context));
    std::string absent;
    for (const service::live::Prefix& one : answer.absent)
        absent += (absent.empty() ? "" : ", ") + service::live::prefix_text(one);
    context.changed = answer.absent.size() < changes.size();
    if (context.changed || context.json) print_done(changes, answer, context);
    if (answer.fails)
        return unfinished(
            fmt::format("set {}: {}; kept, not in force", answer.set, done_text(changes, answer)),
            {ErrorKind::busy, answer.not_in_force, {}});
    if (!absent.empty() && !arguments.from_input)
        return failure(ErrorKind::no, fmt::format("set {}: {} {} not banned", answer.set, absent,
                                                  answer.absent.size() == 1 ? "is" : "are"));
    return Exit::done;
}

Result<Exit> run_ban(const BanArguments& arguments, Context& context) {
    if (arguments.from_input && !arguments.addresses.empty())
        return invalid_request("--stdin and an address: expected only one of them");
    if (!arguments.from_input && arguments.addresses.empty())
        return invalid_request("expected an address, a prefix or --stdin");
    SIEVE_ASSIGN(const std::vector<BanChange> changes, changes_of(arguments, BanStep::add));
    return change(changes, arguments, count(changes, BanStep::add) < changes.size(), context);
}

Result<Exit> run_unban(const BanArguments& arguments, Context& context) {
    if (arguments.all == !arguments.addresses.empty())
        return invalid_request("expected either an address or prefix, or --all");
    if (!arguments.all && !arguments.reason.empty())
        return invalid_request("--reason: only with --all, which lifts those with this reason then");
    SIEVE_ASSIGN(std::vector<BanChange> changes, changes_of(arguments, BanStep::remove));
    if (arguments.all) changes.push_back({.step = BanStep::flush, .ban = {.reason = arguments.reason}});
    return change(changes, arguments, true, context);
}

bool before(const BanChange& a, const BanChange& b) {
    return std::pair(a.prefix.address, a.prefix.length) < std::pair(b.prefix.address, b.prefix.length);
}

std::string left_text(const service::live::Ban& ban, Time at) {
    if (ban.until == service::live::never) return "no end";
    const auto left = std::chrono::ceil<std::chrono::seconds>(ban.until - at);
    // Seconds matter only at the end.
    if (left < std::chrono::minutes(2)) return fmt::format("{}s", left.count());
    if (left < std::chrono::hours(2)) return fmt::format("{}m", left.count() / 60);
    if (left < std::chrono::hours(48)) return fmt::format("{}h", left.count() / 3600);
    return fmt::format("{}d", left.count() / 86400);
}

Result<Exit> run_banned(const BanArguments& arguments, Context& context) {
    BanQuestion question{.lists = true};
    question.request.set = arguments.set;
    SIEVE_ASSIGN(BanAnswer answer, ask(question, arguments, context));
    const Time at = current_time();
    nlohmann::json out = nlohmann::json::array();
    for (service::live::SetBans& set : answer.bans) {
        std::ranges::sort(set.bans, before);
        for (const BanChange& one : set.bans) {
            const std::string text = service::live::prefix_text(one.prefix);
            if (!context.json) {
                print_out("{:<24} {:>7}  {}  {}{}\n", text, left_text(one.ban, at), local_time(one.ban.since),
                          answer.bans.size() > 1 ? set.set + "  " : "", printable(one.ban.reason));
                continue;
            }
            const auto seconds = [](Time time) { return time.time_since_epoch().count() / 1000; };
            const bool ends = one.ban.until != service::live::never;
            out.push_back({{"set", set.set},
                           {"address", text},
                           {"since", seconds(one.ban.since)},
                           {"until", ends ? nlohmann::json(seconds(one.ban.until)) : nlohmann::json()},
                           {"reason", one.ban.reason}});
        }
    }
    if (context.json) print_out("{}\n", json_text(out));
    return Exit::done;
}

Action define(Arguments command, Context& context, std::shared_ptr<BanArguments> arguments,
              Result<Exit> (*run)(const BanArguments&, Context&)) {
    // Actions of fail2ban say --set "" where only one set has bans.
    command.add("--set", arguments->set, "the set, where several have bans").called("NAME").may_be_empty();
    command
        .add("--config", arguments->configuration,
             "the configuration where no xdp-sieved runs, which has its own")
        .called("CONFIG")
        .show_default();
    return [arguments = std::move(arguments), run, &context] { return run(*arguments, context); };
}

} // namespace

void add_ban(CLI::App& app, Context& context) {
    add_command(
        app, context, "ban", "ban addresses and prefixes: on the disk when the command answers",
        [&context](Arguments command) {
            auto arguments = std::make_shared<BanArguments>();
            command.add("ADDRESS", arguments->addresses, "an address or a prefix");
            command.add("--for", arguments->lasts, "the ban ends by itself after this time, such as 4h")
                .called("TIME");
            command.add("--reason", arguments->reason, "why, for `banned`").called("TEXT").may_be_empty();
            command.add_flag("--stdin", arguments->from_input,
                             "lines from standard input, as `ipset save` prints them (add, del, flush), "
                             "or an address each: all of them, or none if one is wrong");
            return define(command, context, std::move(arguments), run_ban);
        });
}

void add_unban(CLI::App& app, Context& context) {
    add_command(app, context, "unban", "lift bans", [&context](Arguments command) {
        auto arguments = std::make_shared<BanArguments>();
        command.add("ADDRESS", arguments->addresses, "as it was banned");
        command.add_flag("--all", arguments->all, "all bans of the set");
        command.add("--reason", arguments->reason, "with --all: only those that were given this reason")
            .called("TEXT");
        return define(command, context, std::move(arguments), run_unban);
    });
}

void add_banned(CLI::App& app, Context& context) {
    add_command(app, context, "banned", "list bans: the address, the time left, since when, and why",
                [&context](Arguments command) {
                    return define(command, context, std::make_shared<BanArguments>(), run_banned);
                });
}

} // namespace sieve::cli
