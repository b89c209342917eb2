// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/manifest.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/control/spec/set_action.hpp"
#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/kernel/maps/set_table.hpp"
#include "libsieve/service/monitor/words.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::fleet {

namespace {

using nlohmann::json;

constexpr std::uint32_t whole = 1000; // permille
constexpr std::uint64_t version_without_times = 1;

constexpr std::string_view name_of(BlobKind kind) {
    return kind == BlobKind::image ? "image" : "feed";
}
constexpr std::string_view name_of(OnRolloutFailure then) {
    return then == OnRolloutFailure::halt ? "halt" : "rollback";
}

json to_json(const ManifestSet& set) {
    return {{"action", set.action}, {"as", name_of(set.as)},  {"bytes", set.bytes},
            {"digest", set.digest}, {"entries", set.entries}, {"identity", set.identity},
            {"name", set.name},     {"rate", set.rate}};
}
json to_json(const Stage& stage) {
    return {{"label", stage.label}, {"permille", stage.permille}};
}
json to_json(const Rollout& rollout) {
    json stages = json::array();
    for (const Stage& stage : rollout.stages) stages.push_back(to_json(stage));
    return {{"most_jump_permille", rollout.most_jump_permille},
            {"on_failure", name_of(rollout.on_failure)},
            {"soak_seconds", rollout.soak_seconds},
            {"stages", std::move(stages)}};
}
json to_json(const Manifest& manifest) {
    json sets = json::array();
    for (const ManifestSet& set : manifest.sets) sets.push_back(to_json(set));
    json all = {{"fleet", manifest.fleet},
                {"previous", manifest.previous},
                {"rollout", to_json(manifest.rollout)},
                {"rolls_back", manifest.rolls_back},
                {"serial", manifest.serial},
                {"sets", std::move(sets)},
                {"version", version_without_times}};
    if (manifest.valid_until == 0) return all;
    all["published_at"] = manifest.published_at;
    all["valid_until"] = manifest.valid_until;
    all["version"] = manifest_version;
    return all;
}

std::string text_of(const json& value) {
    return json_text(value, json_one_line);
}

// Reads one object field by field, and remembers the first thing that is wrong.
class Fields {
  public:
    Fields(const json& object, std::string place, std::string& fault)
        : object_(object), place_(std::move(place)), fault_(fault) {
        if (!object_.is_object()) expected("", "an object");
    }

    std::string text(const char* name, const std::function<bool(const std::string&)>& fits,
                     std::string_view what) {
        const json* value = find(name);
        if (value == nullptr) return {};
        if (!value->is_string() || !fits(value->get_ref<const std::string&>())) {
            expected(name, what);
            return {};
        }
        return value->get<std::string>();
    }
    std::uint64_t number(const char* name, std::uint64_t least, std::uint64_t most) {
        const json* value = find(name);
        if (value == nullptr) return least;
        if (!value->is_number_unsigned() || value->get<std::uint64_t>() < least ||
            value->get<std::uint64_t>() > most) {
            expected(name, fmt::format("a whole number from {} to {}", least, most));
            return least;
        }
        return value->get<std::uint64_t>();
    }
    double share(const char* name) {
        const json* value = find(name);
        if (value == nullptr) return 0;
        if (!value->is_number() || !(value->get<double>() >= 0) || value->get<double>() > 1) {
            expected(name, "a rate from 0 to 1");
            return 0;
        }
        return value->get<double>();
    }
    const json* array(const char* name, std::size_t least, std::size_t most) {
        const json* value = find(name);
        if (value == nullptr) return nullptr;
        if (!value->is_array() || value->size() < least || value->size() > most) {
            expected(name, fmt::format("{} to {} elements", least, most));
            return nullptr;
        }
        return value;
    }
    const json* find(const char* name) {
        if (!fault_.empty()) return nullptr;
        const auto found = object_.find(name);
        if (found == object_.end()) {
            expected(name, "a value");
            return nullptr;
        }
        return &*found;
    }
    void expected(const std::string& name, std::string_view what) {
        if (fault_.empty())
            fault_ = fmt::format("{}{}{}: expected {}", place_, place_.empty() || name.empty() ? "" : ".",
                                 name, what);
    }

