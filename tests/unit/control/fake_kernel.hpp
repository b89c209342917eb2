// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A kernel with one interface, eth0. It keeps what it is told, and notes the order of the calls. Tests use it
// to see what control decides.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/control/access/kernel.hpp"

namespace sieve::test {

class FakeKernel final : public control::Kernel {
  public:
    // What runs on eth0. A test sets it.
    struct Running {
        bool ours = false;
        bool foreign = false;
        bool other_version = false;
        kernel::Mode mode = kernel::Mode::native;
        std::uint32_t program = 0;
        kernel::TableInForce table;
        kernel::Stats stats{};
        control::Watching watching{};
        kernel::Tally tally{};
    };
    Running running;                            // at XDP
    std::map<kernel::HookPoint, Running> at_tc; // at the other hooks

    bool may_load = true;
    bool busy = false; // another controller holds the lock
    int mtu_of_eth0 = 1500;
    // The interfaces that redirections see: packets come from eth0 and go to eth1.
    kernel::Device eth0 = ordinary_device(), eth1 = ordinary_device();
    std::string failing_set;                          // its test in the kernel fails
    bool refuses_joint = false;                       // a joint filter's test in the kernel fails
    bool refuses_tables = false;                      // replacing a table fails
    bool cannot_tidy_up = false;                      // changes are made, and what follows them fails
    std::optional<kernel::HookPoint> keeps_probation; // ending it there fails
    std::function<void()> on_test;                    // what somebody else does while a set is tested
    std::function<void()> on_joint;                   // likewise while a joint filter is tested
    std::function<void()> on_lock;                    // what somebody else does until the lock is there

    // Replies.
    bool refuses_notes = false;                                 // the noting program cannot be attached
    bool notes = false;                                         // it is attached to eth0
    std::uint64_t memory_flows = 0;                             // of the flow memory; 0: there is none
    std::uint64_t existing_flows = 3;                           // that are noted when notes begin
    std::vector<std::array<__u64, SIEVE_KEY_WORDS>> reply_keys; // packets that answer own flows

    bool eth0_gone = false; // the interface was deleted
    // No descriptor is left: no hook can be read, and it is unknown which interfaces and programs there are.
    bool no_descriptors = false;
    bool hides_interfaces = false; // then

    // Interfaces besides eth0, without a program of ours. One named "gone" disappears when its hooks are
    // read.
    std::vector<std::string> more_interfaces;
    std::function<void(std::uint32_t map_id)> on_read_filter; // what somebody else does meanwhile
    // The program's samples while a listener polls, a list for each poll. After the last list, polling fails.
    std::vector<std::vector<sieve_event>> samples;
    std::uint64_t samples_lost = 0;
    kernel::Sampling sampled;                    // what the last listener asked for
    std::optional<std::size_t> taken_over_after; // polls; then another listener is in place

    std::uint64_t replay_hits = 0;  // slots of the sets that every replayed packet matches
    std::vector<std::string> steps; // what was asked for, in order
    std::vector<kernel::AttachOptions> attached_with;
    std::vector<kernel::HookPoint> points; // that hooks were read at
    std::optional<bool> with_frags;        // of the last trial
    std::shared_ptr<int> open_maps = std::make_shared<int>(0);

    // A network card whose driver supports every feature.
    static kernel::Device ordinary_device() {
        return {.up = true,
                .carrier = true,
                .mtu = 1500,
                .link = SIEVE_LINK_ETHERNET,
                .xdp = kernel::XdpFeatures{.native = true, .sends = true, .sends_long = true},
                .unfinished_checksums = false,
                .tap = false};
    }

    [[nodiscard]] std::size_t count(const std::string& step) const {
        return static_cast<std::size_t>(std::count(steps.begin(), steps.end(), step));
    }
    [[nodiscard]] bool changed() const { return count("attach") + count("replace") + count("detach") > 0; }

