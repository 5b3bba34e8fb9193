// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/matmul_plans.h"

#include <cublasLt.h>

#include <array>
#include <map>
#include <mutex>
#include <string>

#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/cuda/stream.h"
#include "runtime/tensor/error.h"

namespace lockstep::kernels::cuda {

namespace {

/// An algorithm may use this much scratch memory; Hopper's best ones ask for up to 32 MiB.
constexpr std::size_t kWorkspaceLimit = 32 << 20;

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw EnvironmentError(std::string(what) + ": " + cublasLtGetStatusString(status),
                         "CUBLASLT_LOG_LEVEL=5 makes cuBLASLt say more.");
}

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return CUDA_R_32F;
    case DType::kFloat16:
      return CUDA_R_16F;
    case DType::kBFloat16:
      return CUDA_R_16BF;
    default:
      throw ShapeError("matmul: a GPU computes float32, float16 and bfloat16, found " + std::string(name_of(dtype)));
  }
}

cublasLtEpilogue_t epilogue_of(const MatmulProblem& problem) {
  switch (problem.fusion) {
    case MatmulFusion::kNone:
      return problem.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    case MatmulFusion::kRelu:
      return problem.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case MatmulFusion::kGeluTanh:
      return problem.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case MatmulFusion::kGeluTanhKeepingInput:
      return problem.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case MatmulFusion::kGeluTanhDerivative:
      return CUBLASLT_EPILOGUE_DGELU;
    case MatmulFusion::kBiasGradient:
      // a is cuBLASLt's second matrix.
      return CUBLASLT_EPILOGUE_BGRADB;
  }
  throw UsageError("unknown fusion of a matmul: " + std::to_string(static_cast<int>(problem.fusion)));
}

/// The descriptors live where they are made: they have addresses in common with nobody and need no release.
struct Operation {
  Operation(const MatmulProblem& problem, const MatmulData& data) {
    const bool fast = problem.operand == DType::kFloat32 && problem.tf32;
    check(cublasLtMatmulDescInit(&descriptor, fast ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "cublasLtMatmulDescInit");
    // A row-major matrix is the transpose of the column-major one in the same memory: out' = op(b)' op(a)'. So b comes
    // first, and what is transposed here is transposed there.
    set(CUBLASLT_MATMUL_DESC_TRANSA, problem.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, problem.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(problem));
    if (problem.bias || data.bias_gradient != nullptr) {
      // One value for each row of out', which is each column n of out. The same one for every matrix of a batch. A
      // gradient has one value for each column of out'.
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(data_type(problem.result)));
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, problem.bias ? data.bias : data.bias_gradient);
    }
    if (data.auxiliary != nullptr) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, data.auxiliary);
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, problem.n);
    }
  }

  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(cublasLtMatmulDescSetAttribute(&descriptor, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  }

  cublasLtMatmulDescOpaque_t descriptor{};
};

/// A row-major [batch, rows, columns] as cuBLASLt sees it.
struct Layout {
  Layout(DType dtype, std::int64_t batch, std::int64_t rows, std::int64_t columns) {
    check(cublasLtMatrixLayoutInit(&descriptor, data_type(dtype), static_cast<std::uint64_t>(columns),
                                   static_cast<std::uint64_t>(rows), columns),
          "cublasLtMatrixLayoutInit");
    if (batch == 1) return;
    if (batch > INT32_MAX)
      throw ShapeError("matmul: at most 2^31 - 1 matrices a batch, found " + std::to_string(batch));
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, rows * columns);
  }

  template <class T>
  void set(cublasLtMatrixLayoutAttribute_t attribute, const T& value) {
    check(cublasLtMatrixLayoutSetAttribute(&descriptor, attribute, &value, sizeof value),
          "cublasLtMatrixLayoutSetAttribute");
  }

  cublasLtMatrixLayoutOpaque_t descriptor{};
};

struct Preference {
  explicit Preference(const MatmulProblem& problem) {
    check(cublasLtMatmulPreferenceInit(&descriptor), "cublasLtMatmulPreferenceInit");
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceLimit);
    // Where the summed dimension is split, the parts are added in float32: a 16-bit result is rounded once.
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(problem.alignment_b));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(problem.alignment_a));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(problem.alignment_out));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(problem.alignment_out));
  }

  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    check(cublasLtMatmulPreferenceSetAttribute(&descriptor, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  }

  cublasLtMatmulPreferenceOpaque_t descriptor{};
};

struct Plan {
  /// Of the data, only which there are and how they are aligned counts.
  Plan(cublasLtHandle_t handle, const MatmulProblem& p, const MatmulData& data)
      : a(p.operand, p.batch, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k),
        b(p.operand, p.batch, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n),
        out(p.result, p.batch, p.m, p.n) {
    Operation operation(p, data);
    Preference preference(p);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, &operation.descriptor, &b.descriptor, &a.descriptor, &out.descriptor,
                                       &out.descriptor, &preference.descriptor, 1, &found, &count);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status, "cublasLtMatmulAlgoGetHeuristic");
    exists = status == CUBLAS_STATUS_SUCCESS && count > 0 && found.state == CUBLAS_STATUS_SUCCESS;
    algorithm = found.algo;
    workspace_bytes = found.workspaceSize;
  }

  Layout a, b, out;
  bool exists = false;
  cublasLtMatmulAlgo_t algorithm{};
  std::size_t workspace_bytes = 0;
};

}  // namespace

struct MatmulPlans::State {
  /// Shapes without end, as with sequences of every length, must not fill the memory.
  static constexpr std::size_t kCapacity = 4096;

  explicit State(Device device) {
    const gpu::DeviceGuard guard(device);
    check(cublasLtCreate(&handle), "cublasLtCreate");
  }
  ~State() { cublasLtDestroy(handle); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Shared, since another thread may empty the cache while this one runs the plan.
  std::shared_ptr<Plan> get(const MatmulProblem& problem, const MatmulData& data) {
    const std::lock_guard lock(mutex);
    if (const auto found = plans.find(problem); found != plans.end()) return found->second;
    if (plans.size() >= kCapacity) plans.clear();
    return plans.emplace(problem, std::make_shared<Plan>(handle, problem, data)).first->second;
  }

  cublasLtHandle_t handle = nullptr;
  std::mutex mutex;
  std::map<MatmulProblem, std::shared_ptr<Plan>> plans;
};

MatmulPlans::MatmulPlans(Device device) : device_(device), state_(std::make_unique<State>(device)) {}
MatmulPlans::~MatmulPlans() = default;

bool MatmulPlans::run(const MatmulProblem& problem, const MatmulData& data) {
  const gpu::DeviceGuard guard(device_);
  const std::shared_ptr<Plan> plan = state_->get(problem, data);
  if (!plan->exists) return false;
  Operation operation(problem, data);
  const float alpha = 1.0f;
  const float beta = data.accumulate ? 1.0f : 0.0f;
  const MemoryScope scope(MemoryPurpose::kWorkspaces);
  // The allocator gives it to the stream's next taker, which runs behind this product: one workspace a stream.
  const Storage workspace = plan->workspace_bytes > 0 ? Storage::allocate(plan->workspace_bytes, device_) : Storage();
  check(cublasLtMatmul(state_->handle, &operation.descriptor, &alpha, data.b, &plan->b.descriptor, data.a,
                       &plan->a.descriptor, &beta, data.out, &plan->out.descriptor, data.out, &plan->out.descriptor,
                       &plan->algorithm, workspace.data(), plan->workspace_bytes, gpu::current(device_)),
        "cublasLtMatmul");
  return true;
}

}  // namespace lockstep::kernels::cuda
