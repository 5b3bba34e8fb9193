// SPDX-License-Identifier: Apache-2.0
// Batches on their way to a device that is late: only the emulated GPU can be held back.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <set>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/data/loader.h"
#include "runtime/step/uploader.h"
#include "runtime/tensor/block_layout.h"
#include "runtime/tensor/gpu.h"
#include "tests/support/devices.h"
#include "tests/support/emulated_gpu/emulation.h"

namespace lockstep::step {
namespace {

using devices::kGpu;
using testing::Each;
using testing::ElementsAreArray;

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kWidth = 1000;

/// Sample i is i everywhere.
class Numbered : public data::Dataset {
 public:
  std::int64_t size() const override { return 4000; }
  Shape sample_shape() const override { return {kWidth}; }
  std::int64_t classes() const override { return 4000; }
  void get(const data::SampleKey& key, const data::Sample& sample) const override {
    std::ranges::fill(sample.values, static_cast<float>(key.index));
    sample.labels[0] = key.index;
  }
};

data::LoaderOptions for_gpu() {
  return {.global_batch = kBatch, .shuffle = false, .prefetch = 2, .decode_threads = 2, .device = kGpu};
}

/// Whether these are the inputs or targets of batch `at`, counted from 0.
template <class T>
void expect_batch(const Tensor& there, std::int64_t at) {
  std::vector<T> expected;
  const std::int64_t width = there.numel() / kBatch;
  for (std::int64_t i = 0; i < there.numel(); ++i) expected.push_back(static_cast<T>(at * kBatch + i / width));
  EXPECT_THAT(there.to(kCpu).as<T>(), ElementsAreArray(expected)) << "batch " << at;
}

/// What the calling thread gives the device from now on waits until it is let go.
class HeldBack {
 public:
  HeldBack() {
    gpu::emulation::append(Stream::current(kGpu), [open = open_] { open->wait(false); });
  }
  ~HeldBack() { let_go(); }
  HeldBack(const HeldBack&) = delete;
  HeldBack& operator=(const HeldBack&) = delete;
  void let_go() {
    open_->store(true);
    open_->notify_all();
  }

