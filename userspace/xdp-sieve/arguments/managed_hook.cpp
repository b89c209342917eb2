// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/arguments/managed_hook.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "libsieve/service/config/configuration_reader.hpp"
#include "libsieve/service/contact/manager.hpp"
#include "libsieve/service/state/state_directory.hpp"
#include "libsieve/util/system/small_file.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::cli {

namespace {

constexpr std::size_t longest_configuration = std::size_t{16} << 20;

// A hook that the configuration names counts from the start, before the service has a program there.
bool names(const service::watching::Manager& manager, const control::HookName& name) {
    const std::optional<service::Configuration> configuration = configuration_at(manager.configuration);
    if (!configuration) return false;
    return std::ranges::any_of(kernel::all_hook_points, [&](kernel::HookPoint point) {
        if (name.point && point != *name.point) return false;
        const auto* entry = service::entry_for(*configuration, name.interface, point);
        return entry != nullptr && !(entry->is_pattern() && name.interface == "lo");
    });
}

bool manages(const service::watching::Manager& manager, const control::HookName& name) {
    const auto state = service::StateDirectory::look(manager.state, service::standard_spare(manager.state));
    const auto hooks = state.hooks([](const std::string&) {});
    return !hooks || names(manager, name) ||
           std::ranges::any_of(*hooks, [&](const service::ManagedHook& hook) {
               return hook.interface == name.interface && (!name.point || hook.point == *name.point);
           });
}

std::string what_becomes(Change change, bool paused) {
    if (paused) return "takes the program away again, since the interface is paused";
    switch (change) {
    case Change::table:
    case Change::unload:
        return "puts the configuration in force again with its next cycle";
    case Change::keys:
        return "undoes the change with the next list of the set";
    }
    return {};
}

std::string what_lasts(const std::string& interface, Change change, bool paused) {
    if (paused) return fmt::format("`xdp-sieve resume {}` ends the pause", interface);
    switch (change) {
    case Change::table:
        return "change the configuration and `systemctl reload xdp-sieved`";
    case Change::keys:
        return "change the set's list";
    case Change::unload:
        return fmt::format("`xdp-sieve pause {}` takes the program off until `xdp-sieve resume {}`",
                           interface, interface);
    }
    return {};
}

} // namespace

Status may_change(const control::HookName& hook, Change change, bool force, const Context& context) {
    const auto manager = service::watching::find_manager();
    if (!manager) return {};
    const auto pauses = service::read_pauses(manager->state);
    const bool paused = pauses && pauses->has(hook.interface);
    if (!paused && !manages(*manager, hook)) return {};
    const std::string becomes =
        fmt::format("{}: xdp-sieved (process {}) manages it and {}", printable(hook.interface), manager->pid,
                    what_becomes(change, paused));
    if (!force)
        return failure(ErrorKind::busy, fmt::format("{}; {}; `--force` makes the change until then", becomes,
                                                    what_lasts(hook.interface, change, paused)));
    remark(context, becomes);
    return {};
}

Result<std::string> state_at(const std::string& configuration, const Context& context) {
    if (const auto manager = service::watching::find_manager()) return manager->state;
    SIEVE_ASSIGN(const auto text, read_small_file(configuration, longest_configuration));
    if (!text) {
        if (configuration != service::standard_configuration)
            return bad_input(fmt::format("{}: there is no such file", printable(configuration)));
        return std::string(service::standard_state_directory);
    }
    // A pause must be possible when the configuration is broken.
    const auto files = service::find_configuration(configuration, service::From::files);
    const service::ReadConfiguration read =
        files ? service::read_configuration(*files) : service::read_configuration(*text, configuration);
    if (!read.mistakes.empty())
        remark(context, fmt::format("{} has mistakes; taking state directory {}", printable(configuration),
                                    printable(read.configuration.state_directory)));
    return read.configuration.state_directory;
}

std::optional<service::Configuration> configuration_at(const std::string& path) {
    const auto manager = service::watching::find_manager();
    const auto files =
        service::find_configuration(manager ? manager->configuration : path, service::From::files);
    if (!files) return std::nullopt;
    return service::read_configuration(*files).configuration;
}

Status make_state(const std::string& path, const Context& context) {
    const auto made = service::StateDirectory::open(path, std::chrono::milliseconds(0), {},
                                                    {.spare = {}, .tell = observer(context).remark});
    if (!made && made.error().kind != ErrorKind::busy) return tl::unexpected(made.error());
    return {};
}

std::string paused_text(const service::Pauses& pauses) {
    return pauses.everywhere ? std::string("every interface")
                             : fmt::format("{}", fmt::join(pauses.interfaces, ", "));
}

} // namespace sieve::cli
