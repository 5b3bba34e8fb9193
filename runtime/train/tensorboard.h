// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/checkpoint/durable_file.h"

namespace lockstep {

/// Scalars as TensorBoard reads them: a file events.out.tfevents.<unix time>.<host>.<pid>.<serial> of TFRecords, each a
/// tensorflow.Event message. A resumed run opens a new file beside the old one; TensorBoard reads both.
class TensorBoardWriter {
 public:
  /// Creates `directory` where it is missing. Throws StorageError.
  explicit TensorBoardWriter(const std::string& directory);
  /// Flushes; a failure then is not reported.
  ~TensorBoardWriter();

  /// Adds a point, with the time of the call, to the series `tag`.
  void scalar(std::string_view tag, std::int64_t step, float value);
  /// Hands what was added to the operating system. Throws StorageError.
  void flush();

  const std::string& path() const { return file_.path(); }

 private:
  void add_record(std::string_view event);

  checkpoint::OutputFile file_;
  std::string pending_;
};

}  // namespace lockstep
