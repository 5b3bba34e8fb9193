// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <unordered_set>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/batch.h"
#include "runtime/data/batch_slots.h"
#include "runtime/data/collate.h"
#include "runtime/data/dataset.h"
#include "runtime/data/sample_reader.h"
#include "runtime/data/sampler.h"

namespace lockstep::data {

/// Threads that decode where nobody says how many.
inline constexpr std::int64_t kMostDefaultDecodeThreads = 16;

struct LoaderOptions {
  std::int64_t global_batch = 1;  ///< samples a step, over all ranks and micro-batches
  std::int64_t accumulate = 1;    ///< micro-batches a step
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::uint64_t seed = 0;
  bool shuffle = true;
  bool drop_last = false;
  std::int64_t prefetch = 2;        ///< at most 1024 batches decoded ahead by threads; 0 decodes in next(), without one
  std::int64_t decode_threads = 0;  ///< at most 256; 0: as many as the process may use cores, at most 16
  SampleErrors errors = {};
  /// Whether the log names each sample that is skipped, once; else who takes Batch::unread does.
  bool names_unread = true;
  SamplerState start = {};       ///< where to begin: a new run, or what a checkpoint holds
  std::uint64_t first_step = 1;  ///< the number of the step that begins there
  std::uint64_t steps = 0;       ///< the loader gives batches of so many steps; 0: without end
  Device device = kCpu;          ///< the device that works on the batches: for a GPU they lie in page-locked memory
  /// The dtype of inputs of numbers: float32, or the 16-bit dtype that the model casts them to before all else
  /// (amp::OptLevelProperties::input_dtype()): the bits are those of that cast, and half the bytes travel.
  DType input_dtype = DType::kFloat32;

  static constexpr auto fields() {
    return std::tuple(
        option("global_batch", &LoaderOptions::global_batch, kPositive, Required{"the samples a step over all ranks"}),
        option("shuffle", &LoaderOptions::shuffle), option("drop_last", &LoaderOptions::drop_last),
        option("prefetch", &LoaderOptions::prefetch, Bound{">= 0 and <= 1024", 0, false, 1024}),
        option("decode_threads", &LoaderOptions::decode_threads, Bound{">= 1 and <= 256", 1, false, 256},
               Otherwise::kFollows));
  }
  bool operator==(const LoaderOptions&) const = default;
};

/// The order in which a loader of these options takes `size` samples.
Sampler::Options sampler_options(const LoaderOptions& options, std::int64_t size);

/// Memory for the batches of a loader of these options, as much as it takes. Throws as a loader does.
BatchSlots slots_for(const Dataset& dataset, const LoaderOptions& options);

/// Gives one rank its share of each micro-batch, step after step, without end. Micro-batch m of k takes rows
/// [m G / k, (m + 1) G / k) of the step's G samples; rank r of W takes its part of those likewise. Threads decode the
/// samples ahead, several a batch; what they write does not depend on their number. Only the thread that owns the
/// loader may call it; destroying it ends its threads, whatever they are doing.
///
/// Batches take turns in memory that the loader takes, or is given, when it is made (slots()): as much as `prefetch`
/// batches need, a step's, and, for a GPU, those of kStepsOnTheWay more. A batch's memory is used again when its last
/// tensor is dropped and the device has done what the current stream of the thread that drops it was given until then:
/// copies from the batch, such as Batch::to(), may still be under way. To a caller who holds more batches than that,
/// the next ones come in pageable memory of their own.
class Loader {
 public:
  /// Throws FieldError for options without a meaning and UsageError for a state outside the data set.
  Loader(DatasetPtr dataset, const LoaderOptions& options);
  /// Takes the memory of an earlier loader of such a data set and options: slots_for().
  Loader(DatasetPtr dataset, const LoaderOptions& options, BatchSlots slots);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next micro-batch's share. Rethrows what the data set threw when decoding it, of several samples that of the
  /// first row; so does every later call. Throws UsageError behind the last of LoaderOptions::steps.
  Batch next();
  /// Batches that are decoded and wait for next().
  std::int64_t ready() const;
  /// The start of the step after that of the batch last returned; before the first batch, LoaderOptions::start.
  SamplerState state() const { return state_; }
  std::int64_t steps_per_epoch() const { return sampler_.steps_per_epoch(); }
  /// Where batches lie.
  const BatchSlots& slots() const { return slots_; }

 private:
  /// A batch that is being decoded. Threads take its rows in order.
  struct Work {
    Batch batch;
    SamplerState after;
    std::uint64_t epoch = 0;
    std::vector<std::int64_t> indices = {};  ///< of the rows
    BatchRows rows = {};
    std::int64_t next_row = 0;
    std::int64_t unfinished = 0;  ///< rows
    std::exception_ptr failure = nullptr;
    std::int64_t failed_row = 0;

    std::int64_t size() const { return static_cast<std::int64_t>(indices.size()); }
  };
  /// Some rows of a batch, decoded by one thread.
  struct Decoded {
    std::int64_t skipped = 0;
    std::vector<UnreadSample> unread = {};
    std::exception_ptr failure = nullptr;
    std::int64_t failed_row = 0;
  };

  Work plan();
  Decoded decode(const Work& work, Range rows) const;
  static void finish(Work& work, Range rows, Decoded decoded);
  void name_unread(const Batch& batch);
  /// The first batch with rows that no thread has taken; null where there is none.
  Work* with_rows();
  /// Whether all batches are planned. Not while a thread plans.
  bool at_end() const { return micro_batch_ == 0 && next_step_ == end_step_; }
  bool has_room() const;
  void plan_ahead(std::unique_lock<std::mutex>& lock);
  void run_thread(const std::stop_token& stop);

  SampleReader reader_;
  LoaderOptions options_;
  SamplerState state_;
  std::unordered_set<std::int64_t> named_;  ///< indices of unread samples

  BatchSlots slots_;

  // The state of plan(). With threads, one of them plans at a time.
  Sampler sampler_;
  StepPlan plan_;
  std::int64_t micro_batch_ = 0;  // the next one of plan_
  std::uint64_t next_step_;       // after plan_
  std::uint64_t end_step_;        // the one behind the last; 0: none is

  // With threads, all below are guarded by the mutex, but for what a thread has taken of a batch.
  mutable std::mutex mutex_;
  bool planning_ = false;
  std::deque<Work> works_;  // in the order of next()
  bool failed_ = false;     // nothing is planned behind a failure
  std::condition_variable_any changed_;
  std::condition_variable finished_;
  std::vector<std::jthread> threads_;  // last: they end before what they use
};

}  // namespace lockstep::data
