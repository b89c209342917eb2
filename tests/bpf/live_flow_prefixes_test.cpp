// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Prefixes among several fields that come and go in a counting filter in force: the kernel, user space and a
// plain list of the entries agree about every packet.
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sieve/prefix.h>

#include "bpf/bounded.hpp"
#include "bpf/images.hpp"
#include "bpf/shared_program.hpp"
#include "libsieve/build/exact_keys.hpp"
#include "libsieve/build/key_changes.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/kernel/maps/exact_set.hpp"
#include "libsieve/kernel/maps/mapped_filter.hpp"
#include "libsieve/kernel/programs/preflight.hpp"
#include "libsieve/kernel/programs/scratch.hpp"
#include "libsieve/packets/carrier.hpp"
#include "model/flow_list_model.hpp"
#include "unit/keys/members_of_texts.hpp"

namespace sieve::kernel {
namespace {

using model::FlowEntry;
using model::FlowForm;
using model::FlowList;
using model::FlowPacket;
using test::bounded;
using test::map_of;
using test::members_of_texts;
using test::shared_program;
using test::value_or_fail;

struct Form {
    const char* name;
    std::uint32_t fields;
    FlowForm form;
    std::uint32_t subtables;
};

Image image_of(const Form& form, const std::vector<std::string>& texts) {
    BuildOptions options;
    options.kind.kind = SIEVE_KIND_DDLCBF;
    options.kind.choices = form.subtables;
    options.memory = 1U << 17;
    options.prefixes.lengths = {std::vector<std::uint32_t>{126}, std::vector<std::uint32_t>{126}};
    options.prefixes.max_probes = 8;
    options.seed = 4;
    options.trials = 10'000;
    return value_or_fail(build_set(members_of_texts(texts, form.fields), options, {})).image;
}

class LiveFlowPrefixes : public testing::TestWithParam<Form> {
  protected:
    const Form form_ = GetParam();
    const Scratch& scratch_ = shared_program();
    packets::Carrier carrier_;

