// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/metrics.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <prometheus/text_serializer.h>

#include "libsieve/control/spec/set_action.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"

namespace sieve::service::watching {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Every metric once: identifier, name, type, labels, help.
#define SIEVE_METRICS(X)                                                                                     \
    /* What hooks judge. */                                                                                  \
    X(packets, "xdp_sieve_packets_total", Counter, "interface,hook,verdict",                                 \
      "Packets that were judged at a hook, by verdict: passed, dropped or redirected.")                      \
    X(bytes, "xdp_sieve_bytes_total", Counter, "interface,hook,verdict",                                     \
      "Bytes of the packets that were judged at a hook, by verdict.")                                        \
    X(parse_outcomes, "xdp_sieve_parse_outcomes_total", Counter, "interface,hook,outcome",                   \
      "Packets by what became of parsing them. Every packet has exactly one outcome.")                       \
    X(unreadable, "xdp_sieve_unreadable_packets_total", Counter, "interface,hook",                           \
      "Packets that could not be read to their end, for whatever reason.")                                   \
    X(redirect_failures, "xdp_sieve_redirect_failures_total", Counter, "interface,hook",                     \
      "Packets that were to be redirected and had no target. They got the default verdict.")                 \
    X(events_lost, "xdp_sieve_events_lost_total", Counter, "interface,hook",                                 \
      "Sampled matches for which the ring buffer had no room.")                                              \
    X(replied_packets, "xdp_sieve_replies_packets_total", Counter, "interface,hook",                         \
      "Packets that would have been dropped and passed, since they answer flows that this host began. They " \
      "count as passed, too.")                                                                               \
    X(replied_bytes, "xdp_sieve_replies_bytes_total", Counter, "interface,hook",                             \
      "Bytes of the packets that passed since they answer flows that this host began.")                      \
    X(noting, "xdp_sieve_replies_noting", Gauge, "interface,hook",                                           \
      "1 if the program is there that notes which flows this host begins through the interface, 0 if "       \
      "somebody took it away. Only where replies pass.")                                                     \
    X(flows_begun, "xdp_sieve_replies_flows_noted_total", Counter, "interface,hook",                         \
      "Flows that were noted at the interface.")                                                             \
    X(flows_evicted, "xdp_sieve_replies_flows_evicted_total", Counter, "interface,hook",                     \
      "Flows that were noted at the interface in place of others that were still remembered.")               \
    X(flows_refused, "xdp_sieve_replies_flows_refused_total", Counter, "interface,hook",                     \
      "Flows of the interface for which the flow memory had no room: their answers may be dropped.")         \
    X(flows_lost, "xdp_sieve_replies_flows_lost_total", Counter, "interface,hook",                           \
      "Flows of the interface that were not noted since another CPU was faster: the next packet tries "      \
      "again.")                                                                                              \
    X(memory_flows, "xdp_sieve_replies_memory_flows", Gauge, "interface,hook",                               \
      "Flows that the flow memory was made for. All hooks and interfaces share it.")                         \
    X(memory_bytes, "xdp_sieve_replies_memory_bytes", Gauge, "interface,hook", "Size of the flow memory.")   \
    X(memory_load, "xdp_sieve_replies_memory_load_ratio", Gauge, "interface,hook",                           \
      "Share of the flow memory's entries that are in use. From 0.5 on, flows may find no room.")            \
    X(hook_info, "xdp_sieve_hook_info", Gauge, "interface,hook,default,unreadable,replies",                  \
      "Always 1, for each hook where the program runs, with its default verdict, what becomes of "           \
      "unreadable packets, and whether replies pass.")                                                       \
    X(hook_sets, "xdp_sieve_hook_sets", Gauge, "interface,hook", "Sets in force at a hook.")                 \
    X(hook_up, "xdp_sieve_hook_up", Gauge, "interface,hook",                                                 \
      "1 if the program runs at a hook that the configuration names, 0 if the interface is missing or the "  \
      "program does not run there.")                                                                         \
    X(hook_error, "xdp_sieve_hook_error", Gauge, "interface,hook",                                           \
      "1 if the last cycle could not bring the hook in line with the configuration, 0 if it could.")         \
    X(hook_paused, "xdp_sieve_hook_paused", Gauge, "interface,hook",                                         \
      "1 if `xdp-sieve pause` keeps the program away from a hook that the configuration names, so that no "  \
      "packet is judged there; 0 if not.")                                                                   \
    X(set_waiting, "xdp_sieve_set_waiting", Gauge, "interface,hook,set",                                     \
      "1 for each set that is configured at a hook and not in force there yet: it has no list, or waits "    \
      "for a set that has none.")                                                                            \
    /* Sets in force. */                                                                                     \
    X(set_packets, "xdp_sieve_set_matched_packets_total", Counter, "interface,hook,set",                     \
      "Packets that matched a set.")                                                                         \
    X(set_bytes, "xdp_sieve_set_matched_bytes_total", Counter, "interface,hook,set",                         \
      "Bytes of the packets that matched a set.")                                                            \
    X(set_non_members, "xdp_sieve_set_non_member_packets_total", Counter, "interface,hook,set",              \
      "Packets of which verification knows that their key is no member of the set. Only for verified sets.") \
    X(set_avoided, "xdp_sieve_set_avoided_packets_total", Counter, "interface,hook,set",                     \
      "False positives of the filter that verification rejected. Only for verified sets.")                   \
    X(set_info, "xdp_sieve_set_info", Gauge, "interface,hook,set,action,kind,key",                           \
      "Always 1, for each set in force, with what a match does, the kind of filter, and the fields of its "  \
      "keys.")                                                                                               \
    X(set_keys, "xdp_sieve_set_keys", Gauge, "interface,hook,set", "Keys in the filter in force.")           \
    X(set_filter_bytes, "xdp_sieve_set_filter_bytes", Gauge, "interface,hook,set",                           \
      "Memory of the filter in force; each hook has its own.")                                               \
    X(set_exact_bytes, "xdp_sieve_set_exact_bytes", Gauge, "interface,hook,set",                             \
      "Memory of the keys themselves, by which matches are verified. Only for verified sets.")               \
    X(set_expected, "xdp_sieve_set_expected_false_positive_ratio", Gauge, "interface,hook,set",              \
      "Share of non-members that the filter in force takes for members, by its bits; before verification.")  \
    X(set_observed, "xdp_sieve_set_observed_false_positive_ratio", Gauge, "interface,hook,set",              \
      "Share of packets with a non-member's key that the filter in force took for members since it went "    \
      "live. Only for verified sets.")                                                                       \
    X(set_built, "xdp_sieve_set_built_timestamp_seconds", Gauge, "interface,hook,set",                       \
      "When the filter in force was built, in seconds since 1970.")                                          \
    X(set_changes, "xdp_sieve_set_changed_keys", Gauge, "interface,hook,set",                                \
      "Keys inserted into and deleted from the filter in force since it was built.")                         \
    /* Lists and their refreshes. */                                                                         \
    X(list_entries, "xdp_sieve_list_entries", Gauge, "set", "Entries of the last good list.")                \
    X(list_skipped, "xdp_sieve_list_skipped_lines", Gauge, "set",                                            \
      "Malformed lines of the last good list that were left out.")                                           \
    X(list_left_out, "xdp_sieve_list_own_addresses_left_out", Gauge, "set",                                  \
      "Addresses and ranges of the last good list that were left out, since the host depends on them.")      \
    X(list_image_bytes, "xdp_sieve_list_image_bytes", Gauge, "set", "Size of the last good image.")          \
    X(list_changed, "xdp_sieve_list_changed_timestamp_seconds", Gauge, "set",                                \
      "When the list last changed, which is when its last good image was built, in seconds since 1970.")     \
    X(list_confirmed, "xdp_sieve_list_confirmed_timestamp_seconds", Gauge, "set",                            \
      "When the sources of the list were last asked and agreed with what is in force, in seconds since "     \
      "1970.")                                                                                               \
    X(list_interval, "xdp_sieve_list_refresh_interval_seconds", Gauge, "set",                                \
      "How often the sources of the list are asked, by the configuration; for a stream, how often it is "    \
      "polled.")                                                                                             \
    X(list_result, "xdp_sieve_list_last_refresh", Gauge, "set,result",                                       \
      "1 for the result of the last refresh, 0 for the other results: unchanged, replaced, failed (by a "    \
      "source, the list or the build), refused (by a guard).")                                               \
    X(refreshes, "xdp_sieve_refreshes_total", Counter, "set,result", "Refreshes of a list, by result.")      \
    X(refusals, "xdp_sieve_guard_refusals_total", Counter, "set,guard",                                      \
      "Lists that were refused, by the guard that refused them.")                                            \
    X(fetching, "xdp_sieve_fetch_duration_seconds", Summary, "set", "Time spent on asking the sources.")     \
    X(building, "xdp_sieve_build_duration_seconds", Summary, "set",                                          \
      "Time spent on reading lists and building filters.")                                                   \
    X(testing, "xdp_sieve_test_duration_seconds", Summary, "set",                                            \
      "Time spent on asking filters in the kernel before they went live.")                                   \
    X(swapping, "xdp_sieve_swap_duration_seconds", Summary, "interface,hook",                                \
      "Time spent on putting tables in force, with the wait for packets that still used the old one.")       \
    X(live_changes, "xdp_sieve_live_changes_total", Counter, "set",                                          \
      "Changes made in place to a set in force.")                                                            \
    X(live_keys, "xdp_sieve_live_changed_keys_total", Counter, "set,change",                                 \
      "Keys inserted into and deleted from sets in force by changes in place.")                              \
    X(live_rebuilds, "xdp_sieve_live_rebuilds_total", Counter, "set",                                        \
      "Changes that could not be made in place, so that the filter had to be built anew.")                   \
    X(live_duration, "xdp_sieve_live_change_duration_seconds", Summary, "set",                               \
      "Time spent on changes in place.")                                                                     \
    /* The fleet, on a host that follows one. */                                                             \
    X(fleet_info, "xdp_sieve_fleet_info", Gauge, "fleet,node",                                               \
      "Always 1, with the fleet that this host follows and its name there. The metrics of the fleet are "    \
      "missing where none is followed.")                                                                     \
    X(fleet_state, "xdp_sieve_fleet_state", Gauge, "state",                                                  \
      "1 for how this host stands in its fleet, 0 for the rest: followed, behind, failed, refused, halted, " \
      "unpublished, store_away, etcd_away.")                                                                 \
    X(fleet_in_force, "xdp_sieve_fleet_manifest_in_force_serial", Gauge, "",                                 \
      "Serial of the manifest in force; 0 while one is brought in, or if there is none.")                    \
    X(fleet_wanted, "xdp_sieve_fleet_manifest_wanted_serial", Gauge, "",                                     \
      "Serial of the manifest that this host is to have by now; 0 if none is known.")                        \
    X(fleet_published, "xdp_sieve_fleet_manifest_published_serial", Gauge, "",                               \
      "Serial of the manifest that is published; 0 if there is none, or none that is right.")                \
    X(fleet_valid_until, "xdp_sieve_fleet_manifest_valid_until_timestamp_seconds", Gauge, "",                \
      "Until when new hosts follow the published manifest, in seconds since 1970; 0 if it does not say.")    \
    X(fleet_contact, "xdp_sieve_fleet_etcd_contact_timestamp_seconds", Gauge, "",                            \
      "When etcd answered last, in seconds since 1970; 0 if it has not since the start.")                    \
    X(fleet_failures, "xdp_sieve_fleet_failures_total", Counter, "",                                         \
      "Attempts to bring a manifest into force that failed.")                                                \
    X(fleet_rollout, "xdp_sieve_fleet_rollout_state", Gauge, "state",                                        \
      "1 for the state of the rollout, 0 for the rest: running, paused, halted, rolled_back, complete.")     \
    X(fleet_stage, "xdp_sieve_fleet_rollout_stage", Gauge, "",                                               \
      "The stage that the rollout has come to, from 1 on.")                                                  \
    X(fleet_stages, "xdp_sieve_fleet_rollout_stages", Gauge, "", "Stages of the published manifest.")        \
    X(fleet_own_stage, "xdp_sieve_fleet_node_stage", Gauge, "",                                              \
      "The stage of the published manifest that covers this host, from 1 on.")                               \
    /* The service itself. */                                                                                \
    X(build_info, "xdp_sieve_build_info", Gauge, "version", "Always 1, with the version of the service.")    \
    X(state, "xdp_sieve_state", Gauge, "state",                                                              \
      "1 for what the service is doing, 0 for the rest: starting, ready, working, reloading, stopping.")     \
    X(cycles, "xdp_sieve_cycles_total", Counter, "result",                                                   \
      "Cycles, by result: changed, unchanged, failed (nothing was changed).")                                \
    X(cycle_duration, "xdp_sieve_cycle_duration_seconds", Summary, "", "Time spent on cycles.")              \
    X(last_cycle, "xdp_sieve_last_cycle_timestamp_seconds", Gauge, "",                                       \
      "When the last cycle ended, in seconds since 1970.")                                                   \
    X(reloads, "xdp_sieve_config_reloads_total", Counter, "result",                                          \
      "Times that the configuration was read again, by result: accepted, rejected.")                         \
    X(reload_good, "xdp_sieve_config_last_reload_successful", Gauge, "",                                     \
      "1 if the configuration was accepted when it was last read, 0 if the one before is still in force.")   \
    X(state_kept, "xdp_sieve_state_kept", Gauge, "",                                                         \
      "1 if all state is kept in the state directory, 0 if some of it is kept in memory only.")              \
    X(last_reload, "xdp_sieve_config_last_reload_timestamp_seconds", Gauge, "",                              \
      "When the configuration was last read again, in seconds since 1970.")                                  \
    X(read_good, "xdp_sieve_kernel_read_successful", Gauge, "",                                              \
      "1 if hooks and counters could be read for this answer; 0 if not, and then their metrics are "         \
      "missing.")                                                                                            \
    X(read_errors, "xdp_sieve_kernel_read_errors_total", Counter, "",                                        \
      "Times that hooks and counters could not be read.")                                                    \
    X(read_duration, "xdp_sieve_kernel_read_duration_seconds", Gauge, "",                                    \
      "Time spent on reading hooks and counters for this answer.")                                           \
    X(children_cpu, "xdp_sieve_children_cpu_seconds_total", Counter, "",                                     \
      "Processor time of the service's children that have ended. They fetch lists and build filters.")       \
    X(children_memory, "xdp_sieve_children_max_resident_memory_bytes", Gauge, "",                            \
      "Resident memory of the largest child that has ended, at its most.")                                   \
    X(process_cpu, "process_cpu_seconds_total", Counter, "",                                                 \
      "Processor time that the service has used, without its children.")                                     \
    X(process_start, "process_start_time_seconds", Gauge, "",                                                \
      "When the service started, in seconds since 1970.")                                                    \
    X(process_resident, "process_resident_memory_bytes", Gauge, "", "Resident memory of the service.")       \
    X(process_virtual, "process_virtual_memory_bytes", Gauge, "", "Virtual memory of the service.")          \
    X(process_fds, "process_open_fds", Gauge, "", "Open file descriptors of the service.")                   \
    X(process_max_fds, "process_max_fds", Gauge, "", "How many file descriptors the service may open.")      \
    X(process_threads, "process_threads", Gauge, "", "Threads of the service.")

enum class Id : std::size_t {
#define SIEVE_METRIC_ID(id, name, type, labels, help) id,
    SIEVE_METRICS(SIEVE_METRIC_ID)
#undef SIEVE_METRIC_ID
};

constexpr MetricDescription catalogue[] = {
#define SIEVE_METRIC_DESCRIPTION(id, name, type, labels, help) {name, MetricType::type, labels, help},
    SIEVE_METRICS(SIEVE_METRIC_DESCRIPTION)
#undef SIEVE_METRIC_DESCRIPTION
};

double seconds_since_1970(Clock::time_point at) {
    return Seconds(at.time_since_epoch()).count();
}

using Labels = std::vector<std::string>; // their values, in the order of the catalogue

class Collection {
  public:
    Collection() {
        for (const MetricDescription& description : catalogue)
            families_.push_back({description.name, description.help, description.type, {}});
    }

