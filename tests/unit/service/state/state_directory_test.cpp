// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/state/state_directory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include <gtest/gtest.h>

#include "libsieve/service/lists/list_file.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "unit/control/files.hpp"
#include "unit/messages.hpp"
#include "unit/service/lists.hpp"

namespace sieve::service {
namespace {

using test::Files;

class StateDirectoryTest : public testing::Test {
  protected:
    Files files;
    const std::string path = files.path("state");
    std::vector<std::string> remarks;

    static void put_folder(const std::string& at) {
        std::filesystem::remove_all(at);
        std::filesystem::create_directory(at);
    }
    // Whoever opens it waits for a writer.
    static void put_pipe(const std::string& at) {
        std::filesystem::remove_all(at);
        ASSERT_EQ(::mkfifo(at.c_str(), 0600), 0);
    }
    std::function<void(const std::string&)> remark() {
        return [this](const std::string& text) { remarks.push_back(text); };
    }
    StateDirectory open(const std::string& spare = {}) {
        auto state =
            StateDirectory::open(path, std::chrono::milliseconds(0), {}, {.spare = spare, .tell = remark()});
        if (!state) throw std::runtime_error(state.error().message);
        return std::move(*state);
    }
    static std::string content(const std::string& file) {
        std::ifstream in(file);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    // Stages a set with these entries and commits it.
    SetRecord stage(const StateDirectory& state, const std::string& set,
                    const std::vector<std::string>& entries, bool exact = false) {
        const UniqueFd list(::memfd_create("list", MFD_CLOEXEC));
        auto image = Image::load(files.image("image", entries)).value();
        SetRecord record;
        record.identity = identity_text(image.file());
        record.build = "options";
        record.entries = entries.size();
        record.expected_fpr = 0.125;
        record.exact = exact;
        record.sources = {{.source = "https://h/a",
                           .digest = "00ff",
                           .bytes = 12,
                           .etag = "\"e\"",
                           .last_modified = "today",
                           .asked = 1700000000,
                           .changed = 1600000000,
                           .stamp = {1, 2, 3},
                           .read = 1700000001}};
        EXPECT_TRUE(write_list_file(test::list_of(entries), list.get()));
        const std::vector<sieve_key> keys(exact ? 3 : 0);
        EXPECT_TRUE(state.stage(set, image, list.get(), keys));
        return record;
    }
    SetRecord keep(const StateDirectory& state, const std::string& set,
                   const std::vector<std::string>& entries, bool exact = false) {
        SetRecord record = stage(state, set, entries, exact);
        EXPECT_TRUE(state.commit(set, record));
        return record;
    }
    std::vector<std::string> names(const std::string& set) const {
        std::vector<std::string> all;
        for (const auto& entry : std::filesystem::directory_iterator(path + "/sets/" + set))
            all.push_back(entry.path().filename());
        std::sort(all.begin(), all.end());
        return all;
    }
};

TEST_F(StateDirectoryTest, IsMadeForItsOwnerAlone) {
    const StateDirectory state = open();
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700U);
    EXPECT_EQ(content(path + "/version"), "xdp-sieve state 2\n");
}

TEST_F(StateDirectoryTest, KeepsAndReadsARecord) {
    const StateDirectory state = open();
    EXPECT_FALSE(state.read("bad", remark()));
    const SetRecord kept = keep(state, "bad", {"192.0.2.1", "192.0.2.2"});
    const auto read = state.read("bad", remark());
    ASSERT_TRUE(read);
    EXPECT_EQ(read->identity, kept.identity);
    EXPECT_EQ(read->entries, 2U);
    EXPECT_EQ(read->expected_fpr, 0.125);
    EXPECT_EQ(read->sources, kept.sources);
    const UniqueFd list(::open(state.list_path("bad", kept.identity).c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(read_list_file(list.get(), SIEVE_FIELD_SRC).value().keys.size(), 2U);
    EXPECT_TRUE(Image::load(std::filesystem::path(state.image_path("bad", kept.identity))));
    EXPECT_TRUE(remarks.empty());
    EXPECT_EQ(::access((path + "/sets/bad/record.json").c_str(), R_OK), 0);
}

TEST_F(StateDirectoryTest, TheNextImageReplacesTheLast) {
    const StateDirectory state = open();
    keep(state, "bad", {"192.0.2.1"});
    const SetRecord now = keep(state, "bad", {"192.0.2.2"});
    EXPECT_EQ(names("bad"),
              (std::vector<std::string>{now.identity + ".list", now.identity + ".sieve", "record.json"}));
}

TEST_F(StateDirectoryTest, WhatWasStagedOnlyIsDiscarded) {
    const StateDirectory state = open();
    const SetRecord kept = keep(state, "bad", {"192.0.2.1"});
    auto image = Image::load(files.image("image", {"192.0.2.9"})).value();
    ASSERT_TRUE(state.stage("bad", image, -1, {}));
    EXPECT_EQ(names("bad").size(), 4U);
    state.discard_staged("bad");
    EXPECT_EQ(names("bad").size(), 3U);
    EXPECT_EQ(state.read("bad", remark())->identity, kept.identity);
}

// A refresh stages an image while a cycle writes down that the set has another action.
TEST_F(StateDirectoryTest, WhatIsStagedOutlastsTheRecordOfTheLastImage) {
    const StateDirectory state = open();
    const SetRecord last = keep(state, "bad", {"192.0.2.1"});
    const SetRecord next = stage(state, "bad", {"192.0.2.2"});
    ASSERT_TRUE(state.commit("bad", last));
    EXPECT_EQ(names("bad").size(), 5U);
    ASSERT_TRUE(state.commit("bad", next));
    EXPECT_EQ(names("bad"),
              (std::vector<std::string>{next.identity + ".list", next.identity + ".sieve", "record.json"}));
}

TEST_F(StateDirectoryTest, KeepsTheKeysOfAVerifiedSet) {
    const StateDirectory state = open();
    const SetRecord kept = keep(state, "bad", {"192.0.2.1"}, true);
    EXPECT_GE(std::filesystem::file_size(state.exact_path("bad", kept.identity)), 3 * sizeof(sieve_key));
    ASSERT_TRUE(state.read("bad", remark()));
    std::filesystem::remove(state.exact_path("bad", kept.identity));
    EXPECT_FALSE(state.read("bad", remark()));
    EXPECT_EQ(remarks.size(), 1U);
}

TEST_F(StateDirectoryTest, ADamagedEntryCountsAsNone) {
    const StateDirectory state = open();
    const auto damaged = [&](const auto& damage) {
        const SetRecord record = keep(state, "bad", {"192.0.2.1"});
        damage(record);
        remarks.clear();
        EXPECT_FALSE(state.read("bad", remark()));
        ASSERT_EQ(remarks.size(), 1U);
        expect_says(remarks[0]);
    };
    const std::string record_path = path + "/sets/bad/record.json";
    damaged([&](const SetRecord&) { std::ofstream(record_path) << "{"; });
    damaged([&](const SetRecord&) { std::ofstream(record_path) << "{\"identity\": 7}"; });
    damaged([&](const SetRecord& r) { std::filesystem::remove(state.image_path("bad", r.identity)); });
    damaged(
        [&](const SetRecord& r) { std::filesystem::resize_file(state.image_path("bad", r.identity), 100); });
    damaged([&](const SetRecord& r) {
        std::fstream file(state.image_path("bad", r.identity),
                          std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(500);
        file << "x";
    });
    damaged([&](const SetRecord&) { put_folder(record_path); });
    damaged([&](const SetRecord&) { put_pipe(record_path); });
    damaged([&](const SetRecord& r) { put_folder(state.image_path("bad", r.identity)); });
    damaged([&](const SetRecord& r) { put_pipe(state.image_path("bad", r.identity)); });
    // No name leads out of the directory.
    damaged([&](const SetRecord& r) {
        std::string text = content(record_path);
        text.replace(text.find(r.identity), r.identity.size(), "../../../../etc/shadow");
        std::ofstream(record_path) << text;
    });
}

TEST_F(StateDirectoryTest, DamagedKeysOfAVerifiedSetCountAsNone) {
    const StateDirectory state = open();
    const std::string file = state.exact_path("bad", keep(state, "bad", {"192.0.2.1"}, true).identity);
    const std::string whole = content(file);
    const auto damaged = [&](const std::string& text) {
        test::replace_file(file, whole);
        EXPECT_TRUE(state.read("bad", remark()));
        remarks.clear();
        test::replace_file(file, text);
        EXPECT_FALSE(state.read("bad", remark()));
        ASSERT_EQ(remarks.size(), 1U);
        EXPECT_TRUE(remarks[0].starts_with(file)) << remarks[0];
        expect_says(remarks[0]);
    };
    for (std::size_t at = 0; at < whole.size(); at++) {
        SCOPED_TRACE(at);
        std::string text = whole;
        text[at] = static_cast<char>(text[at] ^ 1 << at % 8);
        damaged(text);
    }
    for (const std::size_t left : {std::size_t{0}, std::size_t{10}, whole.size() - 1})
        damaged(whole.substr(0, left));
    damaged(whole + '\0');
    damaged(whole + whole);
    for (void (*put)(const std::string&) : {&put_folder, &put_pipe}) {
        std::filesystem::remove_all(file);
        put(file);
        EXPECT_FALSE(state.read("bad", remark()));
    }
}

TEST_F(StateDirectoryTest, WhatIsNoFileIsReplaced) {
    const StateDirectory state = open();
    const std::vector<ManagedHook> hooks{{"eth0", kernel::HookPoint::xdp, 40}};
    for (void (*put)(const std::string&) : {&put_folder, &put_pipe}) {
        const SetRecord before = keep(state, "bad", {"192.0.2.1"});
        put(path + "/sets/bad/record.json");
        state.discard_staged("bad");
        EXPECT_TRUE(std::filesystem::exists(state.image_path("bad", before.identity)))
            << "nobody knows that it is not the last good one";
        const SetRecord record = keep(state, "bad", {"192.0.2.2"});
        EXPECT_EQ(state.read("bad", remark())->identity, record.identity);
        put(path + "/hooks.json");
        remarks.clear();
        EXPECT_TRUE(state.hooks(remark()).value().empty());
        ASSERT_EQ(remarks.size(), 1U);
        expect_says(remarks[0]);
        ASSERT_TRUE(state.keep_hooks(hooks));
        EXPECT_EQ(state.hooks(remark()).value(), hooks);
    }
}

// Who could write there once may have left links to files of others.
TEST_F(StateDirectoryTest, NothingIsWrittenThroughALink) {
    const std::string dear = files.path("dear");
    std::filesystem::create_directory(dear);
    std::ofstream(dear + "/file") << "{}";
    { const StateDirectory made = open(); }
    std::filesystem::remove_all(path + "/sets");
    std::filesystem::create_symlink(dear, path + "/sets");
    for (const char* const name : {"hooks.json", "bad.refused"})
        std::filesystem::create_symlink(dear + "/file", path + "/" + name);
    const StateDirectory state = open();
    const std::vector<ManagedHook> hooks{{"eth0", kernel::HookPoint::xdp, 40}};
    ASSERT_TRUE(state.keep_hooks(hooks));
    EXPECT_EQ(state.hooks(remark()).value(), hooks);
    ASSERT_TRUE(state.note_refused("bad", {.guard = "growth", .digest = "1"}));
    const SetRecord record = keep(state, "bad", {"192.0.2.1"});
    EXPECT_EQ(state.read("bad", remark())->identity, record.identity);
    std::string text;
    std::getline(std::ifstream(dear + "/file"), text);
    EXPECT_EQ(text, "{}");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dear), {}), 1);
}

TEST_F(StateDirectoryTest, ACommitThatCannotBeReadIsNone) {
    for (void (*put)(const std::string&) : {&put_folder, &put_pipe}) {
        static_cast<void>(open());
        put(path + "/together.json");
        static_cast<void>(open());
        EXPECT_FALSE(std::filesystem::exists(path + "/together.json"));
    }
}

TEST_F(StateDirectoryTest, WhatIsNotOfThisVersionIsSetAside) {
    struct Case {
        const char* what;
        std::function<void()> damage;
    };
    const std::string version = path + "/version";
    const Case cases[] = {
        {"a folder", [&] { put_folder(version); }},
        {"a pipe", [&] { put_pipe(version); }},
        {"another version", [&] { std::ofstream(version) << "xdp-sieve state 1\n"; }},
        {"more bytes", [&] { std::ofstream(version, std::ios::app) << "more\n"; }},
        {"no bytes", [&] { std::ofstream(version, std::ios::trunc).flush(); }},
        {"another text", [&] { std::ofstream(version) << "dear\n"; }},
        {"no version", [&] { std::filesystem::remove(version); }},
    };
    const std::vector<ManagedHook> hooks{{"eth0", kernel::HookPoint::xdp, 40}};
    int number = 0;
    for (const auto& [what, damage] : cases) {
        SCOPED_TRACE(what);
        std::string kept;
        {
            const StateDirectory state = open();
            kept = keep(state, "bad", {"192.0.2.1"}).identity;
            ASSERT_TRUE(state.keep_hooks(hooks));
            std::filesystem::create_directory(path + "/bans");
            std::ofstream(path + "/bans/bad") << "bans";
        }
        damage();
        EXPECT_FALSE(StateDirectory::look(path).read("bad", remark()));
        remarks.clear();
        const StateDirectory state = open();
        ASSERT_EQ(remarks.size(), 1U);
        const std::string aside = path + "/set-aside." + std::to_string(++number);
        expect_says(remarks[0]);
        EXPECT_EQ(content(version), "xdp-sieve state 2\n");
        EXPECT_FALSE(state.read("bad", remark()));
        EXPECT_TRUE(std::filesystem::exists(aside + "/sets/bad/" + kept + ".sieve"));
        EXPECT_EQ(state.hooks(remark()).value(), hooks) << "it says by itself whether it can be understood";
        EXPECT_EQ(content(path + "/bans/bad"), "bans") << "likewise";
    }
    int left = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path))
        if (entry.path().filename().string().starts_with("set-aside.")) left++;
    EXPECT_EQ(left, 3);
}

