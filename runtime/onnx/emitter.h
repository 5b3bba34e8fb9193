// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/onnx/writer.h"

namespace lockstep::onnx {

/// One operation of the trace, as the function sees it that writes its nodes.
class Emitter {
 public:
  Emitter(Writer& writer, const Operation& operation) : writer_(writer), operation_(operation) {}

  const std::string& name() const { return operation_.name; }
  int inputs() const { return static_cast<int>(operation_.inputs.size()); }
  int results() const { return static_cast<int>(operation_.results.size()); }
  bool has(int input) const { return input < inputs() && at(input) != kNone; }
  const Value& value(int input) const { return writer_.value(at(input)); }
  const Value& result(int i = 0) const { return writer_.value(operation_.results[static_cast<std::size_t>(i)]); }
  Layout layout_of(int input) const { return writer_.layout_of(at(input)); }

  /// The options that the operation has noted. Throws UsageError where it has noted none.
  template <class Options>
  const Options& options() const {
    const auto* const found = std::any_cast<Options>(&operation_.options);
    if (found == nullptr) refuse("this form of it");
    return *found;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw UsageError((operation_.layer.empty() ? "" : operation_.layer + ": ") + operation_.name +
                     ": ONNX export knows no " + what);
  }

  /// The name of an input in a layout.
  std::string in(int input, Layout layout = Layout::kLast) const { return writer_.name_of(at(input), layout); }
  /// An input that must be a constant, its dimensions in another order.
  std::string weight(int input, const std::vector<int>& order = {}) const;
  std::string ints(const std::vector<std::int64_t>& values) const;
  std::string floats(const std::vector<float>& values, const Shape& shape) const;
  std::string number(double value) const { return floats({static_cast<float>(value)}, {}); }
  /// A constant that is named after the layer.
  std::string stored(const Tensor& tensor, const std::string& what) const {
    return writer_.constant(tensor, named(what));
  }
  /// One that layers share.
  std::string shared(const Tensor& tensor, const std::string& what) const {
    return writer_.shared_constant(tensor, what);
  }

  /// A node with one result, which is named after the layer.
  std::string node(const std::string& type, const std::vector<std::string>& inputs,
                   const std::vector<Attribute>& attributes = {}) const {
    return writer_.node(type, inputs, attributes, named(operation_.name))[0];
  }
  std::vector<std::string> nodes(const std::string& type, const std::vector<std::string>& inputs,
                                 const std::vector<Attribute>& attributes, int results) const {
    return writer_.node(type, inputs, attributes, named(operation_.name), results);
  }
  /// `x` under another shape; -1 stands for what is left.
  std::string reshaped(const std::string& x, const std::vector<std::int64_t>& shape) const {
    return node("Reshape", {x, ints(shape)});
  }
  /// The extents of a value, -1 for the one that is the batch's. Throws UsageError where there are several.
  std::vector<std::int64_t> target(const Value& value) const;
  /// The first extent of the model's inputs, int64 [1].
  std::string batch() const;

  /// The operation's result.
  void out(const std::string& name, Layout layout = Layout::kLast, int result = 0) const {
    writer_.define(operation_.results[static_cast<std::size_t>(result)], layout, name);
  }

 private:
  int at(int input) const { return operation_.inputs[static_cast<std::size_t>(input)]; }
  std::string named(const std::string& what) const {
    return operation_.layer.empty() ? what : operation_.layer + "." + what;
  }

  Writer& writer_;
  const Operation& operation_;
};

/// Write the nodes of one operation: false where the operation is none of theirs. They throw UsageError for a form of
/// it that they do not know.
bool emit_pointwise(const Emitter& emitter);
bool emit_image(const Emitter& emitter);
bool emit_sequence(const Emitter& emitter);
bool emit_movement(const Emitter& emitter);

/// `x` through a function of one number, in the layout that it has.
std::string activated(const Emitter& emitter, const std::string& x, std::string_view function);

}  // namespace lockstep::onnx
