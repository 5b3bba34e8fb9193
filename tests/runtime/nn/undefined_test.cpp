// SPDX-License-Identifier: Apache-2.0
// What a model is given must be there.
#include <gmock/gmock.h>

#include "runtime/base/error.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/layers.h"
#include "runtime/nn/state_dict.h"

namespace lockstep::nn {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(UndefinedInput, OfAModelIsNamed) {
  Linear model(3, 2);
  EXPECT_THAT([&] { forward(model, Tensor()); },
              ThrowsMessage<UsageError>(HasSubstr("forward: the input is an undefined tensor")));
  EXPECT_THAT([&] { model.forward({}); },
              ThrowsMessage<UsageError>(HasSubstr("linear: the input is an undefined tensor")));
}

TEST(UndefinedInput, OfAStateIsNamedAndNothingIsLoaded) {
  Linear model(3, 2);
  initialize(model, 1);
  StateDict state = state_dict(model);
  for (auto& [name, tensor] : state) tensor = Tensor::zeros(tensor.shape(), tensor.dtype());
  const double before = model.parameters().front().tensor.item();
  state["weight"] = {};
  EXPECT_THAT([&] { load_state_dict(model, state); },
              ThrowsMessage<UsageError>(HasSubstr("load_state_dict: weight is an undefined tensor")));
  EXPECT_THROW(load_state_dict(model, state, false), UsageError);
  EXPECT_EQ(model.parameters().front().tensor.item(), before);
}

}  // namespace
}  // namespace lockstep::nn
