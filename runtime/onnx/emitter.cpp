// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx/emitter.h"

namespace lockstep::onnx {

std::string Emitter::weight(int input, const std::vector<int>& order) const {
  if (!value(input).constant.defined()) refuse("weight that is computed from the input");
  return writer_.constant(at(input), order, named("constant"));
}

std::string Emitter::ints(const std::vector<std::int64_t>& values) const {
  return shared(Tensor::from(values, {static_cast<std::int64_t>(values.size())}), "integers");
}

std::string Emitter::floats(const std::vector<float>& values, const Shape& shape) const {
  return shared(Tensor::from(values, shape), "numbers");
}

std::vector<std::int64_t> Emitter::target(const Value& value) const {
  std::vector<std::int64_t> extents(value.shape.extents().begin(), value.shape.extents().end());
  int varying = 0;
  for (int d = 0; d < value.shape.rank(); ++d) {
    if ((value.of_batch >> d & 1u) == 0) continue;
    extents[static_cast<std::size_t>(d)] = -1;
    ++varying;
  }
  if (varying > 1) refuse("shape with several extents of the batch's");
  return extents;
}

std::string Emitter::batch() const {
  const int input = writer_.trace().inputs.front();
  const std::string shape = node("Shape", {writer_.name_of(input, writer_.layout_of(input))});
  return node("Gather", {shape, ints({0})}, {{"axis", std::int64_t{0}}});
}

}  // namespace lockstep::onnx