    [[nodiscard]] sieve_key key_of(const FlowPacket& packet) const {
        std::string text;
        const auto add = [&](const std::string& field) { text += (text.empty() ? "" : " ") + field; };
        if (form_.form.source) add(model::flow_address(packet.v4, packet.source));
        if (form_.form.destination) add(model::flow_address(packet.v4, packet.destination));
        if (form_.form.port) add(std::to_string(packet.port));
        if (form_.form.protocol) add(std::to_string(packet.protocol));
        return value_or_fail(parse_key(text, form_.fields));
    }
    bool drops(const sieve_key& key) {
        return value_or_fail(scratch_.run(carrier_.carry(key, form_.fields))) == XDP_DROP;
    }
    // What user space says about the map's lines.
    [[nodiscard]] bool holds(MappedFilter& live, const sieve_key& key) const {
        const sieve_probes& probes = live.probes();
        const int family = sieve_key_family(&key, form_.fields);
        for (int i = 0; i < probes.count[family]; i++) {
            sieve_key stored;
            sieve_store_key(&key,
                            sieve_pack_probe(probes.length[family][i], probes.destination[family][i],
                                             probes.transport[family][i]),
                            &stored);
            if (kind_of(live.lookup())
                    .holds(live.lookup(), sieve_hash_stored(&stored, live.lookup().hash_key),
                           live.filter().data()))
                return true;
        }
        return false;
    }
    // Whether the entry found room.
    [[nodiscard]] bool change(MappedFilter& live, KeyChange what, const std::string& text) const {
        const StoredKeys stored(live.lookup(), live.probes());
        const auto entries = entries_of(members_of_texts({text}, form_.fields));
        return value_or_fail(
                   change_keys(stored, live.lookup(), live.file(), live.filter(), entries, what, {}))
                   .done == 1;
    }
};

TEST_P(LiveFlowPrefixes, AtRandomAnswerLikeTheList) {
    std::mt19937_64 random(8);
    FlowList list(form_.form);
    list.add_one_of_each_form();
    while (list.entries.size() < 20) list.entries.insert(list.any(random));
    const Image image = image_of(form_, list.texts());
    const FilterMap map = map_of(image, "flows");
    auto preflight = value_or_fail(Preflight::start());
    value_or_fail(preflight.check(image, map, "flows"));
    ASSERT_TRUE(scratch_.ask_only(map.fd()));
    MappedFilter live = value_or_fail(MappedFilter::open(map.id()));
    const std::vector<FlowPacket> packets = list.packets();
    std::size_t mistaken = 0, asked = 0, full = 0;
    for (std::size_t round = 0; round < bounded(150); round++) {
        FlowEntry entry = list.any(random);
        if (list.entries.size() > 25 || random() % 3 == 0) {
            auto other = list.entries.begin();
            std::advance(other, static_cast<std::ptrdiff_t>(random() % list.entries.size()));
            entry = *other;
        }
        const bool in = list.entries.contains(entry);
        const bool done =
            change(live, in ? KeyChange::erase : KeyChange::insert_again, entry.text(form_.form));
        full += done ? 0 : 1;
        if (in) {
            ASSERT_TRUE(done) << entry.text(form_.form);
            list.entries.erase(entry);
        } else if (done) {
            list.entries.insert(entry);
        }
        for (std::size_t i = round % 8; i < packets.size(); i += 8) {
            const sieve_key key = key_of(packets[i]);
            const bool hit = drops(key), member = list.holds(packets[i]);
            ASSERT_EQ(hit, holds(live, key)) << format_key(key, form_.fields) << " round " << round;
            if (member) {
                ASSERT_TRUE(hit) << format_key(key, form_.fields) << " round " << round;
                continue;
            }
            asked++;
            mistaken += hit ? 1 : 0;
        }
    }
    EXPECT_GT(asked, 100U);
    EXPECT_LT(full, 30U);
    EXPECT_LE(mistaken, 3U) << "of " << asked;
}

// The marked entries of an exact set are nothing that a packet asks for.
TEST_P(LiveFlowPrefixes, AreVerified) {
    std::mt19937_64 random(9);
    FlowList list(form_.form);
    list.add_one_of_each_form();
    while (list.entries.size() < 20) list.entries.insert(list.any(random));
    const Image image = image_of(form_, list.texts());
    const FilterMap map = map_of(image, "flows");
    const Members members = members_of_texts(list.texts(), form_.fields);
    const ExactSet exact =
        value_or_fail(ExactSet::create(image, value_or_fail(exact_keys(members, image, "list")), "f"));
    auto preflight = value_or_fail(Preflight::start());
    value_or_fail(preflight.check(image, map, "flows", &exact));
    ASSERT_TRUE(scratch_.ask_only(map.fd(), exact.fd()));
    for (const FlowPacket& packet : list.packets())
        ASSERT_EQ(drops(key_of(packet)), list.holds(packet)) << format_key(key_of(packet), form_.fields);
    std::vector<std::string> fewer = list.texts();
    fewer.pop_back();
    EXPECT_FALSE(exact_keys(members_of_texts(fewer, form_.fields), image, "another list"));
}

INSTANTIATE_TEST_SUITE_P(
    Forms, LiveFlowPrefixes,
    testing::Values(Form{"SourceAndPort", SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT, {true, false, true, false}, 4},
                    Form{"DestinationAndPortOfThreeSubtables",
                         SIEVE_FIELD_DST | SIEVE_FIELD_DPORT,
                         {false, true, true, false},
                         3},
                    Form{"BothAddresses",
                         SIEVE_FIELD_SRC | SIEVE_FIELD_DST | SIEVE_FIELD_PROTO,
                         {true, true, false, true},
                         4}),
    [](const auto& info) { return info.param.name; });

} // namespace
} // namespace sieve::kernel
