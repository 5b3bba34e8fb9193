// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/any_optimizer.h"

#include <type_traits>
#include <utility>

#include "runtime/optim/lamb.h"
#include "runtime/optim/lars.h"
#include "runtime/optim/novograd.h"

namespace lockstep::optim {

namespace {

/// The class that an option struct makes.
template <class Options>
struct Made : std::type_identity<ElementOptimizer> {};
template <>
struct Made<LambOptions> : std::type_identity<Lamb> {};
template <>
struct Made<NovogradOptions> : std::type_identity<Novograd> {};
template <>
struct Made<LarsOptions> : std::type_identity<Lars> {};

}  // namespace

std::unique_ptr<Optimizer> make(std::vector<nn::Parameter> parameters, const AnyOptions& kind,
                                const OptimizerOptions& more) {
  return std::visit(
      [&]<class Options>(const Options& options) -> std::unique_ptr<Optimizer> {
        return std::make_unique<typename Made<Options>::type>(std::move(parameters), options, more);
      },
      kind);
}

FieldProblems problems_beside(const AnyOptions& kind, const OptimizerOptions& more) {
  const bool takes = std::visit([]<class Options>(const Options&) { return takes_larc<Options>(); }, kind);
  return takes ? FieldProblems() : problems_without_larc(more);
}

}  // namespace lockstep::optim
