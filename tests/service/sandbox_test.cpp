// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Whole refreshes: the result of a good list, and the harm that a hostile list can do.
#include "libsieve/service/sources/sandbox.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <csignal>

#include "libsieve/control/spec/source.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "service/servers.hpp"
#include "service/support.hpp"

namespace sieve::service {
namespace {

using namespace test;

#define EXPECT_SAYS(text, part) EXPECT_PRED_FORMAT2(testing::IsSubstring, part, text)

// A refresh as a set's: its lists are read, and what is new is built.
struct Request : ReadRequest {
    bool exact = false;
};
struct Built : BuiltList {
    ReadList read;
};

template <class... Origins>
Request request_of(Origins... origins) {
    Request request;
    request.set = "bad";
    (request.origins.emplace_back(std::move(origins)), ...);
    request.feed.build.trials = 1000;
    request.feed.build.threads = 2;
    request.sandbox = quick_settings();
    return request;
}

// Nothing: unchanged.
tl::expected<std::optional<Built>, GatherFailure> refresh(const Request& request) {
    auto read = read_in_sandbox(request);
    if (!read) return tl::unexpected(std::move(read.error()));
    auto* list = std::get_if<ReadList>(&*read);
    if (list == nullptr) return std::optional<Built>();
    auto built = build_in_sandbox({request.set, request.feed, request.exact, request.sandbox}, *list);
    if (!built) return tl::unexpected(GatherFailure{std::move(built.error()), {}});
    return Built{std::move(*built), std::move(*list)};
}

// The result of a refresh. Without a result, the test fails.
Built built(const Request& request) {
    auto done = refresh(request);
    if (!done) throw std::runtime_error(done.error().error.message);
    if (!*done) throw std::runtime_error("unchanged");
    return std::move(**done);
}
bool unchanged(const Request& request) {
    const auto done = refresh(request);
    if (!done) throw std::runtime_error(done.error().error.message);
    return !*done;
}
Error error_of(const Request& request) {
    auto done = refresh(request);
    return done ? Error{ErrorKind::no, "succeeded", {}} : done.error().error;
}
bool holds(const Image& image, const std::string& key) {
    return image.contains(*parse_key(key, image.lookup().fields));
}
std::string addresses(std::uint32_t count) {
    std::string text;
    for (std::uint32_t i = 0; i < count; i++)
        text += "10." + std::to_string(i >> 16) + "." + std::to_string(i >> 8 & 255) + "." +
                std::to_string(i & 255) + "\n";
    return text;
}

TEST(Sandbox, AListBecomesAnImage) {
    const Folder folder;
    Request request = request_of(FileOrigin{folder.write("a.txt", addresses(5000))},
                                 FileOrigin{folder.write("b.txt", "192.0.2.1\n2001:db8::1\n10.0.0.0\n")});
    request.feed.build.kind.kind = SIEVE_KIND_DLEFT64;
    request.feed.build.bits_per_key = 24;
    request.exact = true;
    const Built list = built(request);
    EXPECT_EQ(list.image.lookup().kind, SIEVE_KIND_DLEFT64);
    EXPECT_EQ(list.image.file().keys, 5002U);
    for (const char* key : {"10.0.0.0", "10.0.19.135", "192.0.2.1", "2001:db8::1"})
        EXPECT_TRUE(holds(list.image, key)) << key;
    const std::string parent = std::filesystem::path(folder.path("a.txt")).parent_path().filename();
    EXPECT_EQ(reinterpret_cast<const char*>(list.image.file().label), parent + "/a.txt " + parent + "/b.txt");
    EXPECT_EQ(list.exact.size(), 5002U);
    ASSERT_TRUE(list.read.list);
    EXPECT_EQ(list.read.list->keys.size(), 5003U);
    EXPECT_EQ(list.read.known.sources.size(), 2U);
    EXPECT_EQ(list.read.known.sources[1].bytes, 31U);
}

TEST(Sandbox, PrefixesAndSkippedLines) {
    Request request = request_of();
    const UniqueFd file = memory_file("192.0.2.0/24\nnonsense\n198.51.100.7\n");
    request.origins.assign(1, OpenOrigin{file.get(), "lists/net\n.txt"});
    EXPECT_SAYS(error_of(request).message, "set bad: lists/net\\x0a.txt:2: ");
    request.feed.skip_invalid = true;
    request.exact = true;
    request.feed.build.kind.kind = SIEVE_KIND_BLOCKED; // an exact kind has nothing to verify
    const Built list = built(request);
    EXPECT_TRUE(holds(list.image, "192.0.2.77"));
    EXPECT_FALSE(holds(list.image, "192.0.3.1"));
    EXPECT_EQ(list.image.file().skipped, 1U);
    EXPECT_EQ(list.read.list->ranges.size(), 1U);
    EXPECT_EQ(list.exact.size(), list.image.file().keys);
    ASSERT_EQ(list.read.remarks.size(), 2U);
    EXPECT_SAYS(list.read.remarks[0], "1 malformed line was skipped");
}

TEST(Sandbox, NothingNewIsUnchanged) {
    const Folder folder;
    Request request = request_of(FileOrigin{folder.write("a.txt", "192.0.2.1\n192.0.2.2\n")});
    std::vector<ChildRole> children;
    request.sandbox.started = [&](ChildRole role, pid_t) { children.push_back(role); };
    request.known = built(request).read.known;
    EXPECT_EQ(children.size(), 2U);
    EXPECT_TRUE(unchanged(request));
    EXPECT_EQ(children.size(), 2U) << "no child for what is known";
    // Different bytes, but the same list.
    folder.write("a.txt", "# new today\n192.0.2.2\n192.0.2.1\n");
    EXPECT_TRUE(unchanged(request));
    EXPECT_EQ(children.size(), 3U);
    folder.write("a.txt", "192.0.2.1\n192.0.2.3\n");
    EXPECT_FALSE(unchanged(request));
    // A list that has gone is a change, too.
    folder.write("a.txt", "192.0.2.1\n192.0.2.2\n");
    request.origins.push_back(FileOrigin{folder.write("b.txt", "192.0.2.9\n")});
    EXPECT_FALSE(unchanged(request));
}

TEST(Sandbox, WhatAServerDidNotSendAgainIsBuiltIn) {
    const Folder folder;
    std::atomic<int> asked = 0;
    const ScriptedServer server([&](int connection, const std::string& head) {
        ++asked;
        send_all(connection, head.find("If-None-Match: \"1\"") != std::string::npos
                                 ? "HTTP/1.1 304 Not Modified\r\n\r\n"
                                 : "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 10\r\n\r\n192.0.2.1\n");
    });
    Request request =
        request_of(HttpOrigin{server.url()}, FileOrigin{folder.write("own.txt", "192.0.2.2\n")});
    request.known = built(request).read.known;
    EXPECT_EQ(asked, 1);
    EXPECT_TRUE(unchanged(request));
    EXPECT_EQ(asked, 2);
    folder.write("own.txt", "192.0.2.3\n");
    const Built list = built(request);
    for (const char* key : {"192.0.2.1", "192.0.2.3"}) EXPECT_TRUE(holds(list.image, key)) << key;
    EXPECT_EQ(list.read.known.sources[0].etag, "\"1\"");
}

TEST(Sandbox, PackedListsAreUnpackedThere) {
    const Folder folder;
    folder.write("list.txt", "192.0.2.1\n192.0.2.2");
    folder.write("more.txt", "192.0.2.3\n");
    folder.shell(
        "gzip -k list.txt && zstd -q list.txt && xz -k list.txt && zip -q both.zip list.txt more.txt");
    for (const char* name : {"list.txt.gz", "list.txt.zst", "list.txt.xz", "both.zip"}) {
        // The content decides, whatever the name.
        std::filesystem::rename(folder.path(name), folder.path("feed"));
        const Built list = built(request_of(FileOrigin{folder.path("feed")}));
        EXPECT_TRUE(holds(list.image, "192.0.2.2")) << name;
        EXPECT_EQ(holds(list.image, "192.0.2.3"), std::string(name) == "both.zip");
    }
    folder.shell("head -c 100000000 /dev/zero | tr '\\0' '\\n' | gzip >bomb.gz");
    Request request = request_of(FileOrigin{folder.path("bomb.gz")});
    request.sandbox.limits.unpacked_bytes = 1000000;
    EXPECT_SAYS(error_of(request).message, "bomb.gz: unpacks to more than 1000000 bytes, the limit");
    request.sandbox.limits.unpacked_bytes = 1000000000;
    EXPECT_SAYS(error_of(request).message, "unpack to more than 500 times as many");
    folder.shell("gzip -c list.txt | head -c 20 >cut.gz");
    EXPECT_SAYS(error_of(request_of(FileOrigin{folder.path("cut.gz")})).message,
                "cut.gz: damaged or cut short: gzip");
}

TEST(Sandbox, AnImageIsCheckedThereAndHere) {
    const Folder folder;
    Request request = request_of(FileOrigin{folder.write("a.txt", "192.0.2.1\n")});
    request.feed.build.kind.kind = SIEVE_KIND_XORSAT; // an exact kind has nothing to verify
    Built first = built(request);
    ASSERT_TRUE(first.image.save(folder.path("a.sieve")));
    request.origins.assign(1, FileOrigin{folder.path("a.sieve")});
    EXPECT_TRUE(holds(built(request).image, "192.0.2.1"));
    request.feed.fields = SIEVE_FIELD_DST;
    EXPECT_SAYS(error_of(request).message, "a.sieve: an image of src, expected dst");
    std::string bytes = folder.read("a.sieve");
    bytes[bytes.size() / 2] ^= 1;
    folder.write("a.sieve", bytes);
    EXPECT_SAYS(error_of(request).message, "a.sieve");
    bytes[bytes.size() / 2] ^= 1;
    folder.write("a.sieve", bytes);
    request.feed.fields = SIEVE_FIELD_SRC;
    request.exact = true;
    EXPECT_EQ(error_of(request).kind, ErrorKind::needs_feed);
}

TEST(Sandbox, APageIsNoList) {
    const UniqueFd file = memory_file("\n  <!DOCTYPE html><title>Sign in</title>\n");
    EXPECT_SAYS(error_of(request_of(OpenOrigin{file.get(), "list"})).message,
                "set bad: list: found an HTML page, expected a list");
    const UniqueFd good = memory_file("192.0.2.1\n");
    EXPECT_SAYS(error_of(request_of(OpenOrigin{good.get(), "good"}, OpenOrigin{file.get(), "page"})).message,
                "set bad: page: found an HTML page");
}

TEST(Sandbox, OnlyRegularFilesAreFiles) {
    const Folder folder;
    folder.shell("mkfifo pipe");
    EXPECT_SAYS(error_of(request_of(FileOrigin{folder.path("pipe")})).message, "expected a regular file");
    EXPECT_SAYS(error_of(request_of(FileOrigin{folder.path("")})).message, "is a directory");
    EXPECT_SAYS(error_of(request_of(FileOrigin{folder.path("none")})).message, "No such file");
    EXPECT_SAYS(error_of(request_of(HttpOrigin{"ftp://h/list"})).message, "expected an http or https URL");
    EXPECT_EQ(error_of(request_of()).kind, ErrorKind::invalid_request);
}

// A builder that waits for its list, which comes through a pipe.
class HeldUp : public testing::Test {
  protected:
    HeldUp() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
        reading_ = UniqueFd(ends[0]);
        writing_ = UniqueFd(ends[1]);
        request_ = request_of(OpenOrigin{reading_.get(), "a list"});
        request_.sandbox.started = [this](ChildRole, pid_t pid) { child_ = pid; };
    }
    // The child is confined and is in read(2) of its list's pipe. It reads other things before.
    [[nodiscard]] bool waits_for_its_list() const {
        if (child_ == 0 || status_of(child_, "Seccomp") != "2") return false;
        const std::string process = "/proc/" + std::to_string(child_);
        long call = -1;
        std::string descriptor;
        // The file says "running" while the child is in no call.
        if (!(std::ifstream(process + "/syscall") >> call >> descriptor) || call != SYS_read) return false;
        struct stat read_from {};
        struct stat list {};
        const std::string link = process + "/fd/" + std::to_string(std::stoul(descriptor, nullptr, 16));
        return ::stat(link.c_str(), &read_from) == 0 && ::fstat(reading_.get(), &list) == 0 &&
               read_from.st_ino == list.st_ino && read_from.st_dev == list.st_dev;
    }
    // Acts on the child while it waits for its list; returns the refresh's error.
    Error error_after(const std::function<void(pid_t)>& what) {
        std::thread other([&] {
            if (await([&] { return waits_for_its_list(); })) what(child_);
        });
        Error error = error_of(request_);
        other.join();
        return error;
    }

