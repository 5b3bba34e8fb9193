// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "amp/autocast/autocast.h"

namespace lockstep::ops {

/// While it lives, the operations that another one is made of run in the dtypes that it hands them: it has asked its
/// own row of the policy.
class WithoutAutocast {
 private:
  amp::Autocast off_{false};
};

/// float32 for the 16-bit dtypes, else the dtype: in what an operation of several steps computes between them.
inline DType wide_of(DType dtype) { return is_reduced(dtype) ? DType::kFloat32 : dtype; }

}  // namespace lockstep::ops
