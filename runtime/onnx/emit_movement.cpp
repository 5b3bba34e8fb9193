// SPDX-License-Identifier: Apache-2.0
// Operations that move elements and compute nothing.
#include <limits>

#include "runtime/onnx/emitter.h"
#include "runtime/ops/operation_options.h"

namespace lockstep::onnx {

namespace {

void expand(const Emitter& emitter) {
  const Value& result = emitter.result();
  if (result.of_batch == 0) {
    const auto extents = result.shape.extents();
    return emitter.out(emitter.node("Expand", {emitter.in(0), emitter.ints({extents.begin(), extents.end()})}));
  }
  std::vector<std::string> parts;
  for (int d = 0; d < result.shape.rank(); ++d) {
    const bool of_batch = (result.of_batch >> d & 1u) != 0;
    if (of_batch && result.shape[d] != kTracedBatch) emitter.refuse("shape with a multiple of the batch");
    parts.push_back(of_batch ? emitter.batch() : emitter.ints({result.shape[d]}));
  }
  const std::string shape = emitter.node("Concat", parts, {{"axis", std::int64_t{0}}});
  emitter.out(emitter.node("Expand", {emitter.in(0), shape}));
}

void slice(const Emitter& emitter) {
  const auto& options = emitter.options<ops::SliceOptions>();
  const Value& result = emitter.result();
  const bool of_batch = (result.of_batch >> options.dim & 1u) != 0;
  if (of_batch && options.begin + options.step != 1) emitter.refuse("slice of the batch");
  const std::int64_t end = of_batch ? std::numeric_limits<std::int64_t>::max()
                                    : options.begin + options.step * (result.shape[options.dim] - 1) + 1;
  emitter.out(emitter.node("Slice", {emitter.in(0), emitter.ints({options.begin}), emitter.ints({end}),
                                     emitter.ints({options.dim}), emitter.ints({options.step})}));
}

void cat(const Emitter& emitter) {
  const int dim = emitter.options<ops::AlongOptions>().dim, rank = emitter.result().shape.rank();
  const Layout layout = rank >= 3 ? emitter.layout_of(0) : Layout::kLast;
  std::int64_t axis = dim;
  if (layout == Layout::kFirst && dim > 0) axis = dim == rank - 1 ? 1 : dim + 1;
  std::vector<std::string> parts;
  for (int i = 0; i < emitter.inputs(); ++i) parts.push_back(emitter.in(i, layout));
  emitter.out(emitter.node("Concat", parts, {{"axis", axis}}), layout);
}

}  // namespace

bool emit_movement(const Emitter& emitter) {
  const std::string& name = emitter.name();
  if (name == "reshape") {
    emitter.out(emitter.reshaped(emitter.in(0), emitter.target(emitter.result())));
  } else if (name == "to" || name == "copy") {
    emitter.out(emitter.node("Identity", {emitter.in(0)}));
  } else if (name == "permute") {
    const auto& order = emitter.options<ops::PermuteOptions>().order;
    emitter.out(
        emitter.node("Transpose", {emitter.in(0)}, {{"perm", std::vector<std::int64_t>(order.begin(), order.end())}}));
  } else if (name == "expand") {
    expand(emitter);
  } else if (name == "slice") {
    slice(emitter);
  } else if (name == "cat") {
    cat(emitter);
  } else if (name == "index_select") {
    const std::int64_t axis = emitter.options<ops::AlongOptions>().dim;
    emitter.out(emitter.node("Gather", {emitter.in(0), emitter.in(1)}, {{"axis", axis}}));
  } else if (name == "gather") {
    const std::int64_t axis = emitter.options<ops::AlongOptions>().dim;
    emitter.out(emitter.node("GatherElements", {emitter.in(0), emitter.in(1)}, {{"axis", axis}}));
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep::onnx
