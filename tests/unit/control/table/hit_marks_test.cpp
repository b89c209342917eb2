// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/table/hit_marks.hpp"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/util/results/unfinished.hpp"
#include "unit/control/fake_kernel.hpp"
#include "unit/control/files.hpp"

namespace sieve::control {
namespace {

using Texts = std::set<std::string>;

class HitMarks : public testing::Test {
  protected:
    test::Files files;
    test::FakeKernel kernel;
    Held lock = *kernel.hold_lock({}, {});

    Image image(const std::vector<std::string>& members, bool hits = true) {
        FeedSpec spec;
        spec.build.kind.kind = SIEVE_KIND_EXACT;
        spec.build.spare.hits = hits;
        return *Image::load(files.image("set", members, spec));
    }
    void mark(std::uint32_t map_id, const std::string& text) {
        const auto filter = *kernel.open_filter(map_id);
        const auto table =
            *kind_of(filter->lookup()).exact()->open_table(filter->lookup(), filter->file(), filter->lines());
        table->mark(*parse_key(text, SIEVE_FIELD_SRC));
    }
    Texts marked(std::uint32_t map_id) {
        Texts texts;
        const auto filter = *kernel.open_filter(map_id);
        EXPECT_TRUE(kind_of(filter->lookup())
                        .exact()
                        ->for_each_entry(filter->lookup(), filter->lines(), 0,
                                         [&](const sieve_key& key, std::uint64_t, bool hit) {
                                             if (hit) texts.insert(format_key(key, SIEVE_FIELD_SRC));
                                         }));
        return texts;
    }
    /// The marks of the filter that follows the set's, which has hits before the change and during it.
    Texts after(bool old_hits, bool new_hits, const Status& done) {
        kernel.running.table.sets.clear();
        const std::uint32_t before = kernel.put("set").map_id;
        kernel.put_filter(before, image({"192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"}, old_hits));
        for (const char* text : {"192.0.2.1", "192.0.2.3", "2001:db8::1"}) mark(before, text);
        ReadySet fresh{.name = "set",
                       .image = image({"192.0.2.1", "192.0.2.2", "192.0.2.4", "2001:db8::1"}, new_hits),
                       .maps = {}};
        fresh.maps = *kernel.bring_in(fresh.image, nullptr, "set", 0);
        const kernel::Hook hook = *kernel.read_hook(*kernel.find_interface("eth0"), kernel::HookPoint::xdp);
        const Status replaced = replace_keeping_hits(kernel, hook, {&fresh, 1}, [&] {
            mark(before, "192.0.2.2");
            return done;
        });
        EXPECT_EQ(replaced.has_value(), done.has_value());
        return marked(fresh.maps.filter_id);
    }
};

TEST_F(HitMarks, GoToTheFilterThatFollows) {
    EXPECT_EQ(after(true, true, {}), (Texts{"192.0.2.1", "192.0.2.2", "2001:db8::1"}));
    EXPECT_EQ(after(true, true, unfinished("in force", Error{.message = "x"})),
              (Texts{"192.0.2.1", "192.0.2.2", "2001:db8::1"}));
}

TEST_F(HitMarks, StayWhereTheyAreWithoutAChange) {
    EXPECT_EQ(after(true, true, bad_input("no")), (Texts{"192.0.2.1", "2001:db8::1"}));
    EXPECT_EQ(after(true, false, {}), Texts());
    EXPECT_EQ(after(false, true, {}), Texts());
}

} // namespace
} // namespace sieve::control
