// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/loader.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "runtime/data/collate.h"
#include "runtime/tensor/error.h"

namespace lockstep::data {

namespace {

LoaderOptions checked(const LoaderOptions& options) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    throw UsageError(fmt::format("a loader cannot serve rank {} of {}", options.rank, options.world_size));
  }
  const auto require = [](bool holds, const char* path, const char* rule, std::int64_t value) {
    if (!holds) throw FieldError(path, fmt::format("must be {}, is {}", rule, value));
  };
  require(options.global_batch >= 1, "data.global_batch", ">= 1", options.global_batch);
  require(options.accumulate >= 1, "train.accumulate", ">= 1", options.accumulate);
  require(options.prefetch >= 0, "data.prefetch", ">= 0", options.prefetch);
  return options;
}

}  // namespace

Sampler::Options sampler_options(const LoaderOptions& options, std::int64_t size) {
  return {.size = size,
          .global_batch = options.global_batch,
          .seed = options.seed,
          .shuffle = options.shuffle,
          .drop_last = options.drop_last};
}

Loader::Loader(DatasetPtr dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)),
      options_(checked(options)),
      state_(options.start),
      sampler_(sampler_options(options, dataset_->size()), options.start),
      next_step_(options.first_step) {
  state_.seed = options.seed;
  if (options_.prefetch > 0) {
    thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  }
}

Loader::~Loader() = default;

Batch Loader::next() {
  Item item;
  if (options_.prefetch > 0) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty() || failure_; });
    if (ready_.empty()) std::rethrow_exception(failure_);
    item = std::move(ready_.front());
    ready_.pop_front();
    changed_.notify_one();
  } else {
    if (failure_) std::rethrow_exception(failure_);
    try {
      item = produce();
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
  }
  state_ = item.after;
  return std::move(item.batch);
}

Loader::Item Loader::produce() {
  if (micro_batch_ == 0) {
    plan_ = sampler_.next();
    ++next_step_;
  }
  const Range step{0, static_cast<std::int64_t>(plan_.samples.size())};
  const Range micro = share(step, micro_batch_, options_.accumulate);
  const BatchPlan batch{plan_.epoch, options_.seed, step, micro, share(micro, options_.rank, options_.world_size)};
  Item item{collate(*dataset_, batch, plan_.samples), plan_.after};
  item.batch.step = next_step_ - 1;
  micro_batch_ = (micro_batch_ + 1) % options_.accumulate;
  return item;
}

void Loader::work(const std::stop_token& stop) {
  try {
    while (!stop.stop_requested()) {
      Item item = produce();
      std::unique_lock lock(mutex_);
      const auto has_room = [&] { return std::ssize(ready_) < options_.prefetch; };
      if (!changed_.wait(lock, stop, has_room)) return;
      ready_.push_back(std::move(item));
      changed_.notify_one();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    changed_.notify_one();
  }
}

}  // namespace lockstep::data