// Where the process that made it was ended.
TEST_F(StateDirectoryTest, WhatWasCutOffAtTheBeginningIsCompleted) {
    for (const char* made : {"", "lock", "sets", "version.AbCdEf"}) {
        SCOPED_TRACE(made);
        std::filesystem::remove_all(path);
        ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
        if (const std::string name = made; name == "sets")
            std::filesystem::create_directory(path + "/sets");
        else if (!name.empty())
            std::ofstream(path + '/' + name) << "xdp";
        static_cast<void>(open());
        EXPECT_EQ(content(path + "/version"), "xdp-sieve state 2\n");
        EXPECT_TRUE(std::filesystem::is_directory(path + "/sets"));
    }
}

// A version that a later release has made may have files that this one does not know.
TEST_F(StateDirectoryTest, AllOfALaterVersionIsSetAside) {
    ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
    std::ofstream(path + "/version") << "xdp-sieve state 9\n";
    std::ofstream(path + "/entries") << "new";
    static_cast<void>(open());
    EXPECT_EQ(content(path + "/set-aside.1/entries"), "new");
    EXPECT_EQ(content(path + "/set-aside.1/version"), "xdp-sieve state 9\n");
}

TEST_F(StateDirectoryTest, ADirectoryThatIsRemovedInUseIsMadeAnew) {
    const StateDirectory state = open();
    keep(state, "bad", {"192.0.2.1"});
    std::filesystem::remove_all(path);
    const SetRecord now = keep(state, "bad", {"192.0.2.2"});
    EXPECT_EQ(content(path + "/version"), "xdp-sieve state 2\n");
    ASSERT_EQ(remarks.size(), 1U);
    expect_says(remarks[0]);
    EXPECT_EQ(state.read("bad", remark())->identity, now.identity);
    const auto second = StateDirectory::open(path, std::chrono::milliseconds(0), {});
    ASSERT_FALSE(second) << "the new directory is held, too";
    EXPECT_EQ(second.error().kind, ErrorKind::busy);
    std::filesystem::remove(path + "/version");
    ASSERT_TRUE(state.keep_hooks({}));
    EXPECT_EQ(content(path + "/version"), "xdp-sieve state 2\n");
    EXPECT_TRUE(state.read("bad", remark())) << "what this process wrote itself is not set aside";
}

