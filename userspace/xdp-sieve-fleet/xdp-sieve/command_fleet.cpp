// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve fleet: the keys of a fleet, what its nodes have in force, and its rollouts.
#include <cstdint>
#include <memory>
#include <string>

#include <fmt/core.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "libsieve/fleet/fleet_status.hpp"
#include "libsieve/fleet/publish.hpp"
#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/printable.hpp"
#include "xdp-sieve-fleet/xdp-sieve/fleet_arguments.hpp"
#include "xdp-sieve-fleet/xdp-sieve/fleet_commands.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/watch.hpp"

namespace sieve::cli {

namespace {

struct FleetCommand {
    std::string action;
    FleetArguments fleet;
    std::string to;
    Watch watch;
};

std::string short_digest(const std::string& digest) {
    return digest.empty() ? "none" : fleet::brief(digest);
}

Result<Exit> run_keygen(const FleetCommand& arguments, Context& context) {
    const std::string& path = arguments.fleet.key_file();
    if (path.empty()) return invalid_request("expected --key FILE, the file to write");
    SIEVE_ASSIGN(const fleet::SigningKey key, fleet::SigningKey::generate());
    SIEVE_TRY(key.save(path));
    context.changed = true;
    const nlohmann::json out = {{"key", key.id()}, {"private", path}, {"public", path + ".pub"}};
    if (context.json)
        print_out("{}\n", json_text(out));
    else if (!context.quiet)
        print_out("key {}: {} signs, keep it secret; {}.pub is for the trusted-keys of every node\n",
                  key.id(), printable(path), printable(path));
    return Exit::done;
}

std::string age_of(std::uint64_t since) {
    const std::uint64_t now = fleet::milliseconds_now();
    return format_age(now > since ? (now - since) / 1000 : 0);
}

// "0.3 %", of the packets; "-" if there were none.
std::string dropped_share(const fleet::NodeTraffic& traffic) {
    if (traffic.packets == 0) return "-";
    return fmt::format("{:.1f}%",
                       100 * static_cast<double>(traffic.dropped) / static_cast<double>(traffic.packets));
}

void print_published(const fleet::FleetAccess& access, const fleet::FleetStatus& status) {
    if (status.fault) {
        print_out("fleet {}: {}\n", access.fleet, status.fault->message);
        return;
    }
    const fleet::Publication& published = status.published;
    if (!published.manifest) {
        print_out("fleet {}: nothing is published\n", access.fleet);
        return;
    }
    const fleet::Manifest& manifest = published.manifest->manifest;
    print_out("fleet {}: manifest {}, published {} ago{}, signed by {}\n", access.fleet,
              short_digest(published.manifest->digest), age_of(manifest.serial),
              manifest.rolls_back.empty() ? ""
                                          : fmt::format(", takes back {}", short_digest(manifest.rolls_back)),
              fmt::join(published.manifest->signers, ", "));
    if (manifest.valid_until != 0)
        print_out("new nodes may take it until {}\n", fleet::time_text(manifest.valid_until));
    else
        print_out("new nodes do not take it, since it does not say how long it is valid\n");
    for (const fleet::ManifestSet& set : manifest.sets)
        print_out("  set {}: {}, {}, {}\n", set.name, set.as == fleet::BlobKind::image ? "image" : "feed",
                  format_counted(set.entries, "entry", "entries"), format_bytes(set.bytes));
    if (const auto& rollout = published.rollout)
        print_out("rollout: {}, stage {} of {} ({}), for {}{}{}\n", fleet::rollout_state_name(rollout->state),
                  rollout->stage + 1, manifest.rollout.stages.size(),
                  fleet::stages_text(manifest.rollout.stages), age_of(rollout->since),
                  rollout->why.empty() ? "" : ": ", printable(rollout->why));
}

void print_nodes(const fleet::FleetStatus& status) {
    if (status.nodes.empty() && status.unreadable.empty()) return print_out("no node reports\n");
    print_out("nodes: {}, {} with this manifest\n\n", status.nodes.size() + status.unreadable.size(),
              status.current);
    print_out("{:<24} {:<9} {:<13} {:>5} {:>9} {:>9}  {}\n", "node", "state", "manifest", "stage", "dropped",
              "before", "error");
    for (const fleet::NodeReport& node : status.nodes)
        print_out("{:<24} {:<9} {:<13} {:>5} {:>9} {:>9}  {}\n", printable(node.node),
                  fleet::node_state_name(node.state), printable(short_digest(node.manifest)), node.stage + 1,
                  dropped_share(node.after), dropped_share(node.before), printable(node.error));
    for (const std::string& name : status.unreadable)
        print_out("{:<24} its report cannot be understood\n", printable(name));
}

nlohmann::json to_json(const fleet::FleetAccess& access, const fleet::FleetStatus& status) {
    nlohmann::json out = {
        {"fleet", access.fleet}, {"current", status.current}, {"nodes", nlohmann::json::array()},
        {"manifest", nullptr},   {"rollout", nullptr},        {"fault", nullptr}};
    if (status.fault) out["fault"] = status.fault->message;
    if (const auto& manifest = status.published.manifest) {
        out["manifest"] = parse_json(fleet::manifest_text(manifest->manifest));
        out["manifest"]["digest"] = manifest->digest;
        out["manifest"]["signers"] = manifest->signers;
    }
    if (const auto& rollout = status.published.rollout)
        out["rollout"] = parse_json(fleet::rollout_text(*rollout));
    for (const fleet::NodeReport& node : status.nodes)
        out["nodes"].push_back(parse_json(fleet::report_text(node)));
    out["unreadable"] = status.unreadable;
    return out;
}

Result<Exit> run_status(FleetCommand& arguments, Context& context) {
    SIEVE_ASSIGN(const fleet::FleetAccess access, arguments.fleet.access());
    std::string nothing = "-"; // a word behind --watch is no interface here
    if (arguments.watch.on()) SIEVE_TRY(arguments.watch.begin(nothing));
    fleet::EtcdClient etcd(access.etcd);
    for (bool again = true; again;) {
        SIEVE_ASSIGN(const fleet::FleetStatus status, fleet::read_fleet_status(etcd, access));
        const bool published = status.published.manifest.has_value();
        context.exit = published ? Exit::done : Exit::no;
        if (context.json) {
            print_out("{}\n", json_text(to_json(access, status), arguments.watch.on() ? json_one_line : 2));
        } else {
            print_published(access, status);
            print_nodes(status);
        }
        if (!arguments.watch.on()) return published ? Exit::done : Exit::no;
        static_cast<void>(flush_output());
        again = arguments.watch.next();
    }
    return Exit::done;
}

Result<Exit> run_hold(const FleetCommand& arguments, fleet::Hold hold, Context& context) {
    SIEVE_ASSIGN(const fleet::FleetAccess access, arguments.fleet.access());
    SIEVE_ASSIGN(const fleet::RolloutRecord record, fleet::hold_rollout(access, hold));
    context.changed = true;
    if (context.json)
        print_out("{}\n", json_text(parse_json(fleet::rollout_text(record))));
    else if (!context.quiet)
        print_out("fleet {}: the rollout of {} is {} at stage {}\n", access.fleet,
                  short_digest(record.manifest), fleet::rollout_state_name(record.state), record.stage + 1);
    return Exit::done;
}

Result<Exit> run_rollback(const FleetCommand& arguments, Context& context) {
    SIEVE_ASSIGN(const fleet::FleetAccess access, arguments.fleet.access());
    SIEVE_ASSIGN(const fleet::SigningKey key, arguments.fleet.key());
    SIEVE_ASSIGN(const std::uint64_t valid, arguments.fleet.validity());
    SIEVE_ASSIGN(const std::uint64_t last, arguments.fleet.last_serial());
    SIEVE_ASSIGN(const fleet::SignedManifest published,
                 fleet::roll_back(access, key, arguments.to, valid, last));
    context.changed = true;
    arguments.fleet.keep_serial(published.manifest.serial, context);
    if (context.json) {
        nlohmann::json out = parse_json(fleet::manifest_text(published.manifest));
        out["digest"] = published.digest;
        print_out("{}\n", json_text(out));
    } else if (!context.quiet) {
        print_out("fleet {}: manifest {} takes back {} on all nodes\n", access.fleet,
                  short_digest(published.digest), short_digest(published.manifest.rolls_back));
    }
    return Exit::done;
}

Result<Exit> run_renew(const FleetCommand& arguments, Context& context) {
    SIEVE_ASSIGN(const fleet::FleetAccess access, arguments.fleet.access());
    SIEVE_ASSIGN(const fleet::SigningKey key, arguments.fleet.key());
    SIEVE_ASSIGN(const std::uint64_t valid, arguments.fleet.validity());
    SIEVE_ASSIGN(const std::uint64_t last, arguments.fleet.last_serial());
    SIEVE_ASSIGN(const fleet::SignedManifest published, fleet::renew(access, key, valid, last));
    context.changed = true;
    arguments.fleet.keep_serial(published.manifest.serial, context);
    if (context.json) {
        nlohmann::json out = parse_json(fleet::manifest_text(published.manifest));
        out["digest"] = published.digest;
        print_out("{}\n", json_text(out));
    } else if (!context.quiet) {
        print_out("fleet {}: manifest {} has the sets of {}, and new nodes may take it until {}\n",
                  access.fleet, short_digest(published.digest), short_digest(published.manifest.previous),
                  fleet::time_text(published.manifest.valid_until));
    }
    return Exit::done;
}

Result<Exit> run_repair(const FleetCommand& arguments, Context& context) {
    SIEVE_ASSIGN(const fleet::FleetAccess access, arguments.fleet.access());
    SIEVE_ASSIGN(const std::size_t removed, fleet::repair(access));
    context.changed = removed != 0;
    const nlohmann::json out = {{"fleet", access.fleet}, {"removed", removed}};
    if (context.json)
        print_out("{}\n", json_text(out));
    else if (!context.quiet && removed == 0)
        print_out("fleet {}: a trusted key has signed every manifest that etcd holds\n", access.fleet);
    else if (!context.quiet)
        print_out(
            "fleet {}: took {} out of etcd that no trusted key has signed; nodes keep what they have in "
            "force until the next `xdp-sieve publish`\n",
            access.fleet, format_counted(removed, "manifest", "manifests"));
    return Exit::done;
}

Result<Exit> run_fleet(FleetCommand& arguments, Context& context) {
    if (!arguments.to.empty() && arguments.action != "rollback")
        return invalid_request("--to is an option of `fleet rollback`");
    if (arguments.watch.on() && arguments.action != "status")
        return invalid_request("--watch is an option of `fleet status`");
    if (arguments.action == "keygen") return run_keygen(arguments, context);
    if (arguments.action == "status") return run_status(arguments, context);
    if (arguments.action == "pause") return run_hold(arguments, fleet::Hold::pause, context);
    if (arguments.action == "resume") return run_hold(arguments, fleet::Hold::resume, context);
    if (arguments.action == "rollback") return run_rollback(arguments, context);
    if (arguments.action == "renew") return run_renew(arguments, context);
    if (arguments.action == "repair") return run_repair(arguments, context);
    return invalid_request(
        fmt::format("fleet {}: expected keygen, status, pause, resume, rollback, renew or repair",
                    printable(arguments.action)));
}

} // namespace

void add_fleet(CLI::App& app, Context& context) {
    add_command(
        app, context, "fleet", "see and steer a fleet of nodes; make its keys",
        [&context](Arguments command) -> Action {
            auto arguments = std::make_shared<FleetCommand>();
            command
                .add("keygen|status|pause|resume|rollback|renew|repair", arguments->action,
                     "make a pair of keys; show the nodes; hold a rollout; let it go on; take back what is "
                     "published; sign it anew; take out of etcd what no trusted key has signed")
                .required();
            arguments->fleet.add_to(command);
            command.add("--to", arguments->to, "roll back to this manifest, not to the one before")
                .called("DIGEST");
            arguments->fleet.add_validity_to(command);
            arguments->watch.add_to(command, "show it again every SECONDS");
            return [arguments, &context] { return run_fleet(*arguments, context); };
        });
}

} // namespace sieve::cli
