// SPDX-License-Identifier: Apache-2.0
// Movement, reductions over dimensions, indexing.
#include <cmath>

#include "tests/runtime/kernels/loops/loops_fixture.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using ops::testing::kAllTypes;
using ops::testing::name_of_on;

class StructureTest : public ops::testing::OperationTest {};
INSTANTIATE_TEST_SUITE_P(On, StructureTest, kAllTypes, name_of_on);

/// Ragged, with an extent of 1, empty.
const Shape kStructureShapes[] = {{5, 3, 4}, {1, 3, 1}, {2, 0, 3}, {0, 3, 2}};

std::vector<double> values_in(const Tensor& tensor) { return kernels::testing::values_of(tensor); }

TEST_P(StructureTest, Permute) {
  for (const Shape& shape : kStructureShapes) {
    const Tensor x = random(shape, 1);
    for (const std::vector<int>& order : {std::vector{2, 0, 1}, {0, 2, 1}, {2, 1, 0}, {-1, -3, 1}, {0, 1, 2}}) {
      check([&](const auto& in) { return permute(in[0], order); }, {x});
    }
    check([](const auto& in) { return transpose(in[0], 0, -1); }, {x});
  }
  const Tensor x = Tensor::from<std::int64_t>({1, 2, 3, 4, 5, 6}, {2, 3}).to(device());
  EXPECT_EQ(values_in(transpose(x, 0, 1)), (std::vector<double>{1, 4, 2, 5, 3, 6}));
}

TEST_P(StructureTest, Flip) {
  for (const Shape& shape : kStructureShapes) {
    check([](const auto& in) { return flip(in[0], {0, -1}); }, {random(shape, 1)});
    check([](const auto& in) { return flip(in[0], 1); }, {random(shape, 1)});
    check([](const auto& in) { return flip(in[0], std::vector<int>()); }, {random(shape, 1)});
  }
}

TEST_P(StructureTest, ExpandAndItsSum) {
  const std::pair<Shape, Shape> pairs[] = {
      {{3}, {4, 3}}, {{4, 1}, {4, 3}},    {{}, {2, 3}},       {{1, 3, 1}, {4, 3, 5}}, {{2, 1, 4, 1}, {2, 3, 4, 2}},
      {{1}, {0}},    {{3, 1}, {0, 3, 2}}, {{1, 1}, {1, 1, 1}}};
  for (const auto& [from, to] : pairs) {
    SCOPED_TRACE(from.str() + " to " + to.str());
    check([&, to = to](const auto& in) { return expand(in[0], to); }, {random(from, 1)}, {.terms = 60});
    check([&, from = from](const auto& in) { return sum_to(in[0], from); }, {random(to, 1)}, {.terms = 60});
  }
  const Tensor integers = Tensor::from<std::int64_t>({1, 2}, {2, 1}).to(device());
  EXPECT_EQ(values_in(expand(integers, {2, 2, 3})), (std::vector<double>{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}));
  EXPECT_THROW(expand(integers, {3, 3}), ShapeError);
  EXPECT_THROW(expand(random({3, 2}, 1), {3, 3}), ShapeError);
  EXPECT_THROW(expand(random({3, 2}, 1), {2}), ShapeError);
  EXPECT_THROW(sum_to(random({3, 2}, 1), {3}), ShapeError);
}

TEST_P(StructureTest, Repeat) {
  check([](const auto& in) { return repeat(in[0], {2, 1, 3}); }, {random({2, 3}, 1)}, {.terms = 6});
  EXPECT_EQ(repeat(random({2, 3}, 1), {2, 0}).shape(), (Shape{4, 0}));
}

TEST_P(StructureTest, CatAndStack) {
  for (const int dim : {0, 1, -1}) {
    std::vector<Tensor> parts;
    for (const std::int64_t extent : {2, 0, 3, 1}) {
      parts.push_back(random(Shape{3, 4, 2}.with(dim, extent), static_cast<std::uint32_t>(extent)));
    }
    check([&](const auto& in) { return cat(in, dim); }, parts);
  }
  for (const int dim : {0, 1, -1, -3}) {
    check([&](const auto& in) { return stack(in, dim); }, {random({3, 2}, 1), random({3, 2}, 2)});
  }
  EXPECT_THROW(cat({random({3, 2}, 1), random({2, 3}, 1)}, 0), ShapeError);
  EXPECT_THROW(cat({}, 0), UsageError);
  const Tensor integers = Tensor::zeros({2}, DType::kInt64);
  EXPECT_EQ(cat({integers, integers}).dtype(), DType::kInt64);
  EXPECT_THROW(cat({Tensor::zeros({2}, DType::kInt32), integers}), UsageError);
  EXPECT_THROW(cat({random({2}, 1), integers}), UsageError);
}

