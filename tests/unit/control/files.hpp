// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A folder of feeds and images that lasts as long as a test, and sets made from them.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/control/spec/source.hpp"

namespace sieve::test {

class Files {
  public:
    Files() {
        std::string pattern = (std::filesystem::temp_directory_path() / "sieve-control-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
        folder_ = pattern;
    }
    Files(const Files&) = delete;
    Files& operator=(const Files&) = delete;
    ~Files() { std::filesystem::remove_all(folder_); }

    [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

    // Writes a feed of these lines; returns its path.
    std::string feed(const std::string& name, const std::vector<std::string>& lines) const {
        std::ofstream file(path(name));
        for (const std::string& line : lines) file << line << "\n";
        return path(name);
    }

    // Builds an image of these lines.
    std::string image(const std::string& name, const std::vector<std::string>& lines,
                      control::FeedSpec spec = {}) const {
        auto inputs = Input::of_all({feed(name + ".txt", lines)});
        auto built = control::build_from_feeds(inputs.value(), quick(std::move(spec)), {});
        if (!built) throw std::runtime_error(built.error().message);
        if (auto saved = built->image.save(path(name), Replace::anything); !saved)
            throw std::runtime_error(saved.error().message);
        return path(name);
    }

    static control::FeedSpec quick(control::FeedSpec spec = {}) {
        spec.build.trials = 1000;
        spec.build.threads = 1;
        return spec;
    }

    // A set with one source.
    static control::SetSpec set(const std::string& name, const std::string& source) {
        control::SetSpec spec;
        spec.name = name;
        spec.sources = {source};
        spec.feed = quick();
        return spec;
    }

  private:
    std::filesystem::path folder_;
};

} // namespace sieve::test
