// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/origin.hpp"

#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "libsieve/service/download/url.hpp"
#include "libsieve/service/sources/file_source.hpp"
#include "libsieve/util/files/digest.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

std::string name(const FileOrigin& file) {
    return printable(file.path);
}
std::string name(const HttpOrigin& http) {
    return displayed_url(http.url);
}
std::string name(const CommandOrigin& command) {
    return "command " + (command.arguments.empty() ? std::string("without a program")
                                                   : printable(command.arguments.front()));
}
std::string name(const OpenOrigin& open) {
    return printable(open.name);
}
std::string name(const MovedOrigin& moved) {
    return moved.identity;
}

// What the name leaves out.
std::string secret(const FileOrigin&) {
    return {};
}
std::string secret(const HttpOrigin& http) {
    const HttpAccess& access = http.access;
    std::string all = http.url == displayed_url(http.url) ? std::string() : http.url;
    // Another user may be told another list.
    for (const std::string* who :
         {&access.server.client_certificate, &access.header_file, &access.username, &access.password_file})
        if (!who->empty()) all += '\0' + *who;
    return all;
}
std::string secret(const CommandOrigin& command) {
    std::string all;
    for (const std::string& argument : command.arguments) all += argument + '\0';
    return all;
}
std::string secret(const OpenOrigin&) {
    return {};
}
std::string secret(const MovedOrigin&) {
    return {};
}

Status check(const FileOrigin& file) {
    if (file.path.empty()) return invalid_request("a list's path is empty");
    return {};
}
Status check(const HttpOrigin& http) {
    return check_url(http.url);
}
Status check(const CommandOrigin& command) {
    if (command.arguments.empty() || command.arguments.front().empty())
        return invalid_request("a command without a program");
    return {};
}
Status check(const OpenOrigin& open) {
    if (open.descriptor < 0) return invalid_request(fmt::format("{}: is not open", name(open)));
    return {};
}
Status check(const MovedOrigin&) {
    return {};
}

// Adds what a source stands for to a list of origins.
class Collector {
  public:
    Status add(const FileSpec& file) { return add_files({file.path}); }
    Status add(const FolderSpec& folder) {
        SIEVE_ASSIGN(const std::vector<std::string> files, files_of_folder(folder.path));
        return add_files(files);
    }
    Status add(const GlobSpec& glob) {
        SIEVE_ASSIGN(const std::vector<std::string> files, files_of_glob(glob.pattern));
        return add_files(files);
    }
    Status add(const HttpSpec& http) {
        origins_.emplace_back(HttpOrigin{http.url, http.access, http.limits, http.image});
        return {};
    }
    Status add(const CommandSpec& command) {
        CommandOrigin origin{command.arguments, {}, command.limits, command.image};
        if (!command.user.empty()) {
            SIEVE_ASSIGN(origin.user, find_sandbox_user(command.user));
        }
        origins_.emplace_back(std::move(origin));
        return {};
    }
    Status add(const CrowdsecSpec&) { return {}; }
    Status add(const BanSpec&) { return {}; }

    [[nodiscard]] std::size_t size() const { return origins_.size(); }
    [[nodiscard]] std::vector<Origin> take() { return std::move(origins_); }
    // Of files that have another name among the origins, this one.
    [[nodiscard]] const std::vector<std::string>& other_names() const { return other_names_; }

  private:
    // A file that two sources name is one list.
    Status add_files(const std::vector<std::string>& files) {
        for (const std::string& path : files) {
            struct stat info {};
            const bool known =
                ::stat(path.c_str(), &info) == 0 && !files_.emplace(info.st_dev, info.st_ino).second;
            if (known)
                other_names_.push_back(path);
            else
                origins_.emplace_back(FileOrigin{path});
        }
        return {};
    }

    std::vector<Origin> origins_;
    std::vector<std::string> other_names_;
    std::set<std::pair<dev_t, ino_t>> files_;
};

// Whether the file is where the source's files are.
bool would_list(const FolderSpec& folder, const std::string& identity) {
    const std::string path = printable(folder.path);
    return identity.starts_with(path) && identity.find('/', path.size()) == std::string::npos;
}
bool would_list(const GlobSpec& glob, const std::string& identity) {
    return ::fnmatch(glob.pattern.c_str(), identity.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
}
bool would_list(const auto&, const std::string&) {
    return false;
}
bool may_list(const SourceSpec& source, const std::string& identity) {
    return std::visit([&](const auto& one) { return would_list(one, identity); }, source);
}

} // namespace

Result<std::vector<Origin>> origins_of(const std::vector<SourceSpec>& sources) {
    Collector collector;
    for (const SourceSpec& source : sources)
        SIEVE_TRY(std::visit([&](const auto& one) { return collector.add(one); }, source));
    return collector.take();
}

static bool any_lists(const std::vector<SourceSpec>& sources, const std::string& identity) {
    return std::ranges::any_of(sources, [&](const SourceSpec& one) { return may_list(one, identity); });
}

bool SourceIdentities::may_have(const std::string& identity) const {
    return known.contains(identity) || any_lists(unlisted, identity) || needs_no_answer(identity);
}

bool SourceIdentities::needs_no_answer(const std::string& identity) const {
    return other_names.contains(identity) || any_lists(without_files, identity);
}

bool SourceIdentities::may_be(const std::set<std::string>& identities) const {
    const auto has_one = [&](const SourceSpec& source) {
        return std::ranges::any_of(identities, [&](const std::string& one) { return may_list(source, one); });
    };
    return std::ranges::includes(identities, known) &&
           std::ranges::all_of(identities, [&](const std::string& one) { return may_have(one); }) &&
           std::ranges::all_of(unlisted, has_one) && std::ranges::all_of(without_files, has_one);
}

SourceIdentities source_identities(const std::vector<SourceSpec>& sources) {
    SourceIdentities all;
    Collector collector;
    for (const SourceSpec& source : sources) {
        const std::size_t before = collector.size();
        if (is_stream(source))
            all.known.insert(source_name(source));
        else if (const auto* file = std::get_if<FileSpec>(&source))
            all.known.insert(origin_identity(FileOrigin{file->path}));
        else if (const auto* command = std::get_if<CommandSpec>(&source)) // without its user
            all.known.insert(origin_identity(CommandOrigin{command->arguments}));
        else if (!std::visit([&](const auto& one) { return collector.add(one); }, source))
            all.unlisted.push_back(source);
        else if (collector.size() == before)
            all.without_files.push_back(source);
    }
    for (const Origin& origin : collector.take()) all.known.insert(origin_identity(origin));
    for (const std::string& path : collector.other_names())
        all.other_names.insert(origin_identity(FileOrigin{path}));
    return all;
}

std::string origin_name(const Origin& origin) {
    return std::visit([](const auto& one) { return name(one); }, origin);
}

std::string origin_identity(const Origin& origin) {
    const std::string hidden = std::visit([](const auto& one) { return secret(one); }, origin);
    // Enough to tell, and too little to guess a key from.
    constexpr std::size_t digits = 8;
    return origin_name(origin) + (hidden.empty() ? "" : " #" + digest_of(hidden).substr(0, digits));
}

std::string exceptions_identity(const std::string& path) {
    return path.empty() ? std::string() : origin_identity(FileOrigin{path});
}

bool may_be_image(const Origin& origin) {
    if (const auto* http = std::get_if<HttpOrigin>(&origin)) return http->image;
    if (const auto* command = std::get_if<CommandOrigin>(&origin)) return command->image;
    return true;
}

Status check_origin(const Origin& origin) {
    return std::visit([](const auto& one) { return check(one); }, origin);
}

} // namespace sieve::service
