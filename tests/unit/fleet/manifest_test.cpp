// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/manifest.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libsieve/fleet/manifest/acceptance.hpp"
#include "libsieve/fleet/servers/sha256.hpp"
#include "unit/fleet/sample_manifest.hpp"
#include "unit/messages.hpp"

namespace sieve::fleet {
namespace {

using nlohmann::json;

TEST(Sha256, KnowsItsVectors) {
    // FIPS 180-2, appendix B.
    EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_FALSE(is_sha256("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"));
}

TEST(Base64, IsTakenInOneFormOnly) {
    // RFC 4648, section 10.
    EXPECT_EQ(to_base64("fooba"), "Zm9vYmE=");
    EXPECT_EQ(to_base64(""), "");
    EXPECT_EQ(from_base64("Zm9vYg=="), "foob");
    EXPECT_EQ(from_base64(""), "");
    for (const char* wrong :
         {"Zm9vYg=", "Zm9vYh==", " Zm9vYg==", "Zm9=Yg==", "Zm9vYg==\n", "====", "Zm9v\x80mE="})
        EXPECT_FALSE(from_base64(wrong)) << wrong;
}

TEST(ManifestText, ReadsBackWhatItWrote) {
    const Manifest manifest = some_manifest();
    const Result<Manifest> read = parse_manifest(manifest_text(manifest));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, manifest);
    // The bytes are a contract: another text would be another digest.
    Manifest tiny;
    tiny.fleet = "edge";
    tiny.serial = 7;
    tiny.sets = {{.name = "bad", .digest = std::string(64, 'a'), .bytes = 64, .entries = 1, .rate = 1e-5}};
    EXPECT_EQ(manifest_text(tiny),
              R"({"fleet":"edge","previous":"","rollout":{"most_jump_permille":50,"on_failure":"halt",)"
              R"("soak_seconds":30,"stages":[{"label":"","permille":1000}]},"rolls_back":"","serial":7,)"
              R"("sets":[{"action":"","as":"image","bytes":64,"digest":")" +
                  std::string(64, 'a') +
                  R"(","entries":1,"identity":"","name":"bad","rate":1e-05}],"version":1})")
        << "of an older version";
    tiny.published_at = 1'700'000'000;
    tiny.valid_until = 1'700'000'060;
    EXPECT_EQ(manifest_text(tiny),
              R"({"fleet":"edge","previous":"","published_at":1700000000,"rollout":{"most_jump_permille":50,)"
              R"("on_failure":"halt","soak_seconds":30,"stages":[{"label":"","permille":1000}]},)"
              R"("rolls_back":"","serial":7,"sets":[{"action":"","as":"image","bytes":64,"digest":")" +
                  std::string(64, 'a') +
                  R"(","entries":1,"identity":"","name":"bad","rate":1e-05}],"valid_until":1700000060,)"
                  R"("version":2})");
}

// One field of a right manifest made wrong, and what is said of it.
struct Wrong {
    const char* path;
    json value;
    const char* message;
};

