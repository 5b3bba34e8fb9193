// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/exchange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model_zoo/pytorch_names.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/shape.h"

namespace lockstep::model_zoo {

namespace {

constexpr std::string_view kRunningStatistics = ".running";
constexpr std::string_view kTracked = ".num_batches_tracked";
constexpr std::string_view kRows[] = {".running_mean", ".running_var"};  ///< of [2, C] here

bool is_running(const std::string& name) { return name.ends_with(kRunningStatistics); }

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

Tensor transposed(const Tensor& matrix) { return ops::permute(matrix, {1, 0}); }

/// [extents...] -> [1, ..., extents...]
Tensor with_leading(const Tensor& tensor, int ones) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(ones), 1);
  extents.insert(extents.end(), tensor.shape().extents().begin(), tensor.shape().extents().end());
  return tensor.reshaped(Shape(std::span<const std::int64_t>(extents)));
}

bool are_equal(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

bool are_zeros(const Tensor& tensor) {
  const Tensor wide = ops::cast(tensor, DType::kFloat64);
  return std::ranges::all_of(wide.as<double>(), [](double value) { return value == 0; });
}

std::string list_of(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

/// The model's tensors beside PyTorch's.
class Exchange {
 public:
  Exchange(const ModelOptions& options, nn::Module& model, PyTorchSource source)
      : ours_(nn::state_dict(model)), file_(pytorch_file(options, ours_, source)) {
    for (const auto& [name, tensor] : ours_) theirs_[name] = pytorch_tensor(options, name, source);
  }

  nn::StateDict to_pytorch(bool copies) const {
    nn::StateDict theirs;
    for (const auto& [name, tensor] : ours_) {
      const Tensor here = ops::cast(tensor.to(kCpu), DType::kFloat32);
      is_running(name) ? give_statistics(name, here, theirs) : give(name, here, theirs);
    }
    for (const auto& [name, of] : theirs_) {
      if (of.bias.empty()) continue;
      theirs.emplace(of.bias, Tensor::zeros({ours_.at(name).size(0)}, DType::kFloat32));
    }
    if (!copies) return theirs;
    for (const auto& [copy, of] : file_.copies) theirs[copy] = theirs.at(of);
    return theirs;
  }

  nn::StateDict from_pytorch(const nn::StateDict& given) const {
    nn::StateDict theirs = with_known_names(given);
    drop_copies(theirs);
    nn::StateDict ours;
    for (const auto& [name, tensor] : ours_) {
      const Tensor found = is_running(name) ? take_statistics(name, theirs) : take(name, tensor, theirs);
      if (found.defined()) ours[name] = found;
    }
    for (const auto& [name, of] : theirs_) {
      const auto bias = theirs.find(of.bias);
      if (bias != theirs.end() && are_zeros(bias->second)) theirs.erase(bias);
    }
    for (const auto& [name, tensor] : theirs) {
      if (!is_buffer(name)) ours.emplace(name, tensor);
    }
    return ours;
  }

 private:
  bool is_buffer(const std::string& name) const {
    return name.ends_with(kTracked) ||
           std::ranges::any_of(file_.buffers, [&name](const std::string& end) { return name.ends_with(end); });
  }

  void give_statistics(const std::string& name, const Tensor& running, nn::StateDict& theirs) const {
    const std::string& module = theirs_.at(name).names.front();
    for (std::int64_t row = 0; row < 2; ++row) {
      theirs[module + std::string(kRows[row])] = running.rows(row, row + 1).reshaped({running.size(1)});
    }
    theirs[module + std::string(kTracked)] = Tensor::zeros({}, DType::kInt64);
  }

  void give(const std::string& name, const Tensor& tensor, nn::StateDict& theirs) const {
    const PyTorchTensor& of = theirs_.at(name);
    const Tensor whole = with_leading(is_convolution(tensor) ? channels_second(tensor)
                                      : of.transposed        ? transposed(tensor)
                                                             : tensor,
                                      of.leading);
    if (of.names.size() == 1) {
      theirs[of.names.front()] = whole;
      return;
    }
    const std::int64_t share = whole.size(0) / std::accumulate(of.shares.begin(), of.shares.end(), std::int64_t{0});
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < of.names.size(); ++i) {
      const std::int64_t end = begin + of.shares[i] * share;
      theirs[of.names[i]] = whole.rows(begin, end);
      begin = end;
    }
  }

  /// Takes the statistics `name` out of `theirs`; undefined where they are not there.
  Tensor take_statistics(const std::string& name, nn::StateDict& theirs) const {
    const std::string& module = theirs_.at(name).names.front();
    return stacked({module + std::string(kRows[0]), module + std::string(kRows[1])}, theirs,
                   [](const std::vector<Tensor>& rows) { return ops::stack(rows, 0); });
  }

  Tensor take(const std::string& name, const Tensor& tensor, nn::StateDict& theirs) const {
    const PyTorchTensor& of = theirs_.at(name);
    const Tensor found = stacked(of.names, theirs, [](const std::vector<Tensor>& rows) {
      return rows.size() == 1 ? rows.front() : ops::cat(rows, 0);
    });
    if (of.leading > 0 && found.defined() && found.shape() == with_leading(tensor, of.leading).shape()) {
      return found.reshaped(tensor.shape());
    }
    // Another rank is told as it lies there.
    if (!found.defined() || found.shape().rank() != tensor.shape().rank()) return found;
    return is_convolution(tensor) ? channels_last(found) : of.transposed ? transposed(found) : found;
  }

  template <class Join>
  static Tensor stacked(const std::vector<std::string>& names, nn::StateDict& theirs, Join join) {
    std::vector<std::string> missing;
    std::vector<Tensor> parts;
    for (const std::string& name : names) {
      const auto found = theirs.find(name);
      found == theirs.end() ? missing.push_back(name) : parts.push_back(found->second);
    }
    if (parts.empty()) return {};
    if (!missing.empty()) {
      throw UsageError(
          fmt::format("the weights have only a part of {}: there is no {}", list_of(names), list_of(missing)));
    }
    for (const Tensor& part : parts) {
      const Shape &shape = part.shape(), &first = parts.front().shape();
      const bool fits =
          parts.size() == 1 || (shape.rank() > 0 && shape.rank() == first.rank() && shape.with(0, first[0]) == first &&
                                part.dtype() == parts.front().dtype());
      if (!fits) throw UsageError(fmt::format("the weights {} do not fit each other", list_of(names)));
    }
    for (const std::string& name : names) theirs.erase(name);
    return join(parts);
  }

  /// The file's tensors under the names that today's have: one of the model without its head lacks the prefix.
  nn::StateDict with_known_names(const nn::StateDict& given) const {
    nn::StateDict renamed;
    for (const auto& [name, tensor] : given) renamed[of_today(name)] = tensor;
    const auto has_prefix = [&](const auto& entry) { return entry.first.starts_with(file_.prefix); };
    if (std::ranges::any_of(renamed, has_prefix)) return renamed;
    std::set<std::string> known;
    for (const auto& [name, of] : theirs_) {
      known.insert(of.names.begin(), of.names.end());
      known.insert(of.bias);
    }
    nn::StateDict theirs;
    for (const auto& [name, tensor] : renamed) {
      const std::string whole = file_.prefix + name;
      theirs[known.contains(whole) ? whole : name] = tensor;
    }
    return theirs;
  }

  std::string of_today(const std::string& name) const {
    for (const auto& [old, today] : file_.ends) {
      if (name.ends_with(old)) return name.substr(0, name.size() - old.size()) + today;
    }
    return name;
  }

  /// A file may hold either of two tied tensors, or both.
  void drop_copies(nn::StateDict& theirs) const {
    for (const auto& [copy, of] : file_.copies) {
      const auto found = theirs.find(copy);
      if (found == theirs.end()) continue;
      const auto [original, is_new] = theirs.emplace(of, found->second);
      if (!are_equal(original->second, found->second)) {
        throw UsageError(fmt::format("the weights {} and {} differ, and the model ties them", copy, of),
                         "Where the job's model has a field tied_head, set it to false.");
      }
      theirs.erase(found);
    }
  }

  nn::StateDict ours_;
  std::map<std::string, PyTorchTensor> theirs_;  ///< by our names
  PyTorchFile file_;
};

}  // namespace

nn::StateDict to_pytorch(const ModelOptions& options, nn::Module& model) {
  const autograd::NoGrad no_grad;
  return Exchange(options, model, PyTorchSource::kAsDocumented).to_pytorch(true);
}

nn::StateDict to_transformers(const ModelOptions& options, nn::Module& model) {
  const autograd::NoGrad no_grad;
  return Exchange(options, model, PyTorchSource::kTransformers).to_pytorch(false);
}

nn::StateDict from_pytorch(const ModelOptions& options, nn::Module& model, const nn::StateDict& theirs) {
  const autograd::NoGrad no_grad;
  return Exchange(options, model, source_of(options, theirs)).from_pytorch(theirs);
}

}  // namespace lockstep::model_zoo
