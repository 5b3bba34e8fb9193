// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/anomaly.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

#include "runtime/autograd/engine.h"
#include "runtime/base/error.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/autograd/graph.h"

namespace lockstep::autograd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// The message of the error that `work` throws for NaN; empty where it throws none.
std::string found_by(const std::function<void()>& work) {
  try {
    const DetectAnomaly search;
    work();
  } catch (const NumericsError& error) {
    return error.what();
  }
  return "";
}

Tensor floats(const std::vector<float>& values) {
  const Tensor leaf = Tensor::from(values, {static_cast<std::int64_t>(values.size())});
  leaf.set_requires_grad(true);
  return leaf;
}

TEST(DetectAnomaly, NamesTheOperationThatMakesTheFirstNaN) {
  const Tensor x = floats({4, -1, 9});
  const std::string found = found_by([&] { ops::sum(ops::exp(ops::sqrt(ops::scale(x, 2)))); });
  EXPECT_THAT(found, AllOf(HasSubstr("'sqrt' made the first NaN"), HasSubstr("1 of 3 elements")));
}

TEST(DetectAnomaly, SaysWhereNoOperationMadeIt) {
  const std::string found = found_by([] { ops::mul(floats({1, 2}), floats({NAN, 1})); });
  EXPECT_THAT(found, AllOf(HasSubstr("'mul' read the first NaN in its input 1"), HasSubstr("no operation made")));
}

TEST(DetectAnomaly, NamesTheOperationWhoseBackwardMakesTheFirstNaN) {
  const Tensor x = floats({0, 4});
  // 0 times the infinite slope of the root at 0.
  const std::string found = found_by([&] { ops::sum(ops::mul(ops::sqrt(ops::scale(x, 1)), 0)).backward(); });
  EXPECT_THAT(found, AllOf(HasSubstr("the backward of 'sqrt' made the first NaN"), HasSubstr("1 of 2 elements"),
                           HasSubstr("input 0")));
}

// A power's backward is made of products, of which the first has the NaN.
TEST(DetectAnomaly, NamesTheOperationWhoseBackwardIsMadeOfOthers) {
  const Tensor x = floats({0, 4});
  const auto loss = [&] { return ops::sum(ops::mul(ops::pow(x, 0.5), 0)); };
  EXPECT_THAT(found_by([&] { loss().backward(); }), HasSubstr("the backward of 'pow' made the first NaN"));
  EXPECT_THAT(found_by([&] { static_cast<void>(grad(loss(), {x}, {}, {.create_graph = true})); }),
              HasSubstr("the backward of 'pow' made the first NaN"));
  EXPECT_THAT(found_by([&] { ops::sqrt(floats({-1})); }), HasSubstr("'sqrt' made the first NaN"));
}

TEST(DetectAnomaly, LeavesInfinitiesAndIntegersAlone) {
  const Tensor x = floats({0, 4});
  EXPECT_EQ(found_by([&] {
              ops::sum(ops::log(x)).backward();
              ops::argmax(x, 0);
            }),
            "");
  EXPECT_EQ(x.grad().item(0), std::numeric_limits<double>::infinity());
}

TEST(DetectAnomaly, TakesNumbersOf16BitsAndOf64) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat64}) {
    const Tensor x = floats({1, -1}).to(dtype);
    EXPECT_THAT(found_by([&] { ops::sqrt(x); }), HasSubstr("'sqrt' made"));
  }
}

TEST(DetectAnomaly, EndsWithItsScope) {
  EXPECT_FALSE(DetectAnomaly::enabled());
  {
    const DetectAnomaly outer;
    { const DetectAnomaly inner; }
    EXPECT_TRUE(DetectAnomaly::enabled());
    EXPECT_THROW(ops::sqrt(floats({-1})), NumericsError);
  }
  EXPECT_FALSE(DetectAnomaly::enabled());
  EXPECT_TRUE(std::isnan(ops::sqrt(floats({-1})).item()));
}

}  // namespace
}  // namespace lockstep::autograd
