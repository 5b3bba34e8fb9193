// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/loader.h"

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "runtime/base/error.h"
#include "runtime/data/eval_batches.h"
#include "tests/runtime/data/loader_fixture.h"

namespace lockstep::data {
namespace {

struct World {
  std::int64_t ranks;
  std::int64_t accumulate;
};

/// The samples of each step in order, put together from the ranks' shares, which are checked on the way.
std::vector<std::vector<std::int64_t>> steps_of(const World& world, LoaderOptions options, std::int64_t size,
                                                int steps) {
  std::vector<std::vector<std::int64_t>> all(static_cast<std::size_t>(steps));
  std::vector<std::unique_ptr<Loader>> loaders;
  options.accumulate = world.accumulate;
  options.world_size = world.ranks;
  for (options.rank = 0; options.rank < world.ranks; ++options.rank) {
    loaders.push_back(std::make_unique<Loader>(std::make_shared<Counting>(size), options));
  }
  for (std::vector<std::int64_t>& step : all) {
    std::int64_t step_samples = 0;
    for (std::int64_t micro = 0; micro < world.accumulate; ++micro) {
      std::int64_t micro_samples = 0;
      std::int64_t expected = 0;
      for (const auto& loader : loaders) {
        const Batch batch = loader->next();
        EXPECT_EQ(batch.first_sample, std::ssize(step));
        EXPECT_EQ(batch.step, options.first_step + static_cast<std::uint64_t>(&step - all.data()));
        EXPECT_EQ(batch.input.size(0), batch.target.size(0));
        for (const std::int64_t label : labels(batch)) step.push_back(label);
        micro_samples += batch.input.size(0);
        expected = batch.global_samples;
        step_samples = batch.step_samples;
      }
      EXPECT_EQ(micro_samples, expected);
    }
    EXPECT_EQ(std::ssize(step), step_samples);
  }
  return all;
}

TEST(Loader, OrderDoesNotDependOnRanksOrAccumulation) {
  for (const std::int64_t size : {1, 5, 23, 64}) {
    for (const std::int64_t global_batch : {1, 2, 7, 16, 100}) {
      const LoaderOptions options{.global_batch = global_batch, .seed = 3};
      const auto alone = steps_of({1, 1}, options, size, 9);
      for (const std::int64_t ranks : {1, 2, 3, 8}) {
        for (const std::int64_t accumulate : {1, 2, 5}) {
          EXPECT_EQ(steps_of({ranks, accumulate}, options, size, 9), alone) << ranks << " ranks, " << accumulate;
        }
      }
    }
  }
}

TEST(Loader, AnEpochHoldsEverySampleOnce) {
  for (const std::int64_t ranks : {1, 2, 3, 8}) {
    std::map<std::int64_t, int> seen;
    for (const auto& step : steps_of({ranks, 2}, {.global_batch = 7}, 23, 4)) {
      for (const std::int64_t sample : step) ++seen[sample];
    }
    EXPECT_EQ(seen.size(), 23u);
    for (const auto& [sample, count] : seen) EXPECT_EQ(count, 1);
  }
}

TEST(Loader, ResumesAfterEveryStepWithEveryPrefetch) {
  const auto dataset = std::make_shared<Counting>(23);
  for (const std::int64_t prefetch : {0, 1, 2, 7}) {
    LoaderOptions options{
        .global_batch = 5, .accumulate = 2, .rank = 1, .world_size = 3, .seed = 4, .prefetch = prefetch};
    Loader whole(dataset, options);
    EXPECT_EQ(whole.steps_per_epoch(), 5);
    for (int step = 0; step < 12; ++step) {
      options.start = whole.state();
      Loader resumed(dataset, options);
      for (int micro = 0; micro < 2; ++micro) {
        const Batch expected = whole.next();
        const Batch batch = resumed.next();
        EXPECT_EQ(labels(batch), labels(expected));
        EXPECT_EQ(batch.epoch, expected.epoch);
        EXPECT_EQ(batch.first_sample, expected.first_sample);
      }
      EXPECT_EQ(resumed.state(), whole.state());
    }
  }
}

TEST(Loader, TheNumberOfThreadsChangesNothing) {
  const LoaderOptions options{.global_batch = 13, .accumulate = 2, .rank = 1, .world_size = 2, .seed = 6};
  LoaderOptions alone_options = options;
  alone_options.prefetch = 0;
  for (const std::int64_t threads : {1, 2, 5, 16}) {
    for (const std::int64_t prefetch : {1, 2, 6}) {
      LoaderOptions threaded_options = options;
      threaded_options.decode_threads = threads;
      threaded_options.prefetch = prefetch;
      Loader alone(std::make_shared<Keyed>(), alone_options);
      Loader threaded(std::make_shared<Keyed>(), threaded_options);
      for (int i = 0; i < 24; ++i) {
        const Batch expected = alone.next();
        const Batch batch = threaded.next();
        ASSERT_THAT(batch.input.as<float>(), testing::ElementsAreArray(expected.input.as<float>()));
        ASSERT_THAT(batch.target.as<float>(), testing::ElementsAreArray(expected.target.as<float>()));
        EXPECT_EQ(threaded.state(), alone.state());
      }
    }
  }
}

TEST(Loader, CountsTheBatchesThatAreReady) {
  Loader loader(std::make_shared<Counting>(100), {.global_batch = 4, .prefetch = 3, .decode_threads = 2});
  while (loader.ready() < 3) std::this_thread::yield();
  EXPECT_EQ(labels(loader.next()).size(), 4u);
  Loader without(std::make_shared<Counting>(100), {.global_batch = 4, .prefetch = 0});
  EXPECT_EQ(without.ready(), 0);
}

/// Cannot read every fifth sample, and the two behind sample 10.
class Damaged : public Keyed {
 public:
  static bool has(std::int64_t index) { return index % 5 == 0 || index == 11 || index == 12; }
  void get(const SampleKey& key, const Sample& sample) const override {
    std::ranges::fill(sample.values, -7.0f);
    if (has(key.index)) throw StorageError("sample " + std::to_string(key.index) + " is damaged");
    Keyed::get(key, sample);
  }
};

TEST(Loader, TheNextReadableSampleTakesThePlaceOfADamagedOne) {
  const SampleErrors errors{.on_error = OnError::kSkip, .max_skipped = 5};
  for (const std::int64_t ranks : {1, 2, 3}) {
    std::int64_t skipped = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      LoaderOptions options{.global_batch = 41, .rank = rank, .world_size = ranks, .shuffle = false, .errors = errors};
      Loader loader(std::make_shared<Damaged>(), options);
      for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
        const Batch batch = loader.next();
        skipped += batch.skipped_samples;
        for (std::int64_t row = 0; row < batch.input.size(0); ++row) {
          std::int64_t index = batch.first_sample + row;
          while (Damaged::has(index)) index = (index + 1) % 41;
          const auto values = batch.input.as<float>().subspan(static_cast<std::size_t>(row) * 3, 3);
          EXPECT_THAT(values, testing::ElementsAre(static_cast<float>(index), static_cast<float>(epoch), 0));
        }
      }
    }
    EXPECT_EQ(skipped, 2 * 11) << ranks << " ranks";
  }
}

