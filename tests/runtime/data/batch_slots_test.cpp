// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/batch_slots.h"

#include <gmock/gmock.h>

#include <array>
#include <map>
#include <set>

#include "runtime/base/error.h"
#include "runtime/data/collate.h"
#include "tests/runtime/data/loader_fixture.h"

namespace lockstep::data {
namespace {

TEST(BatchSlots, BatchesTakeTurnsInMemoryOfAKnownSize) {
  for (const std::int64_t prefetch : {0, 1, 3}) {
    const LoaderOptions options{
        .global_batch = 13, .accumulate = 2, .rank = 1, .world_size = 2, .prefetch = prefetch, .decode_threads = 3};
    Loader loader(std::make_shared<Keyed>(), options);
    EXPECT_EQ(loader.slots().count(), prefetch + 2);
    EXPECT_EQ(loader.slots().bytes(), batch_bytes(Keyed(), 4)) << "the largest share";
    std::map<const void*, int> places;
    for (int step = 0; step < 30; ++step) {
      const std::array micro_batches{loader.next(), loader.next()};
      for (const Batch& batch : micro_batches) ++places[batch.target.data()];
      EXPECT_NE(micro_batches[0].target.data(), micro_batches[1].target.data());
    }
    EXPECT_LE(std::ssize(places), loader.slots().count());
  }
}

TEST(BatchSlots, LoadersOneAfterTheOtherShareTheirMemory) {
  const auto dataset = std::make_shared<Keyed>();
  const LoaderOptions options{.global_batch = 13, .prefetch = 2, .decode_threads = 3, .steps = 4};
  const BatchSlots slots = slots_for(*dataset, options);
  std::set<const void*> places;
  for (int pass = 0; pass < 5; ++pass) {
    Loader loader(dataset, options, slots);
    for (std::uint64_t step = 0; step < options.steps; ++step) places.insert(loader.next().input.storage().data());
  }
  EXPECT_LE(std::ssize(places), slots.count());
  EXPECT_THROW(slots_for(*dataset, {.accumulate = 0}), FieldError);
}

TEST(BatchSlots, ACallerMayHoldAnyNumberOfBatches) {
  std::vector<Batch> held;
  {
    Loader loader(std::make_shared<Counting>(100), {.global_batch = 2, .shuffle = false, .prefetch = 2});
    for (int i = 0; i < 20; ++i) held.push_back(loader.next());
  }
  for (std::int64_t i = 0; i < 20; ++i) {
    EXPECT_THAT(labels(held[static_cast<std::size_t>(i)]), testing::ElementsAre(2 * i, 2 * i + 1));
  }
}

TEST(BatchSlots, TensorsOfABatchShareMemoryAndCountTheirWritesApart) {
  Loader loader(std::make_shared<Keyed>(), {.global_batch = 4});
  const Batch batch = loader.next();
  EXPECT_EQ(batch.input.storage().data(), batch.target.storage().data());
  const std::uint64_t before = batch.input.version();
  batch.target.mutable_as<float>()[0] = 1;
  EXPECT_EQ(batch.input.version(), before);
}

TEST(BatchSlots, MemoryThatIsNotThereIsAnErrorThatSaysHowMuch) {
  class Immense : public Keyed {
    Shape sample_shape() const override { return {std::int64_t{1} << 52}; }
  };
  try {
    Loader(std::make_shared<Immense>(), {.global_batch = 3, .prefetch = 2});
    FAIL() << "no error";
  } catch (const MemoryError& error) {
    const std::size_t bytes = batch_bytes(Immense(), 3);
    EXPECT_THAT(error.what(),
                testing::HasSubstr("no memory for 3 batches of " + std::to_string(bytes) + " bytes each"));
  }
}

}  // namespace
}  // namespace lockstep::data
