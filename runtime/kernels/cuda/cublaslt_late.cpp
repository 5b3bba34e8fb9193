// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's functions that this folder calls, each loading the library when it is first called. Linked in the usual
// way, that library of half a gigabyte makes every start of the program 70 ms longer, whatever it is asked to do.
#include <cublasLt.h>
#include <dlfcn.h>

#include <string>

#include "runtime/base/error.h"

namespace {

void* load() {
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  // Where the system looks, then where the build found it.
  for (const std::string& file : {name, LOCKSTEP_CUBLASLT_FOLDER "/" + name}) {
    if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  const char* reason = dlerror();
  throw lockstep::EnvironmentError("cannot load " + name + ": " + (reason == nullptr ? "not found" : reason),
                                   "Install the CUDA toolkit's libraries, or use --device cpu.");
}

template <class Function>
Function* find(const char* name) {
  static void* const library = load();
  void* found = dlsym(library, name);
  if (found == nullptr) throw lockstep::EnvironmentError(std::string("cuBLASLt has no function ") + name);
  return reinterpret_cast<Function*>(found);
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static auto* const function = find<decltype(cublasLtCreate)>("cublasLtCreate");
  return function(handle);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  static auto* const function = find<decltype(cublasLtDestroy)>("cublasLtDestroy");
  return function(handle);
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  static auto* const function = find<decltype(cublasLtGetStatusString)>("cublasLtGetStatusString");
  return function(status);
}

size_t cublasLtGetVersion() {
  static auto* const function = find<decltype(cublasLtGetVersion)>("cublasLtGetVersion");
  return function();
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  static auto* const function = find<decltype(cublasLtMatmul)>("cublasLtMatmul");
  return function(handle, operation, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout, algorithm,
                  workspace, workspace_bytes, stream);
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size, cudaDataType type,
                                                 uint64_t rows, uint64_t columns, int64_t leading) {
  static auto* const function = find<decltype(cublasLtMatrixLayoutInit_internal)>("cublasLtMatrixLayoutInit_internal");
  return function(layout, size, type, rows, columns, leading);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t bytes) {
  static auto* const function = find<decltype(cublasLtMatrixLayoutSetAttribute)>("cublasLtMatrixLayoutSetAttribute");
  return function(layout, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t operation, size_t size, cublasComputeType_t compute,
                                               cudaDataType_t scale) {
  static auto* const function = find<decltype(cublasLtMatmulDescInit_internal)>("cublasLtMatmulDescInit_internal");
  return function(operation, size, compute, scale);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  static auto* const function = find<decltype(cublasLtMatmulDescSetAttribute)>("cublasLtMatmulDescSetAttribute");
  return function(operation, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t size) {
  static auto* const function =
      find<decltype(cublasLtMatmulPreferenceInit_internal)>("cublasLtMatmulPreferenceInit_internal");
  return function(preference, size);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t bytes) {
  static auto* const function =
      find<decltype(cublasLtMatmulPreferenceSetAttribute)>("cublasLtMatmulPreferenceSetAttribute");
  return function(preference, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a_layout, cublasLtMatrixLayout_t b_layout,
                                              cublasLtMatrixLayout_t c_layout, cublasLtMatrixLayout_t d_layout,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  static auto* const function = find<decltype(cublasLtMatmulAlgoGetHeuristic)>("cublasLtMatmulAlgoGetHeuristic");
  return function(handle, operation, a_layout, b_layout, c_layout, d_layout, preference, requested, results, found);
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                       cublasLtMatrixLayout_t a_layout, cublasLtMatrixLayout_t b_layout,
                                       cublasLtMatrixLayout_t c_layout, cublasLtMatrixLayout_t d_layout,
                                       const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
  static auto* const function = find<decltype(cublasLtMatmulAlgoCheck)>("cublasLtMatmulAlgoCheck");
  return function(handle, operation, a_layout, b_layout, c_layout, d_layout, algorithm, result);
}

}  // extern "C"
