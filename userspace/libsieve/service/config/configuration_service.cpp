// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_service.hpp"

#include "libsieve/service/config/configuration_access.hpp"
#include "libsieve/service/config/configuration_sources.hpp"
#include "libsieve/service/config/values/listen_address.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

const Words<OnStop> stop_words{{"keep", OnStop::keep}, {"unload", OnStop::unload}};

void read_state_directory(Section& section, const KeyContext&, Configuration& into) {
    const auto text = section.text("state-directory", "the path of a folder");
    if (!text) return;
    if (text->empty() || text->front() != '/' || text->find('\0') != std::string::npos)
        section.expected(*section.find("state-directory"), "state-directory", "an absolute path");
    into.state_directory = *text;
}

void read_listen(Section& section, const KeyContext&, Configuration& into) {
    constexpr std::string_view address = R"("ADDRESS:PORT", "[ADDRESS]:PORT", or "" for none)";
    const auto text = section.text("listen", address);
    if (!text) return;
    if (!text->empty() && !parse_listen_address(*text))
        section.expected(*section.find("listen"), "listen", address);
    into.listen = *text;
}

void read_ban_group(Section& section, const KeyContext&, Configuration& into) {
    constexpr std::string_view group = "the name of a group";
    const auto text = section.text("ban-group", group);
    if (!text) return;
    if (text->empty() || has_control(*text)) section.expected(*section.find("ban-group"), "ban-group", group);
    into.ban_group = *text;
}
void write_ban_group(TomlText& text, const Configuration& configuration) {
    if (configuration.ban_group.empty())
        text.none("ban-group", "only root bans");
    else
        text.word("ban-group", configuration.ban_group);
}

} // namespace

const ConfigurationKeys<Configuration>& service_keys() {
    static const ConfigurationKeys<Configuration> keys = joined<Configuration>({
        {{"state-directory", "folder",
          "keeps the last good list and the filter of each set; only root may read it", read_state_directory,
          [](TomlText& text, const Configuration& configuration) {
              text.word("state-directory", configuration.state_directory);
          }},
         choice_key("on-stop", "whether a daemon that ends keeps or unloads what is in force", stop_words,
                    &Configuration::on_stop),
         {"listen", "address:port",
          "where the daemon serves metrics and the status page; an empty text turns both off", read_listen,
          [](TomlText& text, const Configuration& configuration) {
              text.word("listen", configuration.listen);
          }},
         {"ban-group", "group", "whose members, besides root, may give, lift and list bans", read_ban_group,
          write_ban_group}},
        keys_of_part(&Configuration::http, way_keys()),
        {geo_key()},
    });
    return keys;
}

void read_service(Mistakes& mistakes, const toml::table& table, const KeyContext& context,
                  Configuration& into) {
    Section section(mistakes, table, "service");
    read_keys(service_keys(), section, context, into);
    check_access(section, into.http);
    section.finish();
}

} // namespace sieve::service
