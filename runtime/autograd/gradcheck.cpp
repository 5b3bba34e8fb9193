// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/gradcheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>

#include "runtime/autograd/engine.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"

namespace lockstep::autograd {

namespace {

using Values = std::vector<double>;

Values values_of(const Tensor& tensor) {
  const NoGrad no_grad;
  const Tensor here = tensor.detach().to(kCpu);
  if (here.dtype() != DType::kFloat64) {
    throw UsageError("gradcheck: an output is " + describe(here) + ", not float64, whose digits differences need");
  }
  const auto elements = here.as<double>();
  return {elements.begin(), elements.end()};
}

/// A leaf of these numbers beside `like`.
Tensor leaf_of(const Values& values, const Tensor& like) {
  const NoGrad no_grad;
  const Tensor leaf = Tensor::from(values, like.shape()).to(like.device());
  leaf.set_requires_grad(true);
  return leaf;
}

/// Whether an output may have no graph. Its gradients are then 0, and the differences have to be as well.
enum class Constants : std::uint8_t { kRefused, kTaken };

class Check {
 public:
  Check(const Computation& function, const std::vector<Tensor>& inputs, const GradcheckOptions& options,
        Constants constants)
      : function_(function), inputs_(inputs), options_(options), constants_(constants) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].requires_grad()) continue;
      if (inputs[i].dtype() != DType::kFloat64) {
        throw UsageError(fmt::format("gradcheck: input {} is {}, not float64, whose digits differences need", i,
                                     describe(inputs[i])));
      }
      inputs_[i] = leaf_of(values_of(inputs[i]), inputs[i]);
      checked_.push_back(i);
    }
    if (checked_.empty()) throw UsageError("gradcheck: no input requires a gradient");
  }

  void run() {
    compute_gradients();
    if (results_of(inputs_) != values_) {
      throw UsageError("gradcheck: the function gives other numbers when called again");
    }
    for (std::size_t c = 0; c < checked_.size(); ++c) compare(c);
  }

 private:
  std::vector<Values> results_of(const std::vector<Tensor>& inputs) const {
    std::vector<Values> values;
    for (const Tensor& output : function_(inputs)) values.push_back(values_of(output));
    return values;
  }

  void compute_gradients() {
    std::vector<Tensor> by;
    for (const std::size_t i : checked_) by.push_back(inputs_[i]);
    const std::vector<Tensor> outputs = function_(inputs_);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      values_.push_back(values_of(outputs[o]));
      gradients_.emplace_back();
      for (std::size_t at = 0; at < values_[o].size(); ++at)
        gradients_[o].push_back(gradients_of(outputs[o], o, at, by));
    }
  }

  /// The gradients of element `at` of output number `o`, one for each checked input.
  std::vector<Values> gradients_of(const Tensor& output, std::size_t o, std::size_t at,
                                   const std::vector<Tensor>& by) const {
    std::vector<Tensor> found(by.size());
    if (output.requires_grad()) {
      Values one(values_[o].size());
      one[at] = 1;
      found = grad(output, by, leaf_of(one, output).detach(), {.retain_graph = true, .allow_unused = true});
    } else if (constants_ == Constants::kRefused) {
      throw UsageError(fmt::format("gradcheck: output {} depends on no input that requires a gradient", o));
    }
    std::vector<Values> gradients;
    for (std::size_t i = 0; i < by.size(); ++i) {
      const Values none(static_cast<std::size_t>(by[i].numel()));
      gradients.push_back(found[i].defined() ? values_of(found[i]) : none);
    }
    return gradients;
  }

  /// Compares the gradients by the checked input number `c` with differences.
  void compare(std::size_t c) const {
    const std::size_t i = checked_[c];
    const Values start = values_of(inputs_[i]);
    for (std::size_t element = 0; element < start.size(); ++element) {
      const auto moved = [&](double by) {
        Values values = start;
        values[element] += by;
        std::vector<Tensor> inputs = inputs_;
        inputs[i] = leaf_of(values, inputs_[i]);
        return results_of(inputs);
      };
      const std::vector<Values> above = moved(options_.step), below = moved(-options_.step);
      for (std::size_t o = 0; o < above.size(); ++o) {
        for (std::size_t at = 0; at < above[o].size(); ++at) {
          const double difference = (above[o][at] - below[o][at]) / (2 * options_.step);
          const double found = gradients_[o][at][c][element];
          // Not the other way round: NaN is not within the bounds.
          if (std::abs(found - difference) <= options_.absolute + options_.relative * std::abs(difference)) continue;
          throw NumericsError(fmt::format(
              "gradcheck: the gradient of element {} of output {} by element {} of input {} is {}; a central "
              "difference is {}",
              at, o, element, i, found, difference));
        }
      }
    }
  }

  const Computation& function_;
  std::vector<Tensor> inputs_;  ///< copies of those that require a gradient
  GradcheckOptions options_;
  Constants constants_;
  std::vector<std::size_t> checked_;                         ///< the inputs that require a gradient
  std::vector<Values> values_;                               ///< of each output
  std::vector<std::vector<std::vector<Values>>> gradients_;  ///< [output][element][checked input]
};

}  // namespace

void gradcheck(const Computation& function, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  Check(function, inputs, options, Constants::kRefused).run();
}

void gradgradcheck(const Computation& function, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  std::vector<Tensor> all = inputs;
  for (const Tensor& output : function(inputs)) {
    Values weights;
    for (std::int64_t i = 0; i < output.numel(); ++i)
      weights.push_back(0.5 + std::fmod(0.618 * static_cast<double>(i), 1));
    all.push_back(leaf_of(weights, output));
  }
  const auto begin = static_cast<std::ptrdiff_t>(inputs.size());
  const Computation gradients = [&](const std::vector<Tensor>& given) {
    const std::vector<Tensor> own(given.begin(), given.begin() + begin), weights(given.begin() + begin, given.end());
    std::vector<Tensor> by;
    std::ranges::copy_if(own, std::back_inserter(by), &Tensor::requires_grad);
    std::vector<Tensor> found = grad(function(own), by, weights, {.create_graph = true, .allow_unused = true});
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!found[i].defined()) found[i] = Tensor::zeros(by[i].shape(), by[i].dtype(), by[i].device());
    }
    return found;
  };
  Check(gradients, all, options, Constants::kTaken).run();
}

}  // namespace lockstep::autograd