TEST_P(StructureTest, CatPromotes) {
  const Tensor half = random({2}, 1), wide = kernels::testing::random_tensor({3}, DType::kFloat32, 2);
  const Tensor y = cat({half.to(device()), wide.to(device())});
  EXPECT_EQ(y.dtype(), promote(dtype(), DType::kFloat32));
  EXPECT_EQ(y.shape(), Shape{5});
}

TEST_P(StructureTest, Slices) {
  for (const Shape& shape : kStructureShapes) {
    const Tensor x = random(shape, 1);
    check([](const auto& in) { return slice(in[0], 0, 1, 100, 2); }, {x});
    check([](const auto& in) { return slice(in[0], -1, -2, -1); }, {x});
    check([](const auto& in) { return slice(in[0], 1, 2, 1); }, {x});
    check([](const auto& in) { return slice(in[0], 1, 0, 3, 2); }, {x});
  }
  const Tensor x = random({5, 3, 4}, 1);
  check([](const auto& in) { return select(in[0], 1, -1); }, {x});
  check([](const auto& in) { return select(in[0], 0, 3); }, {x});
  check([](const auto& in) { return split(in[0], {1, 0, 4}, 0)[2]; }, {x});
  check([](const auto& in) { return split(in[0], 3, -1)[1]; }, {x});
  check([](const auto& in) { return chunk(in[0], 3)[1]; }, {x});
  EXPECT_EQ(chunk(x, 4).size(), 3u);
  EXPECT_EQ(split(x, 2, 0).back().shape(), (Shape{1, 3, 4}));
  EXPECT_THROW(select(x, 0, 5), ShapeError);
  EXPECT_THROW(slice(x, 3, 0, 1), ShapeError);
  EXPECT_THROW(slice(x, 0, 0, 1, 0), ShapeError);
  EXPECT_THROW(split(x, {1, 2}, 0), ShapeError);
}

TEST_P(StructureTest, UnsqueezeAndSqueeze) {
  const Tensor x = random({3, 1, 2, 1}, 1);
  EXPECT_EQ(unsqueeze(x, -1).shape(), (Shape{3, 1, 2, 1, 1}));
  EXPECT_EQ(unsqueeze(x, 0).shape(), (Shape{1, 3, 1, 2, 1}));
  EXPECT_EQ(squeeze(x).shape(), (Shape{3, 2}));
  EXPECT_EQ(squeeze(x, -1).shape(), (Shape{3, 1, 2}));
  EXPECT_EQ(squeeze(x, 0).shape(), x.shape());
  EXPECT_TRUE(squeeze(x).aliases(x));
  check([](const auto& in) { return squeeze(unsqueeze(in[0], 2), 1); }, {x});
}

TEST_P(StructureTest, SumAndMeanOverDimensions) {
  for (const Shape& shape : kStructureShapes) {
    const Tensor x = random(shape, 1);
    for (const Dims& dims : {Dims(0), Dims(1), Dims(-1), Dims({0, 1}), Dims({1, 2}), Dims({0, 2}), Dims({})}) {
      for (const bool keepdim : {false, true}) {
        check([&](const auto& in) { return sum(in[0], dims, {.keepdim = keepdim}); }, {x}, {.terms = 60});
        if (x.numel() > 0) {
          check([&](const auto& in) { return mean(in[0], dims, keepdim); }, {x}, {.terms = 60});
        }
      }
    }
  }
  EXPECT_EQ(sum(random({2, 3, 4}, 1), {0, 2}, {.keepdim = true}).shape(), (Shape{1, 3, 1}));
  EXPECT_TRUE(std::isnan(mean(random({2, 0}, 1), 1).item()));
  check([](const auto& in) { return sum(in[0], -1); }, {random({}, 1)});
  EXPECT_THROW(sum(random({2, 3}, 1), 2), ShapeError);
  EXPECT_THROW(sum(random({2, 3}, 1), {0, -2}), ShapeError);
}

TEST_P(StructureTest, SumIntoANamedDtype) {
  const Tensor x = random({64, 33}, 1, 0.5, 1.5).to(device());
  const Tensor y = sum(x, 0, {.dtype = wide()});
  EXPECT_EQ(y.dtype(), wide());
  std::vector<double> expected(33, 0.0);
  const std::vector<double> all = values_in(x);
  for (std::size_t i = 0; i < all.size(); ++i) expected[i % 33] += all[i];
  kernels::testing::expect_close(y, expected, kernels::testing::bounds_for(wide(), 64));
}

