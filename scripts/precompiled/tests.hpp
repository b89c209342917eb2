// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The headers that most tests need, parsed once by `make PRECOMPILED=1`. No file includes this one.
#include <gtest/gtest.h>

#include "programs.hpp"
