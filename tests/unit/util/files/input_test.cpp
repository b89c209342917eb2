// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/files/input.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "unit/messages.hpp"

namespace sieve {
namespace {

namespace fs = std::filesystem;

class InputTest : public testing::Test {
  protected:
    InputTest() {
        std::string name = fs::temp_directory_path() / "sieve-input-XXXXXX";
        folder_ = ::mkdtemp(name.data());
    }
    ~InputTest() override { fs::remove_all(folder_); }

    std::string file(const std::string& name, std::string_view text) {
        std::ofstream(folder_ / name, std::ios::binary) << text;
        return folder_ / name;
    }

    fs::path folder_;
};

// Everything after the bytes that were peeked at.
std::string rest_of(Input& input, std::size_t piece) {
    std::string all;
    std::string buffer(piece, '\0');
    for (;;) {
        const auto got = input.read(buffer.data(), piece);
        if (!got) return "error: " + got.error().message;
        if (*got == 0) return all;
        all.append(buffer, 0, *got);
    }
}

TEST_F(InputTest, LooksWithoutTaking) {
    const std::string path = file("a", "0123456789");
    for (const std::size_t piece : {1U, 3U, 100U}) {
        auto input = Input::of(path);
        ASSERT_TRUE(input);
        EXPECT_EQ(input->size(), 10U);
        EXPECT_FALSE(input->is_stream());
        EXPECT_EQ(input->peek(4).value(), "0123");
        EXPECT_EQ(input->peek(2).value(), "01");
        EXPECT_EQ(input->peek(6).value(), "012345");
        EXPECT_EQ(input->taken(), 0U);
        EXPECT_EQ(rest_of(*input, piece), "0123456789");
        EXPECT_EQ(input->taken(), 10U);
        EXPECT_EQ(input->peek(1).value(), "");
    }
    auto input = Input::of(path);
    EXPECT_EQ(input->peek(100).value(), "0123456789");
    std::string all(20, '\0');
    EXPECT_EQ(input->read_all(all.data(), 20).value(), 10U);
}

// A FIFO is opened when it is read, so that naming it does not wait. It is opened only once.
TEST_F(InputTest, ReadsAFifoOnce) {
    const std::string path = folder_ / "fifo";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    auto input = Input::of(path);
    ASSERT_TRUE(input);
    EXPECT_TRUE(input->is_stream());
    std::jthread writer([&] {
        std::ofstream out(path, std::ios::binary);
        for (const char c : std::string_view("0123456789")) out.put(c).flush();
    });
    EXPECT_EQ(input->peek(4).value(), "0123");
    EXPECT_EQ(rest_of(*input, 3), "0123456789");
}

// Another process may have made a shared pipe non-blocking.
TEST_F(InputTest, WaitsForANonBlockingPipe) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    const UniqueFd from(ends[0]);
    UniqueFd to(ends[1]);
    const UniqueFd saved(::dup(STDIN_FILENO));
    ::dup2(from.get(), STDIN_FILENO);
    auto input = Input::of("-");
    ASSERT_TRUE(input);
    EXPECT_EQ(input->name(), "standard input");
    std::jthread writer([&] {
        EXPECT_EQ(::write(to.get(), "later", 5), 5);
        to = UniqueFd();
    });
    EXPECT_EQ(rest_of(*input, 100), "later");
    writer.join();
    ::dup2(saved.get(), STDIN_FILENO);
}

TEST_F(InputTest, SaysWhatCannotBeRead) {
    expect_error(Input::of(folder_), ErrorKind::bad_input);
    expect_error(Input::of(folder_ / "none"), ErrorKind::bad_input);
    expect_error(Input::of(folder_ / "\x1b[31m"), ErrorKind::bad_input);
    const std::string path = file("cut", std::string(100'000, 'x'));
    auto input = Input::of(path);
    ASSERT_TRUE(input);
    ASSERT_TRUE(input->peek(10));
    fs::resize_file(path, 50'000);
    expect_says(rest_of(*input, 4'096));
}

TEST_F(InputTest, KnowsAnInputByAllItsNames) {
    const std::string path = file("a", "x");
    const std::string other = file("b", "x");
    fs::create_hard_link(path, folder_ / "hard");
    const std::string fifo = folder_ / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    fs::create_symlink("fifo", folder_ / "soft");
    const auto inputs = Input::of_all({path, other, folder_ / "hard", fifo, folder_ / "soft"});
    ASSERT_TRUE(inputs);
    const auto& in = *inputs;
    EXPECT_TRUE(check_repeated({in.data(), &in[1], &in[3]}, Repeated::nothing));
    EXPECT_FALSE(check_repeated({in.data(), &in[1], &in[2]}, Repeated::nothing));
    EXPECT_TRUE(check_repeated({in.data(), &in[1], &in[2]}, Repeated::files));
    EXPECT_FALSE(check_repeated({&in[3], in.data(), &in[4]}, Repeated::files));
}

// A file there is as little as a pipe: `load a=-,except=- <list` would read no exceptions behind the list.
TEST_F(InputTest, StandardInputIsReadOnce) {
    const std::string path = file("a", "x");
    const UniqueFd before(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
    const UniqueFd list(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_GE(::dup2(list.get(), STDIN_FILENO), 0);
    const auto inputs = Input::of_all({path, "-", "-"});
    ASSERT_GE(::dup2(before.get(), STDIN_FILENO), 0);
    ASSERT_TRUE(inputs);
    const auto& in = *inputs;
    EXPECT_TRUE(check_repeated({in.data(), &in[1]}, Repeated::files)) << "each begins at its start";
    expect_error(check_repeated({in.data(), &in[1], &in[2]}, Repeated::files), ErrorKind::invalid_request);
    expect_error(check_repeated({&in[1], &in[2]}, Repeated::nothing), ErrorKind::invalid_request);
}

} // namespace
} // namespace sieve
