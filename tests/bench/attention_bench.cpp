// SPDX-License-Identifier: Apache-2.0
// Attention, as lines NAME DTYPE FORWARD BOTH in milliseconds of processor time, BOTH with the backward pass:
//   OMP_NUM_THREADS=1 build/release/bin/attention_bench [NAME...]
// A name is full/BxHxTxC or causal/BxHxTxC, of any sizes. tests/bench/beside_pytorch.py runs it beside PyTorch.

#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/kernels/attention.h"
#include "tests/bench/stopwatch.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::kernels {
namespace {

struct Problem {
  std::int64_t batch, heads, length, channels;
  bool causal;

  explicit Problem(const std::string& name) : causal(name.starts_with("causal/")) {
    const char* sizes = name.c_str() + name.find('/') + 1;
    if (std::sscanf(sizes, "%" SCNd64 "x%" SCNd64 "x%" SCNd64 "x%" SCNd64, &batch, &heads, &length, &channels) != 4) {
      throw UsageError("attention_bench: " + name + " is not full/BxHxTxC or causal/BxHxTxC");
    }
  }
};

void measure(const std::string& name, DType dtype) {
  const Problem problem(name);
  const Shape shape{problem.batch, problem.heads, problem.length, problem.channels};
  const auto tensor = [&](std::uint32_t seed) { return testing::random_tensor(shape, dtype, seed); };
  const Tensor q = tensor(1), k = tensor(2), v = tensor(3), dout = tensor(4);
  const Tensor out = tensor(5), dq = tensor(6), dk = tensor(7), dv = tensor(8);
  const Tensor norms = Tensor::empty({problem.batch, problem.heads, problem.length, 2}, DType::kFloat32);
  const AttentionScores scores{.scale = 1.0 / std::sqrt(static_cast<double>(problem.channels)),
                               .causal = problem.causal};
  const Attention& cpu = Attention::on(kCpu);
  const auto forward = [&] { cpu.attention(q, k, v, scores, out, norms); };
  const auto both = [&] {
    forward();
    cpu.attention_backward(q, k, v, scores, out, norms, dout, dq, dk, dv);
  };
  std::printf("%s %s %.6f %.6f\n", name.c_str(), std::string(name_of(dtype)).c_str(), bench::milliseconds_of(forward),
              bench::milliseconds_of(both));
}

}  // namespace
}  // namespace lockstep::kernels

int main(int argc, char** argv) {
  using namespace lockstep;
  std::vector<std::string> names(argv + 1, argv + argc);
  if (names.empty()) names = {"full/2x4x512x64", "causal/2x4x512x64"};
  for (const std::string& name : names) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      kernels::measure(name, dtype);
    }
  }
}