    // Puts a set in force as if it had always been there.
    kernel::SetInForce& put(const std::string& name, sieve_action action = SIEVE_ACTION_DROP,
                            bool verified = false) {
        running.ours = true;
        if (running.program == 0) running.program = 40;
        const auto id = static_cast<std::uint32_t>(100 + running.table.sets.size());
        running.table.sets.push_back({.name = name,
                                      .action = action,
                                      .target = 0,
                                      .slot = static_cast<std::uint32_t>(running.table.sets.size()),
                                      .map_id = id,
                                      .exact_id = verified ? id + 50 : 0,
                                      .baseline = {},
                                      .verified_baseline = {}});
        return running.table.sets.back();
    }
    // A filter that open_filter() finds under that id.
    void put_filter(std::uint32_t id, const Image& image) {
        filters_[id].assign(image.lines().begin(), image.lines().end());
    }
    // Makes this the joint filter of the table on eth0, for its first sets.
    void put_joint(const JointFilter& joint) {
        running.table.joint_id = 900;
        filters_[900].assign(joint.lines().begin(), joint.lines().end());
        for (std::uint32_t number = 0; number < joint.sets(); number++)
            running.table.sets.at(number).joined = number;
    }
    // An exact set that open_exact() finds under that id, with room for so many more keys.
    void put_exact(std::uint32_t id, const std::vector<sieve_key>& members, std::size_t room) {
        keys[id] = {.notes = {}, .most = members.size() + room};
        for (const sieve_key& key : members) keys[id].notes[std::to_array(key.word)] = {};
    }
    void take_filter(std::uint32_t id) { filters_.erase(id); }

    [[nodiscard]] Running& at(kernel::HookPoint point) {
        return point == kernel::HookPoint::xdp ? running : at_tc[point];
    }

    Result<kernel::Interface> find_interface(const std::string& name) override {
        for (const kernel::Interface& interface : interfaces())
            if (interface.name == name && name != "gone") return interface;
        return kernel_refused("interface " + name);
    }
    std::vector<kernel::Interface> interfaces() override {
        std::vector<kernel::Interface> all;
        if (no_descriptors && hides_interfaces) return all;
        if (!eth0_gone) all.push_back({"eth0", 7});
        for (const std::string& name : more_interfaces)
            all.push_back({name, static_cast<std::uint32_t>(20 + all.size())});
        return all;
    }
    int mtu(const kernel::Interface&) override { return mtu_of_eth0; }
    Result<kernel::Device> read_device(const kernel::Interface& interface) override {
        if (interface.index == 7) return eth0;
        if (interface.index == 8) return eth1;
        return kernel_refused("interface " + interface.name);
    }
    Result<kernel::Target> find_target(const std::string& name) override {
        if (name == "eth0") return kernel::Target{SIEVE_ACTION_REDIRECT_DEVICE, 7};
        if (name == "eth1") return kernel::Target{SIEVE_ACTION_REDIRECT_DEVICE, 8};
        if (name == "cpu:3") return kernel::Target{SIEVE_ACTION_REDIRECT_CPU, 3};
        return kernel_refused("interface " + name);
    }
    Status may_load_programs() override {
        if (!may_load) return failure(ErrorKind::not_permitted, "loading an XDP program");
        return {};
    }
    void expect_to_attach() override {}

    Result<control::Held> hold_lock(std::chrono::milliseconds,
                                    const std::function<void(const std::string&)>& waiting) override {
        if (busy) {
            waiting("process 1 (other)");
            return failure(ErrorKind::busy, "process 1 (other) is at work");
        }
        EXPECT_FALSE(held_) << "the lock is taken twice";
        if (on_lock) std::exchange(on_lock, nullptr)();
        steps.emplace_back("lock");
        held_ = true;
        return control::Held(this, [this](const void*) {
            held_ = false;
            steps.emplace_back("unlock");
        });
    }

    Result<control::SetMaps> bring_in(const Image& image, const std::vector<sieve_key>* exact,
                                      const std::string& name, std::uint64_t coming) override {
        steps.push_back("bring in " + name);
        const int fd = next_fd_++;
        put_filter(id_of(fd), image);
        ++*open_maps;
        const int exact_fd = exact != nullptr ? next_fd_++ : -1;
        if (exact != nullptr) put_exact(id_of(exact_fd), *exact, coming + exact->size() / 2 + 1024);
        return control::SetMaps{
            .filter_fd = fd,
            .filter_id = id_of(fd),
            .exact_fd = exact_fd,
            .exact_bytes = exact != nullptr ? exact->size() * 100 : 0,
            .owner = std::shared_ptr<const void>(this, [open = open_maps](const void*) { --*open; })};
    }

