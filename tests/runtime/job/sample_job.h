// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/job/job.h"

namespace lockstep::job {

/// The smallest job that is sound: it needs no files.
inline const std::string kSample = R"(seed: 3
model { mlp { hidden: [16, 8] } }
data { global_batch: 8 train { synthetic { samples: 64 shape: [4] classes: 3 } } }
optimizer { sgd { lr: 0.1 } }
train { steps: 10 }
)";

/// The lines that reading `text` gives, without the file's name.
inline std::vector<std::string> errors_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> lines;
  for (const Diagnostic& diagnostic : check_text(text, "job.pbtxt", overrides, "/data").diagnostics) {
    const std::string line = diagnostic.str();
    lines.push_back(line.starts_with("job.pbtxt:") ? line.substr(10) : line);
  }
  return lines;
}

inline Job sample(const std::vector<std::string>& overrides = {}) {
  return load_text(kSample, "sample.pbtxt", overrides, "/data");
}

}  // namespace lockstep::job
