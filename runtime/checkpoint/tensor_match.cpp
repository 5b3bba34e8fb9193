// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/tensor_match.h"

#include "runtime/base/error.h"

namespace lockstep::checkpoint {
namespace {

std::string str(const TensorSpec& spec) { return std::string(name_of(spec.dtype)) + " " + spec.shape.str(); }

}  // namespace

std::vector<std::string> list_differences(const std::map<std::string, TensorSpec>& expected,
                                          const std::map<std::string, Tensor>& found) {
  std::vector<std::string> lines;
  for (const auto& [name, spec] : expected) {
    const auto tensor = found.find(name);
    if (tensor == found.end()) {
      lines.push_back("missing: " + name + ", expected " + str(spec));
      continue;
    }
    const TensorSpec there{tensor->second.dtype(), tensor->second.shape()};
    if (there != spec) lines.push_back("different: " + name + ", expected " + str(spec) + ", found " + str(there));
  }
  for (const auto& [name, tensor] : found) {
    if (!expected.contains(name)) {
      lines.push_back("extra: " + name + ", found " + str(TensorSpec{tensor.dtype(), tensor.shape()}));
    }
  }
  return lines;
}

void require_match(const std::map<std::string, TensorSpec>& expected, const std::map<std::string, Tensor>& found,
                   const std::string& path) {
  const std::vector<std::string> lines = list_differences(expected, found);
  if (lines.empty()) return;
  std::string text =
      path + " does not fit the model, nothing was loaded; tensors that differ: " + std::to_string(lines.size());
  for (const std::string& line : lines) text += "\n  " + line;
  throw UsageError(text, "Use the job that wrote the checkpoint, or start anew in another --run-dir.");
}

}  // namespace lockstep::checkpoint
