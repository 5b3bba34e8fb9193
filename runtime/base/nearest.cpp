// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace lockstep {

namespace {

constexpr std::size_t kLongestWord = 64;
/// Characters of a list before it ends with a count.
constexpr std::size_t kListLine = 120;
constexpr std::string_view kBetweenNames = ", ";

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours cost 1 each.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last;
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + substitution});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > kLongestWord) return {};
  std::string best;
  // The dashes of an option are no likeness.
  const std::size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
  std::size_t best_distance = std::max<std::size_t>(letters / 2, 1) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

std::string name_list(std::string_view word, std::span<const std::string> names, std::string_view where) {
  std::string all = fmt::format("{}", fmt::join(names, kBetweenNames));
  if (all.size() <= kListLine) return all;
  const std::string_view sought = word.substr(0, kLongestWord);
  std::vector<std::pair<std::size_t, std::string_view>> ordered;
  for (const std::string_view name : names) {
    ordered.emplace_back(edit_distance(sought, name.substr(0, kLongestWord)), name);
  }
  std::ranges::stable_sort(ordered, {}, [](const auto& entry) { return entry.first; });
  std::string list(ordered.front().second);
  std::size_t shown = 1;
  for (; shown < ordered.size(); ++shown) {
    const std::string_view name = ordered[shown].second;
    if (list.size() + kBetweenNames.size() + name.size() > kListLine) break;
    list += fmt::format("{}{}", kBetweenNames, name);
  }
  if (shown == names.size()) return list;
  return fmt::format("{} and {} more{}{}", list, names.size() - shown, where.empty() ? "" : ": ", where);
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates, std::string_view where) {
  const std::string best = nearest(word, candidates);
  return best.empty() ? "known: " + name_list(word, candidates, where) : "did you mean \"" + best + "\"?";
}

}  // namespace lockstep
