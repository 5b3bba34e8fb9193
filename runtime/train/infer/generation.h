// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/nn/sampling.h"
#include "runtime/tensor/device.h"
#include "runtime/train/saved_model.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

struct GenerateOptions {
  SavedModel saved;
  std::string prompt;         ///< at least one token
  std::int64_t tokens = 200;  ///< to add
  nn::SamplingOptions sampling = {};
  std::uint64_t seed = 0;  ///< of the draws
  Device device = kCpu;
};

struct GenerateResult {
  std::string checkpoint;
  std::int64_t tokens = 0;    ///< that were added
  double tokens_per_s = 0.0;  ///< of these
};

/// A job's language model, which writes texts in float32. One process's and one thread's.
class Generator {
 public:
  /// Throws Error, and UsageError where the model writes no texts or its tokens have no text.
  Generator(const job::Job& job, const SavedModel& saved, Device device);
  ~Generator();

  /// As generate() below.
  GenerateResult write(const GenerateOptions& options, const std::function<void(std::string_view)>& emit);

 private:
  struct Loaded;
  std::unique_ptr<Loaded> loaded_;
};

/// Continues a text with the job's language model, in float32: `emit` is given the bytes of each token as it is drawn.
/// Keys and values are kept, so that each further token runs the model on one position. Where the text outgrows the
/// model's context, the model goes on from its last tokens, half a context of them. The same seed gives the same text.
/// One process; throws Error, and UsageError where the model writes no texts or its tokens have no text.
GenerateResult generate(const job::Job& job, const GenerateOptions& options,
                        const std::function<void(std::string_view)>& emit);

}  // namespace lockstep::train
