// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Tells at once which interfaces of this network namespace appear, vanish, are renamed, or lose a filter that
// sees what leaves, by rtnetlink(7).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "libsieve/service/daemon/event_loop.hpp"
#include "libsieve/util/results/result.hpp"

struct mnl_socket;

namespace sieve::service {

struct InterfaceChange {
    std::set<std::string> names{}; // old and new ones
    bool everything = false;       // messages were lost: anything may have changed
};

// From messages to changes. A message about an interface whose name stays, such as one about its carrier
// or about a program that was attached, is no change.
class InterfaceNames {
  public:
    // Names that are known from the start.
    void know(std::uint32_t index, const std::string& name) { names_[index] = name; }
    void forget_all() { names_.clear(); }
    // Adds to `change`.
    void is_there(std::uint32_t index, const std::string& name, InterfaceChange& change);
    void is_gone(std::uint32_t index, const std::string& name, InterfaceChange& change);
    void lost_filter(std::uint32_t index, InterfaceChange& change);

  private:
    std::map<std::uint32_t, std::string> names_;
};

class InterfaceWatch {
  public:
    using Changed = std::function<void(const InterfaceChange& change)>;

    // Errors: the kernel's.
    [[nodiscard]] static Result<std::unique_ptr<InterfaceWatch>> start(EventLoop& loop, Changed changed);
    InterfaceWatch(const InterfaceWatch&) = delete;
    InterfaceWatch& operator=(const InterfaceWatch&) = delete;
    ~InterfaceWatch() = default;

  private:
    explicit InterfaceWatch(Changed changed);
    [[nodiscard]] Status open();
    void know_all();
    void read();

    struct Close {
        void operator()(mnl_socket* socket) const;
    };
    Changed changed_;
    std::unique_ptr<mnl_socket, Close> socket_;
    InterfaceNames names_;
    EventSource source_; // ends before the socket
};

} // namespace sieve::service
