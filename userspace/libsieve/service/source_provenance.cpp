// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/source_provenance.hpp"

#include <nlohmann/json.hpp>

namespace sieve::service {

namespace {

void take(const nlohmann::json& json, const char* name, std::string& to) {
    if (const auto found = json.find(name); found != json.end() && found->is_string())
        to = found->get<std::string>();
}

template <class Number>
void take(const nlohmann::json& json, const char* name, Number& to) {
    if (const auto found = json.find(name); found != json.end() && found->is_number_integer())
        to = found->get<Number>();
}

} // namespace

void to_json(nlohmann::json& json, const SourceProvenance& provenance) {
    json = {{"source", provenance.source},
            {"digest", provenance.digest},
            {"bytes", provenance.bytes},
            {"etag", provenance.etag},
            {"last_modified", provenance.last_modified},
            {"asked", provenance.asked},
            {"changed", provenance.changed}};
}

void from_json(const nlohmann::json& json, SourceProvenance& provenance) {
    provenance = {};
    if (!json.is_object()) return;
    take(json, "source", provenance.source);
    take(json, "digest", provenance.digest);
    take(json, "bytes", provenance.bytes);
    take(json, "etag", provenance.etag);
    take(json, "last_modified", provenance.last_modified);
    take(json, "asked", provenance.asked);
    take(json, "changed", provenance.changed);
}

} // namespace sieve::service
