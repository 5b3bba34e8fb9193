// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/store.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <filesystem>
#include <iomanip>
#include <sstream>
#include <utility>

#include "runtime/base/files/durable_file.h"
#include "runtime/checkpoint/temporary_directory.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kPrefix = "step-";

std::string name_of_step(std::uint64_t step) {
  std::ostringstream name;
  name << kPrefix << std::setfill('0') << std::setw(8) << step;
  return name.str();
}

std::optional<std::uint64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::uint64_t step = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  // Only the one spelling that save() uses: every other name is somebody else's.
  return name == name_of_step(step) ? std::optional(step) : std::nullopt;
}

void require_step(const std::string& path, std::uint64_t expected, std::uint64_t found) {
  if (found != expected) throw StorageError(path + " holds step " + std::to_string(found) + ", not its name's");
}

/// Renames what is at `path` to a free name beside it: somebody may still have a use for it.
void keep_aside(const std::string& path) {
  std::string free = path + ".was-here";
  for (std::error_code error; std::filesystem::exists(std::filesystem::symlink_status(free, error));) free += '+';
  rename_to_free_name(path, free);
}

/// Deletions of which one that fails stops no other.
class Removals {
 public:
  void remove(const std::string& path) {
    try {
      remove_checkpoint(path);
    } catch (const StorageError&) {
      if (!failure_) failure_ = std::current_exception();
    }
  }
  /// Throws what the first one that failed threw.
  void require_done() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
};

}  // namespace

Store::Store(std::string directory, RetryPolicy retries) : directory_(std::move(directory)), retries_(retries) {}

std::vector<std::uint64_t> Store::steps() const {
  std::vector<std::uint64_t> steps;
  for (const Place& place : places()) steps.push_back(place.step);
  return steps;
}

std::vector<Store::Place> Store::places() const {
  std::vector<Place> places;
  for (const std::string& name : list_directory(directory_)) {
    const std::string path = directory_ + "/" + name;
    const std::optional<std::uint64_t> step = step_of(name);
    // A checkpoint that cannot be looked at is damaged, not absent.
    std::error_code error;
    if (step && (std::filesystem::is_directory(path, error) || error)) places.push_back({*step, path});
  }
  std::ranges::sort(places, std::ranges::greater(), &Place::step);
  return places;
}

Store::Damage Store::damage_of(const Place& place, Manifest (*check)(const std::string&)) const {
  try {
    require_step(place.path, place.step, with_retries(retries_, [&] { return check(place.path); }).step);
    return {};
  } catch (const FileError& error) {
    return {error.what(), false};
  } catch (const FormatVersionError& error) {
    return {error.what(), false};
  } catch (const StorageError& error) {
    return {error.what()};
  }
}

std::string Store::save(const TrainingState& state, const std::map<std::string, Tensor>& tensors) const {
  const std::string name = name_of_step(state.step());
  const Place target{state.step(), directory_ + "/" + name};
  with_retries(retries_, [&] {
    make_directories(directory_);
    remove_abandoned();
    const TemporaryDirectory temporary(directory_, name);
    write_checkpoint(temporary.path(), state, tensors);
    commit(temporary.path(), target);
  });
  return target.path;
}

void Store::commit(const std::string& prepared, const Place& target) const {
  std::optional<TemporaryDirectory> replaced;  // deleted behind the sync
  while (!rename_directory(prepared, target.path)) {
    const Damage damage = damage_of(target, verify_checkpoint);
    if (damage.what.empty()) break;
    if (damage.is_certain && is_flat_directory(target.path)) {
      replaced.emplace(directory_, name_of_step(target.step));
      rename_directory(target.path, replaced->path());
    } else {
      keep_aside(target.path);
    }
  }
  sync_directory(directory_);
}

std::vector<ScanEntry> Store::scan() const {
  std::vector<ScanEntry> entries;
  for (const Place& place : places()) {
    entries.push_back({place.step, place.path, damage_of(place, verify_checkpoint).what});
  }
  return entries;
}

