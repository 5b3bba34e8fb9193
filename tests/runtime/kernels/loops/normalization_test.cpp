// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/normalization.h"

#include <cstring>

#include "runtime/kernels/assign.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

class NormalizationLoops : public KernelTest<Normalization> {
 protected:
  /// What both directions of layer_norm write, for x and dy of these dtypes.
  static std::vector<Tensor> layer_norm(const Place& on, const Tensor& x, const Tensor& weight, const Tensor& bias,
                                        const Tensor& dy, bool centred) {
    const std::int64_t rows = x.shape().rows(), channels = x.shape().back();
    const Tensor y = on.empty(x.shape(), dy.dtype()), dx = on.empty(x.shape(), x.dtype());
    const Tensor mean = centred ? on.empty({rows}, DType::kFloat32) : Tensor();
    const Tensor inv_std = on.empty({rows}, DType::kFloat32);
    const Tensor dweight = on.empty({channels}, DType::kFloat32), dbias = on.empty({channels}, DType::kFloat32);
    on->layer_norm(on(x), on(weight), on(bias), 1e-5, y, mean, inv_std);
    on->layer_norm_backward(on(x), on(weight), mean, inv_std, on(dy), dx, dweight, dbias);
    std::vector all{y, inv_std, dx, dweight, dbias};
    if (centred) all.push_back(mean);
    return all;
  }

  static std::vector<Tensor> group_norm(const Place& on, const Tensor& x, std::int64_t groups, const Tensor& weight,
                                        const Tensor& bias, const Tensor& dy) {
    const std::int64_t channels = x.shape().back();
    const Tensor y = on.empty(x.shape(), dy.dtype()), dx = on.empty(x.shape(), x.dtype());
    const Tensor mean = on.empty({x.size(0), groups}, DType::kFloat32);
    const Tensor inv_std = on.empty({x.size(0), groups}, DType::kFloat32);
    const Tensor dweight = on.empty({channels}, DType::kFloat32), dbias = on.empty({channels}, DType::kFloat32);
    on->group_norm(on(x), on(weight), on(bias), 1e-5, y, mean, inv_std);
    on->group_norm_backward(on(x), on(weight), mean, inv_std, on(dy), dx, dweight, dbias);
    return {y, mean, inv_std, dx, dweight, dbias};
  }

  /// y's dtype, and float32 beside 16 bits.
  static std::vector<DType> result_dtypes() {
    std::vector dtypes{dtype()};
    if (dtype() != DType::kFloat32) dtypes.push_back(DType::kFloat32);
    return dtypes;
  }
};
INSTANTIATE_TEST_SUITE_P(On, NormalizationLoops, kFastTypes, name_of_on);

TEST_P(NormalizationLoops, OfRowsMatchesTheReference) {
  for (const std::int64_t channels : {1, 2, 7, 16, 33, 64, 100, 512, 1300, 4099}) {
    for (const std::int64_t rows : {0, 1, 5}) {
      for (const DType result : result_dtypes()) {
        SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(channels));
        const Tensor x = random({rows, channels}, 1, -1, 3);
        const Tensor dy = random_tensor({rows, channels}, result, 2);
        const Tensor weight = random_wide({channels}, 3), bias = random_wide({channels}, 4);
        // A row of one number has no variance: 1 / sqrt(epsilon) is the factor of its gradient.
        const double magnitude = channels < 7 ? 400 : 4;
        const auto compare = [&](const Tensor& gamma, const Tensor& beta, bool centred) {
          expect_matches_reference([&](const Place& on) { return layer_norm(on, x, gamma, beta, dy, centred); },
                                   bounds(20, magnitude));
        };
        compare(weight, bias, true);
        if (rows == 1) continue;
        compare(weight, {}, false);
        compare({}, {}, true);
      }
    }
  }
}

// A 16-bit y is the float32 y, rounded once. A 16-bit dy is read exactly.
TEST_P(NormalizationLoops, RoundsRowsAsACastDoes) {
  const std::vector own{dtype()}, both{DType::kFloat16, DType::kBFloat16};
  for (const DType narrow : dtype() == DType::kFloat32 ? both : own) {
    for (const std::int64_t channels : {1, 7, 64, 1300, 9001}) {
      const Tensor x = random({5, channels}, 1, -1, 3), dy = random_tensor({5, channels}, narrow, 2);
      const Tensor weight = random_wide({channels}, 3), bias = random_wide({channels}, 4);
      const Tensor wide_dy = Tensor::empty(dy.shape(), DType::kFloat32);
      cast(dy, wide_dy);
      const std::vector<Tensor> found = layer_norm(tested(), x, weight, bias, dy, true);
      std::vector<Tensor> expected = layer_norm(tested(), x, weight, bias, wide_dy, true);
      const Tensor rounded = Tensor::empty(dy.shape(), narrow, expected[0].device());
      cast(expected[0], rounded);
      expected[0] = rounded;
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].dtype(), expected[i].dtype());
        EXPECT_TRUE(bytes_of(found[i]) == bytes_of(expected[i])) << channels << " channels: result " << i;
      }
    }
  }
}

