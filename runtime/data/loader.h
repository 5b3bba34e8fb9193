// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "runtime/data/batch.h"
#include "runtime/data/dataset.h"
#include "runtime/data/sampler.h"

namespace lockstep::data {

struct LoaderOptions {
  std::int64_t global_batch = 1;  ///< samples a step, over all ranks and micro-batches
  std::int64_t accumulate = 1;    ///< micro-batches a step
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::uint64_t seed = 0;
  bool shuffle = true;
  bool drop_last = false;
  std::int64_t prefetch = 2;     ///< batches decoded ahead by a thread; 0 decodes in next(), without one
  SamplerState start = {};       ///< where to begin: a new run, or what a checkpoint holds
  std::uint64_t first_step = 1;  ///< the number of the step that begins there

  bool operator==(const LoaderOptions&) const = default;
};

/// The order in which a loader of these options takes `size` samples.
Sampler::Options sampler_options(const LoaderOptions& options, std::int64_t size);

/// Gives one rank its share of each micro-batch, step after step, without end. Micro-batch m of k takes rows
/// [m G / k, (m + 1) G / k) of the step's G samples; rank r of W takes its part of those likewise. Only the thread that
/// owns the loader may call it; destroying it ends its thread, whatever that one is doing.
class Loader {
 public:
  /// Throws FieldError for options without a meaning and UsageError for a state outside the data set.
  Loader(DatasetPtr dataset, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next micro-batch's share. Rethrows what the data set threw when decoding it; so does every later call.
  Batch next();
  /// The start of the step after that of the batch last returned; before the first batch, LoaderOptions::start.
  SamplerState state() const { return state_; }
  std::int64_t steps_per_epoch() const { return sampler_.steps_per_epoch(); }

 private:
  struct Item {
    Batch batch;
    SamplerState after;
  };
  Item produce();
  void work(const std::stop_token& stop);

  DatasetPtr dataset_;
  LoaderOptions options_;
  SamplerState state_;

  // Of the producer: the loader's thread, or next() when there is none.
  Sampler sampler_;
  StepPlan plan_;
  std::int64_t micro_batch_ = 0;  // the next one of plan_
  std::uint64_t next_step_;       // after plan_

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Item> ready_;
  std::exception_ptr failure_;
  std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace lockstep::data
