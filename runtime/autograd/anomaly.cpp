// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/anomaly.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"

namespace lockstep::autograd {

namespace {

thread_local bool is_enabled = false;
thread_local bool is_within_backward = false;

/// Its own copies are nobody's operations.
class Unobserved {
 public:
  Unobserved() : observer_(observe_records(nullptr)) {}
  ~Unobserved() { observe_records(observer_); }
  Unobserved(const Unobserved&) = delete;
  Unobserved& operator=(const Unobserved&) = delete;

 private:
  RecordObserver* observer_;
  NoGrad no_grad_;
};

std::int64_t count_nan(const Tensor& tensor) {
  if (!tensor.defined() || !is_floating(tensor.dtype()) || tensor.numel() == 0) return 0;
  const Unobserved unobserved;
  const Tensor numbers = tensor.detach().to(kCpu).to(DType::kFloat32);
  return std::ranges::count_if(numbers.as<float>(), [](float number) { return std::isnan(number); });
}

std::string share(std::int64_t count, const Tensor& tensor) {
  return std::to_string(count) + " of " + std::to_string(tensor.numel()) + " elements";
}

}  // namespace

DetectAnomaly::DetectAnomaly() : outer_(observe_records(this)), outer_enabled_(std::exchange(is_enabled, true)) {}

DetectAnomaly::~DetectAnomaly() {
  observe_records(outer_);
  is_enabled = outer_enabled_;
}

bool DetectAnomaly::enabled() { return is_enabled; }

DetectAnomaly::WithinBackward::WithinBackward() : outer_(std::exchange(is_within_backward, true)) {}
DetectAnomaly::WithinBackward::~WithinBackward() { is_within_backward = outer_; }

void DetectAnomaly::search_gradients(std::string_view operation, const std::vector<Tensor>& gradients) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::int64_t count = count_nan(gradients[i]);
    if (count == 0) continue;
    throw NumericsError("the backward of '" + std::string(operation) +
                            "' made the first NaN: " + share(count, gradients[i]) + " of the gradient of its input " +
                            std::to_string(i) + ", " + describe(gradients[i]),
                        "Where a loss scale makes gradients overflow, search with a scale of 1.");
  }
}

void DetectAnomaly::recorded(std::string_view name, const std::vector<Tensor>& results,
                             const std::vector<Tensor>& inputs) {
  if (outer_ != nullptr) outer_->recorded(name, results, inputs);
  if (is_within_backward) return;
  for (const Tensor& result : results) {
    const std::int64_t count = count_nan(result);
    if (count == 0) continue;
    const std::string found = share(count, result) + " of its result, " + describe(result);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (count_nan(inputs[i]) == 0) continue;
      throw NumericsError("'" + std::string(name) + "' read the first NaN in its input " + std::to_string(i) + ", " +
                              describe(inputs[i]) + ", which no operation made: " + found,
                          "Look at the data, and at the parameters.");
    }
    throw NumericsError("'" + std::string(name) + "' made the first NaN: " + found + "; none of its inputs has one");
  }
}

void DetectAnomaly::noted(const Tensor& result, const std::any& options, const std::vector<Tensor>& others) {
  if (outer_ != nullptr) outer_->noted(result, options, others);
}

void DetectAnomaly::placed(const Node& node) {
  if (outer_ != nullptr) outer_->placed(node);
}

void DetectAnomaly::backward_begins(const Node& node) {
  if (outer_ != nullptr) outer_->backward_begins(node);
}

void DetectAnomaly::backward_ends(const Node& node) {
  if (outer_ != nullptr) outer_->backward_ends(node);
}

}  // namespace lockstep::autograd