    void add(Id id, const Labels& labels, double value) {
        ClientMetric& metric = add_metric(id, labels);
        if (catalogue[index(id)].type == MetricType::Counter)
            metric.counter.value = value;
        else
            metric.gauge.value = value;
    }
    void add(Id id, const Labels& labels, std::uint64_t value) {
        add(id, labels, static_cast<double>(value));
    }
    void add(Id id, const Labels& labels, bool value) { add(id, labels, value ? 1.0 : 0.0); }
    void add(Id id, const Labels& labels, const TimeSum& time) {
        ClientMetric& metric = add_metric(id, labels);
        metric.summary.sample_count = time.count;
        metric.summary.sample_sum = time.sum.count();
    }

    std::vector<MetricFamily> take() {
        families_.erase(std::remove_if(families_.begin(), families_.end(),
                                       [](const MetricFamily& family) { return family.metric.empty(); }),
                        families_.end());
        return std::move(families_);
    }

  private:
    static std::size_t index(Id id) { return static_cast<std::size_t>(id); }

    ClientMetric& add_metric(Id id, const Labels& values) {
        ClientMetric& metric = families_[index(id)].metric.emplace_back();
        std::string_view names = catalogue[index(id)].labels;
        for (const std::string& value : values) {
            const std::size_t comma = std::min(names.find(','), names.size());
            metric.label.push_back({std::string(names.substr(0, comma)), value});
            names.remove_prefix(std::min(comma + 1, names.size()));
        }
        return metric;
    }

