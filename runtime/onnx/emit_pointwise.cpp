// SPDX-License-Identifier: Apache-2.0
// Functions of one, two and three numbers.
#include <cmath>
#include <map>
#include <numbers>

#include "runtime/kernels/unary.h"
#include "runtime/onnx/emitter.h"
#include "runtime/ops/operation_options.h"

namespace lockstep::onnx {

namespace {

using kernels::Binary;

/// x times a half of (1 + inner).
std::string half_of(const Emitter& emitter, const std::string& x, const std::string& inner) {
  return emitter.node("Mul",
                      {emitter.node("Mul", {x, emitter.number(0.5)}), emitter.node("Add", {inner, emitter.number(1)})});
}

std::string gelu(const Emitter& emitter, const std::string& x) {
  return half_of(emitter, x, emitter.node("Erf", {emitter.node("Mul", {x, emitter.number(1 / std::numbers::sqrt2)})}));
}

std::string gelu_tanh(const Emitter& emitter, const std::string& x) {
  const std::string cube = emitter.node("Mul", {emitter.node("Mul", {x, x}), x});
  const std::string inner = emitter.node("Add", {x, emitter.node("Mul", {cube, emitter.number(0.044715)})});
  return half_of(emitter, x,
                 emitter.node("Tanh", {emitter.node("Mul", {inner, emitter.number(std::sqrt(2 / std::numbers::pi))})}));
}

/// Functions that ONNX has one operator for.
const std::map<std::string_view, const char*>& operators() {
  static const std::map<std::string_view, const char*> names{
      {"relu", "Relu"},  {"tanh", "Tanh"}, {"sigmoid", "Sigmoid"}, {"neg", "Neg"},
      {"abs", "Abs"},    {"sqrt", "Sqrt"}, {"exp", "Exp"},         {"reciprocal", "Reciprocal"},
      {"log", "Log"},    {"erf", "Erf"},   {"sin", "Sin"},         {"cos", "Cos"},
      {"atan", "Atan"},  {"sign", "Sign"}, {"floor", "Floor"},     {"ceil", "Ceil"},
      {"round", "Round"}};
  return names;
}

const char* operator_of(Binary function) {
  switch (function) {
    case Binary::kAdd:
      return "Add";
    case Binary::kSub:
      return "Sub";
    case Binary::kMul:
      return "Mul";
    case Binary::kDiv:
      return "Div";
    case Binary::kEqual:
    case Binary::kNotEqual:
      return "Equal";
    case Binary::kLess:
      return "Less";
    case Binary::kLessEqual:
      return "LessOrEqual";
    case Binary::kGreater:
      return "Greater";
    case Binary::kGreaterEqual:
      return "GreaterOrEqual";
    default:
      return nullptr;
  }
}

/// The layout that operands are read in: the first one's where both have its shape.
Layout common_layout(const Emitter& emitter) {
  for (int i = 1; i < emitter.inputs(); ++i) {
    if (emitter.value(i).shape != emitter.value(0).shape) return Layout::kLast;
  }
  return emitter.layout_of(0);
}

void binary(const Emitter& emitter, Binary function) {
  const char* const type = operator_of(function);
  if (type == nullptr) emitter.refuse("function of this kind");
  const Layout layout = common_layout(emitter);
  std::vector<std::string> operands{emitter.in(0, layout)};
  if (emitter.has(1)) {
    operands.push_back(emitter.in(1, layout));
  } else {
    const auto& options = emitter.options<ops::BinaryOptions>();
    operands.insert(options.number_first ? operands.begin() : operands.end(), emitter.number(options.number));
  }
  std::string result = emitter.node(type, operands);
  if (function == Binary::kNotEqual) result = emitter.node("Not", {result});
  emitter.out(result, layout);
}

}  // namespace

std::string activated(const Emitter& emitter, const std::string& x, std::string_view function) {
  if (function == "gelu") return gelu(emitter, x);
  if (function == "gelu_tanh") return gelu_tanh(emitter, x);
  if (function == "silu") return emitter.node("Mul", {x, emitter.node("Sigmoid", {x})});
  const auto found = operators().find(function);
  if (found == operators().end()) emitter.refuse("function of this kind");
  return emitter.node(found->second, {x});
}

bool emit_pointwise(const Emitter& emitter) {
  const std::string& name = emitter.name();
  const std::map<std::string_view, Binary> of_two{
      {"add", Binary::kAdd}, {"sub", Binary::kSub}, {"mul", Binary::kMul}, {"div", Binary::kDiv}};
  if (const auto found = of_two.find(name); found != of_two.end()) {
    binary(emitter, found->second);
  } else if (name == "compare") {
    binary(emitter, emitter.options<ops::BinaryOptions>().function);
  } else if (name == "scale") {
    const Layout layout = emitter.layout_of(0);
    emitter.out(
        emitter.node("Mul", {emitter.in(0, layout), emitter.number(emitter.options<ops::ScaleOptions>().factor)}),
        layout);
  } else if (name == "cast") {
    const Layout layout = emitter.layout_of(0);
    const DType to = emitter.result().dtype;
    if (to != DType::kFloat32 && to != DType::kInt64 && to != DType::kBool) emitter.refuse("dtype but float32");
    const std::int64_t type = to == DType::kFloat32 ? TensorProto::FLOAT
                              : to == DType::kInt64 ? TensorProto::INT64
                                                    : TensorProto::BOOL;
    emitter.out(emitter.node("Cast", {emitter.in(0, layout)}, {{"to", type}}), layout);
  } else if (name == "clamp") {
    const Layout layout = emitter.layout_of(0);
    const auto& clamp = emitter.options<kernels::UnaryFunction>();
    emitter.out(
        emitter.node("Clip", {emitter.in(0, layout), emitter.number(clamp.first), emitter.number(clamp.second)}),
        layout);
  } else if (name == "gelu" || name == "gelu_tanh" || name == "silu" || operators().contains(name)) {
    const Layout layout = emitter.layout_of(0);
    emitter.out(activated(emitter, emitter.in(0, layout), name), layout);
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep::onnx
