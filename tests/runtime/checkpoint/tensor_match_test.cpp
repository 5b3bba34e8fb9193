// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/tensor_match.h"

#include <gmock/gmock.h>

#include "runtime/base/error.h"

namespace lockstep::checkpoint {
namespace {

const std::map<std::string, TensorSpec> kExpected = {{"a", {DType::kFloat32, {2, 3}}},
                                                     {"b", {DType::kFloat32, {4}}},
                                                     {"c", {DType::kFloat32, {}}},
                                                     {"d", {DType::kFloat32, {1}}}};

TEST(Differences, AreNoneBetweenTheSameTensors) {
  std::map<std::string, Tensor> found;
  for (const auto& [name, spec] : kExpected) found[name] = Tensor::zeros(spec.shape, spec.dtype);
  EXPECT_TRUE(list_differences(kExpected, found).empty());
  EXPECT_NO_THROW(require_match(kExpected, found, "step-1"));
}

TEST(Differences, AreListedAllAtOnce) {
  const std::map<std::string, Tensor> found = {{"a", Tensor::zeros({3, 2}, DType::kFloat32)},
                                               {"b", Tensor::zeros({4}, DType::kFloat16)},
                                               {"c", Tensor::zeros({}, DType::kFloat32)},
                                               {"e", Tensor::zeros({5}, DType::kInt64)}};
  EXPECT_THAT(list_differences(kExpected, found),
              testing::ElementsAre("different: a, expected float32 [2, 3], found float32 [3, 2]",
                                   "different: b, expected float32 [4], found float16 [4]",
                                   "missing: d, expected float32 [1]", "extra: e, found int64 [5]"));
  try {
    require_match(kExpected, found, "step-1");
    FAIL() << "the tensors differ";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("tensors that differ: 4\n  different: a"));
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