TEST_P(NormalizationLoops, OfGroupsMatchesTheReference) {
  struct Case {
    Shape shape;
    std::int64_t groups;
  };
  for (const Case& at :
       {Case{{2, 3, 4, 6}, 3}, Case{{2, 5, 6}, 1}, Case{{3, 7, 5}, 5}, Case{{1, 700, 24}, 4}, Case{{2, 300, 130}, 130},
        Case{{3, 12}, 4}, Case{{0, 3, 4}, 2}, Case{{2, 0, 4}, 2}, Case{{2, 1, 1, 2, 8}, 2}, Case{{1, 5, 600}, 3}}) {
    for (const DType result : result_dtypes()) {
      SCOPED_TRACE(at.shape.str() + " in " + std::to_string(at.groups) + " groups");
      const std::int64_t channels = at.shape.back();
      const Tensor x = random(at.shape, 1, -1, 3), dy = random_tensor(at.shape, result, 2);
      const Tensor weight = random_wide({channels}, 3), bias = random_wide({channels}, 4);
      const auto compare = [&](const Tensor& gamma, const Tensor& beta) {
        expect_matches_reference([&](const Place& on) { return group_norm(on, x, at.groups, gamma, beta, dy); },
                                 bounds(60, 4));
      };
      compare(weight, bias);
      compare({}, {});
    }
  }
}

TEST_P(NormalizationLoops, GradientsCanBeLeftOut) {
  const Tensor x = random({4, 9, 6}, 1), dy = random({4, 9, 6}, 2);
  const Tensor weight = random_wide({6}, 3);
  expect_matches_reference(
      [&](const Place& on) {
        const Tensor y = on.empty({4, 9, 6}), dx = on.empty({4, 9, 6});
        const Tensor row_mean = on.empty({36}, DType::kFloat32), row_scale = on.empty({36}, DType::kFloat32);
        const Tensor mean = on.empty({4, 2}, DType::kFloat32), scale = on.empty({4, 2}, DType::kFloat32);
        const Tensor of_rows = on.empty({6}, DType::kFloat32), of_groups = on.empty({6}, DType::kFloat32);
        on->layer_norm(on(x), on(weight), {}, 1e-5, y, row_mean, row_scale);
        on->layer_norm_backward(on(x), on(weight), row_mean, row_scale, on(dy), {}, of_rows, {});
        on->group_norm(on(x), on(weight), {}, 1e-5, y, mean, scale);
        on->group_norm_backward(on(x), on(weight), mean, scale, on(dy), {}, {}, of_groups);
        on->layer_norm_backward(on(x), on(weight), row_mean, row_scale, on(dy), dx, {}, {});
        return std::vector{of_rows, of_groups, dx};
      },
      bounds(40, 4));
}

// Far from 0 the difference of the mean of squares and the square of the mean would have no digit left.
TEST_P(NormalizationLoops, AMeanFarFromZeroCostsNoDigits) {
  const double far = dtype() == DType::kFloat32 ? 10000 : 100;
  const Tensor x = random({3, 768}, 1, far, far + 8);
  const Tensor dy = random_tensor({3, 768}, DType::kFloat32, 2);
  // The mean itself is rounded: by so much of a standard deviation, which the gradient of the weight has in every term.
  const Bounds bounds{.relative = std::max(1e-4, epsilon_of(dtype())), .absolute = 8 * far * 0x1p-23};
  expect_matches_reference([&](const Place& on) { return layer_norm(on, x, {}, {}, dy, true); }, bounds);
  const Tensor images = x.reshaped({3, 96, 8}), slopes = dy.reshaped({3, 96, 8});
  expect_matches_reference([&](const Place& on) { return group_norm(on, images, 2, {}, {}, slopes); }, bounds);
}

TEST_P(NormalizationLoops, NaNStaysInItsRowAndItsGroup) {
  std::vector<double> values(4 * 40, 0.25);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 7);
  values[3] = kNaN;
  const Tensor x = tensor_of(values, {4, 40}, dtype());
  const auto on = tested();
  const Tensor y = on.empty({4, 40}), mean = on.empty({4}, DType::kFloat32), scale = on.empty({4}, DType::kFloat32);
  on->layer_norm(on(x), {}, {}, 1e-5, y, mean, scale);
  const std::vector<double> rows = values_of(y);
  const Tensor group_mean = on.empty({2, 2}, DType::kFloat32), group_scale = on.empty({2, 2}, DType::kFloat32);
  const Tensor images = on.empty({2, 20, 4});
  on->group_norm(on(x.reshaped({2, 20, 4})), {}, {}, 1e-5, images, group_mean, group_scale);
  const std::vector<double> groups = values_of(images);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::isnan(rows[i]), i < 40) << i;
    EXPECT_EQ(std::isnan(groups[i]), i < 80 && i % 4 >= 2) << i;
  }
}

