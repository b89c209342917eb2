// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/files/input.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "libsieve/util/text/printable.hpp"

namespace sieve {

namespace {

constexpr const char* standard_input = "-";

} // namespace

std::string Input::name() const {
    return path_ == standard_input ? "standard input" : printable(path_);
}

tl::unexpected<Error> Input::unreadable(int error) const {
    return bad_input(fmt::format("{}: cannot be read: {}", name(), errno_text(error)));
}

Result<Input> Input::of(const std::string& path) {
    Input input(path);
    struct stat info {};
    const bool is_stdin = path == standard_input;
    if ((is_stdin ? ::fstat(STDIN_FILENO, &info) : ::stat(path.c_str(), &info)) != 0)
        return input.unreadable(errno);
    if (S_ISDIR(info.st_mode))
        return bad_input(fmt::format("{}: is a directory, expected a file", input.name()));
    if (!is_stdin && ::access(path.c_str(), R_OK) != 0) return input.unreadable(errno);
    input.identity_ = {info.st_dev, info.st_ino};
    if (S_ISREG(info.st_mode)) {
        const off_t at = is_stdin ? std::max<off_t>(0, ::lseek(STDIN_FILENO, 0, SEEK_CUR)) : 0;
        input.size_ = static_cast<std::uint64_t>(std::max<off_t>(0, info.st_size - at));
    }
    return input;
}

Result<Input> Input::of(UniqueFd fd, std::string name) {
    Input input(std::move(name));
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return input.unreadable(errno);
    input.identity_ = {info.st_dev, info.st_ino};
    input.owned_ = std::move(fd);
    input.fd_ = input.owned_.get();
    input.measure(info);
    return input;
}

Result<std::vector<Input>> Input::of_all(const std::vector<std::string>& paths) {
    std::vector<Input> inputs;
    inputs.reserve(paths.size());
    for (const std::string& path : paths) {
        SIEVE_ASSIGN(Input input, of(path));
        inputs.push_back(std::move(input));
    }
    return inputs;
}

Status Input::open() {
    if (fd_ >= 0) return {};
    if (closed_) return unreadable(EBADF);
    if (path_ == standard_input) {
        fd_ = STDIN_FILENO;
    } else {
        int fd = -1;
        do fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
        while (fd < 0 && errno == EINTR);
        if (fd < 0) return unreadable(errno);
        owned_ = UniqueFd(fd);
        fd_ = fd;
    }
    struct stat info {};
    if (::fstat(fd_, &info) != 0) return unreadable(errno);
    measure(info);
    return {};
}

void Input::measure(const struct stat& info) {
    size_.reset();
    if (!S_ISREG(info.st_mode)) return;
    end_ = info.st_size;
    size_ =
        static_cast<std::uint64_t>(std::max<off_t>(0, end_ - std::max<off_t>(0, ::lseek(fd_, 0, SEEK_CUR))));
}

Result<bool> Input::unpack(const UnpackLimits& limits) {
    if (unpacker_) return true;
    SIEVE_ASSIGN(const std::string_view begin, peek(packing_bytes));
    const Packing packing = packing_of(begin);
    if (packing == Packing::none) return false;
    std::string path = path_;
    const FileIdentity identity = identity_;
    const auto packed = std::make_shared<Input>(std::move(*this));
    *this = Input(std::move(path));
    identity_ = identity;
    SIEVE_ASSIGN(unpacker_,
                 Unpacker::of(
                     packing, [packed](char* to, std::size_t bytes) { return packed->read(to, bytes); },
                     name(), limits));
    return true;
}

Result<std::size_t> Input::read_file(char* to, std::size_t bytes) {
    if (unpacker_) return unpacker_->read(to, bytes);
    SIEVE_TRY(open());
    for (;;) {
        const ssize_t got = ::read(fd_, to, bytes);
        if (got > 0) return static_cast<std::size_t>(got);
        if (got < 0 && errno == EINTR) continue;
        // another process that shares the pipe may have made it non-blocking
        if (got < 0 && errno == EAGAIN) {
            pollfd wait{fd_, POLLIN, 0};
            if (::poll(&wait, 1, -1) < 0 && errno != EINTR) return unreadable(errno);
            continue;
        }
        if (got < 0) return unreadable(errno);
        struct stat info {};
        if (size_ && ::fstat(fd_, &info) == 0 && info.st_size < end_)
            return bad_input(fmt::format("{}: became shorter while it was read", name()));
        return std::size_t{0};
    }
}

Result<std::string_view> Input::peek(std::size_t bytes) {
    while (ahead_.size() < bytes) {
        const std::size_t had = ahead_.size();
        ahead_.resize(bytes);
        const Result<std::size_t> got = read_file(ahead_.data() + had, bytes - had);
        ahead_.resize(had + got.value_or(0));
        if (!got) return tl::unexpected(got.error());
        if (*got == 0) break;
    }
    return std::string_view(ahead_).substr(0, bytes);
}

Result<std::size_t> Input::read(char* to, std::size_t bytes) {
    if (!ahead_.empty()) {
        const std::size_t size = std::min(bytes, ahead_.size());
        std::memcpy(to, ahead_.data(), size);
        ahead_.erase(0, size);
        taken_ += size;
        return size;
    }
    SIEVE_ASSIGN(const std::size_t got, read_file(to, bytes));
    taken_ += got;
    return got;
}

Result<std::size_t> Input::read_all(char* to, std::size_t bytes) {
    std::size_t size = 0;
    while (size < bytes) {
        SIEVE_ASSIGN(const std::size_t got, read(to + size, bytes - size));
        if (got == 0) break;
        size += got;
    }
    return size;
}

void Input::close() {
    owned_ = UniqueFd();
    unpacker_.reset();
    fd_ = -1;
    closed_ = true;
    ahead_.clear();
}

Status check_repeated(const std::vector<const Input*>& inputs, Repeated allowed) {
    std::map<FileIdentity, const Input*> seen;
    bool takes_stdin = false;
    for (const Input* input : inputs) {
        const auto [first, is_new] = seen.try_emplace(input->identity(), input);
        // Of a file on standard input, too: whoever reads it next begins where the one before has ended.
        const bool stdin_again = input->path() == standard_input && std::exchange(takes_stdin, true);
        const bool read_once = input->is_stream() || stdin_again;
        if (is_new || (allowed == Repeated::files && !read_once)) continue;
        const std::string once = read_once ? ", and it can be read once only" : "";
        const std::string name = (stdin_again ? input : first->second)->name();
        return invalid_request(
            input->name() == name ? fmt::format("{} was named twice{}", name, once)
                                  : fmt::format("{} and {} are the same input{}", name, input->name(), once));
    }
    return {};
}

} // namespace sieve
