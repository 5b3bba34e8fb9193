// SPDX-License-Identifier: Apache-2.0
// Graphs of every model: whole, in order, of any batch; and what has no graph.
#include "runtime/onnx/export.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "configs/onnx.pb.h"
#include "model_zoo/build.h"
#include "runtime/base/error.h"
#include "runtime/nn/embedding.h"
#include "runtime/nn/layers.h"
#include "runtime/nn/multi_input_module.h"
#include "runtime/ops/ops.h"
#include "tests/model_zoo/every_model.h"

namespace lockstep::onnx {
namespace {

using testing::HasSubstr;

using model_zoo::examples::images;
using model_zoo::examples::ModelExample;

/// Names of the batch's extent and the others, as a graph has them: channels second.
std::vector<std::string> channels_second(const Shape& batch) {
  std::vector<std::string> extents{"batch"};
  if (batch.rank() > 3) extents.push_back(std::to_string(batch.back()));
  for (int d = 1; d < batch.rank(); ++d) {
    if (batch.rank() <= 3 || d + 1 < batch.rank()) extents.push_back(std::to_string(batch[d]));
  }
  return extents;
}

ModelProto exported_file(nn::Module& model, const model_zoo::ModelInput& input) {
  ModelProto file;
  EXPECT_TRUE(file.ParseFromString(
      exported(model, {.sample_shape = input.sample_shape, .vocabulary = input.vocabulary, .name = "test"})));
  return file;
}

std::vector<std::string> extents_of(const ValueInfoProto& info) {
  std::vector<std::string> extents;
  for (const auto& dim : info.type().tensor_type().shape().dim()) {
    extents.push_back(dim.has_dim_param() ? dim.dim_param() : std::to_string(dim.dim_value()));
  }
  return extents;
}

/// Every name is made once and before it is read, everything is read, and constants are whole.
void expect_whole(const GraphProto& graph) {
  std::set<std::string> known, read;
  const auto make = [&known](const std::string& name) { EXPECT_TRUE(known.insert(name).second) << name << " twice"; };
  for (const auto& input : graph.input()) make(input.name());
  for (const auto& tensor : graph.initializer()) {
    make(tensor.name());
    std::int64_t bytes = tensor.data_type() == TensorProto::FLOAT   ? 4
                         : tensor.data_type() == TensorProto::INT64 ? 8
                                                                    : 1;
    for (const std::int64_t extent : tensor.dims()) bytes *= extent;
    EXPECT_EQ(static_cast<std::int64_t>(tensor.raw_data().size()), bytes) << tensor.name();
  }
  for (const auto& node : graph.node()) {
    for (const std::string& input : node.input()) {
      if (input.empty()) continue;
      EXPECT_TRUE(known.contains(input)) << node.name() << " reads " << input << ", which nothing has made";
      read.insert(input);
    }
    for (const std::string& output : node.output()) make(output);
  }
  for (const auto& output : graph.output()) EXPECT_TRUE(known.contains(output.name())) << output.name();
  for (const auto& tensor : graph.initializer()) EXPECT_TRUE(read.contains(tensor.name())) << tensor.name();
}

class OnnxExport : public testing::TestWithParam<ModelExample> {};

TEST_P(OnnxExport, IsWholeAndOfAnyBatch) {
  const auto model = model_zoo::build(GetParam().options, GetParam().input, 1);
  const ModelProto file = exported_file(*model, GetParam().input);
  EXPECT_EQ(file.opset_import(0).version(), 17);
  expect_whole(file.graph());
  ASSERT_EQ(file.graph().input_size(), 1);
  ASSERT_EQ(file.graph().output_size(), 1);
  EXPECT_EQ(file.graph().input(0).name(), "input");
  EXPECT_EQ(file.graph().output(0).name(), "output");
  EXPECT_EQ(extents_of(file.graph().input(0)), channels_second(GetParam().input.sample_shape.batched(1)));
  EXPECT_EQ(extents_of(file.graph().output(0)), channels_second(answer_shape(GetParam(), 1)));
}

TEST_P(OnnxExport, HoldsEachParameterOnceUnderItsName) {
  const auto model = model_zoo::build(GetParam().options, GetParam().input, 1);
  const ModelProto file = exported_file(*model, GetParam().input);
  std::map<std::string, int> constants;
  for (const auto& tensor : file.graph().initializer()) ++constants[tensor.name()];
  for (const nn::Parameter& parameter : model->parameters()) {
    // What no sample reaches is folded into a constant.
    if (parameter.name.find("position_embedding") != std::string::npos ||
        parameter.name.find("token_type") != std::string::npos) {
      continue;
    }
    EXPECT_EQ(constants[parameter.name], 1) << parameter.name;
  }
}

TEST_P(OnnxExport, SaysTheSameTwice) {
  const auto once = [] {
    const auto model = model_zoo::build(GetParam().options, GetParam().input, 1);
    return exported(
        *model,
        {.sample_shape = GetParam().input.sample_shape, .vocabulary = GetParam().input.vocabulary, .name = "test"});
  };
  EXPECT_EQ(once(), once());
}

INSTANTIATE_TEST_SUITE_P(Models, OnnxExport, testing::ValuesIn(model_zoo::examples::every_model()),
                         [](const auto& each) { return each.param.name; });

int count(const GraphProto& graph, const std::string& type) {
  return static_cast<int>(
      std::ranges::count_if(graph.node(), [&type](const NodeProto& node) { return node.op_type() == type; }));
}

TEST(OnnxGraph, OfAResnetMovesNoImages) {
  const auto model = model_zoo::build(model_zoo::ResnetOptions{.depth = 18, .width = 4}, images(), 1);
  const GraphProto graph = exported_file(*model, images()).graph();
  EXPECT_EQ(count(graph, "Transpose"), 0);
  EXPECT_EQ(count(graph, "Conv"), 20);
  EXPECT_EQ(count(graph, "BatchNormalization"), 20);
}

TEST(OnnxGraph, HasNoDropout) {
  model_zoo::ConvnetOptions convnet;
  convnet.blocks = {{.channels = 4, .dropout = 0.5}};
  convnet.dropout = 0.5;
  const auto model = model_zoo::build(convnet, images(), 1);
  model->train();
  const GraphProto graph = exported_file(*model, images()).graph();
  EXPECT_EQ(count(graph, "Dropout") + count(graph, "Mul"), 0);
}

/// A model made of a function.
class Of : public nn::Module {
 public:
  explicit Of(std::function<Tensor(const Tensor&)> function) : function_(std::move(function)) {}
  Tensor forward(const Tensor& x) override { return function_(x); }

