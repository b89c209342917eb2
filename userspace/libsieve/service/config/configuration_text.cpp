// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_text.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "libsieve/control/spec/build_options.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/service/config/configuration_fleet.hpp"
#include "libsieve/service/config/configuration_interfaces.hpp"
#include "libsieve/service/config/configuration_service.hpp"
#include "libsieve/service/config/configuration_sets.hpp"
#include "libsieve/service/config/toml_text.hpp"

namespace sieve::service {

namespace {

void write_build_options(TomlText& text, const control::FeedSpec& feed) {
    const BuildOptions& build = feed.build;
    const KindFacts& facts = kind_of(build.kind.kind).facts();
    text.word("key", format_fields(feed.fields));
    text.word("format", format_list_format(feed.format));
    const bool automatic = build.kind.kind == automatic_kind;
    text.word("kind", automatic ? "auto" : facts.name);
    if (build.fpr) text.number("fpr", *build.fpr);
    if (build.memory) text.key("memory", whole_of(*build.memory));
    const auto number_or = [&](std::string_view name, const auto& value, bool taken,
                               std::string_view meaning) {
        if (value)
            text.number(name, *value);
        else if (taken)
            text.none(name, meaning);
    };
    number_or("bits-per-key", build.bits_per_key, automatic && !build.fpr && !build.memory,
              "as the kind needs");
    number_or("choices", build.kind.choices, automatic, "as the kind has them");
    number_or("alpha", build.kind.alpha, automatic || facts.takes_alpha, "every key has a choice");
    number_or("hashes", build.kind.hashes, automatic || facts.takes_hashes, "the best number");
    text.word("effort", effort_name(build.kind.effort));
    number_or("rounds", build.kind.rounds, automatic, "as the effort asks");
    text.number("max-probes", build.prefixes.max_probes);
    text.key("max-keys", whole_of(build.prefixes.max_keys));
    for (int family = 0; family < SIEVE_FAMILIES; family++) {
        const char* const name = family == SIEVE_FAMILY_V4 ? "v4-lengths" : "v6-lengths";
        const std::vector<std::uint32_t>& lengths = build.prefixes.lengths[family];
        if (lengths.empty())
            text.none(name, "as the list leads to");
        else
            text.word(name, control::format_lengths(lengths, family));
    }
    text.flag("skip-invalid", feed.skip_invalid);
    text.word("host-bits", feed.mask_host_bits ? "mask" : "refuse");
    text.flag("allow-wide", feed.allow_wide);
    if (feed.except.empty())
        text.none("except", "nothing");
    else
        text.word("except", feed.except);
}

// Threads do not decide which filter is built.
void write_threads(TomlText& text, const control::FeedSpec& feed) {
    if (feed.build.threads != 0)
        text.number("threads", feed.build.threads);
    else
        text.none("threads", "as many as processors");
}

std::string text_of(const SetConfiguration& set) {
    TomlText text = text_of_keys(set_keys(), set);
    write_build_options(text, set.feed);
    write_threads(text, set.feed);
    return fmt::format("\n[set.{0}]\n{1}\n[set.{0}.guards]\n{2}", quoted(set.name), text.lines(),
                       text_of_keys(guard_keys(), set.guards).lines());
}

std::string text_of(const FleetConfiguration& fleet) {
    return fmt::format(
        "\n[fleet]\n{}\n[fleet.etcd]\n{}\n[fleet.store]\n{}", text_of_keys(fleet_keys(), fleet).lines(),
        text_of_keys(etcd_keys(), fleet.etcd).lines(), text_of_keys(store_keys(), fleet.store).lines());
}

} // namespace

std::string configuration_text(const Configuration& configuration) {
    std::string text = "[service]\n" + text_of_keys(service_keys(), configuration).lines();
    for (const InterfaceConfiguration& entry : configuration.interfaces)
        text += "\n[[interface]]\n" + text_of_keys(interface_keys(), entry).lines();
    for (const SetConfiguration& set : configuration.sets) text += text_of(set);
    if (configuration.fleet) text += text_of(*configuration.fleet);
    return text;
}

std::string build_text(const SetConfiguration& set) {
    TomlText text;
    write_build_options(text, set.feed);
    // What a list without a kind leads to (build/default_kind.hpp), so that another rule builds it again.
    if (set.feed.build.kind.kind == automatic_kind) text.word("auto", "exact, ranges or a filter");
    text.flag("verify", set.verify);
    write_keys(guard_keys(), text, set.guards);
    // What a source must no longer hand over does not stay in force as known.
    text.flag("image", std::ranges::all_of(set.sources, may_be_image));
    return text.lines();
}

} // namespace sieve::service
