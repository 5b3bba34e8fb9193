// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/range.h"

namespace lockstep::data {

Range share(Range whole, std::int64_t index, std::int64_t parts) {
  return {whole.begin + index * whole.size() / parts, whole.begin + (index + 1) * whole.size() / parts};
}

}  // namespace lockstep::data
