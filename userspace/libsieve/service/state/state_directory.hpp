// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the service remembers: of each set the last good image, the list that it was built of, and where that
// came from.
//
//     version                  the version of all this
//     lock                     who writes; that process holds an flock(2) on the directory itself
//     sets/NAME/record.json    which image is the last good one, and its provenance
//     sets/NAME/ID.sieve       that image; ID is its identity
//     sets/NAME/ID.list        its list, parsed (list_file.hpp); none if a source was the image
//     sets/NAME/ID.source-DIGEST  what a server or a command said, of a set that has other sources, too
//     sets/NAME/beside.source-DIGEST  likewise, of the lists that a set has beside a stream, whatever its
//     image sets/NAME/ID.exact       the keys that verify its matches (exact_file.hpp), if they are to be
//     verified hooks.json               the hooks that the service put tables on together.json records that
//     are being committed together NAME.refused             the list that a guard refused last (refusals.hpp)
//     set-aside.N              what was found of another version, or incomplete; the last few
//
// What the directory cannot take, such as on a full disk, goes to a spare folder in memory with the same
// files, until the directory can. Of two records of a set, the newer one counts.
//
// record.json is replaced as a whole, after the files that it names are on the disk, so that a crash leaves
// the old record with its files or the new one with its. Everything here belongs to its owner alone: an image
// holds secret hash keys.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "libsieve/image/image.hpp"
#include "libsieve/kernel/programs/hook_point.hpp"
#include "libsieve/service/state/pauses.hpp"
#include "libsieve/service/state/refusals.hpp"
#include "libsieve/service/state/source_provenance.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

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
    std::string accepted{}; // list_digest, if a person accepted the list, which a guard had refused
    std::vector<SourceProvenance> sources{};
    std::vector<SourceProvenance> beside{}; // of the lists beside a stream, as they were taken last
    std::string exceptions{}; // which of them is the file of exceptions, by its identity; empty: none
    std::string action{};     // digest of action_text(), as it was in force with this list; empty: unknown
    // Of the last good images before this one, the newest last. A filter of one of them is older than the
    // record. commit() keeps account of them.
    std::vector<std::string> earlier{};
    // The sets that had the record before (list_owner.hpp). It may still be in force under their names, and
    // what is in force under the name of this one may be a third one's.
    std::set<std::string> former{};
};

// In place of an image's identity, for what came of the sources of SetRecord::beside.
inline constexpr char beside_stream[] = "beside";

// A hook that the service put its program or table on. It takes away no other.
struct ManagedHook {
    std::string interface {};
    kernel::HookPoint point = kernel::HookPoint::xdp;
    std::uint32_t program_id = 0;

    [[nodiscard]] friend bool operator==(const ManagedHook&, const ManagedHook&) = default;
};

// What to do where the directory cannot be used.
struct StateSettings {
    std::string spare{};                                 // the spare folder; empty: there is none
    std::function<void(const std::string& text)> tell{}; // what was set aside or made anew
};

// The spare folder of that directory: in /run/xdp-sieve, and so as long as the machine runs.
[[nodiscard]] std::string standard_spare(const std::string& path);

class StateDirectory {
  public:
    // To write: makes the directory if it is not there, and holds its lock as long as the object lives. Waits
    // up to `patience` for another holder; tells `waiting` once who that is. A directory of ours that has
    // another version, or none, is set aside and made anew. Errors: busy; without a spare folder also
    // bad_input, for one that cannot be written, that is not ours, or that others may write to.
    [[nodiscard]] static Result<StateDirectory>
    open(const std::string& path, std::chrono::milliseconds patience,
         const std::function<void(const std::string& holder)>& waiting, StateSettings settings = {});

    // To read only, without the lock. A directory that is not there, that we may not read, or that open()
    // would set aside is as good as an empty one.
    [[nodiscard]] static StateDirectory look(const std::string& path, const std::string& spare = {});

    [[nodiscard]] const std::string& path() const { return path_; }

    [[nodiscard]] const std::string& spare() const { return settings_.spare; }

