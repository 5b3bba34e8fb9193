// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/conv_choice.h"

#include <cuda_runtime_api.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <vector>

#include "runtime/kernels/versions.h"
#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/cuda/stream.h"
#include "runtime/tensor/error.h"
#include "runtime/tensor/gpu_waits.h"

namespace lockstep::kernels::cuda {

namespace {

/// Past the first few, engines of the ranking are seldom faster, and some take a second to build.
constexpr std::size_t kCandidates = 8;
/// How much faster than a better ranked engine one must be: less is noise.
constexpr float kGain = 0.97f;

std::string name_of(Device device) {
  const gpu::Description found = gpu::describe(device);
  return "cudnn-" + cudnn_version() + "-" + found.name + "-sm" + std::to_string(found.compute_capability) + "-" +
         std::to_string(found.multiprocessors);
}

/// As the name of a folder.
std::string folder_of(const PlanSettings& settings, std::string name) {
  if (settings.folder.empty()) return "";
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-'; }, '_');
  return settings.folder + "/" + name;
}

class Timer {
 public:
  explicit Timer(cudaStream_t stream) : stream_(stream) {
    gpu::check(cudaEventCreate(&begin_), "cudaEventCreate");
    gpu::check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~Timer() {
    if (begin_ != nullptr) cudaEventDestroy(begin_);
    if (end_ != nullptr) cudaEventDestroy(end_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Milliseconds that the device needs for one of `runs` calls of `run`.
  template <class Run>
  float measure(int runs, Run run) const {
    gpu::check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    for (int i = 0; i < runs; ++i) run();
    gpu::check(cudaEventRecord(end_, stream_), "cudaEventRecord");
    gpu::count_host_wait();
    gpu::check(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float milliseconds = 0;
    gpu::check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return milliseconds / static_cast<float>(runs);
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

/// The best of a few rounds of about a millisecond: whatever disturbs one only makes it longer.
template <class Run>
float milliseconds_of(const Timer& timer, Run run) {
  timer.measure(1, run);  // loads the kernels
  const int runs = std::clamp(static_cast<int>(1.0f / std::max(timer.measure(1, run), 1e-3f)), 1, 50);
  float best = std::numeric_limits<float>::max();
  for (int round = 0; round < 3; ++round) best = std::min(best, timer.measure(runs, run));
  return best;
}

bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  gpu::check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace

ConvChoice::ConvChoice(Device device) : ConvChoice(device, plan_settings()) {}

ConvChoice::ConvChoice(Device device, const PlanSettings& settings)
    : device_(device), autotune_(settings.autotune), machine_(name_of(device)), cache_(folder_of(settings, machine_)) {}

std::unique_ptr<ConvGraph> ConvChoice::kept(cudnnHandle_t handle, const ConvProblem& problem,
                                            const std::string& key) const {
  const std::optional<std::string> name = cache_.find(key);
  if (!name) return nullptr;
  std::unique_ptr<ConvGraph> plan = ConvGraph::named(handle, problem, *name);
  if (!plan) spdlog::warn("ignoring {}: no engine {} computes it here", cache_.path_of(key), *name);
  return plan;
}

std::unique_ptr<ConvGraph> ConvChoice::choose(cudnnHandle_t handle, const ConvProblem& problem,
                                              const ConvData& data) const {
  if (autotune_) {
    if (auto plan = timed(handle, problem, data)) return plan;
  }
  const std::string key = machine_ + " ranked " + key_of(problem);
  if (auto plan = kept(handle, problem, key)) return plan;
  auto plans = ConvGraph::ranked(handle, problem, 1);
  if (plans.empty()) return nullptr;
  if (!plans.front()->name().empty()) cache_.keep(key, plans.front()->name());
  return std::move(plans.front());
}

std::unique_ptr<ConvGraph> ConvChoice::timed(cudnnHandle_t handle, const ConvProblem& problem,
                                             const ConvData& data) const {
  const std::string key = machine_ + " timed " + key_of(problem);
  if (auto plan = kept(handle, problem, key)) return plan;
  const cudaStream_t stream = gpu::current(device_);
  if (is_capturing(stream)) return nullptr;
  const Timer timer(stream);
  float first = 0;
  float best = 0;
  std::string name;
  for (const auto& plan : ConvGraph::ranked(handle, problem, kCandidates)) {
    if (plan->name().empty()) continue;
    float time = 0;
    try {
      time = milliseconds_of(timer, [&] { plan->run(handle, data, device_); });
    } catch (const Error& error) {  // one that needs more memory than there is, for example
      spdlog::debug("{} is no candidate: {}", plan->name(), error.what());
      continue;
    }
    if (name.empty()) first = time;
    if (!name.empty() && time >= kGain * best) continue;
    best = time;
    name = plan->name();
  }
  if (name.empty()) return nullptr;
  const std::optional<std::string> agreed = cache_.keep(key, name);
  if (!agreed) return nullptr;
  spdlog::info("{}, {}: {} takes {:.1f} us, cuDNN's first choice {:.1f} us{}", str(device_), key_of(problem), name,
               1000 * best, 1000 * first, *agreed == name ? "" : "; another process was first to choose " + *agreed);
  return ConvGraph::named(handle, problem, *agreed);
}

}  // namespace lockstep::kernels::cuda
