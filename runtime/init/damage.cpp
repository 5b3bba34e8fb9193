// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/damage.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/base/error.h"

namespace lockstep::init {

namespace {

constexpr std::int64_t kLookedAt = 512;
constexpr std::size_t kMostNamed = 20;

/// Draws samples and keeps what is wrong with those that cannot be read.
class Inspector {
 public:
  explicit Inspector(const data::Dataset& set) : set_(set) {}

  /// Draws `count` samples, spread evenly, on every core. What is no StorageError is thrown.
  void draw(std::int64_t count) {
    std::atomic<std::int64_t> next = 0;
    const auto work = [&] {
      try {
        for (std::int64_t i = next++; i < count; i = next++) draw_one(i * set_.size() / count);
      } catch (...) {
        next = count;
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
      }
    };
    {
      std::vector<std::jthread> threads;
      const std::int64_t cores = std::max(1u, std::thread::hardware_concurrency());
      for (std::int64_t i = 1; i < std::min(cores, count); ++i) threads.emplace_back(work);
      work();
    }
    if (failure_) std::rethrow_exception(failure_);
  }
  /// By the samples' indices.
  const std::map<std::int64_t, std::string>& unread() const { return unread_; }

 private:
  void draw_one(std::int64_t index) {
    const auto targets = static_cast<std::size_t>(set_.target_shape().numel());
    const bool classes = set_.classes() > 0;
    std::vector<float> values(static_cast<std::size_t>(set_.sample_shape().numel()));
    std::vector<float> target(classes ? 0 : targets), weight(set_.weighted() ? 1 : 0);
    std::vector<std::int64_t> labels(classes ? targets : 0);
    try {
      set_.get({.index = index}, {.values = values, .target = target, .labels = labels, .weight = weight});
    } catch (const StorageError& error) {
      const std::lock_guard lock(mutex_);
      unread_.emplace(index, error.what());
    }
  }

  const data::Dataset& set_;
  std::mutex mutex_;
  std::map<std::int64_t, std::string> unread_;
  std::exception_ptr failure_;
};

}  // namespace

Damage look_for_damage(const data::DataOptions& options, data::Split split) {
  const data::DatasetPtr set =
      data::make_dataset({.train = options.train, .eval = options.eval, .augment = options.augment}, split);
  if (set->vocabulary() > 0 || !set->more_inputs().empty()) return {};
  Inspector inspector(*set);
  inspector.draw(std::min(set->size(), kLookedAt));
  if (!inspector.unread().empty() && set->size() > kLookedAt) inspector.draw(set->size());
  Damage damage{.count = std::ssize(inspector.unread())};
  for (const auto& [index, error] : inspector.unread()) {
    if (damage.sentences.size() == kMostNamed) {
      damage.sentences.push_back(fmt::format("and {} more", damage.count - std::ssize(damage.sentences)));
      break;
    }
    damage.sentences.push_back(error);
  }
  return damage;
}

}  // namespace lockstep::init
