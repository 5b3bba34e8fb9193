// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/optim/optimizer.h"

namespace lockstep::optim {

/// A number that an optimizer keeps of each element.
struct ElementState {
  std::string name;  ///< as checkpoints have it
  double start = 0;
};

/// Options of an optimizer whose rule looks at each element alone: besides what options of optimizers have, they say
/// the rule, and its states in the rule's order.
template <class Options>
concept ElementOptions = requires(const Options& options) {
  { rule_of(options) } -> std::convertible_to<ElementRule>;
  { states_of(options) } -> std::same_as<std::vector<ElementState>>;
};

/// The optimizer of such a rule.
class ElementOptimizer : public Optimizer {
 public:
  /// Throws FieldError for an option out of range, for LARC around a rule that does not take it, and for a group that
  /// matches no parameter.
  template <ElementOptions Options>
  ElementOptimizer(std::vector<nn::Parameter> parameters, const Options& options, const OptimizerOptions& more = {})
      : Optimizer(std::move(parameters), options, takes_larc<Options>() ? more : without_larc(more)),
        name_(Options::kKind),
        rule_(rule_of(options)),
        element_states_(states_of(options)) {}

  std::string name() const override { return name_; }
  std::vector<std::string> state_names() const override;

 protected:
  void allocate_state() override;
  void update(const ArenaSlice& slice, const StepScalars& scalars) override;

 private:
  std::string name_;
  ElementRule rule_;
  std::vector<ElementState> element_states_;
  std::vector<Tensor> tensors_;  ///< of element_states_
};

}  // namespace lockstep::optim