    Result<control::SetMaps> bring_in_joint(kernel::HookPoint, const JointFilter& joint,
                                            std::span<const kernel::JoinedSet> sets) override {
        std::string step = "bring in joint of";
        for (const kernel::JoinedSet& set : sets) step += " " + set.name;
        steps.push_back(step);
        EXPECT_EQ(joint.sets(), sets.size());
        if (refuses_joint) return bad_input("a key was decided by no set");
        if (on_joint) std::exchange(on_joint, nullptr)();
        const int fd = next_fd_++;
        filters_[id_of(fd)].assign(joint.lines().begin(), joint.lines().end());
        for (const kernel::JoinedSet& set : sets) EXPECT_FALSE(set.members.empty());
        return control::SetMaps{.filter_fd = fd, .filter_id = id_of(fd)};
    }

    Result<std::unique_ptr<control::Trial>> start_trial(kernel::HookPoint, bool frags,
                                                        const MakeSets& make) override {
        steps.emplace_back("trial");
        with_frags = frags;
        SIEVE_ASSIGN(const std::vector<const control::ReadySet*> sets, make());
        std::vector<std::string> names;
        fresh_ids_.clear();
        for (const control::ReadySet* set : sets) {
            names.push_back(set->name);
            fresh_ids_.push_back(set->maps.filter_id);
        }
        return std::make_unique<FakeTrial>(*this, std::move(names));
    }
    Result<std::unique_ptr<control::Replayer>> start_replay(kernel::HookPoint,
                                                            const kernel::WantedTable& table) override {
        steps.emplace_back("replay");
        return std::make_unique<FakeReplayer>(live(table), replay_hits);
    }

    Result<kernel::Hook> read_hook(const kernel::Interface& interface, kernel::HookPoint point) override {
        points.push_back(point);
        kernel::Hook hook;
        hook.interface = interface;
        hook.point = point;
        if (interface.name == "gone" || (eth0_gone && interface.name == "eth0"))
            return kernel_refused("reading the hook of an interface that is gone");
        if (no_descriptors) return kernel_refused("Too many open files");
        if (interface.name != "eth0") return hook;
        const Running& running = at(point);
        hook.mode = running.mode;
        const auto program = [&](const char* name) {
            return kernel::Program{.id = running.program, .name = name, .fd = UniqueFd()};
        };
        if (running.foreign) hook.attached = program("foreigner");
        if (running.ours) {
            hook.attached = program("xdp_sieve");
            hook.ours = program("xdp_sieve");
            if (running.other_version) hook.other_version = "it speaks version 1";
        }
        return hook;
    }
    Result<bool> has_program(std::uint32_t id) override {
        if (no_descriptors) return kernel_refused("Too many open files");
        const auto runs = [id](const Running& one) { return one.ours && one.program == id; };
        return runs(running) ||
               std::any_of(at_tc.begin(), at_tc.end(), [&](const auto& one) { return runs(one.second); });
    }
    kernel::TableInForce read_table(const kernel::Hook& hook) override {
        EXPECT_TRUE(hook.speaks_our_version());
        return at(hook.point).table;
    }
    Status replace_table(const kernel::Hook& hook, const kernel::WantedTable& table) override {
        EXPECT_TRUE(held_) << "a table is replaced without the lock";
        EXPECT_TRUE(hook.speaks_our_version());
        if (refuses_tables) return kernel_refused("no");
        steps.emplace_back("replace");
        at(hook.point).table = live(table, hook.point);
        if (cannot_tidy_up) return failure(ErrorKind::unfinished, "in force");
        return {};
    }
    Status end_probation(const kernel::Hook& hook, bool keep) override {
        EXPECT_TRUE(held_) << "a probation is ended without the lock";
        EXPECT_TRUE(at(hook.point).table.probation);
        if (keeps_probation == hook.point) return kernel_refused("no");
        steps.emplace_back(keep ? "confirm" : "take back");
        at(hook.point).table.probation.reset();
        return {};
    }
    Status detach(const kernel::Hook& hook) override {
        EXPECT_TRUE(held_) << "a program is detached without the lock";
        EXPECT_TRUE(hook.ours);
        steps.emplace_back("detach");
        at(hook.point) = {};
        if (cannot_tidy_up) return failure(ErrorKind::unfinished, "gone");
        return {};
    }
    Result<std::unique_ptr<control::ReadyReplies>> ready_replies(const kernel::Interface&,
                                                                 const control::WantedFlows& flows) override {
        EXPECT_TRUE(held_) << "replies are made ready without the lock";
        if (memory_flows != 0 && flows.most && !flows.if_new && *flows.most != memory_flows)
            return invalid_request("the flow memory has another size");
        if (refuses_notes) return kernel_refused("no program at tc's egress hook");
        auto ready = std::make_unique<FakeReplies>(*this);
        ready->made_ = {.max_flows = memory_flows != 0 ? memory_flows : flows.most.value_or(1000),
                        .memory_made = memory_flows == 0};
        if (!notes) {
            steps.emplace_back("attach notes");
            steps.emplace_back("seed");
            ready->made_.seeded = existing_flows;
            ready->brought_ = true;
        }
        notes = true;
        memory_flows = ready->made_.max_flows;
        return std::unique_ptr<control::ReadyReplies>(std::move(ready));
    }
    Status end_replies(const kernel::Interface&) override {
        EXPECT_TRUE(held_) << "replies end without the lock";
        const auto needs = [](const Running& one) {
            return one.ours && (one.table.replies == SIEVE_ACTION_PASS || one.table.probation);
        };
        if (!notes || needs(running) ||
            std::any_of(at_tc.begin(), at_tc.end(), [&](const auto& one) { return needs(one.second); }))
            return {};
        steps.emplace_back("detach notes");
        notes = false;
        memory_flows = 0;
        return {};
    }
    Result<control::RepliesState> read_replies(const kernel::Hook&) override {
        control::RepliesState state{.noting = notes};
        if (memory_flows != 0)
            state.memory = kernel::FlowMemoryFacts{.max_flows = memory_flows, .entries = 1};
        return state;
    }
    Result<bool> is_reply(const kernel::Hook&, const sieve_key& packet) override {
        return std::find(reply_keys.begin(), reply_keys.end(), std::to_array(packet.word)) !=
               reply_keys.end();
    }
    Result<std::unique_ptr<control::RunningFilter>> open_filter(std::uint32_t map_id) override {
        const auto found = filters_.find(map_id);
        if (found == filters_.end()) return kernel_refused("no such map");
        return std::make_unique<FakeFilter>(found->second);
    }

