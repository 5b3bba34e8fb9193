// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/normalization.h"

#include <algorithm>
#include <limits>
#include <string>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/cast.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/normalization.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/operation_options.h"
#include "runtime/ops/result.h"
#include "runtime/ops/shape.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using autograd::GradTarget;
using autograd::SavedTensor;

namespace {

/// A parameter as a line of the statistics' dtype, outside the graph; undefined where it is undefined.
Tensor line_of(const Tensor& parameter, DType dtype) {
  if (!parameter.defined()) return {};
  const Tensor line = parameter.detach({parameter.numel()});
  if (line.dtype() == dtype) return line;
  const Tensor widened = Tensor::empty(line.shape(), dtype, line.device());
  kernels::cast(line, widened);
  return widened;
}

/// Where a kernel puts the gradient of a parameter: into its target where that has the kernel's dtype and no value yet,
/// otherwise beside it.
class ParameterGradient {
 public:
  ParameterGradient(const BackwardContext& context, std::size_t i, const SavedTensor& parameter, DType dtype) {
    if (!parameter.peek().defined() || !context.needs(i)) return;
    target_ = context.target(i, parameter.peek());
    const Shape line{target_.out.numel()};
    direct_ = target_.out.dtype() == dtype && !target_.accumulate;
    line_ = direct_ ? target_.out.detach(line) : Tensor::empty(line, dtype, target_.out.device());
  }

  const Tensor& line() const { return line_; }
  /// Once the kernel has written line().
  Tensor deliver() const {
    if (!line_.defined() || direct_) return target_.out;
    const Tensor value = line_.detach(target_.out.shape());
    target_.accumulate ? kernels::accumulate(value, target_.out) : kernels::cast(value, target_.out);
    return target_.out;
  }

 private:
  GradTarget target_;
  Tensor line_;
  bool direct_ = false;
};

/// A normalisation as its kernels see it: x as [rows, channels], or as [N, pixels, channels] where there are groups.
struct Problem {
  Shape x;
  std::int64_t groups = 0;  ///< 0: over rows
  bool centred = true;
  double epsilon;
  int dims = 0;  ///< the number of last dimensions to normalise over, where there are no groups

