// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/wrapper_prefixes.h"

#include <gmock/gmock.h>

#include "model_zoo/exchange.h"

namespace lockstep::model_zoo {
namespace {

using ::testing::IsEmpty;

nn::StateDict prefixed(const nn::StateDict& state, const std::string& prefix) {
  nn::StateDict with;
  for (const auto& [name, tensor] : state) with[prefix + name] = tensor;
  return with;
}

std::vector<std::string> names_of(const nn::StateDict& state) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state) names.push_back(name);
  return names;
}

class WrapperPrefixes : public ::testing::Test {
 protected:
  const LlamaOptions options_{.layers = 1, .heads = 2, .width = 8, .context = 8};
  const ModelInput input_{.sample_shape = {6}, .outputs = 11, .vocabulary = 11, .target_shape = {6}};
  std::unique_ptr<nn::Module> model_ = build(options_, input_, 1);
  nn::StateDict theirs_ = to_pytorch(options_, *model_);
};

TEST_F(WrapperPrefixes, OfLightningAndCompileAreLeftOut) {
  for (const std::string prefix : {"model.", "net.", "module.", "_orig_mod.", "model._orig_mod.", "_orig_mod.module.",
                                   "model.net.", "net.module.model."}) {
    const Unwrapped found = without_wrappers(options_, *model_, prefixed(theirs_, prefix));
    EXPECT_EQ(names_of(found.tensors), names_of(theirs_)) << prefix;
    EXPECT_FALSE(found.removed.empty()) << prefix;
  }
  EXPECT_EQ(without_wrappers(options_, *model_, prefixed(theirs_, "model.net.")).removed, "model.net.");
}

TEST_F(WrapperPrefixes, CompiledPartsAreFoundWithinNames) {
  nn::StateDict compiled;
  for (const auto& [name, tensor] : theirs_) {
    const std::size_t at = name.find("self_attn.");
    compiled[at == std::string::npos ? name : name.substr(0, at) + "self_attn._orig_mod." + name.substr(at + 10)] =
        tensor;
  }
  EXPECT_EQ(names_of(without_wrappers(options_, *model_, compiled).tensors), names_of(theirs_));
}

TEST_F(WrapperPrefixes, AModelsOwnNamesStay) {
  // "model." is llama's own; a file without the head's prefix has none at all.
  for (const nn::StateDict& file : {theirs_, prefixed(theirs_, "else.")}) {
    const Unwrapped found = without_wrappers(options_, *model_, file);
    EXPECT_EQ(names_of(found.tensors), names_of(file));
    EXPECT_THAT(found.removed, IsEmpty());
  }
}

TEST_F(WrapperPrefixes, WhatALightningModuleHoldsBesideTheModelStays) {
  nn::StateDict file = prefixed(theirs_, "model.");
  file["criterion.weight"] = theirs_.begin()->second;
  std::vector<std::string> expected = names_of(theirs_);
  expected.insert(expected.begin(), "criterion.weight");
  EXPECT_EQ(names_of(without_wrappers(options_, *model_, file).tensors), expected);
}

}  // namespace
}  // namespace lockstep::model_zoo