TEST(Loader, NamesWhatItSkipsOnceOrLeavesThatToWhoTakesTheBatches) {
  for (const bool names : {true, false}) {
    std::ostringstream words;
    const auto before = spdlog::default_logger();
    const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(words);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
    Loader loader(std::make_shared<Damaged>(),
                  {.global_batch = 41, .errors = {.on_error = OnError::kSkip}, .names_unread = names});
    std::multiset<std::int64_t> unread;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const UnreadSample& sample : loader.next().unread) {
        EXPECT_EQ(sample.error, "sample " + std::to_string(sample.index) + " is damaged");
        unread.insert(sample.index);
      }
    }
    spdlog::set_default_logger(before);
    const std::string text = words.str();
    for (std::int64_t index = 0; index < 41; ++index) {
      EXPECT_EQ(unread.contains(index), Damaged::has(index)) << index;
      const std::string name = "sample " + std::to_string(index) + " is skipped: ";
      const std::size_t at = text.find(name);
      EXPECT_EQ(at != std::string::npos, names && Damaged::has(index)) << name;
      EXPECT_EQ(text.rfind(name), at) << name << "twice";
    }
  }
}

TEST(Loader, ASearchForAReadableSampleEndsAndIsCounted) {
  const auto dataset = std::make_shared<Damaged>();
  Loader loader(dataset, {.global_batch = 11, .shuffle = false, .errors = {OnError::kSkip, 2}});
  EXPECT_EQ(loader.next().skipped_samples, 3 + 2) << "0 and 5 are replaced, the three from 10 on are too many";
  EXPECT_THROW(Loader(dataset, {.errors = {OnError::kSkip, -1}}), FieldError);
}

