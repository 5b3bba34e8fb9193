// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::autograd {

/// Whether this thread records operations for backward; true unless a guard says otherwise.
[[nodiscard]] bool grad_enabled();

/// Sets recording on this thread while it lives.
class [[nodiscard]] GradMode {
 public:
  [[nodiscard]] explicit GradMode(bool enabled);
  ~GradMode();
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool previous_;
};

/// Operations in its scope are not recorded.
class [[nodiscard]] NoGrad : public GradMode {
 public:
  [[nodiscard]] NoGrad() : GradMode(false) {}
};

}  // namespace lockstep::autograd