TEST_F(StateDirectoryTest, TheLockCannotBeRemoved) {
    const StateDirectory state = open();
    std::filesystem::remove(path + "/lock");
    const auto second = StateDirectory::open(path, std::chrono::milliseconds(0), {});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, ErrorKind::busy);
}

// What a directory cannot take is in the spare folder until it can.
TEST_F(StateDirectoryTest, ASpareFolderTakesWhatTheDirectoryCannot) {
    const std::string spare = files.path("run") + "/spare";
    const std::vector<ManagedHook> hooks{{"eth0", kernel::HookPoint::xdp, 40}};
    ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
    std::ofstream(path + "/mail") << "dear"; // not ours
    {
        const StateDirectory state = open(spare);
        ASSERT_TRUE(state.trouble());
        expect_says(*state.trouble());
        const SetRecord bad = keep(state, "bad", {"192.0.2.1"}, true);
        keep(state, "good", {"192.0.2.2"});
        EXPECT_EQ(state.read("bad", remark())->identity, bad.identity);
        EXPECT_FALSE(state.exact_path("bad", bad.identity).starts_with(path));
        ASSERT_TRUE(state.commit({{"bad", bad}, {"good", *state.read("good", remark())}}));
        ASSERT_TRUE(state.keep_hooks(hooks));
        EXPECT_EQ(state.hooks(remark()).value(), hooks);
        state.mend();
        EXPECT_TRUE(state.trouble());
    }
    // Another process goes on from there.
    const StateDirectory state = open(spare);
    const auto kept = state.read("bad", remark());
    ASSERT_TRUE(kept);
    EXPECT_TRUE(StateDirectory::look(path, spare).read("bad", remark()));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path), {}), 1) << "it is not ours";
    std::filesystem::remove(path + "/mail");
    ASSERT_TRUE(state.keep_hooks(hooks));
    state.mend();
    EXPECT_FALSE(state.trouble()) << *state.trouble();
    EXPECT_EQ(state.read("bad", remark())->identity, kept->identity);
    EXPECT_TRUE(state.exact_path("bad", kept->identity).starts_with(path));
    EXPECT_TRUE(std::filesystem::exists(state.exact_path("bad", kept->identity)));
    EXPECT_TRUE(std::filesystem::is_empty(spare + "/sets"));
    EXPECT_EQ(state.hooks(remark()).value(), hooks);
    EXPECT_TRUE(remarks.empty()) << remarks[0];
}