    Result<std::unique_ptr<control::RunningFilter>> open_joint(std::uint32_t map_id) override {
        return open_filter(map_id);
    }

    // The maps of keys, by their ids.
    struct Keys {
        std::map<std::array<__u64, SIEVE_KEY_WORDS>, kernel::KeyNote> notes;
        std::size_t most = ~std::size_t{0};
    };
    std::map<std::uint32_t, Keys> keys;
    std::uint64_t now = 1'000'000'000'000; // nanoseconds since the machine started
    // Called before each step of a change of single keys: "note", "forget". Throws to stand for a death.
    std::function<void(const std::string& step)> on_key;

    Result<std::unique_ptr<control::RunningKeys>> open_exact(std::uint32_t id) override {
        return open_keys(id);
    }
    Result<std::unique_ptr<control::RunningKeys>> open_inserted(std::uint32_t id) override {
        return open_keys(id);
    }
    std::vector<std::uint32_t> maps_opened; // by open_map()
    Result<UniqueFd> open_map(std::uint32_t map_id) override {
        maps_opened.push_back(map_id);
        return UniqueFd();
    }
    Result<UniqueFd> make_inserted(const std::string& name, std::uint32_t most,
                                   std::span<const kernel::NotedKey> noted) override {
        steps.push_back("make inserted " + name);
        UniqueFd fd(::dup(0));
        if (!fd) return kernel_refused("no descriptor");
        Keys& made = keys[id_of(fd.get())] = {.notes = {}, .most = most};
        for (const kernel::NotedKey& one : noted) made.notes[std::to_array(one.key.word)] = one.note;
        return fd;
    }
    Status grace_period() override {
        steps.emplace_back("grace period");
        return {};
    }
    std::uint64_t boot_time() override { return now; }

