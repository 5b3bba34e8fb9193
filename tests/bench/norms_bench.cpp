// SPDX-License-Identifier: Apache-2.0
// Normalisation, embedding and upsampling, forward and with the backward pass:
//   OMP_NUM_THREADS=1 build/release/bin/norms_bench [NAME...]
// tests/bench/beside_pytorch.py runs it beside PyTorch.

#include <tuple>
#include <utility>

#include "tests/bench/operation_cases.h"

namespace lockstep::bench {
namespace {

using kernels::UpsampleMode;

std::vector<OperationCase> cases() {
  std::vector<OperationCase> all;
  const auto add = [&](const std::string& name, const std::vector<Shape>& inputs, const auto& run) {
    all.push_back({name, inputs, run, inputs.size()});
  };
  for (const auto& [rows, channels] : {std::pair{64, 768}, {512, 768}, {4096, 256}, {2048, 4096}}) {
    const Shape x{rows, channels}, w{channels};
    add("layer_norm/" + dimensions(x), {x, w, w},
        [w](const auto& in) { return ops::layer_norm(in[0], w, in[1], in[2]); });
    add("rms_norm/" + dimensions(x), {x, w}, [w](const auto& in) { return ops::rms_norm(in[0], w, in[1]); });
  }
  for (const auto& [n, side, channels] : {std::tuple{8, 28, 128}, {4, 56, 256}}) {
    const Shape x{n, side, side, channels}, w{channels};
    add("group_norm/" + dimensions(x), {x, w, w},
        [](const auto& in) { return ops::group_norm(in[0], 32, in[1], in[2]); });
    add("instance_norm/" + dimensions(x), {x, w, w},
        [](const auto& in) { return ops::instance_norm(in[0], in[1], in[2]); });
  }
  for (const auto& [n, rows, width] : {std::tuple{4096, 1000, 512}, {4096, 30000, 256}}) {
    add(fmt::format("embedding/{}of{}x{}", n, rows, width), {Shape{rows, width}},
        [at = random_indices({n}, rows)](const auto& in) { return ops::embedding(in[0], at); });
  }
  const auto add_upsample = [&](const std::string& name, const Shape& x, const std::vector<std::int64_t>& to,
                                UpsampleMode mode) {
    add("upsample_" + name + "/" + dimensions(x), {x}, [=](const auto& in) { return ops::upsample(in[0], to, mode); });
  };
  add_upsample("nearest", {8, 32, 32, 64}, {64, 64}, UpsampleMode::kNearest);
  add_upsample("nearest", {8, 64, 64, 3}, {128, 128}, UpsampleMode::kNearest);
  add_upsample("linear", {8, 512, 64}, {1024}, UpsampleMode::kLinear);
  add_upsample("bilinear", {8, 32, 32, 64}, {64, 64}, UpsampleMode::kLinear);
  add_upsample("bilinear", {8, 64, 64, 3}, {128, 128}, UpsampleMode::kLinear);
  add_upsample("trilinear", {2, 16, 16, 16, 32}, {32, 32, 32}, UpsampleMode::kLinear);
  return all;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) { lockstep::bench::measure_all(lockstep::bench::cases(), {argv + 1, argv + argc}); }
