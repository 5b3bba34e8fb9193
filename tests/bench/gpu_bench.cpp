// SPDX-License-Identifier: Apache-2.0
// What limits a training step on a GPU, and how near our kernels come to it:
//   build/release/bin/gpu_bench [--device cuda|cpu] [--tiny]
// Prints a JSON line a measurement: GB/s of the bytes that must be read and written, or TFLOP/s. Random data: zeros
// cost less power, and so less time. scripts/gpu_check --bench runs it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "runtime/kernels/backend.h"
#include "runtime/tensor/gpu.h"
#include "tests/bench/stopwatch.h"

namespace {

using namespace lockstep;
using kernels::ArenaSegment;
using kernels::ConvGeometry;

class Bench {
 public:
  Bench(Device device, bool tiny) : device_(device), tiny_(tiny), backend_(kernels::backend(device)) {}

  /// Runs everything; whether nothing failed.
  bool run() {
    copy();
    products();
    optimizers();
    batch_norm();
    convolutions();
    attention();
    launch();
    return !failed_;
  }

 private:
  /// `extent`, or a small one to try the program with.
  std::int64_t sized(std::int64_t extent) const { return tiny_ ? std::max<std::int64_t>(extent / 64, 1) : extent; }

  Tensor empty(const Shape& shape, DType dtype) const { return Tensor::empty(shape, dtype, device_); }

  /// Numbers in [-1, 1), the same million over and over.
  Tensor random(const Shape& shape, DType dtype) const {
    constexpr std::int64_t kChunk = std::int64_t{1} << 20;
    const std::int64_t count = shape.numel();
    std::vector<float> values(static_cast<std::size_t>(std::min(count, kChunk)));
    std::uint32_t state = 1;
    for (float& value : values) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
    }
    const auto filled = static_cast<std::int64_t>(values.size());
    const Tensor chunk = empty({filled}, dtype);
    backend_.cast(Tensor::from(values, {filled}).to(device_), chunk);
    const Tensor result = empty({count}, dtype);
    for (std::int64_t at = 0; at < count; at += filled) {
      const std::int64_t end = std::min(at + filled, count);
      result.rows(at, end).copy_from(chunk.rows(0, end - at));
    }
    return result.reshaped(shape);
  }

  double seconds(const std::function<void()>& work) const {
    return bench::seconds_of(device_, work, tiny_ ? 1e-3 : 20e-3, tiny_ ? 3 : 9);
  }

  /// `amount` bytes or operations in units of `unit`, a JSON key.
  void measure(const std::string& name, double amount, const char* unit, const std::function<void()>& work) {
    try {
      const double time = seconds(work);
      const double rate = amount / time * (std::strcmp(unit, "gb_per_s") == 0 ? 1e-9 : 1e-12);
      std::printf("{\"name\": \"%s\", \"us\": %.2f, \"%s\": %.2f}\n", name.c_str(), time * 1e6, unit, rate);
    } catch (const std::exception& error) {
      failed_ = true;
      std::string why = error.what();
      for (char& c : why) {
        if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ') c = ' ';
      }
      std::printf("{\"name\": \"%s\", \"error\": \"%s\"}\n", name.c_str(), why.c_str());
    }
    std::fflush(stdout);
  }

  void copy() {
    const std::int64_t count = sized(std::int64_t{6} << 24);
    const Tensor from = random({count}, DType::kFloat32), to = empty({count}, DType::kFloat32);
    measure("copy", 2.0 * static_cast<double>(from.bytes()), "gb_per_s", [&] { to.copy_from(from); });
    const Tensor half = empty({count}, DType::kFloat16);
    measure("cast float32 to float16", 6.0 * static_cast<double>(count), "gb_per_s",
            [&] { backend_.cast(from, half); });
  }