  private:
    const json& object_;
    std::string place_;
    std::string& fault_;
};

bool is_empty_or_digest(const std::string& text) {
    return text.empty() || is_sha256(text);
}
bool is_empty_or_identity(const std::string& text) {
    return text.empty() ||
           (text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos);
}

ManifestSet read_set(const json& value, const std::string& place, std::string& fault) {
    constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;
    Fields fields(value, place, fault);
    ManifestSet set;
    set.name = fields.text(
        "name", [](const std::string& text) { return kernel::is_set_name(text); }, "a set's name");
    set.as = fields.text(
                 "as", [](const std::string& text) { return text == "image" || text == "feed"; },
                 "\"image\" or \"feed\"") == "feed"
                 ? BlobKind::feed
                 : BlobKind::image;
    set.digest = fields.text(
        "digest", [](const std::string& text) { return is_sha256(text); }, "a SHA-256");
    set.bytes = fields.number("bytes", 1, most_bytes);
    set.entries = fields.number("entries", 0, most_bytes);
    set.rate = fields.share("rate");
    set.identity = fields.text("identity", is_empty_or_identity, "an image's identity, or \"\"");
    set.action = fields.text(
        "action", [](const std::string& text) { return text.empty() || control::is_action_name(text); },
        "\"drop\", \"pass\", \"count\" or \"\"");
    return set;
}

Rollout read_rollout(const json& value, std::string& fault) {
    Fields fields(value, "rollout", fault);
    Rollout rollout;
    rollout.soak_seconds = static_cast<std::uint32_t>(fields.number("soak_seconds", 0, longest_soak));
    rollout.most_jump_permille = static_cast<std::uint32_t>(fields.number("most_jump_permille", 0, whole));
    rollout.on_failure =
        fields.text(
            "on_failure", [](const std::string& text) { return text == "halt" || text == "rollback"; },
            "\"halt\" or \"rollback\"") == "rollback"
            ? OnRolloutFailure::rollback
            : OnRolloutFailure::halt;
    rollout.stages.clear();
    const json* stages = fields.array("stages", 1, most_stages);
    if (stages == nullptr) return rollout;
    for (std::size_t i = 0; i < stages->size(); i++) {
        Fields one((*stages)[i], fmt::format("rollout.stages[{}]", i), fault);
        Stage stage;
        stage.label = one.text(
            "label", [](const std::string& text) { return text.empty() || is_fleet_name(text); },
            "a label, or \"\"");
        stage.permille = static_cast<std::uint32_t>(one.number("permille", 1, whole));
        rollout.stages.push_back(std::move(stage));
    }
    const Stage& last = rollout.stages.back();
    if (fault.empty() && (!last.label.empty() || last.permille != whole))
        fault = "rollout.stages: expected a last stage of all nodes";
    return rollout;
}

Manifest read_manifest(const json& value, std::string& fault) {
    Fields fields(value, "", fault);
    Manifest manifest;
    if (fields.number("version", version_without_times, manifest_version) == manifest_version) {
        constexpr std::uint64_t latest = std::uint64_t{1} << 33; // a time_point counts nanoseconds
        manifest.published_at = fields.number("published_at", 1, latest);
        manifest.valid_until =
            fields.number("valid_until", manifest.published_at + 1, manifest.published_at + longest_validity);
    }
    manifest.fleet = fields.text(
        "fleet", [](const std::string& text) { return is_fleet_name(text); }, "a fleet's name");
    manifest.serial = fields.number("serial", 1, ~std::uint64_t{0});
    manifest.previous = fields.text("previous", is_empty_or_digest, "a SHA-256, or \"\"");
    manifest.rolls_back = fields.text("rolls_back", is_empty_or_digest, "a SHA-256, or \"\"");
    if (const json* sets = fields.array("sets", 1, SIEVE_MAX_SETS))
        for (std::size_t i = 0; i < sets->size(); i++)
            manifest.sets.push_back(read_set((*sets)[i], fmt::format("sets[{}]", i), fault));
    const auto not_rising = [](const ManifestSet& a, const ManifestSet& b) { return a.name >= b.name; };
    if (fault.empty() &&
        std::adjacent_find(manifest.sets.begin(), manifest.sets.end(), not_rising) != manifest.sets.end())
        fault = "sets: expected different names in rising order";
    if (const json* rollout = fields.find("rollout")) manifest.rollout = read_rollout(*rollout, fault);
    return manifest;
}

tl::unexpected<Error> no_envelope() {
    return bad_input("what is published is no manifest with signatures");
}

} // namespace

