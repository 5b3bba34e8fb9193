// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/error.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Tensor, HoldsTheGivenElementsInRowMajorOrder) {
  const Tensor tensor = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(tensor.dtype(), DType::kFloat32);
  EXPECT_EQ(tensor.bytes(), 24u);
  EXPECT_THAT(tensor.as<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(tensor.item(4), 5);
  EXPECT_THROW(Tensor::from<float>({1, 2}, {3}), ShapeError);
}

TEST(Tensor, IsUndefinedUntilItIsGivenSomething) {
  EXPECT_FALSE(Tensor().defined());
  EXPECT_EQ(describe(Tensor()), "an undefined tensor");
  EXPECT_EQ(describe(Tensor::zeros({32, 10}, DType::kFloat16)), "float16 [32, 10] on cpu");
}

TEST(Tensor, ItemReadsEveryDtype) {
  EXPECT_EQ(Tensor::from(std::vector{Half(1.5f)}, {}).item(), 1.5);
  EXPECT_EQ(Tensor::from(std::vector{BFloat16(-2.5f)}, {}).item(), -2.5);
  EXPECT_EQ(Tensor::from(std::vector{0.1}, {}).item(), 0.1);
  EXPECT_EQ(Tensor::from(std::vector<std::int64_t>{-7}, {}).item(), -7);
  EXPECT_EQ(Tensor::from(std::vector<std::int32_t>{8}, {}).item(), 8);
  EXPECT_EQ(Tensor::from(std::vector<std::uint8_t>{255}, {}).item(), 255);
  EXPECT_EQ(Tensor::from(std::vector<bool>{false, true}, {2}).item(1), 1);
  EXPECT_THROW(Tensor::zeros({2}, DType::kFloat32).item(2), ShapeError);
  EXPECT_THROW(Tensor::zeros({2}, DType::kFloat32).item(-1), ShapeError);
}

TEST(Tensor, ReadingAsAnotherDtypeIsRefused) {
  EXPECT_THROW(Tensor::zeros({2}, DType::kFloat32).as<double>(), ShapeError);
}

TEST(Tensor, ReshapedSharesTheElements) {
  const Tensor tensor = Tensor::from<float>({1, 2, 3, 4}, {4});
  const Tensor square = tensor.reshaped({2, 2});
  square.mutable_as<float>()[3] = 9;
  EXPECT_EQ(tensor.item(3), 9);
  EXPECT_TRUE(square.aliases(tensor));
  EXPECT_FALSE(square.is(tensor));
  EXPECT_THROW(tensor.reshaped({3}), ShapeError);
}

TEST(Tensor, RowsShareTheirPart) {
  const Tensor tensor = Tensor::from<std::int32_t>({0, 1, 2, 3, 4, 5}, {3, 2});
  const Tensor middle = tensor.rows(1, 2);
  EXPECT_EQ(middle.shape(), Shape({1, 2}));
  EXPECT_THAT(middle.as<std::int32_t>(), ElementsAre(2, 3));
  EXPECT_EQ(tensor.rows(3, 3).numel(), 0);
  // A view of a view starts where the first view does.
  EXPECT_THAT(tensor.rows(1, 3).rows(1, 2).as<std::int32_t>(), ElementsAre(4, 5));
  EXPECT_THROW(tensor.rows(2, 4), ShapeError);
  EXPECT_THROW(tensor.rows(2, 1), ShapeError);
  EXPECT_THROW(tensor.rows(-1, 1), ShapeError);
}

TEST(Tensor, RowsOfAnEmptyTensorAreEmpty) {
  EXPECT_EQ(Tensor::zeros({0, 4}, DType::kFloat32).rows(0, 0).shape(), Shape({0, 4}));
  EXPECT_EQ(Tensor::zeros({3, 0}, DType::kFloat32).rows(1, 3).shape(), Shape({2, 0}));
}

TEST(Tensor, ARowSharesItsPart) {
  const Tensor tensor = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  EXPECT_EQ(tensor[1].shape(), (Shape{2}));
  EXPECT_THAT(tensor[-1].as<float>(), ElementsAre(5, 6));
  EXPECT_EQ(tensor[2][0].shape(), Shape());
  tensor[0].mutable_as<float>()[1] = 9;
  EXPECT_EQ(tensor.item(1), 9);
  EXPECT_THROW((void)tensor[3], ShapeError);
  EXPECT_THROW((void)tensor[-4], ShapeError);
  EXPECT_THROW((void)tensor[0][0][0], ShapeError);
  EXPECT_THROW((void)Tensor()[0], UsageError);
}

TEST(Tensor, IsMadeOfASpan) {
  std::vector<float> values{1, 2, 3};
  const Tensor tensor = Tensor::from(std::span(values).subspan(1), {2});
  values[1] = 7;
  EXPECT_THAT(tensor.as<float>(), ElementsAre(2, 3));
  EXPECT_THAT(Tensor::from(std::span<const std::int64_t>(), {0}).as<std::int64_t>(), ElementsAre());
  EXPECT_THROW(Tensor::from(std::span(values), {2}), ShapeError);
}

