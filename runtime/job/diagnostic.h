// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/field_path.h"

namespace lockstep::job {

/// The source of a value in a job: a place in its file, or an override on the command line.
struct Position {
  std::string source;  ///< the file as the user named it, or "--set path=value"
  int line = 0;        ///< counted from 1; 0: the source as a whole
  int column = 0;

  /// "digits.pbtxt:12:3"
  std::string str() const;
};

/// One thing that is wrong with a job.
struct Diagnostic {
  Position position;
  std::string path;  ///< of the field, "optimizer.sgd.lr"; empty where none is meant
  std::string message;

  Diagnostic() = default;
  Diagnostic(Position at, std::string field, std::string text)
      : position(std::move(at)), path(std::move(field)), message(std::move(text)) {}

  /// "digits.pbtxt:12:3: optimizer.sgd.lr: must be > 0, is -1"
  std::string str() const;
};

using Diagnostics = std::vector<Diagnostic>;
/// A line each, and a last one where reading stopped early.
std::string str(const Diagnostics& diagnostics);

/// The beginning of the message on a file or folder that is not there.
inline constexpr std::string_view kMissing = "no such ";

/// Reading stops after so many: a file that is no job could give an error for each character.
inline constexpr std::size_t kMaxErrors = 50;

/// Which place gave each field its value, by field path.
class Locations {
 public:
  void record(const std::string& path, Position position) { positions_[path] = std::move(position); }
  bool contains(const std::string& path) const { return positions_.contains(path); }
  /// The place of the field or of the closest message around it; a nameless one where nothing was recorded.
  const Position& find(std::string path) const;
  /// Forgets the field and everything inside it: an override replaces them.
  void erase(const std::string& path);
  /// Records that the field and everything inside it came from one place.
  void relocate(const std::string& path, const Position& position);

 private:
  std::map<std::string, Position> positions_;
};

}  // namespace lockstep::job
