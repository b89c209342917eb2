// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/monitor/html.hpp"

#include <gtest/gtest.h>

namespace sieve::service::watching {
namespace {

TEST(EscapeHtml, LeavesPlainTextAlone) {
    EXPECT_EQ(escape_html("drop4.v6_x-1 ünïcode 列表"), "drop4.v6_x-1 ünïcode 列表");
}

TEST(EscapeHtml, TakesTheMeaningFromMarkup) {
    EXPECT_EQ(escape_html("<script>alert('x')</script>"), "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
    EXPECT_EQ(escape_html("\"><img src=x onerror=alert(1)>&amp;"),
              "&quot;&gt;&lt;img src=x onerror=alert(1)&gt;&amp;amp;");
}

TEST(EscapeHtml, ReplacesWhatIsNoText) {
    const std::string bad = "\xef\xbf\xbd";
    EXPECT_EQ(escape_html(std::string_view("a\0b", 3)), "a" + bad + "b");
    EXPECT_EQ(escape_html("a\x1b[31m"), "a" + bad + "[31m");
    EXPECT_EQ(escape_html("\xff\xfe<"), bad + bad + "&lt;");
    EXPECT_EQ(escape_html("\xc0\xbc"), bad + bad); // `<` in too many bytes
    EXPECT_EQ(escape_html("\xe0\x80\xbc"), bad + bad + bad);
    EXPECT_EQ(escape_html("\xed\xa0\x80"), bad + bad + bad); // a surrogate
    EXPECT_EQ(escape_html("\xf4\x90\x80\x80"), bad + bad + bad + bad);
    EXPECT_EQ(escape_html("\xe2\x82"), bad + bad); // cut off
    EXPECT_EQ(escape_html("\xe2\x82<"), bad + bad + "&lt;");
    EXPECT_EQ(escape_html("safe\xe2\x80\xaegpj.exe"), "safe" + bad + "gpj.exe"); // turns the writing
}

TEST(Html, EscapesArgumentsAndKeepsParts) {
    Html page;
    page.add("<p class=\"{}\">{}</p>", "a\"b", html("<b>{}</b>", "1<2"));
    EXPECT_EQ(page.text(), "<p class=\"a&quot;b\"><b>1&lt;2</b></p>");
}

// A hole in an argument is not filled by the next one.
TEST(Html, DoesNotReadArgumentsAsMarkup) {
    EXPECT_EQ(html("{}|{}", "{}", "x").text(), "{}|x");
}

} // namespace
} // namespace sieve::service::watching
