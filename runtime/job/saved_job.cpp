// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/saved_job.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "configs/job.pb.h"

namespace lockstep::job {

namespace {

/// Without one the parser writes to stderr.
class Silent final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

constexpr int kMostLevels = 64;

}  // namespace

std::optional<Job> read_saved(const std::string& text) {
  Silent silent;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silent);
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(kMostLevels);
  Job job;
  // A file that was emptied would be read as a job without any field.
  if (!parser.ParseFromString(text, &job) || !job.has_model()) return std::nullopt;
  return job;
}

}  // namespace lockstep::job
