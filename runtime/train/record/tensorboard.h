// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/train/record/output_writer.h"

namespace lockstep {

/// Scalars as TensorBoard reads them: a file events.out.tfevents.<unix time>.<host>.<pid>.<serial> of TFRecords, each a
/// tensorflow.Event message. A resumed run opens a new file beside the old one, with a later time; TensorBoard reads
/// both.
class TensorBoardWriter {
 public:
  /// Makes a file in `directory`, which exists, by `output`, which outlives this. A run that goes on with step
  /// `first_step` > 1 says so, and a TensorBoard that has shown later points already forgets them.
  explicit TensorBoardWriter(train::OutputWriter& output, const std::string& directory, std::int64_t first_step = 1);

  /// Adds a point, with the time of the call, to the series `tag`.
  void scalar(std::string_view tag, std::int64_t step, float value);

  const std::string& path() const { return path_; }

 private:
  void add_record(std::string_view event);

  train::OutputWriter& output_;
  std::string path_;
  train::OutputWriter::SinkId file_;
};

/// The records of a file's content that are no points of steps behind `last`, up to the first that is damaged.
std::string events_up_to(std::string_view content, std::int64_t last);

/// Drops the points of steps behind `last` from every file of the directory: they are about to be made again, and a
/// curve must not show them twice. Not while a writer is open there. What cannot be read or rewritten, or is no regular
/// file, is set aside.
void drop_later_events(const std::string& directory, std::int64_t last);

}  // namespace lockstep
