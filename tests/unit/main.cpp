// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Some unit tests run cycles of the service, whose children are this program anew.
#include <gtest/gtest.h>

#include "libsieve/service/sandbox/child_main.hpp"
#include "unit/messages.hpp"

int main(int argc, char** argv) {
    if (const auto done = sieve::service::run_as_child(argc, argv)) return *done;
    testing::InitGoogleTest(&argc, argv);
    sieve::test::watch_messages();
    return RUN_ALL_TESTS();
}
