// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/servers/object_store.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "libsieve/fleet/servers/blob_file.hpp"
#include "libsieve/service/download/url.hpp"

namespace sieve::fleet {

namespace {

constexpr long ok = 200;
constexpr long created = 201;
constexpr long no_content = 204;
constexpr long partial = 206;
constexpr long not_found = 404;
constexpr long forbidden = 403; // S3's answer for a blob that is not there, to those who may not list
constexpr long bad_range = 416;

// "bytes 100-199/200": whether the answer starts there.
bool starts_at(const std::string& content_range, std::uint64_t from) {
    return content_range.starts_with(fmt::format("bytes {}-", from));
}

} // namespace

ObjectStore::ObjectStore(StoreSettings settings, int cancel)
    : settings_(std::move(settings)), http_(settings_.access, cancel) {}

std::string ObjectStore::url_of(const Blob& blob) const {
    return settings_.url + "/" + (blob.name.empty() ? blob.digest : blob.name);
}

Result<Uploaded> ObjectStore::put(const Blob& blob, int file, bool again) {
    const std::string url = url_of(blob);
    if (!again) {
        requests_++;
        SIEVE_ASSIGN(const HttpReply there, http_.call({.method = "HEAD", .url = url}));
        if (there.status == ok && there.length == blob.bytes) return Uploaded::there_already;
        if (there.status != ok && there.status != not_found && there.status != forbidden)
            return bad_input(fmt::format("{}: the server answered {}, expected {} or {}",
                                         service::displayed_url(url), there.status, ok, not_found));
    }
    HttpCall call;
    call.method = "PUT";
    call.url = url;
    call.upload = file;
    call.upload_bytes = blob.bytes;
    call.rate = settings_.rate;
    call.timeout = std::chrono::milliseconds(0);
    call.silence = settings_.silence;
    if (!settings_.access.region.empty()) call.headers.push_back("x-amz-content-sha256: " + blob.digest);
    requests_++;
    SIEVE_ASSIGN(const HttpReply reply, http_.call(call));
    if (reply.status != ok && reply.status != created && reply.status != no_content)
        return bad_input(fmt::format("{}: the server answered {}, expected {} or {}",
                                     service::displayed_url(url), reply.status, created, no_content));
    return Uploaded::sent;
}

// What the file has already is kept.
Status ObjectStore::download(const Blob& blob, int file) {
    const std::string url = url_of(blob);
    const auto fault = [&](const std::string& what) {
        return bad_input(fmt::format("{}: {}", service::displayed_url(url), what));
    };
    struct stat info {};
    if (::fstat(file, &info) != 0) return fault(errno_text(errno));
    auto have = static_cast<std::uint64_t>(info.st_size);
    if (have > blob.bytes) have = 0;
    if (::ftruncate(file, static_cast<off_t>(have)) != 0) return fault(errno_text(errno));
    if (have == blob.bytes) return {};
    HttpCall call;
    call.url = url;
    call.from = have;
    call.rate = settings_.rate;
    call.timeout = std::chrono::milliseconds(0);
    call.silence = settings_.silence;
    call.most_bytes = blob.bytes;
    int error = 0;
    bool from_beginning = have == 0;
    call.take = [&](long status, std::string_view bytes) {
        // A server that serves no ranges sends everything.
        if (status == ok && !from_beginning) {
            from_beginning = true;
            if (::ftruncate(file, 0) != 0) error = errno;
        }
        if (error == 0 && ::lseek(file, 0, SEEK_END) < 0) error = errno;
        while (error == 0 && !bytes.empty()) {
            const ssize_t put = ::write(file, bytes.data(), bytes.size());
            if (put < 0 && errno == EINTR) continue;
            if (put < 0) {
                error = errno;
                break;
            }
            received_ += static_cast<std::uint64_t>(put);
            bytes.remove_prefix(static_cast<std::size_t>(put));
        }
        return error == 0;
    };
    requests_++;
    const Result<HttpReply> reply = http_.call(call);
    if (error != 0) return fault("cannot be kept: " + errno_text(error));
    if (!reply) return tl::unexpected(reply.error());
    if (reply->status == bad_range || (reply->status == partial && !starts_at(reply->content_range, have))) {
        (void)::ftruncate(file, 0); // whatever it is, it is not the rest of this
        return fault("has another size than the manifest says");
    }
    if (reply->status != ok && reply->status != partial)
        return fault(fmt::format("the server answered {}, expected {}", reply->status, ok));
    return {};
}

Result<std::optional<std::string>> ObjectStore::read(const std::string& name, std::uint64_t most) {
    HttpCall call;
    call.url = settings_.url + "/" + name;
    call.rate = settings_.rate;
    call.timeout = std::chrono::milliseconds(0);
    call.silence = settings_.silence;
    call.most_bytes = most;
    requests_++;
    SIEVE_ASSIGN(HttpReply reply, http_.call(call));
    if (reply.status == not_found || reply.status == forbidden) return std::optional<std::string>();
    if (reply.status != ok)
        return bad_input(fmt::format("{}: the server answered {}, expected {}",
                                     service::displayed_url(call.url), reply.status, ok));
    received_ += reply.body.size();
    return std::optional<std::string>(std::move(reply.body));
}

Status ObjectStore::get(const Blob& blob, const std::string& path) {
    return keep_blob(blob, path, service::displayed_url(url_of(blob)),
                     [&](int file) { return download(blob, file); });
}

} // namespace sieve::fleet
