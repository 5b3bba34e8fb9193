// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/stubs/logging.h>

#include <string>
#include <string_view>
#include <vector>

#include "configs/checkpoint.pb.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/job/differences.h"
#include "runtime/job/job.h"
#include "runtime/step/state_fields.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// A state as runs save it, and one of another version.
std::vector<std::string> state_seeds() {
  checkpoint::TrainingState state;
  state.set_step(7);
  state.set_format(1);
  state.mutable_sampler()->set_epoch(1);
  state.mutable_sampler()->set_cursor(96);
  state.add_optimizer("sgd");
  state.add_schedule()->set_applied_steps(6);
  checkpoint::ScalerState& scaler = *state.add_scaler();
  scaler.set_enabled(true);
  scaler.set_scale(65536);
  state.add_bucket_plan()->add_parameter("head.weight");
  state.mutable_job()->set_name("digits");
  state.mutable_job()->mutable_data()->set_global_batch(64);
  state.add_weights_digest("0123456789abcdef");
  const std::string unknown = "\xf2\x3f\x03new";  // field 1022
  return {state.SerializeAsString(), state.SerializeAsString() + unknown, unknown};
}

/// A state file, and what is asked of it before a run resumes.
void fuzz_state(std::string_view bytes) {
  const google::protobuf::LogSilencer silent;  // it prints what it refuses
  try {
    checkpoint::Checkpoint saved;
    saved.state = checkpoint::parse_state(bytes, "state.pb");
    step::unknown_fields(saved.state);
    job::differences(saved.state.job(), job::Job());
    step::require_complete(saved);
  } catch (const StorageError&) {
  }
}

}  // namespace

Target state_target() {
  return {.parse = fuzz_state,
          .seeds = state_seeds(),
          // Groups deeper than a stack, in fields that are not known.
          .hostile = {std::string(1 << 20, '\xcb')}};
}

}  // namespace lockstep::fuzz