 private:
  std::shared_ptr<std::atomic<bool>> open_ = std::make_shared<std::atomic<bool>>(false);
};

void wait_until_ready(const data::Loader& loader, std::int64_t batches) {
  while (loader.ready() < batches) std::this_thread::yield();
}

/// A copy on the device, in the order of the current stream.
Tensor kept(const Tensor& input) {
  Tensor copy = Tensor::empty(input.shape(), input.dtype(), kGpu);
  copy.copy_from(input);
  return copy;
}

TEST(Uploads, FromASlotAreOverBeforeItIsWrittenAgain) {
  data::Loader loader(std::make_shared<Numbered>(), for_gpu());
  Uploader uploader(kGpu);
  HeldBack device;
  std::vector<Tensor> inputs, targets;
  for (std::uint64_t step = 1; step <= 2; ++step) {
    const StepInputs there = uploader.upload(step, {loader.next()}, false);
    inputs.push_back(kept(there.micro_batches[0].input));
    targets.push_back(kept(there.micro_batches[0].target));
    wait_until_ready(loader, 2);
  }
  // Decoding goes on as far as there are slots that nothing reads.
  loader.next();
  wait_until_ready(loader, 2);
  device.let_go();
  for (std::int64_t at = 0; at < 2; ++at) {
    expect_batch<float>(inputs[static_cast<std::size_t>(at)], at);
    expect_batch<std::int64_t>(targets[static_cast<std::size_t>(at)], at);
  }
  loader.next();
  for (std::int64_t at = 4; at < 20; ++at) expect_batch<float>(loader.next().to(kGpu).input, at);
}

TEST(Uploads, OfALoopThatCopiesItsBatchesItselfAreOverBeforeTheSlotIsWrittenAgain) {
  data::Loader loader(std::make_shared<Numbered>(), for_gpu());
  HeldBack device;
  std::vector<data::Batch> there;
  for (int i = 0; i < 3; ++i) {
    there.push_back(loader.next().to(kGpu));
    wait_until_ready(loader, 2);
  }
  device.let_go();
  for (std::int64_t at = 0; at < 3; ++at) {
    expect_batch<float>(there[static_cast<std::size_t>(at)].input, at);
    expect_batch<std::int64_t>(there[static_cast<std::size_t>(at)].target, at);
  }
}

TEST(Uploads, OfWhatNobodyElseHoldsAreOrderedBeforeItsMemoryIsGivenBack) {
  const Storage pinned = gpu::allocate_pinned(kBatch * sizeof(float));
  // Memory that is written again as soon as the current stream has done what it was given.
  const auto release = [pinned] {
    Stream::current(kGpu).synchronize();
    std::memset(pinned.data(), 0xff, pinned.bytes());
  };
  Tensor input = Tensor::view(Storage(pinned.data(), pinned.bytes(), kCpu, release), 0, {kBatch}, DType::kFloat32);
  std::ranges::fill(input.mutable_as<float>(), 3.0f);
  data::Batch batch{.input = std::move(input), .target = Tensor::zeros({kBatch}, DType::kInt64)};
  std::vector<data::Batch> batches;
  batches.push_back(std::move(batch));
  Uploader uploader(kGpu);
  const StepInputs there = uploader.upload(1, std::move(batches), false);
  EXPECT_THAT(there.micro_batches[0].input.to(kCpu).as<float>(), Each(3.0f));
  EXPECT_EQ(*static_cast<const std::uint8_t*>(pinned.data()), 0xff) << "the memory was given back";
}

TEST(Uploads, OutliveTheLoader) {
  auto loader = std::make_unique<data::Loader>(std::make_shared<Numbered>(), for_gpu());
  HeldBack device;
  const data::Batch there = loader->next().to(kGpu);
  const std::jthread later([&] { device.let_go(); });
  loader.reset();
  expect_batch<float>(there.input, 0);
}

TEST(Uploads, CopyNothingOfALoadersBatchOnTheHost) {
  data::LoaderOptions options = for_gpu();
  options.accumulate = 2;
  data::Loader loader(std::make_shared<Numbered>(), options);
  Uploader uploader(kGpu);
  for (std::uint64_t step = 1; step <= 12; ++step) {
    const std::size_t before = uploader.staged_bytes();
    const StepInputs there = uploader.upload(step, {loader.next(), loader.next()}, false);
    EXPECT_EQ(uploader.staged_bytes() - before, there.told.bytes() + there.positions.bytes());
    for (const data::Batch& batch : there.micro_batches) {
      const auto rows = batch.input.to(kCpu).rows(0, 1);
      EXPECT_THAT(rows.as<float>(), Each(static_cast<float>((step - 1) * 4) + static_cast<float>(batch.first_sample)));
    }
  }
}

TEST(Uploads, OfInputsInThe16BitsOfAModelAreHalfAsManyBytes) {
  data::LoaderOptions options = for_gpu();
  const std::size_t bytes = data::slots_for(Numbered(), options).bytes();
  options.input_dtype = DType::kFloat16;
  data::Loader loader(std::make_shared<Numbered>(), options);
  EXPECT_EQ(loader.slots().bytes(),
            bytes - BlockLayout::aligned(kBatch * kWidth * 4) + BlockLayout::aligned(kBatch * kWidth * 2));
  Uploader uploader(kGpu);
  for (std::int64_t at = 0; at < 8; ++at) {
    const std::size_t before = uploader.staged_bytes();
    const StepInputs there = uploader.upload(static_cast<std::uint64_t>(at) + 1, {loader.next()}, false);
    EXPECT_EQ(uploader.staged_bytes() - before, there.told.bytes() + there.positions.bytes());
    const Tensor& input = there.micro_batches[0].input;
    EXPECT_EQ(input.bytes(), kBatch * kWidth * 2);
    expect_batch<std::int64_t>(there.micro_batches[0].target, at);
    const Tensor here = input.to(kCpu);
    for (std::int64_t row = 0; row < kBatch; ++row) {
      const auto expected = static_cast<float>(at * kBatch + row);
      EXPECT_THAT(here.rows(row, row + 1).as<Half>(), Each(testing::Property(&Half::operator float, expected)));
    }
  }
}

TEST(Uploads, OfBatchesInPageableMemoryAreStaged) {
  data::LoaderOptions options = for_gpu();
  options.device = kCpu;
  data::Loader loader(std::make_shared<Numbered>(), options);
  Uploader uploader(kGpu);
  for (std::int64_t at = 0; at < 6; ++at) {
    const std::size_t before = uploader.staged_bytes();
    const StepInputs there = uploader.upload(static_cast<std::uint64_t>(at) + 1, {loader.next()}, false);
    EXPECT_GE(uploader.staged_bytes() - before, static_cast<std::size_t>(kBatch * kWidth) * sizeof(float));
    expect_batch<float>(there.micro_batches[0].input, at);
    expect_batch<std::int64_t>(there.micro_batches[0].target, at);
  }
}

TEST(Uploads, OfAllBatchesOfASizeGoToTheSamePlace) {
  data::Loader pinned(std::make_shared<Numbered>(), for_gpu());
  data::LoaderOptions options = for_gpu();
  options.device = kCpu;
  data::Loader pageable(std::make_shared<Numbered>(), options);
  Uploader uploader(kGpu);
  const void* const place = uploader.upload(1, {pinned.next()}, false).micro_batches[0].input.data();
  EXPECT_EQ(uploader.upload(2, {pageable.next()}, false).micro_batches[0].input.data(), place);
  EXPECT_EQ(uploader.upload(3, {pinned.next()}, false).micro_batches[0].input.data(), place);
}

/// The last batch of an epoch, then one with a sample more for some ranks: there is room for the largest share already.
TEST(Uploads, OfSharesThatDifferByOneSampleGoToTheSamePlaceOnAllRanks) {
  constexpr int kRanks = 3;
  const auto dealt = [](std::int64_t global, int rank, bool on_device) {
    const std::int64_t rows = data::share({0, global}, rank, kRanks).size();
    const Device device = on_device ? kGpu : kCpu;
    return data::Batch{.input = Tensor::zeros({rows, kWidth}, DType::kFloat32, device),
                       .target = Tensor::zeros({rows}, DType::kInt64, device),
                       .global_samples = global,
                       .step_samples = global,
                       .dealt = true};
  };
  for (const bool on_device : {false, true}) {
    for (int rank = 0; rank < kRanks; ++rank) {
      Uploader uploader(kGpu, kRanks);
      const auto place_of = [&](std::int64_t global) {
        return uploader.upload(1, {dealt(global, rank, on_device)}, false).micro_batches[0].target.data();
      };
      const StepInputs kept = uploader.upload(1, {dealt(64, rank, on_device)}, false);
      const void* const place = kept.micro_batches[0].target.data();
      EXPECT_EQ(place_of(63), place) << "rank " << rank;
      EXPECT_EQ(place_of(65), place) << "rank " << rank;
      EXPECT_EQ(place_of(66), place) << "rank " << rank;
      EXPECT_NE(place_of(67), place) << "rank " << rank;
    }
  }
}

TEST(Uploads, OfBatchesThatLieOnTheDeviceAreCopiedToTheirPlace) {
  Uploader uploader(kGpu);
  const void* place = nullptr;
  for (int i = 1; i <= 3; ++i) {
    const std::vector<float> values(8, static_cast<float>(i));
    data::Batch batch{.input = Tensor::from(values, {8}).to(kGpu), .target = Tensor::zeros({8}, DType::kInt64)};
    const StepInputs there = uploader.upload(1, {batch}, false);
    const Tensor& input = there.micro_batches[0].input;
    EXPECT_NE(input.data(), batch.input.data());
    EXPECT_EQ(input.data(), place == nullptr ? input.data() : place);
    place = input.data();
    EXPECT_THAT(input.to(kCpu).as<float>(), Each(static_cast<float>(i)));
  }
}

TEST(Uploads, ComeFromAKnownNumberOfPinnedSlots) {
  data::Loader loader(std::make_shared<Numbered>(), for_gpu());
  EXPECT_EQ(loader.slots().count(), 2 + 1 + data::kStepsOnTheWay);
  Uploader uploader(kGpu);
  std::set<const void*> places;
  for (std::uint64_t step = 1; step <= 60; ++step) {
    const data::Batch batch = loader.next();
    for (const Tensor& tensor : {batch.input, batch.target}) EXPECT_TRUE(gpu::is_pinned(tensor.data()));
    places.insert(batch.input.data());
    uploader.upload(step, {batch}, false);
  }
  EXPECT_LE(std::ssize(places), loader.slots().count());
}

TEST(Uploads, DoNotMakeACallerWaitWhoHoldsMoreBatchesThanThereAreSlots) {
  data::Loader loader(std::make_shared<Numbered>(), for_gpu());
  std::vector<data::Batch> held;
  for (int i = 0; i < 12; ++i) held.push_back(loader.next());
  EXPECT_FALSE(gpu::is_pinned(held.back().input.data()));
  for (std::int64_t at = 0; at < 12; ++at) {
    expect_batch<float>(held[static_cast<std::size_t>(at)].to(kGpu).input, at);
  }
}

TEST(Uploads, ThatAreAbortedReachTheCallerOfTheLoader) {
  data::Loader loader(std::make_shared<Numbered>(), for_gpu());
  gpu::set_failure(kGpu, std::make_exception_ptr(PeerError("rank 1 is gone")));
  EXPECT_THROW(
      {
        for (int i = 0; i < 20; ++i) loader.next();
      },
      PeerError);
  gpu::set_failure(kGpu, nullptr);
}

/// Samples that no machine has the memory for.
class Immense : public Numbered {
 public:
  Shape sample_shape() const override { return {std::int64_t{1} << 44}; }
};

TEST(Uploads, NeedMemoryThatAnErrorNames) {
  try {
    data::Loader(std::make_shared<Immense>(), {.global_batch = 1, .device = kGpu});
    FAIL() << "no error";
  } catch (const MemoryError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no memory for 5 batches of 70368744178176 bytes each"));
    EXPECT_THAT(error.what(), testing::HasSubstr("bytes of page-locked host memory"));
  }
}

}  // namespace
}  // namespace lockstep::step
