// SPDX-License-Identifier: Apache-2.0
// A hook on any part of any model is called: models call their parts, and do not reach past their hooks.
#include <gmock/gmock.h>

#include <map>

#include "model_zoo/build.h"
#include "runtime/nn/forward.h"
#include "tests/model_zoo/every_model.h"

namespace lockstep::model_zoo {
namespace {

TEST(ModuleHooks, OfEveryPartOfEveryModelAreCalled) {
  for (const examples::ModelExample& each : examples::every_model()) {
    SCOPED_TRACE(each.name);
    const auto model = build(each.options, each.input, 1);
    std::map<std::string, int> calls;
    model->for_each([&calls](const std::string& path, nn::Module& module) {
      calls[path] = 0;
      module.register_forward_hook([&calls, path](nn::Module&, std::span<const Tensor>, const Tensor&) {
        ++calls[path];
        return Tensor();
      });
    });
    static_cast<void>(nn::forward(*model, batch_of(each, 2, 1)));
    // Positions that are read by their number have no input.
    if (calls.contains("position_embedding") && each.name.starts_with("bert")) {
      calls.erase("position_embedding");
    }
    for (const auto& [path, count] : calls) EXPECT_EQ(count, 1) << (path.empty() ? "the model" : path);
  }
}

}  // namespace
}  // namespace lockstep::model_zoo
