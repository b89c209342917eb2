// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sources/sandbox.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "libsieve/build/check_built.hpp"
#include "libsieve/build/default_kind.hpp"
#include "libsieve/build/exact_keys.hpp"
#include "libsieve/control/spec/source.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/joint/check_joint_names.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/service/lists/list_digest.hpp"
#include "libsieve/service/lists/list_file.hpp"
#include "libsieve/service/lists/question_file.hpp"
#include "libsieve/util/system/memory_file.hpp"
#include "libsieve/util/system/write_all.hpp"
#include "libsieve/util/text/short_path.hpp"

namespace sieve::service {

namespace {

using Clock = std::chrono::steady_clock;

std::chrono::milliseconds since(Clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
}

// Nobody can change it any more, whoever still has it open. What a child has mapped writable cannot be
// sealed.
Status seal(const UniqueFd& file) {
    if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
        return bad_input(fmt::format("what building wrote cannot be sealed: {}", errno_text(errno)));
    if (::lseek(file.get(), 0, SEEK_SET) != 0) return bad_input(errno_text(errno));
    return {};
}

// The names of the origins' files, for the image.
std::string label_of(const std::vector<Origin>& origins) {
    std::vector<std::string> names;
    for (const Origin& origin : origins) names.emplace_back(short_path(origin_name(origin)));
    return fmt::format("{}", fmt::join(names, " "));
}

// Has a child follow the order; its report.
template <class Done>
Result<Done> follow(const SandboxSettings& sandbox, const AnyOrder& order, std::vector<int> descriptors) {
    auto done = run_to_end<Done>(sandbox, child_for(sandbox, order, std::move(descriptors)), "building");
    if (!done) return tl::unexpected(std::move(done.error().error));
    return std::move(*done);
}

tl::unexpected<Error> useless(const Error& error) {
    return bad_input("building was of no use: " + error.message);
}

// What both steps from a set's sources to its image have in common.
class SetStep {
  public:
    SetStep(const std::string& set, const control::FeedSpec& feed) : set_(set), feed_(feed) {}

  protected:
    [[nodiscard]] Error named(Error error) const {
        if (!set_.empty()) error.message = fmt::format("set {}: {}", set_, error.message);
        return error;
    }
    // Whoever wrote it may mean us harm: nothing of what it says is believed.
    [[nodiscard]] Result<Image> accept_image(UniqueFd file, const std::string& name) const {
        SIEVE_ASSIGN(Input input, Input::of(std::move(file), name));
        SIEVE_ASSIGN(Image image, Image::load(input));
        if (image.lookup().fields == feed_.fields) return image;
        return bad_input(fmt::format("{}: an image of {}, expected {}", name,
                                     format_fields(image.lookup().fields), format_fields(feed_.fields)));
    }

  private:
    const std::string& set_;
    const control::FeedSpec& feed_;
};

// Of files that change while they are read.
constexpr int most_reads = 3;

class ReadStep : SetStep {
  public:
    explicit ReadStep(const ReadRequest& request)
        : SetStep(request.set, request.feed), request_(request), origins_(request.origins) {
        // g++ 12 takes the variant that push_back() would move for uninitialized.
        if (!request.feed.except.empty()) origins_.emplace_back(FileOrigin{request.feed.except});
    }

    tl::expected<std::variant<UnchangedList, ReadList>, GatherFailure> run() {
        if (request_.origins.empty())
            return tl::unexpected(named({ErrorKind::invalid_request, "expected a list"}));
        const Clock::time_point start = Clock::now();
        SIEVE_TRY(gather_all());
        const bool unchanged = request_.known && same_origins() &&
                               std::all_of(gathered_.begin(), gathered_.end(),
                                           [](const Gathered& one) { return one.unchanged; });
        if (unchanged) return UnchangedList{known(request_.known->digest), std::move(visit_)};
        // A server that has nothing newer did not send what is built anew with the others' news.
        SIEVE_TRY(gather_missing());
        const std::chrono::milliseconds gathering = since(start);
        const Clock::time_point reading = Clock::now();
        auto read = read_all();
        for (int reads = 1; !read; read = read_all()) {
            if (does_without(read.error())) continue;
            if (read.error().kind != ErrorKind::changed_meanwhile || reads++ == most_reads)
                return tl::unexpected(named(std::move(read.error())));
            SIEVE_TRY(gather_changed());
        }
        if (auto* list = std::get_if<ReadList>(&*read)) {
            list->gathering = gathering;
            list->reading = since(reading);
        }
        return std::move(*read);
    }

