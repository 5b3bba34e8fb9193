// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/matmul_choice.h"

#include <spdlog/spdlog.h>

#include <cstring>
#include <span>

#include "runtime/base/error.h"
#include "runtime/kernels/cuda/plan_machine.h"
#include "runtime/kernels/cuda/timing.h"
#include "runtime/kernels/plan_cache/fastest.h"
#include "runtime/kernels/plan_cache/hex_text.h"
#include "runtime/kernels/plan_cache/timed_choice.h"
#include "runtime/kernels/versions.h"
#include "runtime/tensor/cuda/stream.h"

namespace lockstep::kernels::cuda {

namespace {

using Algorithm = cublasLtMatmulHeuristicResult_t;

/// cuBLASLt's documentation: an algorithm can be kept as its bytes, for the same version of the library.
std::string text_of(const cublasLtMatmulAlgo_t& algorithm) { return hex_of(std::as_bytes(std::span(&algorithm, 1))); }

std::optional<cublasLtMatmulAlgo_t> parse(const std::string& text) {
  cublasLtMatmulAlgo_t algorithm{};
  if (!parse_hex(text, std::as_writable_bytes(std::span(&algorithm, 1)))) return {};
  return algorithm;
}

bool same(const Algorithm& a, const Algorithm& b) { return std::memcmp(&a.algo, &b.algo, sizeof a.algo) == 0; }

/// Milliseconds; nothing where the algorithm does not run.
std::optional<float> time_of(const Timer& timer, const MatmulChoice::Actions& actions, const Algorithm& algorithm) {
  try {
    bool runs = true;
    const float time = timer.milliseconds_of([&] { runs = runs && actions.run(algorithm); });
    if (runs) return time;
  } catch (const MemoryError& error) {  // no room for its workspace
    spdlog::debug("no candidate: {}", error.what());
  }
  return {};
}

}  // namespace

MatmulChoice::MatmulChoice(Device device, const std::string& folder)
    : device_(device),
      machine_(plan_machine("cublas-" + cublas_version(), device)),
      cache_(plan_cache_of(machine_, folder)) {}

void MatmulChoice::order(const MatmulProblem& problem, const Actions& actions, std::vector<Algorithm>& ranked) const {
  if (ranked.empty()) return;
  const std::string key = machine_ + " timed " + key_of(problem);
  const auto measure = [&] {
    const Timer timer(device_);
    std::vector<TimedCandidate> timed;
    for (const Algorithm& each : ranked) timed.push_back({text_of(each.algo), time_of(timer, actions, each)});
    return timed;
  };
  const std::optional<std::string> name =
      timed_choice(cache_, key, is_capturing(gpu::current(device_)) ? Measure() : measure);
  if (!name) return;
  const std::optional<cublasLtMatmulAlgo_t> algorithm = parse(*name);
  const std::optional<Algorithm> chosen = algorithm ? actions.check(*algorithm) : std::nullopt;
  if (chosen) return put_first(ranked, *chosen, same);
  spdlog::warn("ignoring {}: cuBLASLt has no such algorithm for this product here", cache_.path_of(key));
}

}  // namespace lockstep::kernels::cuda
