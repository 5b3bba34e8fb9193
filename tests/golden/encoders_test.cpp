// SPDX-License-Identifier: Apache-2.0
// The vision transformer beside torchvision's, and BERT beside Hugging Face's, whose parameters the files name.
#include "runtime/data/dataset.h"
#include "runtime/ops/losses.h"
#include "tests/golden/their_parameters.h"

namespace lockstep::kernels {
namespace {

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
        const auto model = model_zoo::build(options, {.sample_shape = {8, 8, 3}, .outputs = 5, .classes = 5}, 1);
        model->to(device()).to(dtype());
        take_parameters(options, *model, stored["parameters"]);
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
        expect_gradients(options, *model, stored["gradients"], bounds());
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
          const model_zoo::BertOptions options{
              .layers = 2, .heads = 3, .width = 12, .hidden = 20, .context = 10, .dropout = 0, .pad_token = 0};
          const auto model = model_zoo::build(options, input, 1);
          model->to(device()).to(dtype());
          take_parameters(options, *model, stored["parameters"]);
          const Tensor logits = model->forward(tokens);
          testing::expect_close(logits, tensor_in(stored["logits"], DType::kFloat64), bounds());
          const Tensor loss = ops::cross_entropy(logits, labels, {.ignore_index = data::kIgnoredLabel});
          EXPECT_NEAR(loss.item(), stored["loss"]["values"][0].get<double>(), 1e-5);
          loss.backward();
          expect_gradients(options, *model, stored["gradients"], bounds());
        },
        "bert");
  }
}

}  // namespace
}  // namespace lockstep::kernels
