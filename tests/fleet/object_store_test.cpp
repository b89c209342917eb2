// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Blobs in a real nginx: uploads, downloads that go on where they were, and blobs that are not what they
// should be.
#include "libsieve/fleet/servers/object_store.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mount.h>

#include <fstream>
#include <thread>

#include "fleet/servers.hpp"
#include "libsieve/fleet/servers/sha256.hpp"

namespace sieve::fleet::test {
namespace {

using service::test::memory_file;

std::string random_bytes(std::size_t size) {
    std::string bytes(size, '\0');
    std::ifstream("/dev/urandom", std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(size));
    return bytes;
}

Blob blob_of(const std::string& bytes) {
    return {sha256_of(bytes), bytes.size()};
}

class ObjectStoreTest : public testing::Test {
  protected:
    // The lines of the log since the last call.
    std::string said() {
        // nginx writes a line after its answer.
        std::string log;
        await([&] {
            log = store_.log().substr(seen_);
            return !log.empty();
        });
        seen_ += log.size();
        return log;
    }

    Store store_;
    Folder folder_;
    std::size_t seen_ = 0;
};

TEST_F(ObjectStoreTest, StoresABlobOnce) {
    const std::string bytes = random_bytes(300'000);
    const Blob blob = blob_of(bytes);
    ObjectStore store(store_.settings());
    const UniqueFd file = memory_file(bytes);
    auto put = store.put(blob, file.get());
    ASSERT_TRUE(put) << put.error().message;
    EXPECT_EQ(*put, Uploaded::sent);
    EXPECT_EQ(store_.stored(blob.digest), bytes);
    put = store.put(blob, file.get());
    ASSERT_TRUE(put) << put.error().message;
    EXPECT_EQ(*put, Uploaded::there_already);
    // What was cut short, or damaged and is sent again, is whole afterwards.
    store_.put(blob.digest, bytes.substr(0, 1000));
    put = store.put(blob, file.get());
    ASSERT_TRUE(put) << put.error().message;
    EXPECT_EQ(*put, Uploaded::sent);
    EXPECT_EQ(store_.stored(blob.digest), bytes);
    store_.put(blob.digest, std::string(bytes.size(), 'x'));
    put = store.put(blob, file.get(), true);
    ASSERT_TRUE(put) << put.error().message;
    EXPECT_EQ(store_.stored(blob.digest), bytes);
}

TEST_F(ObjectStoreTest, BringsABlob) {
    const std::string bytes = random_bytes(300'000);
    const Blob blob = blob_of(bytes);
    store_.put(blob.digest, bytes);
    ObjectStore store(store_.settings());
    const Status got = store.get(blob, folder_.path("blob"));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(folder_.read("blob"), bytes);
    EXPECT_EQ(std::filesystem::status(folder_.path("blob")).permissions(), std::filesystem::perms(0600));
    EXPECT_FALSE(std::filesystem::exists(folder_.path("blob.part")));
    EXPECT_EQ(store.received(), bytes.size());
}

TEST_F(ObjectStoreTest, GoesOnWhereItWas) {
    const std::string bytes = random_bytes(300'000);
    const Blob blob = blob_of(bytes);
    store_.put(blob.digest, bytes);
    folder_.write("blob.part", bytes.substr(0, 123'456));
    ObjectStore store(store_.settings());
    Status got = store.get(blob, folder_.path("blob"));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(folder_.read("blob"), bytes);
    EXPECT_NE(said().find(" 206 " + std::to_string(bytes.size() - 123'456)), std::string::npos);
    // All of it is there already; and a server without ranges.
    folder_.write("all.part", bytes);
    got = store.get(blob, folder_.path("all"));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(folder_.read("all"), bytes);
    folder_.write("whole.part", bytes.substr(0, 1000));
    ObjectStore whole(store_.settings("/whole"));
    got = whole.get(blob, folder_.path("whole"));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(folder_.read("whole"), bytes);
    EXPECT_NE(said().find(" 200 "), std::string::npos);
}

TEST_F(ObjectStoreTest, GoesOnAfterTheServerWasKilled) {
    const std::string bytes = random_bytes(400'000);
    const Blob blob = blob_of(bytes);
    store_.put(blob.digest, bytes);
    ObjectStore store(store_.settings("/slow"));
    Status first;
    std::thread download([&] { first = store.get(blob, folder_.path("blob")); });
    EXPECT_TRUE(await([&] { return folder_.read("blob.part").size() > 50'000; }));
    store_.kill();
    download.join();
    ASSERT_FALSE(first);
    EXPECT_FALSE(std::filesystem::exists(folder_.path("blob")));
    const std::size_t had = folder_.read("blob.part").size();
    EXPECT_GT(had, 50'000U);
    EXPECT_LT(had, bytes.size());
    store_.start();
    const Status second = ObjectStore(store_.settings()).get(blob, folder_.path("blob"));
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_EQ(folder_.read("blob"), bytes);
    EXPECT_NE(said().find(" 206 " + std::to_string(bytes.size() - had)), std::string::npos);
}

TEST_F(ObjectStoreTest, RefusesAnythingElse) {
    const std::string bytes = random_bytes(50'000);
    const Blob blob = blob_of(bytes);
    ObjectStore store(store_.settings());
    const auto refused = [&](const std::string& stored, const std::string& why) {
        store_.put(blob.digest, stored);
        const Status got = store.get(blob, folder_.path("blob"));
        ASSERT_FALSE(got) << why;
        EXPECT_EQ(got.error().kind, ErrorKind::bad_input);
        EXPECT_NE(got.error().message.find(why), std::string::npos) << got.error().message;
        EXPECT_FALSE(std::filesystem::exists(folder_.path("blob")));
    };
    std::string altered = bytes;
    altered[40'000] = static_cast<char>(altered[40'000] ^ 1);
    refused(altered, "expected " + blob.digest);
    EXPECT_FALSE(std::filesystem::exists(folder_.path("blob.part"))) << "bytes of a corrupt blob were kept";
    refused(bytes.substr(0, 49'999), "expected " + blob.digest);
    refused(bytes + "x", "larger than 50000 bytes");
    std::filesystem::remove(folder_.path("blob.part"));
    const Blob missing = blob_of("nothing");
    const Status none = store.get(missing, folder_.path("none"));
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().message.find("answered 404"), std::string::npos) << none.error().message;
    const Status closed = ObjectStore(store_.settings("/closed")).get(blob, folder_.path("blob"));
    ASSERT_FALSE(closed);
    EXPECT_NE(closed.error().message.find("answered 503"), std::string::npos) << closed.error().message;
    // It heals by itself.
    store_.put(blob.digest, bytes);
    const Status got = store.get(blob, folder_.path("blob"));
    EXPECT_TRUE(got) << got.error().message;
}

TEST_F(ObjectStoreTest, SurvivesAFullDisk) {
    const std::string bytes = random_bytes(400'000);
    const Blob blob = blob_of(bytes);
    store_.put(blob.digest, bytes);
    std::filesystem::create_directory(folder_.path("small"));
    ASSERT_EQ(::mount("none", folder_.path("small").c_str(), "tmpfs", 0, "size=256k"), 0)
        << errno_text(errno);
    ObjectStore store(store_.settings());
    const Status full = store.get(blob, folder_.path("small/blob"));
    EXPECT_FALSE(full);
    EXPECT_NE((full ? std::string() : full.error().message).find("No space left"), std::string::npos);
    EXPECT_EQ(::mount("none", folder_.path("small").c_str(), "tmpfs", MS_REMOUNT, "size=1m"), 0);
    const Status got = store.get(blob, folder_.path("small/blob"));
    EXPECT_TRUE(got) << got.error().message;
    EXPECT_EQ(folder_.read("small/blob"), bytes);
    ::umount2(folder_.path("small").c_str(), MNT_DETACH);
}

// Time enters the rate alone: at this rate the blob takes at least so long, on the slowest machine, too.
TEST_F(ObjectStoreTest, KeepsToTheRate) {
    const std::string bytes = random_bytes(300'000);
    const Blob blob = blob_of(bytes);
    store_.put(blob.digest, bytes);
    StoreSettings settings = store_.settings();
    settings.rate = 300'000;
    ObjectStore store(settings);
    const auto began = std::chrono::steady_clock::now();
    const Status got = store.get(blob, folder_.path("blob"));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_GT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(500));
}

TEST_F(ObjectStoreTest, NeedsTheRightCertificates) {
    const std::string bytes = random_bytes(1000);
    const Blob blob = blob_of(bytes);
    const UniqueFd file = memory_file(bytes);
    const auto put = ObjectStore(store_.tls_settings()).put(blob, file.get());
    EXPECT_TRUE(put) << put.error().message;
    EXPECT_EQ(store_.stored(blob.digest), bytes);
    StoreSettings stranger = store_.tls_settings();
    stranger.access.server.certificate.clear();
    stranger.access.server.key.clear();
    EXPECT_FALSE(ObjectStore(stranger).get(blob, folder_.path("blob")));
    StoreSettings trusting = store_.tls_settings();
    trusting.access.server.authorities.clear();
    EXPECT_FALSE(ObjectStore(trusting).get(blob, folder_.path("blob")));
    EXPECT_TRUE(ObjectStore(store_.tls_settings()).get(blob, folder_.path("blob")));
}

TEST_F(ObjectStoreTest, IsGivenUpAtOnce) {
    const std::string bytes = random_bytes(400'000);
    const Blob blob = blob_of(bytes);
    store_.put(blob.digest, bytes);
    const UniqueFd cancel(::eventfd(0, EFD_CLOEXEC));
    ObjectStore store(store_.settings("/slow"), cancel.get());
    Status got;
    std::thread download([&] { got = store.get(blob, folder_.path("blob")); });
    EXPECT_TRUE(await([&] { return folder_.read("blob.part").size() > 10'000; }));
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(cancel.get(), &one, sizeof(one)), 8);
    download.join();
    ASSERT_FALSE(got);
    EXPECT_NE(got.error().message.find("given up"), std::string::npos) << got.error().message;
    EXPECT_LT(folder_.read("blob.part").size(), bytes.size());
}

} // namespace
} // namespace sieve::fleet::test
