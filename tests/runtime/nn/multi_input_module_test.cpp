// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/multi_input_module.h"

#include <gmock/gmock.h>

#include "amp/autocast/autocast.h"
#include "runtime/base/error.h"
#include "runtime/nn/embedding.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::nn {
namespace {

using kernels::testing::values_of;
using testing::HasSubstr;

/// linear(table) + the sum of the text's embeddings. Remembers the dtypes that it was given.
class TableAndText final : public MultiInputModule<2> {
 public:
  TableAndText() : linear_(add_module<Linear>("linear", 3, 4)), words_(add_module<Embedding>("words", 7, 4)) {}
  Tensor forward(const Tensor& table, const Tensor& text) override {
    dtypes = {table.dtype(), text.dtype()};
    return linear_.forward(table) + ops::sum(words_.forward(text), 1);
  }

  std::vector<DType> dtypes;

 private:
  Linear& linear_;
  Embedding& words_;
};

const Tensor& table() {
  static const Tensor tensor = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  return tensor;
}
const Tensor& text() {
  static const Tensor tensor = Tensor::from<std::int64_t>({0, 6, 3, 3}, {2, 2});
  return tensor;
}

TEST(MultiInputModule, IsTheSameByItsOwnCallAndByAListOfInputs) {
  TableAndText model;
  const Tensor own = model.forward(table(), text());
  Module& module = model;
  EXPECT_EQ(values_of(module.forward(std::vector{table(), text()})), values_of(own));
  EXPECT_EQ(values_of(forward(model, {table(), text()})), values_of(own));
  std::size_t seen = 0;
  model.register_forward_pre_hook([&seen](Module&, std::vector<Tensor>& inputs) { seen = inputs.size(); });
  EXPECT_EQ(values_of(model(table(), text())), values_of(own));
  EXPECT_EQ(seen, 2u);
}

TEST(MultiInputModule, RefusesAnotherNumberOfInputs) {
  TableAndText model;
  Linear linear(3, 4);
  const std::vector<Tensor> one{table()}, two{table(), text()}, three{table(), text(), text()}, none;
  const auto expect_refused = [](Module& module, const std::vector<Tensor>& inputs, const std::string& words) {
    try {
      forward(module, inputs);
      ADD_FAILURE() << "taken: " << words;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr(words));
    }
  };
  expect_refused(model, one, "takes 2 inputs, and is given 1");
  expect_refused(model, three, "takes 2 inputs, and is given 3");
  expect_refused(model, none, "takes 2 inputs, and is given 0");
  expect_refused(linear, two, "takes 1 input, and is given 2");
  EXPECT_THROW(forward(model, table()), UsageError);
  EXPECT_THROW(forward(model, {table(), Tensor()}), UsageError);
}

TEST(MultiInputModule, GetsItsInputsInTheModelsDtype) {
  TableAndText model;
  model.half();
  const Tensor output = forward(model, {table(), text()});
  EXPECT_THAT(model.dtypes, testing::ElementsAre(DType::kFloat16, DType::kInt64));
  EXPECT_EQ(output.dtype(), DType::kFloat32);
  const amp::Autocast autocast(DType::kBFloat16);
  EXPECT_NO_THROW(forward(model, {ops::cast(table(), DType::kFloat16), text()}));
}

TEST(MultiInputModule, GivesEachInputItsGradient) {
  TableAndText model;
  const Tensor x = table().to(kCpu);
  x.set_requires_grad(true);
  ops::sum(forward(model, {x, text()})).backward();
  EXPECT_TRUE(x.grad().defined());
  EXPECT_TRUE(model.parameters().back().tensor.grad().defined());
}

}  // namespace
}  // namespace lockstep::nn