  /// y = op(a) op(b), [m, k] by [k, n].
  void product(const std::string& name, DType dtype, std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a,
               bool transpose_b) {
    const Tensor a = random(transpose_a ? Shape{k, m} : Shape{m, k}, dtype);
    const Tensor b = random(transpose_b ? Shape{n, k} : Shape{k, n}, dtype);
    const Tensor y = empty({m, n}, dtype);
    measure(name, 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k), "tflop_per_s",
            [&] { backend_.matmul(a, transpose_a, b, transpose_b, {}, false, y); });
  }

  void products() {
    const std::int64_t large = sized(8192), width = sized(4096), batch = sized(512);
    product("matmul 8192 float16", DType::kFloat16, large, large, large, false, true);
    product("matmul 8192 bfloat16", DType::kBFloat16, large, large, large, false, true);
    product("linear 512x4096x4096 forward", DType::kFloat16, batch, width, width, false, true);
    product("linear 512x4096x4096 input gradient", DType::kFloat16, batch, width, width, false, false);
    product("linear 512x4096x4096 weight gradient", DType::kFloat16, width, width, batch, true, false);
  }

  void optimizers() {
    const std::int64_t matrix = sized(4096) * sized(4096), count = 6 * matrix;
    std::vector<ArenaSegment> segments;
    for (std::int64_t i = 0; i < 6; ++i) segments.push_back({i * matrix, (i + 1) * matrix});
    kernels::ArenaSlice slice;
    slice.master = random({count}, DType::kFloat32);
    slice.grad = random({count}, DType::kFloat16);
    slice.copy = empty({count}, DType::kFloat16);
    slice.segments = segments;
    const Tensor scalars = Tensor::from<float>({1.0f, 0.0f, 1e-6f}, {3}).to(device_);
    const Tensor steps = Tensor::from<std::int64_t>({1}, {1}).to(device_);
    const auto* numbers = static_cast<const float*>(scalars.data());
    kernels::StepScalars on_device;
    on_device.inverse_scale = numbers;
    on_device.found_inf = numbers + 1;
    on_device.learning_rate = numbers + 2;
    on_device.steps = static_cast<const std::int64_t*>(steps.data());
    const Tensor flags = empty({6}, DType::kFloat32);
    const Tensor first = Tensor::zeros({count}, DType::kFloat32, device_);
    const Tensor second = Tensor::zeros({count}, DType::kFloat32, device_);

    const auto check = [&] { backend_.check_finite(slice.grad, 0, segments, flags, {}); };
    const auto sgd = [&] { backend_.element_step(slice, kernels::SgdRule{.momentum = 0.9f}, on_device, {first}); };
    const auto adam = [&] { backend_.element_step(slice, kernels::AdamRule{}, on_device, {first, second}); };
    const auto parameters = static_cast<double>(count);
    measure("inf check float16", 2.0 * parameters, "gb_per_s", check);
    // What a parameter must cost: gradient 2, master 8, copy 2, and 8 for each float of state. The check's own pass
    // counts in the time alone.
    measure("sgd momentum", 20.0 * parameters, "gb_per_s", sgd);
    measure("sgd momentum with inf check", 20.0 * parameters, "gb_per_s", [&] { check(), sgd(); });
    measure("adam", 28.0 * parameters, "gb_per_s", adam);
    measure("adam with inf check", 28.0 * parameters, "gb_per_s", [&] { check(), adam(); });
  }

  /// The widest layer of ResNet-50's first stage, batch 256.
  void batch_norm() {
    const Shape shape{sized(256) * 56 * 56, 256};
    const Shape channels{shape[1]};
    const Tensor x = random(shape, DType::kFloat16), dy = random(shape, DType::kFloat16);
    const Tensor y = empty(shape, DType::kFloat16), dx = empty(shape, DType::kFloat16);
    const Tensor a = random(channels, DType::kFloat32), b = random(channels, DType::kFloat32);
    const Tensor c = empty(channels, DType::kFloat32), d = empty(channels, DType::kFloat32);
    const Tensor rows = Tensor::from<float>({static_cast<float>(shape[0])}, {1}).reshaped({}).to(device_);
    const auto bytes = static_cast<double>(x.bytes());
    measure("batch norm statistics", bytes, "gb_per_s", [&] { backend_.batch_norm_statistics(x, c, d); });
    measure("batch norm, add, relu", 3 * bytes, "gb_per_s",
            [&] { backend_.batch_norm_apply(x, a, b, a, b, dy, true, y); });
    measure("batch norm backward sums", 3 * bytes, "gb_per_s",
            [&] { backend_.batch_norm_backward_reduce(x, a, {dy}, {y}, c, d, {}); });
    measure("batch norm backward sums of two gradients", 5 * bytes, "gb_per_s", [&] {
      backend_.batch_norm_backward_reduce(x, a, {dy, x, dx}, {y}, c, d, {});
    });
    measure("batch norm backward", 4 * bytes, "gb_per_s",
            [&] { backend_.batch_norm_backward_apply(x, a, b, a, dy, {y}, a, b, rows, dx); });
  }

  void convolution(const std::string& name, std::int64_t extent, std::int64_t in, std::int64_t out,
                   std::int64_t kernel) {
    ConvGeometry geometry;
    geometry.padding = {kernel / 2, kernel / 2, 0};
    const Tensor x = random({sized(256), extent, extent, in}, DType::kFloat16);
    const Tensor weight = random({out, kernel, kernel, in}, DType::kFloat16);
    const Tensor y = empty(conv_output_shape(x.shape(), weight.shape(), geometry), DType::kFloat16);
    const Tensor dy = random(y.shape(), DType::kFloat16), dx = empty(x.shape(), DType::kFloat16);
    const Tensor dweight = empty(weight.shape(), DType::kFloat16);
    const double operations = 2.0 * static_cast<double>(y.numel()) * static_cast<double>(kernel * kernel * in);
    measure(name + " forward", operations, "tflop_per_s", [&] { backend_.conv_forward(geometry, x, weight, {}, y); });
    measure(name + " input gradient", operations, "tflop_per_s",
            [&] { backend_.conv_backward(geometry, x, weight, dy, dx, {}, {}, false); });
    measure(name + " weight gradient", operations, "tflop_per_s",
            [&] { backend_.conv_backward(geometry, x, weight, dy, {}, dweight, {}, false); });
  }

  /// Of ResNet-50, batch 256: what limits them is memory in the first, arithmetic in the last.
  void convolutions() {
    convolution("conv 1x1 64 to 256 at 56", 56, 64, 256, 1);
    convolution("conv 3x3 64 at 56", 56, 64, 64, 3);
    convolution("conv 3x3 128 at 28", 28, 128, 128, 3);
    convolution("conv 1x1 1024 to 256 at 14", 14, 1024, 256, 1);
    convolution("conv 3x3 512 at 7", 7, 512, 512, 3);
  }

  /// Of GPT-2's heads, 8 texts; causal, so half the products count. cuDNN computes it, and our own kernels on tensor
  /// cores where there is a mask, here one that lets everything pass, or dropout.
  void attention() {
    const std::int64_t texts = sized(8), length = sized(1024);
    const Shape shape{texts, 12, length, 64};
    const Tensor q = random(shape, DType::kBFloat16), k = random(shape, DType::kBFloat16);
    const Tensor v = random(shape, DType::kBFloat16), dout = random(shape, DType::kBFloat16);
    const Tensor out = empty(shape, DType::kBFloat16), dq = empty(shape, DType::kBFloat16);
    const Tensor dk = empty(shape, DType::kBFloat16), dv = empty(shape, DType::kBFloat16);
    const Tensor norms = empty({texts, 12, length, 2}, DType::kFloat32);
    const Tensor everything = empty({1, 1, 1, length}, DType::kBool);
    backend_.fill(everything, 1);
    const double product = static_cast<double>(q.numel()) * static_cast<double>(length);
    for (const std::string with : {"", ", a mask,", ", dropout,"}) {
      kernels::AttentionScores scores{.scale = 0.125, .causal = true};
      if (with == ", a mask,") scores.mask = everything;
      if (with == ", dropout,") {
        scores.dropout = {.p = 0.1, .key = {.seed = 1}, .elements_of_sample = 12 * length * length};
      }
      const std::string name = "attention 8x12x1024x64" + with;
      measure(name + " forward", 2 * product, "tflop_per_s", [&] { backend_.attention(q, k, v, scores, out, norms); });
      measure(name + " backward", 5 * product, "tflop_per_s",
              [&] { backend_.attention_backward(q, k, v, scores, out, norms, dout, dq, dk, dv); });
    }
  }

  /// A kernel that does next to nothing: what each one costs that no graph launches.
  void launch() {
    const Tensor one = empty({1}, DType::kFloat32);
    const double time = bench::seconds_of(
        device_, [&] { backend_.fill(one, 1.0); }, 5e-3, 9);
    std::printf("{\"name\": \"small kernel, one after the other\", \"us\": %.2f}\n", time * 1e6);
  }

  Device device_;
  bool tiny_;
  const kernels::Backend& backend_;
  bool failed_ = false;
};

int usage() {
  std::fprintf(stderr, "usage: gpu_bench [--device cuda|cpu] [--tiny]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Device device{DeviceType::kCuda, 0};
  bool tiny = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--tiny") {
      tiny = true;
    } else if (word == "--device" && i + 1 < argc) {
      const std::string name = argv[++i];
      if (name != "cuda" && name != "cpu") return usage();
      if (name == "cpu") device = kCpu;
    } else {
      return usage();
    }
  }
  if (device != kCpu && gpu::device_count() == 0) {
    std::fprintf(stderr, "gpu_bench: %s\n", gpu::why_none().c_str());
    return 3;
  }
  try {
    return Bench(device, tiny).run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_bench: %s\n", error.what());
    return 1;
  }
}
