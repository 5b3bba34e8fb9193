// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::train {

/// The activity of a rank, for whoever has to say which rank died or hangs. kNone: it reads its job; kJoin: it joins
/// the other ranks; kJoined: it has; kNotJoined: it could not, and ends; kFailed: it ends and has said why.
enum class RankPhase : std::uint32_t {
  kNone,
  kJoin,
  kJoined,
  kInit,
  kForward,
  kBackward,
  kStep,
  kSave,
  kEval,
  kDone,
  kFailed,
  kNotJoined
};

/// A small file that the ranks of a node map into memory: each keeps its process id, step and phase in a line of its
/// own, which stays readable when the rank is gone; the launcher keeps the width of its terminal there. Writing costs a
/// store. The launcher makes it and names it in the environment variable LOCKSTEP_STATUS_BOARD; ranks without one (or
/// on another node) write nowhere.
class StatusBoard {
 public:
  struct Entry {
    std::int64_t pid = 0;  ///< 0: the rank has not started
    std::uint64_t step = 0;
    RankPhase phase = RankPhase::kNone;
    std::uint64_t started = 0;  ///< when the process was, as ProcessFacts has it
    std::uint32_t beats = 0;    ///< rises as long as the process runs
    int exit_code = -1;         ///< that it ends with by itself; -1: not yet
  };

  /// Makes the file for `ranks` ranks. Throws StorageError.
  static StatusBoard create(const std::filesystem::path& path, int ranks);
  /// The board that the environment names; one that goes nowhere if there is none. While a process has it, the file
  /// is not needed any more: the launcher removes it once all ranks have joined.
  static StatusBoard from_environment();

  void set(int rank, RankPhase phase, std::uint64_t step) const;
  /// Another heartbeat of this process.
  void beat(int rank) const;
  void set_exit_code(int rank, int code) const;
  Entry get(int rank) const;
  int ranks() const;

  /// The width of the terminal that the launcher writes to; 0: it writes to none.
  void set_columns(int columns) const;
  int columns() const;

 private:
  struct Mapping;
  /// Null where there is none.
  static std::shared_ptr<Mapping> open_board(const char* path);

  std::shared_ptr<Mapping> mapping_;
};

/// "in step 57, backward"
std::string str(const StatusBoard::Entry& entry);

}  // namespace lockstep::train
