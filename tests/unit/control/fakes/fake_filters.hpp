// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Filters in force, and the keys beside them, by the ids of their maps.
#pragma once

#include <unistd.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libsieve/control/access/filters.hpp"
#include "libsieve/image/image.hpp"
#include "unit/control/fakes/fake_steps.hpp"

namespace sieve::test {

class FakeFilters : public virtual control::Filters, public virtual FakeSteps {
  public:
    struct Keys {
        std::map<std::array<__u64, SIEVE_KEY_WORDS>, kernel::KeyNote> notes;
        std::size_t most = ~std::size_t{0};
    };
    std::map<std::uint32_t, Keys> keys;    // the maps of keys
    std::uint64_t now = 1'000'000'000'000; // nanoseconds since the machine started
    std::vector<std::uint32_t> maps_opened;

    void put_filter(std::uint32_t id, std::span<const sieve_line> lines) {
        filters_[id].assign(lines.begin(), lines.end());
    }
    void put_filter(std::uint32_t id, const Image& image) { put_filter(id, image.lines()); }
    void take_filter(std::uint32_t id) { filters_.erase(id); }
    // An exact set with room for so many more keys.
    void put_exact(std::uint32_t id, const std::vector<sieve_key>& members, std::size_t room) {
        keys[id] = {.notes = {}, .most = members.size() + room};
        for (const sieve_key& key : members) keys[id].notes[std::to_array(key.word)] = {};
    }

    // Before a key is noted or forgotten. What throws stands for the writer's death.
    void before_each_note(const std::function<void()>& happens) {
        for (const char* const step : {"note", "forget"}) {
            allow(step);
            if (happens)
                before(step, [happens](const std::string&) {
                    happens();
                    return Status();
                });
        }
    }

    Result<kernel::FilterHeader> read_filter(std::uint32_t map_id) override {
        SIEVE_TRY(meet("read filter"));
        const auto found = filters_.find(map_id);
        if (found == filters_.end()) return kernel_refused("no such map");
        FakeFilter filter(found->second);
        return kernel::FilterHeader{.lookup = filter.lookup(),
                                    .file = filter.file(),
                                    .bytes = found->second.size() * sizeof(sieve_line)};
    }
    Result<std::uint64_t> exact_bytes(std::uint32_t exact_id) override { return exact_id * 1000; }
    Result<std::unique_ptr<control::RunningFilter>> open_filter(std::uint32_t map_id) override {
        const auto found = filters_.find(map_id);
        if (found == filters_.end()) return kernel_refused("no such map");
        return std::make_unique<FakeFilter>(found->second);
    }
    Result<std::unique_ptr<control::RunningFilter>> open_joint(std::uint32_t map_id) override {
        return open_filter(map_id);
    }
    Result<std::unique_ptr<control::RunningKeys>> open_exact(std::uint32_t id) override {
        const auto found = keys.find(id);
        if (found == keys.end()) return kernel_refused("no such map of keys");
        return std::make_unique<FakeKeys>(*this, found->second);
    }
    Result<std::unique_ptr<control::RunningKeys>> open_inserted(std::uint32_t id) override {
        return open_exact(id);
    }
    Result<UniqueFd> open_map(std::uint32_t map_id) override {
        maps_opened.push_back(map_id);
        return UniqueFd();
    }
    Result<UniqueFd> make_inserted(const std::string& name, std::uint32_t most,
                                   std::span<const kernel::NotedKey> noted) override {
        SIEVE_TRY(take("make inserted " + name));
        UniqueFd fd(::dup(0));
        if (!fd) return kernel_refused("no descriptor");
        Keys& made = keys[static_cast<std::uint32_t>(fd.get() + 1000)] = {.notes = {}, .most = most};
        for (const kernel::NotedKey& one : noted) made.notes[std::to_array(one.key.word)] = one.note;
        return fd;
    }
    Status grace_period() override { return take("grace period"); }
    std::uint64_t boot_time() override { return now; }

  protected:
    // Whether the filter of that id holds the key.
    [[nodiscard]] bool holds(std::uint32_t id, const sieve_key& key) const {
        const std::vector<sieve_line>& lines = filters_.at(id);
        sieve_file file{};
        std::memcpy(&file, lines.data() + SIEVE_FILE_LINE, sizeof(file));
        const Image image =
            Image::create(lines.size() - SIEVE_FIRST_LINE - file.witnesses, file.witnesses).value();
        std::memcpy(const_cast<sieve_line*>(image.lines().data()), lines.data(), image.bytes());
        return image.contains(key);
    }

  private:
    class FakeFilter final : public control::RunningFilter {
      public:
        explicit FakeFilter(std::vector<sieve_line>& lines) : lines_(lines) {}
        const sieve_lookup& lookup() const override {
            return *reinterpret_cast<const sieve_lookup*>(lines_.data());
        }
        const sieve_probes& probes() const override {
            return *reinterpret_cast<const sieve_probes*>(lines_.data() + SIEVE_PROBES_LINE);
        }
        sieve_file& file() override {
            return *reinterpret_cast<sieve_file*>(lines_.data() + SIEVE_FILE_LINE);
        }
        std::span<sieve_line> lines() override {
            return {lines_.data() + SIEVE_FIRST_LINE,
                    lines_.size() - SIEVE_FIRST_LINE - file().witnesses - file().exceptions};
        }
        std::span<const sieve_witness> witnesses() override {
            return {reinterpret_cast<const sieve_witness*>(lines().data() + lines().size()),
                    file().witnesses};
        }
        std::span<const sieve_exception> exceptions() override {
            return {reinterpret_cast<const sieve_exception*>(witnesses().data() + witnesses().size()),
                    file().exceptions};
        }

      private:
        std::vector<sieve_line>& lines_;
    };

    class FakeKeys final : public control::RunningKeys {
      public:
        FakeKeys(FakeFilters& filters, Keys& keys) : filters_(filters), keys_(keys) {}
        Result<std::optional<kernel::KeyNote>> find(const sieve_key& key) override {
            const auto found = keys_.notes.find(std::to_array(key.word));
            return found == keys_.notes.end() ? std::nullopt : std::optional(found->second);
        }
        Result<bool> put(const sieve_key& key, const kernel::KeyNote& note) override {
            SIEVE_TRY(change("note"));
            if (!keys_.notes.contains(std::to_array(key.word)) && keys_.notes.size() >= keys_.most)
                return false;
            keys_.notes[std::to_array(key.word)] = note;
            return true;
        }
        Status erase(const sieve_key& key) override {
            SIEVE_TRY(change("forget"));
            keys_.notes.erase(std::to_array(key.word));
            return {};
        }
        Result<std::vector<kernel::NotedKey>> all() override {
            std::vector<kernel::NotedKey> all;
            for (const auto& [words, note] : keys_.notes) {
                kernel::NotedKey one{.note = note};
                std::copy(words.begin(), words.end(), std::begin(one.key.word));
                all.push_back(one);
            }
            return all;
        }
        std::uint64_t most() override { return keys_.most; }

      private:
        [[nodiscard]] Status change(const std::string& step) const {
            EXPECT_TRUE(filters_.held_) << step << " without the lock";
            return filters_.meet(step);
        }
        FakeFilters& filters_;
        Keys& keys_;
    };

    std::map<std::uint32_t, std::vector<sieve_line>> filters_;
};

} // namespace sieve::test