TEST(ManifestText, NamesWhatIsWrong) {
    const std::vector<Wrong> all = {
        {"/version", 3, "version: expected a whole number from 1 to 2"},
        {"/version", 1, "expected its canonical text"},
        {"/published_at", 0, "published_at: expected a whole number from 1"},
        {"/published_at", ~std::uint64_t{0}, "published_at: expected"},
        {"/valid_until", 1'700'000'000, "valid_until: expected a whole number from 1700000001"},
        {"/valid_until", ~std::uint64_t{0}, "valid_until: expected"},
        {"/fleet", "a/b", "fleet: expected a fleet's name"},
        {"/fleet", 3, "fleet: expected"},
        {"/serial", 0, "serial: expected a whole number from 1"},
        {"/serial", -1, "serial: expected"},
        {"/serial", 1.5, "serial: expected"},
        {"/previous", "abc", "previous: expected a SHA-256"},
        {"/rolls_back", "abc", "rolls_back: expected a SHA-256"},
        {"/sets", json::array(), "sets: expected 1 to 16 elements"},
        {"/sets/0", 5, "sets[0]: expected an object"},
        {"/sets/0/name", "../x", "sets[0].name: expected a set's name"},
        {"/sets/0/name", "worse", "sets: expected different names in rising order"},
        {"/sets/0/name", "z", "sets: expected different names in rising order"},
        {"/sets/0/as", "film", "sets[0].as: expected \"image\" or \"feed\""},
        {"/sets/0/digest", "../../etc/passwd", "sets[0].digest: expected a SHA-256"},
        {"/sets/0/bytes", 0, "sets[0].bytes: expected"},
        {"/sets/0/rate", 2.0, "sets[0].rate: expected a rate from 0 to 1"},
        {"/sets/0/identity", "xyz", "sets[0].identity: expected"},
        {"/sets/0/action", "burn", "sets[0].action: expected"},
        {"/rollout/stages", json::array(), "rollout.stages: expected 1 to 16 elements"},
        {"/rollout/stages/0/permille", 0,
         "rollout.stages[0].permille: expected a whole number from 1 to 1000"},
        {"/rollout/stages/2/permille", 999, "expected a last stage of all nodes"},
        {"/rollout/stages/2/label", "x", "expected a last stage of all nodes"},
        {"/rollout/on_failure", "cry", "rollout.on_failure: expected"},
        {"/more", 1, "expected its canonical text"},
    };
    for (const Wrong& wrong : all) {
        json value = json::parse(manifest_text(some_manifest()));
        value[json::json_pointer(wrong.path)] = wrong.value;
        const Result<Manifest> read = parse_manifest(value.dump());
        expect_error(read, ErrorKind::bad_input);
    }
    for (const char* name :
         {"fleet", "serial", "sets", "rollout", "previous", "version", "published_at", "valid_until"}) {
        json value = json::parse(manifest_text(some_manifest()));
        value.erase(name);
        EXPECT_FALSE(parse_manifest(value.dump())) << name;
    }
}

TEST(ManifestText, HasOneFormOnly) {
    const std::string text = manifest_text(some_manifest());
    ASSERT_TRUE(parse_manifest(text));
    EXPECT_FALSE(parse_manifest(" " + text));
    EXPECT_FALSE(parse_manifest(json::parse(text).dump(1)));
    EXPECT_FALSE(parse_manifest(text + "{}"));
    std::string twice = text; // a key that is there twice
    twice.insert(1, R"("fleet":"other",)");
    EXPECT_FALSE(parse_manifest(twice));
    std::string rate = text;
    rate.replace(rate.find("1.25e-05"), 8, "0.0000125");
    EXPECT_FALSE(parse_manifest(rate));
    for (std::size_t cut = 0; cut < text.size(); cut++)
        EXPECT_FALSE(parse_manifest(text.substr(0, cut))) << cut;
}

TEST(Envelope, OpensForPinnedKeysAlone) {
    const SigningKey key = new_key();
    const SigningKey other = new_key();
    std::vector<PublicKey> pinned;
    pinned.push_back(public_of(other));
    const Result<std::string> envelope = sign_manifest(some_manifest(), key);
    ASSERT_TRUE(envelope) << envelope.error().message;
    auto opened = open_envelope(*envelope, "edge", pinned);
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find(key.id()), std::string::npos) << opened.error().message;
    pinned.push_back(public_of(key));
    opened = open_envelope(*envelope, "edge", pinned);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->manifest, some_manifest());
    EXPECT_EQ(opened->digest, manifest_digest(some_manifest()));
    EXPECT_EQ(opened->signers, std::vector<std::string>{key.id()});
    opened = open_envelope(*envelope, "core", pinned);
    expect_error(opened, ErrorKind::bad_input);
}

TEST(Envelope, IsRefusedUnlessSigned) {
    const SigningKey key = new_key();
    std::vector<PublicKey> pinned;
    pinned.push_back(public_of(key));
    const json right = json::parse(*sign_manifest(some_manifest(), key));
    const auto refused = [&](const json& envelope) {
        const auto opened = open_envelope(envelope.dump(), "edge", pinned);
        ASSERT_FALSE(opened);
        std::string text = opened.error().message;
        if (const auto at = text.find(key.id()); at != std::string::npos)
            text.replace(at, key.id().size(), "KEY");
        expect_says(text);
    };
    json envelope = right;
    envelope["signatures"] = json::array();
    refused(envelope);
    envelope.erase("signatures");
    refused(envelope);
    // The manifest was altered, however little.
    const std::string text = right["manifest"];
    for (std::size_t at = 0; at < text.size(); at += 7) {
        envelope = right;
        std::string altered = text;
        altered[at] = altered[at] == 'x' ? 'y' : 'x';
        envelope["manifest"] = altered;
        refused(envelope);
    }
    // The signature was altered, or is one of the bare text.
    const std::string signature = *from_base64(right["signatures"][0]["signature"].get<std::string>());
    for (std::size_t at = 0; at < signature.size(); at++) {
        envelope = right;
        std::string altered = signature;
        altered[at] = static_cast<char>(altered[at] ^ 0x20);
        envelope["signatures"][0]["signature"] = to_base64(altered);
        refused(envelope);
    }
    envelope = right;
    envelope["signatures"][0]["signature"] = to_base64(*key.sign(text));
    refused(envelope);
    envelope["signatures"][0]["signature"] = "";
    refused(envelope);
    // A forger's signature under the pinned key's name.
    envelope["signatures"][0]["signature"] =
        to_base64(*new_key().sign(std::string(signature_context) + text));
    refused(envelope);
    for (const char* nonsense : {"", "x", "[]", "{}", "null", "{\"manifest\":1,\"signatures\":[]}"})
        EXPECT_FALSE(open_envelope(nonsense, "edge", pinned)) << nonsense;
}

