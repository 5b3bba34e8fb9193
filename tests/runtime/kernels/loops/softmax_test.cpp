// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/softmax.h"

#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/losses.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

template <class T>
class SoftmaxLoops : public KernelTest<T, Elementwise, Losses, Softmax> {
 protected:
  static Tensor targets(std::int64_t rows, std::int64_t classes) {
    std::vector<std::int64_t> labels;
    for (std::int64_t row = 0; row < rows; ++row) labels.push_back(row * 7 % classes);
    return Tensor::from(labels, {rows});
  }
};
TYPED_TEST_SUITE(SoftmaxLoops, FastTypes, OnName);

TYPED_TEST(SoftmaxLoops, MatchesTheReferenceForwardAndBackward) {
  for (const std::int64_t classes : {1, 2, 10, 16, 33, 200, 512, 1300}) {
    SCOPED_TRACE(classes);
    for (const bool log : {false, true}) {
      const Tensor x = this->random({5, classes}, 1, -9, 9), dy = this->random({5, classes}, 2);
      const Tensor y = this->reference().empty({5, classes});
      this->reference()->softmax(x, log, y);
      this->expect_matches_reference(
          [&](const auto& on) {
            const Tensor out = on.empty({5, classes}), dx = on.empty({5, classes});
            on->softmax(on(x), log, out);
            on->softmax_backward(on(y), log, on(dy), dx);
            return std::vector{out, dx};
          },
          this->bounds(40));
    }
  }
}

TYPED_TEST(SoftmaxLoops, MatchesTheReferenceOverAMiddle) {
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{2, 10, 3}, Shape{3, 5, 64}, Shape{1, 300, 17}, Shape{2, 7, 1100},
                             Shape{2, 0, 3}, Shape{0, 2, 3}, Shape{2, 3, 0}}) {
    SCOPED_TRACE(shape.str());
    for (const bool log : {false, true}) {
      const Tensor x = this->random(shape, 1, -9, 9), dy = this->random(shape, 2);
      const Tensor y = this->reference().empty(shape);
      this->reference()->softmax_middle(x, log, y);
      this->expect_matches_reference(
          [&](const auto& on) {
            const Tensor out = on.empty(shape), dx = on.empty(shape);
            on->softmax_middle(on(x), log, out);
            on->softmax_middle_backward(on(y), log, on(dy), dx);
            return std::vector{out, dx};
          },
          this->bounds(40));
    }
  }
}

TYPED_TEST(SoftmaxLoops, RefusesWhatIsNoMiddle) {
  const auto on = this->tested();
  const Tensor flat = on.empty({2, 3}), x = on.empty({2, 3, 4}), other = on.empty({2, 4, 3});
  EXPECT_THROW(on->softmax_middle(flat, false, flat), ShapeError);
  EXPECT_THROW(on->softmax_middle(x, false, other), ShapeError);
  EXPECT_THROW(on->softmax_middle_backward(x, false, other, x), ShapeError);
}

TYPED_TEST(SoftmaxLoops, MasksOfMinusInfinityAndNaNBehaveAsInTheReference) {
  std::vector<double> values(4 * 600, 0.25);
  for (std::size_t c = 0; c < 550; ++c) values[c] = -kInfinity;  // a whole block of row 0
  values[600 + 599] = -kInfinity;
  values[1200 + 70] = kNaN;
  const Tensor x = tensor_of(values, {4, 600}, this->kDType);
  this->expect_matches_reference(
      [&](const auto& on) {
        const Tensor y = on.empty({4, 600});
        on->softmax(on(x), false, y);
        return std::vector{y.rows(0, 2), y.rows(3, 4)};
      },
      this->bounds());
  const auto on = this->tested();
  const Tensor y = on.empty({4, 600});
  on->softmax(on(x), false, y);
  for (const double value : values_of(y.rows(2, 3))) EXPECT_TRUE(std::isnan(value));
}

TYPED_TEST(SoftmaxLoops, CrossEntropyMatchesTheReference) {
  for (const std::int64_t classes : {1, 2, 10, 600}) {
    for (const std::int64_t rows : {0, 1, 65}) {
      for (const double smoothing : {0.0, 0.1}) {
        SCOPED_TRACE(classes);
        const Tensor x = this->random({rows, classes}, 1, -9, 9), labels = this->targets(rows, classes);
        const Tensor dloss = tensor_of({64}, {}, DType::kFloat32);
        this->expect_matches_reference(
            [&](const auto& on) {
              const Tensor loss = on.empty({}, DType::kFloat32), norms = on.empty({rows}, DType::kFloat32);
              const Tensor dx = on.empty({rows, classes});
              on->cross_entropy(on(x), {on(labels), smoothing}, 1.0 / 65, loss, norms);
              on->cross_entropy_backward(on(x), {on(labels), smoothing}, 1.0 / 65, norms, on(dloss), dx);
              return std::vector{loss, norms, dx};
            },
            this->bounds(40));
      }
    }
  }
}

