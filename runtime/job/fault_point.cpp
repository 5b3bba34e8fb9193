// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/fault_point.h"

#include "configs/job.pb.h"

namespace lockstep::job {

const FaultPoint* point_of(const Fault& fault) {
  switch (fault.kind_case()) {
    case Fault::kOverflow:
      return &fault.overflow();
    case Fault::kNan:
      return &fault.nan();
    case Fault::kKill:
      return &fault.kill();
    case Fault::kStop:
      return &fault.stop();
    case Fault::kDelay:
      return &fault.delay();
    case Fault::kBitFlip:
      return &fault.bit_flip();
    case Fault::KIND_NOT_SET:
      return nullptr;
  }
  return nullptr;
}

}  // namespace lockstep::job