TEST_P(StructureTest, SumsOfIntegersAndBoolCount) {
  const Tensor x = kernels::testing::tensor_of({1, -1, 0.5, 2, -3, -1}, {2, 3}, dtype()).to(device());
  const Tensor positive = gt(x, 0);
  const Tensor count = sum(positive);
  EXPECT_EQ(count.dtype(), DType::kInt64);
  EXPECT_EQ(count.item(), 3);
  EXPECT_EQ(values_in(sum(positive, 1)), (std::vector<double>{2, 1}));
  EXPECT_EQ(sum(positive, 1, {.keepdim = true}).shape(), (Shape{2, 1}));
  for (const DType result : {dtype(), DType::kFloat32, DType::kInt32}) {
    const Tensor named = sum(positive, 0, {.dtype = result});
    EXPECT_EQ(named.dtype(), result);
    EXPECT_EQ(values_in(named), (std::vector<double>{2, 0, 1}));
  }
  const Tensor large = Tensor::from<std::int64_t>({std::int64_t{1} << 52, (std::int64_t{1} << 52) - 1}, {2});
  EXPECT_EQ(sum(large.to(device())).item(), 0x1p53 - 1);
  EXPECT_EQ(sum(x, 1, {.dtype = DType::kInt64}).dtype(), DType::kInt64);
  EXPECT_EQ(values_in(sum(x, 1, {.dtype = DType::kInt64})), (std::vector<double>{0, -2})) << "0.5 becomes 0";
  EXPECT_EQ(sum(Tensor::zeros({0}, DType::kInt32, device())).item(), 0);
  EXPECT_THROW(mean(positive), UsageError);
  EXPECT_THROW(mean(positive, 1), UsageError);
}

TEST_P(StructureTest, Variance) {
  for (const Shape& shape : {Shape{5, 3, 4}, Shape{1, 3, 2}, Shape{0, 3, 2}}) {
    const Tensor x = random(shape, 1);
    for (const Dims& dims : {Dims(1), Dims({0, 2}), Dims({1, 2}), Dims(-1)}) {
      if (shape.numel() == 0 && dims.list().size() == 2) continue;
      check([&](const auto& in) { return var(in[0], dims, {.correction = 0}); }, {x}, {.terms = 20});
    }
    check([&](const auto& in) { return var(in[0], 1, {.keepdim = true}); }, {x}, {.terms = 5});
  }
  EXPECT_TRUE(std::isnan(var(random({2, 1}, 1), 1).item()));
}

TEST_P(StructureTest, VarianceFarFromZero) {
  if (dtype() == DType::kBFloat16) GTEST_SKIP() << "1000 + a small integer is one number in it";
  const Tensor x = kernels::testing::tensor_of({1000, 1001, 1002, 1003}, {4, 1}, dtype()).to(device());
  kernels::testing::expect_close(var(x, 0), std::vector<double>{5.0 / 3}, {.relative = 1e-3});
}

