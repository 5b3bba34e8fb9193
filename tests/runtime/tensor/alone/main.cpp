// SPDX-License-Identifier: Apache-2.0
// A program that links Lockstep::tensor and nothing else: every member of Tensor links, and those that need automatic
// differentiation say what is missing.
#include <cstdio>
#include <string>

#include "runtime/base/error.h"
#include "runtime/tensor/tensor.h"

using lockstep::Tensor;

namespace {

template <class Call>
bool refuses(Call&& call) {
  try {
    call();
  } catch (const lockstep::UsageError& error) {
    return std::string(error.what()).find("without automatic differentiation") != std::string::npos;
  }
  return false;
}

}  // namespace

int main() {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  const bool plain = x.to(lockstep::kCpu).reshaped({4}).rows(1, 2).detach().item() == 2;
  const bool outside = !x.requires_grad() && !x.grad().defined() && x.autograd_meta() == nullptr;
  const bool refused = refuses([&] { x.set_requires_grad(true); }) && refuses([&] { x.backward(); });
  std::printf("plain %d, outside the graph %d, refused %d\n", plain, outside, refused);
  return plain && outside && refused ? 0 : 1;
}
