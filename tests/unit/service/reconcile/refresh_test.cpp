// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/reconcile/refresh.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/prefixes/prefix_entries.hpp"
#include "libsieve/service/lists/list_file.hpp"
#include "libsieve/service/state/exact_file.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"
#include "unit/service/in_process.hpp"
#include "unit/service/lists.hpp"

namespace sieve::service {
namespace {

using test::Files;

class Refresh : public testing::Test {
  protected:
    Files files;
    SetConfiguration set;
    Protection protection{.takes_packets = true, .host = {test::host_address("192.0.2.254")}};
    SandboxSettings sandbox = test::in_process();
    StateDirectory state =
        StateDirectory::open(files.path("state"), std::chrono::milliseconds(0), {}).value();

    Refresh() {
        set.name = "bad";
        set.sources = {FileSpec{files.feed("bad.txt", {"192.0.2.1", "192.0.2.2", "192.0.2.1"})}};
        set.feed = Files::quick();
    }

    Examined examined() {
        auto result = examine(set, state, protection, sandbox, {});
        if (!result) throw std::runtime_error(result.error().error.message);
        return std::move(*result);
    }
    // Runs one refresh to its end.
    SetRecord refreshed() {
        auto record = build_image(set, examined(), state, protection, sandbox, {});
        if (!record) throw std::runtime_error(record.error().message);
        EXPECT_TRUE(state.commit(set.name, *record));
        return *record;
    }
};

TEST_F(Refresh, TheFirstTimeEverythingIsNew) {
    Examined first = examined();
    EXPECT_FALSE(first.before);
    EXPECT_TRUE(first.changed());
    EXPECT_FALSE(first.refusal);
    const SetRecord record = refreshed();
    EXPECT_EQ(record.entries, 3U);
    EXPECT_EQ(record.keys, 2U);
    ASSERT_EQ(record.sources.size(), 1U);
    EXPECT_EQ(record.list_digest.size(), 32U);
    const auto image = Image::load(std::filesystem::path(state.image_path("bad", record.identity)));
    ASSERT_TRUE(image);
    EXPECT_TRUE(image->contains(parse_key("192.0.2.1", SIEVE_FIELD_SRC).value()));
}

TEST_F(Refresh, TheSameContentIsNotBuiltAgain) {
    const SetRecord record = refreshed();
    files.feed("bad.txt", {"192.0.2.1", "192.0.2.2", "192.0.2.1"}); // the same in a file written anew
    const Examined again = examined();
    EXPECT_FALSE(again.changed());
    ASSERT_TRUE(again.before);
    EXPECT_EQ(again.before->identity, record.identity);
}

TEST_F(Refresh, OtherContentIsBuilt) {
    refreshed();
    files.feed("bad.txt", {"192.0.2.1", "192.0.2.3", "192.0.2.1"});
    EXPECT_TRUE(examined().changed());
}

TEST_F(Refresh, OtherBuildOptionsAreBuilt) {
    refreshed();
    set.feed.build.bits_per_key = 20;
    EXPECT_TRUE(examined().changed());
    set.feed.build.bits_per_key.reset();
    EXPECT_FALSE(examined().changed());
    set.feed.build.threads = 2;
    EXPECT_FALSE(examined().changed());
    set.guards.most_ipv4 = 0.1;
    EXPECT_TRUE(examined().changed());
}

TEST_F(Refresh, ExceptionsAreTakenOutAndNeverMatch) {
    set.feed.build.kind.kind = SIEVE_KIND_XORSAT; // others have nothing to promise
    std::vector<std::string> partners{"192.0.2.2"};
    for (int i = 0; i < 200; i++) partners.push_back("198.18." + std::to_string(i) + ".7");
    set.feed.except = files.feed("partners.txt", partners);
    const SetRecord record = refreshed();
    EXPECT_EQ(record.entries, 2U);
    EXPECT_EQ(record.keys, 1U);
    EXPECT_EQ(record.sources.size(), 2U) << "the exceptions are asked like a source";
    const auto image = Image::load(std::filesystem::path(state.image_path("bad", record.identity)));
    ASSERT_TRUE(image);
    EXPECT_EQ(image->exceptions().size(), partners.size());
    EXPECT_TRUE(image->contains(parse_key("192.0.2.1", SIEVE_FIELD_SRC).value()));
    for (const std::string& partner : partners)
        EXPECT_FALSE(image->contains(parse_key(partner, SIEVE_FIELD_SRC).value())) << partner;
    EXPECT_FALSE(examined().changed());
    partners.pop_back(); // no member, and yet the image promises something else
    files.feed("partners.txt", partners);
    EXPECT_TRUE(examined().changed());
    files.feed("partners.txt", {"192.0.2.0/24"});
    const Examined nothing = examined();
    ASSERT_TRUE(nothing.refusal);
    expect_says(*nothing.refusal);
    std::filesystem::remove(files.path("partners.txt"));
    expect_error(examine(set, state, protection, sandbox, {}).error().error, ErrorKind::bad_input);
}

class RefreshOfFlows : public Refresh {
  protected:
    static constexpr std::uint32_t flow = SIEVE_FIELD_SRC | SIEVE_FIELD_DPORT;

    RefreshOfFlows() {
        set.feed.fields = flow;
        set.feed.build.bits_per_key = 32;
    }

