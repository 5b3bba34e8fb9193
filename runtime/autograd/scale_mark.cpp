// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/scale_mark.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "runtime/autograd/node.h"
#include "runtime/base/error.h"

namespace lockstep::autograd {

namespace {

bool scales(const Node& node) { return node.on_losses() == OnLosses::kScales; }

/// Whether any operation below has multiplied a loss by a scale.
bool is_scaled_below(const Node& node) {
  std::unordered_set<const Node*> seen{&node};
  std::vector<const Node*> open{&node};
  while (!open.empty()) {
    const Node& next = *open.back();
    open.pop_back();
    if (scales(next)) return true;
    for (const std::shared_ptr<Meta>& input : next.inputs()) {
      if (input && input->producer && seen.insert(input->producer.get()).second) open.push_back(input->producer.get());
    }
  }
  return false;
}

/// The addends of the losses that a pass begins with.
struct Addends {
  bool scaled = false;
  bool unknown = false;
  std::vector<const Node*> plain;  ///< unless they are scaled below

  explicit Addends(const std::vector<std::shared_ptr<Meta>>& roots) {
    for (const std::shared_ptr<Meta>& root : roots) add(root.get(), false);
    while (!open_.empty()) {
      const auto [node, multiplied] = open_.back();
      open_.pop_back();
      visit(*node, multiplied);
    }
  }

 private:
  void add(const Meta* meta, bool multiplied) {
    if (meta == nullptr) return;
    if (!meta->producer) {
      unknown = true;
    } else if (seen_.insert(meta->producer.get()).second) {
      open_.emplace_back(meta->producer.get(), multiplied);
    }
  }

  void visit(const Node& node, bool multiplied) {
    const std::vector<std::shared_ptr<Meta>>& inputs = node.inputs();
    const auto recorded = std::ranges::count_if(inputs, [](const auto& input) { return input != nullptr; });
    switch (node.on_losses()) {
      case OnLosses::kScales:
        scaled = true;
        return;
      case OnLosses::kUnknown:
        unknown = true;
        return;
      case OnLosses::kAdds:
        for (const std::shared_ptr<Meta>& input : inputs) add(input.get(), multiplied);
        return;
      case OnLosses::kMultiplies:
        if (recorded > 1) break;
        // The number may be the user's own loss scale, so a loss without a scaler's is of an unknown one.
        for (const std::shared_ptr<Meta>& input : inputs) add(input.get(), true);
        return;
      case OnLosses::kMakes:
        break;
    }
    if (multiplied) {
      unknown = true;
    } else {
      plain.push_back(&node);
    }
  }

  std::unordered_set<const Node*> seen_;
  std::vector<std::pair<const Node*, bool>> open_;
};

}  // namespace

ScaleMark mark_of_sum(ScaleMark one, ScaleMark other) {
  if (one == other || other == kUnknownScale) return one;
  if (one == kUnknownScale) return other;
  const auto either = [&](ScaleMark mark) { return one == mark || other == mark; };
  return either(kPlain) || either(kScaledAndPlain) ? kScaledAndPlain : kTwoScales;
}

ScaleMark mark_of_losses(const std::vector<std::shared_ptr<Meta>>& roots,
                         const std::vector<std::shared_ptr<Node>>& order) {
  const bool any = std::ranges::any_of(order, [](const auto& node) { return scales(*node); });
  // The usual pass: its loss is scaled, as a whole.
  if (any && roots.size() == 1 && roots[0]->producer && scales(*roots[0]->producer)) return kUnknownScale;
  const Addends addends(roots);
  if (!any) return addends.plain.empty() || addends.unknown ? kUnknownScale : kPlain;
  const auto is_plain = [](const Node* node) { return !is_scaled_below(*node); };
  return addends.scaled && std::ranges::any_of(addends.plain, is_plain) ? kScaledAndPlain : kUnknownScale;
}

bool enter_slot(Meta& leaf, ScaleMark mark) {
  leaf.require_scaled();
  const std::uint64_t scaler = scaler_in(leaf.slot_mark);
  if (scaler != 0 && scaler_in(mark) != 0 && scaler_in(mark) != scaler) leaf.refuse_scaler();
  leaf.slot_mark = mark_of_sum(leaf.slot_mark, mark);
  ++leaf.slot_gradients;
  if (leaf.shown.defined()) leaf.slot.bump_version();  // a graph may need what grad() has shown
  return std::exchange(leaf.slot_filled, true);
}

void require_unscaled(const Tensor& leaf, std::string_view operation, std::string_view advice) {
  const Meta* meta = leaf.autograd_meta().get();
  if (meta == nullptr || meta->slot_unscaled || meta->slot_mark <= kPlain) return;
  throw UsageError(std::string(operation) + ": the gradient of " + (meta->name.empty() ? "a parameter" : meta->name) +
                       " is multiplied by a GradScaler's loss scale",
                   std::string(advice));
}

}  // namespace lockstep::autograd
