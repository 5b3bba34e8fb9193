// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/check_given.h"

namespace lockstep::job {

std::string problem_of_extents(const google::protobuf::Message& message,
                               const google::protobuf::FieldDescriptor& field) {
  const int count = message.GetReflection()->FieldSize(message, &field);
  if (count == 0 || extents_in(message, field)) return {};
  if (count > Shape::kMaxRank) return "must be of at most " + std::to_string(Shape::kMaxRank) + " extents";
  return "has more elements than can be counted";
}

}  // namespace lockstep::job
