// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The status page in a real browser, headless Chromium: served by the exposer, under its own security policy,
// with and without scripts. Without the package chromium the test is skipped.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "libsieve/service/monitor/http_server.hpp"
#include "libsieve/service/monitor/status_page.hpp"
#include "service/support.hpp"
#include "unit/service/monitor/snapshots.hpp"

namespace sieve::service::watching {
namespace {

using namespace service::test;
using namespace watching::test;
using namespace std::chrono_literals;

constexpr char chromium[] = "/usr/bin/chromium";

class BrowserTest : public testing::Test {
  protected:
    void SetUp() override {
        if (::access(chromium, X_OK) != 0) GTEST_SKIP() << "the package chromium is missing";
    }
    // Serves the page as the exposer does.
    void serve(const std::string& page) {
        auto server = HttpServer::start({}, [page](std::string_view) {
            return HttpResponse{
                .type = "text/html; charset=utf-8", .body = page, .policy = status_page_policy};
        });
        ASSERT_TRUE(server) << server.error().message;
        server_.emplace(std::move(*server));
    }
    // Runs the browser on the page; its standard output.
    [[nodiscard]] std::string browse(const std::string& options) const {
        const std::string command =
            "cd " + folder_.path("") + " && HOME=" + folder_.path("") + " timeout 120 " + chromium +
            " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --hide-scrollbars "
            "--user-data-dir=" +
            folder_.path("profile") + " --enable-logging=stderr --v=0 " + options +
            " http://127.0.0.1:19273/ >" + folder_.path("out") + " 2>" + folder_.path("err");
        EXPECT_EQ(std::system(command.c_str()), 0) << folder_.read("err");
        return folder_.read("out");
    }

    Folder folder_;
    std::optional<HttpServer> server_;
};

TEST_F(BrowserTest, ShowsTheStatusPage) {
    SamplePage sample;
    const std::string hostile = "x</style><script>document.title='taken'</script>";
    sample.add_hook(
        "eth0", kernel::HookPoint::xdp,
        {sample_set("drop", 0, 1000, 1e-5, false, 1h), sample_set(hostile, 1, 1000, 1e-5, true, 1h)}, 1000);
    sample.add_list(hostile, "/etc/lists/" + hostile, 1000, 1h);
    sample.snapshot.record.fleet = sample_fleet();
    sample.snapshot.record.fleet->last_error = hostile;
    serve(status_page(sample.snapshot, sample.history, "gate"));
    const std::string seen = browse("--dump-dom");
    EXPECT_NE(seen.find("<title>gate · xdp-sieve</title>"), std::string::npos);
    EXPECT_NE(seen.find(">drop<"), std::string::npos);
    EXPECT_NE(seen.find("running, stage 2 of 3; this host is of stage 1"), std::string::npos);
    EXPECT_NE(seen.find("changes nothing.</span></footer>"),
              std::string::npos); // nothing was closed too early
    EXPECT_EQ(seen.find("<script"), std::string::npos);
    // The policy refused nothing, so the page needs nothing that the policy forbids.
    EXPECT_EQ(folder_.read("err").find("Content Security Policy"), std::string::npos) << folder_.read("err");
}

// The page fits the screen, on a desk and in a hand: the browser lays it out and takes a picture of it. With
// SIEVE_PAGES=FOLDER the pictures stay there.
TEST_F(BrowserTest, DrawsItOnAnyScreen) {
    SamplePage sample;
    sample.add_hook("eth0", kernel::HookPoint::xdp, {sample_set("drop", 0, 1000, 1e-5, false, 1h)}, 1000);
    sample.add_list("drop", "/etc/lists/drop", 1000, 1h);
    sample.snapshot.record.fleet = sample_fleet();
    serve(status_page(sample.snapshot, sample.history, "gate"));
    for (const char* size : {"1280,900", "500,900"}) {
        (void)browse(std::string("--screenshot=page.png --window-size=") + size);
        const std::string picture = folder_.read("page.png");
        ASSERT_GT(picture.size(), 10'000U) << size;
        EXPECT_EQ(picture.substr(1, 3), "PNG");
        if (const char* const folder = std::getenv("SIEVE_PAGES"))
            std::ofstream(std::string(folder) + "/browser-" + size + ".png", std::ios::binary) << picture;
    }
}

} // namespace
} // namespace sieve::service::watching
