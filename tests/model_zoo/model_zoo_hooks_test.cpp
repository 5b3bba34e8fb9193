// SPDX-License-Identifier: Apache-2.0
// A hook on any part of any model is called: models call their parts, and do not reach past their hooks.
#include <gmock/gmock.h>

#include <map>

#include "model_zoo/build.h"
#include "runtime/nn/forward.h"

namespace lockstep::model_zoo {
namespace {

struct Hooked {
  const char* name;
  ModelOptions options;
  ModelInput input;
};

template <class Options>
Options two_layers() {
  Options options;
  options.layers = 2;
  options.heads = 2;
  options.width = 8;
  options.dropout = 0.1;
  return options;
}

std::vector<Hooked> hooked_models() {
  const ModelInput images{.sample_shape = {16, 16, 3}, .outputs = 5, .classes = 5};
  const ModelInput texts{.sample_shape = {6}, .outputs = 9, .vocabulary = 9, .target_shape = {6}, .classes = 9};
  const ModelInput text_classes{.sample_shape = {6}, .outputs = 9, .vocabulary = 9, .classes = 9};
  const ModelInput volumes{.sample_shape = {4, 4, 4, 2}, .outputs = 3, .target_shape = {4, 4, 4}, .classes = 3};
  auto gpt = two_layers<GptOptions>();
  gpt.context = 6;
  LlamaOptions llama;
  llama.layers = 2;
  llama.heads = 2;
  llama.width = 8;
  llama.context = 6;
  auto vit = two_layers<VitOptions>();
  vit.patch = 4;
  auto bert = two_layers<BertOptions>();
  bert.pad_token = 0;
  return {
      {"mlp", MlpOptions{.hidden = {7}, .dropout = 0.1, .batch_norm = true}, images},
      {"convnet", ConvnetOptions{.blocks = {{.channels = 4, .max_pool = 2}}, .dropout = 0.1, .hidden = {9}}, images},
      {"resnet18", ResnetOptions{.depth = 18, .width = 4}, images},
      {"resnet50", ResnetOptions{.depth = 50, .width = 4}, images},
      {"gpt", gpt, texts},
      {"llama", llama, texts},
      {"vit", vit, images},
      {"bert_masked", bert, texts},
      {"bert_classes", bert, text_classes},
      {"unet3d", Unet3dOptions{.levels = 1, .channels = 4}, volumes}};
}

TEST(ModuleHooks, OfEveryPartOfEveryModelAreCalled) {
  for (const Hooked& each : hooked_models()) {
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
    const DType dtype = each.input.vocabulary > 0 ? DType::kInt64 : DType::kFloat32;
    static_cast<void>(nn::forward(*model, Tensor::zeros(each.input.sample_shape.batched(2), dtype)));
    // Positions that are read by their number have no input.
    if (calls.contains("position_embedding") && std::string(each.name).starts_with("bert")) {
      calls.erase("position_embedding");
    }
    for (const auto& [path, count] : calls) EXPECT_EQ(count, 1) << (path.empty() ? "the model" : path);
  }
}

}  // namespace
}  // namespace lockstep::model_zoo