// A cycle mends the state while a refresh stages an image, or between the staging and the record.
TEST_F(StateDirectoryTest, AnImageThatIsStagedInTheSpareFolderKeepsItsTrouble) {
    const std::string spare = files.path("run") + "/spare";
    const StateDirectory state = open(spare);
    std::filesystem::remove_all(path + "/sets");
    std::ofstream(path + "/sets") << "in the way";
    const SetRecord staged = stage(state, "bad", {"192.0.2.1"});
    ASSERT_TRUE(state.trouble());
    std::filesystem::remove(path + "/sets");
    std::filesystem::create_directory(path + "/sets");
    state.mend();
    EXPECT_TRUE(state.trouble()) << "its record goes to the spare folder, too";
    ASSERT_TRUE(state.commit("bad", staged));
    EXPECT_FALSE(std::filesystem::exists(path + "/sets/bad"));
    state.mend();
    EXPECT_FALSE(state.trouble()) << *state.trouble();
    EXPECT_TRUE(std::filesystem::exists(path + "/sets/bad/record.json"));
}

// The record before comes home meanwhile, or is written there.
TEST_F(StateDirectoryTest, AnImageThatIsStagedInTheSpareFolderOutlastsTheRecordBefore) {
    const std::string spare = files.path("run") + "/spare";
    const StateDirectory state = open(spare);
    const auto staged_there = [&](const std::string& entry, std::int64_t built_at) {
        std::filesystem::rename(path + "/sets", path + "/away");
        std::ofstream(path + "/sets") << "in the way";
        SetRecord record = stage(state, "bad", {entry});
        record.built_at = built_at;
        if (built_at == 1) EXPECT_TRUE(state.commit("bad", record));
        if (built_at == 1) record = stage(state, "bad", {"192.0.2.99"});
        record.built_at = built_at + 1;
        std::filesystem::remove(path + "/sets");
        std::filesystem::rename(path + "/away", path + "/sets");
        return record;
    };
    const SetRecord second = staged_there("192.0.2.1", 1);
    state.mend();
    EXPECT_TRUE(state.trouble()) << "something is staged there";
    EXPECT_TRUE(std::filesystem::exists(path + "/sets/bad/record.json"));
    EXPECT_FALSE(std::filesystem::exists(spare + "/sets/bad/record.json"));
    ASSERT_TRUE(state.commit("bad", second));
    EXPECT_EQ(state.read("bad", remark())->identity, second.identity);
    state.mend();
    EXPECT_FALSE(state.trouble()) << *state.trouble();
    const SetRecord third = staged_there("192.0.2.3", 3);
    ASSERT_TRUE(state.commit("bad", second)); // with another action
    ASSERT_TRUE(state.commit("bad", third));
    EXPECT_EQ(state.read("bad", remark())->identity, third.identity);
    state.mend();
    EXPECT_FALSE(state.trouble()) << *state.trouble();
    EXPECT_TRUE(std::filesystem::is_empty(spare + "/sets"));
    EXPECT_TRUE(remarks.empty()) << remarks[0];
}

