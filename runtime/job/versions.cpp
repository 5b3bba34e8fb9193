// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/versions.h"

#include <google/protobuf/stubs/common.h>

namespace lockstep::job {

std::string protobuf_version() { return google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION); }

}  // namespace lockstep::job
