// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/gather.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <vector>

#include <fmt/core.h>

#include "libsieve/service/child_messages.hpp"
#include "libsieve/util/digest.hpp"

namespace sieve::service {

namespace {

template <class Value>
using Outcome = tl::expected<Value, GatherFailure>;

tl::unexpected<GatherFailure> failed(std::string message, ErrorKind kind = ErrorKind::bad_input) {
    return tl::unexpected(GatherFailure{{kind, std::move(message), {}}, {}});
}
tl::unexpected<GatherFailure> failed(Error error) {
    return tl::unexpected(GatherFailure{std::move(error), {}});
}

class Gathering {
  public:
    Gathering(const Origin& origin, const SourceProvenance* known, const SandboxSettings& settings)
        : settings_(settings), name_(origin_name(origin)) {
        fresh_.source = origin_identity(origin);
        if (known != nullptr && known->source == fresh_.source) known_ = known;
    }

    Outcome<Gathered> from(const FileOrigin& file) {
        // Without waiting for whoever may write to a FIFO.
        UniqueFd content(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
        if (!content) return unreadable(errno);
        struct stat info {};
        if (::fstat(content.get(), &info) != 0) return unreadable(errno);
        if (!S_ISREG(info.st_mode))
            return failed(fmt::format("{}: is {}, expected a regular file", name_,
                                      S_ISDIR(info.st_mode) ? "a directory" : "no regular file"));
        fresh_.changed = info.st_mtim.tv_sec;
        return finish(std::move(content));
    }

    Outcome<Gathered> from(const HttpOrigin& http) {
        UniqueFd content = new_file();
        if (!content) return unreadable(errno);
        FetchOrder order{confinement(ChildRole::fetch), {}, http.certificates};
        order.request.url = http.url;
        order.request.proxy = http.proxy;
        order.request.limits = settings_.limits;
        if (known_ != nullptr) {
            order.request.etag = known_->etag;
            order.request.last_modified = known_->last_modified;
        }
        ChildOrder child = child_order(ChildRole::fetch, write_order(order));
        child.descriptors = {content.get()};
        const Result<ChildEnd> end = run_child(child);
        if (!end) return failed(end.error());
        if (end->report.empty()) return failed(unfinished(*end, child));
        auto answer = read_http_report(end->report);
        if (!answer) return tl::unexpected(GatherFailure{{answer.error().error}, answer.error().retry_after});
        fresh_.etag = answer->etag;
        fresh_.last_modified = answer->last_modified;
        if (!answer->unchanged) return finish(std::move(content));
        if (known_ == nullptr) return failed(fmt::format("{}: downloading reported nonsense", name_));
        return confirm();
    }

    Outcome<Gathered> from(const CommandOrigin& command) {
        UniqueFd content = new_file();
        if (!content) return unreadable(errno);
        CommandOrder order{confinement(ChildRole::command), command.arguments};
        if (command.user) order.confinement.user = *command.user;
        ChildOrder child = child_order(ChildRole::command, write_order(order));
        child.output = content.get();
        child.output_limit = settings_.limits.source_bytes;
        const Result<ChildEnd> end = run_child(child);
        if (!end) return failed(end.error());
        // It reports only that it could not be started.
        if (!end->report.empty()) {
            const auto report = read_http_report(end->report);
            return failed(
                fmt::format("{}: {}", name_, report ? "reported nonsense" : report.error().error.message));
        }
        if (end->way != ChildEnd::Way::exited || end->number != 0) return failed(unfinished(*end, child));
        return finish(std::move(content));
    }

    Outcome<Gathered> from(const OpenOrigin& open) {
        UniqueFd content(::fcntl(open.descriptor, F_DUPFD_CLOEXEC, 0));
        if (!content) return unreadable(errno);
        struct stat info {};
        if (::fstat(content.get(), &info) != 0) return unreadable(errno);
        if (S_ISREG(info.st_mode)) return finish(std::move(content));
        fresh_.asked = fresh_.changed = std::time(nullptr);
        return Gathered{std::move(content), fresh_, false};
    }

  private:
    [[nodiscard]] tl::unexpected<GatherFailure> unreadable(int error) const {
        return failed(fmt::format("{}: cannot be read: {}", name_, errno_text(error)));
    }
    [[nodiscard]] std::string unfinished(const ChildEnd& end, const ChildOrder& order) const {
        const char* who = order.role == ChildRole::fetch ? " downloading" : "";
        return fmt::format("{}:{} {}", name_, who, describe(end, order, settings_.limits));
    }
    [[nodiscard]] static UniqueFd new_file() {
        return UniqueFd(::memfd_create("sieve-list", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    }
    [[nodiscard]] Confinement confinement(ChildRole role) const {
        const SandboxLimits& limits = settings_.limits;
        return {.role = role,
                .user = settings_.user,
                .memory_bytes = limits.memory_bytes,
                .file_bytes = limits.source_bytes,
                .processor = limits.processor,
                .nice = limits.nice,
                .parent = ::getpid()};
    }
    [[nodiscard]] ChildOrder child_order(ChildRole role, std::string message) const {
        ChildOrder order;
        order.role = role;
        order.message = std::move(message);
        order.started = settings_.started;
        order.cancel = settings_.cancel;
        order.time_limit = settings_.limits.fetch;
        // libcurl ends a download itself, and says more about it.
        if (role == ChildRole::fetch) order.time_limit += std::chrono::seconds{10};
        return order;
    }

    // The content is the known one.
    [[nodiscard]] Gathered confirm() {
        fresh_.digest = known_->digest;
        fresh_.bytes = known_->bytes;
        fresh_.changed = known_->changed;
        fresh_.asked = std::time(nullptr);
        return Gathered{std::nullopt, fresh_, true};
    }
    // A regular file is here. If another process changes a file meanwhile, the digest is that of the older
    // content or of neither; the next refresh then takes it for changed, as it is.
    [[nodiscard]] Outcome<Gathered> finish(UniqueFd content) {
        Digest digest;
        std::vector<char> block(std::size_t{256} << 10);
        for (;;) {
            const ssize_t got =
                ::pread(content.get(), block.data(), block.size(), static_cast<off_t>(fresh_.bytes));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return unreadable(errno);
            if (got == 0) break;
            fresh_.bytes += static_cast<std::uint64_t>(got);
            if (fresh_.bytes > settings_.limits.source_bytes)
                return failed(
                    fmt::format("{}: larger than {} bytes, the limit", name_, settings_.limits.source_bytes));
            digest.add({block.data(), static_cast<std::size_t>(got)});
        }
        fresh_.digest = digest.hex();
        fresh_.asked = std::time(nullptr);
        const bool unchanged = known_ != nullptr && known_->digest == fresh_.digest;
        if (fresh_.changed == 0) fresh_.changed = unchanged ? known_->changed : fresh_.asked;
        return Gathered{std::move(content), fresh_, unchanged};
    }

    const SandboxSettings& settings_;
    std::string name_;
    const SourceProvenance* known_ = nullptr;
    SourceProvenance fresh_;
};

} // namespace

tl::expected<Gathered, GatherFailure> gather(const Origin& origin, const SourceProvenance* known,
                                             const SandboxSettings& settings) {
    if (Status fits = check_origin(origin); !fits) return failed(std::move(fits.error()));
    Gathering gathering(origin, known, settings);
    return std::visit([&](const auto& one) { return gathering.from(one); }, origin);
}

} // namespace sieve::service
