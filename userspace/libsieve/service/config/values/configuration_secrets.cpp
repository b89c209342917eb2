// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/values/configuration_secrets.hpp"

#include <algorithm>
#include <variant>

#include "libsieve/service/download/exposed_password.hpp"

namespace sieve::service {

namespace {

void add(std::vector<std::string>& sentences, std::vector<std::string> more) {
    for (std::string& sentence : more)
        if (std::ranges::find(sentences, sentence) == sentences.end())
            sentences.push_back(std::move(sentence));
}

void add_of(std::vector<std::string>& sentences, const SourceSpec& source) {
    if (const auto* http = std::get_if<HttpSpec>(&source))
        add(sentences, exposed_passwords(http->url, http->access));
    if (const auto* crowdsec = std::get_if<CrowdsecSpec>(&source))
        add(sentences, exposed_passwords(crowdsec->url, crowdsec->access,
                                         crowdsec->key_file.empty() ? "" : "the bouncer's key"));
}

void add_of(std::vector<std::string>& sentences, const FleetConfiguration& fleet) {
    if (!fleet.etcd.user.empty())
        for (const std::string& endpoint : fleet.etcd.endpoints)
            add(sentences, exposed_passwords(endpoint, {}, "the password"));
    // S3 is sent a signature instead.
    if (!fleet.store.credentials_file.empty() && fleet.store.region.empty())
        add(sentences, exposed_passwords(fleet.store.url, {}, "the password"));
}

} // namespace

std::vector<std::string> exposed_passwords(const Configuration& configuration) {
    std::vector<std::string> sentences;
    for (const SourceSpec& source : configuration.geo) add_of(sentences, source);
    for (const SetConfiguration& set : configuration.sets)
        for (const SourceSpec& source : set.sources) add_of(sentences, source);
    if (configuration.fleet) add_of(sentences, *configuration.fleet);
    return sentences;
}

} // namespace sieve::service
