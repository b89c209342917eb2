// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sandbox.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "libsieve/feeds/key_text.hpp"
#include "libsieve/service/child_messages.hpp"
#include "libsieve/service/list_file.hpp"
#include "libsieve/service/unpack.hpp"

namespace sieve::service {

namespace {

using Clock = std::chrono::steady_clock;

std::chrono::milliseconds since(Clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
}

Result<UniqueFd> new_file(const char* name) {
    UniqueFd file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file)
        return failure(ErrorKind::out_of_memory, fmt::format("no file in memory: {}", errno_text(errno)));
    return file;
}

// Nobody can change it any more, whoever still has it open. What a child has mapped writable cannot be
// sealed.
Status seal(const UniqueFd& file) {
    if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
        return bad_input(fmt::format("what building wrote cannot be sealed: {}", errno_text(errno)));
    if (::lseek(file.get(), 0, SEEK_SET) != 0) return bad_input(errno_text(errno));
    return {};
}

// What a build child writes to.
struct Products {
    UniqueFd image;
    UniqueFd exact;
    UniqueFd list;
};

Result<Products> new_products() {
    SIEVE_ASSIGN(UniqueFd image, new_file("sieve-image"));
    SIEVE_ASSIGN(UniqueFd exact, new_file("sieve-exact"));
    SIEVE_ASSIGN(UniqueFd list, new_file("sieve-parsed"));
    return Products{std::move(image), std::move(exact), std::move(list)};
}

// Whether a file is needed that takes what the list unpacks to. A pipe has no first bytes to look at.
bool is_packed(const UniqueFd& content) {
    std::array<char, 8> begin{};
    const ssize_t got = ::pread(content.get(), begin.data(), begin.size(), 0);
    return got > 0 && packing_of({begin.data(), static_cast<std::size_t>(got)}) != Packing::none;
}

bool less(const sieve_key& a, const sieve_key& b) {
    return std::lexicographical_compare(std::begin(a.word), std::end(a.word), std::begin(b.word),
                                        std::end(b.word));
}

// As many as the image holds, distinct and rising: what the kernel's map takes. That the filter matches them
// is what the test in the kernel asks.
Result<std::vector<sieve_key>> read_exact(const UniqueFd& file, const Image& image) {
    struct stat info {};
    if (::fstat(file.get(), &info) != 0) return bad_input(errno_text(errno));
    const std::uint64_t count = image.file().keys;
    if (static_cast<std::uint64_t>(info.st_size) / sizeof(sieve_key) != count ||
        static_cast<std::uint64_t>(info.st_size) % sizeof(sieve_key) != 0)
        return bad_input("the keys for verification are not as many as the image's");
    std::vector<sieve_key> keys(count);
    auto* to = reinterpret_cast<char*>(keys.data());
    for (std::size_t left = keys.size() * sizeof(sieve_key); left > 0;) {
        const ssize_t got = ::read(file.get(), to, left);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return bad_input("the keys for verification cannot be read");
        to += got;
        left -= static_cast<std::size_t>(got);
    }
    if (std::adjacent_find(keys.begin(), keys.end(),
                           [](const sieve_key& a, const sieve_key& b) { return !less(a, b); }) != keys.end())
        return bad_input("the keys for verification are not in order");
    return keys;
}

class Refresh {
  public:
    explicit Refresh(const RefreshRequest& request) : request_(request) {}

    tl::expected<Refreshed, GatherFailure> run() {
        if (request_.origins.empty()) return failed(Error{ErrorKind::invalid_request, "expected a list", {}});
        const Clock::time_point start = Clock::now();
        if (auto done = gather_all(); !done) return tl::unexpected(std::move(done.error()));
        const bool unchanged = request_.known && same_origins() &&
                               std::all_of(gathered_.begin(), gathered_.end(),
                                           [](const Gathered& one) { return one.unchanged; });
        if (unchanged) return UnchangedList{known(request_.known->digest)};
        // A server that has nothing newer did not send what is built anew with the others' news.
        if (auto done = gather_missing(); !done) return tl::unexpected(std::move(done.error()));
        const std::chrono::milliseconds gathering = since(start);
        const Clock::time_point building = Clock::now();
        auto refreshed = build();
        if (refreshed)
            if (auto* built = std::get_if<BuiltList>(&*refreshed)) {
                built->gathering = gathering;
                built->building = since(building);
            }
        return refreshed;
    }

  private:
    [[nodiscard]] tl::unexpected<GatherFailure> failed(GatherFailure failure) const {
        if (!request_.set.empty())
            failure.error.message = fmt::format("set {}: {}", request_.set, failure.error.message);
        return tl::unexpected(std::move(failure));
    }
    [[nodiscard]] tl::unexpected<GatherFailure> failed(Error error) const {
        return failed(GatherFailure{std::move(error), {}});
    }
    [[nodiscard]] tl::unexpected<GatherFailure> failed_building(const std::string& what) const {
        return failed(Error{ErrorKind::bad_input, "building " + what, {}});
    }

