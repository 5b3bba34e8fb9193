// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/brace_expansion.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

constexpr std::size_t kMostTexts = 1'000'000;
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

[[noreturn]] void refuse(const std::string& pattern, const std::string& what) {
  throw UsageError(fmt::format("\"{}\": {}", pattern, what), "A brace is {000..146} or {a,b}.");
}

std::optional<std::uint32_t> number_of(std::string_view digits) {
  std::uint32_t number = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || failure != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

/// Refuses `count` texts that take `bytes` in all where either is too many.
void require_few(const std::string& pattern, std::uint64_t count, std::uint64_t bytes) {
  if (count > kMostTexts) refuse(pattern, fmt::format("more than {} files", kMostTexts));
  if (bytes > kMostBytes) refuse(pattern, fmt::format("names of files of more than {} MiB in all", kMostBytes >> 20));
}

std::uint64_t bytes_of(const std::vector<std::string>& texts) {
  std::uint64_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  return bytes;
}

std::vector<std::string> alternatives(std::string_view inside, const std::string& pattern) {
  std::vector<std::string> texts;
  if (const std::size_t dots = inside.find(".."); dots != std::string_view::npos) {
    const std::string_view from = inside.substr(0, dots), to = inside.substr(dots + 2);
    const std::optional<std::uint32_t> first = number_of(from), last = number_of(to);
    if (!first || !last || *last < *first) refuse(pattern, fmt::format("{{{}}} does not count up", inside));
    // As bash does, and with it webdataset: a zero in front asks for as many digits as the longer end has.
    const auto is_padded = [](std::string_view digits) { return digits.size() > 1 && digits.front() == '0'; };
    const std::size_t width = is_padded(from) || is_padded(to) ? std::max(from.size(), to.size()) : 1;
    const std::uint64_t count = std::uint64_t{*last} - *first + 1;
    require_few(pattern, count, count <= kMostTexts ? count * width : 0);
    for (std::uint64_t i = *first; i <= *last; ++i) texts.push_back(fmt::format("{:0{}}", i, width));
    return texts;
  }
  if (inside.find(',') == std::string_view::npos) refuse(pattern, fmt::format("{{{}}} names no alternatives", inside));
  for (;;) {
    const std::size_t comma = inside.find(',');
    texts.emplace_back(inside.substr(0, comma));
    if (comma == std::string_view::npos) return texts;
    inside.remove_prefix(comma + 1);
  }
}

/// Where a backslash stands before a brace.
std::size_t find_escape(std::string_view text) { return std::min(text.find("\\{"), text.find("\\}")); }

}  // namespace

std::vector<std::string> expand_braces(const std::string& pattern) {
  std::vector<std::string> texts{""};
  const auto append = [&](const std::vector<std::string>& endings) {
    require_few(pattern, texts.size() * endings.size(),
                bytes_of(texts) * endings.size() + bytes_of(endings) * texts.size());
    std::vector<std::string> longer;
    longer.reserve(texts.size() * endings.size());
    for (const std::string& text : texts) {
      for (const std::string& ending : endings) longer.push_back(text + ending);
    }
    texts = std::move(longer);
  };
  for (std::string_view rest = pattern; !rest.empty();) {
    const std::size_t open = std::min(rest.find('{'), rest.size());
    if (const std::size_t escape = find_escape(rest); escape < open) {
      append({std::string(rest.substr(0, escape)) + rest[escape + 1]});
      rest.remove_prefix(escape + 2);
      continue;
    }
    append({std::string(rest.substr(0, open))});
    rest.remove_prefix(open);
    if (rest.empty()) break;
    const std::size_t close = rest.find('}');
    if (close == std::string_view::npos) refuse(pattern, "a brace is not closed");
    const std::string_view inside = rest.substr(1, close - 1);
    const bool lists = inside.find(',') != std::string_view::npos || inside.find("..") != std::string_view::npos;
    if (!lists && rest.find('/', close) != std::string_view::npos) {
      append({fmt::format("{{{}}}", inside)});
    } else {
      append(alternatives(inside, pattern));
    }
    rest.remove_prefix(close + 1);
  }
  return texts;
}

std::string literal_pattern(const std::string& text) {
  try {
    if (expand_braces(text) == std::vector{text}) return text;
  } catch (const UsageError&) {
    // With braces that are not closed, or that count down.
  }
  std::string pattern;
  for (const char c : text) pattern += c == '{' || c == '}' ? std::string{'\\', c} : std::string{c};
  return pattern;
}

}  // namespace lockstep::data
