// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/pytorch_names.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

namespace lockstep::model_zoo {

namespace {

template <class Options>
std::string name_of_module(const Options&, const std::string& module) {
  return module;
}

/// torchvision.models.resnet
std::string name_of_module(const ResnetOptions&, const std::string& module) {
  constexpr std::pair<std::string_view, std::string_view> kWhole[] = {
      {"stem_conv", "conv1"}, {"stem_norm", "bn1"}, {"classifier", "fc"}};
  for (const auto& [ours, theirs] : kWhole) {
    if (module == ours) return std::string(theirs);
  }
  int stage = 0, block = 0;
  std::array<char, 16> part{};
  if (std::sscanf(module.c_str(), "stage%d_block%d.%15s", &stage, &block, part.data()) != 3) return module;
  const std::string_view name = part.data();
  const std::string prefix = fmt::format("layer{}.{}.", stage + 1, block);
  if (name == "shortcut_conv") return prefix + "downsample.0";
  if (name == "shortcut_norm") return prefix + "downsample.1";
  const int number = name.back() - '0' + 1;
  return prefix + (name.starts_with("conv") ? "conv" : "bn") + std::to_string(number);
}

}  // namespace

std::string pytorch_module(const ModelOptions& options, const std::string& module) {
  return std::visit([&module](const auto& kind) { return name_of_module(kind, module); }, options);
}

}  // namespace lockstep::model_zoo