/// Remembers whether a sample of another epoch than the first was drawn.
class FirstEpoch : public Counting {
 public:
  using Counting::Counting;
  void get(const SampleKey& key, const Sample& sample) const override {
    if (key.epoch > 0) left = true;
    Counting::get(key, sample);
  }
  mutable std::atomic<bool> left = false;
};

TEST(Loader, EndsBehindItsLastStep) {
  for (const std::int64_t prefetch : {0, 1, 4}) {
    for (const std::int64_t ranks : {1, 3}) {
      const auto dataset = std::make_shared<FirstEpoch>(10);
      Loader loader(dataset, {.global_batch = 4,
                              .accumulate = 2,
                              .world_size = ranks,
                              .shuffle = false,
                              .prefetch = prefetch,
                              .decode_threads = 2,
                              .steps = 3});
      EXPECT_LE(loader.slots().count(), 6);
      for (int i = 0; i < 6; ++i) loader.next();
      EXPECT_THAT([&] { loader.next(); }, testing::ThrowsMessage<UsageError>("a loader of 3 steps has no batch left"));
      EXPECT_FALSE(dataset->left);
    }
  }
}

TEST(Loader, GivesTheBatchesOfAnEvaluation) {
  const SampleErrors errors{.on_error = OnError::kSkip};
  for (const std::int64_t ranks : {1, 3}) {
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto dataset = std::make_shared<Damaged>();
      const EvalBatches expected(dataset, 7, rank, ranks, errors);
      LoaderOptions options{.global_batch = 7, .rank = rank, .world_size = ranks, .shuffle = false};
      options.decode_threads = 4;
      options.errors = errors;
      options.steps = static_cast<std::uint64_t>(expected.size());
      Loader loader(dataset, options);
      for (std::int64_t at = 0; at < expected.size(); ++at) {
        const Batch batch = loader.next();
        const Batch same = expected[at];
        EXPECT_THAT(batch.input.as<float>(), testing::ElementsAreArray(same.input.as<float>()));
        EXPECT_THAT(batch.target.as<float>(), testing::ElementsAreArray(same.target.as<float>()));
        EXPECT_EQ(batch.skipped_samples, same.skipped_samples);
        EXPECT_EQ(batch.step_samples, same.step_samples);
        EXPECT_EQ(batch.first_sample, same.first_sample);
      }
    }
  }
}

TEST(EvalBatches, SkipWhatCannotBeRead) {
  const EvalBatches batches(std::make_shared<Damaged>(), 41, 0, 1, {.on_error = OnError::kSkip});
  EXPECT_EQ(batches[0].skipped_samples, 11);
  EXPECT_THROW(EvalBatches(std::make_shared<Damaged>(), 41, 0, 1)[0], StorageError);
}

TEST(Loader, ARankWithoutSamplesGetsEmptyBatches) {
  Loader loader(std::make_shared<Counting>(10), {.global_batch = 2, .rank = 0, .world_size = 3});
  const Batch batch = loader.next();
  EXPECT_EQ(batch.input.shape(), (Shape{0, 1}));
  EXPECT_EQ(batch.target.shape(), (Shape{0}));
  EXPECT_EQ(batch.global_samples, 2);
}

TEST(Loader, EndsInEveryState) {
  const auto dataset = std::make_shared<Counting>(100);
  for (const std::int64_t prefetch : {0, 1, 3}) {
    for (int batches = 0; batches < 6; ++batches) {
      Loader loader(dataset, {.global_batch = 3, .prefetch = prefetch});
      for (int i = 0; i < batches; ++i) loader.next();
      if (batches % 2 == 1) std::this_thread::yield();  // lets the thread fill up and wait for room
    }
  }
}

