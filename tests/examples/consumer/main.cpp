// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>
#include <lockstep/runtime/onnx/export.h>
#include <lockstep/version.h>

#include <cstdio>

#include "comm/group/world.h"
#include "runtime/tensor/tensor.h"

int main() {
  using namespace lockstep;
  const auto model = model_zoo::build(model_zoo::MlpOptions{.hidden = {4}}, {{3}, 2}, /*seed=*/1);
  const std::string graph = onnx::exported(*model, {.sample_shape = {3}});
  const bool own = kOwnTensor == 7 && kOwnWorld == 8;
  std::printf("%s %d %zu\n", kVersion, kVersionMinor == LOCKSTEP_VERSION_MINOR ? 1 : 0, graph.size());
  return own && !graph.empty() ? 0 : 1;
}
