// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the service remembers: of each set the last good image, the list that it was built of, and where that
// came from.
//
//     version                  the version of all this
//     lock                     held by whoever writes
//     sets/NAME/record.json    which image is the last good one, and its provenance
//     sets/NAME/ID.sieve       that image; ID is its identity
//     sets/NAME/ID.list        its list, parsed (list_file.hpp); none if a source was the image
//     sets/NAME/ID.exact       the keys that verify its matches (exact_file.hpp), if they are to be verified
//     hooks.json               the hooks that the service put tables on
//     together.json            records that are being committed together
//
// record.json is replaced as a whole, after the files that it names are on the disk, so that a crash leaves
// the old record with its files or the new one with its. Everything here belongs to its owner alone: an image
// holds secret hash keys.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libsieve/image/image.hpp"
#include "libsieve/kernel/hooks/hook_point.hpp"
#include "libsieve/service/source_provenance.hpp"
#include "libsieve/util/result.hpp"
#include "libsieve/util/unique_fd.hpp"

namespace sieve::service {

// The provenance of a set's last good image.
struct SetRecord {
    std::string identity{};    // of the image: 32 hexadecimal digits
    std::string build{};       // digest of build_text()
    std::string list_digest{}; // of the list (list_digest.hpp); empty: a source was the image
    std::uint64_t entries = 0; // of the list
    std::uint64_t keys = 0;    // of the filter
    std::uint64_t skipped = 0; // malformed lines that were left out
    std::uint64_t bytes = 0;   // of the image
    double expected_fpr = 0;
    std::int64_t built_at = 0; // in seconds since 1970
    bool exact = false;        // the keys that verify its matches are kept, too
    // Of the list: what this host lives by, or is to be protected, and so was left out (guards.hpp).
    std::vector<std::string> left_out{};
    std::vector<SourceProvenance> sources{};
};

// A hook that the service put its program or table on. It takes away no other.
struct ManagedHook {
    std::string interface {};
    kernel::HookPoint point = kernel::HookPoint::xdp;
    std::uint32_t program_id = 0;

    [[nodiscard]] friend bool operator==(const ManagedHook&, const ManagedHook&) = default;
};

class StateDirectory {
  public:
    // To write: makes the directory if it is not there, and holds its lock as long as the object lives. Waits
    // up to `patience` for another holder; tells `waiting` once who that is. Errors: busy; bad_input for a
    // directory of another version, one that is not ours, or one that others may write to.
    [[nodiscard]] static Result<StateDirectory>
    open(const std::string& path, std::chrono::milliseconds patience,
         const std::function<void(const std::string& holder)>& waiting);

    // To read only, without the lock. A directory that is not there, or that we may not read, is as good as
    // an empty one.
    [[nodiscard]] static Result<StateDirectory> look(const std::string& path);

    [[nodiscard]] const std::string& path() const { return path_; }

    // The set's record; nothing if there is none. One that cannot be understood, or whose image or keys for
    // verification are missing or damaged, counts as none, and `remark` is told. Keys that were found whole
    // are read again only if their file has changed.
    [[nodiscard]] std::optional<SetRecord>
    read(const std::string& set, const std::function<void(const std::string& text)>& remark) const;

    [[nodiscard]] std::string image_path(const std::string& set, const std::string& identity) const;
    [[nodiscard]] std::string list_path(const std::string& set, const std::string& identity) const;
    [[nodiscard]] std::string exact_path(const std::string& set, const std::string& identity) const;

    // The keys that verify matches with that image. bad_input, with the file's name, if they are missing or
    // damaged.
    [[nodiscard]] Result<std::vector<sieve_key>> exact_keys(const std::string& set,
                                                            const std::string& identity) const;

    // Writes the files of a set's image under its identity, beside what is there. `list` is a list file, or
    // -1; `exact` are the keys for verification, if any.
    [[nodiscard]] Status stage(const std::string& set, Image& image, int list,
                               std::span<const sieve_key> exact) const;
    // Makes the record the last good one, and removes the files of all others.
    [[nodiscard]] Status commit(const std::string& set, const SetRecord& record) const;
    // The same for several sets at once: after a crash, open() finds all of these records or none.
    [[nodiscard]] Status commit(const std::map<std::string, SetRecord>& records) const;
    // Removes staged files that no record names.
    void discard_staged(const std::string& set) const;
    // Removes what is kept of sets that are not among these.
    void forget_all_but(const std::vector<std::string>& sets) const;

    // Those of this boot of the machine: no program survives the next one, and its id may become another
    // program's. None if the file is damaged, and `remark` is told. Error: the file cannot be read now.
    [[nodiscard]] Result<std::vector<ManagedHook>>
    hooks(const std::function<void(const std::string& text)>& remark) const;
    // Writes the file, unless it says just this already.
    [[nodiscard]] Status keep_hooks(const std::vector<ManagedHook>& hooks) const;

  private:
    // The files of keys for verification that were found whole, by set.
    struct WholeKeys {
        std::mutex mutex;
        std::map<std::string, FileStamp> stamps;
    };

    StateDirectory(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
    [[nodiscard]] std::string folder_of(const std::string& set) const;
    void remove_all_but(const std::string& set, const std::string& identity) const;
    // Completes a commit of several records that a crash cut off.
    [[nodiscard]] Status complete_commit() const;
    [[nodiscard]] Status check_exact(const std::string& set, const std::string& identity) const;
    [[nodiscard]] bool has_files_of(const std::string& set, const SetRecord& record) const;

    std::string path_;
    UniqueFd lock_;
    std::unique_ptr<WholeKeys> whole_keys_ = std::make_unique<WholeKeys>();
};

// The identity of an image as text.
[[nodiscard]] std::string identity_text(const sieve_file& file);

} // namespace sieve::service
