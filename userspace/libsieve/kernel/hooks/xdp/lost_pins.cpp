// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/hooks/xdp/lost_pins.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <bpf/bpf.h>

#include "libsieve/kernel/hooks/xdp/attached_program.hpp"
#include "libsieve/kernel/hooks/xdp/dispatcher.hpp"
#include "libsieve/kernel/host/network_namespace.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/results/unfinished.hpp"

namespace sieve::kernel::xdp {

namespace {

namespace fs = std::filesystem;

struct PinFolder {
    fs::path path;
    unsigned interface = 0;
    std::uint32_t dispatcher = 0;
};

std::vector<PinFolder> pin_folders(const fs::path& root) {
    std::vector<PinFolder> found;
    std::error_code error;
    for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
        PinFolder folder{.path = at->path()};
        int read = 0;
        const std::string name = folder.path.filename();
        if (std::sscanf(name.c_str(), "dispatch-%u-%u%n", &folder.interface, &folder.dispatcher, &read) ==
                2 &&
            static_cast<std::size_t>(read) == name.size())
            found.push_back(std::move(folder));
    }
    return found;
}

// While it holds the lock, libxdp pins a link under such a name, and removes it, to see whether the kernel
// can.
void remove_trials(const fs::path& root) {
    std::error_code error;
    std::vector<fs::path> trials;
    for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error))
        if (at->path().filename().native().starts_with("prog-test-link-")) trials.push_back(at->path());
    for (const fs::path& trial : trials) fs::remove(trial, error);
}

// The program of a pin. libxdp pins a program, and the link that puts the program into the dispatcher.
std::optional<Program> pinned_program(const fs::path& pin) {
    const UniqueFd fd(bpf_obj_get(pin.c_str()));
    if (!fd) return std::nullopt;
    std::uint32_t id = 0;
    if (pin.native().ends_with("-link")) {
        bpf_link_info info{};
        __u32 length = sizeof(info);
        if (bpf_obj_get_info_by_fd(fd.get(), &info, &length) != 0) return std::nullopt;
        id = info.prog_id;
    } else if (const Result<std::uint32_t> known = program_id(fd.get())) {
        id = *known;
    }
    Result<Program> program = open_program(id);
    return program ? std::optional(std::move(*program)) : std::nullopt;
}

// The ids of the programs in the folder that `load` made in this network namespace.
std::vector<std::uint32_t> own_programs(const PinFolder& folder, std::uint64_t network) {
    std::vector<std::uint32_t> ids;
    std::error_code error;
    for (fs::directory_iterator at(folder.path, error), end; !error && at != end; at.increment(error)) {
        const std::optional<Program> program = pinned_program(at->path());
        if (!program) continue;
        const Result<std::optional<Instance>> instance = Instance::from_program(program->fd.get());
        if (instance && *instance && (*instance)->control().network == network) ids.push_back(program->id);
    }
    return ids;
}

// Whether the interface runs that dispatcher or one of these programs, or may do so.
bool in_force(const PinFolder& folder, const std::vector<std::uint32_t>& programs) {
    std::array<char, IF_NAMESIZE> name{};
    // An interface that is not here may have moved to another namespace, together with its program.
    if (::if_indextoname(folder.interface, name.data()) == nullptr) return true;
    const Result<Hook> hook = without_throwing([&] {
        return xdp::read_hook({name.data(), folder.interface});
    });
    if (!hook) return true;
    return (hook->attached && hook->attached->id == folder.dispatcher) ||
           (hook->ours && std::find(programs.begin(), programs.end(), hook->ours->id) != programs.end());
}

} // namespace

void remove_lost_pins() {
    const fs::path root = pin_root();
    const UniqueFd lock(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // libxdp holds this lock while it pins or unpins. The next command tries again.
    if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return;
    remove_trials(root);
    const Result<std::uint64_t> network = network_namespace();
    if (!network) return;
    for (const PinFolder& folder : pin_folders(root)) {
        std::error_code error;
        if (fs::is_empty(folder.path, error) && !error) {
            fs::remove(folder.path, error); // killed before the first pin
            continue;
        }
        const std::vector<std::uint32_t> programs = own_programs(folder, *network);
        if (!programs.empty() && !in_force(folder, programs)) fs::remove_all(folder.path, error);
    }
}

} // namespace sieve::kernel::xdp