TEST_P(StructureTest, ExtremesAlongADimension) {
  for (const Shape& shape : {Shape{5, 3, 4}, Shape{1, 3, 1}, Shape{0, 3, 2}}) {
    const Tensor x = random(shape, 1);
    for (const int dim : {1, -1}) {
      check([&](const auto& in) { return max(in[0], dim).values; }, {x});
      check([&](const auto& in) { return min(in[0], dim, true).values; }, {x});
    }
  }
  const Tensor x = kernels::testing::tensor_of({1, 3, 3, 2, -1, 0, -1, -1}, {2, 4}, dtype()).to(device());
  EXPECT_EQ(values_in(max(x, 1).indices), (std::vector<double>{1, 1}));
  EXPECT_EQ(values_in(min(x, 1).indices), (std::vector<double>{0, 0}));
  EXPECT_EQ(values_in(argmax(x, 0)), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(values_in(argmin(x)), (std::vector<double>{4}));
  EXPECT_EQ(argmax(x, 1, true).shape(), (Shape{2, 1}));
  EXPECT_EQ(max(x, 1).indices.dtype(), DType::kInt64);
  // Equal ones: the first has all of the gradient of max, each has its share of that of amax.
  x.set_requires_grad(true);
  EXPECT_EQ(values_in(autograd::grad(sum(max(x, 1).values), {x})[0]), (std::vector<double>{0, 1, 0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(values_in(autograd::grad(sum(amax(x, 1)), {x})[0]), (std::vector<double>{0, .5, .5, 0, 0, 1, 0, 0}));
  EXPECT_THROW(max(random({2, 0}, 1), 1), ShapeError);
}

TEST(Structure, IndicesOfExtremesThatWereWrittenStopTheBackward) {
  const Tensor x = Tensor::from<float>({1, 3, 2, 0}, {2, 2});
  x.set_requires_grad(true);
  const Extremes found = max(x, 1);
  const Tensor loss = sum(found.values);
  found.indices.mutable_as<std::int64_t>()[0] = 0;
  EXPECT_THROW(autograd::grad(loss, {x}), UsageError);
}

TEST_P(StructureTest, ExtremesOverDimensions) {
  const Tensor x = random({5, 3, 4}, 1);
  for (const Dims& dims : {Dims(1), Dims({0, 2}), Dims({1, 2}), Dims({})}) {
    check([&](const auto& in) { return amax(in[0], dims); }, {x});
    check([&](const auto& in) { return amin(in[0], dims, true); }, {x});
  }
  check([](const auto& in) { return max(in[0]); }, {x});
  check([](const auto& in) { return min(in[0]); }, {random({}, 1)});
}

TEST_P(StructureTest, NaNIsTheMostExtreme) {
  const double nan = kernels::testing::kNaN;
  const Tensor x = kernels::testing::tensor_of({1, nan, 3, nan, 2, 1, 0, -1}, {2, 4}, dtype()).to(device());
  for (const Extremes& found : {max(x, 1), min(x, 1)}) {
    EXPECT_TRUE(std::isnan(found.values.item(0)));
    EXPECT_FALSE(std::isnan(found.values.item(1)));
    EXPECT_EQ(found.indices.item(0), 1);
  }
  EXPECT_TRUE(std::isnan(amax(x, 0).item(1)) && std::isnan(amax(x, 0).item(3)));
  EXPECT_EQ(amax(x, 0).item(0), 2);
}

TEST_P(StructureTest, IndexSelect) {
  const Tensor indices = Tensor::from<std::int64_t>({2, 0, 2, 1, 2}, {5});
  for (const int dim : {0, 1, -1}) {
    check([&](const auto& in) { return index_select(in[0], dim, indices.to(in[0].device())); }, {random({3, 3, 4}, 1)},
          {.terms = 3});
  }
  const Tensor none = Tensor::zeros({0}, DType::kInt64);
  check([&](const auto& in) { return index_select(in[0], 0, none.to(in[0].device())); }, {random({3, 2}, 1)});
  EXPECT_THROW(index_select(random({3}, 1), 0, random({2}, 1)), ShapeError);
}

TEST_P(StructureTest, GatherAndScatterAdd) {
  const Tensor indices = Tensor::from<std::int64_t>({2, 0, 2, 1, 1, 1, 0, 0}, {2, 4});
  check([&](const auto& in) { return gather(in[0], 0, indices.to(in[0].device())); }, {random({3, 5}, 1)},
        {.terms = 2});
  check([&](const auto& in) { return gather(in[0], 1, indices.to(in[0].device())); }, {random({2, 3}, 1)},
        {.terms = 4});
  check([&](const auto& in) { return scatter_add(in[0], 1, indices.to(in[0].device()), 3); }, {random({2, 4}, 1)},
        {.terms = 4});
  check([&](const auto& in) { return scatter_add(in[0], 0, indices.to(in[0].device()), 4); }, {random({2, 4}, 1)},
        {.terms = 4});
  const Tensor numbers = Tensor::from<std::int64_t>({10, 11, 12, 20, 21, 22}, {2, 3}).to(device());
  EXPECT_EQ(values_in(gather(numbers, 1, indices.to(device()))), (std::vector<double>{12, 10, 12, 11, 21, 21, 20, 20}));
  EXPECT_THROW(gather(random({3}, 1), 0, indices), ShapeError);
  EXPECT_THROW(gather(random({1, 3}, 1), 1, indices), ShapeError);
}

TEST_P(StructureTest, OneHot) {
  const Tensor indices = Tensor::from<std::int64_t>({2, 0}, {2, 1}).to(device());
  for (const DType result : {dtype() == DType::kFloat64 ? DType::kFloat32 : dtype(), DType::kInt64}) {
    const Tensor hot = one_hot(indices, 3, result);
    EXPECT_EQ(hot.shape(), (Shape{2, 1, 3}));
    EXPECT_EQ(hot.dtype(), result);
    EXPECT_EQ(values_in(hot), (std::vector<double>{0, 0, 1, 1, 0, 0}));
  }
}

TEST(Structure, IndicesOutOfRangeAreNamed) {
  const Tensor x = kernels::testing::random_tensor({3, 2}, DType::kFloat32, 1);
  for (const std::int64_t bad : {-1, 3}) {
    const Tensor indices = Tensor::from<std::int64_t>({0, bad}, {2});
    try {
      index_select(x, 0, indices);
      FAIL();
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("index 1 is " + std::to_string(bad) + ", outside [0, 3)"),
                std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace lockstep::ops
