// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "launcher/deploy/deployment.h"

namespace lockstep::launcher {

namespace {

constexpr std::size_t kLongestLabel = 40;

// Those of ASCII, in every locale.
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kLabelCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-";

char in_lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool is_label(const std::string& text) {
  return !text.empty() && text.size() <= kLongestLabel && kLetters.find(text.front()) != std::string_view::npos &&
         text.back() != '-' && text.find_first_not_of(kLabelCharacters) == std::string::npos;
}

std::string label_of(const std::string& text) {
  std::string label = text;
  std::ranges::transform(label, label.begin(), in_lower_case);
  for (char& c : label) c = kLabelCharacters.find(c) == std::string_view::npos ? '-' : c;
  if (label.empty() || kLetters.find(label.front()) == std::string_view::npos) label.insert(0, "job-");
  label.resize(std::min(label.size(), kLongestLabel));
  label.resize(label.find_last_not_of('-') + 1);
  return label;
}

}  // namespace lockstep::launcher
