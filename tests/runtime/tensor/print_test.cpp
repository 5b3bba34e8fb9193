// SPDX-License-Identifier: Apache-2.0
// What is expected is what PyTorch 2.15 prints, without "torch." before a dtype.
#include "runtime/tensor/print.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <sstream>
#include <vector>

#include "runtime/tensor/half.h"
#include "tests/support/devices.h"

namespace lockstep {
namespace {

Tensor arange(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), 0.0f);
  return Tensor::from(values, shape);
}

TEST(Print, ChoosesTheFormOfNumbersAsPyTorchDoes) {
  EXPECT_EQ(to_text(Tensor::from<float>({3}, {})), "tensor(3.)");
  EXPECT_EQ(to_text(Tensor::from<float>({1, 2.5f, -3}, {3})), "tensor([ 1.0000,  2.5000, -3.0000])");
  EXPECT_EQ(to_text(Tensor::from<float>({1, 2, 3, 4, 50, -6}, {2, 3})),
            "tensor([[ 1.,  2.,  3.],\n"
            "        [ 4., 50., -6.]])");
  EXPECT_EQ(to_text(Tensor::from<std::int64_t>({1, -20, 300}, {3})), "tensor([  1, -20, 300])");
  EXPECT_EQ(to_text(Tensor::from<std::int64_t>({4611686018427387905, 1}, {2})),
            "tensor([4611686018427387905,                   1])");
  EXPECT_EQ(to_text(Tensor::from<bool>({true, false}, {2})), "tensor([ True, False])");
  EXPECT_EQ(to_text(Tensor::from<std::uint8_t>({1, 255}, {2})), "tensor([  1, 255], dtype=uint8)");
  EXPECT_EQ(to_text(Tensor::from<float>({1e-5f, 1}, {2})), "tensor([1.0000e-05, 1.0000e+00])");
  EXPECT_EQ(to_text(Tensor::from<float>({1, 2000}, {2})), "tensor([1.0000e+00, 2.0000e+03])");
  EXPECT_EQ(to_text(Tensor::from<float>({1.5f, NAN, -INFINITY, 0}, {4})), "tensor([1.5000,    nan,   -inf, 0.0000])");
  EXPECT_EQ(to_text(Tensor::from<float>({NAN, INFINITY}, {2})), "tensor([nan, inf])");
  EXPECT_EQ(to_text(Tensor::zeros({2, 2}, DType::kFloat32)),
            "tensor([[0., 0.],\n"
            "        [0., 0.]])");
  EXPECT_EQ(to_text(Tensor::from<Half>({Half(1.5f), Half(65504.0f)}, {2})),
            "tensor([1.5000e+00, 6.5504e+04], dtype=float16)");
  EXPECT_EQ(to_text(Tensor::from<double>({1e300, 2}, {2})), "tensor([1.0000e+300,  2.0000e+00], dtype=float64)");
}

TEST(Print, StacksDimensions) {
  EXPECT_EQ(to_text(arange({2, 2, 2})),
            "tensor([[[0., 1.],\n"
            "         [2., 3.]],\n"
            "\n"
            "        [[4., 5.],\n"
            "         [6., 7.]]])");
  EXPECT_EQ(to_text(arange({2, 1, 2, 1})),
            "tensor([[[[0.],\n"
            "          [1.]]],\n"
            "\n"
            "\n"
            "        [[[2.],\n"
            "          [3.]]]])");
}

TEST(Print, SaysTheSizeOfWhatIsEmptyAndPutsPropertiesWhereTheyFit) {
  EXPECT_EQ(to_text(Tensor::empty({0, 3}, DType::kInt64)), "tensor([], size=(0, 3), dtype=int64)");
  EXPECT_EQ(to_text(Tensor::empty({0}, DType::kFloat32)), "tensor([])");
  EXPECT_EQ(to_text(Tensor::from<double>({1.25, 2.25, 3.25, 4.25, 5.25, 6.25, 7.25, 8.25}, {8})),
            "tensor([1.2500, 2.2500, 3.2500, 4.2500, 5.2500, 6.2500, 7.2500, 8.2500],\n"
            "       dtype=float64)");
}

TEST(Print, BreaksLinesAndLeavesOutTheMiddle) {
  EXPECT_EQ(to_text(arange({30})),
            "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n"
            "        14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24., 25., 26., 27.,\n"
            "        28., 29.])");
  EXPECT_EQ(to_text(arange({1001})), "tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.])");
  EXPECT_EQ(to_text(arange({40, 40})),
            "tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 3.7000e+01, 3.8000e+01,\n"
            "         3.9000e+01],\n"
            "        [4.0000e+01, 4.1000e+01, 4.2000e+01,  ..., 7.7000e+01, 7.8000e+01,\n"
            "         7.9000e+01],\n"
            "        [8.0000e+01, 8.1000e+01, 8.2000e+01,  ..., 1.1700e+02, 1.1800e+02,\n"
            "         1.1900e+02],\n"
            "        ...,\n"
            "        [1.4800e+03, 1.4810e+03, 1.4820e+03,  ..., 1.5170e+03, 1.5180e+03,\n"
            "         1.5190e+03],\n"
            "        [1.5200e+03, 1.5210e+03, 1.5220e+03,  ..., 1.5570e+03, 1.5580e+03,\n"
            "         1.5590e+03],\n"
            "        [1.5600e+03, 1.5610e+03, 1.5620e+03,  ..., 1.5970e+03, 1.5980e+03,\n"
            "         1.5990e+03]])");
  EXPECT_EQ(to_text(arange({400, 3})),
            "tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00],\n"
            "        [3.0000e+00, 4.0000e+00, 5.0000e+00],\n"
            "        [6.0000e+00, 7.0000e+00, 8.0000e+00],\n"
            "        ...,\n"
            "        [1.1910e+03, 1.1920e+03, 1.1930e+03],\n"
            "        [1.1940e+03, 1.1950e+03, 1.1960e+03],\n"
            "        [1.1970e+03, 1.1980e+03, 1.1990e+03]])");
}

TEST(Print, GoesToAStream) {
  std::ostringstream out;
  out << arange({2}) << " and " << Tensor();
  EXPECT_EQ(out.str(), "tensor([0., 1.]) and an undefined tensor");
}

class GpuPrint : public lockstep::devices::GpuTest {};

TEST_F(GpuPrint, SaysTheDevice) {
  const Device gpu = lockstep::devices::kGpu;
  EXPECT_EQ(to_text(arange({2}).to(gpu)), "tensor([0., 1.], device='cuda:0')");
  EXPECT_EQ(to_text(Tensor::from<std::int64_t>({4611686018427387905}, {1}).to(gpu)),
            "tensor([4611686018427387905], device='cuda:0')");
  EXPECT_EQ(to_text(arange({1001}).to(gpu)),
            "tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.], device='cuda:0')");
}

}  // namespace
}  // namespace lockstep
