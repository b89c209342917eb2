// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sandbox/confined_lists.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <limits>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/service/lists/list_stream.hpp"
#include "libsieve/util/results/out_of_memory.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/system/write_all.hpp"

namespace sieve::service {

namespace {

// One child reads so many inputs, all of which it has open.
constexpr std::size_t inputs_at_once = 64;
constexpr int pipe_bytes = 1 << 20;
// Skipped lines that a reader shows unless all are asked for.
constexpr std::size_t most_skipped = 5;
constexpr std::size_t shortest_entry = sizeof("1.2.3.4\n") - 1;
constexpr SandboxLimits no_limits{.source_bytes = 0,
                                  .unpacked_bytes = 0,
                                  .build = std::chrono::milliseconds(0),
                                  .memory_bytes = 0,
                                  .image_bytes = 0,
                                  .processor = std::chrono::seconds(0),
                                  .nice = 0};
constexpr std::size_t keys_of_piece = std::size_t{1} << 18;

// Copies inputs into pipes, one after the other, as fast as the child reads. A FIFO is opened when its turn
// comes.
class Pump {
  public:
    Pump() = default;
    Pump(const Pump&) = delete;
    Pump& operator=(const Pump&) = delete;
    ~Pump() { finish(); }

    // The reading end of a pipe that the input will come out of.
    Result<UniqueFd> add(Input& input) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0)
            return failure(ErrorKind::kernel_refused, fmt::format("{}: no pipe to read it through: {}",
                                                                  input.name(), errno_text(errno)));
        ::fcntl(ends[1], F_SETPIPE_SZ, pipe_bytes); // if there may be so much
        copies_.push_back({&input, UniqueFd(ends[1])});
        return UniqueFd(ends[0]);
    }
    void start() {
        if (!copies_.empty()) thread_ = std::thread([this] { run(); });
    }
    // Waits until all was copied, or nobody reads any more. Error: what could not be read.
    Status finish() {
        if (thread_.joinable()) thread_.join();
        return std::exchange(outcome_, {});
    }

  private:
    struct Copy {
        Input* input;
        UniqueFd to;
    };

    void run() {
        // A child that has ended is no reason to end.
        sigset_t broken_pipe;
        ::sigemptyset(&broken_pipe);
        ::sigaddset(&broken_pipe, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
        std::vector<char> block(std::size_t{256} << 10);
        for (auto& [input, to] : copies_) {
            for (;;) {
                const Result<std::size_t> got = input->read(block.data(), block.size());
                if (!got) outcome_ = tl::unexpected(got.error());
                if (!got || *got == 0) break;
                if (write_whole(to.get(), {block.data(), *got}) != 0) return copies_.clear();
            }
            to = UniqueFd();
            if (!outcome_) return copies_.clear();
        }
    }

    std::vector<Copy> copies_;
    std::thread thread_;
    Status outcome_;
};

class Reading {
  public:
    Reading(std::span<Input> inputs, const ListQuestion& question, const SandboxSettings& sandbox)
        : inputs_(inputs), question_(question), sandbox_(sandbox), list_{Feed(question.fields)},
          receiver_(list_,
                    question.options.keep_skipped ? std::numeric_limits<std::size_t>::max() : most_skipped,
                    question.sought.size()) {
        sandbox_.limits = no_limits;
    }

    Result<FoundList> run() {
        make_room();
        std::vector<std::string> places(question_.sought.size());
        for (read_ = 0; read_ < inputs_.size(); read_ += inputs_at_once) {
            list_.places.clear();
            SIEVE_TRY(read(inputs_.subspan(read_, std::min(inputs_at_once, inputs_.size() - read_))));
            if (list_.places.size() != places.size()) return nonsense();
            for (std::size_t i = 0; i < places.size(); i++)
                if (places[i].empty()) places[i] = std::move(list_.places[i]);
        }
        list_.places = std::move(places);
        const Feed& feed = list_.feed;
        const std::uint64_t entries = feed.overflowed + feed.entries();
        if (!receiver_.is_whole() || feed.lines != feed.comments + feed.skipped + entries ||
            (feed.skipped > 0 && feed.skipped_first.empty()))
            return nonsense();
        if (entries == 0 && !question_.may_be_empty) return no_keys(feed, inputs_);
        if (question_.options.progress) question_.options.progress("reading", 1.0);
        return std::move(list_);
    }

