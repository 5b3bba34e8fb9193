// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/onednn/api.h"

#include <fmt/format.h>

#include <map>

#include "runtime/kernels/cpu/primitive_cache.h"

namespace lockstep::kernels::cpu::onednn {

dnnl::convolution_forward::primitive_desc forward(const Convolution& c) {
  return {engine(),    dnnl::prop_kind::forward_training,
          c.algorithm, c.x,
          c.weight,    c.bias,
          c.y,         c.stride,
          c.dilation,  c.padding,
          c.padding,   user_scratchpad()};
}

dnnl::convolution_backward_data::primitive_desc backward_data(const Convolution& c) {
  return {engine(),  c.algorithm, c.x,        c.weight,         c.y, c.stride, c.dilation,
          c.padding, c.padding,   forward(c), user_scratchpad()};
}

dnnl::convolution_backward_weights::primitive_desc backward_weights(const Convolution& c,
                                                                    const dnnl::memory::desc& gradient) {
  return {engine(),  c.algorithm, c.x,        gradient,         c.y, c.stride, c.dilation,
          c.padding, c.padding,   forward(c), user_scratchpad()};
}

dnnl::matmul::primitive_desc matmul(const dnnl::memory::desc& left, const dnnl::memory::desc& right,
                                    const dnnl::memory::desc& bias, const dnnl::memory::desc& result,
                                    const dnnl::primitive_attr& attributes) {
  return {engine(), left, right, bias, result, attributes};
}

std::string name_of(dnnl::cpu_isa isa) {
  using dnnl::cpu_isa;
  static const std::map<cpu_isa, std::string> names{
      {cpu_isa::sse41, "sse41"},
      {cpu_isa::avx, "avx"},
      {cpu_isa::avx2, "avx2"},
      {cpu_isa::avx2_vnni, "avx2_vnni"},
      {cpu_isa::avx2_vnni_2, "avx2_vnni_2"},
      {cpu_isa::avx512_core, "avx512_core"},
      {cpu_isa::avx512_core_vnni, "avx512_core_vnni"},
      {cpu_isa::avx512_core_bf16, "avx512_core_bf16"},
      {cpu_isa::avx512_core_fp16, "avx512_core_fp16"},
      {cpu_isa::avx512_core_amx, "avx512_core_amx"},
      {cpu_isa::avx512_core_amx_fp16, "avx512_core_amx_fp16"},
  };
  const auto found = names.find(isa);
  // A newer oneDNN may have instruction sets that are not listed here.
  return found != names.end() ? found->second : fmt::format("isa 0x{:x}", static_cast<unsigned>(isa));
}

}  // namespace lockstep::kernels::cpu::onednn
