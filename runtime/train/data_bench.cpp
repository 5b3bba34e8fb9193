// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/data_bench.h"

#include <sys/resource.h>

#include <algorithm>

#include "runtime/base/cores.h"
#include "runtime/data/description.h"
#include "runtime/data/loader.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"
#include "runtime/job/job.h"

namespace lockstep::train {

namespace {

using Clock = std::chrono::steady_clock;

double core_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

DataSpeed measure(const data::DatasetPtr& dataset, data::LoaderOptions options, std::int64_t threads,
                  std::chrono::duration<double> time) {
  options.decode_threads = threads;
  data::Loader loader(dataset, options);
  // The first batches meet cold caches, and threads that start.
  for (std::int64_t i = 0; i <= options.prefetch; ++i) loader.next();
  DataSpeed speed{.threads = threads};
  const double computed = core_seconds();
  const Clock::time_point begin = Clock::now();
  do {
    speed.samples += loader.next().input.size(0);
    speed.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  } while (speed.seconds < time.count());
  speed.core_seconds = core_seconds() - computed;
  return speed;
}

}  // namespace

DataBench bench_data(const job::Job& job, std::chrono::duration<double> time) {
  const data::DatasetPtr dataset = data::make_dataset(job::data_options(job.data()), data::Split::kTrain);
  data::LoaderOptions options = job::loader_options(job);
  options.accumulate = 1;
  options.prefetch = std::max<std::int64_t>(options.prefetch, 2);
  if (options.decode_threads == 0) {
    options.decode_threads = std::min<std::int64_t>(usable_cores(), data::kMostDefaultDecodeThreads);
  }
  DataBench bench{.sample_shape = data::describe(*dataset).inputs_text(),
                  .samples = dataset->size(),
                  .batch = std::min(options.global_batch, dataset->size()),
                  .speeds = {measure(dataset, options, 1, time)}};
  if (options.decode_threads > 1) bench.speeds.push_back(measure(dataset, options, options.decode_threads, time));
  return bench;
}

}  // namespace lockstep::train
