// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "configs/onnx.pb.h"
#include "runtime/onnx/trace.h"

namespace lockstep::onnx {

/// How ONNX's tensor lies: as ours, or with the channels behind the batch, [N, C, spatial...], as its convolutions want
/// it. The same thing up to two dimensions.
enum class Layout { kLast, kFirst };

/// The dimensions of the other layout in the order of this one.
std::vector<int> order_to(Layout layout, int rank);

struct Attribute {
  Attribute(std::string_view name, std::int64_t value);
  Attribute(std::string_view name, float value);
  Attribute(std::string_view name, const std::string& value);
  Attribute(std::string_view name, const std::vector<std::int64_t>& values);
  AttributeProto proto;
};

/// Puts nodes, constants and names into a graph. A value is transposed only where an operation asks for the other
/// layout than the one that it was made in, and once.
class Writer {
 public:
  Writer(const Trace& trace, GraphProto& graph);

  const Trace& trace() const { return trace_; }
  const Value& value(int number) const { return trace_.values[static_cast<std::size_t>(number)]; }

  /// The name of a value in a layout; the input, a node's result or a constant.
  std::string name_of(int value, Layout layout);
  /// The layout that a value was made in; kLast of a constant.
  Layout layout_of(int value) const;
  /// From now on the value has that name in that layout.
  void define(int value, Layout layout, const std::string& name);

  /// A constant value with its dimensions in another order; none: as it is.
  std::string constant(int value, const std::vector<int>& order, const std::string& fallback_name);
  /// A constant of its own.
  std::string constant(const Tensor& tensor, const std::string& name);
  /// One for all that are equal: numbers, shapes, masks.
  std::string shared_constant(const Tensor& tensor, const std::string& name);

  /// Adds a node whose first result is named after `name`. Returns the names of its results.
  std::vector<std::string> node(const std::string& type, const std::vector<std::string>& inputs,
                                const std::vector<Attribute>& attributes, const std::string& name, int results = 1);
  /// An input or output of the graph; extents of the batch have a name instead of a number.
  void describe(ValueInfoProto& info, int value, Layout layout, const std::string& name) const;
  /// `name` where nothing has it yet, and else with a number.
  std::string unique(const std::string& name);

 private:
  struct Forms {
    std::array<std::string, 2> names;
    Layout made_in = Layout::kLast;
  };
  /// A constant is known by its memory: several tensors may show the same.
  using Memory = std::tuple<const void*, std::vector<std::int64_t>, DType>;
  struct Stored {
    std::string name;
    std::vector<int> order;
    std::map<std::vector<int>, std::string> transposed;
  };

  const Trace& trace_;
  GraphProto& graph_;
  std::map<int, Forms> forms_;
  std::map<Memory, Stored> constants_;
  std::map<std::tuple<std::string, std::vector<std::int64_t>, DType>, std::string> shared_;  ///< by their bytes
  std::set<std::string> taken_;
};

}  // namespace lockstep::onnx
