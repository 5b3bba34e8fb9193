// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/text_format.h>

#include <stdexcept>
#include <string>

#include "configs/job.pb.h"
#include "runtime/job/defaults.h"

namespace lockstep::job {

/// A part of a job, such as `optimizer { sgd { lr: 0.1 } }`, with its defaults filled in.
inline Job resolved(const std::string& text) {
  Job job;
  if (!google::protobuf::TextFormat::ParseFromString(text, &job)) throw std::invalid_argument(text);
  fill_defaults(job, "test.pbtxt", ".");
  return job;
}

}  // namespace lockstep::job
