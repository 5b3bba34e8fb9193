// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <utility>

#include "runtime/data/inputs/inputs.h"

namespace lockstep::data {

/// What is said of each position of an input.
struct WholeAnswer {
  Shape shape = {};                     ///< the extents of the input's positions, and that of several numbers of each
  std::span<const float> numbers = {};  ///< of this shape
  bool classes = false;                 ///< the numbers are classes; -1 where a position has none
};

/// A file that is predicted as a whole, whatever its extents: one sample, [positions..., C]. The answer, a number or a
/// class for each position, is a file of its own.
class WholeInput : public Inputs {
 public:
  explicit WholeInput(std::string path) : path_(std::move(path)) {}

  std::int64_t size() const final { return 1; }
  InputPlace place(std::int64_t) const final { return {path_}; }
  const std::string& path() const { return path_; }

  /// Writes the answer, whole or not at all, and the folders above it that are missing. Throws StorageError.
  virtual void write_answer(const std::string& to, const WholeAnswer& answer) const = 0;

 private:
  std::string path_;
};

}  // namespace lockstep::data