    [[nodiscard]] const SourceProvenance* known_of(const Origin& origin) const {
        if (!request_.known) return nullptr;
        const std::string identity = origin_identity(origin);
        const auto found = std::find_if(request_.known->sources.begin(), request_.known->sources.end(),
                                        [&](const SourceProvenance& one) { return one.source == identity; });
        return found != request_.known->sources.end() ? &*found : nullptr;
    }
    // An origin that went away has changed the list.
    [[nodiscard]] bool same_origins() const {
        return std::equal(request_.known->sources.begin(), request_.known->sources.end(), gathered_.begin(),
                          gathered_.end(), [](const SourceProvenance& before, const Gathered& now) {
                              return before.source == now.provenance.source;
                          });
    }
    tl::expected<void, GatherFailure> gather_all() {
        for (const Origin& origin : request_.origins) {
            auto one = gather(origin, known_of(origin), request_.sandbox);
            if (!one) return failed(std::move(one.error()));
            gathered_.push_back(std::move(*one));
        }
        return {};
    }
    tl::expected<void, GatherFailure> gather_missing() {
        for (std::size_t i = 0; i < gathered_.size(); i++) {
            if (gathered_[i].content) continue;
            auto whole = gather(request_.origins[i], nullptr, request_.sandbox);
            if (!whole) return failed(std::move(whole.error()));
            gathered_[i] = std::move(*whole);
        }
        return {};
    }
    [[nodiscard]] KnownList known(std::string digest) const {
        KnownList list{{}, std::move(digest)};
        for (const Gathered& one : gathered_) list.sources.push_back(one.provenance);
        return list;
    }

    [[nodiscard]] BuildOrder build_order() const {
        const SandboxLimits& limits = request_.sandbox.limits;
        BuildOrder order;
        order.confinement = {
            .role = ChildRole::build,
            .user = request_.sandbox.user,
            .memory_bytes = limits.memory_bytes,
            .file_bytes = std::max(limits.image_bytes, limits.unpacked_bytes),
            .processor = limits.processor,
            // The child opens none; those of the lists must fit.
            .descriptors = static_cast<std::uint32_t>(64 + 2 * gathered_.size()),
            .nice = limits.nice,
            .parent = ::getpid(),
        };
        order.feed = request_.feed;
        for (const Origin& origin : request_.origins) order.lists.push_back(origin_name(origin));
        order.exact = request_.exact;
        order.list = request_.list;
        if (request_.known) order.known_digest = request_.known->digest;
        order.limits = {limits.unpacked_bytes, limits.unpack_ratio};
        return order;
    }

    tl::expected<Refreshed, GatherFailure> build() {
        auto products = new_products();
        if (!products) return failed(std::move(products.error()));
        ChildOrder child;
        child.role = ChildRole::build;
        child.message = write_order(build_order());
        child.descriptors = {products->image.get(), products->exact.get(), products->list.get()};
        std::vector<UniqueFd> unpacked;
        for (const Gathered& one : gathered_) {
            child.descriptors.insert(child.descriptors.end(), 2, one.content->get());
            if (!is_packed(*one.content)) continue;
            auto file = new_file("sieve-unpacked");
            if (!file) return failed(std::move(file.error()));
            child.descriptors.back() = file->get();
            unpacked.push_back(std::move(*file));
        }
        child.time_limit = request_.sandbox.limits.build;
        child.started = request_.sandbox.started;
        child.cancel = request_.sandbox.cancel;
        const Result<ChildEnd> end = run_child(child);
        if (!end) return failed(end.error());
        unpacked.clear();
        gathered_contents_go();
        if (end->report.empty() || end->way != ChildEnd::Way::exited || end->number != 0)
            return failed_building(describe(*end, child, request_.sandbox.limits));
        auto done = read_build_report(end->report);
        if (!done) {
            Error error = std::move(done.error().error);
            if (error.kind == ErrorKind::out_of_memory)
                error.message =
                    fmt::format("building needs more memory than its limit of {} MiB{}",
                                request_.sandbox.limits.memory_bytes >> 20,
                                end->at.empty() ? std::string() : fmt::format(" while {}", end->at));
            return failed(std::move(error));
        }
        if (done->known) return UnchangedList{known(std::move(done->digest))};
        auto built = accept(*products, std::move(*done));
        if (!built) return failed_building("was of no use: " + built.error().message);
        return std::move(*built);
    }
    // Memory that is not needed while the image is checked.
    void gathered_contents_go() {
        for (Gathered& one : gathered_) one.content.reset();
    }

    // The child may have been taken over: nothing of what it wrote is believed.
    Result<BuiltList> accept(Products& products, BuildDone done) {
        SIEVE_TRY(seal(products.image));
        SIEVE_TRY(seal(products.exact));
        SIEVE_TRY(seal(products.list));
        SIEVE_ASSIGN(Input input, Input::of(std::move(products.image), "its image"));
        SIEVE_ASSIGN(Image image, Image::load(input));
        if (image.lookup().fields != request_.feed.fields)
            return bad_input(fmt::format("its image is of {}, expected {}",
                                         format_fields(image.lookup().fields),
                                         format_fields(request_.feed.fields)));
        BuiltList built{std::move(image),        {}, {}, known(std::move(done.digest)),
                        std::move(done.remarks), {}, {}};
        if (request_.exact) {
            SIEVE_ASSIGN(built.exact, read_exact(products.exact, built.image));
        }
        if (request_.list && !built.known.digest.empty()) {
            SIEVE_ASSIGN(built.list, read_list_file(products.list.get(), request_.feed.fields));
        }
        return built;
    }

    const RefreshRequest& request_;
    std::vector<Gathered> gathered_;
};

} // namespace

tl::expected<Refreshed, GatherFailure> refresh_in_sandbox(const RefreshRequest& request) {
    return Refresh(request).run();
}

} // namespace sieve::service
