// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/gather.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <vector>

#include <fmt/core.h>

#include "libsieve/util/files/digest.hpp"
#include "libsieve/util/system/memory_file.hpp"
#include "libsieve/util/system/write_all.hpp"

namespace sieve::service {

namespace {

template <class Value>
using Outcome = tl::expected<Value, GatherFailure>;

constexpr std::int64_t nanoseconds = 1'000'000'000;

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
        if (::fstat(content.get(), &file_) != 0) return unreadable(errno);
        if (!S_ISREG(file_.st_mode))
            return bad_input(fmt::format("{}: is {}, expected a regular file", name_,
                                         S_ISDIR(file_.st_mode) ? "a directory" : "no regular file"));
        fresh_.changed = file_.st_mtim.tv_sec;
        fresh_.stamp = stamp_of(file_);
        if (known_ != nullptr && digest_still_holds(*known_, static_cast<std::uint64_t>(file_.st_size)))
            return confirm(std::move(content));
        return finish(std::move(content));
    }

    Outcome<Gathered> from(const HttpOrigin& http) {
        limit(http.limits);
        SIEVE_ASSIGN(UniqueFd content, make_memory_file("sieve-list"));
        FetchOrder order;
        order.request.url = http.url;
        order.request.access = http.access;
        order.request.limits = settings_.limits;
        if (known_ != nullptr) {
            order.request.etag = known_->etag;
            order.request.last_modified = known_->last_modified;
        }
        SIEVE_ASSIGN(HttpAnswer answer,
                     run_to_end<HttpAnswer>(settings_, child_for(settings_, order, {content.get()}),
                                            name_ + ": downloading"));
        fresh_.etag = std::move(answer.etag);
        fresh_.last_modified = std::move(answer.last_modified);
        if (!answer.unchanged) return finish(std::move(content));
        if (known_ == nullptr) return bad_input(fmt::format("{}: downloading reported nonsense", name_));
        return confirm();
    }

    Outcome<Gathered> from(const CommandOrigin& command) {
        limit(command.limits);
        SIEVE_ASSIGN(UniqueFd content, make_memory_file("sieve-list"));
        if (command.user) settings_.user = *command.user;
        ChildOrder child = child_for(settings_, CommandOrder{command.arguments}, {});
        child.output = [to = content.get()](std::string_view bytes) { return write_whole(to, bytes); };
        child.output_limit = settings_.limits.source_bytes;
        SIEVE_ASSIGN(const ChildEnd end, settings_.run(child));
        // It reports only that it could not be started.
        if (!end.report.empty()) {
            const auto report = read_report<HttpAnswer>(end.report);
            return bad_input(
                fmt::format("{}: {}", name_, report ? "reported nonsense" : report.error().error.message));
        }
        if (end.way != ChildEnd::Way::exited || end.number != 0)
            return bad_input(fmt::format("{}: {}", name_, describe(end, child, settings_.limits)));
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

    Outcome<Gathered> from(const MovedOrigin&) { return bad_input(name_ + ": what it said last is lost"); }

  private:
    [[nodiscard]] tl::unexpected<Error> unreadable(int error) const {
        return bad_input(fmt::format("{}: cannot be read: {}", name_, errno_text(error)));
    }

    // The source's own limits.
    void limit(const std::optional<FetchLimits>& limits) {
        if (!limits) return;
        settings_.limits.fetch = limits->timeout;
        settings_.limits.source_bytes = limits->most_bytes;
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
        return Gathered{std::move(content), fresh_, true, file_};
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
            if (fresh_.bytes > settings_.limits.source_bytes)
                return bad_input(
                    fmt::format("{}: larger than {} bytes, the limit", name_, settings_.limits.source_bytes));
            digest.add({block.data(), static_cast<std::size_t>(got)});
        }
        fresh_.digest = digest.hex();
        fresh_.asked = std::time(nullptr);
        const bool unchanged = known_ != nullptr && known_->digest == fresh_.digest;
        if (fresh_.changed == 0) fresh_.changed = unchanged ? known_->changed : fresh_.asked;
        return Gathered{std::move(content), fresh_, unchanged, file_};
    }

    SandboxSettings settings_; // with the limits of this source
    std::string name_;
    const SourceProvenance* known_ = nullptr;
    SourceProvenance fresh_;
    struct stat file_ {};
};

// A name that is taken away changes the time of the status, and not that of the content.
bool has_same_content(const struct stat& before, const struct stat& now) {
    const bool same_time =
        before.st_mtim.tv_sec == now.st_mtim.tv_sec && before.st_mtim.tv_nsec == now.st_mtim.tv_nsec;
    return same_time && (stamp_of(before) == stamp_of(now) || now.st_nlink < before.st_nlink);
}

} // namespace

Status confirm_unchanged(const Gathered& gathered, const std::string& name) {
    if (!gathered.content || gathered.provenance.stamp == FileStamp{}) return {};
    struct stat info {};
    if (::fstat(gathered.content->get(), &info) == 0 && has_same_content(gathered.file, info) &&
        static_cast<std::uint64_t>(info.st_size) == gathered.provenance.bytes)
        return {};
    return failure(ErrorKind::changed_meanwhile, fmt::format("{}: was changed while it was read", name));
}

tl::expected<Gathered, GatherFailure> gather(const Origin& origin, const SourceProvenance* known,
                                             const SandboxSettings& settings) {
    SIEVE_TRY(check_origin(origin));
    Gathering gathering(origin, known, settings);
    return std::visit([&](const auto& one) { return gathering.from(one); }, origin);
}

} // namespace sieve::service
