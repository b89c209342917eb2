// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A state directory and a kernel in which a live set can be in force.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "libsieve/control/keys/exact_set.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/keys/address_key.hpp"
#include "libsieve/service/live/live_image.hpp"
#include "libsieve/service/live/live_set.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"
#include "unit/service/lists.hpp"

namespace sieve::test {

using service::live::EntryChange;
using service::live::LiveChange;
using service::live::LiveSet;
using service::live::Prefix;
using service::live::Time;
using service::live::TimedEntry;

inline Prefix prefix_of(const std::string& text) {
    const auto member = parse_member(text, SIEVE_FIELD_SRC).value();
    const uint128 address = address_number(member.key.word[0], member.key.word[1]);
    if (!member.range) return {address};
    std::uint8_t length = 128;
    for (uint128 span = member.range->last - address; span != 0; span >>= 1) length--;
    return {address, length};
}

inline TimedEntry entry(const std::string& text, std::uint64_t id = 0, Time until = service::live::never) {
    return {prefix_of(text), id, until};
}

inline Time at_second(std::int64_t seconds) {
    return Time(std::chrono::seconds(seconds));
}

class LiveWorld {
  public:
    Files files;
    FakeKernel kernel;
    FakeHost host;
    std::vector<std::string> remarks;
    control::Observer observer;
    service::StateDirectory state = service::StateDirectory::open(files.path("state"), {}, {}).value();

    LiveWorld() {
        observer.remark = [this](const std::string& text) { remarks.push_back(text); };
    }

    static service::SetConfiguration stream_set() {
        service::SetConfiguration set;
        set.name = "block";
        service::CrowdsecSpec crowdsec;
        crowdsec.url = "http://127.0.0.1:8080";
        set.sources = {crowdsec};
        set.feed = Files::quick();
        set.feed.build.kind.kind = SIEVE_KIND_DDLCBF;
        return set;
    }
    static service::SetConfiguration file_set(const std::string& path) {
        service::SetConfiguration set = stream_set();
        set.sources = {service::FileSpec{path}};
        return set;
    }

    // A file that the state directory has for the set's last good image.
    [[nodiscard]] std::string file_of(const std::string& set, const std::string& ending) {
        return files.path("state/sets/") + set + '/' + state.read(set, observer.remark)->identity + ending;
    }

    // Puts the set's last good image in force at a hook, as a cycle does.
    std::uint32_t put_in_force(const std::string& set = "block",
                               kernel::HookPoint point = kernel::HookPoint::xdp) {
        const auto record = state.read(set, observer.remark);
        if (!record) throw std::runtime_error("no image");
        const Image image =
            Image::load(std::filesystem::path(state.image_path(set, record->identity))).value();
        FakeKernel::HookContent& running = kernel.at(point);
        running.ours = true;
        running.program = 40;
        std::erase_if(running.table.sets, [&](const kernel::SetInForce& one) { return one.name == set; });
        kernel::SetInForce in_force{};
        in_force.name = set;
        in_force.action = SIEVE_ACTION_DROP;
        in_force.map_id = next_map_id_++;
        running.table.sets.push_back(in_force);
        kernel.put_filter(in_force.map_id, image);
        return in_force.map_id;
    }
    // A change on probation takes all sets off XDP, and is taken back.
    void on_probation_without_it() {
        kernel.running.returning = std::exchange(kernel.running.table, {});
        kernel.running.table.probation = std::chrono::seconds(60);
    }
    void take_back() { kernel.running.table = std::exchange(kernel.running.returning, {}); }
    [[nodiscard]] std::uint32_t map_id(const std::string& set = "block",
                                       kernel::HookPoint point = kernel::HookPoint::xdp) {
        return kernel.at(point).table.find(set)->map_id;
    }
    // What a packet meets.
    [[nodiscard]] bool in_force_has(const std::string& address,
                                    kernel::HookPoint point = kernel::HookPoint::xdp) {
        return in_force_has(prefix_of(address), point);
    }
    [[nodiscard]] bool in_force_has(const Prefix& prefix, kernel::HookPoint point = kernel::HookPoint::xdp) {
        const auto open = control::open_table(kernel, "block", map_id("block", point)).value();
        const sieve_key key = key_of_address(prefix.address, open.filter->lookup().fields);
        return open.table->contains(key);
    }
    [[nodiscard]] std::uint64_t keys_in_force(kernel::HookPoint point = kernel::HookPoint::xdp) {
        return kernel.open_filter(map_id("block", point)).value()->file().keys;
    }
    [[nodiscard]] std::string identity_in_force() {
        return service::identity_text(kernel.open_filter(map_id()).value()->file());
    }

  private:
    std::uint32_t next_map_id_ = 5000;
};

} // namespace sieve::test
