// SPDX-License-Identifier: Apache-2.0
// Batches whose inputs a loader's threads round to 16 bits.
#include <gmock/gmock.h>

#include <bit>
#include <cstring>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/data/collate.h"
#include "runtime/data/loader.h"
#include "runtime/data/mixup.h"
#include "runtime/data/synthetic.h"
#include "runtime/kernels/assign.h"
#include "tests/runtime/data/loader_fixture.h"

namespace lockstep::data {
namespace {

/// Sample i has the floats whose bits are i * 2^16 + {0, 0x1000, 0x7fff, 0x8000, 0x8001, 0xffff, ...}: together every
/// sign and exponent, ties, neighbours of ties, what overflows, subnormals, infinities and NaN. Its label is i.
class EveryExponent : public Dataset {
 public:
  static constexpr std::array<std::uint32_t, 7> kLow{0, 0x1000, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff};
  std::int64_t size() const override { return 1 << 16; }
  Shape sample_shape() const override { return {kLow.size()}; }
  std::int64_t classes() const override { return size(); }
  void get(const SampleKey& key, const Sample& sample) const override {
    const auto high = static_cast<std::uint32_t>(key.index) << 16;
    for (std::size_t i = 0; i < kLow.size(); ++i) sample.values[i] = std::bit_cast<float>(high | kLow[i]);
    sample.labels[0] = key.index;
  }
};

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

/// The batch has what `wide` has, with its inputs cast.
void expect_cast(Batch batch, Batch wide, DType dtype) {
  const Tensor cast = Tensor::empty(wide.input.shape(), dtype);
  kernels::cast(wide.input, cast);
  wide.input = cast;
  const std::vector<Tensor*> tensors = batch.tensors(), expected = wide.tensors();
  ASSERT_EQ(tensors.size(), expected.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE(same_bytes(*tensors[i], *expected[i])) << "tensor " << i;
  EXPECT_EQ(batch.skipped_samples, wide.skipped_samples);
}

TEST(InputDtype, RoundsAsACastDoes) {
  const auto dataset = std::make_shared<EveryExponent>();
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    Loader narrow(dataset, {.global_batch = 1 << 16, .shuffle = false, .decode_threads = 3, .input_dtype = dtype});
    Loader wide(dataset, {.global_batch = 1 << 16, .shuffle = false});
    expect_cast(narrow.next(), wide.next(), dtype);
  }
}

TEST(InputDtype, ChangesNothingElseOnAnyRank) {
  const auto synthetic =
      std::make_shared<SyntheticDataset>(SyntheticOptions{.samples = 41, .shape = {5, 3}, .classes = 4});
  const auto numbers =
      std::make_shared<SyntheticDataset>(SyntheticOptions{.samples = 41, .shape = {7}, .target_size = 3});
  for (const DatasetPtr& dataset :
       {DatasetPtr(synthetic), DatasetPtr(numbers), DatasetPtr(std::make_shared<Mixup>(synthetic, 0.5))}) {
    for (const std::int64_t ranks : {1, 2, 3}) {
      for (const std::int64_t prefetch : {0, 2}) {
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          LoaderOptions options{
              .global_batch = 13, .accumulate = 2, .rank = rank, .world_size = ranks, .prefetch = prefetch};
          Loader wide(dataset, options);
          options.input_dtype = DType::kFloat16;
          Loader narrow(dataset, options);
          for (int i = 0; i < 10; ++i) expect_cast(narrow.next(), wide.next(), DType::kFloat16);
        }
      }
    }
  }
}

TEST(InputDtype, IsNotThatOfTokens) {
  const auto dataset =
      std::make_shared<SyntheticDataset>(SyntheticOptions{.samples = 9, .shape = {6}, .vocabulary = 11});
  Loader loader(dataset, {.global_batch = 3, .input_dtype = DType::kBFloat16});
  EXPECT_EQ(loader.next().input.dtype(), DType::kInt64);
}

/// Has no sample that can be read.
class Unreadable : public Keyed {
 public:
  void get(const SampleKey&, const Sample& sample) const override {
    std::ranges::fill(sample.values, -7.0f);
    throw StorageError("damaged");
  }
};

TEST(InputDtype, LeavesZerosWhereNoSampleCanBeRead) {
  Loader loader(std::make_shared<Unreadable>(),
                {.global_batch = 2, .errors = {OnError::kSkip, 1}, .input_dtype = DType::kFloat16});
  const Batch batch = loader.next();
  EXPECT_EQ(batch.skipped_samples, 4);
  for (const Half value : batch.input.as<Half>()) EXPECT_EQ(value.bits, 0);
}

TEST(InputDtype, HalvesTheMemoryOfInputs) {
  const SyntheticDataset dataset({.samples = 64, .shape = {256, 16}, .classes = 4});
  const std::size_t inputs = 32 * 256 * 16, labels = 512;  // of 32, aligned
  EXPECT_EQ(slots_for(dataset, {.global_batch = 32}).bytes(), inputs * 4 + labels);
  EXPECT_EQ(slots_for(dataset, {.global_batch = 32, .input_dtype = DType::kBFloat16}).bytes(), inputs * 2 + labels);
}

TEST(InputDtype, HasToBeOneThatModelsTake) {
  for (const DType dtype : {DType::kFloat64, DType::kInt64, DType::kUInt8}) {
    EXPECT_THAT(
        [&] { Loader(std::make_shared<Keyed>(), {.input_dtype = dtype}); },
        testing::ThrowsMessage<UsageError>(testing::StartsWith("a loader gives inputs in float32, float16 or")));
  }
}

}  // namespace
}  // namespace lockstep::data
