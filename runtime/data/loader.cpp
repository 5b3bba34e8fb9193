// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/loader.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "runtime/base/cores.h"
#include "runtime/base/error.h"
#include "runtime/base/option_checks.h"
#include "runtime/tensor/memory.h"

namespace lockstep::data {

namespace {

LoaderOptions checked(const LoaderOptions& options) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    throw UsageError(fmt::format("a loader cannot serve rank {} of {}", options.rank, options.world_size));
  }
  require_none(problems_in_fields(options), "data");
  if (options.accumulate < 1) {
    throw FieldError("train.accumulate", fmt::format("must be >= 1, is {}", options.accumulate));
  }
  if (options.input_dtype != DType::kFloat32 && !is_reduced(options.input_dtype)) {
    throw UsageError(
        fmt::format("a loader gives inputs in float32, float16 or bfloat16, not in {}", name_of(options.input_dtype)));
  }
  return options;
}

std::int64_t thread_count(const LoaderOptions& options) {
  if (options.prefetch == 0) return 0;
  if (options.decode_threads > 0) return options.decode_threads;
  return std::min<std::int64_t>(usable_cores(), kMostDefaultDecodeThreads);
}

}  // namespace

BatchSlots slots_for(const Dataset& dataset, const LoaderOptions& options) {
  checked(options);
  // A slot for each batch that is decoded ahead and each that the caller or a copy to the device still needs.
  const auto largest_share = [](std::int64_t size, std::int64_t parts) { return (size + parts - 1) / parts; };
  const std::int64_t step = std::min(options.global_batch, dataset.size());
  const std::int64_t rows = largest_share(largest_share(step, options.accumulate), options.world_size);
  const std::int64_t held = (options.device == kCpu ? 1 : 1 + kStepsOnTheWay) * options.accumulate;
  std::int64_t count = options.prefetch + held;
  if (options.steps > 0) count = std::min(count, static_cast<std::int64_t>(options.steps) * options.accumulate);
  return {count, batch_bytes(dataset, rows, options.input_dtype), options.device};
}

Sampler::Options sampler_options(const LoaderOptions& options, std::int64_t size) {
  return {.size = size,
          .global_batch = options.global_batch,
          .seed = options.seed,
          .shuffle = options.shuffle,
          .drop_last = options.drop_last};
}

Loader::Loader(DatasetPtr dataset, const LoaderOptions& options)
    : Loader(dataset, options, slots_for(*dataset, options)) {}

Loader::Loader(DatasetPtr dataset, const LoaderOptions& options, BatchSlots slots)
    : reader_(std::move(dataset), options.errors),
      options_(checked(options)),
      state_(options.start),
      slots_(std::move(slots)),
      sampler_(sampler_options(options, reader_.dataset().size()), options.start),
      next_step_(options.first_step),
      end_step_(options.steps > 0 ? options.first_step + options.steps : 0) {
  state_.seed = options.seed;
  const std::int64_t threads = thread_count(options_);
  options_.decode_threads = threads;
  for (std::int64_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { run_thread(stop); });
  }
}

Loader::~Loader() {
  // All at once: each may still have a sample to decode.
  for (std::jthread& thread : threads_) thread.request_stop();
}

Batch Loader::next() {
  std::unique_lock lock(mutex_);
  if (!threads_.empty()) {
    finished_.wait(lock, [this] { return works_.empty() ? !planning_ && at_end() : works_.front().unfinished == 0; });
  }
  if (works_.empty()) {
    if (at_end()) throw UsageError(fmt::format("a loader of {} steps has no batch left", options_.steps));
    Work& work = works_.emplace_back(plan());
    const Range all{0, work.size()};
    finish(work, all, decode(work, all));
  }
  if (works_.front().failure) std::rethrow_exception(works_.front().failure);
  state_ = works_.front().after;
  Batch batch = std::move(works_.front().batch);
  works_.pop_front();
  changed_.notify_all();
  if (options_.names_unread) name_unread(batch);
  return batch;
}

void Loader::name_unread(const Batch& batch) {
  for (const auto& [index, error] : batch.unread) {
    if (named_.insert(index).second) spdlog::warn("sample {} is skipped: {}", index, error);
  }
}

