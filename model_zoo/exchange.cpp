// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/exchange.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model_zoo/pytorch_names.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/shape.h"
#include "runtime/tensor/error.h"

namespace lockstep::model_zoo {

namespace {

constexpr std::string_view kRunning = ".running";
constexpr std::string_view kTracked = ".num_batches_tracked";
constexpr std::string_view kRows[] = {".running_mean", ".running_var"};  ///< of [2, C] here

/// "block0.conv" and ".weight"
std::pair<std::string, std::string> split(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {"", name};
  return {name.substr(0, dot), name.substr(dot)};
}

/// Tensors of ours by their names there; of running statistics the name without its last part.
class Names {
 public:
  Names(const ModelOptions& options, nn::Module& model) : ours_(nn::state_dict(model)) {
    for (const auto& [name, tensor] : ours_) {
      const auto [module, leaf] = split(name);
      theirs_[name] = pytorch_module(options, module) + (leaf == kRunning ? "" : leaf);
    }
  }

  const nn::StateDict& ours() const { return ours_; }
  const std::string& theirs(const std::string& name) const { return theirs_.at(name); }

 private:
  nn::StateDict ours_;
  std::map<std::string, std::string> theirs_;
};

bool is_running(const std::string& name) { return name.ends_with(kRunning); }

/// Convolutions alone have weights of three or more dimensions.
bool is_convolution(const Tensor& weight) { return weight.shape().rank() >= 3; }

/// [out, kernel..., in] -> [out, in, kernel...]
Tensor channels_second(const Tensor& weight) {
  const auto rank = static_cast<int>(weight.shape().rank());
  std::vector<int> order{0, rank - 1};
  for (int d = 1; d + 1 < rank; ++d) order.push_back(d);
  return ops::permute(weight, order);
}

/// [out, in, kernel...] -> [out, kernel..., in]
Tensor channels_last(const Tensor& weight) {
  std::vector<int> order{0};
  for (int d = 2; d < static_cast<int>(weight.shape().rank()); ++d) order.push_back(d);
  order.push_back(1);
  return ops::permute(weight, order);
}

}  // namespace

nn::StateDict to_pytorch(const ModelOptions& options, nn::Module& model) {
  const autograd::NoGrad no_grad;
  const Names names(options, model);
  nn::StateDict theirs;
  for (const auto& [name, tensor] : names.ours()) {
    const Tensor here = ops::cast(tensor.to(kCpu), DType::kFloat32);
    const std::string& there = names.theirs(name);
    if (is_running(name)) {
      for (std::int64_t row = 0; row < 2; ++row) {
        theirs[there + std::string(kRows[row])] = here.rows(row, row + 1).reshaped({here.size(1)});
      }
      theirs[there + std::string(kTracked)] = Tensor::zeros({}, DType::kInt64);
    } else {
      theirs[there] = is_convolution(here) ? channels_second(here) : here;
    }
  }
  return theirs;
}

nn::StateDict from_pytorch(const ModelOptions& options, nn::Module& model, const nn::StateDict& theirs) {
  const autograd::NoGrad no_grad;
  const Names names(options, model);
  nn::StateDict ours;
  std::set<std::string> taken;
  for (const auto& [name, tensor] : names.ours()) {
    const std::string& there = names.theirs(name);
    if (!is_running(name)) {
      const auto found = theirs.find(there);
      if (found == theirs.end()) continue;
      taken.insert(there);
      const bool permuted = is_convolution(tensor) && found->second.shape().rank() == tensor.shape().rank();
      ours[name] = permuted ? channels_last(found->second) : found->second;
      continue;
    }
    const auto mean = theirs.find(there + std::string(kRows[0]));
    const auto variance = theirs.find(there + std::string(kRows[1]));
    if (mean == theirs.end() && variance == theirs.end()) continue;
    if (mean == theirs.end() || variance == theirs.end()) {
      throw UsageError("the weights have half of the running statistics of " + there);
    }
    taken.insert({mean->first, variance->first});
    ours[name] = ops::stack({mean->second, variance->second}, 0);
  }
  for (const auto& [name, tensor] : theirs) {
    if (!taken.contains(name) && !name.ends_with(kTracked)) ours.emplace(name, tensor);
  }
  return ours;
}

}  // namespace lockstep::model_zoo