    UniqueFd reading_;
    UniqueFd writing_;
    Request request_;
    std::atomic<pid_t> child_ = 0;
};

TEST_F(HeldUp, HasNoRights) {
    std::string sets;
    std::string rest;
    const Error error = error_after([&](pid_t pid) {
        for (const char* name : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
            sets += status_of(pid, name);
        rest = status_of(pid, "NoNewPrivs") + " " + status_of(pid, "Uid") + " " + status_of(pid, "Groups");
        writing_ = UniqueFd(); // an empty list
    });
    EXPECT_EQ(sets, std::string(5 * 16, '0'));
    EXPECT_EQ(rest, "1 65534\t65534\t65534\t65534 ");
    EXPECT_EQ(error.kind, ErrorKind::bad_input);
}

TEST_F(HeldUp, CrashesAlone) {
    const Error error = error_after([](pid_t pid) { ::kill(pid, SIGSEGV); });
    EXPECT_EQ(error.message, "set bad: building was ended by signal 11 (SIGSEGV) while reading a list");
}

TEST_F(HeldUp, IsEndedAfterItsTime) {
    request_.sandbox.limits.build = std::chrono::milliseconds(800);
    // On a busy machine the child may not have come to its list yet.
    EXPECT_SAYS(error_of(request_).message, "set bad: building took longer than 0.8 s and was ended");
    EXPECT_NE(::kill(child_, 0), 0);
}

TEST_F(HeldUp, CanBeCalledOff) {
    const UniqueFd cancel(::eventfd(0, EFD_CLOEXEC));
    request_.sandbox.cancel = cancel.get();
    const Error error = error_after([&](pid_t) { (void)::eventfd_write(cancel.get(), 1); });
    EXPECT_EQ(error.message,
              "set bad: building was ended because the refresh was called off while reading a list");
}

TEST(Sandbox, ProcessorTimeHasALimit) {
    // One endless line, which takes no memory.
    const UniqueFd endless(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
    Request request = request_of(OpenOrigin{endless.get(), "endless"});
    request.feed.skip_invalid = true;
    request.sandbox.limits.processor = std::chrono::seconds(1);
    EXPECT_EQ(error_of(request).message,
              "set bad: building used more than 1 s of processor time and was ended "
              "while reading the lists");
}

TEST(Sandbox, MemoryHasALimit) {
    const UniqueFd file = memory_file(addresses(2'000'000));
    Request request = request_of(OpenOrigin{file.get(), "large"});
    request.feed.build.kind.kind = SIEVE_KIND_XORSAT; // an exact kind takes less
    request.sandbox.limits.memory_bytes = std::uint64_t{40} << 20;
    const Error error = error_of(request);
    EXPECT_EQ(error.kind, ErrorKind::out_of_memory) << error.message;
    EXPECT_SAYS(error.message, "set bad: building needs more memory than its limit of 40 MiB");
    request.sandbox.limits.memory_bytes = std::uint64_t{1} << 30;
    EXPECT_EQ(built(request).image.file().keys, 2'000'000U);
}

TEST(Sandbox, ALargeImageHasALimit) {
    const UniqueFd file = memory_file(addresses(100'000));
    Request request = request_of(OpenOrigin{file.get(), "large"});
    request.sandbox.limits.image_bytes = request.sandbox.limits.unpacked_bytes = 100'000;
    EXPECT_SAYS(error_of(request).message, "set bad: building wrote more than its limit and was ended");
}

TEST(Sandbox, SixteenThreadsFitIntoModestMemory) {
    const UniqueFd file = memory_file(addresses(200'000));
    Request request = request_of(OpenOrigin{file.get(), "list"});
    request.feed.build.threads = 16;
    request.sandbox.limits.memory_bytes = std::uint64_t{512} << 20;
    EXPECT_EQ(built(request).image.file().keys, 200'000U);
}

} // namespace
} // namespace sieve::service
