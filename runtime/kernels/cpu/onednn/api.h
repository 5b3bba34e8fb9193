// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <string>

// Hides where the interfaces of oneDNN 2 and 3 differ. CMake compiles v2/ or v3/, for the version that it finds.

namespace lockstep::kernels::cpu::onednn {

/// A convolution as its forward pass is described. `bias` is empty where there is none.
struct Convolution {
  dnnl::algorithm algorithm;
  dnnl::memory::desc x, weight, bias, y;
  dnnl::memory::dims stride, dilation, padding;
};

dnnl::convolution_forward::primitive_desc forward(const Convolution& convolution);
/// `convolution` has no bias.
dnnl::convolution_backward_data::primitive_desc backward_data(const Convolution& convolution);
/// `convolution` has no bias. The gradient may be of another dtype than the weight.
dnnl::convolution_backward_weights::primitive_desc backward_weights(const Convolution& convolution,
                                                                    const dnnl::memory::desc& gradient);

/// left right (+ bias, unless that is empty)
dnnl::matmul::primitive_desc matmul(const dnnl::memory::desc& left, const dnnl::memory::desc& right,
                                    const dnnl::memory::desc& bias, const dnnl::memory::desc& result,
                                    const dnnl::primitive_attr& attributes);

/// The name of an instruction set, "avx512_core_bf16" for example.
std::string name_of(dnnl::cpu_isa isa);

}  // namespace lockstep::kernels::cpu::onednn
