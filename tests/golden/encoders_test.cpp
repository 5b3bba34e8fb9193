// SPDX-License-Identifier: Apache-2.0
// The vision transformer beside torchvision's, and BERT beside Hugging Face's, whose parameters the files name.
#include "model_zoo/bert.h"
#include "model_zoo/vit.h"
#include "runtime/data/dataset.h"
#include "runtime/ops/losses.h"
#include "tests/golden/their_parameters.h"

namespace lockstep::kernels {
namespace {

/// "block3.attention.input.weight" as 3, "attention.input" and ".weight".
struct InBlock {
  std::string number, layer, kind;

  explicit InBlock(const std::string& name) {
    const std::size_t dot = name.find('.'), last = name.rfind('.');
    number = name.substr(5, dot - 5);
    layer = name.substr(dot + 1, last - dot - 1);
    kind = name.substr(last);
  }
};

Theirs in_vit(const std::string& name) {
  if (name == "class_token") return {{name}};
  if (name == "patches.weight") return {{"conv_proj.weight"}, Theirs::Layout::kChannelsLast};
  if (name == "patches.bias") return {{"conv_proj.bias"}};
  if (name == "position_embedding.weight") return {{"encoder.pos_embedding"}};
  if (name.starts_with("norm.")) return {{"encoder.ln." + name.substr(5)}};
  if (name.starts_with("classifier.")) return {{"heads.head." + name.substr(11)}};
  const InBlock in(name);
  const std::string block = "encoder.layers.encoder_layer_" + in.number + ".";
  if (in.layer == "attention.input") return {{block + "self_attention.in_proj_" + in.kind.substr(1)}};
  const std::map<std::string, std::string> layers{{"attention_norm", "ln_1"},
                                                  {"attention.output", "self_attention.out_proj"},
                                                  {"feed_forward_norm", "ln_2"},
                                                  {"feed_forward.hidden", "mlp.0"},
                                                  {"feed_forward.output", "mlp.3"}};
  return {{block + layers.at(in.layer) + in.kind}};
}

Theirs in_bert(const std::string& name) {
  const std::map<std::string, std::string> modules{{"token_embedding", "bert.embeddings.word_embeddings"},
                                                   {"position_embedding", "bert.embeddings.position_embeddings"},
                                                   {"token_type_embedding", "bert.embeddings.token_type_embeddings"},
                                                   {"embedding_norm", "bert.embeddings.LayerNorm"},
                                                   {"transform", "cls.predictions.transform.dense"},
                                                   {"transform_norm", "cls.predictions.transform.LayerNorm"},
                                                   {"head", "cls.predictions"},
                                                   {"pooler", "bert.pooler.dense"},
                                                   {"classifier", "classifier"}};
  if (!name.starts_with("block")) {
    const std::size_t dot = name.find('.');
    return {{modules.at(name.substr(0, dot)) + name.substr(dot)}};
  }
  const InBlock in(name);
  const std::string block = "bert.encoder.layer." + in.number + ".";
  if (in.layer == "attention.input") {
    const std::string self = block + "attention.self.";
    return {{self + "query" + in.kind, self + "key" + in.kind, self + "value" + in.kind}};
  }
  const std::map<std::string, std::string> layers{{"attention.output", "attention.output.dense"},
                                                  {"attention_norm", "attention.output.LayerNorm"},
                                                  {"feed_forward.hidden", "intermediate.dense"},
                                                  {"feed_forward.output", "output.dense"},
                                                  {"feed_forward_norm", "output.LayerNorm"}};
  return {{block + layers.at(in.layer) + in.kind}};
}

class GoldenEncoders : public GoldenTest {
 protected:
  testing::Bounds bounds() const {
    return dtype() == DType::kFloat64 ? testing::Bounds{1e-9, 1e-9} : testing::Bounds{1e-5, 2e-5};
  }
};
INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenEncoders, ::testing::ValuesIn(kComputers), name_of_computer);

TEST_P(GoldenEncoders, VitIsTorchvisions) {
  const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
  for_each_case(
      "vit",
      [&](const json& stored) {
        const model_zoo::VitOptions options{.patch = stored["patch"],
                                            .layers = 2,
                                            .heads = stored["heads"],
                                            .width = 12,
                                            .hidden = stored["hidden"].get<std::int64_t>()};
        const auto model = model_zoo::make_vit(options, {.sample_shape = {8, 8, 3}, .outputs = 5, .classes = 5});
        model->to(device()).to(dtype());
        take_parameters(*model, in_vit, stored["parameters"]);
        const Tensor images = read(stored["images"]);
        images.set_requires_grad(true);
        const Tensor logits = model->forward(images);
        testing::expect_close(logits, tensor_in(stored["logits"], DType::kFloat64), bounds());
        const std::vector<std::int64_t> labels = stored["labels"];
        const auto samples = static_cast<std::int64_t>(labels.size());
        const Tensor loss = ops::cross_entropy(logits, Tensor::from(labels, {samples}).to(device()));
        EXPECT_NEAR(loss.item(), stored["loss"].get<double>(), 1e-5);
        loss.backward();
        testing::expect_close(images.grad(), tensor_in(stored["images_gradient"], DType::kFloat64), bounds());
        expect_gradients(*model, in_vit, stored["gradients"], bounds());
      },
      "vit");
}

TEST_P(GoldenEncoders, BertIsHuggingFaces) {
  const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
  for (const char* const group : {"masked", "classes"}) {
    for_each_case(
        group,
        [&](const json& stored) {
          const Tensor tokens = read(stored["tokens"], DType::kInt64), labels = read(stored["labels"], DType::kInt64);
          model_zoo::ModelInput input{.sample_shape = {tokens.size(1)}, .outputs = 13, .vocabulary = 13, .classes = 13};
          if (labels.shape().rank() == 1) {
            input.outputs = input.classes = 3;
          } else {
            input.target_shape = input.sample_shape;
          }
          const auto model = model_zoo::make_bert(
              {.layers = 2, .heads = 3, .width = 12, .hidden = 20, .context = 10, .dropout = 0, .pad_token = 0}, input);
          model->to(device()).to(dtype());
          take_parameters(*model, in_bert, stored["parameters"]);
          const Tensor logits = model->forward(tokens);
          testing::expect_close(logits, tensor_in(stored["logits"], DType::kFloat64), bounds());
          const Tensor loss = ops::cross_entropy(logits, labels, {.ignore_index = data::kIgnoredLabel});
          EXPECT_NEAR(loss.item(), stored["loss"]["values"][0].get<double>(), 1e-5);
          loss.backward();
          expect_gradients(*model, in_bert, stored["gradients"], bounds());
        },
        "bert");
  }
}

}  // namespace
}  // namespace lockstep::kernels
