// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/floors.h"

#include <algorithm>

#include "runtime/kernels/assign.h"
#include "runtime/kernels/cpu/peak.h"
#include "runtime/kernels/cpu/threads.h"
#include "runtime/kernels/matmul.h"
#include "runtime/tensor/stream.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFloorTime{60};
constexpr std::int64_t kLargeProduct = 1024;

/// 0 where the processor has no such instruction.
double operations_per_second(const cpu::Peak& peak) {
  if (peak.run == nullptr) return 0;
  const int threads = cpu::threads();
  const auto on_all = [&] { cpu::on_all_threads([&] { peak.run(0.5f); }); };
  return static_cast<double>(threads) * peak.operations / shortest_seconds(on_all, kCpu, kFloorTime);
}

}  // namespace

double shortest_seconds(const std::function<void()>& run, Device device, std::chrono::milliseconds time) {
  const Stream stream = Stream::current(device);
  const auto finished = [&] {
    run();
    stream.synchronize();
  };
  finished();  // plans, memory and threads
  Clock::duration least = Clock::duration::max();
  for (const auto end = Clock::now() + time; least == Clock::duration::max() || Clock::now() < end;) {
    const auto begin = Clock::now();
    finished();
    least = std::min(least, Clock::now() - begin);
  }
  return std::chrono::duration<double>(least).count();
}

double seconds_of_product(DType dtype, std::int64_t size, Device device, std::chrono::milliseconds time) {
  const MatrixProducts& matrix_products = MatrixProducts::on(device);
  const Tensor ones = Tensor::empty({size, size}, dtype, device);
  const Tensor product = Tensor::empty({size, size}, dtype, device);
  fill(ones, 1.0);
  return shortest_seconds([&] { matrix_products.matmul(ones, false, ones, false, {}, false, product); }, device, time);
}

double product_floor(DType dtype, Device device) {
  const double size = kLargeProduct;
  const double product = 2 * size * size * size / seconds_of_product(dtype, kLargeProduct, device, kFloorTime);
  if (device != kCpu) return product;
  double loop = operations_per_second(cpu::float32_peak());
  if (dtype == DType::kBFloat16) loop = std::max(loop, operations_per_second(cpu::bfloat16_peak()));
  return std::max(product, loop);
}

double copy_floor(std::int64_t bytes, Device device) {
  const auto numbers = bytes / static_cast<std::int64_t>(sizeof(float));
  const Tensor from = Tensor::empty({numbers}, DType::kFloat32, device);
  const Tensor to = Tensor::empty({numbers}, DType::kFloat32, device);
  fill(from, 1.0);
  return 2.0 * static_cast<double>(from.bytes()) / shortest_seconds([&] { cast(from, to); }, device, kFloorTime);
}

}  // namespace lockstep::kernels
