// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/ctc.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/gradcheck.h"
#include "runtime/kernels/backend_choice.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::values_of;
using ::testing::Each;
using ::testing::HasSubstr;

Tensor integers(const std::vector<std::int64_t>& values, const Shape& shape) { return Tensor::from(values, shape); }

/// The probability that a path of these elements spells the labels, as the sum over all paths.
double probability_of(const std::vector<double>& log_probs, std::int64_t steps, std::int64_t classes,
                      const std::vector<std::int64_t>& labels) {
  std::int64_t paths = 1;
  for (std::int64_t t = 0; t < steps; ++t) paths *= classes;
  double sum = 0;
  for (std::int64_t path = 0; path < paths; ++path) {
    std::vector<std::int64_t> spelt;
    double log_probability = 0;
    std::int64_t last = 0, rest = path;
    for (std::int64_t t = 0; t < steps; ++t, rest /= classes) {
      const std::int64_t c = rest % classes;
      log_probability += log_probs[static_cast<std::size_t>(t * classes + c)];
      if (c != 0 && c != last) spelt.push_back(c);
      last = c;
    }
    if (spelt == labels) sum += std::exp(log_probability);
  }
  return sum;
}

TEST(Ctc, IsTheSumOverAllPaths) {
  const std::vector<std::vector<std::int64_t>> words{{}, {1}, {2, 1}, {1, 1}, {2, 2, 1}, {1, 2, 1}};
  for (std::int64_t steps = 1; steps <= 6; ++steps) {
    const Tensor log_probs =
        log_softmax(kernels::testing::random_tensor({1, steps, 3}, DType::kFloat64, 1 + static_cast<unsigned>(steps)));
    for (const std::vector<std::int64_t>& word : words) {
      SCOPED_TRACE(::testing::PrintToString(word) + " of " + std::to_string(steps));
      std::vector<std::int64_t> padded = word;
      padded.resize(4, 99);
      const Tensor loss = ctc(log_probs, integers(padded, {1, 4}), integers({steps}, {1}),
                              integers({static_cast<std::int64_t>(word.size())}, {1}), {.reduction = Reduction::kSum});
      const double expected = -std::log(probability_of(values_of(log_probs), steps, 3, word));
      if (std::isinf(expected)) {
        EXPECT_EQ(loss.item(), expected);
      } else {
        EXPECT_NEAR(loss.item(), expected, 1e-12);
      }
    }
  }
}

/// Three samples: repeated labels, an input that is not read to its end, no labels.
struct Batch {
  Tensor targets = integers({1, 2, 2, 3, 9, 9, 9, 9, 9}, {3, 3});
  Tensor input_lengths = integers({6, 4, 5}, {3});
  Tensor target_lengths = integers({3, 1, 0}, {3});

  Tensor loss(const Tensor& log_probs, const CtcOptions& options = {}) const {
    const Device device = log_probs.device();
    return ctc(log_probs, targets.to(device), input_lengths.to(device), target_lengths.to(device), options);
  }
};

TEST(Ctc, HasTheGradientByTheLogProbabilities) {
  const Batch batch;
  const Tensor x = kernels::testing::random_tensor({3, 6, 4}, DType::kFloat64, 1, -3, 0);
  x.set_requires_grad(true);
  for (const Reduction reduction : {Reduction::kMean, Reduction::kSum, Reduction::kNone}) {
    autograd::gradcheck([&](const auto& in) { return std::vector{batch.loss(in[0], {.reduction = reduction})}; }, {x});
  }
}

class CtcTest : public ops::testing::OperationTest {};
INSTANTIATE_TEST_SUITE_P(On, CtcTest, ops::testing::kAllTypes, ops::testing::name_of_on);

