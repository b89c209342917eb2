// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// One question to the kernel by netlink, and all parts of its answer.
#pragma once

#include <libmnl/libmnl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "libsieve/keys/address_range.hpp"

namespace sieve::kernel {

// Writes the request behind a header that is there already: its type, flags and payload.
using FillRequest = std::function<void(nlmsghdr* request)>;
// Is called for each message of the answer.
using TakeMessage = std::function<void(const nlmsghdr* message)>;

// Asks the kernel's `family`, such as NETLINK_ROUTE, in this thread's network namespace. Returns 0 or an
// errno value; EINTR if what was listed changed meanwhile. A request without NLM_F_DUMP gets one message.
[[nodiscard]] int ask_netlink(int family, const FillRequest& fill, const TakeMessage& take);

// The same for a list, which is taken again if it changes meanwhile; `begin` is called before each attempt.
[[nodiscard]] int dump_netlink(int family, const FillRequest& fill, const std::function<void()>& begin,
                               const TakeMessage& take);

// Asks about one interface (RTM_GETLINK); the answer leaves out its counters. ENODEV: it has gone.
[[nodiscard]] int ask_about_link(std::uint32_t index, const TakeMessage& take);

// An address as the kernel writes it, in network order: 4 or 16 bytes. Nothing for an attribute that is
// absent or of another length.
[[nodiscard]] uint128 address_of(const void* bytes, std::size_t length);
[[nodiscard]] std::optional<uint128> address_of(const nlattr* attribute);

// The attributes of a message, by type; those beyond `types` are left out.
template <std::size_t types>
struct NetlinkAttributes {
    std::array<const nlattr*, types> of{};

    static int take(const nlattr* attribute, void* to) {
        const std::size_t type = mnl_attr_get_type(attribute);
        if (type < types) static_cast<NetlinkAttributes*>(to)->of[type] = attribute;
        return MNL_CB_OK;
    }
};

} // namespace sieve::kernel
