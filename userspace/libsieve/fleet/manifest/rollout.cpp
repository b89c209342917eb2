// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/rollout.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/number.hpp"

namespace sieve::fleet {

namespace {

using nlohmann::json;

constexpr std::array<std::pair<RolloutState, const char*>, 5> state_names{{
    {RolloutState::running, "running"},
    {RolloutState::paused, "paused"},
    {RolloutState::halted, "halted"},
    {RolloutState::rolled_back, "rolled_back"},
    {RolloutState::complete, "complete"},
}};

constexpr std::uint32_t whole = 1000; // permille

// Since a node was not well with it.
bool is_stopped(RolloutState state) {
    return state == RolloutState::halted || state == RolloutState::rolled_back;
}

// In [0, 1000).
std::uint32_t place_of(const std::string& digest, const std::string& node) {
    const std::string hash = sha256_of(digest + '\n' + node);
    constexpr std::size_t digits = 12; // the bias of the remainder is below 4e-12
    return static_cast<std::uint32_t>(std::strtoull(hash.substr(0, digits).c_str(), nullptr, 16) % whole);
}

} // namespace

const char* rollout_state_name(RolloutState state) {
    for (const auto& [known, name] : state_names)
        if (known == state) return name;
    return "";
}

std::string rollout_text(const RolloutRecord& record) {
    const json value = {{"by", record.by},
                        {"manifest", record.manifest},
                        {"since", record.since},
                        {"stage", record.stage},
                        {"state", rollout_state_name(record.state)},
                        {"why", record.why}};
    return json_text(value, json_one_line);
}

Result<RolloutRecord> parse_rollout(const std::string& text) {
    const auto fault = [] {
        return bad_input("the record of the rollout cannot be understood; the next `xdp-sieve publish` or "
                         "`xdp-sieve fleet rollback` replaces it");
    };
    const json value = parse_json(text);
    if (!value.is_object()) return fault();
    for (const char* name : {"by", "manifest", "state", "why"})
        if (!value.contains(name) || !value[name].is_string()) return fault();
    for (const char* name : {"since", "stage"})
        if (!value.contains(name) || !value[name].is_number_unsigned()) return fault();
    if (value["stage"].get<std::uint64_t>() >= most_stages) return fault();
    const auto& word = value["state"].get_ref<const std::string&>();
    const auto* state =
        std::ranges::find_if(state_names, [&](const auto& known) { return word == known.second; });
    if (state == state_names.end() || !is_sha256(value["manifest"].get_ref<const std::string&>()))
        return fault();
    return RolloutRecord{.manifest = value["manifest"],
                         .stage = value["stage"],
                         .state = state->first,
                         .since = value["since"],
                         .by = value["by"],
                         .why = value["why"]};
}

Result<std::vector<Stage>> parse_stages(const std::string& text) {
    std::vector<Stage> stages;
    double covered = 0; // permille of all nodes, by the shares so far
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        std::string word = text.substr(begin, comma - begin);
        begin = comma + 1;
        Stage stage;
        if (word.ends_with('%')) {
            const std::optional<double> percent = parse_real(word.substr(0, word.size() - 1));
            const double wanted = percent ? *percent * 10 : 0;
            const double permille = std::round(wanted);
            if (!(permille >= 1 && permille <= whole) || std::abs(wanted - permille) > 1e-6)
                return invalid_request(
                    fmt::format("stage `{}`: expected 0.1% to 100%, in steps of 0.1%", word));
            stage.permille = static_cast<std::uint32_t>(permille);
        } else if (is_fleet_name(word)) {
            stage.label = word;
        } else {
            return invalid_request(fmt::format(
                "stage `{}`: expected a share of all nodes, such as 1%, or a label of nodes", word));
        }
        const bool has_nodes = stage.label.empty()
                                   ? stage.permille > covered
                                   : covered < whole && std::ranges::count(stages, stage) == 0;
        if (!has_nodes)
            return invalid_request(
                fmt::format("stage `{}`: the stages before it have all of its nodes", word));
        if (stage.label.empty()) covered = stage.permille;
        stages.push_back(std::move(stage));
    }
    if (stages.back() != Stage{}) stages.emplace_back();
    if (stages.size() > most_stages)
        return invalid_request(fmt::format("{} stages, expected at most {}", stages.size(), most_stages));
    return stages;
}

std::string stages_text(const std::vector<Stage>& stages) {
    std::string text;
    for (const Stage& stage : stages) {
        if (!text.empty()) text += ',';
        text += stage.label.empty() ? fmt::format("{:g}%", stage.permille / 10.0) : stage.label;
    }
    return text;
}

std::uint32_t stage_of(const Manifest& manifest, const std::string& digest, const std::string& node,
                       const std::vector<std::string>& labels) {
    const std::uint32_t place = place_of(digest, node);
    const std::vector<Stage>& stages = manifest.rollout.stages;
    for (std::uint32_t i = 0; i + 1 < stages.size(); i++) {
        const Stage& stage = stages[i];
        const bool covered = stage.label.empty() ? place < stage.permille
                                                 : std::ranges::find(labels, stage.label) != labels.end();
        if (covered) return i;
    }
    return static_cast<std::uint32_t>(stages.size() - 1);
}

bool has_come_to_all(const SignedManifest& published, const RolloutRecord& record) {
    return !is_stopped(record.state) && record.stage + 1 >= published.manifest.rollout.stages.size();
}

std::optional<Turn> turn_of(const SignedManifest& published, const RolloutRecord& record, std::uint32_t stage,
                            bool has_begun) {
    if (record.manifest != published.digest) return std::nullopt;
    // Going back must have been signed, or whoever may write to etcd could have old lists in force.
    const bool may_go_back = published.manifest.rollout.on_failure == OnRolloutFailure::rollback;
    if (record.state == RolloutState::rolled_back && may_go_back) return Turn::before;
    if (is_stopped(record.state) && !has_begun) return Turn::before;
    return stage <= record.stage ? Turn::now : Turn::before;
}

} // namespace sieve::fleet
