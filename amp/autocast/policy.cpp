// SPDX-License-Identifier: Apache-2.0
#include "amp/autocast/policy.h"

#include "runtime/tensor/error.h"

namespace lockstep::amp {

CastPolicy policy_of(Op op) {
  switch (op) {  // no default: a new operation without a policy does not compile
    case Op::kLinear:
    case Op::kMatmul:
    case Op::kConv:
    case Op::kConvTranspose:
      return CastPolicy::kLowerPrecision;
    case Op::kSoftmax:
    case Op::kLogSoftmax:
    case Op::kCrossEntropy:
    case Op::kMse:
    case Op::kSum:
      return CastPolicy::kFloat32;
    case Op::kAdd:
    case Op::kMul:
      // PyTorch's type promotion; elementwise operations are on no autocast list.
      return CastPolicy::kPromote;
    case Op::kBatchNorm:
    case Op::kRelu:
    case Op::kGelu:
    case Op::kGeluTanh:
    case Op::kScale:
    case Op::kMaxPool:
    case Op::kAveragePool:
    case Op::kGlobalAveragePool:
    case Op::kDropout:
    case Op::kReshape:
    case Op::kMean:
      return CastPolicy::kNone;
  }
  throw UsageError("an operation without an autocast policy");
}

std::string_view name_of(Op op) {
  switch (op) {
    case Op::kLinear:
      return "linear";
    case Op::kMatmul:
      return "matmul";
    case Op::kConv:
      return "conv";
    case Op::kConvTranspose:
      return "conv_transpose";
    case Op::kBatchNorm:
      return "batch_norm";
    case Op::kRelu:
      return "relu";
    case Op::kGelu:
      return "gelu";
    case Op::kGeluTanh:
      return "gelu_tanh";
    case Op::kAdd:
      return "add";
    case Op::kMul:
      return "mul";
    case Op::kScale:
      return "scale";
    case Op::kMaxPool:
      return "max_pool";
    case Op::kAveragePool:
      return "average_pool";
    case Op::kGlobalAveragePool:
      return "global_average_pool";
    case Op::kDropout:
      return "dropout";
    case Op::kReshape:
      return "reshape";
    case Op::kSoftmax:
      return "softmax";
    case Op::kLogSoftmax:
      return "log_softmax";
    case Op::kCrossEntropy:
      return "cross_entropy";
    case Op::kMse:
      return "mse";
    case Op::kMean:
      return "mean";
    case Op::kSum:
      return "sum";
  }
  throw UsageError("an operation without a name");
}

}  // namespace lockstep::amp
