// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/normalization.h"

#include <gmock/gmock.h>

#include "runtime/base/error.h"
#include "runtime/nn/arena.h"
#include "runtime/nn/embedding.h"
#include "runtime/nn/upsample.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::nn {
namespace {

using kernels::testing::random_tensor;
using kernels::testing::values_of;
using ::testing::ElementsAre;

std::vector<std::string> parameter_names(const Module& module) {
  std::vector<std::string> names;
  for (const Parameter& parameter : module.parameters()) names.push_back(parameter.name);
  return names;
}

TEST(NormalizationModules, NameTheirParametersAsPyTorchDoes) {
  EXPECT_THAT(parameter_names(LayerNorm({3, 4})), ElementsAre("weight", "bias"));
  EXPECT_THAT(parameter_names(LayerNorm({4}, {.bias = false})), ElementsAre("weight"));
  EXPECT_THAT(parameter_names(LayerNorm({4}, {.affine = false})), ElementsAre());
  EXPECT_THAT(parameter_names(RmsNorm({4})), ElementsAre("weight"));
  EXPECT_THAT(parameter_names(GroupNorm(2, 4)), ElementsAre("weight", "bias"));
  EXPECT_THAT(parameter_names(InstanceNorm(4)), ElementsAre());
  EXPECT_THAT(parameter_names(InstanceNorm(4, {.affine = true})), ElementsAre("weight", "bias"));
  EXPECT_THAT(parameter_names(Embedding(5, 4)), ElementsAre("weight"));
}

TEST(NormalizationModules, StartAsTheNormalisationAlone) {
  LayerNorm norm({6});
  initialize(norm, 1);
  const Tensor x = random_tensor({4, 6}, DType::kFloat32, 1);
  const std::vector<double> values = values_of(norm.forward(x));
  for (std::size_t row = 0; row < 4; ++row) {
    double sum = 0, squares = 0;
    for (std::size_t c = 0; c < 6; ++c) {
      sum += values[row * 6 + c];
      squares += values[row * 6 + c] * values[row * 6 + c];
    }
    EXPECT_NEAR(sum, 0, 1e-5);
    EXPECT_NEAR(squares, 6, 1e-2);
  }
}

// Apex keeps batch norm in float32, and no other normalisation.
TEST(NormalizationModules, FollowTheDtypeOfWeights) {
  for (const bool keep : {true, false}) {
    LayerNorm norm({6});
    initialize(norm, 1);
    const Arena arena(norm, {.compute_dtype = DType::kFloat16, .reduced_parameters = true, .keep_norm_float32 = keep});
    for (const Parameter& parameter : norm.parameters()) EXPECT_EQ(parameter.tensor.dtype(), DType::kFloat16);
    const Tensor x = random_tensor({4, 6}, DType::kFloat16, 1);
    EXPECT_EQ(norm.forward(x).dtype(), DType::kFloat16);
  }
}

TEST(NormalizationModules, RefuseGroupsThatDoNotDivide) { EXPECT_THROW(GroupNorm(3, 4), ShapeError); }

TEST(EmbeddingModule, GivesTheRowsThatIndicesName) {
  Embedding table(5, 3);
  initialize(table, 1);
  const std::vector<double> rows = values_of(table.parameters().front().tensor);
  EXPECT_THAT(values_of(table.forward(Tensor::from<std::int64_t>({4}, {1}))),
              ElementsAre(rows[12], rows[13], rows[14]));
}

TEST(UpsampleModule, MultipliesTheExtents) {
  EXPECT_EQ(Upsample({2.0}).forward(Tensor::zeros({1, 2, 3, 4}, DType::kFloat32)).shape(), (Shape{1, 4, 6, 4}));
}

}  // namespace
}  // namespace lockstep::nn
