// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/backend.h"

#include "runtime/kernels/backend.h"
#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/isa.h"

namespace lockstep::kernels {

const Backend& cpu_backend() {
  // Before any primitive of oneDNN is made: the instruction set that it may use is fixed then.
  static const cpu::Isa before_any_primitive = cpu::isa();
  static_cast<void>(before_any_primitive);
  static const Backend backend{
      cpu::kElementwise,   cpu::kPointwise,     cpu::kReductions, cpu::kMatrixProducts, cpu::kConvolution,
      cpu::kPooling,       cpu::kSoftmax,       cpu::kLosses,     cpu::kAttention,      cpu::kBatchNormalization,
      cpu::kNormalization, cpu::kEmbedding,     cpu::kUpsampling, cpu::kArenaSteps,     cpu::kDecisions,
      cpu::kMovement,      cpu::kDimReductions, cpu::kScans,      cpu::kIndexing,       "cpu"};
  return backend;
}

}  // namespace lockstep::kernels