 private:
  std::function<Tensor(const Tensor&)> function_;
};

void expect_refused(const std::function<Tensor(const Tensor&)>& function, const std::string& words) {
  Of model(function);
  try {
    exported(model, {.sample_shape = {4}});
    FAIL() << "was exported";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr(words));
  }
}

TEST(OnnxGraph, HasWhatTensorsMembersDo) {
  Of model([](const Tensor& x) {
    const Tensor copy = Tensor::empty(x.shape(), x.dtype());
    copy.copy_from(ops::relu(x));
    return copy.reshaped({x.size(0), 2, 2}).rows(0, x.size(0)).reshaped({x.size(0), 4});
  });
  ModelProto file;
  ASSERT_TRUE(file.ParseFromString(exported(model, {.sample_shape = {4}})));
  expect_whole(file.graph());
  EXPECT_EQ(count(file.graph(), "Identity"), 2);  // the copy, and the output's name
  EXPECT_EQ(count(file.graph(), "Reshape"), 2);
  EXPECT_EQ(count(file.graph(), "Slice"), 1);
}

TEST(OnnxGraph, ClampsToBothEnds) {
  Of model([](const Tensor& x) { return ops::clamp(x, -1, 6); });
  ModelProto file;
  ASSERT_TRUE(file.ParseFromString(exported(model, {.sample_shape = {4}})));
  expect_whole(file.graph());
  const auto& clip = file.graph().node(0);
  ASSERT_EQ(clip.op_type(), "Clip");
  std::vector<float> ends;
  for (const int input : {1, 2}) {
    const auto& constants = file.graph().initializer();
    const auto found = std::ranges::find(constants, clip.input(input), &TensorProto::name);
    ASSERT_NE(found, constants.end());
    std::memcpy(&ends.emplace_back(), found->raw_data().data(), sizeof(float));
  }
  EXPECT_EQ(ends, (std::vector<float>{-1, 6}));
}

TEST(OnnxGraph, RefusesWhatIsNotRecorded) {
  // A view of what the batch made looks like a constant, which differs from batch to batch.
  expect_refused(
      [](const Tensor& x) {
        return ops::add(ops::relu(x), ops::relu(x).detach({x.size(0), 4}));
      },
      "add does not run in the same way for every batch");
  expect_refused([](const Tensor& x) { return ops::relu(x.detach({x.numel()})); }, "does not come from its input");
}

TEST(OnnxGraph, NamesAnOperationThatItDoesNotKnow) {
  expect_refused([](const Tensor& x) { return ops::cumsum(x, 1); }, "cumsum: ONNX export knows no such operation");
}

TEST(OnnxGraph, OfWeightsBeyondTheFormatIsRefusedAtOnce) {
  // 7 billion parameters without values.
  const model_zoo::ModelInput input{
      .sample_shape = {8}, .outputs = 32000, .vocabulary = 32000, .target_shape = {8}, .classes = 32000};
  const auto model = model_zoo::outline(model_zoo::LlamaOptions(), input);
  try {
    exported(*model, {.sample_shape = input.sample_shape, .vocabulary = input.vocabulary});
    FAIL() << "was exported";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("2 GiB"));
    EXPECT_THAT(error.advice(), HasSubstr("safetensors"));
  }
}

/// An image through a convolution, a text through embeddings.
class ImageAndText final : public nn::MultiInputModule<2> {
 public:
  ImageAndText()
      : conv_(add_module<nn::Conv>("conv", 3, 4, nn::ConvOptions{})),
        words_(add_module<nn::Embedding>("words", 9, 4)) {}
  Tensor forward(const Tensor& image, const Tensor& text) override {
    return ops::global_average_pool(conv_.forward(image)) + ops::select(words_.forward(text), 1, 0);
  }

 private:
  nn::Conv& conv_;
  nn::Embedding& words_;
};

TEST(OnnxExport, OfSeveralInputsNamesEach) {
  ImageAndText model;
  ModelProto file;
  ASSERT_TRUE(file.ParseFromString(
      exported(model, {.sample_shape = {8, 8, 3}, .more_inputs = {{.shape = {6}, .vocabulary = 9}}})));
  const GraphProto& graph = file.graph();
  expect_whole(graph);
  ASSERT_EQ(graph.input_size(), 2);
  EXPECT_EQ(graph.input(0).name(), "input");
  EXPECT_EQ(extents_of(graph.input(0)), (std::vector<std::string>{"batch", "3", "8", "8"}));
  EXPECT_EQ(graph.input(1).name(), "input_2");
  EXPECT_EQ(extents_of(graph.input(1)), (std::vector<std::string>{"batch", "6"}));
  EXPECT_EQ(graph.input(1).type().tensor_type().elem_type(), TensorProto::INT64);
  EXPECT_EQ(extents_of(graph.output(0)), (std::vector<std::string>{"batch", "4"}));
}

}  // namespace
}  // namespace lockstep::onnx