    // Takes the directory if that failed before, or if somebody removed it meanwhile, and moves into it what
    // is in the spare folder, as far as that works. Cheap if all is well. A set whose list has a journal
    // moves with its next image.
    void mend() const;
    // Whether the set's image with this identity is in the spare folder; and whether the directory has room
    // for the next one then.
    [[nodiscard]] bool is_in_spare(const std::string& set, const std::string& identity) const;
    [[nodiscard]] bool has_room_again(const std::string& set, const std::string& identity) const;
    // Rises when another directory has been taken at this path.
    [[nodiscard]] unsigned taken() const { return hold_->taken; }
    // Why something is in the spare folder; nothing if all that is kept is in the directory.
    [[nodiscard]] std::optional<std::string> trouble() const;

    // The set's record; nothing if there is none. One that cannot be understood, or whose image or keys for
    // verification are missing or damaged, counts as none, and `remark` is told. Keys that were found whole
    // are read again only if their file has changed.
    [[nodiscard]] std::optional<SetRecord>
    read(const std::string& set, const std::function<void(const std::string& text)>& remark) const;

    // Those that it has something of.
    [[nodiscard]] std::vector<std::string> sets() const;
    // Gives all of a set to another one, in place of whatever that one has; or a copy of it. False: it cannot
    // be done, or there is nothing of the first one.
    [[nodiscard]] bool rename(const std::string& set, const std::string& to) const;
    [[nodiscard]] bool copy(const std::string& set, const std::string& to) const;

    // The newest record that can be understood, whatever became of the files that it names.
    [[nodiscard]] std::optional<SetRecord> named(const std::string& set) const;

    [[nodiscard]] std::string image_path(const std::string& set, const std::string& identity) const;
    [[nodiscard]] std::string list_path(const std::string& set, const std::string& identity) const;
    [[nodiscard]] std::string exact_path(const std::string& set, const std::string& identity) const;
    // The list that the image was built of, to read. bad_input, with the file's name, if it cannot be read.
    [[nodiscard]] Result<UniqueFd> open_list(const std::string& set, const std::string& identity) const;
    // read_pauses() of the directory.
    [[nodiscard]] Result<Pauses> pauses() const;

    // The set's list that was refused last, unless forget_refused() came since.
    [[nodiscard]] std::optional<RefusedList> refused(const std::string& set) const;
    // Whether a person has accepted just this list.
    [[nodiscard]] bool is_accepted(const std::string& set, const RefusedList& list) const;
    // Notes a refused list. One that is noted already stays as it is.
    [[nodiscard]] Status note_refused(const std::string& set, const RefusedList& list) const;
    // Another list of the set is in force, or the refused one is gone.
    void forget_refused(const std::string& set) const;
    // Gives what was refused of a set, and a person's answer, to another one, in place of its own.
    void give_refused(const std::string& set, const std::string& to) const;
    // The sets of which a person has accepted a list that is not in force yet, with its digest.
    [[nodiscard]] std::map<std::string, std::string> accepted() const;

    // Writes a file by `write`, which is given its path: in the set's folder, or the one in the spare folder.
    // It stays until remove_beside(), whatever is committed, but is not kept over a restart.
    [[nodiscard]] Status write_beside(const std::string& set, const std::string& name,
                                      const std::function<Status(const std::string& path)>& write) const;
    void remove_beside(const std::string& set, const std::string& name) const;

    // The keys that verify matches with that image. bad_input, with the file's name, if they are missing or
    // damaged.
    [[nodiscard]] Result<std::vector<sieve_key>> exact_keys(const std::string& set,
                                                            const std::string& identity) const;