TEST_P(NormalizationLoops, ThreadsChangeNothing) {
  const Tensor x = random({6, 4001, 37}, 1), dy = random({6, 4001, 37}, 2);
  const Tensor few = random({1, 12001, 37}, 3), slopes = random({1, 12001, 37}, 4);
  const Tensor weight = random_wide({37}, 5), bias = random_wide({37}, 6);
  expect_same_bits_on_any_number_of_threads([&, on = tested()] {
    std::vector<Tensor> all = layer_norm(on, x, weight, bias, dy, true);
    for (const auto& [images, gradients] : {std::pair(x, dy), std::pair(few, slopes)}) {
      for (const Tensor& result : group_norm(on, images, 1, weight, bias, gradients)) all.push_back(result);
    }
    return all;
  });
}

// Whether a result is stored past the caches is a matter of its size; channels decide whether its tiles are aligned.
TEST(Normalization, AResultLargerThanTheCachesIsTheSame) {
  const Normalization& on = Normalization::on(kCpu);
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const std::int64_t channels : {128, 129}) {
      SCOPED_TRACE(std::string(name_of(dtype)) + ", " + std::to_string(channels) + " channels");
      const Shape shape{5, 6600, channels};
      const Tensor x = Tensor::empty(shape, dtype), some = random_tensor({997, channels}, dtype, 1);
      for (std::int64_t row = 0; row < 5 * 6600; ++row) {
        const std::size_t bytes = static_cast<std::size_t>(channels) * size_of(dtype);
        std::memcpy(static_cast<std::byte*>(x.data()) + static_cast<std::size_t>(row) * bytes,
                    some.rows(row % 997, row % 997 + 1).data(), bytes);
      }
      const Tensor y = Tensor::empty(shape, dtype), dx = Tensor::empty(shape, dtype);
      const Tensor mean = Tensor::empty({5, 1}, DType::kFloat32), inv_std = Tensor::empty({5, 1}, DType::kFloat32);
      const auto run = [&](std::int64_t begin, std::int64_t end, const Tensor& result, const Tensor& gradient) {
        const Tensor means = mean.rows(begin, end), scales = inv_std.rows(begin, end);
        on.group_norm(x.rows(begin, end), {}, {}, 1e-5, result, means, scales);
        on.group_norm_backward(x.rows(begin, end), {}, means, scales, x.rows(begin, end), gradient, {}, {});
      };
      run(0, 5, y, dx);
      const Tensor own_y = Tensor::empty({1, 6600, channels}, dtype), own_dx = Tensor::empty(own_y.shape(), dtype);
      for (std::int64_t sample = 0; sample < 5; ++sample) {
        run(sample, sample + 1, own_y, own_dx);
        EXPECT_TRUE(bytes_of(y.rows(sample, sample + 1)) == bytes_of(own_y)) << sample;
        EXPECT_TRUE(bytes_of(dx.rows(sample, sample + 1)) == bytes_of(own_dx)) << sample;
      }
    }
  }
}

TEST(Normalization, RefusesWhatDoesNotFit) {
  const Normalization& on = Normalization::on(kCpu);
  const auto zeros = [](const Shape& shape, DType dtype = DType::kFloat32) { return Tensor::zeros(shape, dtype); };
  const Tensor x = zeros({4, 6}), y = zeros({4, 6}), mean = zeros({4}), scale = zeros({4});
  EXPECT_THROW(on.layer_norm(x, zeros({5}), {}, 0, y, mean, scale), ShapeError);
  EXPECT_THROW(on.layer_norm(x, zeros({6}, DType::kFloat16), {}, 0, y, mean, scale), ShapeError);
  EXPECT_THROW(on.layer_norm(x, {}, {}, 0, zeros({4, 6}, DType::kFloat64), mean, scale), ShapeError);
  EXPECT_THROW(on.layer_norm(zeros({4, 6}, DType::kFloat16), {}, {}, 0, zeros({4, 6}, DType::kBFloat16), mean, scale),
               ShapeError);
  EXPECT_THROW(on.layer_norm(x, {}, {}, 0, y, mean, {}), ShapeError);
  EXPECT_THROW(on.layer_norm_backward(x, {}, mean, scale, zeros({4, 6}, DType::kFloat64), y, {}, {}), ShapeError);
  EXPECT_THROW(on.layer_norm(x, {}, {}, 0, y, zeros({6}), scale), ShapeError);
  EXPECT_THROW(on.group_norm(x, {}, {}, 0, y, zeros({4, 4}), zeros({4, 4})), ShapeError) << "4 groups of 6 channels";
  EXPECT_THROW(on.group_norm(x, {}, {}, 0, y, {}, zeros({4, 2})), ShapeError);
  EXPECT_THROW(on.group_norm(x, {}, {}, 0, zeros({4, 6}, DType::kFloat16), zeros({4, 2}), zeros({4, 2})), ShapeError);
  EXPECT_THROW(on.group_norm_backward(x, {}, zeros({4, 2}), zeros({4, 2}), zeros({4, 5}), y, {}, {}), ShapeError);
  EXPECT_THROW(on.group_norm_backward(x, {}, zeros({4, 2}), zeros({4, 2}), zeros({4, 6}, DType::kFloat16), y, {}, {}),
               ShapeError);
}

}  // namespace
}  // namespace lockstep::kernels
