// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace lockstep::kernels::cpu {

/// The instruction sets that the CPU's loops are compiled for, narrowest first within a family of processors.
enum class Isa {
  kBaseline,  ///< what all processors of the family have; of x86-64 that is SSE2; on any, no fused multiply-add
  kAvx2,      ///< AVX2, FMA, F16C
  kAvx512,    ///< AVX-512 F, BW, DQ, VL
  kNeon,      ///< what all processors of aarch64 have, with its vectors and conversions of float16
  kNeonBf16,  ///< and conversions to bfloat16; the results are kNeon's
};

/// The instruction set that this process uses: the widest that the processor has, or the narrower one that
/// LOCKSTEP_CPU_ISA names ("baseline"; "avx2", "avx512"; "neon", "neon_bf16"), which on x86-64 limits oneDNN too.
/// Throws UsageError for another name, or one of another family.
Isa isa();
std::string_view name_of(Isa isa);
/// Names of the 16-bit instructions that the processor has, whether or not isa() lets this process use them: of "F16C",
/// "AVX512_BF16", "AVX512_FP16", "AMX_BF16", "AMX_FP16"; on aarch64 of "FCVT", "FP16", "BF16".
std::vector<std::string_view> half_instructions();
/// Whether oneDNN has bfloat16 primitives here: AVX-512 with bf16 instructions, isa() is kAvx512, and nothing, as
/// ONEDNN_MAX_CPU_ISA, keeps oneDNN from them.
bool has_native_bfloat16();
/// Whether its primitives multiply bfloat16 in tiles (AMX): some ten times as fast as float32.
bool has_bfloat16_tiles();
/// Whether oneDNN's implementation of this name is made of plain loops, which the compiler of Debian's packages turned
/// into instructions for one number: then ours are faster by far.
bool is_plain(std::string_view implementation);

}  // namespace lockstep::kernels::cpu
