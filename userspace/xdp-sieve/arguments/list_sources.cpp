// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/arguments/list_sources.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "front-end/set_argument.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/service/download/exposed_password.hpp"
#include "libsieve/service/download/libcurl_on_demand.hpp"
#include "libsieve/service/download/url.hpp"
#include "libsieve/service/sources/file_source.hpp"
#include "libsieve/service/sources/gather.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::cli {

namespace {

// Nothing: it stands for itself.
Result<std::optional<std::vector<std::string>>> files_of(const std::string& source) {
    struct stat info {};
    if (is_url(source)) return std::nullopt;
    if (::stat(source.c_str(), &info) == 0) {
        if (!S_ISDIR(info.st_mode)) return std::nullopt;
        return service::files_of_folder(source);
    }
    if (source.find_first_of("*?[") == std::string::npos) return std::nullopt;
    return service::files_of_glob(source);
}

// What was downloaded, by URL.
class Downloads {
  public:
    Downloads(service::HttpAccess access, std::function<Progress()> start_progress)
        : access_(std::move(access)), start_progress_(std::move(start_progress)) {}

    Result<Input> open(const std::string& url) {
        SIEVE_TRY(service::libcurl_is_there());
        const std::string name = service::displayed_url(url);
        auto found = files_.find(url);
        if (found == files_.end()) {
            SIEVE_ASSIGN(UniqueFd file, download(url, name));
            found = files_.emplace(url, std::move(file)).first;
        }
        // Opened anew, so that two who read it have a position each.
        UniqueFd file(
            ::open(fmt::format("/proc/self/fd/{}", found->second.get()).c_str(), O_RDONLY | O_CLOEXEC));
        if (!file) return bad_input(fmt::format("{}: cannot be read: {}", name, errno_text(errno)));
        SIEVE_ASSIGN(Input input, Input::of(std::move(file), name));
        SIEVE_ASSIGN(const bool image, is_image(input));
        if (image)
            return bad_input(
                fmt::format("{}: a filter image, expected a list; an image is loaded from a file "
                            "of this host",
                            name));
        return input;
    }

  private:
    [[nodiscard]] Result<UniqueFd> download(const std::string& url, const std::string& name) const {
        std::string rest = url;
        const service::UrlUser user = service::take_user(rest);
        if (!user.name.empty() || !user.password.empty())
            return invalid_request(fmt::format(
                "{}: the URL holds a user, and every user of this host sees the list of processes; expected "
                "username and password-file among a set's options, or in the configuration",
                name));
        service::SandboxSettings settings;
        // A rescue system may have no list of users. Nobody's number means nobody there, too.
        settings.user = service::find_sandbox_user().value_or(service::SandboxUser{});
        settings.progress = start_progress_();
        auto got = service::gather(service::HttpOrigin{url, access_}, nullptr, settings);
        if (got) return std::move(*got->content);
        Error& error = got.error().error;
        if (error.kind != ErrorKind::not_permitted) return tl::unexpected(std::move(error));
        return kernel_refused(fmt::format(
            "{}: the process that is to download it cannot give up its privileges: {}", name, error.message));
    }

    service::HttpAccess access_;
    std::function<Progress()> start_progress_;
    std::map<std::string, UniqueFd> files_;
};

} // namespace

bool is_url(const std::string& source) {
    return source.find("://") != std::string::npos;
}

Result<std::vector<std::string>> expand_sources(const std::vector<std::string>& sources) {
    std::vector<std::string> all;
    for (const std::string& source : sources) {
        SIEVE_ASSIGN(const std::optional<std::vector<std::string>> files, files_of(source));
        if (!files)
            all.push_back(source);
        else if (files->empty())
            return bad_input(fmt::format("{}: no list there, expected at least one", printable(source)));
        else
            all.insert(all.end(), files->begin(), files->end());
    }
    return all;
}

control::OpenSource source_opener(service::HttpAccess access, std::function<Progress()> start_progress) {
    return [downloads = std::make_shared<Downloads>(std::move(access), std::move(start_progress))](
               const std::string& source) {
        return is_url(source) ? downloads->open(source) : Input::of(source);
    };
}

Result<control::SetSpec> read_set_argument(const std::string& text, std::function<Progress()> start_progress,
                                           const std::function<void(const std::string&)>& remark) {
    SIEVE_ASSIGN(SetArgument set, parse_set_argument(text));
    if (set.access != service::HttpAccess{} && std::ranges::none_of(set.sources, is_url))
        return invalid_request(fmt::format("{}: no URL among the sources, and an option that is for URLs",
                                           shown_set_argument(text)));
    for (const std::string& source : set.sources)
        if (is_url(source))
            for (const std::string& exposed : service::exposed_passwords(source, set.access)) remark(exposed);
    SIEVE_ASSIGN(set.sources, expand_sources(set.sources));
    set.open_source = source_opener(std::move(set.access), std::move(start_progress));
    return control::SetSpec(std::move(set));
}

} // namespace sieve::cli
