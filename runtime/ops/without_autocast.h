// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "amp/autocast/autocast.h"

namespace lockstep::ops {

/// While it lives, the operations that another one is made of run in the dtypes that it hands them: it has asked its
/// own row of the policy.
class [[nodiscard]] WithoutAutocast {
 public:
  [[nodiscard]] WithoutAutocast() = default;

 private:
  amp::Autocast off_{false};
};

}  // namespace lockstep::ops