  private:
    [[nodiscard]] tl::unexpected<Error> nonsense() const {
        const Input& input = inputs_[std::min(read_, inputs_.size() - 1)];
        return bad_input(fmt::format("{}: the process that reads it reported nonsense", input.name()));
    }
    [[nodiscard]] std::string names() const {
        const std::size_t more = std::min(inputs_at_once, inputs_.size() - read_) - 1;
        return inputs_[read_].name() + (more == 0 ? std::string() : fmt::format(" and {} more", more));
    }

    // For all keys, so that they need not move while they come. Room that is not used costs nothing.
    void make_room() {
        const FeedOptions& options = question_.options;
        std::uint64_t bytes = 0;
        for (const Input& input : inputs_) bytes += input.size().value_or(0);
        try {
            list_.feed.keys.reserve(options.overflow ? options.most_entries + keys_of_piece
                                                     : static_cast<std::size_t>(bytes / shortest_entry));
        } catch (const std::exception&) {
            // They may still fit.
        }
    }

    Status read(std::span<Input> inputs) {
        ListOrder order{.fields = question_.fields, .options = question_.options};
        for (const sieve_key& key : question_.sought)
            std::ranges::copy(key.word, order.sought.emplace_back().begin());
        for (const Input& input : inputs) order.inputs.emplace_back(input.path().begin(), input.path().end());
        Pump pump;
        std::vector<UniqueFd> lists;
        for (Input& input : inputs) {
            UniqueFd file = file_of(input);
            if (!file) {
                SIEVE_ASSIGN(file, pump.add(input));
            }
            lists.push_back(std::move(file));
        }
        std::vector<int> descriptors;
        for (const UniqueFd& list : lists) descriptors.push_back(list.get());
        ChildOrder child = child_for(sandbox_, order, std::move(descriptors));
        child.output = [this](std::string_view bytes) { return take(bytes); };
        child.output_limit = std::numeric_limits<std::uint64_t>::max();
        child.progress = [this, &inputs](std::string_view stage, double share) {
            if (question_.options.progress)
                question_.options.progress(
                    stage, (static_cast<double>(read_) + share * static_cast<double>(inputs.size())) /
                               static_cast<double>(inputs_.size()));
        };
        child.started = [&](ChildRole role, pid_t pid) {
            lists.clear(); // from now on, the child's end is the end of the pipes
            pump.start();
            if (sandbox_.started) sandbox_.started(role, pid);
        };
        auto done = run_to_end<ListDone>(sandbox_, child, names() + ": the process that reads it");
        lists.clear();
        SIEVE_TRY(pump.finish());
        if (fault_) return tl::unexpected(std::move(*fault_));
        if (!done) return tl::unexpected(std::move(done.error().error));
        for (Input& input : inputs) input.close();
        Feed& feed = list_.feed;
        feed.lines += done->lines;
        feed.comments += done->comments;
        feed.skipped += done->skipped;
        feed.masked += done->masked;
        feed.bytes += done->bytes;
        return {};
    }

    // A descriptor of the file from its beginning; none if it is no regular file, or another one by now.
    static UniqueFd file_of(const Input& input) {
        if (input.is_stream() || input.path() == "-") return {};
        UniqueFd file(::open(input.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
        struct stat info {};
        if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
            FileIdentity{info.st_dev, info.st_ino} != input.identity())
            return {};
        return file;
    }

    // What the child prints. An errno value ends it.
    int take(std::string_view bytes) {
        if (!receiver_.take(bytes)) {
            fault_ = nonsense().value();
            return EBADMSG;
        }
        Feed& feed = list_.feed;
        const FeedOptions& options = question_.options;
        if (!options.overflow || feed.entries() < options.most_entries) return 0;
        const std::size_t held = feed.keys.size();
        if (Status passed = options.overflow(feed); !passed) {
            fault_ = std::move(passed.error());
            return ECANCELED;
        }
        feed.overflowed += held;
        feed.keys.clear();
        feed.keys.reserve(options.most_entries + keys_of_piece);
        return 0;
    }

    std::span<Input> inputs_;
    const ListQuestion& question_;
    SandboxSettings sandbox_;
    FoundList list_;
    ListReceiver receiver_;
    std::size_t read_ = 0; // inputs of children before the present one
    std::optional<Error> fault_;
};

} // namespace

Result<FoundList> read_confined(std::span<Input> inputs, const ListQuestion& question,
                                const SandboxSettings& sandbox) {
    try {
        return Reading(inputs, question, sandbox).run();
    } catch (const std::exception& problem) {
        if (!is_out_of_memory(problem)) throw;
        return failure(ErrorKind::out_of_memory,
                       fmt::format("{}: its keys do not fit into memory", inputs.front().name()));
    }
}

} // namespace sieve::service
