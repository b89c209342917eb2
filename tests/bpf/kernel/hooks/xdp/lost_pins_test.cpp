// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Pins as libxdp makes them. tests/vm/coexistence.sh has the real ones, of a command that is killed.
#include "libsieve/kernel/hooks/xdp/lost_pins.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <filesystem>

#include <bpf/bpf.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "bpf/images.hpp"
#include "bpf/own_network.hpp"
#include "libsieve/kernel/hooks/xdp/dispatcher.hpp"
#include "libsieve/kernel/host/network_namespace.hpp"
#include "libsieve/kernel/programs/bpf_object.hpp"

namespace sieve::kernel::xdp {
namespace {

using namespace test;
namespace fs = std::filesystem;

constexpr std::uint32_t no_dispatcher = 4'000'000'000; // an id that the kernel does not reach

// A folder of pins, which goes with the object.
class Folder {
  public:
    explicit Folder(std::uint32_t interface, std::uint32_t dispatcher = no_dispatcher)
        : path_(fmt::format("{}/dispatch-{}-{}", pin_root(), interface, dispatcher)) {
        fs::create_directories(path_);
    }
    ~Folder() {
        std::error_code gone;
        fs::remove_all(path_, gone);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    void pin(int program) const {
        ASSERT_EQ(bpf_obj_pin(program, (path_ / "prog0-prog").c_str()), 0) << errno;
    }
    [[nodiscard]] bool exists() const { return fs::exists(path_); }

  private:
    fs::path path_;
};

BpfObject loaded(std::uint64_t network) {
    BpfObject object = value_or_fail(BpfObject::load({.tracing = false, .frags = false}));
    object.instance().control().network = network;
    return object;
}

Interface make_interface() {
    EXPECT_TRUE(ip("link add sieve-lost type veth peer name sieve-peer"));
    return value_or_fail(find_interface("sieve-lost"));
}

TEST(LostPins, OfAProgramThatIsNotInForceGo) {
    in_own_network([] {
        const Interface interface = make_interface();
        const BpfObject object = loaded(network_namespace().value());
        const Folder lost(interface.index);
        lost.pin(object.program_fd());
        remove_lost_pins();
        EXPECT_FALSE(lost.exists());
    });
}

// It may have moved to another namespace, and its program with it.
TEST(LostPins, OfAnInterfaceThatIsNotHereStay) {
    in_own_network([] {
        const BpfObject object = loaded(network_namespace().value());
        const Folder used(2'000'000'000);
        used.pin(object.program_fd());
        remove_lost_pins();
        EXPECT_TRUE(used.exists());
    });
}

TEST(LostPins, BeforeTheFirstPinAreAnEmptyFolder) {
    in_own_network([] {
        const Folder lost(make_interface().index);
        remove_lost_pins();
        EXPECT_FALSE(lost.exists());
    });
}

TEST(LostPins, OfLibxdpsTrialsGo) {
    in_own_network([] {
        const BpfObject object = loaded(0);
        fs::create_directories(pin_root());
        const fs::path trial = fs::path(pin_root()) / "prog-test-link-1-4000000000";
        ASSERT_EQ(bpf_obj_pin(object.program_fd(), trial.c_str()), 0) << errno;
        remove_lost_pins();
        EXPECT_FALSE(fs::exists(trial));
        std::error_code gone;
        fs::remove(trial, gone);
    });
}

TEST(LostPins, OfAProgramInForceStay) {
    in_own_network([] {
        const Interface interface = make_interface();
        const BpfObject object = loaded(network_namespace().value());
        ASSERT_EQ(bpf_xdp_attach(static_cast<int>(interface.index), object.program_fd(), 0, nullptr), 0);
        const Folder used(interface.index);
        used.pin(object.program_fd());
        remove_lost_pins();
        EXPECT_TRUE(used.exists());
    });
}

TEST(LostPins, OfADispatcherInForceStay) {
    in_own_network([] {
        const Interface interface = make_interface();
        const BpfObject object = loaded(network_namespace().value());
        const BpfObject dispatcher = loaded(0);
        ASSERT_EQ(bpf_xdp_attach(static_cast<int>(interface.index), dispatcher.program_fd(), 0, nullptr), 0);
        const Folder used(interface.index, program_id(dispatcher.program_fd()).value());
        used.pin(object.program_fd());
        remove_lost_pins();
        EXPECT_TRUE(used.exists());
    });
}

TEST(LostPins, OfOtherNamespacesAndOtherProgramsStay) {
    in_own_network([] {
        const Interface interface = make_interface();
        const BpfObject elsewhere = loaded(network_namespace().value() + 1);
        const BpfObject by_another_tool = loaded(0);
        for (const BpfObject* object : {&elsewhere, &by_another_tool}) {
            const Folder foreign(interface.index);
            foreign.pin(object->program_fd());
            remove_lost_pins();
            EXPECT_TRUE(foreign.exists());
        }
    });
}

TEST(LostPins, StayWhileLibxdpWorks) {
    in_own_network([] {
        const Folder made(make_interface().index);
        const UniqueFd lock(::open(pin_root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
        remove_lost_pins();
        EXPECT_TRUE(made.exists());
    });
}

} // namespace
} // namespace sieve::kernel::xdp