bool is_fleet_name(std::string_view text) {
    constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    return !text.empty() && text.size() <= 64 && text.find_first_not_of(allowed) == std::string_view::npos;
}

std::string manifest_text(const Manifest& manifest) {
    return text_of(to_json(manifest));
}

Result<Manifest> parse_manifest(const std::string& text) {
    if (text.size() > longest_manifest) return bad_input("manifest: longer than a manifest can be");
    const json value = parse_json(text);
    if (value.is_discarded()) return bad_input("manifest: expected JSON");
    std::string fault;
    Manifest manifest = read_manifest(value, fault);
    if (!fault.empty()) return bad_input("manifest: " + fault);
    // Unknown keys, blanks, and other ways to write the same would give it a second digest.
    if (manifest_text(manifest) != text) return bad_input("manifest: expected its canonical text");
    return manifest;
}

std::string time_text(std::uint64_t seconds) {
    return service::watching::utc_time(
        std::chrono::system_clock::time_point(std::chrono::seconds(static_cast<std::int64_t>(seconds))));
}

std::string manifest_digest(const Manifest& manifest) {
    return sha256_of(manifest_text(manifest));
}

Result<std::string> sign_manifest(const Manifest& manifest, const SigningKey& key) {
    const std::string text = manifest_text(manifest);
    SIEVE_TRY(parse_manifest(text)); // what nodes would refuse is not signed
    SIEVE_ASSIGN(const std::string signature, key.sign(std::string(signature_context) + text));
    return text_of({{"manifest", text},
                    {"signatures", json::array({{{"key", key.id()}, {"signature", to_base64(signature)}}})}});
}

Result<SignedManifest> open_envelope(const std::string& envelope, const std::string& fleet,
                                     std::span<const PublicKey> pinned) {
    if (envelope.size() > 2 * longest_manifest) return no_envelope();
    const json value = parse_json(envelope);
    if (!value.is_object() || !value.contains("manifest") || !value["manifest"].is_string() ||
        !value.contains("signatures") || !value["signatures"].is_array())
        return no_envelope();
    const std::string text = value["manifest"].get<std::string>();
    const json& signatures = value["signatures"];
    if (signatures.empty()) return bad_input("the manifest has no signature, expected one of a pinned key");
    if (signatures.size() > most_signatures) return no_envelope();
    const std::string message = std::string(signature_context) + text;
    SignedManifest opened;
    std::string strangers;
    for (const json& one : signatures) {
        if (!one.is_object() || !one.contains("key") || !one["key"].is_string() ||
            !one.contains("signature") || !one["signature"].is_string())
            return no_envelope();
        const auto& id = one["key"].get_ref<const std::string&>();
        const auto key =
            std::ranges::find_if(pinned, [&](const PublicKey& known) { return known.id() == id; });
        if (key == pinned.end()) {
            strangers += (strangers.empty() ? "" : ", ") + printable(id, 16);
            continue;
        }
        const auto signature = from_base64(one["signature"].get_ref<const std::string&>());
        if (!signature || !key->signed_by(message, *signature))
            return bad_input(fmt::format("the manifest's signature by key {} is wrong", id));
        opened.signers.push_back(id);
        opened.signatures.push_back({id, *signature});
    }
    if (opened.signers.empty())
        return bad_input(fmt::format("the manifest is signed by {}, which is not pinned here", strangers));
    SIEVE_ASSIGN(opened.manifest, parse_manifest(text));
    if (opened.manifest.fleet != fleet)
        return bad_input(fmt::format("the manifest was made for fleet {}, expected {}", opened.manifest.fleet,
                                     printable(fleet)));
    opened.digest = sha256_of(text);
    return opened;
}

} // namespace sieve::fleet
