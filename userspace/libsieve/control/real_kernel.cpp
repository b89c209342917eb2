// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/real_kernel.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "libsieve/control/table/end_probation.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/hooks/noting.hpp"
#include "libsieve/kernel/hooks/own_flows.hpp"
#include "libsieve/kernel/hooks/xdp/lost_pins.hpp"
#include "libsieve/kernel/host/capabilities.hpp"
#include "libsieve/kernel/host/grace_period.hpp"
#include "libsieve/kernel/host/lock.hpp"
#include "libsieve/kernel/maps/event_ring.hpp"
#include "libsieve/kernel/maps/exact_set.hpp"
#include "libsieve/kernel/maps/filter_map.hpp"
#include "libsieve/kernel/maps/mapped_filter.hpp"
#include "libsieve/kernel/programs/joint_preflight.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/packets/carrier.hpp"

namespace sieve::control {

namespace {

// For so long after their noting program has come, connections that no note was taken of are learnt from the
// segments that this host sends. Longer, and a peer that a list names later might have become one of them.
constexpr std::chrono::seconds learning_time{60};

class RealReadyReplies final : public ReadyReplies {
  public:
    RealReadyReplies(kernel::Interface interface, kernel::FlowMemory memory)
        : interface_(std::move(interface)), memory_(std::move(memory)) {}
    RealReadyReplies(const RealReadyReplies&) = delete;
    RealReadyReplies& operator=(const RealReadyReplies&) = delete;
    ~RealReadyReplies() override {
        if (brought_) static_cast<void>(kernel::detach_noting(interface_));
    }

    // Takes notes of the flows that come, and then of those that are there.
    [[nodiscard]] Status bring() {
        if (Result<kernel::Noting> noting = kernel::attach_noting(interface_, memory_); !noting) {
            Error why = std::move(noting.error());
            // It may be there, where reading the hook again failed: then it goes again.
            if (why.kind == ErrorKind::unfinished) {
                if (!kernel::detach_noting(interface_)) return tl::unexpected(std::move(why));
                why.kind = ErrorKind::kernel_refused;
            }
            why.message = fmt::format("replies need a program that notes what leaves {}, and it cannot be "
                                      "attached: {}; nothing was changed",
                                      interface_.name, why.message);
            return tl::unexpected(std::move(why));
        }
        brought_ = true;
        memory_.learn_for(learning_time);
        SIEVE_ASSIGN(const std::vector<kernel::OwnFlow> flows, kernel::own_flows(interface_.name));
        std::uint64_t seeded = 0;
        for (const kernel::OwnFlow& flow : flows) seeded += memory_.note(flow.key, flow.age) ? 1 : 0;
        made_.seeded = seeded;
        return {};
    }

    RepliesMade& made() { return made_; }
    const RepliesMade& made() const override { return made_; }
    Status serve(const kernel::Hook& hook) override { return memory_.put_into(*hook.instance); }
    [[nodiscard]] Status put_into(const kernel::Instance& instance) const {
        return memory_.put_into(instance);
    }
    void keep() override {
        if (std::exchange(brought_, false)) memory_.learn_for(learning_time);
    }

  private:
    kernel::Interface interface_;
    kernel::FlowMemory memory_;
    RepliesMade made_{};
    bool brought_ = false; // and goes again
};

// What was read; nothing, and `other`, if it belongs to another version of xdp-sieve. That is as good as
// none: an upgrade replaces it. Whatever is nobody's of ours stays an error.
template <class Read>
Result<std::optional<Read>> of_this_version(Result<std::optional<Read>> read, bool& other) {
    if (read || read.error().kind != ErrorKind::other_version) return read;
    other = true;
    return std::optional<Read>();
}

// Whether the interface's noting program is there and writes into that memory. It is told which ports are the
// kernel's to give: somebody may have changed that since it came.
Result<std::optional<kernel::Noting>> noting_into(const kernel::Interface& interface, std::uint32_t memory_id,
                                                  bool& other) {
    auto noting = of_this_version(kernel::read_noting(interface), other);
    if (noting && *noting && (*noting)->memory_id != memory_id) return std::optional<kernel::Noting>();
    if (noting && *noting) kernel::tell_own_ports(**noting);
    return noting;
}

// The key of a packet that a packet with this key answers.
sieve_key reversed(const sieve_key& key) {
    const auto port = [&](unsigned shift) { return static_cast<std::uint16_t>(key.word[4] >> shift); };
    return {{key.word[2], key.word[3], key.word[0], key.word[1],
             sieve_transport_word(port(SIEVE_DPORT_SHIFT), port(SIEVE_SPORT_SHIFT),
                                  static_cast<std::uint8_t>(key.word[4]))}};
}

// As many flows as a thousandth of the machine's memory holds.
std::uint64_t usual_flows() {
    constexpr std::uint64_t share = 1000, fewest = 1U << 16U, most = 1U << 23U;
    const auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t flow = kernel::flow_memory_bytes(most) / most;
    return std::clamp(std::bit_floor(pages * page / share / flow), fewest, most);
}

class RealTrial final : public Trial {
  public:
    RealTrial(kernel::Scratch scratch, std::vector<kernel::PreflightQuestions> questions)
        : scratch_(std::move(scratch)), questions_(std::move(questions)) {}

