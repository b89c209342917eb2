// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve publish: brings sets to all nodes of a fleet.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "front-end/console/format.hpp"
#include "front-end/console/output.hpp"
#include "libsieve/fleet/publish.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "xdp-sieve-fleet/xdp-sieve/fleet_arguments.hpp"
#include "xdp-sieve-fleet/xdp-sieve/fleet_commands.hpp"
#include "xdp-sieve/arguments/command.hpp"
#include "xdp-sieve/arguments/geo_data.hpp"

namespace sieve::cli {

namespace {

struct PublishArguments {
    FleetArguments fleet;
    std::vector<std::string> sets;
    std::string as;
    std::string stages = "100%";
    std::uint32_t soak = 30;
    double most_jump = 0.05;
    std::string on_failure = "halt";
    bool only = false;
    bool again = false;
    bool force = false;
};

Result<fleet::PublishRequest> request_of(const PublishArguments& arguments, const Context& context) {
    fleet::PublishRequest request;
    for (const std::string& text : arguments.sets) {
        SIEVE_ASSIGN(control::SetSpec set, parse_set(text, context));
        request.sets.push_back(std::move(set));
    }
    if (arguments.as == "image")
        request.as = fleet::BlobKind::image;
    else if (arguments.as == "feed")
        request.as = fleet::BlobKind::feed;
    else if (!arguments.as.empty())
        return invalid_request(fmt::format("--as {}: expected image or feed", arguments.as));
    SIEVE_ASSIGN(request.rollout.stages, fleet::parse_stages(arguments.stages));
    if (arguments.soak > fleet::longest_soak)
        return invalid_request(
            fmt::format("--soak {}: expected 0 to {} seconds", arguments.soak, fleet::longest_soak));
    request.rollout.soak_seconds = arguments.soak;
    if (!(arguments.most_jump >= 0 && arguments.most_jump <= 1))
        return invalid_request(
            fmt::format("--most-jump {}: expected a share from 0 to 1", arguments.most_jump));
    request.rollout.most_jump_permille = static_cast<std::uint32_t>(std::lround(arguments.most_jump * 1000));
    if (arguments.on_failure == "rollback")
        request.rollout.on_failure = fleet::OnRolloutFailure::rollback;
    else if (arguments.on_failure != "halt")
        return invalid_request(
            fmt::format("--on-failure {}: expected halt or rollback", arguments.on_failure));
    request.only = arguments.only;
    request.again = arguments.again;
    request.force = arguments.force;
    SIEVE_ASSIGN(request.valid, arguments.fleet.validity());
    return request;
}

const char* word_of(const fleet::PublishedSet& one) {
    if (!one.uploaded) return "as before";
    return *one.uploaded == fleet::Uploaded::sent ? "sent to the store" : "in the store already";
}

void print(const fleet::Published& published, const Context& context) {
    const fleet::Manifest& manifest = published.manifest.manifest;
    if (context.json) {
        // The manifest's text is JSON already.
        nlohmann::json out = parse_json(fleet::manifest_text(manifest));
        out["digest"] = published.manifest.digest;
        nlohmann::json uploaded = nlohmann::json::array();
        for (const fleet::PublishedSet& one : published.sets)
            if (one.uploaded == fleet::Uploaded::sent) uploaded.push_back(one.set.name);
        out["uploaded"] = std::move(uploaded);
        nlohmann::json deltas = nlohmann::json::object();
        for (const fleet::PublishedSet& one : published.sets)
            if (one.delta_bytes != 0) deltas[one.set.name] = one.delta_bytes;
        out["delta_bytes"] = std::move(deltas);
        print_out("{}\n", json_text(out));
        return;
    }
    if (context.quiet) return;
    print_out("fleet {}: published manifest {}, stages {}\n", manifest.fleet,
              published.manifest.digest.substr(0, 12), fleet::stages_text(manifest.rollout.stages));
    for (const fleet::PublishedSet& one : published.sets)
        print_out("  set {}: {} of {}, {}, {}{}\n", one.set.name,
                  one.set.as == fleet::BlobKind::image ? "an image" : "a feed",
                  format_counted(one.set.entries, "entry", "entries"), format_bytes(one.set.bytes),
                  word_of(one),
                  one.delta_bytes == 0 ? std::string()
                                       : fmt::format(", {} for nodes that have the feed before",
                                                     format_bytes(one.delta_bytes)));
}

Result<Exit> run_publish(const PublishArguments& arguments, Context& context) {
    SIEVE_ASSIGN(fleet::PublishRequest request, request_of(arguments, context));
    SIEVE_ASSIGN(const fleet::FleetAccess access, arguments.fleet.access());
    SIEVE_ASSIGN(const fleet::SigningKey key, arguments.fleet.key());
    SIEVE_ASSIGN(request.last_serial, arguments.fleet.last_serial());
    SIEVE_ASSIGN(const fleet::Published published, fleet::publish(access, key, request, observer(context)));
    context.changed = true;
    arguments.fleet.keep_serial(published.manifest.manifest.serial, context);
    print(published, context);
    return Exit::done;
}

} // namespace

void add_publish(CLI::App& app, Context& context) {
    add_command(
        app, context, "publish", "bring sets to all nodes of a fleet",
        [&context](Arguments command) -> Action {
            auto arguments = std::make_shared<PublishArguments>();
            command.add("SET", arguments->sets, "NAME=IMAGE or NAME=FEED, with options as for `load`")
                .required();
            arguments->fleet.add_to(command);
            command
                .add("--as", arguments->as,
                     "an image shares its hash keys; of a feed each node builds its own; if not given, what "
                     "SET is")
                .called("image|feed");
            command
                .add("--stages", arguments->stages,
                     "shares of all nodes, or labels of nodes, one after the other: canary,1%,10%,100%")
                .called("STAGES")
                .show_default();
            command.add("--soak", arguments->soak, "how long a stage must be healthy before the next one")
                .called("SECONDS")
                .show_default();
            command
                .add("--most-jump", arguments->most_jump,
                     "how much the share of dropped packets may rise on a node")
                .called("SHARE")
                .show_default();
            command.add("--on-failure", arguments->on_failure, "what an unhealthy stage leads to")
                .called("halt|rollback")
                .show_default();
            arguments->fleet.add_validity_to(command);
            command.add_flag("--only", arguments->only, "take the fleet's other sets out of the manifest");
            command.add_flag("--again", arguments->again, "send what is in the store already, too");
            command.add_flag("--force", arguments->force,
                             "replace what is published even if no trusted key has signed it, and build on "
                             "it even if it is older than what this key published last");
            return [arguments, &context] { return run_publish(*arguments, context); };
        });
}

} // namespace sieve::cli