    Result<kernel::FilterHeader> read_filter(std::uint32_t map_id) override {
        if (on_read_filter) std::exchange(on_read_filter, nullptr)(map_id);
        const auto found = filters_.find(map_id);
        if (found == filters_.end()) return kernel_refused("no such map");
        FakeFilter filter(found->second);
        return kernel::FilterHeader{.lookup = filter.lookup(),
                                    .file = filter.file(),
                                    .bytes = found->second.size() * sizeof(sieve_line)};
    }
    Result<std::uint64_t> exact_bytes(std::uint32_t exact_id) override { return exact_id * 1000; }
    Result<kernel::Stats> read_stats(const kernel::Hook& hook) override { return at(hook.point).stats; }
    control::Watching watching(const kernel::Hook& hook) override {
        EXPECT_TRUE(hook.speaks_our_version());
        return at(hook.point).watching;
    }
    Result<kernel::Tally> read_tally(const kernel::Hook& hook, std::size_t most) override {
        kernel::Tally tally = at(hook.point).tally;
        if (tally.keys.size() > most) tally.keys.resize(most);
        return tally;
    }
    Status start_tally(const kernel::Hook& hook) override { return switch_tally(hook, true); }
    Status stop_tally(const kernel::Hook& hook) override { return switch_tally(hook, false); }
    Result<std::unique_ptr<control::EventStream>>
    start_events(const kernel::Hook& hook, const kernel::Sampling& sampling, VisitEvent visit) override {
        EXPECT_TRUE(held_) << "sampling is switched on without the lock";
        steps.emplace_back("start events");
        at(hook.point).watching.sample = sampling.sample;
        sampled = sampling;
        return std::make_unique<FakeEventStream>(*this, hook.point, std::move(visit));
    }

  private:
    // Whether an image of these lines holds the key.
    static bool contains(const std::vector<sieve_line>& lines, const sieve_key& key) {
        sieve_file file{};
        std::memcpy(&file, lines.data() + SIEVE_FILE_LINE, sizeof(file));
        const Image image =
            Image::create(lines.size() - SIEVE_FIRST_LINE - file.witnesses, file.witnesses).value();
        std::memcpy(const_cast<sieve_line*>(image.lines().data()), lines.data(), image.bytes());
        return image.contains(key);
    }
    static std::uint32_t id_of(int fd) { return static_cast<std::uint32_t>(fd + 1000); }

    // What the real table makes of the wanted one.
    [[nodiscard]] kernel::TableInForce live(const kernel::WantedTable& wanted,
                                            kernel::HookPoint point = kernel::HookPoint::xdp) {
        kernel::TableInForce table;
        table.default_action = wanted.default_action;
        table.unreadable = wanted.unreadable;
        table.replies = wanted.replies;
        EXPECT_TRUE(wanted.replies == SIEVE_ACTION_DROP || notes ||
                    at(point).table.replies == SIEVE_ACTION_PASS)
            << "replies pass, and nobody notes flows";
        if (wanted.probation.count() != 0) table.probation = wanted.probation;
        table.baseline =
            wanted.reset_counters ? kernel::totals_of(at(point).stats) : at(point).table.baseline;
        for (const kernel::WantedSet& set : wanted.sets) {
            const kernel::SetInForce* before = at(point).table.find(set.name);
            kernel::SetInForce now = before != nullptr ? *before : kernel::SetInForce{};
            EXPECT_TRUE(before != nullptr || set.map_fd >= 0) << set.name;
            now.name = set.name;
            now.action = set.action;
            now.target = set.target;
            now.burst = set.burst;
            now.keeps_replies_out = set.keeps_replies_out;
            now.condition = set.condition;
            now.slot = static_cast<std::uint32_t>(table.sets.size());
            // A slot that no packet has used has counted something once.
            if (set.fresh_counters) now.baseline.packets += 1'000'000;
            if (wanted.reset_counters) {
                now.baseline = at(point).stats.hit[now.slot];
                now.verified_baseline = at(point).stats.verified[now.slot];
            }
            if (set.map_fd >= 0) {
                now.map_id = id_of(set.map_fd);
                now.exact_id = set.exact_fd >= 0 ? id_of(set.exact_fd) : 0;
                if (!set.keep_inserted) now.inserted_id = 0;
            }
            if (set.inserted_fd >= 0) now.inserted_id = id_of(set.inserted_fd);
            table.sets.push_back(now);
        }
        const auto numbers = kernel::joined_numbers(wanted, at(point).table);
        for (std::size_t i = 0; i < numbers.size(); i++) table.sets[i].joined = numbers[i];
        if (std::any_of(numbers.begin(), numbers.end(),
                        [](const auto& number) { return number.has_value(); }))
            table.joint_id = wanted.joint ? id_of(wanted.joint->map_fd) : at(point).table.joint_id;
        return table;
    }

