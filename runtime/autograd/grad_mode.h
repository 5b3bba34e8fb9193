// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::autograd {

/// Whether this thread records operations for backward; true unless a guard says otherwise.
bool grad_enabled();

/// Sets recording on this thread while it lives.
class GradMode {
 public:
  explicit GradMode(bool enabled);
  ~GradMode();
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool previous_;
};

/// Operations in its scope are not recorded.
class NoGrad : public GradMode {
 public:
  NoGrad() : GradMode(false) {}
};

}  // namespace lockstep::autograd