    std::vector<MetricFamily> families_;
};

Labels with(Labels labels, std::initializer_list<std::string> more) {
    labels.insert(labels.end(), more);
    return labels;
}

Labels labels_of(const HookId& hook) {
    return {hook.interface, kernel::hook_point_name(hook.point)};
}

void add_set(Collection& all, const HookId& id, const SetSnapshot& set) {
    const control::SetStatus& status = set.status;
    const Labels labels = with(labels_of(id), {status.set.name});
    all.add(Id::set_packets, labels, std::uint64_t{set.totals.matches.packets});
    all.add(Id::set_bytes, labels, std::uint64_t{set.totals.matches.bytes});
    all.add(Id::set_info,
            with(labels, {control::action_name(status.set.action), kind_name(status.filter.lookup.kind),
                          format_fields(status.filter.lookup.fields)}),
            true);
    all.add(Id::set_keys, labels, std::uint64_t{status.filter.file.keys});
    all.add(Id::set_filter_bytes, labels, status.filter.bytes);
    all.add(Id::set_expected, labels, status.expected_rate());
    if (status.filter.file.built_at != 0)
        all.add(Id::set_built, labels, std::uint64_t{status.filter.file.built_at});
    all.add(Id::set_changes, labels, std::uint64_t{status.filter.file.changes});
    if (!set.verified) return;
    all.add(Id::set_non_members, labels, std::uint64_t{set.totals.verified.non_members});
    all.add(Id::set_avoided, labels, std::uint64_t{set.totals.verified.avoided});
    all.add(Id::set_exact_bytes, labels, status.exact_bytes);
    if (set.verified->counted.non_members != 0) all.add(Id::set_observed, labels, set.verified->rate());
}

void add_hook(Collection& all, const HookSnapshot& hook) {
    const Labels labels = labels_of(hook.id);
    const std::pair<const char*, const sieve_counter&> verdicts[] = {
        {"passed", hook.totals.passed},
        {"dropped", hook.totals.dropped},
        {"redirected", hook.totals.redirected},
    };
    for (const auto& [verdict, counter] : verdicts) {
        all.add(Id::packets, with(labels, {verdict}), std::uint64_t{counter.packets});
        all.add(Id::bytes, with(labels, {verdict}), std::uint64_t{counter.bytes});
    }
    std::uint64_t unreadable = 0;
    for (std::uint32_t outcome = 0; outcome < SIEVE_OUTCOMES; outcome++) {
        all.add(Id::parse_outcomes, with(labels, {kernel::outcome_name(outcome)}),
                hook.totals.outcome[outcome]);
        if (outcome >= SIEVE_OUTCOME_FIRST_UNREADABLE) unreadable += hook.totals.outcome[outcome];
    }
    all.add(Id::unreadable, labels, unreadable);
    all.add(Id::redirect_failures, labels, hook.totals.redirect_failed);
    all.add(Id::events_lost, labels, hook.totals.events_lost);
    const control::TableStatus& table = hook.sample.table;
    all.add(Id::hook_info,
            with(labels, {control::action_name(table.default_action), control::action_name(table.unreadable),
                          control::action_name(table.replies)}),
            true);
    all.add(Id::replied_packets, labels, std::uint64_t{hook.totals.replied.packets});
    all.add(Id::replied_bytes, labels, std::uint64_t{hook.totals.replied.bytes});
    if (const auto& replies = hook.sample.replies) {
        all.add(Id::noting, labels, replies->noting);
        all.add(Id::flows_begun, labels, std::uint64_t{replies->counts.begun});
        all.add(Id::flows_evicted, labels, std::uint64_t{replies->counts.evicted});
        all.add(Id::flows_refused, labels, std::uint64_t{replies->counts.refused});
        all.add(Id::flows_lost, labels, std::uint64_t{replies->counts.lost});
        if (replies->memory) {
            all.add(Id::memory_flows, labels, replies->memory->max_flows);
            all.add(Id::memory_bytes, labels, replies->memory->bytes);
            all.add(Id::memory_load, labels, replies->memory->load());
        }
    }
    all.add(Id::hook_sets, labels, static_cast<std::uint64_t>(hook.sets.size()));
    for (const SetSnapshot& set : hook.sets) add_set(all, hook.id, set);
}

void add_list(Collection& all, const std::string& name, const SetHistory& set) {
    const Labels labels{name};
    if (set.last_good) {
        all.add(Id::list_entries, labels, *entries_of(set));
        all.add(Id::list_skipped, labels, set.last_good->skipped);
        all.add(Id::list_left_out, labels, static_cast<std::uint64_t>(set.last_good->left_out.size()));
        all.add(Id::list_image_bytes, labels, set.last_good->bytes);
        all.add(Id::list_changed, labels, static_cast<double>(set.last_good->built_at));
    }
    if (const auto confirmed = last_confirmed(set))
        all.add(Id::list_confirmed, labels, seconds_since_1970(*confirmed));
    for (const SetOutcome outcome : all_outcomes) {
        const Labels by_result = with(labels, {outcome_name(outcome)});
        if (set.last) all.add(Id::list_result, by_result, set.last->result == outcome);
        all.add(Id::refreshes, by_result, set.refreshes[static_cast<std::size_t>(outcome)]);
    }
    for (const Guard guard : all_guards)
        all.add(Id::refusals, with(labels, {guard_name(guard)}),
                set.refusals[static_cast<std::size_t>(guard)]);
    const std::pair<Id, const TimeSum&> times[] = {
        {Id::fetching, set.fetching}, {Id::building, set.building}, {Id::testing, set.testing}};
    for (const auto& [id, time] : times)
        if (time.count != 0) all.add(id, labels, time);
    if (set.live_changes == 0) return;
    all.add(Id::live_changes, labels, set.live_changes);
    all.add(Id::live_keys, with(labels, {"inserted"}), set.live_inserted);
    all.add(Id::live_keys, with(labels, {"deleted"}), set.live_deleted);
    all.add(Id::live_rebuilds, labels, set.rebuilds_due);
    all.add(Id::live_duration, labels, set.changing);
}

void add_service(Collection& all, const StatisticsCopy& record) {
    all.add(Id::build_info, {record.version}, true);
    for (const DaemonState state : all_daemon_states)
        all.add(Id::state, {daemon_state_name(state)}, record.state == state);
    all.add(Id::cycles, {"changed"}, record.cycles_changed);
    all.add(Id::cycles, {"unchanged"}, record.cycles - record.cycles_changed - record.cycles_failed);
    all.add(Id::cycles, {"failed"}, record.cycles_failed);
    all.add(Id::cycle_duration, {}, record.cycle_time);
    if (record.last_cycle) all.add(Id::last_cycle, {}, seconds_since_1970(*record.last_cycle));
    all.add(Id::reloads, {"accepted"}, record.reloads - record.reloads_failed);
    all.add(Id::reloads, {"rejected"}, record.reloads_failed);
    all.add(Id::reload_good, {}, !record.reload_error);
    all.add(Id::state_kept, {}, !record.state_trouble);
    if (record.last_reload) all.add(Id::last_reload, {}, seconds_since_1970(*record.last_reload));
    all.add(Id::read_errors, {}, record.observations_failed);
}

void add_fleet(Collection& all, const FleetStanding& fleet) {
    all.add(Id::fleet_info, {fleet.fleet, fleet.node}, true);
    for (const FleetState state : all_fleet_states)
        all.add(Id::fleet_state, {fleet_state_name(state)}, fleet.state == state);
    all.add(Id::fleet_in_force, {}, fleet.in_force);
    all.add(Id::fleet_wanted, {}, fleet.wanted);
    all.add(Id::fleet_published, {}, fleet.published);
    all.add(Id::fleet_valid_until, {}, fleet.valid_until ? seconds_since_1970(*fleet.valid_until) : 0.0);
    all.add(Id::fleet_contact, {}, fleet.contact ? seconds_since_1970(*fleet.contact) : 0.0);
    all.add(Id::fleet_failures, {}, fleet.failures);
    if (fleet.rollout.empty()) return;
    for (const char* state : fleet_rollout_states)
        all.add(Id::fleet_rollout, {state}, fleet.rollout == state);
    all.add(Id::fleet_stage, {}, std::uint64_t{fleet.stage});
    all.add(Id::fleet_stages, {}, std::uint64_t{fleet.stages});
    all.add(Id::fleet_own_stage, {}, std::uint64_t{fleet.own_stage});
}

void add_process(Collection& all, const ProcessUsage& process) {
    all.add(Id::children_cpu, {}, process.children_cpu_seconds);
    all.add(Id::children_memory, {}, process.children_most_resident_bytes);
    all.add(Id::process_cpu, {}, process.cpu_seconds);
    all.add(Id::process_start, {}, process.started);
    all.add(Id::process_resident, {}, process.resident_bytes);
    all.add(Id::process_virtual, {}, process.virtual_bytes);
    all.add(Id::process_fds, {}, process.open_files);
    all.add(Id::process_max_fds, {}, process.most_files);
    all.add(Id::process_threads, {}, process.threads);
}

} // namespace

