// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <any>
#include <string_view>
#include <vector>

#include "runtime/autograd/record_observer.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

/// While it lives, the results and the gradients of this thread's operations are searched for NaN. The search waits for
/// the GPU, so it is slow: use it for debugging. An operation whose result has the first NaN throws NumericsError; so
/// does a backward pass, naming the operation whose backward made it. Infinities pass. A loss scale under which float16
/// overflows makes infinities that become NaN later: search with a scale of 1.
///
/// Guards end in the reverse order of their making.
class [[nodiscard]] DetectAnomaly : private RecordObserver {
 public:
  [[nodiscard]] DetectAnomaly();
  ~DetectAnomaly() override;
  DetectAnomaly(const DetectAnomaly&) = delete;
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;

  /// Whether one lives on this thread.
  [[nodiscard]] static bool enabled();

  /// The gradients that `backward`, an operation's, returns for its inputs, undefined where there is none. Where one
  /// lives, throws NumericsError that names the operation if a gradient has a NaN; the operations of which the backward
  /// is made are not searched.
  template <class Backward>
  static std::vector<Tensor> searched(std::string_view operation, Backward&& backward) {
    if (!enabled()) return backward();
    const WithinBackward within;
    std::vector<Tensor> gradients = backward();
    search_gradients(operation, gradients);
    return gradients;
  }

 private:
  /// While it lives, the results of this thread's operations are not searched.
  class WithinBackward {
   public:
    WithinBackward();
    ~WithinBackward();
    WithinBackward(const WithinBackward&) = delete;
    WithinBackward& operator=(const WithinBackward&) = delete;

   private:
    bool outer_;
  };

  static void search_gradients(std::string_view operation, const std::vector<Tensor>& gradients);
  void recorded(std::string_view name, const std::vector<Tensor>& results, const std::vector<Tensor>& inputs) override;
  void noted(const Tensor& result, const std::any& options, const std::vector<Tensor>& others) override;
  void placed(const Node& node) override;
  void backward_begins(const Node& node) override;
  void backward_ends(const Node& node) override;

  RecordObserver* outer_;
  bool outer_enabled_;
};

}  // namespace lockstep::autograd
