// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/train/record/tensorboard.h"
#include "runtime/train/record/tf_record.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// Events of TensorBoard, each a record's payload: a version, and a point of step 300.
std::vector<std::string> events_seeds() {
  const std::string time = "\x09" + std::string(8, '\x40');
  return {time + "\x1a\x0d" + "brain.Event:2",
          time + "\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04" + "loss\x15" + std::string("\0\0\0\x3f", 4)};
}

/// As a file of TensorBoard's, and as an event in one, behind checksums that fit. What stays stays again.
void fuzz_events(std::string_view bytes) {
  const std::string record = tf_record(bytes);
  for (const std::string_view file : {bytes, std::string_view(record)}) {
    const std::string kept = events_up_to(file, 7);
    if (events_up_to(kept, 7) != kept) std::abort();
  }
}

bool is_one_record(const std::string& seed) { return tf_records_in(tf_record(seed)).size() == 1; }

}  // namespace

Target events_target() { return {.parse = fuzz_events, .seeds = events_seeds(), .is_valid = is_one_record}; }

}  // namespace lockstep::fuzz