TEST_P(CtcTest, IsFloat64sInEveryDtypeAndReadsNothingBehindTheLengths) {
  const Batch batch;
  const Tensor input = random({3, 6, 4}, 2, -3, 0);
  const auto loss_and_gradient = [&](const Tensor& x) {
    x.set_requires_grad(true);
    const Tensor loss = batch.loss(x);
    return std::vector{loss, autograd::grad(loss, {x})[0]};
  };
  const auto exact = loss_and_gradient(input.to(kCpu).to(DType::kFloat64).detach());
  const auto found = loss_and_gradient(input.to(device()).detach());
  EXPECT_EQ(found[0].dtype(), wide());
  EXPECT_EQ(found[1].dtype(), dtype());
  ops::testing::expect_accurate(found[0], exact[0], dtype(), {.terms = 8});
  ops::testing::expect_accurate(found[1], exact[1], dtype(), {.terms = 8});
  const std::vector<double> gradient = values_of(found[1]);
  EXPECT_THAT(std::vector(gradient.begin() + (6 + 4) * 4, gradient.begin() + 2 * 6 * 4), Each(0));
}

TEST_P(CtcTest, OfAnInputTooShortIsInfiniteOrNothing) {
  const Tensor x = log_softmax(random({2, 3, 3}, 1)).detach().to(device());
  // Two equal labels need a blank between them, so three elements.
  const Tensor targets = integers({1, 1, 1, 1}, {2, 2}).to(device()), inputs = integers({2, 3}, {2}).to(device()),
               lengths = integers({2, 2}, {2}).to(device());
  const std::vector<double> losses = values_of(ctc(x, targets, inputs, lengths, {.reduction = Reduction::kNone}));
  EXPECT_EQ(losses[0], std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isfinite(losses[1]));
  x.set_requires_grad(true);
  const Tensor loss = ctc(x, targets, inputs, lengths, {.reduction = Reduction::kSum, .zero_infinity = true});
  EXPECT_FLOAT_EQ(static_cast<float>(loss.item()), static_cast<float>(losses[1]));
  const std::vector<double> gradient = values_of(autograd::grad(loss, {x})[0]);
  EXPECT_THAT(std::vector(gradient.begin(), gradient.begin() + 9), Each(0));
  EXPECT_LT(gradient[9 + 1], 0);
  const Tensor infinite = ctc(x, targets, inputs, lengths, {.reduction = Reduction::kSum});
  EXPECT_TRUE(std::isnan(values_of(autograd::grad(infinite, {x})[0])[1]));
}

TEST_P(CtcTest, WrongLabelsAreRefusedOrMakeNaN) {
  if (kernels::backend_name(device()) == "emulated") GTEST_SKIP() << "the emulated GPU runs the CPU's function";
  // Too few elements for two labels, and none: a loss that would be infinite.
  for (const std::int64_t elements : {1, 0}) {
    for (const std::int64_t wrong : {99, -1, 0}) {
      const Tensor x = log_softmax(random({1, 1, 3}, 1)).detach().to(device());
      x.set_requires_grad(true);
      const auto loss = [&] {
        return ctc(x, integers({wrong, 1}, {1, 2}).to(x.device()), integers({elements}, {1}).to(x.device()),
                   integers({2}, {1}).to(x.device()), {.zero_infinity = true});
      };
      if (device() == kCpu) {
        EXPECT_THROW(static_cast<void>(loss()), UsageError);
      } else {
        EXPECT_TRUE(std::isnan(loss().item())) << wrong << " of " << elements;
        EXPECT_THAT(values_of(autograd::grad(loss(), {x})[0]), Each(::testing::IsNan()));
      }
    }
  }
}

TEST(Ctc, OfNoElementsIsCertainOfNoLabels) {
  const Tensor x = Tensor::zeros({2, 1, 2}, DType::kFloat32);
  const Tensor losses =
      ctc(x, integers({1, 1}, {2, 1}), integers({0, 0}, {2}), integers({0, 1}, {2}), {.reduction = Reduction::kNone});
  EXPECT_THAT(values_of(losses), ::testing::ElementsAre(0, std::numeric_limits<double>::infinity()));
  EXPECT_EQ(ctc(x.rows(0, 0), integers({}, {0, 1}), integers({}, {0}), integers({}, {0})).item(), 0);
}