  Shape statistics() const { return groups > 0 ? Shape{x.front(), groups} : Shape{x.front()}; }
  /// x with the dimensions that share statistics apart from the others: [rows, channels], or [N, pixels, groups,
  /// channels of a group].
  Shape by_set() const { return groups > 0 ? Shape{x[0], x[1], groups, x[2] / groups} : x; }
  /// Elements that share statistics.
  std::int64_t set_size() const { return groups > 0 ? x[1] * (x[2] / groups) : x[1]; }
};

/// The values that the backward pass keeps.
struct SavedNorm {
  Problem problem;
  SavedTensor x;
  SavedTensor weight;
  SavedTensor bias;
  Tensor mean;
  Tensor inv_std;
};

std::vector<Tensor> gradients(const SavedNorm& saved, const Tensor& dy, const BackwardContext& context) {
  const DType dtype = saved.inv_std.dtype();
  const Tensor& x = context.saved(saved.x);
  const Tensor dx = context.needs(0) ? empty_like(x) : Tensor();
  const ParameterGradient dweight(context, 1, saved.weight, dtype), dbias(context, 2, saved.bias, dtype);
  const kernels::Normalization& normalization = kernels::Normalization::on(dy.device());
  const auto kernel = saved.problem.groups > 0 ? normalization.group_norm_backward : normalization.layer_norm_backward;
  kernel(x.detach(saved.problem.x), line_of(context.saved(saved.weight), dtype), saved.mean, saved.inv_std,
         dy.detach(saved.problem.x), dx.defined() ? dx.detach(saved.problem.x) : dx, dweight.line(), dbias.line());
  return {dx, dweight.deliver(), dbias.deliver()};
}

/// The gradients computed by operations, the statistics included, so that they can be differentiated again.
std::vector<Tensor> recorded_gradients(const SavedNorm& saved, const Tensor& grad, const BackwardContext& context) {
  const Problem& problem = saved.problem;
  const DType dtype = saved.inv_std.dtype();
  const Shape whole = problem.by_set();
  const Shape sets = problem.groups > 0 ? Shape{whole[0], 1, whole[2], 1} : Shape{whole[0], 1};
  const Shape parameters = problem.groups > 0 ? Shape{whole[2], whole[3]} : Shape{whole[1]};
  const double share = 1.0 / static_cast<double>(std::max<std::int64_t>(problem.set_size(), 1));
  const auto average = [&](const Tensor& values) { return scale(sum_to(values, sets), share); };
  const auto wide = [&](const Tensor& values, const Shape& shape) {
    return reshape(autograd::cast(values, dtype), shape);
  };

  const Tensor x = wide(context.saved(saved.x), whole), dy = wide(grad, whole);
  const Tensor distance = problem.centred ? sub(x, average(x)) : x;
  const Tensor inv_std = rsqrt(add(average(mul(distance, distance)), problem.epsilon));
  const Tensor normal = mul(distance, inv_std);
  std::vector<Tensor> grads(3);
  const Tensor& weight = context.saved(saved.weight);
  if (context.needs(1)) grads[1] = reshape(sum_to(mul(dy, normal), parameters), weight.shape());
  if (context.needs(2)) grads[2] = reshape(sum_to(dy, parameters), saved.bias.peek().shape());
  if (!context.needs(0)) return grads;
  const Tensor own = weight.defined() ? mul(dy, wide(weight, parameters)) : dy;
  const Tensor centred = problem.centred ? sub(own, average(own)) : own;
  const Tensor dx = mul(sub(centred, mul(normal, average(mul(own, normal)))), inv_std);
  grads[0] = reshape(dx, saved.x.peek().shape());
  return grads;
}

/// The dtype of y, where the policy says `by_policy`.
DType dtype_of(NormResult result, DType by_policy, const Tensor& x) {
  const bool narrow = result == NormResult::kForProducts && by_policy == DType::kFloat32 && amp::Autocast::enabled();
  // The kernels write no 16-bit dtype that is another than that of 16-bit x.
  const bool writes = x.dtype() == DType::kFloat32 || x.dtype() == amp::Autocast::dtype();
  return narrow && writes ? amp::Autocast::dtype() : by_policy;
}

Tensor normalize(amp::Op op, const Problem& problem, const Tensor& input, const Tensor& weight, const Tensor& bias,
                 NormResult result = NormResult::kByPolicy) {
  // The kernel reads 16-bit x exactly and writes float32 where the policy asks for that: a cast would be a copy for
  // nothing.
  const DType by_policy = amp::dtype_for(op, input);
  const Tensor x = by_policy == DType::kFloat32 ? input : amp::autocast(op, input);
  const DType dtype = wide_of(x.dtype());
  const Tensor y = Tensor::empty(x.shape(), dtype_of(result, by_policy, x), x.device());
  const Tensor mean = problem.centred ? Tensor::empty(problem.statistics(), dtype, x.device()) : Tensor();
  const Tensor inv_std = Tensor::empty(problem.statistics(), dtype, x.device());
  const kernels::Normalization& normalization = kernels::Normalization::on(x.device());
  const auto kernel = problem.groups > 0 ? normalization.group_norm : normalization.layer_norm;
  kernel(x.detach(problem.x), line_of(weight, dtype), line_of(bias, dtype), problem.epsilon, y.detach(problem.x), mean,
         inv_std);
  const SavedNorm saved{problem, SavedTensor::in_graph(x), SavedTensor::in_graph(weight), SavedTensor(bias), mean,
                        inv_std};
  autograd::record(
      y, name_of(op), {x, weight, bias},
      {.fused = [saved](const Tensor& dy, const BackwardContext& context) { return gradients(saved, dy, context); },
       .recorded = [saved](const Tensor& dy,
                           const BackwardContext& context) { return recorded_gradients(saved, dy, context); }});
  autograd::note_options(y, NormalizationOptions{problem.epsilon, problem.dims, problem.groups});
  return y;
}

Problem over_last(amp::Op op, const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias,
                  double epsilon) {
  require_defined(x, name_of(op), "the input");
  const std::string name(name_of(op));
  const auto extents = x.shape().extents();
  const auto own = normalized_shape.extents();
  if (own.empty() || own.size() > extents.size() || !std::ranges::equal(extents.last(own.size()), own)) {
    throw ShapeError(name + " over " + normalized_shape.str() + ": the last extents of x must be these, found " +
                     describe(x));
  }
  for (const Tensor& parameter : {weight, bias}) {
    if (parameter.defined() && parameter.shape() != normalized_shape) {
      throw ShapeError(name + " over " + normalized_shape.str() + ": weight and bias must have that shape, found " +
                       describe(parameter));
    }
  }
  const std::int64_t channels = normalized_shape.numel();
  std::int64_t rows = 1;
  for (const std::int64_t extent : extents.first(extents.size() - own.size())) rows *= extent;
  return {.x = {rows, channels}, .epsilon = epsilon, .dims = normalized_shape.rank()};
}

Problem over_groups(amp::Op op, const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias,
                    double epsilon) {
  require_defined(x, name_of(op), "the input");
  const std::string name(name_of(op));
  if (x.shape().rank() < 2) throw ShapeError(name + ": x must be [N, spatial..., C], found " + describe(x));
  const std::int64_t channels = x.shape().back();
  if (groups < 1 || channels % groups != 0) {
    throw ShapeError(name + ": " + std::to_string(groups) + " groups must divide the channels of " + describe(x));
  }
  for (const Tensor& parameter : {weight, bias}) {
    if (parameter.defined() && parameter.shape() != Shape{channels}) {
      throw ShapeError(name + ": weight and bias must be [" + std::to_string(channels) + "], found " +
                       describe(parameter));
    }
  }
  std::int64_t pixels = 1;
  for (int d = 1; d + 1 < x.shape().rank(); ++d) pixels *= x.size(d);
  return {.x = {x.size(0), pixels, channels}, .groups = groups, .epsilon = epsilon};
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias,
                  double epsilon, NormResult result) {
  constexpr amp::Op kOp = amp::Op::kLayerNorm;
  return normalize(kOp, over_last(kOp, x, normalized_shape, weight, bias, epsilon), x, weight, bias, result);
}

Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, std::optional<double> epsilon,
                NormResult result) {
  constexpr amp::Op kOp = amp::Op::kRmsNorm;
  require_defined(x, name_of(kOp), "the input");
  const double least = x.dtype() == DType::kFloat64 ? std::numeric_limits<double>::epsilon()
                                                    : static_cast<double>(std::numeric_limits<float>::epsilon());
  Problem problem = over_last(kOp, x, normalized_shape, weight, {}, epsilon.value_or(least));
  problem.centred = false;
  return normalize(kOp, problem, x, weight, {}, result);
}

Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, double epsilon) {
  constexpr amp::Op kOp = amp::Op::kGroupNorm;
  return normalize(kOp, over_groups(kOp, x, groups, weight, bias, epsilon), x, weight, bias);
}

Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon) {
  constexpr amp::Op kOp = amp::Op::kInstanceNorm;
  require_defined(x, name_of(kOp), "the input");
  const Problem problem = over_groups(kOp, x, x.shape().rank() > 0 ? x.shape().back() : 0, weight, bias, epsilon);
  if (problem.x[1] == 1) throw ShapeError("instance_norm: one pixel has no variance, found " + describe(x));
  return normalize(kOp, problem, x, weight, bias);
}

}  // namespace lockstep::ops