// They may be large, and what is there comes home as a whole or not at all.
TEST_F(StateDirectoryTest, ASpareFolderTakesNoContentsOfSources) {
    const std::string spare = files.path("run") + "/spare";
    const StateDirectory state = open(spare);
    std::filesystem::remove_all(path + "/sets");
    std::ofstream(path + "/sets") << "in the way";
    const SetRecord bad = keep(state, "bad", {"192.0.2.1"});
    const UniqueFd content(::memfd_create("content", MFD_CLOEXEC));
    EXPECT_FALSE(state.keep_source("bad", bad.identity, bad.identity, content.get()));
    for (const auto& entry : std::filesystem::directory_iterator(spare + "/sets/bad"))
        EXPECT_EQ(entry.path().string().find(".source-"), std::string::npos) << entry.path();
}

// The newer one of two records counts, whichever folder it is in.
TEST_F(StateDirectoryTest, AnOlderRecordInTheSpareFolderCountsForNothing) {
    const std::string spare = files.path("run") + "/spare";
    const auto write = [&](const std::string& root, std::int64_t built_at) {
        const StateDirectory other = StateDirectory::open(root, std::chrono::milliseconds(0), {}).value();
        SetRecord record = keep(other, "bad", {"192.0.2." + std::to_string(built_at)});
        record.built_at = built_at;
        EXPECT_TRUE(other.commit("bad", record));
        return record.identity;
    };
    const std::string older = write(path, 1);
    const std::string newer = write(spare, 2);
    EXPECT_EQ(open(spare).read("bad", remark())->identity, newer);
    const std::string newest = write(path, 3);
    const StateDirectory state = open(spare);
    EXPECT_EQ(state.read("bad", remark())->identity, newest);
    state.mend();
    EXPECT_EQ(state.read("bad", remark())->identity, newest);
    EXPECT_FALSE(std::filesystem::exists(spare + "/sets/bad"));
}

