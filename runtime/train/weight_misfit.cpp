// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/weight_misfit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace lockstep::train {

namespace {

/// The most rows that a message has.
constexpr std::size_t kMostRows = 40;

bool is_alike(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && (a.dtype() == b.dtype() || (is_floating(a.dtype()) && is_floating(b.dtype())));
}

std::string shape_of(const Tensor& tensor) {
  const std::string shape = tensor.shape().str();
  return is_floating(tensor.dtype()) ? shape : fmt::format("{} {}", name_of(tensor.dtype()), shape);
}

/// The module "block0.attention" for the part number 1 of "block0.attention.input.weight"; the name for its last part.
std::string leading(const std::string& name, std::size_t part) {
  std::size_t dot = name.find('.');
  for (; part > 0 && dot != std::string::npos; --part) dot = name.find('.', dot + 1);
  return name.substr(0, dot);
}

bool is_within(const std::string& name, const std::string& module) {
  return name.starts_with(module) && (name.size() == module.size() || name[module.size()] == '.');
}

/// The largest modules that hold none but `bad` tensors, all of which they hold.
std::vector<std::string> modules_of(const std::set<std::string>& bad, const std::vector<std::string>& all) {
  std::vector<std::string> modules;
  for (const std::string& name : bad) {
    const auto covers = [&name](const std::string& module) { return is_within(name, module); };
    if (std::ranges::any_of(modules, covers)) continue;
    for (std::size_t part = 0;; ++part) {
      const std::string module = leading(name, part);
      const auto is_good = [&](const std::string& other) { return is_within(other, module) && !bad.contains(other); };
      if (module != name && std::ranges::any_of(all, is_good)) continue;
      modules.push_back(module);
      break;
    }
  }
  return modules;
}

}  // namespace

WeightMisfit::WeightMisfit(const nn::StateDict& into, const nn::StateDict& found, const nn::StateDict& all) {
  for (const auto& [name, tensor] : all) all_.push_back(name);
  for (const auto& [name, tensor] : into) {
    const auto there = found.find(name);
    if (there == found.end()) {
      rows_.push_back({name, "", shape_of(tensor)});
    } else if (!is_alike(tensor, there->second)) {
      rows_.push_back({name, shape_of(there->second), shape_of(tensor)});
    }
  }
  for (const auto& [name, tensor] : found) {
    if (!into.contains(name)) rows_.push_back({name, shape_of(tensor), ""});
  }
}

std::string WeightMisfit::table() const {
  const std::size_t shown = std::min(rows_.size(), kMostRows);
  std::size_t names = 4, shapes = 17;
  for (std::size_t i = 0; i < shown; ++i) {
    names = std::max(names, rows_[i].name.size());
    shapes = std::max(shapes, rows_[i].found.size());
  }
  std::string text = fmt::format("  {:<{}}  {:<{}}  shape in the model", "name", names, "shape in the file", shapes);
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [name, found, expected] = rows_[i];
    text += fmt::format("\n  {:<{}}  {:<{}}  {}", name, names, found.empty() ? "missing" : found, shapes,
                        expected.empty() ? "none" : expected);
  }
  if (shown < rows_.size()) text += fmt::format("\n  and {} more", rows_.size() - shown);
  return text;
}

std::string WeightMisfit::choice() const {
  std::set<std::string> bad;
  for (const MisfitRow& row : rows_) {
    if (!row.expected.empty()) bad.insert(row.name);
  }
  if (rows_.empty() || bad.size() == all_.size()) return {};
  if (bad.empty()) return "match: \".\"";
  std::vector<std::string> modules = modules_of(bad, all_);
  // "block1" is the beginning of "block10", too.
  const auto misleads = [&](const std::string& module) {
    return std::ranges::any_of(
        all_, [&](const std::string& name) { return name.starts_with(module) && !bad.contains(name); });
  };
  const char* const end = std::ranges::any_of(modules, misleads) ? "([.]|$)" : "";
  if (modules.size() == 1) return fmt::format("except: \"^{}{}\"", modules[0], end);
  return fmt::format("except: \"^({}){}\"", fmt::join(modules, "|"), end);
}

}  // namespace lockstep::train
