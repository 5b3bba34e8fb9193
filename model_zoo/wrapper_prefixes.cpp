// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/wrapper_prefixes.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "model_zoo/pytorch_names.h"

namespace lockstep::model_zoo {

namespace {

constexpr std::string_view kWrappers[] = {"model.", "net.", "module."};
constexpr std::string_view kCompiled = "_orig_mod.";
constexpr int kMostWrappers = 4;  ///< around each other

/// The names under which a file may hold the model's tensors.
std::set<std::string> known_names(const ModelOptions& options, const nn::StateDict& ours, PyTorchSource source) {
  const PyTorchFile file = pytorch_file(options, ours, source);
  std::set<std::string> known;
  const auto add = [&](const std::string& name) {
    known.insert(name);
    if (!file.prefix.empty() && name.starts_with(file.prefix)) known.insert(name.substr(file.prefix.size()));
  };
  for (const auto& [name, tensor] : ours) {
    const PyTorchTensor of = pytorch_tensor(options, name, source);
    const bool statistics = name.ends_with(".running");
    for (const std::string& theirs : of.names) {
      statistics ? add(theirs + ".running_mean"), add(theirs + ".running_var") : add(theirs);
    }
    if (!of.bias.empty()) add(of.bias);
  }
  for (const auto& [copy, of] : file.copies) add(copy);
  for (const auto& [old, today] : file.ends) {
    for (const std::string& name : std::set(known)) {
      if (name.ends_with(today)) known.insert(name.substr(0, name.size() - today.size()) + old);
    }
  }
  return known;
}

/// "layer._orig_mod.weight" as "layer.weight".
std::string without_compiled(std::string name) {
  for (std::size_t at = 0; (at = name.find(kCompiled, at)) != std::string::npos;) {
    if (at == 0 || name[at - 1] == '.') {
      name.erase(at, kCompiled.size());
    } else {
      at += kCompiled.size();
    }
  }
  return name;
}

/// The prefixes that stand before the first of the names, in any order.
class Search {
 public:
  Search(const ModelOptions& options, const nn::StateDict& ours, const nn::StateDict& theirs) : theirs_(theirs) {
    for (const auto& [name, tensor] : theirs) names_.push_back(without_compiled(name));
    known_ = known_names(options, ours, PyTorchSource::kAsDocumented);
    known_.merge(known_names(options, ours, PyTorchSource::kTransformers));
    for (const auto& [name, tensor] : theirs) as_they_are_ += known_.contains(name);
  }

  Unwrapped best() {
    try_with("");
    if (best_known_ <= as_they_are_) return {.tensors = theirs_};
    Unwrapped found{.tensors = {}, .removed = best_};
    const bool compiled =
        std::ranges::any_of(theirs_, [](const auto& entry) { return without_compiled(entry.first) != entry.first; });
    if (compiled) found.removed += kCompiled;
    std::size_t at = 0;
    for (const auto& [name, tensor] : theirs_) found.tensors.emplace(stripped(names_[at++], best_), tensor);
    // Two names would be one: the file is not what a wrapper made of a model.
    return found.tensors.size() == theirs_.size() ? found : Unwrapped{.tensors = theirs_};
  }

 private:
  static std::string stripped(const std::string& name, const std::string& prefix) {
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  }

  void try_with(const std::string& prefix, int wrappers = 0) {
    std::ptrdiff_t known = 0;
    bool any = prefix.empty();
    for (const std::string& name : names_) {
      any = any || name.starts_with(prefix);
      known += known_.contains(stripped(name, prefix));
    }
    if (!any) return;
    if (known > best_known_) {
      best_known_ = known;
      best_ = prefix;
    }
    if (wrappers == kMostWrappers) return;
    for (const std::string_view wrapper : kWrappers) try_with(prefix + std::string(wrapper), wrappers + 1);
  }

  const nn::StateDict& theirs_;
  std::vector<std::string> names_;  ///< theirs in order, without torch.compile's prefix
  std::set<std::string> known_;
  std::ptrdiff_t as_they_are_ = 0;
  std::ptrdiff_t best_known_ = -1;
  std::string best_;
};

}  // namespace

Unwrapped without_wrappers(const ModelOptions& options, nn::Module& model, const nn::StateDict& theirs) {
  return Search(options, nn::state_dict(model), theirs).best();
}

}  // namespace lockstep::model_zoo