TEST_F(StateDirectoryTest, AForeignFolderIsRefused) {
    std::filesystem::create_directory(path);
    std::ofstream(path + "/mail") << "dear";
    EXPECT_FALSE(StateDirectory::open(path, std::chrono::milliseconds(0), {}));
    EXPECT_FALSE(std::filesystem::exists(path + "/version"));
}

TEST_F(StateDirectoryTest, AFolderThatOthersMayWriteToIsRefused) {
    static_cast<void>(open());
    ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
    expect_error(StateDirectory::open(path, std::chrono::milliseconds(0), {}), ErrorKind::bad_input);
}

TEST_F(StateDirectoryTest, TwoCannotWriteAtOnce) {
    std::optional<StateDirectory> first = open();
    std::string holder;
    const auto second = StateDirectory::open(path, std::chrono::milliseconds(10),
                                             [&](const std::string& text) { holder = text; });
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, ErrorKind::busy);
    EXPECT_EQ(holder, "process " + std::to_string(::getpid()));
    static_cast<void>(StateDirectory::look(path)); // but read
    first.reset();
    EXPECT_TRUE(StateDirectory::open(path, std::chrono::milliseconds(10), {}));
}

TEST_F(StateDirectoryTest, LookingMakesNothing) {
    const StateDirectory state = StateDirectory::look(path);
    EXPECT_FALSE(state.read("bad", remark()));
    EXPECT_TRUE(state.hooks(remark()).value().empty());
    EXPECT_FALSE(std::filesystem::exists(path));
}

