// SPDX-License-Identifier: Apache-2.0
#include "launcher/deploy/yaml_text.h"

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"

namespace lockstep::launcher {

std::string yaml_quoted(const std::string& text) {
  std::string quoted;
  try {
    quoted = nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw UsageError("\"" + printable(text) + "\" is no UTF-8, which YAML cannot hold", "Choose another name.");
  }
  // YAML has JSON's escapes; this one character JSON does not escape, and YAML refuses.
  for (std::size_t at = 0; (at = quoted.find('\x7f', at)) != std::string::npos;) quoted.replace(at, 1, "\\u007f");
  return quoted;
}

std::string yaml_words(const std::vector<std::string>& words) {
  std::string text = "[";
  for (const std::string& word : words) {
    if (&word != &words.front()) text += word.starts_with("--") ? ",\n  " : ", ";
    text += yaml_quoted(word);
  }
  return text + "]";
}

std::string indented(const std::string& text, int blanks) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    const bool begins_a_line = text[i] == '\n' && i + 1 < text.size() && text[i + 1] != '\n';
    if (begins_a_line) result.append(static_cast<std::size_t>(blanks), ' ');
  }
  return result;
}

}  // namespace lockstep::launcher
