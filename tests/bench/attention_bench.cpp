// SPDX-License-Identifier: Apache-2.0
// Attention on one thread of the CPU, in milliseconds, forward and forward with backward; pytorch_attention.py runs it
// beside PyTorch's:
//   OMP_NUM_THREADS=1 build/release/bin/attention_bench [BATCH HEADS T CHANNELS]

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "runtime/kernels/backend.h"
#include "tests/bench/stopwatch.h"
#include "tests/runtime/kernels/kernel_fixture.h"

namespace lockstep::kernels {
namespace {

/// Median of the processor's time, which other programs beside this one change less than they do the clock's.
double milliseconds_of(const std::function<void()>& run) {
  constexpr int kRuns = 15;
  run();
  std::vector<double> times;
  for (int i = 0; i < kRuns; ++i) {
    const std::clock_t start = std::clock();
    run();
    times.push_back(1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return bench::median(times);
}

struct Problem {
  std::int64_t batch = 2, heads = 4, length = 512, channels = 64;
};

void measure(const Problem& problem, DType dtype, bool causal) {
  const Shape shape{problem.batch, problem.heads, problem.length, problem.channels};
  const auto tensor = [&](std::uint32_t seed) { return testing::random_tensor(shape, dtype, seed); };
  const Tensor q = tensor(1), k = tensor(2), v = tensor(3), dout = tensor(4);
  const Tensor out = tensor(5), dq = tensor(6), dk = tensor(7), dv = tensor(8);
  const Tensor log_sum_exp = Tensor::empty({problem.batch, problem.heads, problem.length}, DType::kFloat32);
  const AttentionScores scores{.scale = 1.0 / std::sqrt(static_cast<double>(problem.channels)), .causal = causal};
  const Backend& cpu = backend(kCpu);
  const auto forward = [&] { cpu.attention(q, k, v, scores, out, log_sum_exp); };
  const auto both = [&] {
    forward();
    cpu.attention_backward(q, k, v, scores, out, log_sum_exp, dout, dq, dk, dv);
  };
  std::printf("%s %s %.4f %.4f\n", std::string(name_of(dtype)).c_str(), causal ? "causal" : "full",
              milliseconds_of(forward), milliseconds_of(both));
}

}  // namespace
}  // namespace lockstep::kernels

int main(int argc, char** argv) {
  using namespace lockstep;
  kernels::Problem problem;
  if (argc == 5) {
    problem = {std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4])};
  }
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const bool causal : {false, true}) kernels::measure(problem, dtype, causal);
  }
  return 0;
}
