// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/detect_format.hpp"

#include <gtest/gtest.h>

namespace sieve {
namespace {

TEST(Html, IsToldFromLists) {
    for (const char* page : {"<!DOCTYPE html>", "<!doctype HTML PUBLIC", "<html lang=en>", "\r\n \t<HTML>",
                             "\xef\xbb\xbf<html>", "<head>", "<?xml version", "<!-- saved -->"})
        EXPECT_TRUE(looks_like_html(page)) << page;
    for (const char* list : {"", "192.0.2.1\n", "# <html>\n", "<", "{\"cidr\":\"192.0.2.0/24\"}", "\n\n"})
        EXPECT_FALSE(looks_like_html(list)) << list;
}

} // namespace
} // namespace sieve
