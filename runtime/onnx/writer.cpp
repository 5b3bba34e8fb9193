// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx/writer.h"

#include <algorithm>
#include <numeric>

#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "runtime/ops/movement.h"

namespace lockstep::onnx {

namespace {

constexpr std::size_t index_of(Layout layout) { return layout == Layout::kLast ? 0 : 1; }

TensorProto::DataType type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return TensorProto::FLOAT;
    case DType::kInt64:
      return TensorProto::INT64;
    case DType::kBool:
      return TensorProto::BOOL;
    default:
      throw UsageError("a graph of ONNX computes in float32 here, not in " + std::string(lockstep::name_of(dtype)));
  }
}

std::vector<std::int64_t> extents_of(const Shape& shape) { return {shape.extents().begin(), shape.extents().end()}; }

std::vector<int> as_it_is(int rank) {
  std::vector<int> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

AttributeProto named(std::string_view name, AttributeProto::AttributeType type) {
  AttributeProto proto;
  proto.set_name(std::string(name));
  proto.set_type(type);
  return proto;
}

}  // namespace

Attribute::Attribute(std::string_view name, std::int64_t value) : proto(named(name, AttributeProto::INT)) {
  proto.set_i(value);
}

Attribute::Attribute(std::string_view name, float value) : proto(named(name, AttributeProto::FLOAT)) {
  proto.set_f(value);
}

Attribute::Attribute(std::string_view name, const std::string& value) : proto(named(name, AttributeProto::STRING)) {
  proto.set_s(value);
}

Attribute::Attribute(std::string_view name, const std::vector<std::int64_t>& values)
    : proto(named(name, AttributeProto::INTS)) {
  for (const std::int64_t value : values) proto.add_ints(value);
}

std::vector<int> order_to(Layout layout, int rank) {
  std::vector<int> order = as_it_is(rank);
  if (rank < 3) return order;
  if (layout == Layout::kFirst) {
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
  } else {
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  }
  return order;
}

Writer::Writer(const Trace& trace, GraphProto& graph) : trace_(trace), graph_(graph) {}

Layout Writer::layout_of(int value) const {
  const auto found = forms_.find(value);
  return found == forms_.end() ? Layout::kLast : found->second.made_in;
}

void Writer::define(int value, Layout layout, const std::string& name) {
  Forms& forms = forms_[value];
  forms.made_in = layout;
  forms.names[index_of(layout)] = name;
  if (this->value(value).shape.rank() < 3) forms.names.fill(name);
}

std::string Writer::name_of(int number, Layout layout) {
  const int rank = value(number).shape.rank();
  if (value(number).constant.defined()) {
    return constant(number, layout == Layout::kFirst ? order_to(layout, rank) : std::vector<int>(), "constant");
  }
  const auto found = forms_.find(number);
  if (found == forms_.end()) throw UsageError("a graph reads a value before it is made");
  Forms& forms = found->second;
  std::string& name = forms.names[index_of(layout)];
  if (!name.empty()) return name;
  const std::vector<int> order = order_to(layout, rank);
  const std::string& from = forms.names[index_of(forms.made_in)];
  name = node("Transpose", {from}, {{"perm", std::vector<std::int64_t>(order.begin(), order.end())}},
              from + (layout == Layout::kFirst ? ".channels_first" : ".channels_last"))[0];
  return name;
}

std::string Writer::constant(int number, const std::vector<int>& asked, const std::string& fallback_name) {
  const Value& value = this->value(number);
  const int rank = value.shape.rank();
  const std::vector<int> order = asked.empty() ? as_it_is(rank) : asked;
  const Memory memory{value.constant.data(), extents_of(value.shape), value.dtype};
  const auto [entry, is_new] = constants_.try_emplace(memory);
  Stored& stored = entry->second;
  const std::string& name = value.name.empty() ? fallback_name : value.name;
  if (is_new) {
    const autograd::NoGrad no_grad;
    const bool moved = order != as_it_is(rank);
    stored = {constant(moved ? ops::permute(value.constant.detach(), order) : value.constant, name), order, {}};
  }
  if (stored.order == order) return stored.name;
  std::string& transposed = stored.transposed[order];
  if (!transposed.empty()) return transposed;
  std::vector<std::int64_t> perm;
  for (const int dim : order) perm.push_back(std::ranges::find(stored.order, dim) - stored.order.begin());
  return transposed = node("Transpose", {stored.name}, {{"perm", perm}}, name + ".transposed")[0];
}

std::string Writer::constant(const Tensor& tensor, const std::string& name) {
  TensorProto& stored = *graph_.add_initializer();
  for (const std::int64_t extent : tensor.shape().extents()) stored.add_dims(extent);
  stored.set_data_type(type_of(tensor.dtype()));
  stored.set_name(unique(name));
  stored.set_raw_data(tensor.data(), tensor.bytes());
  return stored.name();
}

std::string Writer::shared_constant(const Tensor& tensor, const std::string& name) {
  std::string& stored = shared_[{std::string(static_cast<const char*>(tensor.data()), tensor.bytes()),
                                 extents_of(tensor.shape()), tensor.dtype()}];
  if (stored.empty()) stored = constant(tensor, name);
  return stored;
}

std::vector<std::string> Writer::node(const std::string& type, const std::vector<std::string>& inputs,
                                      const std::vector<Attribute>& attributes, const std::string& name, int results) {
  NodeProto& node = *graph_.add_node();
  node.set_op_type(type);
  for (const std::string& input : inputs) node.add_input(input);
  for (const Attribute& attribute : attributes) *node.add_attribute() = attribute.proto;
  for (int i = 0; i < results; ++i) node.add_output(unique(results == 1 ? name : name + "." + std::to_string(i)));
  node.set_name(node.output(0));
  return {node.output().begin(), node.output().end()};
}

void Writer::describe(ValueInfoProto& info, int number, Layout layout, const std::string& name) const {
  const Value& value = this->value(number);
  info.set_name(name);
  TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(type_of(value.dtype));
  const int rank = value.shape.rank();
  const std::vector<int> order = layout == Layout::kFirst ? order_to(layout, rank) : as_it_is(rank);
  for (const int d : order) {
    TensorShapeProto::Dimension& dim = *type.mutable_shape()->add_dim();
    if ((value.of_batch >> d & 1u) == 0) {
      dim.set_dim_value(value.shape[d]);
    } else {
      dim.set_dim_param(value.shape[d] == kTracedBatch ? "batch"
                                                       : "batch*" + std::to_string(value.shape[d] / kTracedBatch));
    }
  }
}

std::string Writer::unique(const std::string& name) {
  if (taken_.insert(name).second) return name;
  for (int i = 2;; ++i) {
    std::string numbered = name + "_" + std::to_string(i);
    if (taken_.insert(numbered).second) return numbered;
  }
}

}  // namespace lockstep::onnx
