// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

template <class T>
class SoftmaxLoops : public KernelTest<T> {
 protected:
  static Tensor targets(std::int64_t rows, std::int64_t classes) {
    std::vector<std::int64_t> labels;
    for (std::int64_t row = 0; row < rows; ++row) labels.push_back(row * 7 % classes);
    return Tensor::from(labels, {rows});
  }
};
TYPED_TEST_SUITE(SoftmaxLoops, LoopTypes, OnName);

TYPED_TEST(SoftmaxLoops, MatchesTheReferenceForwardAndBackward) {
  for (const std::int64_t classes : {1, 2, 10, 16, 33, 512, 1300}) {
    SCOPED_TRACE(classes);
    for (const bool log : {false, true}) {
      const Tensor x = this->random({5, classes}, 1, -9, 9), dy = this->random({5, classes}, 2);
      const Tensor y = this->empty({5, classes});
      reference_backend().softmax(x, log, y);
      this->expect_matches_reference(
          [&](Backend& tested) {
            const Tensor out = this->empty({5, classes}), dx = this->empty({5, classes});
            tested.softmax(x, log, out);
            tested.softmax_backward(y, log, dy, dx);
            return std::vector{out, dx};
          },
          bounds_for(this->kDType, 40));
    }
  }
}

TYPED_TEST(SoftmaxLoops, MasksOfMinusInfinityAndNaNBehaveAsInTheReference) {
  std::vector<double> values(4 * 600, 0.25);
  for (std::size_t c = 0; c < 550; ++c) values[c] = -kInfinity;  // a whole block of row 0
  values[600 + 599] = -kInfinity;
  values[1200 + 70] = kNaN;
  const Tensor x = tensor_of(values, {4, 600}, this->kDType);
  this->expect_matches_reference(
      [&](Backend& tested) {
        const Tensor y = this->empty({4, 600});
        tested.softmax(x, false, y);
        return std::vector{y.rows(0, 2), y.rows(3, 4)};
      },
      bounds_for(this->kDType));
  const Tensor y = this->empty({4, 600});
  backend(kCpu).softmax(x, false, y);
  for (std::int64_t c = 0; c < 600; ++c) EXPECT_TRUE(std::isnan(y.item(1200 + c)));
}

TYPED_TEST(SoftmaxLoops, CrossEntropyMatchesTheReference) {
  for (const std::int64_t classes : {1, 2, 10, 600}) {
    for (const std::int64_t rows : {0, 1, 65}) {
      for (const double smoothing : {0.0, 0.1}) {
        SCOPED_TRACE(classes);
        const Tensor x = this->random({rows, classes}, 1, -9, 9), labels = this->targets(rows, classes);
        const Tensor dloss = tensor_of({64}, {}, DType::kFloat32);
        this->expect_matches_reference(
            [&](Backend& tested) {
              const Tensor loss = this->empty({}, DType::kFloat32), norms = this->empty({rows}, DType::kFloat32);
              const Tensor dx = this->empty({rows, classes});
              tested.cross_entropy(x, labels, smoothing, 1.0 / 65, loss, norms);
              tested.cross_entropy_backward(x, labels, smoothing, 1.0 / 65, norms, dloss, dx);
              return std::vector{loss, norms, dx};
            },
            bounds_for(this->kDType, 40));
      }
    }
  }
}

TYPED_TEST(SoftmaxLoops, CrossEntropyNamesTheTargetOutOfRange) {
  const Tensor x = this->random({2, 3}, 1), labels = Tensor::from<std::int64_t>({0, 3}, {2});
  const Tensor loss = this->empty({}, DType::kFloat32), norms = this->empty({2}, DType::kFloat32);
  EXPECT_THROW(backend(kCpu).cross_entropy(x, labels, 0, 1, loss, norms), UsageError);
}

TYPED_TEST(SoftmaxLoops, MeanSquaredErrorMatchesTheReference) {
  for (const std::int64_t n : {0, 1, 7, 513, 9001}) {
    const Tensor x = this->random({n}, 1), target = this->random({n}, 2);
    const Tensor dloss = tensor_of({64}, {}, DType::kFloat32);
    this->expect_matches_reference(
        [&](Backend& tested) {
          const Tensor loss = this->empty({}, DType::kFloat32), dx = this->empty({n});
          tested.mse(x, target, 0.01, loss);
          tested.mse_backward(x, target, 0.01, dloss, dx);
          return std::vector{loss, dx};
        },
        bounds_for(this->kDType, 10));
  }
}

TYPED_TEST(SoftmaxLoops, ThreadsChangeNothing) {
  const Tensor x = this->random({3001, 37}, 1), labels = this->targets(3001, 37), target = this->random({3001, 37}, 2);
  expect_same_bits_on_any_number_of_threads([&] {
    const Tensor loss = this->empty({}, DType::kFloat32), norms = this->empty({3001}, DType::kFloat32);
    const Tensor y = this->empty({3001, 37}), error = this->empty({}, DType::kFloat32);
    backend(kCpu).cross_entropy(x, labels, 0.1, 1, loss, norms);
    backend(kCpu).softmax(x, true, y);
    backend(kCpu).mse(x, target, 1, error);
    return std::vector{loss, norms, y, error};
  });
}

}  // namespace
}  // namespace lockstep::kernels
