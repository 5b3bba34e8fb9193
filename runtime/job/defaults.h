// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace google::protobuf {
class Message;
}

namespace lockstep::job {

class Job;

/// Writes the defaults that job.proto names into every field that has no value, so that the job says all that a run
/// does. Paths of data are made absolute against `folder`; the name defaults to `file`'s stem. What follows only from
/// the data (numbers of classes, outputs) and what is off when absent (clip_norm, max_pool) stays unset.
void fill_defaults(Job& job, const std::filesystem::path& file, const std::filesystem::path& folder);

/// The part of it that depends on no other field: constants, in the message and in those inside of it. What an option
/// struct describes has its defaults.
void fill_constants(google::protobuf::Message& message);

}  // namespace lockstep::job