    Result<std::unique_ptr<control::RunningKeys>> open_keys(std::uint32_t id) {
        const auto found = keys.find(id);
        if (found == keys.end()) return kernel_refused("no such map of keys");
        return std::make_unique<FakeKeys>(*this, found->second);
    }

    class FakeKeys final : public control::RunningKeys {
      public:
        FakeKeys(FakeKernel& kernel, Keys& keys) : kernel_(kernel), keys_(keys) {}
        Result<std::optional<kernel::KeyNote>> find(const sieve_key& key) override {
            const auto found = keys_.notes.find(std::to_array(key.word));
            return found == keys_.notes.end() ? std::nullopt : std::optional(found->second);
        }
        Result<bool> put(const sieve_key& key, const kernel::KeyNote& note) override {
            EXPECT_TRUE(kernel_.held_) << "a key is noted without the lock";
            if (kernel_.on_key) kernel_.on_key("note");
            if (!keys_.notes.contains(std::to_array(key.word)) && keys_.notes.size() >= keys_.most)
                return false;
            keys_.notes[std::to_array(key.word)] = note;
            return true;
        }
        Status erase(const sieve_key& key) override {
            EXPECT_TRUE(kernel_.held_) << "a key is forgotten without the lock";
            if (kernel_.on_key) kernel_.on_key("forget");
            keys_.notes.erase(std::to_array(key.word));
            return {};
        }
        Result<std::vector<kernel::NotedKey>> all() override {
            std::vector<kernel::NotedKey> all;
            for (const auto& [words, note] : keys_.notes) {
                kernel::NotedKey one{.note = note};
                std::copy(words.begin(), words.end(), std::begin(one.key.word));
                all.push_back(one);
            }
            return all;
        }
        std::uint64_t most() override { return keys_.most; }

      private:
        FakeKernel& kernel_;
        Keys& keys_;
    };

    class FakeReplies final : public control::ReadyReplies {
      public:
        explicit FakeReplies(FakeKernel& kernel) : kernel_(kernel) {}
        FakeReplies(const FakeReplies&) = delete;
        FakeReplies& operator=(const FakeReplies&) = delete;
        ~FakeReplies() override {
            if (!brought_) return;
            kernel_.steps.emplace_back("detach notes");
            kernel_.notes = false;
            kernel_.memory_flows = made_.memory_made ? 0 : kernel_.memory_flows;
        }
        const control::RepliesMade& made() const override { return made_; }
        Status serve(const kernel::Hook& hook) override {
            EXPECT_TRUE(hook.speaks_our_version());
            return {};
        }
        void keep() override {
            if (std::exchange(brought_, false)) kernel_.steps.emplace_back("learn");
        }

        control::RepliesMade made_{};
        bool brought_ = false;

      private:
        FakeKernel& kernel_;
    };

    class FakeTrial final : public control::Trial {
      public:
        FakeTrial(FakeKernel& kernel, std::vector<std::string> names)
            : kernel_(kernel), names_(std::move(names)) {}

        Result<kernel::PreflightReport> test(std::uint32_t slot, const control::ReadySet& set) override {
            EXPECT_EQ(names_[slot], set.name);
            kernel_.steps.push_back("test " + set.name);
            if (kernel_.on_test) std::exchange(kernel_.on_test, nullptr)();
            if (set.name == kernel_.failing_set) return bad_input("set " + set.name + ": no member matched");
            return kernel::PreflightReport{.members = 1};
        }
        Result<bool> matches(std::uint32_t slot, bool, const sieve_key& key, std::uint32_t) override {
            const std::uint32_t id = included_.contains(slot) ? included_[slot] : kernel_.fresh_ids_.at(slot);
            const std::vector<sieve_line>& lines = kernel_.filters_.at(id);
            kernel_.steps.push_back("ask " + std::to_string(slot));
            return contains(lines, key);
        }
        Status include(std::uint32_t slot, std::uint32_t map_id, std::uint32_t) override {
            included_[slot] = map_id;
            return {};
        }
        Status use(const control::ReadyReplies&) override { return {}; }
        Result<kernel::Attached> go_live(const kernel::Hook& before, const kernel::WantedTable& table,
                                         const kernel::AttachOptions& options) override {
            EXPECT_TRUE(kernel_.held_) << "a program is attached without the lock";
            SIEVE_TRY(kernel::may_attach(before, options.force));
            kernel_.steps.emplace_back("attach");
            kernel_.attached_with.push_back(options);
            kernel_.at(before.point) = {
                .ours = true, .program = 41, .table = kernel_.live(table, before.point)};
            if (options.mode == kernel::ModeChoice::skb) kernel_.at(before.point).mode = kernel::Mode::skb;
            SIEVE_ASSIGN(kernel::Hook now, kernel_.read_hook(before.interface, before.point));
            return kernel::Attached{.hook = std::move(now), .frags = false, .remarks = {"attached alone"}};
        }

