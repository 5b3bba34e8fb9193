// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

/// How fast training samples come with some number of decode threads.
struct DataSpeed {
  std::int64_t threads = 1;
  std::int64_t samples = 0;
  double seconds = 0;
  double core_seconds = 0;  ///< that the process computed

  double samples_per_second() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }
  /// Samples per second of one core that does nothing else, whatever else the machine does.
  double samples_per_core_second() const { return core_seconds > 0 ? static_cast<double>(samples) / core_seconds : 0; }
};

struct DataBench {
  std::string sample_shape;
  std::int64_t samples = 0;  ///< of the data set
  std::int64_t batch = 0;
  std::vector<DataSpeed> speeds;  ///< with one thread, and with the job's decode_threads where they are more
};

/// Draws a job's training samples, as a lone rank gets them, without a model: read, decoded, augmented, normalised, in
/// batches; for about `time` with each number of threads. Throws what training throws of its data.
DataBench bench_data(const job::Job& job, std::chrono::duration<double> time);

}  // namespace lockstep::train