    void list(const std::vector<std::string>& lines) { files.feed("bad.txt", lines); }
    [[nodiscard]] Image image_of(const SetRecord& record) const {
        auto image = Image::load(std::filesystem::path(state.image_path("bad", record.identity)));
        if (!image) throw std::runtime_error(image.error().message);
        return std::move(*image);
    }
    [[nodiscard]] std::string why_not() {
        const auto result = examine(set, state, protection, sandbox, {});
        return result ? "" : result.error().error.message;
    }
};

TEST_F(RefreshOfFlows, EntriesMayBeRanges) {
    std::vector<sieve_kind> kinds{automatic_kind};
    for (const FilterKind* kind : hashing_kinds()) kinds.push_back(kind->facts().number);
    for (const bool verify : {false, true})
        for (const sieve_kind kind : kinds) {
            SCOPED_TRACE(std::string(kind_name(kind)) + (verify ? ", verified" : ""));
            set.verify = verify;
            set.feed.build.kind.kind = kind;
            list({"10.0.0.0/24 443", "* 22", "192.0.2.1-192.0.2.6 53", "192.0.2.1 80"});
            const SetRecord record = refreshed();
            EXPECT_EQ(record.entries, 4U);
            EXPECT_EQ(record.exact, verify);
            const Image image = image_of(record);
            for (const std::string key :
                 {"10.0.0.77 443", "203.0.113.9 22", "2001:db8::9 22", "192.0.2.6 53", "192.0.2.1 80"})
                EXPECT_TRUE(image.contains(parse_key(key, flow).value())) << key;
            const auto kept = last_good_list(set, record, state);
            ASSERT_TRUE(kept) << kept.error().message;
            EXPECT_EQ(kept->key_ranges.size(), 3U);
            EXPECT_FALSE(examined().changed());
            list({"10.0.0.0/24 443", "* 23", "192.0.2.1-192.0.2.6 53", "192.0.2.1 80"});
            EXPECT_TRUE(examined().changed());
        }
}

TEST_F(RefreshOfFlows, ExceptionsMayBeRanges) {
    for (const bool verify : {false, true}) {
        set.verify = verify;
        list({"10.0.0.0/24 443", "* 22", "192.0.2.1 80", "192.0.2.9 80"});
        set.feed.except = files.feed("partners.txt", {"10.0.0.64/30 443", "192.0.2.8/30 80"});
        const SetRecord record = refreshed();
        const Image image = image_of(record);
        for (const std::string key : {"10.0.0.63 443", "10.0.0.68 443", "198.51.100.1 22", "192.0.2.1 80"})
            EXPECT_TRUE(image.contains(parse_key(key, flow).value())) << key;
        for (const std::string key : {"10.0.0.64 443", "10.0.0.67 443", "192.0.2.9 80"})
            EXPECT_FALSE(image.contains(parse_key(key, flow).value())) << key;
        EXPECT_FALSE(examined().changed());
        files.feed("partners.txt", {"10.0.0.64/30 443", "192.0.2.8/31 80"});
        EXPECT_TRUE(examined().changed()) << "the image promises something else";
        files.feed("partners.txt", {"10.0.0.64 22"});
        expect_says(why_not());
    }
}

// A child that was taken over may write any keys. Those of a ddlcbf set are its entries and what is stored
// for them.
TEST_F(RefreshOfFlows, KeysForVerificationMustFitTheImage) {
    set.verify = true;
    set.feed.build.kind.kind = SIEVE_KIND_DDLCBF;
    list({"10.0.0.0/24 443", "10.0.1.0/24 443", "* 22"});
    const SetRecord record = refreshed();
    const Image image = image_of(record);
    const auto read = [&](const std::vector<sieve_key>& keys) {
        const UniqueFd file(::memfd_create("exact", MFD_CLOEXEC));
        EXPECT_TRUE(write_exact_file(keys, file.get()));
        return read_exact_file(file.get(), image);
    };
    const UniqueFd file(::open(state.exact_path("bad", record.identity).c_str(), O_RDONLY | O_CLOEXEC));
    const std::vector<sieve_key> right = read_exact_file(file.get(), image).value();
    EXPECT_TRUE(read(right));
    std::vector<sieve_key> entries;
    std::vector<sieve_key> stored;
    for (const sieve_key& key : right) (entry_marked_by(key) ? entries : stored).push_back(key);
    EXPECT_EQ(entries.size(), 3U);
    EXPECT_FALSE(read({}));
    EXPECT_FALSE(read(entries));
    EXPECT_FALSE(read(stored));
    std::vector<sieve_key> more = right;
    for (std::uint64_t i = 0; i < image.file().keys; i++) {
        sieve_key& key = more.emplace_back(more.back());
        key.word[0]++;
    }
    expect_error(read(more), ErrorKind::bad_input);
    std::vector<sieve_key> twice = right;
    twice.back() = twice[twice.size() - 2];
    EXPECT_FALSE(read(twice));
    // Refused before memory is taken for them.
    const std::uint64_t too_many = std::uint64_t{1} << 36;
    const UniqueFd holes(::memfd_create("exact", MFD_CLOEXEC));
    ASSERT_TRUE(write_exact_file({}, holes.get()));
    ASSERT_EQ(::pwrite(holes.get(), &too_many, sizeof(too_many), sizeof(std::uint64_t)), sizeof(too_many));
    struct stat info {};
    ASSERT_EQ(::fstat(holes.get(), &info), 0);
    ASSERT_EQ(::ftruncate(holes.get(), info.st_size + static_cast<off_t>(sizeof(sieve_key) * too_many)), 0);
    expect_error(read_exact_file(holes.get(), image), ErrorKind::bad_input);
}

// No filter of single keys is built of such a list, so nobody asks for it to be joined.
TEST_F(RefreshOfFlows, RangesAreNotJoined) {
    control::JointTask task;
    std::vector<UniqueFd> lists;
    for (const std::string name : {"a", "b"}) {
        task.sets.push_back({.name = name, .fields = flow});
        lists.push_back(own_list(test::list_of({"192.0.2.1 80", "* 22"}, flow), name).value().records);
    }
    expect_error(join_in_sandbox({.task = task, .lists = std::move(lists), .sandbox = sandbox}, {}),
                 ErrorKind::bad_input);
}

TEST_F(Refresh, HostBitsAreMaskedOnRequest) {
    files.feed("bad.txt", {"192.0.2.1/24"});
    expect_error(examine(set, state, protection, sandbox, {}).error().error, ErrorKind::bad_input);
    set.feed.mask_host_bits = true;
    protection.takes_packets = false;
    EXPECT_EQ(examined().read->list->ranges.size(), 1U);
}

TEST_F(Refresh, AMalformedLineIsAnErrorThatNamesTheSource) {
    files.feed("bad.txt", {"192.0.2.1", "<html>"});
    const auto result = examine(set, state, protection, sandbox, {});
    ASSERT_FALSE(result);
    expect_error(result.error().error, ErrorKind::bad_input);
}

TEST_F(Refresh, GuardsAreAsked) {
    refreshed();
    files.feed("bad.txt", {"192.0.2.254"});
    const Examined bad = examined();
    ASSERT_TRUE(bad.refusal);
    EXPECT_EQ(bad.refusal->guard, Guard::protection);
    protection.takes_packets = false;
    EXPECT_FALSE(examined().refusal);
}

// The list has not changed, but the host has got an address that is on it.
TEST_F(Refresh, AnAddressThatTheHostGetsLaterIsFoundOnTheList) {
    refreshed();
    EXPECT_FALSE(examined().changed());
    protection.host.push_back(test::host_address("192.0.2.1"));
    const Examined again = examined();
    ASSERT_TRUE(again.refusal);
    EXPECT_EQ(again.refusal->guard, Guard::protection);
    set.guards.protect_host = false;
    EXPECT_FALSE(examined().refusal);
}

TEST_F(Refresh, TheListInForceIsWhatANewOneIsComparedWith) {
    files.feed("bad.txt", test::addresses(1000));
    refreshed();
    files.feed("bad.txt", test::addresses(400));
    const Examined less = examined();
    ASSERT_TRUE(less.refusal);
    EXPECT_EQ(less.refusal->guard, Guard::shrink);
}

TEST_F(Refresh, AnEmptySourceIsRefusedAsEmpty) {
    std::filesystem::create_directory(files.path("lists"));
    set.sources = {FolderSpec{files.path("lists/")}};
    const Examined none = examined();
    ASSERT_TRUE(none.refusal);
    EXPECT_EQ(none.refusal->guard, Guard::empty);
    std::ofstream(files.path("lists/a.txt"));
    EXPECT_TRUE(examined().refusal);
}

// One own address in a list does not keep the others out, if the operator wants it so; and it is taken as
// soon as the host no longer depends on it.
TEST_F(Refresh, AnOwnAddressMayBeLeftOut) {
    files.feed("bad.txt", {"192.0.2.1", "192.0.2.254", "198.51.100.0/24"});
    const Examined refused = examined();
    ASSERT_TRUE(refused.refusal);
    EXPECT_EQ(refused.refusal->guard, Guard::protection);
    set.guards.skip_own = true;
    std::vector<std::string> remarks;
    control::Observer observer;
    observer.remark = [&](const std::string& text) { remarks.push_back(text); };
    const auto taken = examine(set, state, protection, sandbox, observer);
    ASSERT_TRUE(taken);
    EXPECT_FALSE(taken->refusal);
    EXPECT_EQ(taken->entries(), 2U);
    EXPECT_EQ(taken->left_out, std::vector<std::string>{"192.0.2.254"});
    EXPECT_EQ(remarks, std::vector<std::string>{
                           "set bad: one address or range was left out, since this host depends on it: "
                           "192.0.2.254, a gateway of eth0"});
    const SetRecord record = refreshed();
    EXPECT_EQ(record.left_out, std::vector<std::string>{"192.0.2.254"});
    const auto holds = [&](const SetRecord& last, const char* address) {
        const auto image = Image::load(std::filesystem::path(state.image_path("bad", last.identity)));
        return image->contains(parse_key(address, SIEVE_FIELD_SRC).value());
    };
    EXPECT_TRUE(holds(record, "192.0.2.1"));
    EXPECT_TRUE(holds(record, "198.51.100.7"));
    EXPECT_FALSE(holds(record, "192.0.2.254"));
    EXPECT_FALSE(examined().changed()) << "the same list under the same host";
    EXPECT_EQ(state.read("bad", {})->left_out, std::vector<std::string>{"192.0.2.254"});

    protection.host.clear();
    const SetRecord whole = refreshed();
    EXPECT_TRUE(whole.left_out.empty());
    EXPECT_TRUE(holds(whole, "192.0.2.254"));
}

TEST_F(Refresh, AFileThatJoinsAFolderIsNoticed) {
    std::filesystem::create_directory(files.path("lists"));
    files.feed("lists/a.txt", {"192.0.2.1"});
    set.sources = {FolderSpec{files.path("lists/")}};
    refreshed();
    EXPECT_FALSE(examined().changed());
    files.feed("lists/b.txt", {"192.0.2.2"});
    const Examined more = examined();
    ASSERT_TRUE(more.changed());
    EXPECT_EQ(more.entries(), 2U);
}

TEST_F(Refresh, OtherWordsForTheSameListAreNotBuilt) {
    const SetRecord record = refreshed();
    files.feed("bad.txt", {"# sorted otherwise", "192.0.2.2", "192.0.2.1", "192.0.2.1"});
    const Examined again = examined();
    EXPECT_FALSE(again.changed());
    EXPECT_TRUE(again.provenance_changed);
    EXPECT_NE(again.before->sources[0].digest, record.sources[0].digest);
}

TEST_F(Refresh, AListThatChangesWhileItIsReadIsAnError) {
    sandbox.run = [&](const ChildOrder& order) {
        files.feed("bad.txt", {"192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.3"});
        return test::work_in_process(order);
    };
    const auto result = examine(set, state, protection, sandbox, {});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().error.kind, ErrorKind::changed_meanwhile);
}

TEST_F(Refresh, AChildThatCrashesFailsItsRefreshOnly) {
    refreshed();
    files.feed("bad.txt", {"192.0.2.9"});
    sandbox.run = [](const ChildOrder&) -> Result<ChildEnd> {
        ChildEnd end;
        end.way = ChildEnd::Way::signalled;
        end.number = 11;
        return end;
    };
    const auto result = examine(set, state, protection, sandbox, {});
    ASSERT_FALSE(result);
    expect_error(result.error().error, ErrorKind::bad_input);
    EXPECT_TRUE(state.read("bad", [](const std::string&) {}));
}

TEST_F(Refresh, AnImageIsASourceToo) {
    control::FeedSpec filter;
    filter.build.kind.kind = SIEVE_KIND_XORSAT;
    const Image image = Image::load(files.image("ready.sieve", {"192.0.2.1", "192.0.2.2"}, filter)).value();
    set.sources = {FileSpec{files.path("ready.sieve")}};
    const Examined unchecked = examined();
    ASSERT_TRUE(unchecked.refusal);
    EXPECT_EQ(unchecked.refusal->guard, Guard::coverage);
    set.guards.unchecked_images = true;
    const SetRecord record = refreshed();
    EXPECT_EQ(record.identity, identity_text(image.file()));
    EXPECT_EQ(record.entries, 2U);
    EXPECT_FALSE(examined().changed());
    EXPECT_FALSE(last_good_list(set, record, state)) << "an image cannot list its keys";
    protection.host = {test::host_address("192.0.2.2")};
    files.image("ready.sieve", {"192.0.2.2"}, filter);
    const Examined bad = examined();
    ASSERT_TRUE(bad.refusal);
    EXPECT_EQ(bad.refusal->guard, Guard::protection);
    protection.host.clear();
    set.verify = true;
    const auto unverified = build_image(set, examined(), state, protection, sandbox, {});
    ASSERT_FALSE(unverified);
    EXPECT_EQ(unverified.error().kind, ErrorKind::needs_feed);
}

// The guards know what it covers, and nothing is to be verified.
TEST_F(Refresh, AnExactImageIsASourceLikeAList) {
    set.sources = {FileSpec{files.image("ready.sieve", {"192.0.2.1", "192.0.2.2", "2001:db8::1"})}};
    set.verify = true;
    const SetRecord record = refreshed();
    EXPECT_EQ(record.entries, 3U);
    EXPECT_FALSE(record.exact);
    protection.host = {test::host_address("192.0.2.2")};
    files.image("ready.sieve", {"192.0.2.2", "192.0.2.3"});
    const Examined own = examined();
    ASSERT_TRUE(own.refusal);
    EXPECT_EQ(own.refusal->guard, Guard::protection);
    protection.host.clear();
    // Growth and coverage are those of the addresses in it.
    std::vector<std::string> many;
    for (int i = 0; i < 5000; i++)
        many.push_back("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250));
    files.image("ready.sieve", many);
    const Examined grown = examined();
    ASSERT_TRUE(grown.refusal);
    EXPECT_EQ(grown.refusal->guard, Guard::growth) << grown.refusal->message;
    set.guards.most_growth = 1e9;
    EXPECT_FALSE(examined().refusal);
    set.guards.most_ipv4 = 1e-6; // of 2^32: 4294
    const Examined wide = examined();
    ASSERT_TRUE(wide.refusal);
    EXPECT_EQ(wide.refusal->guard, Guard::coverage) << wide.refusal->message;
}

// The last good list covers a few addresses, whichever way it is kept.
TEST_F(Refresh, AnImageAfterAListIsComparedByItsAddresses) {
    control::FeedSpec ranges;
    ranges.build.kind.kind = SIEVE_KIND_RANGES;
    ranges.allow_wide = true;
    set.guards.most_ipv4 = 1;
    protection.takes_packets = false;
    refreshed();
    files.image("all.sieve", {"0.0.0.0/1", "128.0.0.0/1"}, ranges);
    set.sources = {FileSpec{files.path("all.sieve")}};
    const Examined all = examined();
    ASSERT_TRUE(all.refusal);
    EXPECT_EQ(all.refusal->guard, Guard::growth) << all.refusal->message;
    // And a list after an image.
    files.image("few.sieve", {"192.0.2.1", "192.0.2.4"}, ranges);
    set.sources = {FileSpec{files.path("few.sieve")}};
    refreshed();
    set.sources = {FileSpec{files.feed("wide.txt", {"192.0.2.0/24", "64.0.0.0/2"})}};
    const Examined wide = examined();
    ASSERT_TRUE(wide.refusal);
    EXPECT_EQ(wide.refusal->guard, Guard::growth) << wide.refusal->message;
}

// Without leave, what comes from elsewhere is text.
TEST_F(Refresh, ACommandHandsOverAnImageOnlyWithLeave) {
    control::FeedSpec ranges;
    ranges.build.kind.kind = SIEVE_KIND_RANGES;
    const std::string image = files.image("ready.sieve", {"192.0.2.1"}, ranges);
    const auto inner = sandbox.run;
    sandbox.run = [&](const ChildOrder& child) -> Result<ChildEnd> {
        if (child.role != ChildRole::command) return inner(child);
        std::ifstream file(image, std::ios::binary);
        const std::string bytes((std::istreambuf_iterator<char>(file)), {});
        if (child.output(bytes) != 0) return bad_input("not written");
        return ChildEnd{};
    };
    set.sources = {CommandSpec{.arguments = {"export"}}};
    const auto refused = examine(set, state, protection, sandbox, {});
    ASSERT_FALSE(refused);
    expect_error(refused.error().error, ErrorKind::bad_input);
    set.sources = {CommandSpec{.arguments = {"export"}, .image = true}};
    const SetRecord record = refreshed();
    EXPECT_EQ(record.entries, 1U);
    EXPECT_FALSE(examined().changed());
    // What was taken with leave does not stay without it.
    set.sources = {CommandSpec{.arguments = {"export"}}};
    EXPECT_FALSE(examine(set, state, protection, sandbox, {}));
}

// A child that somebody has taken over hands over the filter of another list.
TEST_F(Refresh, AnotherFilterThanTheListsIsRefused) {
    const auto inner = sandbox.run;
    Feed other = test::list_of({"192.0.2.1"});
    sandbox.run = [&](const ChildOrder& child) -> Result<ChildEnd> {
        const auto order = read_order(child.message);
        if (!order || !std::holds_alternative<BuildOrder>(order->order)) return inner(child);
        const UniqueFd list(::memfd_create("other", MFD_CLOEXEC));
        if (auto written = write_list_file(other, list.get()); !written)
            return tl::unexpected(written.error());
        ChildOrder misled = child;
        misled.descriptors[0] = list.get();
        return inner(misled);
    };
    files.feed("bad.txt", test::addresses(777));
    for (const bool verify : {false, true}) {
        set.verify = verify;
        for (const sieve_kind kind : {SIEVE_KIND_BLOCKED, SIEVE_KIND_DLEFT64, SIEVE_KIND_XORSAT}) {
            set.feed.build.kind.kind = kind;
            expect_error(build_image(set, examined(), state, protection, sandbox, {}), ErrorKind::bad_input);
        }
    }
    other = test::list_of(test::addresses(777));
    EXPECT_TRUE(build_image(set, examined(), state, protection, sandbox, {}));
}

TEST_F(Refresh, TheLastGoodListCanBeReadAgain) {
    const SetRecord record = refreshed();
    std::filesystem::remove(files.path("bad.txt"));
    const auto list = last_good_list(set, record, state);
    ASSERT_TRUE(list) << list.error().message;
    EXPECT_EQ(list->keys.size(), 3U);
}

// The seed makes every build the same, so the gateway is a false positive again and again, until the builder
// gives up.
TEST_F(Refresh, AFilterThatMistakesTheGatewayIsBuiltAgain) {
    files.feed("bad.txt", test::addresses(1000));
    set.feed.build.bits_per_key = 1;
    set.feed.build.kind.effort = Effort::fast;
    std::vector<std::string> remarks;
    control::Observer observer;
    observer.remark = [&](const std::string& text) { remarks.push_back(text); };
    std::set<std::size_t> seen;
    // More than half of all non-members match such a filter, but far from all.
    for (std::uint64_t seed = 1; seed <= 40 && seen.size() < 2; seed++) {
        set.feed.build.seed = seed;
        remarks.clear();
        const auto record = build_image(set, examined(), state, protection, sandbox, observer);
        ASSERT_TRUE(record) << record.error().message;
        const auto image = Image::load(std::filesystem::path(state.image_path("bad", record->identity)));
        ASSERT_TRUE(image);
        EXPECT_EQ(remarks.size(), matches_any(*image, protected_addresses(set, protection)) ? 3U : 0U);
        seen.insert(remarks.size());
        state.discard_staged("bad");
    }
    EXPECT_EQ(seen, (std::set<std::size_t>{0, 3}));
}

// A set of a file and of two programs, which print what the test wants, or end with 1.
class RefreshOfSeveral : public Refresh {
  protected:
    std::map<std::string, std::string> printed{{"one", "192.0.2.11\n"}, {"two", "192.0.2.12\n"}};
    std::function<void()> while_asked = [] {}; // a command
    std::function<void()> while_read = [] {};
    int asked = 0; // commands

    RefreshOfSeveral() {
        set.sources.emplace_back(CommandSpec{.arguments = {"one"}});
        set.sources.emplace_back(CommandSpec{.arguments = {"two"}});
        sandbox.run = [this, inner = sandbox.run](const ChildOrder& child) -> Result<ChildEnd> {
            if (child.role != ChildRole::command) {
                while_read();
                return inner(child);
            }
            asked++;
            while_asked();
            const auto order = read_order(child.message);
            const std::string& program = std::get<CommandOrder>(order->order).arguments.back();
            ChildEnd end;
            if (!printed.contains(program)) {
                end.number = 1;
            } else if (child.output(printed.at(program)) != 0) {
                return bad_input("not written");
            }
            return end;
        };
        refreshed();
    }

    // What the refresh says of a source that failed; empty: none did.
    std::string behind() {
        const Examined now = examined();
        return now.behind ? now.behind->error.message : std::string();
    }
    // By the name of the file, which is another one then.
    void replace_file(const std::string& entry) {
        std::filesystem::rename(files.feed("bad.txt.new", {entry}), files.path("bad.txt"));
    }
    std::vector<std::string> list_of(const SetRecord& record) {
        const Feed list = last_good_list(set, record, state).value();
        std::vector<std::string> texts;
        list.keys.for_each(0, list.keys.size(),
                           [&](const sieve_key& key) { texts.push_back(format_key(key, set.feed.fields)); });
        std::ranges::sort(texts);
        texts.erase(std::ranges::unique(texts).begin(), texts.end());
        return texts;
    }
};

// A file may change more often than a slow command answers.
TEST_F(RefreshOfSeveral, AFileThatChangesWhileOthersAreAskedIsReadAsItIsThen) {
    while_asked = [&] { files.feed("bad.txt", {"192.0.2.7"}); };
    EXPECT_EQ(list_of(refreshed()), (std::vector<std::string>{"192.0.2.11", "192.0.2.12", "192.0.2.7"}));
    while_asked = [&] { replace_file("192.0.2.8"); };
    EXPECT_EQ(list_of(refreshed()), (std::vector<std::string>{"192.0.2.11", "192.0.2.12", "192.0.2.8"}));
}

TEST_F(RefreshOfSeveral, AFileThatChangesWhileItIsReadIsReadAgainAlone) {
    asked = 0;
    int reads = 0;
    while_read = [&] {
        if (reads++ == 0) files.feed("bad.txt", {"192.0.2.7"});
    };
    printed["two"] = "192.0.2.13\n";
    const Examined now = examined();
    ASSERT_TRUE(now.changed());
    EXPECT_EQ(now.entries(), 3U) << "the file's new line, and what the commands said";
    EXPECT_EQ(reads, 2);
    EXPECT_EQ(asked, 2) << "each once";
    // Nothing is taken of one that never holds still.
    while_read = [&] { files.feed("bad.txt", std::vector<std::string>(++reads, "192.0.2.7")); };
    const auto never = examine(set, state, protection, sandbox, {});
    ASSERT_FALSE(never);
    expect_error(never.error().error, ErrorKind::changed_meanwhile);
    EXPECT_EQ(asked, 4);
}

TEST_F(RefreshOfSeveral, AFileThatIsReplacedWhileItIsReadIsReadAsItWas) {
    replace_file("192.0.2.7");
    int reads = 0;
    while_read = [&] {
        reads++;
        replace_file("192.0.2.8");
    };
    EXPECT_EQ(list_of(refreshed()), (std::vector<std::string>{"192.0.2.11", "192.0.2.12", "192.0.2.7"}));
    EXPECT_EQ(reads, 2) << "once, and then its image was built";
}

TEST_F(RefreshOfSeveral, WhereOnlyFilesAreNewsWhatOthersSaidLastIsTaken) {
    const auto files_only = [&] {
        asked = 0;
        auto result = examine(set, state, protection, sandbox, {}, {}, {}, true);
        if (!result) throw std::runtime_error(result.error().error.message);
        return std::move(*result);
    };
    printed["one"] = "192.0.2.99\n"; // not yet
    EXPECT_FALSE(files_only().changed());
    files.feed("bad.txt", {"192.0.2.7"});
    const auto record = build_image(set, files_only(), state, protection, sandbox, {});
    ASSERT_TRUE(record);
    ASSERT_TRUE(state.commit(set.name, *record));
    EXPECT_EQ(asked, 0);
    EXPECT_EQ(list_of(*record), (std::vector<std::string>{"192.0.2.11", "192.0.2.12", "192.0.2.7"}));
    // What nobody has heard yet has to be asked for.
    set.sources.emplace_back(CommandSpec{.arguments = {"three"}});
    printed["three"] = "192.0.2.13\n";
    EXPECT_EQ(files_only().entries(), 4U);
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(list_of(refreshed()),
              (std::vector<std::string>{"192.0.2.12", "192.0.2.13", "192.0.2.7", "192.0.2.99"}));
}

TEST_F(RefreshOfSeveral, ASourceThatFailsKeepsWhatItSaidLast) {
    printed.erase("one");
    EXPECT_FALSE(examined().changed());
    expect_says(behind());
    files.feed("bad.txt", {"192.0.2.1"});
    printed["two"] = "192.0.2.13\n";
    EXPECT_EQ(list_of(refreshed()), (std::vector<std::string>{"192.0.2.1", "192.0.2.11", "192.0.2.13"}));
    EXPECT_NE(behind(), "");
    // The other one, too, as it said it while the first was away.
    printed.erase("two");
    files.feed("bad.txt", {"192.0.2.2"});
    EXPECT_EQ(list_of(refreshed()), (std::vector<std::string>{"192.0.2.11", "192.0.2.13", "192.0.2.2"}));
    printed = {{"one", "192.0.2.14\n"}, {"two", "192.0.2.13\n"}};
    EXPECT_EQ(behind(), "");
    EXPECT_EQ(list_of(refreshed()), (std::vector<std::string>{"192.0.2.13", "192.0.2.14", "192.0.2.2"}));
}

// A server that is about to fail may say so in a page of its own.
TEST_F(RefreshOfSeveral, ASourceThatHandsOverNoListKeepsWhatItSaidLast) {
    printed = {{"one", "<html>we are down</html>\n"}, {"two", "192.0.2.13\n"}};
    EXPECT_EQ(list_of(refreshed()),
              (std::vector<std::string>{"192.0.2.1", "192.0.2.11", "192.0.2.13", "192.0.2.2"}));
    EXPECT_FALSE(examined().changed());
    expect_says(behind());
    printed["two"] = "no list either\n";
    EXPECT_FALSE(examined().changed());
    files.feed("bad.txt", {"192.0.2.1", "no list either"}); // nor a file
    EXPECT_FALSE(examine(set, state, protection, sandbox, {}));
    files.feed("bad.txt", {"192.0.2.1"});
    printed["one"] = "192.0.2.15\n";
    EXPECT_EQ(list_of(refreshed()), (std::vector<std::string>{"192.0.2.1", "192.0.2.13", "192.0.2.15"}));
    set.sources.emplace_back(CommandSpec{.arguments = {"three"}}); // never one
    printed["three"] = "<html>we are down</html>\n";
    EXPECT_FALSE(examined().changed());
    EXPECT_NE(behind(), "");
}

// All sources of one program have one name for messages.
TEST_F(RefreshOfSeveral, NoOtherSourceIsTakenForTheOneThatHandsOverNoList) {
    set.sources = {CommandSpec{.arguments = {"get", "one"}}, CommandSpec{.arguments = {"get", "two"}}};
    refreshed();
    printed = {{"one", "192.0.2.21\n"}, {"two", "<html>we are down</html>\n"}};
    ASSERT_TRUE(examined().changed());
    EXPECT_EQ(list_of(refreshed()), (std::vector<std::string>{"192.0.2.12", "192.0.2.21"}));
    EXPECT_NE(behind(), "");
    // On a host that has no list yet.
    set.name = "other";
    const auto first = examine(set, state, protection, sandbox, {}, [] { return false; });
    ASSERT_TRUE(first) << first.error().error.message;
    EXPECT_EQ(first->entries(), 1U);
}

TEST_F(RefreshOfSeveral, OtherWordsForTheSameListAreKept) {
    printed = {{"one", "192.0.2.12\n"}, {"two", "192.0.2.11\n"}};
    EXPECT_FALSE(examined().changed());
    SetRecord record = *examined().before;
    ASSERT_TRUE(state.commit(set.name, record));
    printed = {{"two", "192.0.2.13\n"}};
    EXPECT_EQ(list_of(refreshed()),
              (std::vector<std::string>{"192.0.2.1", "192.0.2.12", "192.0.2.13", "192.0.2.2"}));
}

// The process ends before the record has it.
TEST_F(RefreshOfSeveral, OtherWordsThatNoRecordHasReplaceNoCopy) {
    printed["one"] = "# an hour later\n192.0.2.11\n";
    EXPECT_TRUE(examined().provenance_changed);
    printed = {{"two", "192.0.2.13\n"}};
    EXPECT_EQ(list_of(refreshed()),
              (std::vector<std::string>{"192.0.2.1", "192.0.2.11", "192.0.2.13", "192.0.2.2"}));
}

TEST_F(RefreshOfSeveral, CopiesDoNotPileUp) {
    const auto copies = [&] {
        int count = 0;
        for (const auto& entry : std::filesystem::directory_iterator(files.path("state") + "/sets/bad"))
            count += entry.path().string().find(".source-") != std::string::npos ? 1 : 0;
        return count;
    };
    EXPECT_EQ(copies(), 2);
    for (int hour = 0; hour < 3; hour++) {
        printed["one"] = fmt::format("# hour {}\n192.0.2.11\n", hour);
        const SetRecord record = *examined().before;
        EXPECT_LE(copies(), 3);
        ASSERT_TRUE(state.commit(set.name, record));
    }
}

TEST_F(RefreshOfSeveral, OtherOptionsAreBuiltOfWhatWasSaidLast) {
    printed.erase("one");
    set.feed.build.bits_per_key = 20;
    const Examined now = examined();
    EXPECT_TRUE(now.changed());
    EXPECT_TRUE(now.behind);
    EXPECT_EQ(now.entries(), 5U); // one of them twice
}

TEST_F(RefreshOfSeveral, WhatIsDamagedIsNotMadeUp) {
    const SetRecord record = state.read("bad", {}).value();
    const std::string kept = fmt::format("{}/sets/bad/{}.source-{}", files.path("state"), record.identity,
                                         record.sources.at(1).digest);
    ASSERT_TRUE(std::filesystem::exists(kept));
    std::ofstream(kept, std::ios::trunc) << "192.0.2.99\n";
    printed.erase("one");
    EXPECT_FALSE(examine(set, state, protection, sandbox, {}));
}

TEST_F(RefreshOfSeveral, ASourceThatHasNeverAnsweredIsDoneWithout) {
    set.sources.emplace_back(CommandSpec{.arguments = {"three"}});
    printed["one"] = "192.0.2.21\n";
    EXPECT_EQ(list_of(refreshed()),
              (std::vector<std::string>{"192.0.2.1", "192.0.2.12", "192.0.2.2", "192.0.2.21"}));
    EXPECT_FALSE(examined().changed());
    EXPECT_NE(behind(), "");
    printed["three"] = "192.0.2.13\n";
    EXPECT_EQ(list_of(refreshed()),
              (std::vector<std::string>{"192.0.2.1", "192.0.2.12", "192.0.2.13", "192.0.2.2", "192.0.2.21"}));
    EXPECT_EQ(behind(), "");
    // What it said is not forgotten where it cannot be read.
    for (const auto& entry : std::filesystem::directory_iterator(files.path("state") + "/sets/bad"))
        if (entry.path().filename().string().find(".source-") != std::string::npos)
            std::filesystem::remove(entry.path());
    printed.erase("three");
    EXPECT_FALSE(examine(set, state, protection, sandbox, {}));
}

// Not in place of one that is on the list, not in a set that protects its members, and not alone.
TEST_F(RefreshOfSeveral, NoMemberIsLostToASourceThatHasNeverAnswered) {
    const SetConfiguration before = set;
    set.sources.back() = CommandSpec{.arguments = {"three"}};
    EXPECT_FALSE(examine(set, state, protection, sandbox, {}));
    set = before;
    set.sources.emplace_back(CommandSpec{.arguments = {"three"}});
    EXPECT_TRUE(examine(set, state, protection, sandbox, {}));
    protection.passes_packets = true;
    EXPECT_FALSE(examine(set, state, protection, sandbox, {}));
    protection.passes_packets = false;
    set.name = "other";
    const auto never = [] { return false; };
    set.sources = {CommandSpec{.arguments = {"three"}}, CommandSpec{.arguments = {"four"}}};
    EXPECT_FALSE(examine(set, state, protection, sandbox, {}, never));
    set.feed.except = files.feed("except.txt", {"192.0.2.200"}); // which says nothing of members
    EXPECT_FALSE(examine(set, state, protection, sandbox, {}, never));
    set.feed.except.clear();
    // The first list may do without, but not where the record is lost, and another list is in force.
    printed["four"] = "192.0.2.14\n";
    EXPECT_TRUE(examine(set, state, protection, sandbox, {}, never));
    EXPECT_FALSE(examine(set, state, protection, sandbox, {}, [] { return true; }));
    EXPECT_FALSE(examine(set, state, protection, sandbox, {}));
}

TEST_F(RefreshOfSeveral, TheFirstAnswerOfASourceIsNoGrowth) {
    const auto many = [](int first) {
        std::string list;
        for (int i = 0; i < 2000; i++) list += fmt::format("10.{}.{}.{}\n", first, i / 250, i % 250);
        return list;
    };
    set.name = "other";
    set.sources = {CommandSpec{.arguments = {"three"}}, CommandSpec{.arguments = {"four"}}};
    printed["four"] = "192.0.2.14\n";
    auto first = examine(set, state, protection, sandbox, {}, [] { return false; });
    ASSERT_TRUE(first);
    ASSERT_TRUE(state.commit(set.name, build_image(set, *first, state, protection, sandbox, {}).value()));
    printed["three"] = many(1);
    EXPECT_FALSE(examined().refusal);
    refreshed();
    for (int i = 2; i < 30; i++) printed["three"] += many(i);
    const Examined grown = examined();
    ASSERT_TRUE(grown.refusal);
    EXPECT_EQ(grown.refusal->guard, Guard::growth);
}

// Of one source alone, the last good list is what it said.
TEST_F(Refresh, ASourceAloneIsNotKeptTwice) {
    refreshed();
    for (const auto& entry : std::filesystem::directory_iterator(files.path("state") + "/sets/bad"))
        EXPECT_EQ(entry.path().string().find(".source"), std::string::npos) << entry.path();
}

} // namespace
} // namespace sieve::service
