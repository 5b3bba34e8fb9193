// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/matmul_plans.h"

#include <cublasLt.h>
#include <spdlog/spdlog.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/kernels/cuda/matmul_choice.h"
#include "runtime/kernels/plan_cache/candidates.h"
#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/cuda/stream.h"

namespace lockstep::kernels::cuda {

namespace {

/// The number of algorithms asked for at once: the best, and those that take its place where it is refused.
constexpr int kAlgorithms = 8;
/// An algorithm may use this much scratch memory; Hopper's best ones ask for up to 32 MiB.
constexpr std::size_t kWorkspaceLimit = 32 << 20;

void check_cublas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw EnvironmentError(std::string(what) + ": " + cublasLtGetStatusString(status),
                         "CUBLASLT_LOG_LEVEL=5 makes cuBLASLt say more.");
}

/// Whether cuBLASLt takes an algorithm or has one; false where it refuses. Throws every other error, such as one of
/// earlier work that shows only now: it says nothing of the algorithm.
bool taken(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return true;
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
      status == CUBLAS_STATUS_ARCH_MISMATCH)
    return false;
  gpu::check(cudaGetLastError(), what);
  check_cublas(status, what);
  return false;
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

/// The epilogues with an activation are left alone. What becomes of a NaN in CUBLASLT_EPILOGUE_RELU's max(x, 0) is not
/// documented, and CUDA's own max(NaN, 0) is 0, which would hide an overflow from the inf check; ours keeps it. Nor is
/// the formula of CUBLASLT_EPILOGUE_GELU or its accuracy, where the hardware's tanh has 11 bits. So the activations and
/// their derivatives run as our own pass over the product, whose results are those of the CPU.
cublasLtEpilogue_t epilogue_of(const MatmulProblem& problem) {
  // a is cuBLASLt's second matrix.
  if (problem.bias_gradient) return CUBLASLT_EPILOGUE_BGRADB;
  return problem.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

/// The descriptors live where they are made: they have addresses in common with nobody and need no release.
struct Operation {
  Operation(const MatmulProblem& problem, const MatmulData& data) {
    const bool fast = problem.operand == DType::kFloat32 && problem.tf32;
    check_cublas(
        cublasLtMatmulDescInit(&descriptor, fast ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescInit");
    // A row-major matrix is the transpose of the column-major one in the same memory: out' = op(b)' op(a)'. So b comes
    // first, and what is transposed here is transposed there.
    set(CUBLASLT_MATMUL_DESC_TRANSA, problem.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, problem.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(problem));
    if (problem.bias || problem.bias_gradient) {
      // One value for each row of out', which is each column n of out. The same one for every matrix of a batch. A
      // gradient has one value for each column of out'.
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(data_type(problem.result)));
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, problem.bias ? data.bias : data.bias_gradient);
    }
  }

  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check_cublas(cublasLtMatmulDescSetAttribute(&descriptor, attribute, &value, sizeof value),
                 "cublasLtMatmulDescSetAttribute");
  }

  cublasLtMatmulDescOpaque_t descriptor{};
};

/// A row-major [batch, rows, columns] as cuBLASLt sees it.
struct Layout {
  Layout(DType dtype, std::int64_t batch, std::int64_t rows, std::int64_t columns) {
    check_cublas(cublasLtMatrixLayoutInit(&descriptor, data_type(dtype), static_cast<std::uint64_t>(columns),
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
    check_cublas(cublasLtMatrixLayoutSetAttribute(&descriptor, attribute, &value, sizeof value),
                 "cublasLtMatrixLayoutSetAttribute");
  }

  cublasLtMatrixLayoutOpaque_t descriptor{};
};

struct Preference {
  explicit Preference(const MatmulProblem& problem) {
    check_cublas(cublasLtMatmulPreferenceInit(&descriptor), "cublasLtMatmulPreferenceInit");
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
    check_cublas(cublasLtMatmulPreferenceSetAttribute(&descriptor, attribute, &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
  }

  cublasLtMatmulPreferenceOpaque_t descriptor{};
};

struct Plan {
  using Algorithm = cublasLtMatmulHeuristicResult_t;
  using Algorithms = std::vector<Algorithm>;

  /// Where there is a choice to make, `data.out` may be written, unless the product is added to it.
  Plan(cublasLtHandle_t handle_, Device device_, const MatmulProblem& p, const MatmulData& data,
       const MatmulChoice* choice)
      : handle(handle_),
        device(device_),
        a(p.operand, p.batch, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k),
        b(p.operand, p.batch, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n),
        out(p.result, p.batch, p.m, p.n),
        algorithms(find(p, data, choice)),
        candidates(algorithms.size()) {}

  /// Appends the product to the calling thread's current stream.
  cublasStatus_t run(Operation& operation, const MatmulData& data, const Algorithm& chosen) {
    const float alpha = 1.0f;
    const float beta = data.accumulate ? 1.0f : 0.0f;
    // The allocator gives it to the stream's next taker, which runs behind this product: one workspace a stream.
    const Storage workspace = chosen.workspaceSize > 0 ? Storage::allocate(chosen.workspaceSize, device) : Storage();
    return cublasLtMatmul(handle, &operation.descriptor, &alpha, data.b, &b.descriptor, data.a, &a.descriptor, &beta,
                          data.out, &out.descriptor, data.out, &out.descriptor, &chosen.algo, workspace.data(),
                          chosen.workspaceSize, gpu::current(device));
  }

  cublasLtHandle_t handle;
  Device device;
  Layout a, b, out;
  Algorithms algorithms;  ///< those that cuBLASLt ranks for the problem, the fastest first
  Candidates candidates;  ///< numbers of `algorithms`

 private:
  Algorithms find(const MatmulProblem& p, const MatmulData& data, const MatmulChoice* choice) {
    Operation operation(p, data);
    Algorithms found = ranked(operation, p);
    if (choice != nullptr) order(found, operation, p, data, *choice);
    return found;
  }

  Algorithms ranked(Operation& operation, const MatmulProblem& p) {
    Preference preference(p);
    Algorithms found(kAlgorithms);
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, &operation.descriptor, &b.descriptor, &a.descriptor, &out.descriptor,
                                       &out.descriptor, &preference.descriptor, kAlgorithms, found.data(), &count);
    if (!taken(status, "cublasLtMatmulAlgoGetHeuristic")) return {};
    found.resize(static_cast<std::size_t>(count));
    std::erase_if(found, [](const auto& each) { return each.state != CUBLAS_STATUS_SUCCESS; });
    return found;
  }

  /// The algorithm with the workspace that it needs here; nothing where it does not run, or needs too much.
  std::optional<Algorithm> checked(Operation& operation, const cublasLtMatmulAlgo_t& algorithm) {
    Algorithm result{};
    const cublasStatus_t status = cublasLtMatmulAlgoCheck(handle, &operation.descriptor, &b.descriptor, &a.descriptor,
                                                          &out.descriptor, &out.descriptor, &algorithm, &result);
    if (!taken(status, "cublasLtMatmulAlgoCheck") || result.workspaceSize > kWorkspaceLimit) return {};
    result.algo = algorithm;  // which the check leaves alone
    return result;
  }

  void order(Algorithms& found, Operation& operation, const MatmulProblem& p, const MatmulData& data,
             const MatmulChoice& choice) {
    MatmulData timed = data;
    Storage scratch;  // for a sum, whose first term must stay; made only where something is timed
    const auto run_timed = [&](const Algorithm& algorithm) {
      if (data.accumulate && scratch.data() == nullptr) {
        scratch = zeros(p);
        timed.out = scratch.data();
      }
      return taken(run(operation, timed, algorithm), "cublasLtMatmul");
    };
    choice.order(p, {.check = [&](const auto& algorithm) { return checked(operation, algorithm); }, .run = run_timed},
                 found);
  }

  /// A result's memory.
  Storage zeros(const MatmulProblem& p) const {
    const std::size_t bytes = static_cast<std::size_t>(p.batch * p.m * p.n) * size_of(p.result);
    Storage result = Storage::allocate(bytes, device);
    gpu::check(cudaMemsetAsync(result.data(), 0, bytes, gpu::current(device)), "cudaMemsetAsync");
    return result;
  }
};

}  // namespace

struct MatmulPlans::State {
  /// Shapes without end, as with sequences of every length, must not fill the memory.
  static constexpr std::size_t kCapacity = 4096;

  explicit State(Device device_) : device(device_) {
    const gpu::DeviceGuard guard(device);
    if (const PlanSettings settings = plan_settings(); settings.autotune) choice.emplace(device, settings.folder);
    check_cublas(cublasLtCreate(&handle), "cublasLtCreate");
  }
  ~State() {
    gpu::settle_thread(device);
    cublasLtDestroy(handle);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Shared, since another thread may empty the cache while this one runs the plan.
  std::shared_ptr<Plan> get(const MatmulProblem& problem, const MatmulData& data) {
    const std::lock_guard lock(mutex);
    if (const auto found = plans.find(problem); found != plans.end()) return found->second;
    if (plans.size() >= kCapacity) plans.clear();
    const MatmulChoice* timing = choice ? &*choice : nullptr;
    return plans.emplace(problem, std::make_shared<Plan>(handle, device, problem, data, timing)).first->second;
  }

  Device device;
  std::optional<MatmulChoice> choice;  ///< with autotuning
  cublasLtHandle_t handle = nullptr;
  std::mutex mutex;
  std::map<MatmulProblem, std::shared_ptr<Plan>> plans;
};

MatmulPlans::MatmulPlans(Device device) : device_(device), state_(std::make_unique<State>(device)) {}
MatmulPlans::~MatmulPlans() = default;

bool MatmulPlans::run(const MatmulProblem& problem, const MatmulData& data) {
  const gpu::DeviceGuard guard(device_);
  const MemoryScope scope(MemoryPurpose::kWorkspaces);
  const std::shared_ptr<Plan> plan = state_->get(problem, data);
  Operation operation(problem, data);
  return plan->candidates.run([&](std::size_t i) {
    const cublasStatus_t status = plan->run(operation, data, plan->algorithms[i]);
    if (taken(status, "cublasLtMatmul")) return true;
    spdlog::warn("cuBLASLt refuses its algorithm {} of {} for {}: {}", i + 1, plan->algorithms.size(),
                 describe(problem), cublasLtGetStatusString(status));
    return false;
  });
}

}  // namespace lockstep::kernels::cuda
