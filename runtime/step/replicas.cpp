// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/replicas.h"

#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/engine.h"
#include "runtime/autograd/meta.h"
#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"

namespace lockstep::step {

namespace {

void require_like(const std::vector<nn::Parameter>& model, const std::vector<nn::Parameter>& replica) {
  for (std::size_t i = 0; i < model.size() && i < replica.size(); ++i) {
    if (model[i].name == replica[i].name && model[i].tensor.shape() == replica[i].tensor.shape()) continue;
    throw UsageError("a replica has " + replica[i].name + ", " + describe(replica[i].tensor) +
                     ", where the model has " + model[i].name + ", " + describe(model[i].tensor));
  }
  if (model.size() == replica.size()) return;
  throw UsageError("a replica with " + std::to_string(replica.size()) + " parameters of a model with " +
                   std::to_string(model.size()));
}

void copy(const Tensor& from, const Tensor& to) {
  kernels::cast(from, to);
  to.bump_version();
}

/// Adds the replicas' gradients of one parameter in their order; undefined where none has one.
Tensor sum_of_gradients(const std::vector<std::vector<nn::Parameter>>& replicas, std::size_t parameter) {
  Tensor sum;
  for (const std::vector<nn::Parameter>& replica : replicas) {
    const Tensor grad = replica[parameter].tensor.grad();
    if (!grad.defined()) continue;
    if (!sum.defined()) {
      sum = Tensor::empty(grad.shape(), DType::kFloat32, grad.device());
      kernels::cast(grad, sum);
    } else {
      kernels::accumulate(grad, sum);
    }
  }
  return sum;
}

}  // namespace

Replicas::Replicas(nn::Module& model, const std::function<std::unique_ptr<nn::Module>()>& build, std::size_t count)
    : model_(model) {
  if (count == 0) throw UsageError("no replicas");
  for (std::size_t i = 0; i < count; ++i) {
    replicas_.push_back(build());
    require_like(model_.parameters(), replicas_.back()->parameters());
    nn::name_layers(*replicas_.back());  // not by the order in which they were made
  }
  for (const nn::Parameter& parameter : model_.parameters()) {
    if (parameter.tensor.device() == kCpu) continue;
    throw UsageError("replicas of a model on " + str(parameter.tensor.device()) + ", which are for the CPU",
                     "On GPUs start a rank for each.");
  }
}

void Replicas::give_weights(nn::Module& replica) const {
  const std::vector<nn::Parameter> from = model_.parameters(), to = replica.parameters();
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].tensor.dtype() != to[i].tensor.dtype()) {
      throw UsageError(
          "a replica's " + to[i].name + " is " + describe(to[i].tensor) + ", the model's " + describe(from[i].tensor),
          "Give replicas the dtype of the model's weights, by Module::to() where they are built.");
    }
    copy(from[i].tensor, to[i].tensor);
    to[i].tensor.set_requires_grad(from[i].tensor.requires_grad());
    autograd::meta_of(to[i].tensor).grad = {};
  }
  const auto latest = model_.statistics(), theirs = replica.statistics();
  for (std::size_t i = 0; i < latest.size(); ++i) {
    theirs[i].second->commit();
    copy(latest[i].second->latest(), theirs[i].second->committed());
  }
  replica.train(model_.training());
}

std::vector<Tensor> Replicas::backward(const Loss& loss) {
  const amp::Autocast::State state = amp::Autocast::state();
  std::vector<Tensor> losses(size());
  std::vector<std::exception_ptr> errors(size());
  for (const auto& replica : replicas_) give_weights(*replica);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        const amp::Autocast here(state);
        const Tensor own = loss(*replicas_[i], i);
        autograd::backward(own);
        losses[i] = own.detach();
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::jthread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }

  std::vector<std::vector<nn::Parameter>> parameters;
  for (const auto& replica : replicas_) parameters.push_back(replica->parameters());
  std::vector<Tensor> leaves, sums;
  const std::vector<nn::Parameter> mine = model_.parameters();
  for (std::size_t i = mine.size(); i-- > 0;) {  // as a backward pass finishes them
    Tensor sum = sum_of_gradients(parameters, i);
    if (!sum.defined()) continue;
    const Tensor& leaf = mine[i].tensor;
    if (leaf.dtype() != sum.dtype()) {
      const Tensor rounded = Tensor::empty(sum.shape(), leaf.dtype(), sum.device());
      kernels::cast(sum, rounded);
      sum = rounded;
    }
    leaves.push_back(leaf);
    sums.push_back(std::move(sum));
  }
  if (!leaves.empty()) autograd::backward(leaves, sums);
  const auto pending = replicas_.front()->statistics(), statistics = model_.statistics();
  for (std::size_t i = 0; i < statistics.size(); ++i) statistics[i].second->set_pending(pending[i].second->latest());
  return losses;
}

}  // namespace lockstep::step
