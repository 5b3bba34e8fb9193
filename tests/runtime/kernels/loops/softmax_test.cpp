// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/softmax.h"

#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/losses.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

class SoftmaxLoops : public KernelTest<Elementwise, Losses, Softmax> {
 protected:
  static Tensor targets(std::int64_t rows, std::int64_t classes) {
    std::vector<std::int64_t> labels;
    for (std::int64_t row = 0; row < rows; ++row) labels.push_back(row * 7 % classes);
    return Tensor::from(labels, {rows});
  }
};
INSTANTIATE_TEST_SUITE_P(On, SoftmaxLoops, kFastTypes, name_of_on);

TEST_P(SoftmaxLoops, MatchesTheReferenceForwardAndBackward) {
  for (const std::int64_t classes : {1, 2, 10, 16, 33, 200, 512, 1300}) {
    SCOPED_TRACE(classes);
    for (const bool log : {false, true}) {
      const Tensor x = random({5, classes}, 1, -9, 9), dy = random({5, classes}, 2);
      const Tensor y = reference().empty({5, classes});
      reference()->softmax(x, log, y);
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor out = on.empty({5, classes}), dx = on.empty({5, classes});
            on->softmax(on(x), log, out);
            on->softmax_backward(on(y), log, on(dy), dx);
            return std::vector{out, dx};
          },
          bounds(40));
    }
  }
}

TEST_P(SoftmaxLoops, MatchesTheReferenceOverAMiddle) {
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{2, 10, 3}, Shape{3, 5, 64}, Shape{1, 300, 17}, Shape{2, 7, 1100},
                             Shape{2, 0, 3}, Shape{0, 2, 3}, Shape{2, 3, 0}}) {
    SCOPED_TRACE(shape.str());
    for (const bool log : {false, true}) {
      const Tensor x = random(shape, 1, -9, 9), dy = random(shape, 2);
      const Tensor y = reference().empty(shape);
      reference()->softmax_middle(x, log, y);
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor out = on.empty(shape), dx = on.empty(shape);
            on->softmax_middle(on(x), log, out);
            on->softmax_middle_backward(on(y), log, on(dy), dx);
            return std::vector{out, dx};
          },
          bounds(40));
    }
  }
}

TEST_P(SoftmaxLoops, RefusesWhatIsNoMiddle) {
  const auto on = tested();
  const Tensor flat = on.empty({2, 3}), x = on.empty({2, 3, 4}), other = on.empty({2, 4, 3});
  EXPECT_THROW(on->softmax_middle(flat, false, flat), ShapeError);
  EXPECT_THROW(on->softmax_middle(x, false, other), ShapeError);
  EXPECT_THROW(on->softmax_middle_backward(x, false, other, x), ShapeError);
}

TEST_P(SoftmaxLoops, MasksOfMinusInfinityAndNaNBehaveAsInTheReference) {
  std::vector<double> values(4 * 600, 0.25);
  for (std::size_t c = 0; c < 550; ++c) values[c] = -kInfinity;  // a whole block of row 0
  values[600 + 599] = -kInfinity;
  values[1200 + 70] = kNaN;
  const Tensor x = tensor_of(values, {4, 600}, dtype());
  expect_matches_reference(
      [&](const Place& on) {
        const Tensor y = on.empty({4, 600});
        on->softmax(on(x), false, y);
        return std::vector{y.rows(0, 2), y.rows(3, 4)};
      },
      bounds());
  const auto on = tested();
  const Tensor y = on.empty({4, 600});
  on->softmax(on(x), false, y);
  for (const double value : values_of(y.rows(2, 3))) EXPECT_TRUE(std::isnan(value));
}

TEST_P(SoftmaxLoops, CrossEntropyMatchesTheReference) {
  for (const std::int64_t classes : {1, 2, 10, 600}) {
    for (const std::int64_t rows : {0, 1, 65}) {
      for (const double smoothing : {0.0, 0.1}) {
        SCOPED_TRACE(classes);
        const Tensor x = random({rows, classes}, 1, -9, 9), labels = targets(rows, classes);
        const Tensor dloss = tensor_of({64}, {}, DType::kFloat32);
        expect_matches_reference(
            [&](const Place& on) {
              const Tensor loss = on.empty({}, DType::kFloat32), norms = on.empty({rows}, DType::kFloat32);
              const Tensor dx = on.empty({rows, classes});
              on->cross_entropy(on(x), {on(labels), smoothing}, 1.0 / 65, loss, norms);
              on->cross_entropy_backward(on(x), {on(labels), smoothing}, 1.0 / 65, norms, on(dloss), dx);
              return std::vector{loss, norms, dx};
            },
            bounds(40));
      }
    }
  }
}

