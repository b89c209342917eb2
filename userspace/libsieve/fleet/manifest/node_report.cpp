// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/node_report.hpp"

#include <nlohmann/json.hpp>

#include "libsieve/util/text/json_text.hpp"

namespace sieve::fleet {

// Each field is named once, here.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeTraffic, packets, matched, dropped)
NLOHMANN_JSON_SERIALIZE_ENUM(NodeState, {
                                            {NodeState::waiting, "waiting"},
                                            {NodeState::fetching, "fetching"},
                                            {NodeState::in_force, "in_force"},
                                            {NodeState::failed, "failed"},
                                            {NodeState::refused, "refused"},
                                        })
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeReport, node, labels, wanted, manifest, stage, state, error, sets,
                                   before, after, since)

using nlohmann::json;

const char* node_state_name(NodeState state) {
    switch (state) {
    case NodeState::waiting:
        return "waiting";
    case NodeState::fetching:
        return "fetching";
    case NodeState::in_force:
        return "in_force";
    case NodeState::failed:
        return "failed";
    case NodeState::refused:
        return "refused";
    }
    return "";
}

std::string report_text(const NodeReport& report) {
    return json_text(json(report), json_one_line);
}

Result<NodeReport> parse_report(const std::string& text, const std::string& node) {
    try {
        auto report = parse_json(text).get<NodeReport>();
        if (report.node == node) return report;
    } catch (const json::exception&) { // as below
    }
    return bad_input("a node's report cannot be understood");
}

} // namespace sieve::fleet
