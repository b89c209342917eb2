// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The kernel that this process runs on.
#pragma once

#include "libsieve/control/access/kernel.hpp"

namespace sieve::control {

class RealKernel : public Kernel {
  public:
    Result<kernel::Interface> find_interface(const std::string& name) override;
    std::vector<kernel::Interface> interfaces() override;
    int mtu(const kernel::Interface& interface) override;
    Result<kernel::Device> read_device(const kernel::Interface& interface) override;
    Result<kernel::Target> find_target(const std::string& name) override;
    Status may_load_programs() override;
    void expect_to_attach() override;
    Result<Held> hold_lock(std::chrono::milliseconds patience,
                           const std::function<void(const std::string& holder)>& waiting) override;
    Result<SetMaps> bring_in(const Image& image, const std::vector<sieve_key>* exact, const std::string& name,
                             std::uint64_t coming) override;
    Result<SetMaps> bring_in_joint(kernel::HookPoint point, const JointFilter& joint,
                                   std::span<const kernel::JoinedSet> sets) override;
    Result<std::unique_ptr<Trial>> start_trial(kernel::HookPoint point, bool frags,
                                               const MakeSets& make) override;
    Result<std::unique_ptr<Replayer>> start_replay(kernel::HookPoint point,
                                                   const kernel::WantedTable& table) override;
    Result<kernel::Hook> read_hook(const kernel::Interface& interface, kernel::HookPoint point) override;
    Result<bool> has_program(std::uint32_t id) override;
    kernel::TableInForce read_table(const kernel::Hook& hook) override;
    std::optional<kernel::TableInForce> read_returning(const kernel::Hook& hook) override;
    Status replace_table(const kernel::Hook& hook, const kernel::WantedTable& table) override;
    Status leave_joint_on_probation(const kernel::Hook& hook, std::uint32_t map_id) override;
    Status end_probation(const kernel::Hook& hook, bool keep) override;
    Status detach(const kernel::Hook& hook) override;
    Result<std::unique_ptr<ReadyReplies>> ready_replies(const kernel::Interface& interface,
                                                        const WantedFlows& flows) override;
    Status end_replies(const kernel::Interface& interface) override;
    Result<RepliesState> read_replies(const kernel::Hook& hook) override;
    Result<bool> is_reply(const kernel::Hook& hook, const sieve_key& packet) override;
    Result<std::unique_ptr<RunningFilter>> open_filter(std::uint32_t map_id) override;
    Result<std::unique_ptr<RunningFilter>> open_joint(std::uint32_t map_id) override;
    Result<std::unique_ptr<RunningKeys>> open_exact(std::uint32_t exact_id) override;
    Result<std::unique_ptr<RunningKeys>> open_inserted(std::uint32_t inserted_id) override;
    Result<UniqueFd> open_map(std::uint32_t map_id) override;
    Result<UniqueFd> make_inserted(const std::string& name, std::uint32_t most,
                                   std::span<const kernel::NotedKey> keys) override;
    Status grace_period() override;
    std::uint64_t boot_time() override;
    Result<kernel::FilterHeader> read_filter(std::uint32_t map_id) override;
    Result<std::uint64_t> exact_bytes(std::uint32_t exact_id) override;
    Result<kernel::Stats> read_stats(const kernel::Hook& hook) override;
    Watching watching(const kernel::Hook& hook) override;
    Result<kernel::Tally> read_tally(const kernel::Hook& hook, std::size_t most) override;
    Status start_tally(const kernel::Hook& hook) override;
    Status stop_tally(const kernel::Hook& hook) override;
    Result<std::unique_ptr<EventStream>>
    start_events(const kernel::Hook& hook, const kernel::Sampling& sampling, VisitEvent visit) override;
};

} // namespace sieve::control