std::span<const MetricDescription> metric_catalogue() {
    return catalogue;
}

std::vector<MetricFamily> metrics_of(const Snapshot& snapshot) {
    Collection all;
    for (const HookSnapshot& hook : snapshot.hooks) add_hook(all, hook);
    std::map<HookId, bool> hooks; // and whether the last cycle failed there
    for (const HookSnapshot& hook : snapshot.hooks) hooks[hook.id] = false;
    for (const WantedHook& hook : snapshot.wanted) {
        if (!snapshot.error) all.add(Id::hook_up, labels_of(hook.id), hook.up);
        all.add(Id::hook_paused, labels_of(hook.id), hook.paused);
        hooks[hook.id] = false;
    }
    for (const auto& [hook, error] : snapshot.record.hook_errors) hooks[hook] = true;
    for (const auto& [hook, how] : snapshot.record.otherwise) hooks[hook] = true;
    for (const auto& [hook, sets] : snapshot.record.waiting)
        for (const WaitingSet& set : sets)
            all.add(Id::set_waiting, {hook.interface, kernel::hook_point_name(hook.point), set.name},
                    std::uint64_t{1});
    for (const auto& [hook, failed] : hooks) all.add(Id::hook_error, labels_of(hook), failed);
    for (const auto& [name, set] : snapshot.record.sets) add_list(all, name, set);
    for (const SetConfiguration& set : snapshot.record.configuration.sets)
        all.add(Id::list_interval, {set.name}, static_cast<std::uint64_t>(asked_every(set).count()));
    for (const auto& [hook, time] : snapshot.record.swapping) all.add(Id::swapping, labels_of(hook), time);
    if (snapshot.record.fleet) add_fleet(all, *snapshot.record.fleet);
    add_service(all, snapshot.record);
    all.add(Id::read_good, {}, !snapshot.error);
    all.add(Id::read_duration, {}, snapshot.reading.count());
    add_process(all, snapshot.process);
    return all.take();
}

std::string metrics_text(const std::vector<MetricFamily>& families) {
    std::ostringstream text;
    prometheus::TextSerializer().Serialize(text, families);
    return text.str();
}

std::vector<MetricFamily> Metrics::Collect() const {
    return metrics_of(take_snapshot(*kernel_, *statistics_));
}

} // namespace sieve::service::watching