    Result<kernel::PreflightReport> test(std::uint32_t slot, const ReadySet& set) override {
        return kernel::preflight(scratch_, slot, set.image, questions_[slot], set.name, set.maps.verified());
    }

    Result<bool> matches(std::uint32_t slot, bool verified, const sieve_key& key,
                         std::uint32_t fields) override {
        const std::span<const std::uint8_t> frame = carrier_.carry(key, fields);
        if (frame.empty()) return false;
        scratch_.ask_slot(slot, verified);
        SIEVE_ASSIGN(const std::uint32_t verdict, scratch_.run(frame));
        return verdict == SIEVE_VERDICT_DROP;
    }

    Status include(std::uint32_t slot, std::uint32_t map_id, std::uint32_t exact_id) override {
        return scratch_.put_in(slot, map_id, exact_id);
    }

    Status use(const ReadyReplies& replies) override {
        replies_ = static_cast<const RealReadyReplies*>(&replies);
        return {};
    }

    Result<kernel::Attached> go_live(const kernel::Hook& before, const kernel::WantedTable& table,
                                     const kernel::AttachOptions& options) override {
        SIEVE_ASSIGN(const kernel::BpfObject object, std::move(scratch_).release());
        if (replies_ != nullptr) SIEVE_TRY(replies_->put_into(object.instance()));
        SIEVE_TRY(kernel::SetTable(object.instance()).install(table));
        object.instance().control().loader = SIEVE_LOADER_SIEVE;
        return kernel::attach(before, object, options);
    }

  private:
    kernel::Scratch scratch_;
    std::vector<kernel::PreflightQuestions> questions_;
    packets::Carrier carrier_;
    const RealReadyReplies* replies_ = nullptr; // outlives go_live()
};

class RealReplayer final : public Replayer {
  public:
    explicit RealReplayer(kernel::Replay replay) : replay_(std::move(replay)) {}
    Result<kernel::Replayed> run(std::span<const std::uint8_t> frame) override { return replay_.run(frame); }
    const kernel::TableInForce& table() const override { return replay_.table(); }

  private:
    kernel::Replay replay_;
};

class RealRunningFilter final : public RunningFilter {
  public:
    explicit RealRunningFilter(kernel::MappedFilter map) : map_(std::move(map)) {}
    const sieve_lookup& lookup() const override { return map_.lookup(); }
    const sieve_probes& probes() const override { return map_.probes(); }
    sieve_file& file() override { return map_.file(); }
    std::span<sieve_line> lines() override { return map_.filter(); }
    std::span<const sieve_witness> witnesses() override { return map_.witnesses(); }
    std::span<const sieve_exception> exceptions() override { return map_.exceptions(); }

  private:
    kernel::MappedFilter map_;
};

// Of an exact set, or of inserted keys.
template <class Map>
class RealKeys final : public RunningKeys {
  public:
    explicit RealKeys(Map map) : map_(std::move(map)) {}
    Result<std::optional<kernel::KeyNote>> find(const sieve_key& key) override { return map_.find(key); }
    Result<bool> put(const sieve_key& key, const kernel::KeyNote& note) override {
        return map_.put(key, note);
    }
    Status erase(const sieve_key& key) override { return map_.erase(key); }
    Result<std::vector<kernel::NotedKey>> all() override { return map_.all(); }
    std::uint64_t most() override { return map_.most(); }