TEST(Ctc, DividesAsItIsTold) {
  const Batch batch;
  const Tensor x = log_softmax(kernels::testing::random_tensor({3, 6, 4}, DType::kFloat64, 1));
  const std::vector<double> each = values_of(batch.loss(x, {.reduction = Reduction::kNone}));
  EXPECT_NEAR(batch.loss(x).item(), (each[0] / 3 + each[1] + each[2]) / 3, 1e-12);
  EXPECT_NEAR(batch.loss(x, {.divisor = 6}).item(), (each[0] / 3 + each[1] + each[2]) / 6, 1e-12);
}

TEST(Ctc, KeepsItsDigitsOverLongInputs) {
  // A uniform distribution over 2 classes spells one label in T (T + 1) / 2 of 2^T ways.
  constexpr std::int64_t kSteps = 3000;
  const Tensor x = full({1, kSteps, 2}, -std::log(2.0));
  const double loss = ctc(x, integers({1}, {1, 1}), integers({kSteps}, {1}), integers({1}, {1})).item();
  EXPECT_NEAR(loss, kSteps * std::log(2.0) - std::log(kSteps * (kSteps + 1) / 2.0), 2e-4);
}

TEST(Ctc, RunsInFloat32UnderAutocastAndIsNotDifferentiatedTwice) {
  const Batch batch;
  const Tensor x =
      log_softmax(kernels::testing::random_tensor({3, 6, 4}, DType::kFloat32, 1)).to(DType::kBFloat16).detach();
  const amp::Autocast autocast(DType::kBFloat16);
  x.set_requires_grad(true);
  const Tensor loss = batch.loss(x);
  EXPECT_EQ(loss.dtype(), DType::kFloat32);
  const Tensor gradient = autograd::grad(loss, {x}, {}, {.create_graph = true})[0];
  EXPECT_THROW(static_cast<void>(autograd::grad(sum(gradient), {x})), UsageError);
}

TEST(Ctc, RefusesWhatCannotBeMeant) {
  const Tensor x = log_softmax(Tensor::zeros({1, 4, 3}, DType::kFloat32));
  const auto refusal = [&](std::int64_t label, std::int64_t input, std::int64_t count,
                           std::int64_t blank) -> std::string {
    try {
      static_cast<void>(
          ctc(x, integers({1, label}, {1, 2}), integers({input}, {1}), integers({count}, {1}), {.blank = blank}));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(2, 4, 2, 0), "");
  EXPECT_THAT(refusal(3, 4, 2, 0), HasSubstr("label 1 of sample 0 is 3, outside [0, 3)"));
  EXPECT_THAT(refusal(-1, 4, 2, 0), HasSubstr("label 1 of sample 0 is -1"));
  EXPECT_EQ(refusal(-1, 4, 1, 0), "");
  EXPECT_THAT(refusal(0, 4, 2, 0), HasSubstr("label 1 of sample 0 is 0, the blank"));
  EXPECT_THAT(refusal(2, 5, 2, 0), HasSubstr("the input length of sample 0 is 5, outside [0, 4]"));
  EXPECT_THAT(refusal(2, 4, 3, 0), HasSubstr("the target length of sample 0 is 3, outside [0, 2]"));
  EXPECT_THAT(refusal(2, -1, 2, 0), HasSubstr("input length"));
  EXPECT_THAT(refusal(2, 4, 2, 3), HasSubstr("blank is 3"));
  const Tensor one = integers({1}, {1}), label = integers({1}, {1, 1});
  EXPECT_THROW(static_cast<void>(ctc(x.reshaped({4, 3}), label, one, one)), ShapeError);
  EXPECT_THROW(static_cast<void>(ctc(x, one, one, one)), ShapeError);
  EXPECT_THROW(static_cast<void>(ctc(x, label.to(DType::kInt32), one, one)), ShapeError);
  EXPECT_THROW(static_cast<void>(ctc(x, label, integers({1, 1}, {2}), one)), ShapeError);
  EXPECT_THROW(static_cast<void>(ctc(x, label, one, Tensor())), UsageError);
}

}  // namespace
}  // namespace lockstep::ops
