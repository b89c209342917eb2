// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/gather.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <vector>

#include <fmt/core.h>

#include "libsieve/service/sandbox/child_messages.hpp"
#include "libsieve/util/digest.hpp"
#include "libsieve/util/write_all.hpp"

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

constexpr std::int64_t nanoseconds = 1'000'000'000;

class Gathering {
  public:
    Gathering(const Origin& origin, const SourceProvenance* known, const SandboxSettings& settings)
        : settings_(settings), limits_(settings.limits), name_(origin_name(origin)) {
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
        fresh_.stamp = stamp_of(info);
        if (known_ != nullptr && digest_still_holds(*known_, static_cast<std::uint64_t>(info.st_size)))
            return confirm(std::move(content));
        return finish(std::move(content));
    }

    Outcome<Gathered> from(const HttpOrigin& http) {
        limit(http.limits);
        UniqueFd content = new_file();
        if (!content) return unreadable(errno);
        FetchOrder order{confinement(ChildRole::fetch), {}};
        order.request.url = http.url;
        order.request.access = http.access;
        order.request.limits = limits_;
        if (known_ != nullptr) {
            order.request.etag = known_->etag;
            order.request.last_modified = known_->last_modified;
        }
        ChildOrder child = child_order(ChildRole::fetch, write_order(order));
        child.descriptors = {content.get()};
        const Result<ChildEnd> end = settings_.run(child);
        if (!end) return failed(end.error());
        if (end->report.empty()) return failed(unfinished(*end, child));
        auto answer = read_report<HttpAnswer>(end->report);
        if (!answer) return tl::unexpected(GatherFailure{{answer.error().error}, answer.error().retry_after});
        fresh_.etag = answer->etag;
        fresh_.last_modified = answer->last_modified;
        if (!answer->unchanged) return finish(std::move(content));
        if (known_ == nullptr) return failed(fmt::format("{}: downloading reported nonsense", name_));
        return confirm();
    }

    Outcome<Gathered> from(const CommandOrigin& command) {
        limit(command.limits);
        UniqueFd content = new_file();
        if (!content) return unreadable(errno);
        CommandOrder order{confinement(ChildRole::command), command.arguments};
        if (command.user) order.confinement.user = *command.user;
        ChildOrder child = child_order(ChildRole::command, write_order(order));
        child.output = [to = content.get()](std::string_view bytes) { return write_whole(to, bytes); };
        child.output_limit = limits_.source_bytes;
        const Result<ChildEnd> end = settings_.run(child);
        if (!end) return failed(end.error());
        // It reports only that it could not be started.
        if (!end->report.empty()) {
            const auto report = read_report<HttpAnswer>(end->report);
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
        return fmt::format("{}:{} {}", name_, who, describe(end, order, limits_));
    }
    [[nodiscard]] static UniqueFd new_file() {
        return UniqueFd(::memfd_create("sieve-list", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    }
    [[nodiscard]] Confinement confinement(ChildRole role) const {
        return {.role = role,
                .user = settings_.user,
                .memory_bytes = limits_.memory_bytes,
                .file_bytes = limits_.source_bytes,
                .processor = limits_.processor,
                .nice = limits_.nice,
                .parent = ::getpid()};
    }
    [[nodiscard]] ChildOrder child_order(ChildRole role, std::string message) const {
        ChildOrder order;
        order.role = role;
        order.message = std::move(message);
        order.started = settings_.started;
        order.progress = settings_.progress;
        order.cancel = settings_.cancel;
        order.time_limit = limits_.fetch;
        // libcurl ends a download itself, and says more about it.
        if (role == ChildRole::fetch) order.time_limit += std::chrono::seconds{10};
        return order;
    }

    // The source's own limits.
    void limit(const std::optional<FetchLimits>& limits) {
        if (!limits) return;
        limits_.fetch = limits->timeout;
        limits_.source_bytes = limits->most_bytes;
    }
    // Whether the file with the fresh stamp is the known one. A file that was changed shortly before it was
    // read may have changed again without another stamp: file systems count time in steps of up to two
    // seconds.
    [[nodiscard]] bool digest_still_holds(const SourceProvenance& known, std::uint64_t bytes) const {
        constexpr std::int64_t coarsest_stamp = 2;
        return !known.digest.empty() && known.stamp == fresh_.stamp && known.bytes == bytes &&
               known.stamp.status_changed / nanoseconds + coarsest_stamp < known.read;
    }

    // The content is the known one.
    [[nodiscard]] Gathered confirm(std::optional<UniqueFd> content = {}) {
        fresh_.digest = known_->digest;
        fresh_.bytes = known_->bytes;
        fresh_.changed = known_->changed;
        fresh_.read = known_->read;
        fresh_.asked = std::time(nullptr);
        return Gathered{std::move(content), fresh_, true};
    }
    // A regular file is here. If another process changes a file meanwhile, the digest is that of the older
    // content or of neither; the next refresh then takes it for changed, as it is.
    [[nodiscard]] Outcome<Gathered> finish(UniqueFd content) {
        fresh_.read = std::time(nullptr);
        Digest digest;
        std::vector<char> block(std::size_t{256} << 10);
        for (;;) {
            const ssize_t got =
                ::pread(content.get(), block.data(), block.size(), static_cast<off_t>(fresh_.bytes));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return unreadable(errno);
            if (got == 0) break;
            fresh_.bytes += static_cast<std::uint64_t>(got);
            if (fresh_.bytes > limits_.source_bytes)
                return failed(
                    fmt::format("{}: larger than {} bytes, the limit", name_, limits_.source_bytes));
            digest.add({block.data(), static_cast<std::size_t>(got)});
        }
        fresh_.digest = digest.hex();
        fresh_.asked = std::time(nullptr);
        const bool unchanged = known_ != nullptr && known_->digest == fresh_.digest;
        if (fresh_.changed == 0) fresh_.changed = unchanged ? known_->changed : fresh_.asked;
        return Gathered{std::move(content), fresh_, unchanged};
    }

    const SandboxSettings& settings_;
    SandboxLimits limits_; // of this source
    std::string name_;
    const SourceProvenance* known_ = nullptr;
    SourceProvenance fresh_;
};

} // namespace

Result<SandboxSettings> standard_sandbox() {
    SandboxSettings settings;
    if (::geteuid() != 0) return settings;
    SIEVE_ASSIGN(settings.user, find_sandbox_user());
    return settings;
}

Status confirm_unchanged(const Gathered& gathered, const std::string& name) {
    if (!gathered.content || gathered.provenance.stamp == FileStamp{}) return {};
    struct stat info {};
    if (::fstat(gathered.content->get(), &info) == 0 && stamp_of(info) == gathered.provenance.stamp &&
        static_cast<std::uint64_t>(info.st_size) == gathered.provenance.bytes)
        return {};
    return failure(ErrorKind::changed_meanwhile, fmt::format("{}: was changed while it was read", name));
}

tl::expected<Gathered, GatherFailure> gather(const Origin& origin, const SourceProvenance* known,
                                             const SandboxSettings& settings) {
    if (Status fits = check_origin(origin); !fits) return failed(std::move(fits.error()));
    Gathering gathering(origin, known, settings);
    return std::visit([&](const auto& one) { return gathering.from(one); }, origin);
}

} // namespace sieve::service