std::int64_t Loader::ready() const {
  const std::lock_guard lock(mutex_);
  const auto unfinished = std::ranges::find_if(works_, [](const Work& work) { return work.unfinished > 0; });
  return unfinished - works_.begin();
}

Loader::Work Loader::plan() {
  Storage block = slots_.take();
  if (micro_batch_ == 0) {
    plan_ = sampler_.next();
    ++next_step_;
  }
  const Range step{0, static_cast<std::int64_t>(plan_.samples.size())};
  const Range micro = share(step, micro_batch_, options_.accumulate);
  const Range rank = share(micro, options_.rank, options_.world_size);
  micro_batch_ = (micro_batch_ + 1) % options_.accumulate;
  if (!block) {
    const MemoryScope scope(MemoryPurpose::kInputs);
    block = Storage::allocate(batch_bytes(reader_.dataset(), rank.size(), options_.input_dtype), kCpu);
  }
  const BatchPlan plan{plan_.epoch, options_.seed, step, micro, rank};
  Work work{make_batch(reader_.dataset(), plan, block, options_.input_dtype), plan_.after, plan_.epoch};
  work.batch.step = next_step_ - 1;
  work.batch.dealt = true;
  work.indices.assign(plan_.samples.begin() + rank.begin, plan_.samples.begin() + rank.end);
  work.rows = BatchRows(reader_.dataset(), work.batch);
  work.unfinished = work.size();
  return work;
}

Loader::Decoded Loader::decode(const Work& work, Range rows) const {
  Decoded decoded;
  std::int64_t row = rows.begin;
  try {
    for (; row < rows.end; ++row) {
      const std::int64_t index = work.indices[static_cast<std::size_t>(row)];
      decoded.skipped += work.rows.read(reader_, {index, work.epoch, options_.seed}, row, decoded.unread);
    }
  } catch (...) {
    decoded.failure = std::current_exception();
    decoded.failed_row = row;
  }
  return decoded;
}

void Loader::finish(Work& work, Range rows, Decoded decoded) {
  work.unfinished -= rows.size();
  work.batch.skipped_samples += decoded.skipped;
  std::ranges::move(decoded.unread, std::back_inserter(work.batch.unread));
  if (!decoded.failure || (work.failure && work.failed_row < decoded.failed_row)) return;
  work.failure = decoded.failure;
  work.failed_row = decoded.failed_row;
}

Loader::Work* Loader::with_rows() {
  const auto found = std::ranges::find_if(works_, [](const Work& work) { return work.next_row < work.size(); });
  return found == works_.end() ? nullptr : &*found;
}

bool Loader::has_room() const { return !planning_ && !failed_ && !at_end() && std::ssize(works_) < options_.prefetch; }

void Loader::plan_ahead(std::unique_lock<std::mutex>& lock) {
  planning_ = true;
  // The device may still read the slot, and whoever wants a batch that is ready need not wait for that.
  lock.unlock();
  Work work{.batch = {}, .after = {}};
  try {
    work = plan();
  } catch (...) {
    work.failure = std::current_exception();
  }
  lock.lock();
  planning_ = false;
  failed_ = failed_ || work.failure;
  works_.push_back(std::move(work));
  // The share of a rank may be empty, and is finished then.
  finished_.notify_one();
}

void Loader::run_thread(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return with_rows() != nullptr || has_room(); })) {
    if (stop.stop_requested()) return;
    Work* const work = with_rows();
    if (work == nullptr) {
      plan_ahead(lock);
      changed_.notify_all();
      continue;
    }
    // So few that threads end a batch together, so many that small samples do not wait for the mutex.
    const std::int64_t some = std::max<std::int64_t>(work->size() / (4 * options_.decode_threads), 1);
    const Range rows{work->next_row, std::min(work->next_row + some, work->size())};
    work->next_row = rows.end;
    lock.unlock();
    Decoded decoded = decode(*work, rows);
    lock.lock();
    failed_ = failed_ || decoded.failure;
    finish(*work, rows, std::move(decoded));
    if (work->unfinished == 0) finished_.notify_one();
  }
}

}  // namespace lockstep::data