TEST(Tensor, OfABlobShowsTheMemoryUntilItIsReleased) {
  std::vector<double> values{1, 2, 3, 4};
  bool released = false;
  {
    Tensor row;
    {
      const Tensor tensor =
          Tensor::from_blob(values.data(), {2, 2}, DType::kFloat64, kCpu, [&released] { released = true; });
      values[3] = 8;
      EXPECT_EQ(tensor.item(3), 8);
      tensor.mutable_as<double>()[0] = -1;
      row = tensor[1];
    }
    EXPECT_EQ(values[0], -1);
    EXPECT_FALSE(released) << "a view shows it still";
  }
  EXPECT_TRUE(released);
  EXPECT_EQ(Tensor::from_blob(nullptr, {0, 3}, DType::kFloat32).numel(), 0);
  EXPECT_THROW(Tensor::from_blob(nullptr, {1}, DType::kFloat32), UsageError);
  EXPECT_THROW(Tensor::from_blob(reinterpret_cast<char*>(values.data()) + 1, {1}, DType::kFloat32), UsageError);
}

TEST(Tensor, AViewMustLieInsideItsStorage) {
  const Storage storage = Storage::allocate(16, kCpu);
  EXPECT_EQ(Tensor::view(storage, 8, {2}, DType::kFloat32).numel(), 2);
  EXPECT_EQ(Tensor::view(storage, 16, {0}, DType::kFloat32).numel(), 0);
  EXPECT_THROW(Tensor::view(storage, 12, {2}, DType::kFloat32), ShapeError);
  EXPECT_THROW(Tensor::view(storage, 17, {0}, DType::kFloat32), ShapeError);
}

TEST(Tensor, RebindMovesEveryHandleAndCountsAsAWrite) {
  const Tensor tensor = Tensor::from<float>({1, 2}, {2});
  const Tensor handle = tensor;
  const Tensor arena = Tensor::from<float>({7, 8, 9}, {3});
  const std::uint64_t version = tensor.version();
  const Storage storage = Storage::allocate(12, kCpu);
  std::copy_n(arena.as<float>().begin(), 3, static_cast<float*>(storage.data()));
  tensor.rebind(storage, 4, DType::kFloat32);
  EXPECT_THAT(handle.as<float>(), ElementsAre(8, 9));
  EXPECT_GT(handle.version(), version);
  EXPECT_THROW(tensor.rebind(storage, 8, DType::kFloat32), ShapeError);
  EXPECT_THAT(handle.as<float>(), ElementsAre(8, 9));
}

TEST(Tensor, WritesThroughAnyViewAreCountedForAll) {
  const Tensor tensor = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  const std::uint64_t start = tensor.version();
  const Tensor views[] = {tensor, tensor.detach(), tensor.reshaped({4}), tensor.rows(1, 2), tensor.rows(0, 1).detach()};
  for (const Tensor& writer : views) {
    const std::uint64_t before = tensor.version();
    writer.mutable_as<float>()[0] = 5;
    for (const Tensor& reader : views) EXPECT_EQ(reader.version(), before + 1);
  }
  tensor.rows(0, 1).copy_from(tensor.rows(1, 2));
  EXPECT_EQ(tensor.version(), start + 6);
  EXPECT_THAT(tensor.as<float>(), ElementsAre(5, 4, 5, 4)) << "reading is no write";
  tensor.item(0);
  tensor.to(kCpu);
  EXPECT_EQ(tensor.version(), start + 6);
}

TEST(Tensor, ReboundToSharedMemoryHasAVersionOfItsOwn) {
  const Storage storage = Storage::allocate(16, kCpu);
  const Tensor first = Tensor::from<float>({1, 2}, {2}), second = Tensor::from<float>({3, 4}, {2});
  const Tensor view = first.detach();
  const std::uint64_t left = view.version();
  first.rebind(storage, 0, DType::kFloat32);
  second.rebind(storage, 8, DType::kFloat32);
  const std::uint64_t before = second.version();
  first.detach().bump_version();
  EXPECT_EQ(second.version(), before);
  EXPECT_EQ(view.version(), left) << "the memory that it left was not written";
  second.share_version(first);
  first.bump_version();
  EXPECT_EQ(second.version(), first.version());
}

TEST(Tensor, AViewKeepsTheMemoryAlive) {
  Tensor rows;
  {
    const Tensor tensor = Tensor::from<float>({1, 2, 3}, {3});
    rows = tensor.rows(1, 3);
  }
  EXPECT_THAT(rows.as<float>(), ElementsAre(2, 3));
}

TEST(Tensor, ADeviceThatIsMissingIsNamed) {
  try {
    Tensor::empty({1}, DType::kFloat32, {DeviceType::kCuda, 99});
    FAIL() << "no error";
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cuda:99"));
  }
}

}  // namespace
}  // namespace lockstep
