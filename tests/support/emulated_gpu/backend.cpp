// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/backend.h"

#include <functional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/kernels/cpu/backend.h"
#include "runtime/kernels/cuda_backend.h"
#include "runtime/kernels/versions.h"
#include "runtime/tensor/gpu.h"
#include "tests/support/emulated_gpu/emulation.h"

namespace lockstep::kernels {

namespace {

/// An argument that its stream reads later, when the caller's may be gone. get() is what the CPU's function takes.
template <class T>
struct Kept {
  explicit Kept(const T& argument) : value(argument) {}
  const T& get() const { return value; }
  T value;
};

template <>
struct Kept<Tensor> {
  explicit Kept(const Tensor& argument) : value(gpu::emulation::on_host(argument)) {}
  const Tensor& get() const { return value; }
  Tensor value;
};

template <>
struct Kept<Heads> {
  explicit Kept(const Heads& argument) : value(argument.of(gpu::emulation::on_host(argument.tensor()))) {}
  const Heads& get() const { return value; }
  Heads value;
};

template <>
struct Kept<Epilogue> {
  explicit Kept(const Epilogue& argument) : value(argument) {
    for (Tensor* tensor : {&value.bias, &value.preactivation, &value.derivative_at, &value.bias_gradient}) {
      *tensor = gpu::emulation::on_host(*tensor);
    }
  }
  const Epilogue& get() const { return value; }
  Epilogue value;
};

template <>
struct Kept<AttentionScores> {
  explicit Kept(const AttentionScores& argument) : value(argument) { value.mask = gpu::emulation::on_host(value.mask); }
  const AttentionScores& get() const { return value; }
  AttentionScores value;
};

template <>
struct Kept<BatchNormMask> {
  explicit Kept(const BatchNormMask& argument) : value(argument) {
    for (Tensor* tensor : {&value.y, &value.inv_std, &value.gamma, &value.beta}) {
      *tensor = gpu::emulation::on_host(*tensor);
    }
  }
  const BatchNormMask& get() const { return value; }
  BatchNormMask value;
};

template <>
struct Kept<BatchNormGradient> {
  explicit Kept(const BatchNormGradient& argument) : value(argument) {
    for (Tensor* tensor : {&value.dy, &value.addend, &value.masked}) *tensor = gpu::emulation::on_host(*tensor);
  }
  const BatchNormGradient& get() const { return value; }
  BatchNormGradient value;
};

template <>
struct Kept<BatchNormParameterGradients> {
  explicit Kept(const BatchNormParameterGradients& argument) : value(argument) {
    for (Tensor* tensor : {&value.inv_std, &value.dgamma, &value.dbeta}) *tensor = gpu::emulation::on_host(*tensor);
  }
  const BatchNormParameterGradients& get() const { return value; }
  BatchNormParameterGradients value;
};

template <>
struct Kept<CrossEntropyTargets> {
  explicit Kept(const CrossEntropyTargets& argument) : value(argument) {
    for (Tensor* tensor : {&value.classes, &value.class_weights, &value.row_weights}) {
      *tensor = gpu::emulation::on_host(*tensor);
    }
  }
  const CrossEntropyTargets& get() const { return value; }
  CrossEntropyTargets value;
};

template <>
struct Kept<CtcTargets> {
  explicit Kept(const CtcTargets& argument) : value(argument) {
    for (Tensor* tensor : {&value.labels, &value.input_lengths, &value.target_lengths}) {
      *tensor = gpu::emulation::on_host(*tensor);
    }
  }
  const CtcTargets& get() const { return value; }
  CtcTargets value;
};

template <>
struct Kept<std::span<const ArenaSegment>> {
  explicit Kept(std::span<const ArenaSegment> argument) : value(argument.begin(), argument.end()) {}
  std::span<const ArenaSegment> get() const { return value; }
  std::vector<ArenaSegment> value;
};

template <>
struct Kept<std::vector<Tensor>> {
  explicit Kept(const std::vector<Tensor>& argument) : value(argument) {
    for (Tensor& tensor : value) tensor = gpu::emulation::on_host(tensor);
  }
  const std::vector<Tensor>& get() const { return value; }
  std::vector<Tensor> value;
};

template <>
struct Kept<ArenaSlice> {
  explicit Kept(const ArenaSlice& argument) : value(argument), segments(argument.segments) {
    for (Tensor* tensor : {&value.master, &value.grad, &value.copy}) *tensor = gpu::emulation::on_host(*tensor);
  }
  ArenaSlice get() const {
    ArenaSlice slice = value;
    slice.segments = segments.get();
    return slice;
  }
  ArenaSlice value;
  Kept<std::span<const ArenaSegment>> segments;
};

template <auto function>
struct OnStream;

/// The CPU's function of that name, run when the current stream comes to it.
template <class Family, class... Arguments, void (*Family::*function)(Arguments...)>
struct OnStream<function> {
  static void call(Arguments... arguments) {
    gpu::emulation::append(
        gpu::current_stream(gpu::emulation::device()),
        [kept = std::tuple(Kept<std::remove_cvref_t<Arguments>>(arguments)...)] {
          std::apply([](const auto&... each) { std::invoke(function, cpu_backend())(each.get()...); }, kept);
        });
  }
};

template <auto function>
constexpr auto on_stream = &OnStream<function>::call;

}  // namespace

const Backend& cuda_backend(Device) {
  static const Backend backend{
      Elementwise{.fill = on_stream<&Elementwise::fill>,
                  .cast = on_stream<&Elementwise::cast>,
                  .copy_unless = on_stream<&Elementwise::copy_unless>,
                  .accumulate = on_stream<&Elementwise::accumulate>,
                  .scale = on_stream<&Elementwise::scale>,
                  .binary = on_stream<&Elementwise::binary>,
                  .binary_with_number = on_stream<&Elementwise::binary_with_number>,
                  .ternary = on_stream<&Elementwise::ternary>,
                  .expand = on_stream<&Elementwise::expand>},
      Pointwise{.unary = on_stream<&Pointwise::unary>,
                .unary_backward = on_stream<&Pointwise::unary_backward>,
                .dropout = on_stream<&Pointwise::dropout>,
                .random = on_stream<&Pointwise::random>},
      Reductions{.sum = on_stream<&Reductions::sum>, .sum_rows = on_stream<&Reductions::sum_rows>},
      MatrixProducts{.matmul = on_stream<&MatrixProducts::matmul>},
      Convolution{.conv_forward = on_stream<&Convolution::conv_forward>,
                  .conv_backward = on_stream<&Convolution::conv_backward>},
      Pooling{.pool_forward = on_stream<&Pooling::pool_forward>,
              .pool_backward = on_stream<&Pooling::pool_backward>,
              .global_average_pool = on_stream<&Pooling::global_average_pool>,
              .global_average_pool_backward = on_stream<&Pooling::global_average_pool_backward>},
      Softmax{.softmax = on_stream<&Softmax::softmax>,
              .softmax_backward = on_stream<&Softmax::softmax_backward>,
              .softmax_middle = on_stream<&Softmax::softmax_middle>,
              .softmax_middle_backward = on_stream<&Softmax::softmax_middle_backward>},
      Losses{.cross_entropy = on_stream<&Losses::cross_entropy>,
             .cross_entropy_backward = on_stream<&Losses::cross_entropy_backward>,
             .pair_loss = on_stream<&Losses::pair_loss>,
             .pair_loss_backward = on_stream<&Losses::pair_loss_backward>,
             .ctc = on_stream<&Losses::ctc>,
             .ctc_backward = on_stream<&Losses::ctc_backward>},
      Attention{.attention = on_stream<&Attention::attention>,
                .attention_backward = on_stream<&Attention::attention_backward>},
      BatchNormalization{.batch_norm_statistics = on_stream<&BatchNormalization::batch_norm_statistics>,
                         .batch_norm_finalize = on_stream<&BatchNormalization::batch_norm_finalize>,
                         .batch_norm_measure = on_stream<&BatchNormalization::batch_norm_measure>,
                         .batch_norm_apply = on_stream<&BatchNormalization::batch_norm_apply>,
                         .batch_norm_backward_reduce = on_stream<&BatchNormalization::batch_norm_backward_reduce>,
                         .batch_norm_backward_apply = on_stream<&BatchNormalization::batch_norm_backward_apply>},
      Normalization{.layer_norm = on_stream<&Normalization::layer_norm>,
                    .layer_norm_backward = on_stream<&Normalization::layer_norm_backward>,
                    .group_norm = on_stream<&Normalization::group_norm>,
                    .group_norm_backward = on_stream<&Normalization::group_norm_backward>},
      Embedding{.embedding = on_stream<&Embedding::embedding>,
                .embedding_backward = on_stream<&Embedding::embedding_backward>},
      Upsampling{.upsample = on_stream<&Upsampling::upsample>,
                 .upsample_backward = on_stream<&Upsampling::upsample_backward>},
      ArenaSteps{.check_finite = on_stream<&ArenaSteps::check_finite>,
                 .rescale = on_stream<&ArenaSteps::rescale>,
                 .layer_rates = on_stream<&ArenaSteps::layer_rates>,
                 .element_step = on_stream<&ArenaSteps::element_step>,
                 .lamb_step = on_stream<&ArenaSteps::lamb_step>,
                 .novograd_step = on_stream<&ArenaSteps::novograd_step>,
                 .mean_step = on_stream<&ArenaSteps::mean_step>},
      Decisions{.cast_ballot = on_stream<&Decisions::cast_ballot>,
                .count_ballot = on_stream<&Decisions::count_ballot>,
                .judge_alone = on_stream<&Decisions::judge_alone>,
                .clip_factor = on_stream<&Decisions::clip_factor>,
                .update_loss_scale = on_stream<&Decisions::update_loss_scale>,
                .advance_schedule = on_stream<&Decisions::advance_schedule>},
      Movement{.copy_strided = on_stream<&Movement::copy_strided>},
      DimReductions{.sum_dim = on_stream<&DimReductions::sum_dim>,
                    .variance_dim = on_stream<&DimReductions::variance_dim>,
                    .extreme_dim = on_stream<&DimReductions::extreme_dim>,
                    .extreme_shares = on_stream<&DimReductions::extreme_shares>},
      Scans{.scan = on_stream<&Scans::scan>},
      Indexing{.gather = on_stream<&Indexing::gather>,
               .scatter_add = on_stream<&Indexing::scatter_add>,
               .scatter = on_stream<&Indexing::scatter>,
               .order = on_stream<&Indexing::order>},
      "emulated"};
  return backend;
}

void set_tf32(bool) {}

std::string cudnn_version() { return "emulated"; }
std::string cublas_version() { return "emulated"; }

}  // namespace lockstep::kernels
