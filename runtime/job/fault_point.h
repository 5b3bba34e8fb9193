// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::job {

class Fault;
class FaultPoint;

/// Where a fault is to happen; null where its kind is not named.
const FaultPoint* point_of(const Fault& fault);

}  // namespace lockstep::job
