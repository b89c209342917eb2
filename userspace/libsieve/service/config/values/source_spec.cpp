// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/values/source_spec.hpp"

#include "libsieve/service/download/url.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

std::string name(const FileSpec& file) {
    return printable(file.path);
}
std::string name(const FolderSpec& folder) {
    return printable(folder.path);
}
std::string name(const GlobSpec& glob) {
    return printable(glob.pattern);
}
std::string name(const HttpSpec& http) {
    return displayed_url(http.url);
}
std::string name(const CommandSpec& command) {
    return "command " + (command.arguments.empty() ? std::string("without a program")
                                                   : printable(command.arguments.front()));
}
std::string name(const CrowdsecSpec& crowdsec) {
    return "CrowdSec " + displayed_url(crowdsec.url);
}

std::string name(const BanSpec&) {
    return ban_source;
}

} // namespace

std::string source_name(const SourceSpec& source) {
    return std::visit([](const auto& one) { return name(one); }, source);
}

bool is_stream(const SourceSpec& source) {
    return std::holds_alternative<CrowdsecSpec>(source) || std::holds_alternative<BanSpec>(source);
}

bool may_be_image(const SourceSpec& source) {
    if (const auto* http = std::get_if<HttpSpec>(&source)) return http->image;
    if (const auto* command = std::get_if<CommandSpec>(&source)) return command->image;
    return !is_stream(source);
}

} // namespace sieve::service