/// Fails at one sample.
class Failing : public Counting {
 public:
  using Counting::Counting;
  void get(const SampleKey& key, const Sample& sample) const override {
    if (key.index == 7) throw StorageError("sample 7 is damaged");
    Counting::get(key, sample);
  }
};

TEST(Loader, RethrowsWhatTheDataSetThrewAfterTheGoodBatches) {
  for (const std::int64_t prefetch : {0, 1, 2, 9}) {
    Loader loader(std::make_shared<Failing>(12), {.global_batch = 3, .shuffle = false, .prefetch = prefetch});
    EXPECT_THAT(labels(loader.next()), testing::ElementsAre(0, 1, 2));
    EXPECT_THAT(labels(loader.next()), testing::ElementsAre(3, 4, 5));
    EXPECT_THROW(loader.next(), StorageError);
    EXPECT_THROW(loader.next(), StorageError);
    EXPECT_EQ(loader.state(), (SamplerState{0, 6, 0}));
  }
}

TEST(Loader, OfSeveralFailuresTheFirstRowsIsThrown) {
  for (const std::int64_t threads : {1, 4}) {
    Loader loader(std::make_shared<Damaged>(), {.global_batch = 41, .shuffle = false, .decode_threads = threads});
    EXPECT_THAT([&] { loader.next(); }, testing::ThrowsMessage<StorageError>("sample 0 is damaged"));
    EXPECT_THAT([&] { loader.next(); }, testing::ThrowsMessage<StorageError>("sample 0 is damaged"));
  }
}

TEST(Loader, EndsBehindAFailureThatNobodySaw) {
  Loader loader(std::make_shared<Failing>(12), {.global_batch = 12, .shuffle = false});
}

/// Waits in get() until it is let go.
class Gated : public Counting {
 public:
  using Counting::Counting;
  void get(const SampleKey& key, const Sample& sample) const override {
    entered.store(true);
    entered.notify_all();
    open.wait(false);
    Counting::get(key, sample);
  }
  mutable std::atomic<bool> entered = false;
  mutable std::atomic<bool> open = false;
};

TEST(Loader, EndsWhileItsThreadDecodes) {
  const auto dataset = std::make_shared<Gated>(12);
  std::jthread opener;
  {
    Loader loader(dataset, {.global_batch = 3});
    dataset->entered.wait(false);
    opener = std::jthread([&] {
      dataset->open.store(true);
      dataset->open.notify_all();
    });
  }
  EXPECT_EQ(dataset.use_count(), 1) << "the loader still holds the data set";
}

TEST(Loader, RefusesWhatItCannotServe) {
  const auto dataset = std::make_shared<Counting>(10);
  EXPECT_THROW(Loader(dataset, {.rank = 2, .world_size = 2}), UsageError);
  EXPECT_THROW(Loader(dataset, {.accumulate = 0}), UsageError);
  EXPECT_THROW(Loader(dataset, {.global_batch = 0}), UsageError);
  EXPECT_THROW(Loader(dataset, {.start = {0, 10}}), UsageError);
}

TEST(EvalBatches, GiveEverySampleOnceInOrder) {
  for (const std::int64_t size : {1, 10, 23}) {
    for (const std::int64_t global_batch : {1, 4, 50}) {
      for (const std::int64_t ranks : {1, 2, 3, 8}) {
        std::vector<std::int64_t> seen;
        const auto dataset = std::make_shared<Counting>(size);
        const std::int64_t batches = EvalBatches(dataset, global_batch, 0, ranks).size();
        for (std::int64_t at = 0; at < batches; ++at) {
          for (std::int64_t rank = 0; rank < ranks; ++rank) {
            const Batch batch = EvalBatches(dataset, global_batch, rank, ranks)[at];
            EXPECT_EQ(batch.step_samples, std::min(global_batch, size - at * global_batch));
            for (const std::int64_t label : labels(batch)) seen.push_back(label);
          }
        }
        std::vector<std::int64_t> expected(static_cast<std::size_t>(size));
        std::iota(expected.begin(), expected.end(), std::int64_t{0});
        EXPECT_EQ(seen, expected);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::data