TYPED_TEST(SoftmaxLoops, WeightedCrossEntropyMatchesTheReference) {
  for (const std::int64_t classes : {1, 5, 37, 1500}) {
    for (const std::int64_t rows : {0, 1, 65}) {
      for (const double smoothing : {0.0, 0.1}) {
        for (const int weighted : {1, 2, 3}) {
          SCOPED_TRACE(classes);
          const Tensor x = this->random({rows, classes}, 1, -9, 9), labels = this->targets(rows, classes);
          const Tensor of_classes = weighted & 1 ? random_tensor({classes}, DType::kFloat32, 3, 0.5, 1.5) : Tensor();
          const Tensor of_rows = weighted & 2 ? random_tensor({rows}, DType::kFloat32, 4, 0, 1) : Tensor();
          if (of_rows.defined() && rows > 1) of_rows.mutable_as<float>()[1] = 0;
          const Tensor dloss = tensor_of({64}, {}, DType::kFloat32);
          this->expect_matches_reference(
              [&](const auto& on) {
                const Tensor loss = on.empty({}, DType::kFloat32), norms = on.empty({rows}, DType::kFloat32);
                const Tensor dx = on.empty({rows, classes});
                const CrossEntropyTargets targets{on(labels), smoothing, on(of_classes), on(of_rows)};
                on->cross_entropy(on(x), targets, 1.0 / 65, loss, norms);
                on->cross_entropy_backward(on(x), targets, 1.0 / 65, norms, on(dloss), dx);
                return std::vector{loss, norms, dx};
              },
              this->bounds(60));
        }
      }
    }
  }
}

TYPED_TEST(SoftmaxLoops, CrossEntropyDoesNotOverlookATargetOutOfRange) {
  for (const std::int64_t wrong : {-1, 3, 1 << 30}) {
    const Tensor x = this->random({2, 3}, 1), labels = Tensor::from<std::int64_t>({0, wrong}, {2});
    const auto on = this->tested();
    const Tensor loss = on.empty({}, DType::kFloat32), norms = on.empty({2}, DType::kFloat32);
    if (this->kDevice == kCpu) {
      EXPECT_THROW(on->cross_entropy(on(x), {on(labels)}, 1, loss, norms), UsageError);
    } else {  // nobody waits for a GPU to hear of it
      on->cross_entropy(on(x), {on(labels)}, 1, loss, norms);
      EXPECT_TRUE(std::isnan(loss.item()));
    }
  }
}

TYPED_TEST(SoftmaxLoops, LossesOfPairsMatchTheReference) {
  const PairLossFunction functions[] = {PairLoss::kSquare,
                                        PairLoss::kAbsolute,
                                        {PairLoss::kHuber, 0.4},
                                        PairLoss::kKlDivergence,
                                        PairLoss::kKlDivergenceOfLogs};
  for (const PairLossFunction& function : functions) {
    for (const std::int64_t n : {0, 1, 7, 513, 9001}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(function.kind)) + " of " + std::to_string(n));
      const Tensor x = this->random({n}, 1);
      const Tensor dloss = tensor_of({64}, {}, DType::kFloat32);
      for (const Tensor& target : {this->random({n}, 2), this->random_wide({n}, 2)})
        this->expect_matches_reference(
            [&](const auto& on) {
              const Tensor loss = on.empty({}, DType::kFloat32), dx = on.empty({n}),
                           dtarget = on.empty({n}, target.dtype());
              on->pair_loss(function, on(x), on(target), 0.01, loss);
              on->pair_loss_backward(function, on(x), on(target), PairSide::kX, 0.01, on(dloss), dx);
              on->pair_loss_backward(function, on(x), on(target), PairSide::kTarget, 0.01, on(dloss), dtarget);
              return std::vector{loss, dx, dtarget};
            },
            this->bounds(10));
    }
  }
}

TYPED_TEST(SoftmaxLoops, ALossOfPairsRoundsAsCastsAroundItDo) {
  // A 16-bit x beside a float32 target: the same bits as x widened before, and its gradient rounded behind.
  const Tensor x = this->random({1300}, 1), target = this->random_wide({1300}, 2);
  const auto on = this->tested();
  const auto loss_and_gradient = [&](const Tensor& input) {
    const Tensor loss = on.empty({}, DType::kFloat32), dx = on.empty({1300}, input.dtype());
    const Tensor scale = on(tensor_of({65536}, {}, DType::kFloat32));
    on->pair_loss(PairLoss::kSquare, input, on(target), 1.0 / 1300, loss);
    on->pair_loss_backward(PairLoss::kSquare, input, on(target), PairSide::kX, 1.0 / 1300, scale, dx);
    return std::vector{loss, dx};
  };
  const Tensor wide = on.empty({1300}, DType::kFloat32), rounded = on.empty({1300});
  on->cast(on(x), wide);
  const std::vector<Tensor> found = loss_and_gradient(on(x)), expected = loss_and_gradient(wide);
  on->cast(expected[1], rounded);
  // The sums of a wider dtype may have another order.
  const double loss = values_of(expected[0]).at(0);
  EXPECT_NEAR(values_of(found[0]).at(0), loss, 0x1p-22 * loss);
  EXPECT_EQ(bytes_of(found[1]), bytes_of(rounded));
}

TYPED_TEST(SoftmaxLoops, ThreadsChangeNothing) {
  const Tensor x = this->random({12001, 37}, 1), labels = this->targets(12001, 37),
               target = this->random({12001, 37}, 2);
  expect_same_bits_on_any_number_of_threads([&, on = this->tested()] {
    const Tensor loss = on.empty({}, DType::kFloat32), norms = on.empty({12001}, DType::kFloat32);
    const Tensor y = on.empty({12001, 37}), error = on.empty({}, DType::kFloat32);
    on->cross_entropy(on(x), {on(labels), 0.1}, 1, loss, norms);
    on->softmax(on(x), true, y);
    on->pair_loss(PairLoss::kSquare, on(x), on(target), 1, error);
    return std::vector{loss, norms, y, error};
  });
}

}  // namespace
}  // namespace lockstep::kernels
