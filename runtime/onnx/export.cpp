// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx/export.h"

#include <fmt/format.h>
#include <lockstep/version.h>

#include <limits>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/onnx/emitter.h"

namespace lockstep::onnx {

namespace {

constexpr std::int64_t kIrVersion = 8;
constexpr std::int64_t kOpset = 17;
/// The largest message that protobuf writes.
constexpr std::size_t kMostBytes = std::numeric_limits<std::int32_t>::max();

[[noreturn]] void refuse_size(std::size_t bytes) {
  throw UsageError(fmt::format("the model's weights take {} bytes, and a file of ONNX holds less than 2 GiB", bytes),
                   "Export the weights as safetensors, with --out.");
}

void require_small(nn::Module& model) {
  std::size_t bytes = 0;
  for (const nn::Parameter& parameter : model.parameters()) bytes += parameter.tensor.bytes();
  if (bytes > kMostBytes) refuse_size(bytes);
}

/// Samples that differ from element to element and from batch to batch.
Tensor made_batch(const InputSpec& input, std::int64_t samples) {
  const Shape shape = input.shape.batched(samples);
  const auto number = [samples](std::size_t i) {
    return (i * 40503 + static_cast<std::size_t>(samples) * 7919) % 65536;
  };
  const auto count = static_cast<std::size_t>(shape.numel());
  if (input.vocabulary > 0) {
    std::vector<std::int64_t> tokens(count);
    for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<std::int64_t>(number(i)) % input.vocabulary;
    return Tensor::from(tokens, shape);
  }
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(number(i)) / 32768 - 1;
  return Tensor::from(values, shape);
}

std::vector<Tensor> made_inputs(const ExportOptions& options, std::int64_t samples) {
  std::vector<Tensor> inputs{made_batch({options.sample_shape, options.vocabulary}, samples)};
  for (const InputSpec& input : options.more_inputs) inputs.push_back(made_batch(input, samples));
  return inputs;
}

/// Images and volumes have their channels first.
Layout layout_of_input(const Value& input) { return input.shape.rank() >= 4 ? Layout::kFirst : Layout::kLast; }

void emit(Writer& writer, const Operation& operation) {
  const Emitter emitter(writer, operation);
  const bool known = emit_image(emitter) || emit_sequence(emitter) || emit_pointwise(emitter) || emit_movement(emitter);
  if (!known) emitter.refuse("such operation");
}

void write_graph(const Trace& trace, GraphProto& graph) {
  Writer writer(trace, graph);
  for (std::size_t i = 0; i < trace.inputs.size(); ++i) {
    const int input = trace.inputs[i];
    const std::string name = writer.unique(i == 0 ? "input" : fmt::format("input_{}", i + 1));
    const Layout layout = layout_of_input(writer.value(input));
    writer.describe(*graph.add_input(), input, layout, name);
    writer.define(input, layout, name);
  }
  const Value& first = writer.value(trace.inputs.front());
  const std::string output = writer.unique("output");
  for (const Operation& operation : trace.operations) emit(writer, operation);
  const bool like_input = writer.value(trace.output).shape.rank() == first.shape.rank();
  const Layout of_output = like_input ? layout_of_input(first) : Layout::kLast;
  writer.node("Identity", {writer.name_of(trace.output, of_output)}, {}, "result");
  graph.mutable_node()->rbegin()->set_output(0, output);
  writer.describe(*graph.add_output(), trace.output, of_output, output);
}

}  // namespace

std::string exported(nn::Module& model, const ExportOptions& options) {
  require_small(model);
  const Trace trace = trace_batches(model, [&](std::int64_t samples) { return made_inputs(options, samples); });
  ModelProto file;
  file.set_ir_version(kIrVersion);
  file.set_producer_name("lockstep");
  file.set_producer_version(kVersion);
  OperatorSetIdProto& opset = *file.add_opset_import();
  opset.set_domain("");
  opset.set_version(kOpset);
  file.mutable_graph()->set_name(options.name);
  write_graph(trace, *file.mutable_graph());
  const std::size_t bytes = file.ByteSizeLong();
  if (bytes > kMostBytes) refuse_size(bytes);
  return file.SerializeAsString();
}

}  // namespace lockstep::onnx