  private:
    using SetStep::named;
    [[nodiscard]] GatherFailure named(GatherFailure failure) const {
        failure.error = named(std::move(failure.error));
        return failure;
    }
    [[nodiscard]] tl::unexpected<GatherFailure> failed(GatherFailure failure) const {
        return tl::unexpected(named(std::move(failure)));
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
    // Files come last, since they may change while a server or a command is waited for.
    tl::expected<void, GatherFailure> gather_all() {
        gathered_.resize(origins_.size());
        for (const bool files : {false, true})
            for (std::size_t i = 0; i < origins_.size(); i++)
                if (std::holds_alternative<FileOrigin>(origins_[i]) == files) SIEVE_TRY(gather_one(i));
        if (visit_.behind && !any_has_said()) return tl::unexpected(std::move(*visit_.behind));
        return {};
    }
    tl::expected<void, GatherFailure> gather_one(std::size_t place) {
        const Origin& origin = origins_[place];
        if (request_.files_only)
            if (std::optional<Gathered> kept = kept_of(origin)) {
                gathered_[place] = std::move(*kept);
                return {};
            }
        auto one = gather(origin, known_of(origin), request_.sandbox);
        if (!one) {
            std::optional<Gathered> instead = instead_of(origin);
            if (!instead) return failed(std::move(one.error()));
            if (!visit_.behind && !is_moved(origin)) visit_.behind = named(std::move(one.error()));
            one = std::move(*instead);
        }
        gathered_[place] = std::move(*one);
        return {};
    }
    // The files that changed while they were read. Nobody else is asked again.
    tl::expected<void, GatherFailure> gather_changed() {
        for (std::size_t i = 0; i < gathered_.size(); i++)
            if (!confirm_unchanged(gathered_[i], origin_name(origins_[i]))) SIEVE_TRY(gather_one(i));
        return {};
    }
    // The exceptions do not count.
    [[nodiscard]] bool any_has_said() const {
        const auto lists = static_cast<std::ptrdiff_t>(request_.origins.size());
        return std::any_of(gathered_.begin(), gathered_.begin() + lists,
                           [](const Gathered& one) { return !one.provenance.digest.empty(); });
    }
    // What came of an origin is no list, such as a server's page that says what is wrong with it. True: it is
    // done without, once.
    [[nodiscard]] bool does_without(const Error& error) {
        const std::size_t culprit = error.facts.input.value_or(request_.origins.size());
        if (culprit >= request_.origins.size() || !instead_.insert(culprit).second) return false;
        std::optional<Gathered> instead = instead_of(origins_[culprit]);
        if (!instead) return false;
        gathered_[culprit] = std::move(*instead);
        visit_.contents.clear();
        if (!visit_.behind) visit_.behind = named(GatherFailure(error, std::nullopt));
        return any_has_said();
    }
    // What an origin said last, or nothing if the list may do without it.
    [[nodiscard]] std::optional<Gathered> instead_of(const Origin& origin) const {
        std::optional<Gathered> instead = kept_of(origin);
        return instead ? std::move(instead) : nothing_of(origin);
    }
    // A file of this host needs no copy. A list of one origin is kept as a list.
    [[nodiscard]] bool is_kept(const Origin& origin) const {
        return is_moved(origin) ||
               (request_.origins.size() > 1 && (std::holds_alternative<HttpOrigin>(origin) ||
                                                std::holds_alternative<CommandOrigin>(origin)));
    }
    [[nodiscard]] static bool is_moved(const Origin& origin) {
        return std::holds_alternative<MovedOrigin>(origin);
    }
    // Nothing: none is kept, or it is not what the record says.
    [[nodiscard]] std::optional<Gathered> kept_of(const Origin& origin) const {
        if (!is_kept(origin) || !request_.kept) return std::nullopt;
        std::optional<KeptContent> kept = request_.kept(origin_identity(origin));
        if (!kept) return std::nullopt;
        SandboxSettings settings = request_.sandbox;
        settings.limits.source_bytes = std::max(settings.limits.source_bytes, kept->provenance.bytes);
        auto read = gather(OpenOrigin{kept->content.get(), origin_name(origin)}, nullptr, settings);
        if (!read || read->provenance.digest != kept->provenance.digest) return std::nullopt;
        const SourceProvenance* before = known_of(origin);
        const bool unchanged = before != nullptr && before->digest == kept->provenance.digest;
        return Gathered{std::move(read->content), std::move(kept->provenance), unchanged};
    }
    // The origin has never said anything, and the list may do without it.
    [[nodiscard]] std::optional<Gathered> nothing_of(const Origin& origin) const {
        const std::string identity = origin_identity(origin);
        if (!is_kept(origin) || !request_.may_lack || !request_.may_lack(identity)) return std::nullopt;
        Result<UniqueFd> content = make_memory_file("sieve-list");
        if (!content) return std::nullopt;
        return Gathered{std::move(*content), {.source = identity}, known_of(origin) != nullptr};
    }
    tl::expected<void, GatherFailure> gather_missing() {
        for (std::size_t i = 0; i < gathered_.size(); i++) {
            if (gathered_[i].content) continue;
            if (std::optional<Gathered> kept = kept_of(origins_[i])) {
                gathered_[i].content = std::move(kept->content);
                continue;
            }
            auto whole = gather(origins_[i], nullptr, request_.sandbox);
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

    [[nodiscard]] ReadOrder order() const {
        const SandboxLimits& limits = request_.sandbox.limits;
        ReadOrder order;
        order.feed = request_.feed;
        for (const Origin& origin : origins_) order.lists.push_back(origin_name(origin));
        if (request_.known) order.known_digest = request_.known->digest;
        order.limits = {
            .bytes = limits.unpacked_bytes, .ratio = limits.unpack_ratio, .zip_bytes = limits.source_bytes};
        return order;
    }

    // Nothing came at all. A pipe, which has no digest, may still bring something.
    [[nodiscard]] bool is_empty() const {
        const auto lists = static_cast<std::ptrdiff_t>(request_.origins.size());
        return std::all_of(gathered_.begin(), gathered_.begin() + lists, [](const Gathered& one) {
            return one.provenance.bytes == 0 && !one.provenance.digest.empty();
        });
    }

    Result<std::variant<UnchangedList, ReadList>> read_all() {
        if (is_empty()) {
            std::string digest = digest_of_list(Feed(request_.feed.fields));
            if (request_.known && request_.known->digest == digest)
                return UnchangedList{known(std::move(digest)), std::move(visit_)};
            SIEVE_ASSIGN(ReadList none, own_list(Feed(request_.feed.fields), label_of(request_.origins)));
            none.known = known(std::move(digest));
            none.visit = std::move(visit_);
            return none;
        }
        if (gathered_.size() == 1 && begins_as_image(gathered_.front())) return read_image();
        SIEVE_ASSIGN(UniqueFd records, make_memory_file("sieve-records"));
        SIEVE_ASSIGN(UniqueFd exceptions, make_memory_file("sieve-exceptions"));
        std::vector<int> descriptors{records.get(), exceptions.get()};
        for (std::size_t i = 0; i < gathered_.size(); i++) {
            const int content = gathered_[i].content->get();
            // It may have been read to its end already: a file for its digest, others by a child that failed.
            if (gathered_[i].provenance.stamp != FileStamp{} || is_kept(origins_[i]))
                static_cast<void>(::lseek(content, 0, SEEK_SET));
            descriptors.push_back(content);
        }
        SIEVE_ASSIGN(ReadDone done, follow<ReadDone>(request_.sandbox, order(), std::move(descriptors)));
        for (std::size_t i = 0; i < gathered_.size(); i++)
            SIEVE_TRY(confirm_unchanged(gathered_[i], origin_name(origins_[i])));
        for (std::size_t i = 0; i < gathered_.size(); i++) {
            std::optional<UniqueFd> content = std::exchange(gathered_[i].content, std::nullopt);
            const bool is_worth_it = is_kept(origins_[i]) && !gathered_[i].provenance.digest.empty();
            visit_.contents.push_back(is_worth_it ? std::move(content) : std::nullopt);
        }
        if (done.known) return UnchangedList{known(std::move(done.digest)), std::move(visit_)};
        ReadList list;
        list.remarks = std::move(done.remarks);
        list.label = label_of(request_.origins);
        list.known = known(std::move(done.digest));
        list.visit = std::move(visit_);
        if (Status taken = take_list(list, std::move(records), std::move(exceptions)); !taken)
            return useless(taken.error());
        return list;
    }

    [[nodiscard]] static bool begins_as_image(const Gathered& one) {
        constexpr std::uint32_t magic = SIEVE_MAGIC;
        std::uint32_t first = 0;
        return ::pread(one.content->get(), &first, sizeof(first), 0) == sizeof(first) && first == magic;
    }
    Result<ReadList> read_image() {
        Gathered& one = gathered_.front();
        const std::string name = origin_name(origins_.front());
        if (!may_be_image(origins_.front()))
            return bad_input(
                fmt::format("{}: a filter image, expected a list; if this source is to hand over "
                            "images, set image = true in its table",
                            name));
        if (!request_.feed.chosen.empty())
            return invalid_request(
                fmt::format("{}: an image was built already and takes no option of a feed ({})", name,
                            request_.feed.chosen.front()));
        if (one.provenance.bytes > request_.sandbox.limits.image_bytes)
            return bad_input(fmt::format("{}: an image of {} bytes, expected at most {}", name,
                                         one.provenance.bytes, request_.sandbox.limits.image_bytes));
        if (::lseek(one.content->get(), 0, SEEK_SET) != 0)
            return bad_input(fmt::format("{}: cannot be read: {}", name, errno_text(errno)));
        UniqueFd content(::fcntl(one.content->get(), F_DUPFD_CLOEXEC, 0));
        ReadList list;
        SIEVE_ASSIGN(list.image, accept_image(std::move(content), name));
        SIEVE_TRY(confirm_unchanged(one, name));
        one.content.reset();
        list.label = label_of(request_.origins);
        list.known = known({});
        return list;
    }
    Status take_list(ReadList& list, UniqueFd records, UniqueFd exceptions) const {
        SIEVE_TRY(seal(records));
        SIEVE_TRY(seal(exceptions));
        SIEVE_ASSIGN(list.list, read_list_file(records.get(), request_.feed.fields));
        list.records = std::move(records);
        list.exceptions = std::move(exceptions);
        return {};
    }

    const ReadRequest& request_;
    std::vector<Origin> origins_; // and last the exceptions, if there are any
    std::vector<Gathered> gathered_;
    std::set<std::size_t> instead_; // places of those whose content was no list
    SourceVisit visit_;
};

Result<Exceptions> exceptions_of(const control::FeedSpec& feed, const ReadList& list) {
    if (feed.except.empty()) return Exceptions{};
    SIEVE_ASSIGN(Feed taken, read_list_file(list.exceptions.get(), feed.fields));
    return control::exceptions_of(std::move(taken));
}

class BuildStep : SetStep {
  public:
    BuildStep(const BuildRequest& request, const ReadList& list)
        : SetStep(request.set, request.feed), request_(request), list_(list) {}

    Result<BuiltList> run() {
        const Clock::time_point start = Clock::now();
        auto built = list_.image ? copy() : build();
        if (!built) return tl::unexpected(named(std::move(built.error())));
        built->building = since(start);
        return built;
    }

  private:
    Result<BuiltList> copy() const {
        if (request_.exact && kind_of(list_.image->lookup()).exact() == nullptr)
            return failure(
                ErrorKind::needs_feed,
                fmt::format("{}: an image cannot list the keys to verify its matches with", list_.label));
        SIEVE_ASSIGN(UniqueFd file, make_memory_file("sieve-image"));
        const std::span<const sieve_line> lines = list_.image->lines();
        SIEVE_TRY(write_all(file.get(), {reinterpret_cast<const char*>(lines.data()), lines.size_bytes()}));
        if (::lseek(file.get(), 0, SEEK_SET) != 0) return bad_input(errno_text(errno));
        SIEVE_ASSIGN(Image image, accept_image(std::move(file), list_.label));
        return BuiltList{.image = std::move(image)};
    }
    Result<BuiltList> build() const {
        SIEVE_ASSIGN(UniqueFd file, make_memory_file("sieve-image"));
        BuildOrder order{request_.feed, request_.exact};
        order.feed.build.label = list_.label;
        SIEVE_ASSIGN(WorkDone done,
                     follow<WorkDone>(request_.sandbox, order,
                                      {list_.records.get(), list_.exceptions.get(), file.get()}));
        auto built = accept_built(std::move(file));
        if (!built) return useless(built.error());
        built->remarks = std::move(done.remarks);
        return built;
    }
    // The child may have been taken over, so the filter is asked for everything that it must be.
    [[nodiscard]] Result<BuiltList> accept_built(UniqueFd file) const {
        SIEVE_TRY(seal(file));
        SIEVE_ASSIGN(Image image, accept_image(std::move(file), "its image"));
        SIEVE_ASSIGN(Exceptions exceptions, exceptions_of(request_.feed, list_));
        exceptions.verified = request_.exact;
        SIEVE_TRY(check_built(image, members_of(*list_.list), request_.feed.build, exceptions));
        BuiltList built{.image = std::move(image)};
        if (request_.exact && kind_of(built.image.lookup()).exact() == nullptr) {
            SIEVE_ASSIGN(built.exact, exact_keys(members_of(*list_.list), built.image, list_.label));
        }
        return built;
    }

    const BuildRequest& request_;
    const ReadList& list_;
};

// The child that joined the lists may have been taken over, so the filter is asked for every key.
Status check_joint(const JointFilter& joint, const JoinRequest& request) {
    std::vector<KeySet> lists;
    for (std::size_t i = 0; i < request.lists.size(); i++) {
        SIEVE_ASSIGN(Feed list, read_list_file(request.lists[i].get(), request.task.sets[i].fields));
        lists.push_back(std::move(list.keys));
    }
    std::vector<const KeySet*> keys;
    for (const KeySet& list : lists) keys.push_back(&list);
    return check_joint_names(joint, keys);
}

} // namespace

tl::expected<std::variant<UnchangedList, ReadList>, GatherFailure>
read_in_sandbox(const ReadRequest& request) {
    return ReadStep(request).run();
}

bool leads_to_exact(const control::FeedSpec& feed, const ReadList& list) {
    if (list.image) return kind_of(list.image->lookup()).exact() != nullptr;
    if (!list.list) return false;
    if (list.list->entries() == 0) return true; // see build_image()
    const Result<Exceptions> exceptions = exceptions_of(feed, list);
    const ListFacts facts =
        facts_of(list.list->keys, list.list->ranges, exceptions ? *exceptions : Exceptions{});
    return kind_of(chosen_kind(feed.build, facts).kind).exact() != nullptr;
}

Result<ReadList> own_list(Feed list, std::string label) {
    ReadList own;
    SIEVE_ASSIGN(own.records, make_memory_file("sieve-records"));
    SIEVE_ASSIGN(own.exceptions, make_memory_file("sieve-exceptions"));
    SIEVE_TRY(write_list_file(list, own.records.get()));
    SIEVE_TRY(seal(own.records));
    own.list = std::move(list);
    own.label = std::move(label);
    return own;
}

Result<BuiltList> build_in_sandbox(const BuildRequest& request, const ReadList& list) {
    return BuildStep(request, list).run();
}

Result<JointFilter> join_in_sandbox(const JoinRequest& request,
                                    const std::function<void(const std::string&)>& remark) {
    SIEVE_ASSIGN(const UniqueFd questions, make_memory_file("sieve-questions"));
    SIEVE_TRY(write_question_file(request.task, questions.get()));
    SIEVE_ASSIGN(UniqueFd file, make_memory_file("sieve-joint"));
    std::vector<int> descriptors{questions.get(), file.get()};
    for (const UniqueFd& list : request.lists) descriptors.push_back(list.get());
    SIEVE_ASSIGN(const WorkDone done,
                 follow<WorkDone>(request.sandbox, JoinOrder{request.task}, std::move(descriptors)));
    for (const std::string& said : done.remarks) remark(said);
    SIEVE_TRY(seal(file));
    SIEVE_ASSIGN(Input input, Input::of(std::move(file), "its joint filter"));
    auto joint = JointFilter::load(input);
    if (!joint) return useless(joint.error());
    if (Status right = check_joint(*joint, request); !right) return useless(right.error());
    return joint;
}

} // namespace sieve::service