    // Writes the files of a set's image under its identity, beside what is there. `list` is a list file, or
    // -1; `exact` are the keys for verification, if any.
    [[nodiscard]] Status stage(const std::string& set, Image& image, int list,
                               std::span<const sieve_key> exact) const;
    // What came of a source, for an image that is staged or the last good one: by its digest, which the
    // record has as soon as it is the last good content. An image in the spare folder goes without: what
    // sources said may take much memory, and must not keep the image from the disk.
    [[nodiscard]] Status keep_source(const std::string& set, const std::string& identity,
                                     const std::string& digest, int content) const;
    [[nodiscard]] Result<UniqueFd> open_source(const std::string& set, const std::string& identity,
                                               const std::string& digest) const;
    // Removes what is kept so for the image, but for these and what the set's record has.
    void forget_sources_but(const std::string& set, const std::string& identity,
                            std::set<std::string> digests) const;
    // Makes the record the last good one, and removes the files of all others, but for what is staged.
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
    // Images of sets that were staged last, and are neither committed nor discarded: nobody else removes
    // them.
    struct Staged {
        std::mutex mutex;
        std::map<std::string, std::string> identities;
        std::map<std::string, std::string> beside; // names of files of write_beside()
    };
    void note_staged(const std::string& set, const std::string& identity) const;
    void forget_staged(const std::string& set, const std::string& identity) const;

    // The files of keys for verification that were found whole, by set.
    struct WholeKeys {
        std::mutex mutex;
        std::map<std::string, FileStamp> stamps;
    };
    // What is held of the directory and of its spare folder.
    struct Hold {
        std::mutex claiming;              // held while the directory is taken
        UniqueFd directory;               // with its lock
        std::atomic<unsigned> taken = 0;  // directories
        std::atomic<bool> usable = false; // the directory is ours, and can be read
        std::mutex mutex;                 // of what follows
        UniqueFd spare;                   // with its lock
        std::optional<std::string> why{}; // the directory could not be used, or be written
    };

    StateDirectory(std::string path, StateSettings settings)
        : path_(std::move(path)), settings_(std::move(settings)) {}
    [[nodiscard]] Status claim(std::chrono::milliseconds patience,
                               const std::function<void(const std::string& holder)>& waiting) const;
    void reclaim() const;
    [[nodiscard]] bool is_in_place() const;
    [[nodiscard]] Status hold_spare() const;
    [[nodiscard]] Status
    into_directory_or_spare(const std::function<Status(const std::string& root)>& write) const;
    void note_trouble(std::optional<std::string> why) const;
    void tell(const std::string& text) const;

    [[nodiscard]] bool put_in_place(const std::string& set, const std::string& to,
                                    void (*put)(const std::filesystem::path& from,
                                                const std::filesystem::path& to,
                                                std::error_code& error)) const;
    [[nodiscard]] std::vector<std::string> roots() const; // that can be read: the directory, the spare folder
    [[nodiscard]] std::string root_with(const std::string& set, const std::string& identity) const;
    [[nodiscard]] std::string source_path(const std::string& set, const std::string& identity,
                                          const std::string& digest) const;
    [[nodiscard]] std::string file_of(const std::string& set, const std::string& identity,
                                      const char* kind) const;
    void remove_unnamed(const std::string& set, const std::string& identity) const;
    [[nodiscard]] Status bring_home(const std::string& set) const;
    [[nodiscard]] Status put_record(const std::string& set, SetRecord record) const;
    // Completes a commit of several records that a crash cut off.
    [[nodiscard]] Status complete_commit(const std::string& root) const;
    [[nodiscard]] Status check_exact(const std::string& set, const std::string& identity) const;
    [[nodiscard]] std::optional<SetRecord>
    check_record(const std::string& set, const SetRecord& record, const std::string& path,
                 const std::function<void(const std::string& text)>& remark) const;
    [[nodiscard]] bool has_files_of(const std::string& set, const SetRecord& record) const;

    std::string path_;
    StateSettings settings_;
    std::unique_ptr<Hold> hold_ = std::make_unique<Hold>();
    std::unique_ptr<Staged> staged_ = std::make_unique<Staged>();
    std::unique_ptr<WholeKeys> whole_keys_ = std::make_unique<WholeKeys>();
};

// The identity of an image as text.
[[nodiscard]] std::string identity_text(const sieve_file& file);

} // namespace sieve::service
