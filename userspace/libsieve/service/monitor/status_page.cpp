// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/status_page.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "libsieve/control/spec/set_action.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/service/config/values/duration.hpp"
#include "libsieve/service/config/values/source_spec.hpp"
#include "libsieve/service/monitor/html.hpp"
#include "libsieve/service/monitor/plot.hpp"
#include "libsieve/service/monitor/problems.hpp"
#include "libsieve/service/monitor/status_page_style.hpp"
#include "libsieve/service/monitor/words.hpp"

namespace sieve::service::watching {

namespace {

constexpr std::size_t plot_steps = 120; // of 30 seconds
constexpr std::size_t spark_steps = 30; // of 2 minutes

// What a part of the page needs.
struct Page {
    const Snapshot& snapshot;
    const std::vector<Moment>& history;

    [[nodiscard]] Clock::time_point now() const { return snapshot.at; }
};

Reading hook_reading(const HookId& id, sieve_counter HookTotals::*verdict) {
    return [id, verdict](const Moment& moment) -> std::optional<std::uint64_t> {
        const auto found = moment.hooks.find(id);
        if (found == moment.hooks.end()) return std::nullopt;
        return (found->second.*verdict).packets;
    };
}

Reading set_reading(const HookId& id, const std::string& set) {
    return [id, set](const Moment& moment) -> std::optional<std::uint64_t> {
        const auto hook = moment.sets.find(id);
        if (hook == moment.sets.end()) return std::nullopt;
        const auto found = hook->second.find(set);
        if (found == hook->second.end()) return std::nullopt;
        return found->second.matches.packets;
    };
}

double rate_of(const Page& page, const HookId& id, sieve_counter HookTotals::*verdict) {
    return latest_rate(page.history, hook_reading(id, verdict)).value_or(0);
}

Markup state_class(DaemonState state) {
    switch (state) {
    case DaemonState::ready:
        return "good";
    case DaemonState::starting:
    case DaemonState::working:
    case DaemonState::reloading:
        return "warn";
    case DaemonState::stopping:
        return "bad";
    }
    return "warn";
}

Html pill(Markup style, std::string_view text) {
    Html pill;
    pill.add("<span class=\"pill ").add(style);
    pill.add("\">{}</span>", text);
    return pill;
}

Html action_pill(control::SetAction action) {
    const std::string text = control::describe_action(action);
    if (action.action == SIEVE_ACTION_DROP) return pill("drop", text);
    return action.action == SIEVE_ACTION_PASS ? pill("pass", text) : pill("", text);
}

// --- the page's head -----------------------------------------------------------------------------------

Html page_head(const Page& page, const std::string& host) {
    const StatisticsCopy& record = page.snapshot.record;
    Html head;
    head.add("<header><h1><svg viewBox=\"0 0 20 20\" aria-hidden=\"true\"><path fill=\"var(--accent)\" "
             "d=\"M1 2h18l-7 8.4V18l-4-2.2v-5.4z\"/></svg>xdp-sieve</h1>"
             "<span class=\"host\">{} · {}</span>{}<span class=\"when\">{} · up {}</span></header>",
             host, record.version, pill(state_class(record.state), daemon_state_name(record.state)),
             utc_time(page.now()), span_text(page.now() - record.started));
    return head;
}

Html notices(const Page& page) {
    const std::vector<Problem> problems = problems_of(page.snapshot);
    if (problems.empty())
        return html("<p class=\"notice good\">✓ {}</p>",
                    page.snapshot.hooks.empty()
                        ? "No problem is known."
                        : "Everything that the configuration names is in force, and no "
                          "list is stale, failing or refused.");
    Html list;
    list.add("<section class=\"notice list\" aria-label=\"Problems\"><ul>");
    for (const Problem& problem : problems) {
        list.add("<li class=\"").add(problem.severity == Severity::failure ? Markup("failure") : "warning");
        list.add("\"><b>{}</b><span>{}</span></li>", problem.subject, problem.text);
    }
    list.add("</ul></section>");
    return list;
}

Html tile(std::string_view name, std::string_view value, std::string_view unit, std::string_view note) {
    return html("<div class=\"tile\"><div class=\"name\">{}</div><div class=\"value\">{} "
                "<small>{}</small></div><div class=\"note\">{}</div></div>",
                name, value, unit, note);
}

Html tiles(const Page& page) {
    double judged = 0, dropped = 0;
    std::uint64_t judged_ever = 0, dropped_ever = 0, keys = 0, bytes = 0;
    std::set<std::string> names;
    std::set<std::uint32_t> filters; // hooks may share them
    for (const HookSnapshot& hook : page.snapshot.hooks) {
        const double drops = rate_of(page, hook.id, &HookTotals::dropped);
        dropped += drops;
        judged += drops + rate_of(page, hook.id, &HookTotals::passed) +
                  rate_of(page, hook.id, &HookTotals::redirected);
        dropped_ever += hook.totals.dropped.packets;
        judged_ever +=
            hook.totals.dropped.packets + hook.totals.passed.packets + hook.totals.redirected.packets;
        for (const SetSnapshot& set : hook.sets) {
            if (names.insert(set.status.set.name).second) keys += set.status.filter.file.keys;
            if (filters.insert(set.status.set.map_id).second) bytes += set.status.filter.bytes;
            if (set.status.set.exact_id != 0 && filters.insert(set.status.set.exact_id).second)
                bytes += set.status.exact_bytes;
        }
    }
    Html row;
    row.add(
        "<section class=\"tiles\" aria-label=\"Overview\">{}{}{}{}{}</section>",
        tile("Judged now", short_count(judged), "packets/s",
             short_count(static_cast<double>(judged_ever)) + " in all"),
        tile("Dropped now", short_count(dropped), "packets/s",
             short_count(static_cast<double>(dropped_ever)) + " in all"),
        tile("Share dropped", percent(judged > 0 ? dropped / judged : 0), "now",
             percent(judged_ever > 0 ? static_cast<double>(dropped_ever) / static_cast<double>(judged_ever)
                                     : 0) +
                 " of all"),
        tile("Keys in force", short_count(static_cast<double>(keys)), "",
             fmt::format("in {} set{}", names.size(), names.size() == 1 ? "" : "s")),
        tile("Filter memory", short_bytes(static_cast<double>(bytes)), "",
             keys == 0 ? std::string("no key")
                       : fmt::format("{:.1f} bytes a key",
                                     static_cast<double>(bytes) / static_cast<double>(keys))));
    return row;
}

// --- a hook --------------------------------------------------------------------------------------------

Html hook_plot(const Page& page, const HookSnapshot& hook) {
    std::vector<PlotLayer> layers = {
        {rates_over_time(page.history, page.now(), plot_steps, hook_reading(hook.id, &HookTotals::dropped)),
         "drop"},
        {rates_over_time(page.history, page.now(), plot_steps,
                         hook_reading(hook.id, &HookTotals::redirected)),
         "redirect"},
        {rates_over_time(page.history, page.now(), plot_steps, hook_reading(hook.id, &HookTotals::passed)),
         "pass"},
    };
    double most = 0;
    bool any = false;
    for (std::size_t i = 0; i < plot_steps; i++) {
        double sum = 0;
        for (const PlotLayer& layer : layers) {
            sum += layer.series[i].value_or(0);
            any = any || layer.series[i].has_value();
        }
        most = std::max(most, sum);
    }
    most = round_up(most);
    Html area =
        stacked_plot(layers, most,
                     fmt::format("Packets per second at {} over the last hour, dropped below, passed above",
                                 hook_text(hook.id)));
    if (!any)
        area.add("<div class=\"nothing\"><span>The plot begins with the second observation.</span></div>");
    return html(
        "<div class=\"plot\"><div class=\"scale\"><span>{}</span><span>{}</span><span>0</span></div>"
        "<div class=\"area\">{}</div><div class=\"times\"><span>1 h ago</span><span>45 min</span><span>30 "
        "min</span><span>15 min</span><span>now</span></div></div>",
        short_count(most), short_count(most / 2), area);
}

Html legend_row(const Page& page, const HookSnapshot& hook, Markup style, std::string_view name,
                sieve_counter HookTotals::*verdict) {
    Html row;
    row.add("<li><i class=\"key ").add(style);
    row.add("\"></i>{} <b>{}/s</b> <span>{} {}, {} in all</span></li>", name,
            short_count(rate_of(page, hook.id, verdict)),
            short_count(static_cast<double>((hook.totals.*verdict).packets)),
            (hook.totals.*verdict).packets == 1 ? "packet" : "packets",
            short_bytes(static_cast<double>((hook.totals.*verdict).bytes)));
    return row;
}

Html expectation(const SetSnapshot& set) {
    const control::SetStatus& status = set.status;
    if (!set.verified) return html("{}", one_in(status.expected_rate()));
    return html("none<span class=\"sub\">filter alone: {}</span>", one_in(status.expected_rate()));
}

Html observation(const SetSnapshot& set) {
    if (!set.verified) return html("–<span class=\"sub\">not verified</span>");
    const sieve_verified& counted = set.verified->counted;
    if (counted.non_members == 0) return html("–<span class=\"sub\">no non-member yet</span>");
    return html("{}<span class=\"sub\">{} avoided of {}</span>", one_in(set.verified->rate()),
                short_count(static_cast<double>(counted.avoided)),
                short_count(static_cast<double>(counted.non_members)));
}

Html set_row(const Page& page, const HookSnapshot& hook, const SetSnapshot& set) {
    const control::SetStatus& status = set.status;
    const sieve_file& file = status.filter.file;
    const Reading reading = set_reading(hook.id, status.set.name);
    const Clock::time_point built{std::chrono::seconds(file.built_at)};
    return html("<tr><td class=\"name\" data-label=\"Set\">{}<span class=\"sub\">{} {} {}</span></td>"
                "<td class=\"n\" data-label=\"Matched\">{}<span class=\"sub\">{}</span></td>"
                "<td data-label=\"Last hour\">{}<span class=\"sub\">now {}/s</span></td>"
                "<td class=\"n\" data-label=\"False positives expected\">{}</td>"
                "<td class=\"n\" data-label=\"Observed\">{}</td>"
                "<td class=\"n\" data-label=\"Keys\">{}<span class=\"sub\">{}</span></td>"
                "<td class=\"n\" data-label=\"Memory\">{}<span class=\"sub\">{} bits a key</span></td>"
                "<td class=\"n\" data-label=\"Built\">{}</td></tr>",
                status.set.name, action_pill(control::action_of(status.set)),
                kind_name(status.filter.lookup.kind), format_fields(status.filter.lookup.fields),
                short_count(static_cast<double>(set.totals.matches.packets)),
                short_bytes(static_cast<double>(set.totals.matches.bytes)),
                spark_line(rates_over_time(page.history, page.now(), spark_steps, reading),
                           "Matches with " + status.set.name + " over the last hour"),
                short_count(latest_rate(page.history, reading).value_or(0)), expectation(set),
                observation(set), whole_count(file.keys),
                file.changes == 0 ? std::string()
                                  : short_count(static_cast<double>(file.changes)) + " changed",
                short_bytes(static_cast<double>(status.filter.bytes + status.exact_bytes)),
                fmt::format("{:.1f}", status.bits_per_key()),
                file.built_at == 0 ? std::string("unknown") : ago(built, page.now()));
}

Html sets_table(const Page& page, const HookSnapshot& hook) {
    if (hook.sets.empty())
        return html("<div class=\"pair one\"><span class=\"sub\">No set is in force here: every packet gets "
                    "the default "
                    "verdict.</span></div>");
    Html table;
    table.add("<div class=\"wide\"><table><thead><tr><th>Set, in the order of asking</th><th "
              "class=\"n\">Matched</th>"
              "<th>Last hour</th><th class=\"n\">False positives<br>expected</th>"
              "<th class=\"n\"><br>observed</th><th class=\"n\">Keys</th><th class=\"n\">Memory</th>"
              "<th class=\"n\">Built</th></tr></thead><tbody>");
    for (const SetSnapshot& set : hook.sets) table.add("{}", set_row(page, hook, set));
    table.add("</tbody></table></div>");
    return table;
}

Html bar(Markup style, std::string_view name, double share, std::string_view value) {
    Html row;
    row.add("<dt>{}</dt><dd class=\"bar ", name).add(style);
    row.add(
        "\"><svg viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect width=\"{}\" "
        "height=\"8\"/></svg></dd><dd class=\"n\">{}</dd>",
        fmt::format("{:.2f}", share > 0 ? std::max(0.6, 100 * share) : 0), value);
    return row;
}

// The outcome's name for people.
const char* outcome_words(std::uint32_t outcome) {
    static constexpr const char* words[] = {"complete",
                                            "later fragment",
                                            "ARP",
                                            "neighbour discovery",
                                            "not IP",
                                            "upper header cut off",
                                            "headers cut off",
                                            "too many headers",
                                            "truncated",
                                            "malformed",
                                            "too many VLAN tags",
                                            "source route"};
    static_assert(std::size(words) == SIEVE_OUTCOMES, "every outcome has its words");
    return outcome < SIEVE_OUTCOMES ? words[outcome] : "unknown";
}

Html outcomes(const HookSnapshot& hook) {
    std::uint64_t all = 0;
    for (const std::uint64_t count : hook.totals.outcome) all += count;
    Html part;
    part.add("<div><h3>How packets could be read</h3>");
    if (all == 0) return part.add("<span class=\"sub\">No packet yet.</span></div>");
    part.add("<dl class=\"bars\">");
    for (std::uint32_t i = 0; i < SIEVE_OUTCOMES; i++) {
        const std::uint64_t count = hook.totals.outcome[i];
        if (count == 0) continue;
        const double share = static_cast<double>(count) / static_cast<double>(all);
        part.add("{}", bar(i >= SIEVE_OUTCOME_FIRST_UNREADABLE ? Markup("bad") : "", outcome_words(i), share,
                           short_count(static_cast<double>(count)) + " · " + percent(share)));
    }
    return part.add("</dl></div>");
}

Html top_keys(const Page& page, const HookSnapshot& hook) {
    const control::TopKeys& top = *hook.top_keys;
    Html part;
    part.add("<div><h3>Keys that matched most, since {}</h3>",
             ago(Clock::time_point(std::chrono::seconds(top.since)), page.now()));
    if (top.keys.empty()) return part.add("<span class=\"sub\">No match yet.</span></div>");
    part.add("<dl class=\"bars\">");
    for (const control::TopKey& key : top.keys)
        part.add("{}", bar("top", format_key(key.key, key.fields) + " · " + key.set, top.share(key),
                           short_count(static_cast<double>(key.packets)) + " · " + percent(top.share(key))));
    return part.add("</dl></div>");
}

Html hook_card(const Page& page, const HookSnapshot& hook) {
    const control::TableStatus& table = hook.sample.table;
    Html card;
    card.add(
        "<section class=\"card\"><div class=\"head\"><h2>{}</h2>{}{}<span class=\"more\">default {}, "
        "unreadable packets: {}{}</span></div>",
        hook.id.interface, pill("", kernel::hook_point_name(hook.id.point)), pill("good", "in force"),
        control::action_name(table.default_action), control::action_name(table.unreadable),
        table.replies == SIEVE_ACTION_PASS
            ? fmt::format(", replies pass: {}", short_count(static_cast<double>(hook.totals.replied.packets)))
            : std::string());
    card.add("<div class=\"body\">{}<ul class=\"legend\">{}{}{}</ul></div>{}", hook_plot(page, hook),
             legend_row(page, hook, "pass", "passed", &HookTotals::passed),
             legend_row(page, hook, "drop", "dropped", &HookTotals::dropped),
             hook.totals.redirected.packets == 0
                 ? Html()
                 : legend_row(page, hook, "redirect", "redirected", &HookTotals::redirected),
             sets_table(page, hook));
    if (hook.top_keys)
        card.add("<div class=\"pair\">{}{}</div></section>", outcomes(hook), top_keys(page, hook));
    else
        card.add("<div class=\"pair one\">{}</div></section>", outcomes(hook));
    return card;
}

Html missing_card(const WantedHook& hook) {
    return html("<section class=\"card\"><div class=\"head\"><h2>{}</h2>{}{}</div><div class=\"body\"><span "
                "class=\"sub\">The program does not run here.</span></div></section>",
                hook.id.interface, pill("", kernel::hook_point_name(hook.id.point)),
                pill("bad", hook.paused ? "paused" : "missing"));
}

// --- lists ---------------------------------------------------------------------------------------------

Html result_pill(const SetHistory& set, bool stale) {
    if (set.last && set.last->result == SetOutcome::refused) return pill("bad", "refused");
    if (set.last && set.last->result == SetOutcome::failed) return pill("bad", "failed");
    if (stale) return pill("warn", "stale");
    if (!set.last && !set.confirmed) return pill("", "not asked yet");
    return pill("good", set.last ? outcome_name(set.last->result) : "fresh");
}

std::string sources_text(const SetConfiguration& set) {
    std::string text;
    for (const SourceSpec& source : set.sources) text += (text.empty() ? "" : ", ") + source_name(source);
    return text;
}

std::string counts_text(const SetHistory& set) {
    std::string text;
    const auto add = [&text](std::uint64_t count, const std::string& what) {
        if (count != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", whole_count(count), what);
    };
    for (const SetOutcome outcome : all_outcomes)
        add(set.refreshes[static_cast<std::size_t>(outcome)], outcome_name(outcome));
    for (const Guard guard : all_guards)
        add(set.refusals[static_cast<std::size_t>(guard)],
            fmt::format("refused by guard `{}`", guard_name(guard)));
    return text.empty() ? "no refresh since the start" : text;
}

Html last_refresh(const SetHistory& set, Clock::time_point now) {
    Html part;
    if (set.last)
        part.add("{}, {}", outcome_name(set.last->result), ago(set.last->at, now));
    else
        part.add("none since the start");
    if (set.last && !set.last->message.empty()) part.add("<span class=\"sub\">{}</span>", set.last->message);
    if (set.last_change)
        part.add("<span class=\"sub\">changed in place {}: {} {} in, {} out, in {}</span>",
                 ago(set.last_change->at, now), whole_count(set.last_change->inserted),
                 set.last_change->inserted == 1 ? "key" : "keys", whole_count(set.last_change->deleted),
                 short_span(set.last_change->took));
    part.add("<span class=\"sub\">{}</span>", counts_text(set));
    return part;
}

Html times_text(const SetHistory& set) {
    Html part;
    const std::pair<const char*, const TimeSum&> times[] = {
        {"fetched", set.fetching}, {"built", set.building}, {"tested", set.testing}};
    for (const auto& [name, time] : times)
        if (time.count != 0) part.add("<span class=\"sub\">{} {}</span>", name, short_span(time.last));
    return part.empty() ? html("–") : part;
}

Html list_row(const SetConfiguration& set, const SetHistory& history, Clock::time_point now) {
    const auto confirmed = last_confirmed(history);
    const auto& good = history.last_good;
    return html("<tr><td class=\"name long\" data-label=\"List\">{} {}<span class=\"sub\">{}</span></td>"
                "<td class=\"n\" data-label=\"Entries\">{}<span class=\"sub\">{}</span></td>"
                "<td class=\"n\" data-label=\"Age\">{}<span class=\"sub\">asked every {}</span></td>"
                "<td class=\"n\" data-label=\"Confirmed\">{}</td>"
                "<td class=\"say\" data-label=\"Last refresh\">{}</td>"
                "<td data-label=\"Took\" class=\"n\">{}</td></tr>",
                set.name, result_pill(history, is_stale(set, history, now)), sources_text(set),
                good ? whole_count(*entries_of(history)) : std::string("–"),
                good && good->skipped != 0 ? whole_count(good->skipped) + " lines skipped" : std::string(),
                good ? span_text(now - Clock::time_point(std::chrono::seconds(good->built_at)))
                     : std::string("–"),
                duration_text(asked_every(set)), confirmed ? ago(*confirmed, now) : std::string("never"),
                last_refresh(history, now), times_text(history));
}

Html lists(const Page& page) {
    const StatisticsCopy& record = page.snapshot.record;
    if (record.configuration.sets.empty()) return {};
    Html part;
    part.add(
        "<section class=\"card\"><div class=\"head only\"><h2>Lists</h2></div><div "
        "class=\"wide\"><table>"
        "<thead><tr><th>List and its sources</th><th class=\"n\">Entries</th><th class=\"n\">Age</th>"
        "<th class=\"n\">Confirmed</th><th>Last refresh</th><th class=\"n\">Took</th></tr></thead><tbody>");
    static const SetHistory unknown;
    for (const SetConfiguration& set : record.configuration.sets) {
        const auto history = record.sets.find(set.name);
        part.add("{}", list_row(set, history == record.sets.end() ? unknown : history->second, page.now()));
    }
    return part.add("</tbody></table></div></section>");
}

Html fact(std::string_view name, std::string_view value) {
    return html("<div><dt>{}</dt><dd>{}</dd></div>", name, value);
}

// --- the fleet -----------------------------------------------------------------------------------------

Markup fleet_class(FleetState state) {
    switch (state) {
    case FleetState::followed:
        return "good";
    case FleetState::behind:
    case FleetState::halted:
    case FleetState::unpublished:
    case FleetState::store_away:
    case FleetState::etcd_away:
        return "warn";
    case FleetState::failed:
    case FleetState::refused:
        return "bad";
    }
    return "warn";
}

// A serial is the time when the manifest was published, but for publishers whose clocks are wrong.
std::string serial_text(std::uint64_t serial, Clock::time_point now) {
    if (serial == 0) return "none";
    const Clock::time_point at{std::chrono::milliseconds(serial)};
    return at > now ? std::to_string(serial) : fmt::format("{}, {}", serial, ago(at, now));
}

Html fleet(const Page& page) {
    if (!page.snapshot.record.fleet) return {};
    const FleetStanding& fleet = *page.snapshot.record.fleet;
    std::string state = fleet_state_name(fleet.state);
    std::replace(state.begin(), state.end(), '_', ' ');
    Html part;
    part.add("<section class=\"card\"><div class=\"head\"><h2>Fleet {}</h2>{}<span class=\"more\">as "
             "{}</span></div>"
             "<div class=\"body\"><dl class=\"facts\">",
             fleet.fleet, pill(fleet_class(fleet.state), state), fleet.node);
    part.add("{}",
             fact("Manifest in force",
                  fleet.manifest.empty()
                      ? serial_text(fleet.in_force, page.now())
                      : fmt::format("{} ({})", serial_text(fleet.in_force, page.now()), fleet.manifest)));
    part.add("{}", fact("Manifest wanted here", serial_text(fleet.wanted, page.now())));
    part.add("{}", fact("Manifest published", serial_text(fleet.published, page.now())));
    if (!fleet.rollout.empty())
        part.add("{}",
                 fact("Rollout", fmt::format("{}, stage {} of {}; this host is of stage {}", fleet.rollout,
                                             fleet.stage, fleet.stages, fleet.own_stage)));
    part.add("{}", fact("etcd answered last", fleet.contact ? ago(*fleet.contact, page.now())
                                                            : std::string("not since the start")));
    if (!fleet.last_error.empty())
        part.add("{}", fact("Last error", fleet.last_error_at
                                              ? fmt::format("{}: {}", ago(*fleet.last_error_at, page.now()),
                                                            fleet.last_error)
                                              : fleet.last_error));
    return part.add("</dl></div></section>");
}

// --- the service ---------------------------------------------------------------------------------------

Html service(const Page& page) {
    const StatisticsCopy& record = page.snapshot.record;
    const ProcessUsage& process = page.snapshot.process;
    const double up = std::max(1.0, Seconds(page.now() - record.started).count());
    Html part;
    part.add("<section class=\"card\"><div class=\"head\"><h2>Service</h2></div><div class=\"body\"><dl "
             "class=\"facts\">");
    part.add("{}", fact("Cycles",
                        fmt::format("{}; {} changed something, {} failed", whole_count(record.cycles),
                                    whole_count(record.cycles_changed), whole_count(record.cycles_failed))));
    part.add("{}", fact("Last cycle", record.last_cycle
                                          ? fmt::format("{}, took {}", ago(*record.last_cycle, page.now()),
                                                        short_span(record.cycle_time.last))
                                          : std::string("none yet")));
    part.add("{}",
             fact("Configuration", record.last_reload
                                       ? fmt::format("{} {}", record.reload_error ? "rejected" : "accepted",
                                                     ago(*record.last_reload, page.now()))
                                       : std::string("as at the start")));
    part.add("{}", fact("Processor", fmt::format("{:.2f} s, {} of one", process.cpu_seconds,
                                                 percent(process.cpu_seconds / up))));
    part.add("{}", fact("Memory", short_bytes(static_cast<double>(process.resident_bytes)) + " resident"));
    if (process.children_cpu_seconds > 0)
        part.add("{}",
                 fact("Children that fetch and build",
                      fmt::format("{:.2f} s, at most {}", process.children_cpu_seconds,
                                  short_bytes(static_cast<double>(process.children_most_resident_bytes)))));
    part.add("{}", fact("Reading this from the kernel", short_span(page.snapshot.reading)));
    return part.add("</dl></div></section>");
}

Html nothing_runs() {
    return html("<section class=\"card empty\"><h2>The program runs on no interface yet</h2>Name an "
                "interface and its "
                "sets in <code>/etc/xdp-sieve/xdp-sieve.toml</code>, then run <code>systemctl reload "
                "xdp-sieved</code>."
                "</section>");
}

} // namespace

std::string status_page(const Snapshot& snapshot, const std::vector<Moment>& history,
                        const std::string& host) {
    const Page page{snapshot, history};
    Html all;
    all.add("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{} · xdp-sieve</title>"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
            "<meta http-equiv=\"refresh\" content=\"30\">"
            "<link rel=\"icon\" href=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' "
            "viewBox='0 0 20 "
            "20'%3E%3Cpath fill='%230f6fde' d='M1 2h18l-7 8.4V18l-4-2.2v-5.4z'/%3E%3C/svg%3E\"><style>",
            host);
    all.add(status_page_style);
    all.add("</style></head><body>{}<main>{}{}", page_head(page, host), notices(page), tiles(page));
    if (snapshot.hooks.empty() && snapshot.wanted.empty() && !snapshot.error) all.add("{}", nothing_runs());
    for (const HookSnapshot& hook : snapshot.hooks) all.add("{}", hook_card(page, hook));
    if (!snapshot.error)
        for (const WantedHook& hook : snapshot.wanted)
            if (!hook.up) all.add("{}", missing_card(hook));
    all.add("{}{}{}</main><footer><a href=\"/metrics\">metrics</a><a href=\"/status.json\">status.json</a>"
            "<span>This page reloads every 30 seconds and changes nothing.</span></footer></body></html>\n",
            lists(page), fleet(page), service(page));
    return all.text();
}

} // namespace sieve::service::watching