// Nobody may take the record for empty because descriptors ran out.
TEST_F(StateDirectoryTest, ARecordOfHooksThatCannotBeReadNowIsNotEmpty) {
    const StateDirectory state = open();
    ASSERT_TRUE(state.keep_hooks({{"eth0", kernel::HookPoint::xdp, 40}}));
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    const auto hooks = state.hooks(remark());
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    expect_error(hooks, ErrorKind::kernel_refused);
}

TEST_F(StateDirectoryTest, HooksOfAnotherBootAreNone) {
    const StateDirectory state = open();
    const auto one = [](const std::string& more) {
        return R"([{"interface": "eth0", "hook": "xdp", "program_id": 41)" + more + "}]";
    };
    std::ofstream(path + "/hooks.json") << one(R"(, "boot": "another")");
    EXPECT_TRUE(state.hooks(remark()).value().empty());
    std::ofstream(path + "/hooks.json") << one(""); // of an earlier release
    EXPECT_EQ(state.hooks(remark()).value().size(), 1U);
    EXPECT_TRUE(remarks.empty());
}

TEST_F(StateDirectoryTest, RemembersHooksAndForgetsSets) {
    const StateDirectory state = open();
    const std::vector<ManagedHook> hooks{{"eth0", kernel::HookPoint::xdp, 40},
                                         {"eth1", kernel::HookPoint::egress, 41}};
    ASSERT_TRUE(state.keep_hooks(hooks));
    EXPECT_EQ(state.hooks(remark()).value(), hooks);
    std::ofstream(path + "/hooks.json") << "[{\"interface\": 7}]";
    EXPECT_TRUE(state.hooks(remark()).value().empty());
    ASSERT_EQ(remarks.size(), 1U);
    expect_says(remarks[0]);
    keep(state, "bad", {"192.0.2.1"});
    keep(state, "old", {"192.0.2.1"});
    state.forget_all_but({"bad"});
    EXPECT_TRUE(state.read("bad", remark()));
    EXPECT_FALSE(std::filesystem::exists(path + "/sets/old"));
}

} // namespace
} // namespace sieve::service
