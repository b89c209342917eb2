// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/arguments/list_sources.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "unit/control/files.hpp"
#include "unit/messages.hpp"

namespace sieve::cli {
namespace {

using Words = std::vector<std::string>;

TEST(ListSources, FoldersAndPatternsStandForTheirFiles) {
    const test::Files files;
    std::filesystem::create_directory(files.path("d"));
    const std::string a = files.feed("d/a.txt", {"192.0.2.1"});
    const std::string b = files.feed("d/b.list", {"192.0.2.2"});
    files.feed("d/a.txt.bak", {"192.0.2.3"});
    const std::string odd = files.feed("x[1].txt", {"192.0.2.4"});
    EXPECT_EQ(expand_sources({files.path("d")}), (Words{a, b}));
    EXPECT_EQ(expand_sources({files.path("d/")}), (Words{a, b}));
    EXPECT_EQ(expand_sources({files.path("d/*.txt"), "-", b}), (Words{a, "-", b}));
    EXPECT_EQ(expand_sources({odd}), Words{odd}) << "a file is no pattern";
    const Words others{files.path("none"), "https://h/*?[", "/dev/null"};
    EXPECT_EQ(expand_sources(others), others);
}

TEST(ListSources, NoListIsAnError) {
    const test::Files files;
    for (const std::string& empty : {files.path(""), files.path("*.txt")}) {
        expect_error(expand_sources({empty}), ErrorKind::bad_input);
    }
}

TEST(ListSources, APasswordIsNoArgument) {
    const auto open = source_opener({}, [] { return Progress(); });
    for (const char* url :
         {"https://u:s3cret@h.invalid/", "https://u@h.invalid/", "https://:s3cret@h.invalid/"}) {
        const auto input = open(url);
        ASSERT_FALSE(input) << url;
        expect_error(input, ErrorKind::invalid_request);
        EXPECT_EQ(input.error().message.find("s3cret"), std::string::npos) << input.error().message;
    }
    expect_error(open("ftp://h/"), ErrorKind::bad_input);
}

Result<control::SetSpec> read_argument(const std::string& text, Words& remarks) {
    return read_set_argument(
        text, [] { return Progress(); }, [&remarks](const std::string& said) { remarks.push_back(said); });
}

TEST(ListSources, OptionsOfUrlsWantAUrl) {
    Words remarks;
    const auto set = read_argument("a=/f,header-file=/h", remarks);
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().kind, ErrorKind::invalid_request);
    EXPECT_TRUE(read_argument("a=/f,feed=https://h/,header-file=/h", remarks));
    EXPECT_EQ(remarks, Words{});
}

TEST(ListSources, APasswordThatOthersCanReadIsTold) {
    Words remarks;
    EXPECT_TRUE(read_argument("a=https://h/,feed=http://h/,username=u,password-file=/p", remarks));
    EXPECT_EQ(remarks, Words{"http://h/: the password goes over plain http, and anyone on the way can read "
                             "it; https hides it"});
}

} // namespace
} // namespace sieve::cli
