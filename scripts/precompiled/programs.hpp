// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The standard headers that most files need, parsed once by `make PRECOMPILED=1`. No file includes this one.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