TEST_P(SoftmaxLoops, WeightedCrossEntropyMatchesTheReference) {
  for (const std::int64_t classes : {1, 5, 37, 1500}) {
    for (const std::int64_t rows : {0, 1, 65}) {
      for (const double smoothing : {0.0, 0.1}) {
        for (const int weighted : {1, 2, 3}) {
          SCOPED_TRACE(classes);
          const Tensor x = random({rows, classes}, 1, -9, 9), labels = targets(rows, classes);
          const Tensor of_classes = weighted & 1 ? random_tensor({classes}, DType::kFloat32, 3, 0.5, 1.5) : Tensor();
          const Tensor of_rows = weighted & 2 ? random_tensor({rows}, DType::kFloat32, 4, 0, 1) : Tensor();
          if (of_rows.defined() && rows > 1) of_rows.mutable_as<float>()[1] = 0;
          const Tensor dloss = tensor_of({64}, {}, DType::kFloat32);
          expect_matches_reference(
              [&](const Place& on) {
                const Tensor loss = on.empty({}, DType::kFloat32), norms = on.empty({rows}, DType::kFloat32);
                const Tensor dx = on.empty({rows, classes});
                const CrossEntropyTargets targets{on(labels), smoothing, on(of_classes), on(of_rows)};
                on->cross_entropy(on(x), targets, 1.0 / 65, loss, norms);
                on->cross_entropy_backward(on(x), targets, 1.0 / 65, norms, on(dloss), dx);
                return std::vector{loss, norms, dx};
              },
              bounds(60));
        }
      }
    }
  }
}

TEST_P(SoftmaxLoops, CrossEntropyDoesNotOverlookATargetOutOfRange) {
  for (const std::int64_t wrong : {-1, 3, 1 << 30}) {
    const Tensor x = random({2, 3}, 1), labels = Tensor::from<std::int64_t>({0, wrong}, {2});
    const auto on = tested();
    const Tensor loss = on.empty({}, DType::kFloat32), norms = on.empty({2}, DType::kFloat32);
    if (device() == kCpu) {
      EXPECT_THROW(on->cross_entropy(on(x), {on(labels)}, 1, loss, norms), UsageError);
    } else {  // nobody waits for a GPU to hear of it
      on->cross_entropy(on(x), {on(labels)}, 1, loss, norms);
      EXPECT_TRUE(std::isnan(loss.item()));
    }
  }
}

TEST_P(SoftmaxLoops, LossesOfPairsMatchTheReference) {
  const PairLossFunction functions[] = {PairLoss::kSquare,
                                        PairLoss::kAbsolute,
                                        {PairLoss::kHuber, 0.4},
                                        PairLoss::kKlDivergence,
                                        PairLoss::kKlDivergenceOfLogs};
  for (const PairLossFunction& function : functions) {
    for (const std::int64_t n : {0, 1, 7, 513, 9001}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(function.kind)) + " of " + std::to_string(n));
      const Tensor x = random({n}, 1);
      const Tensor dloss = tensor_of({64}, {}, DType::kFloat32);
      for (const Tensor& target : {random({n}, 2), random_wide({n}, 2)})
        expect_matches_reference(
            [&](const Place& on) {
              const Tensor loss = on.empty({}, DType::kFloat32), dx = on.empty({n}),
                           dtarget = on.empty({n}, target.dtype());
              on->pair_loss(function, on(x), on(target), 0.01, loss);
              on->pair_loss_backward(function, on(x), on(target), PairSide::kX, 0.01, on(dloss), dx);
              on->pair_loss_backward(function, on(x), on(target), PairSide::kTarget, 0.01, on(dloss), dtarget);
              return std::vector{loss, dx, dtarget};
            },
            bounds(10));
    }
  }
}

TEST_P(SoftmaxLoops, ALossOfPairsRoundsAsCastsAroundItDo) {
  // A 16-bit x beside a float32 target: the same bits as x widened before, and its gradient rounded behind.
  const Tensor x = random({1300}, 1), target = random_wide({1300}, 2);
  const auto on = tested();
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

TEST_P(SoftmaxLoops, ThreadsChangeNothing) {
  const Tensor x = random({12001, 37}, 1), labels = targets(12001, 37), target = random({12001, 37}, 2);
  expect_same_bits_on_any_number_of_threads([&, on = tested()] {
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