std::optional<Checkpoint> Store::latest(std::uint64_t limit) const { return newest(limit, read_checkpoint); }

std::optional<Checkpoint> Store::latest_state() const {
  return newest(std::numeric_limits<std::uint64_t>::max(), read_without_tensors);
}

std::optional<Checkpoint> Store::newest(std::uint64_t limit, Read read) const {
  for (std::vector<Place> found = places();;) {
    std::vector<std::string> damages;
    if (std::optional<Checkpoint> checkpoint = newest_of(found, limit, read, damages)) return checkpoint;
    if (damages.empty()) return std::nullopt;
    // A run that saves may have deleted them meanwhile, and has a newer one then.
    std::vector<Place> now = places();
    const bool same = std::ranges::equal(found, now, {}, &Place::path, &Place::path);
    found = std::move(now);
    if (!same) continue;
    std::string text = "no checkpoint in " + directory_ + " is whole:";
    for (const std::string& damage : damages) text += "\n  " + damage;
    throw StorageError(text, "Restore one from a copy, or start anew with --resume never.");
  }
}

std::optional<Checkpoint> Store::newest_of(const std::vector<Place>& places, std::uint64_t limit, Read read,
                                           std::vector<std::string>& damages) const {
  for (const Place& place : places) {
    if (place.step >= limit) continue;
    try {
      Checkpoint checkpoint = with_retries(retries_, [&] { return read(place.path); });
      require_step(place.path, place.step, checkpoint.state.step());
      for (const std::string& damage : damages) {
        checkpoint.notices.push_back(damage + "; " + place.path + " is taken instead");
      }
      return checkpoint;
    } catch (const StorageError& error) {
      damages.emplace_back(error.what());
    }
  }
  return std::nullopt;
}

Checkpoint Store::load(const std::string& path) const {
  return with_retries(retries_, [&] { return read_checkpoint(path); });
}

void Store::prune(std::uint32_t keep) const {
  with_retries(retries_, [&] {
    Removals removals;
    for (const std::string& path : abandoned()) removals.remove(path);
    std::uint32_t whole = 0;
    for (const Place& place : places()) {
      if (keep > 0 && whole >= keep) {
        removals.remove(place.path);
        continue;
      }
      // The newest whole one is read to its last byte, since it is what a resumed run needs; the others only have their
      // sizes compared, to spare the disk.
      std::error_code unknown;
      const bool is_whole = damage_of(place, whole == 0 ? verify_checkpoint : check_sizes).what.empty();
      if (is_whole) {
        ++whole;
      } else if (is_flat_directory(place.path) && !std::filesystem::exists(place.path + "/manifest.json", unknown) &&
                 !unknown) {
        removals.remove(place.path);
      }
    }
    removals.require_done();
  });
}

void Store::keep_only(std::uint64_t step) const {
  with_retries(retries_, [&] {
    Removals removals;
    for (const std::string& path : abandoned()) removals.remove(path);
    const std::vector<Place> all = places();
    const auto kept = std::ranges::find(all, step, &Place::step);
    if (kept == all.end() || !damage_of(*kept, verify_checkpoint).what.empty()) {
      throw StorageError(directory_ + " has no whole checkpoint of step " + std::to_string(step));
    }
    for (const Place& place : all) {
      if (place.step != step) removals.remove(place.path);
    }
    removals.require_done();
  });
}

void Store::remove_abandoned() const {
  try {
    Removals leftovers;
    for (const std::string& path : abandoned()) leftovers.remove(path);
  } catch (const StorageError&) {
    // A file that cannot be deleted, or not even listed, is in nobody's way.
  }
}

std::vector<std::string> Store::abandoned() const {
  std::vector<std::string> paths;
  for (const std::string& name : list_directory(directory_)) {
    if (is_abandoned(directory_, name)) paths.push_back(directory_ + "/" + name);
  }
  return paths;
}

}  // namespace lockstep::checkpoint