constexpr std::uint64_t in_time = 1'700'000'000'000; // milliseconds: when some_manifest() was published
const std::vector<std::string> trusted = {"a", "b"};

SignedManifest published_by(const std::string& key) {
    return {some_manifest(), manifest_digest(some_manifest()), {key}};
}

TEST(Succession, RefusesWhatIsOlder) {
    const SignedManifest published = published_by("a");
    const std::uint64_t serial = published.manifest.serial;
    const auto check = [&](const AcceptedManifest& before) {
        return check_succession(published, before, trusted, in_time);
    };
    EXPECT_TRUE(check({.serial = serial, .digest = published.digest, .by_key = {{"a", serial}}}));
    EXPECT_TRUE(check({.serial = serial - 1, .digest = "other", .by_key = {{"a", serial - 1}}}));
    EXPECT_FALSE(check({.serial = serial, .digest = "other", .by_key = {{"a", serial}}}));
    EXPECT_FALSE(check({.serial = serial, .digest = "other"})) << "a record of an older version";
    const Status replayed = check({.serial = serial + 1, .digest = "other", .by_key = {{"b", serial + 1}}});
    ASSERT_FALSE(replayed);
    EXPECT_EQ(replayed.error().kind, ErrorKind::bad_input);
}

TEST(Succession, SerialsOfAKeyThatIsNotTrustedAnyMoreDoNotCount) {
    constexpr std::uint64_t last = ~std::uint64_t{0};
    const SignedManifest published = published_by("b");
    const AcceptedManifest before{.serial = last, .digest = "stolen", .by_key = {{"a", last}, {"b", 7}}};
    EXPECT_FALSE(check_succession(published, before, trusted, in_time));
    const std::vector<std::string> only_b = {"b"};
    EXPECT_TRUE(check_succession(published, before, only_b, in_time));
    const AcceptedManifest after = accepted_as(published, before);
    EXPECT_EQ(after.by_key.at("b"), published.manifest.serial);
    EXPECT_EQ(after.by_key.at("a"), last);
    SignedManifest older = published;
    older.manifest.serial--;
    older.digest = manifest_digest(older.manifest);
    EXPECT_FALSE(check_succession(older, after, only_b, in_time)) << "from here on, b's serials count";
    const std::vector<std::string> only_c = {"c"};
    EXPECT_TRUE(check_succession(published, before, only_c, in_time));
    EXPECT_FALSE(check_succession(published, before, only_c, in_time + 1000 * (standard_validity + 86401)))
        << "nothing that counts was accepted, so it must be valid now";
}

TEST(Succession, ANodeWithoutAnyTakesWhatIsValidNow) {
    const SignedManifest published = published_by("a");
    const auto at = [&](std::int64_t seconds) {
        return check_succession(published, std::nullopt, trusted,
                                in_time + static_cast<std::uint64_t>(1000 * seconds));
    };
    constexpr std::int64_t validity = standard_validity, tolerance = clock_tolerance;
    EXPECT_TRUE(at(0));
    EXPECT_TRUE(at(validity + tolerance));
    EXPECT_TRUE(at(-tolerance));
    for (const std::int64_t off : {validity + tolerance + 1, -tolerance - 1}) {
        const Status status = at(off);
        ASSERT_FALSE(status) << off;
        EXPECT_EQ(status.error().kind, ErrorKind::no);
    }
    SignedManifest timeless = published;
    timeless.manifest.published_at = timeless.manifest.valid_until = 0;
    EXPECT_FALSE(check_succession(timeless, std::nullopt, trusted, in_time));
    EXPECT_TRUE(check_succession(timeless, AcceptedManifest{.serial = 1, .digest = "x", .by_key = {{"a", 1}}},
                                 trusted, in_time))
        << "an older version's";
}

TEST(Succession, SerialsRise) {
    EXPECT_EQ(next_serial(1000, 0).value_or(0), 1000U);
    EXPECT_EQ(next_serial(1000, 1000).value_or(0), 1001U);
    EXPECT_EQ(next_serial(1000, 5000).value_or(0), 5001U) << "of a publisher whose clock is behind";
    constexpr std::uint64_t last = ~std::uint64_t{0};
    EXPECT_EQ(next_serial(1000, last - 1).value_or(0), last);
    EXPECT_FALSE(next_serial(1000, last)) << "none is higher";
}

} // namespace
} // namespace sieve::fleet