      private:
        FakeKernel& kernel_;
        std::vector<std::string> names_;
        std::map<std::uint32_t, std::uint32_t> included_; // maps' ids by slot
    };

    class FakeReplayer final : public control::Replayer {
      public:
        FakeReplayer(kernel::TableInForce table, std::uint64_t hits)
            : table_(std::move(table)), hits_(hits) {}
        Result<kernel::Replayed> run(std::span<const std::uint8_t>) override {
            kernel::Replayed replayed;
            replayed.trace.hits = hits_;
            return replayed;
        }
        const kernel::TableInForce& table() const override { return table_; }

      private:
        kernel::TableInForce table_;
        std::uint64_t hits_;
    };

    class FakeFilter final : public control::RunningFilter {
      public:
        explicit FakeFilter(std::vector<sieve_line>& lines) : lines_(lines) {}
        const sieve_lookup& lookup() const override {
            return *reinterpret_cast<const sieve_lookup*>(lines_.data());
        }
        const sieve_probes& probes() const override {
            return *reinterpret_cast<const sieve_probes*>(lines_.data() + SIEVE_PROBES_LINE);
        }
        sieve_file& file() override {
            return *reinterpret_cast<sieve_file*>(lines_.data() + SIEVE_FILE_LINE);
        }
        std::span<sieve_line> lines() override {
            return {lines_.data() + SIEVE_FIRST_LINE,
                    lines_.size() - SIEVE_FIRST_LINE - file().witnesses - file().exceptions};
        }
        std::span<const sieve_witness> witnesses() override {
            return {reinterpret_cast<const sieve_witness*>(lines().data() + lines().size()),
                    file().witnesses};
        }
        std::span<const sieve_exception> exceptions() override {
            return {reinterpret_cast<const sieve_exception*>(witnesses().data() + witnesses().size()),
                    file().exceptions};
        }

      private:
        std::vector<sieve_line>& lines_;
    };

    class FakeEventStream final : public control::EventStream {
      public:
        FakeEventStream(FakeKernel& kernel, kernel::HookPoint point, VisitEvent visit)
            : kernel_(kernel), point_(point), visit_(std::move(visit)) {}

        Status poll(int milliseconds) override {
            kernel_.steps.emplace_back(milliseconds == 0 ? "drain" : "poll");
            if (polls_ == kernel_.samples.size()) {
                if (milliseconds == 0) return {};
                return kernel_refused("reading events");
            }
            for (const sieve_event& event : kernel_.samples[polls_++])
                if (!visit_(event)) break;
            return {};
        }
        bool in_place() const override {
            return !kernel_.taken_over_after || polls_ < *kernel_.taken_over_after;
        }
        Status stop() override {
            EXPECT_TRUE(kernel_.held_) << "sampling is switched off without the lock";
            kernel_.steps.emplace_back("stop events");
            if (in_place()) kernel_.at(point_).watching.sample = 0;
            return {};
        }
        Result<std::uint64_t> lost() const override { return kernel_.samples_lost; }

      private:
        FakeKernel& kernel_;
        kernel::HookPoint point_;
        VisitEvent visit_;
        std::size_t polls_ = 0;
    };

    Status switch_tally(const kernel::Hook& hook, bool on) {
        EXPECT_TRUE(held_) << "counting by key is switched without the lock";
        steps.emplace_back(on ? "start tally" : "stop tally");
        at(hook.point).watching.counts_keys = on;
        return {};
    }

    bool held_ = false;
    int next_fd_ = 10;
    std::map<std::uint32_t, std::vector<sieve_line>> filters_;
    std::vector<std::uint32_t> fresh_ids_; // of the last trial's sets, by slot
};

} // namespace sieve::test
