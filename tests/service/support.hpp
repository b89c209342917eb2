// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Parts that the tests of refreshes share: folders, files in memory, processes, and waiting for events.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "libsieve/service/sources/gather.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::service::test {

// Waits until the condition holds. The deadline only ends a hanging test.
inline bool await(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!holds()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
}

class Folder {
  public:
    Folder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "sieve-service-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
        path_ = pattern;
        // A server without privileges must be able to read here.
        std::filesystem::permissions(path_, std::filesystem::perms(0755));
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() { std::filesystem::remove_all(path_); }

    [[nodiscard]] std::string path(const std::string& name) const { return (path_ / name).string(); }
    std::string write(const std::string& name, const std::string& content) const {
        std::ofstream(path(name), std::ios::binary) << content;
        return path(name);
    }
    [[nodiscard]] std::string read(const std::string& name) const {
        std::ostringstream text;
        text << std::ifstream(path(name), std::ios::binary).rdbuf();
        return text.str();
    }
    // Runs a shell command in the folder; it must succeed.
    void shell(const std::string& command) const {
        const std::string line = "cd " + path_.string() + " && { " + command + "; } >shell.log 2>&1";
        if (std::system(line.c_str()) != 0) throw std::runtime_error(command + ": " + read("shell.log"));
    }

  private:
    std::filesystem::path path_;
};

inline UniqueFd memory_file(const std::string& content) {
    UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
    if (::write(file.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()))
        throw std::runtime_error("write");
    return file;
}

inline std::string content_of(int file) {
    std::string text;
    std::array<char, 65536> block;
    for (ssize_t got = 0;
         (got = ::pread(file, block.data(), block.size(), static_cast<off_t>(text.size()))) > 0;)
        text.append(block.data(), static_cast<std::size_t>(got));
    return text;
}

// The value of a line of /proc/PID/status, without surrounding blanks; empty if the line is missing.
inline std::string status_of(pid_t pid, const std::string& name) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(name + ":")) {
            const std::size_t first = line.find_first_not_of(" \t", name.size() + 1);
            return first == std::string::npos ? std::string() : line.substr(first);
        }
    return {};
}

// Nothing takes so long, not even on a busy machine. Tests of a limit set their own.
inline SandboxSettings quick_settings() {
    SandboxSettings settings;
    settings.limits.connect = settings.limits.fetch = settings.limits.build = std::chrono::minutes(10);
    settings.limits.nice = 0;
    return settings;
}

} // namespace sieve::service::test