  private:
    Map map_;
};

class RealEventStream final : public EventStream {
  public:
    explicit RealEventStream(kernel::EventRing ring) : ring_(std::move(ring)) {}
    Status poll(int milliseconds) override { return ring_.poll(milliseconds); }
    bool in_place() const override { return ring_.in_place(); }
    Status stop() override { return ring_.stop(); }
    Result<std::uint64_t> lost() const override { return ring_.lost(); }

  private:
    kernel::EventRing ring_;
};

} // namespace

Result<kernel::Interface> RealKernel::find_interface(const std::string& name) {
    return kernel::find_interface(name);
}

std::vector<kernel::Interface> RealKernel::interfaces() {
    return kernel::all_interfaces();
}

int RealKernel::mtu(const kernel::Interface& interface) {
    return kernel::interface_mtu(interface);
}

Result<kernel::Device> RealKernel::read_device(const kernel::Interface& interface) {
    return kernel::read_device(interface);
}

Result<kernel::Target> RealKernel::find_target(const std::string& name) {
    return kernel::find_target(name);
}

Status RealKernel::may_load_programs() {
    return kernel::may_load_programs();
}

void RealKernel::expect_to_attach() {
    static_cast<void>(kernel::may_use_dispatcher());
}

Result<Held> RealKernel::hold_lock(std::chrono::milliseconds patience,
                                   const std::function<void(const std::string& holder)>& waiting) {
    SIEVE_ASSIGN(kernel::Lock lock, kernel::Lock::take(patience, waiting));
    kernel::xdp::remove_lost_pins();
    return std::make_shared<const kernel::Lock>(std::move(lock));
}

Result<SetMaps> RealKernel::bring_in(const Image& image, const std::vector<sieve_key>* exact,
                                     const std::string& name, std::uint64_t coming) {
    struct Maps {
        kernel::FilterMap filter;
        std::optional<kernel::ExactSet> exact;
    };
    SIEVE_ASSIGN(kernel::FilterMap filter, kernel::FilterMap::create(image, name));
    Maps maps{std::move(filter), {}};
    if (exact != nullptr) {
        // Where keys can come, the exact set has room for half as many again.
        const bool may_grow = kind_of(image.lookup()).facts().changes_live;
        const std::uint64_t room = may_grow ? coming + exact->size() / 2 + 1024 : 0;
        SIEVE_ASSIGN(maps.exact, kernel::ExactSet::create(image, *exact, name, room));
    }
    const auto owner = std::make_shared<const Maps>(std::move(maps));
    return SetMaps{.filter_fd = owner->filter.fd(),
                   .filter_id = owner->filter.id(),
                   .exact_fd = owner->exact ? owner->exact->fd() : -1,
                   .exact_bytes = owner->exact ? owner->exact->bytes() : 0,
                   .owner = owner};
}

Result<SetMaps> RealKernel::bring_in_joint(kernel::HookPoint point, const JointFilter& joint,
                                           std::span<const kernel::JoinedSet> sets) {
    SIEVE_ASSIGN(kernel::FilterMap map, kernel::FilterMap::create(joint.lines(), "joint"));
    SIEVE_TRY(kernel::preflight_joint(joint, map, sets, point));
    const auto owner = std::make_shared<const kernel::FilterMap>(std::move(map));
    return SetMaps{.filter_fd = owner->fd(), .filter_id = owner->id(), .owner = owner};
}

Result<std::unique_ptr<Trial>> RealKernel::start_trial(kernel::HookPoint point, bool frags,
                                                       const MakeSets& make) {
    std::vector<kernel::PreflightQuestions> questions;
    const auto make_maps = [&]() -> Result<kernel::Scratch::Sets> {
        SIEVE_ASSIGN(const std::vector<const ReadySet*> sets, make());
        kernel::Scratch::Sets maps;
        for (const ReadySet* set : sets) {
            maps.filters.push_back(set->maps.filter_fd);
            maps.exact.push_back(set->maps.exact_fd);
            questions.emplace_back(set->image);
        }
        return maps;
    };
    SIEVE_ASSIGN(kernel::Scratch scratch, kernel::Scratch::load_with(make_maps, frags, point));
    return std::make_unique<RealTrial>(std::move(scratch), std::move(questions));
}

Result<std::unique_ptr<Replayer>> RealKernel::start_replay(kernel::HookPoint point,
                                                           const kernel::WantedTable& table) {
    SIEVE_ASSIGN(kernel::Replay replay, kernel::Replay::start(table, point));
    return std::make_unique<RealReplayer>(std::move(replay));
}

Result<kernel::Hook> RealKernel::read_hook(const kernel::Interface& interface, kernel::HookPoint point) {
    return kernel::read_hook(interface, point);
}

Result<bool> RealKernel::has_program(std::uint32_t id) {
    return kernel::has_program(id);
}

kernel::TableInForce RealKernel::read_table(const kernel::Hook& hook) {
    return kernel::SetTable(*hook.instance).read();
}

std::optional<kernel::TableInForce> RealKernel::read_returning(const kernel::Hook& hook) {
    return kernel::SetTable(*hook.instance).read_returning();
}

Status RealKernel::replace_table(const kernel::Hook& hook, const kernel::WantedTable& table) {
    SIEVE_TRY(refuse_on_probation(*this, hook));
    // Nobody was there when the time of an unconfirmed change was over. What its replies needed goes now.
    if (table.replies == SIEVE_ACTION_DROP && read_table(hook).taken_back)
        static_cast<void>(end_replies(hook.interface));
    // A tool other than ours may have attached the program without telling it what packets begin with.
    SIEVE_ASSIGN(const sieve_link link, kernel::interface_link(hook.interface));
    hook.instance->control().link = link;
    return kernel::SetTable(*hook.instance).replace(table);
}

Status RealKernel::leave_joint_on_probation(const kernel::Hook& hook, std::uint32_t map_id) {
    return kernel::SetTable(*hook.instance).leave_joint(map_id);
}

Status RealKernel::end_probation(const kernel::Hook& hook, bool keep) {
    kernel::SetTable table(*hook.instance);
    return keep ? table.confirm() : table.take_back();
}

Status RealKernel::detach(const kernel::Hook& hook) {
    return kernel::detach(hook);
}

Result<std::unique_ptr<ReadyReplies>> RealKernel::ready_replies(const kernel::Interface& interface,
                                                                const WantedFlows& flows) {
    bool other = false;
    SIEVE_ASSIGN(std::optional<kernel::FlowMemory> memory,
                 of_this_version(kernel::FlowMemory::in_force(), other));
    const auto has_other_size = [&] { return memory && flows.most && memory->max_flows() != *flows.most; };
    if (has_other_size()) { // perhaps it stayed behind, as in replace_table()
        for (const kernel::Noting& noting : kernel::all_notings()) SIEVE_TRY(end_replies(noting.interface));
        SIEVE_ASSIGN(memory, of_this_version(kernel::FlowMemory::in_force(), other));
    }
    const bool fresh = !memory;
    if (!memory) {
        SIEVE_ASSIGN(memory, kernel::FlowMemory::create(flows.most.value_or(usual_flows())));
    } else if (!flows.if_new && has_other_size()) {
        return invalid_request(fmt::format("{}: {} flows are asked for, and the flow memory in force, which "
                                           "all interfaces share, is for {}; it "
                                           "gets another size when no interface lets replies pass any more",
                                           interface.name, *flows.most, memory->max_flows()));
    }
    SIEVE_ASSIGN(const std::optional<kernel::Noting> noting, noting_into(interface, memory->id(), other));
    const std::uint64_t most = memory->max_flows();
    auto ready = std::make_unique<RealReadyReplies>(interface, std::move(*memory));
    ready->made() = {.max_flows = most,
                     .bytes = kernel::flow_memory_bytes(most),
                     .memory_made = fresh,
                     .replaced = fresh && other};
    if (!noting) SIEVE_TRY(ready->bring());
    return std::unique_ptr<ReadyReplies>(std::move(ready));
}

Status RealKernel::end_replies(const kernel::Interface& interface) {
    bool needed = false;
    for (const kernel::HookPoint point : kernel::all_hook_points) {
        SIEVE_ASSIGN(const kernel::Hook hook, kernel::read_hook(interface, point));
        if (!hook.ours) continue;
        if (!hook.speaks_our_version()) {
            needed = true; // who knows
            continue;
        }
        const kernel::TableInForce table = read_table(hook);
        if (table.replies == SIEVE_ACTION_PASS || table.probation)
            needed = true;
        else
            SIEVE_TRY(kernel::FlowMemory::take_out_of(*hook.instance));
    }
    return needed ? Status() : kernel::detach_noting(interface);
}

Result<RepliesState> RealKernel::read_replies(const kernel::Hook& hook) {
    RepliesState state;
    SIEVE_ASSIGN(const std::optional<kernel::FlowMemory> memory,
                 kernel::FlowMemory::of_instance(*hook.instance));
    if (!memory) return state;
    // Times of entries come round. Whoever looks after a hook looks at its replies far more often than that.
    memory->sweep();
    state.memory = memory->facts();
    bool other = false;
    SIEVE_ASSIGN(std::optional<kernel::Noting> noting, noting_into(hook.interface, memory->id(), other));
    state.noting = noting.has_value();
    if (!noting) return state;
    state.counts = noting->counts;
    state.before = std::move(noting->before);
    return state;
}

Result<bool> RealKernel::is_reply(const kernel::Hook& hook, const sieve_key& packet) {
    SIEVE_ASSIGN(const std::optional<kernel::FlowMemory> memory,
                 kernel::FlowMemory::of_instance(*hook.instance));
    return memory && memory->holds(reversed(packet));
}

Result<std::unique_ptr<RunningFilter>> RealKernel::open_filter(std::uint32_t map_id) {
    SIEVE_ASSIGN(kernel::MappedFilter map, kernel::MappedFilter::open(map_id));
    return std::make_unique<RealRunningFilter>(std::move(map));
}

Result<std::unique_ptr<RunningFilter>> RealKernel::open_joint(std::uint32_t map_id) {
    SIEVE_ASSIGN(kernel::MappedFilter map, kernel::MappedFilter::open_joint(map_id));
    return std::make_unique<RealRunningFilter>(std::move(map));
}

Result<UniqueFd> RealKernel::open_map(std::uint32_t map_id) {
    return kernel::open_map(map_id);
}

Result<std::unique_ptr<RunningKeys>> RealKernel::open_exact(std::uint32_t exact_id) {
    SIEVE_ASSIGN(kernel::MappedExactSet set, kernel::MappedExactSet::open(exact_id));
    return std::make_unique<RealKeys<kernel::MappedExactSet>>(std::move(set));
}

Result<std::unique_ptr<RunningKeys>> RealKernel::open_inserted(std::uint32_t inserted_id) {
    SIEVE_ASSIGN(kernel::KeyMap map, kernel::KeyMap::open(inserted_id));
    return std::make_unique<RealKeys<kernel::KeyMap>>(std::move(map));
}

Result<UniqueFd> RealKernel::make_inserted(const std::string& name, std::uint32_t most,
                                           std::span<const kernel::NotedKey> keys) {
    return kernel::create_inserted_map(name, most, keys);
}

Status RealKernel::grace_period() {
    return kernel::grace_period();
}

std::uint64_t RealKernel::boot_time() {
    timespec time{};
    ::clock_gettime(CLOCK_BOOTTIME, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

Result<kernel::FilterHeader> RealKernel::read_filter(std::uint32_t map_id) {
    return kernel::read_filter_header(map_id);
}

Result<std::uint64_t> RealKernel::exact_bytes(std::uint32_t exact_id) {
    return kernel::read_exact_bytes(exact_id);
}

Result<kernel::Stats> RealKernel::read_stats(const kernel::Hook& hook) {
    return kernel::read_stats(*hook.instance);
}

Watching RealKernel::watching(const kernel::Hook& hook) {
    const volatile sieve_control& control = hook.instance->control();
    const bool samples = (control.watch & SIEVE_WATCH_SAMPLED) != 0;
    return {.sample = samples ? control.sample : 0, .counts_keys = kernel::is_tallying(*hook.instance)};
}

Result<kernel::Tally> RealKernel::read_tally(const kernel::Hook& hook, std::size_t most) {
    return kernel::read_tally(*hook.instance, most);
}

Status RealKernel::start_tally(const kernel::Hook& hook) {
    return kernel::start_tally(*hook.instance);
}

Status RealKernel::stop_tally(const kernel::Hook& hook) {
    return kernel::stop_tally(*hook.instance);
}

Result<std::unique_ptr<EventStream>>
RealKernel::start_events(const kernel::Hook& hook, const kernel::Sampling& sampling, VisitEvent visit) {
    SIEVE_ASSIGN(kernel::EventRing ring,
                 kernel::EventRing::start(*hook.instance, sampling, std::move(visit)));
    return std::make_unique<RealEventStream>(std::move(ring));
}

} // namespace sieve::control
