// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tests of pins need the file system of pins, also where nobody has mounted it (scripts/mount_bpffs.sh).
// Otherwise the first tool that pins something mounts it, and its files look like pins that a test left
// behind.
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include <gtest/gtest.h>

namespace sieve::test {
namespace {

class Bpffs : public testing::Environment {
    void SetUp() override {
        struct statfs info = {};
        ASSERT_EQ(::statfs("/sys/fs/bpf", &info), 0);
        if (info.f_type == BPF_FS_MAGIC) return;
        ASSERT_EQ(::mount("bpf", "/sys/fs/bpf", "bpf", 0, "mode=700"), 0) << "tests of pins need root";
    }
};

[[maybe_unused]] testing::Environment* const bpffs = testing::AddGlobalTestEnvironment(new Bpffs);

} // namespace
} // namespace sieve::test
