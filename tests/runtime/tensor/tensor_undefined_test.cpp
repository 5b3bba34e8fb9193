// SPDX-License-Identifier: Apache-2.0
// An undefined tensor has nothing to ask for, and says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tensor/tensor.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

TEST(UndefinedTensor, AnswersEveryMemberWithAnError) {
  const Tensor none, some = Tensor::zeros({2}, DType::kFloat32);
  const std::vector<std::pair<std::string, std::function<void()>>> members = {
      {"shape", [&] { none.shape(); }},
      {"size", [&] { none.size(0); }},
      {"numel", [&] { none.numel(); }},
      {"bytes", [&] { none.bytes(); }},
      {"dtype", [&] { none.dtype(); }},
      {"device", [&] { none.device(); }},
      {"data", [&] { none.data(); }},
      {"storage", [&] { none.storage(); }},
      {"as", [&] { none.as<float>(); }},
      {"mutable_as", [&] { none.mutable_as<float>(); }},
      {"item", [&] { none.item(); }},
      {"to", [&] { none.to(kCpu); }},
      {"reshaped", [&] { none.reshaped({1}); }},
      {"rows", [&] { none.rows(0, 1); }},
      {"copy_from", [&] { none.copy_from(some); }},
      {"copy_from the undefined", [&] { some.copy_from(none); }},
      {"detach", [&] { none.detach(); }},
      {"detach a shape", [&] { none.detach({1}); }},
      {"detach_rows", [&] { none.detach_rows(0, 1); }},
      {"is_shared", [&] { none.is_shared(); }},
      {"version", [&] { none.version(); }},
      {"bump_version", [&] { none.bump_version(); }},
      {"share_version", [&] { none.share_version(some); }},
      {"share_version with the undefined", [&] { some.share_version(none); }},
      {"rebind", [&] { none.rebind(some.storage(), 0, DType::kFloat32); }},
      {"set_requires_grad", [&] { none.set_requires_grad(true); }},
      {"backward", [&] { none.backward(); }},
      {"autograd_meta", [&] { none.autograd_meta(); }},
      {"set_autograd_meta", [&] { none.set_autograd_meta(nullptr); }},
  };
  for (const auto& [name, ask] : members) EXPECT_THROW(ask(), UsageError) << name;
}

TEST(UndefinedTensor, HasNoGradientAndNeedsNone) {
  EXPECT_FALSE(Tensor().requires_grad());
  EXPECT_FALSE(Tensor().grad().defined());
}

TEST(UndefinedTensor, IsExplained) {
  try {
    Tensor().item();
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("undefined tensor"));
    EXPECT_THAT(error.advice(), HasSubstr("grad()"));
  }
}

TEST(UndefinedTensor, IsNamedByWhoRequiresAnother) {
  require_defined(Tensor::zeros({}, DType::kFloat32), "conv", "the weight");
  EXPECT_THAT([] { require_defined({}, "conv", "the weight"); },
              testing::ThrowsMessage<UsageError>(HasSubstr("conv: the weight is an undefined tensor")));
}

}  // namespace
}  // namespace lockstep
