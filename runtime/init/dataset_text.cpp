// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/dataset_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/formats/brace_expansion.h"

namespace lockstep::init {

namespace {

namespace fs = std::filesystem;

/// The string as protobuf text writes it.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += std::string("\\") + c;
    } else if (c == '\t') {
      result += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\{:03o}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

/// The text as a comment holds it: a column's name may have several lines.
std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

/// A data set's message: by its options' own fields, but where a person would write it otherwise.
class Writer {
 public:
  explicit Writer(const fs::path& base) : base_(fs::weakly_canonical(base)) {}

  std::string path(const std::string& path) const { return path_text(path, base_); }
  std::string paths(const std::vector<std::string>& paths) const {
    std::vector<std::string> texts;
    for (const std::string& each : paths) texts.push_back(path(each));
    return listed(texts);
  }
  /// A pattern whose own braces all stand in the file's name.
  std::string pattern(const std::string& pattern) const {
    const std::size_t name = pattern.rfind('/') + 1;
    std::string folder = pattern.substr(0, name);
    for (const char* const escaped : {"\\{", "\\}"}) {
      for (std::size_t at = 0; (at = folder.find(escaped, at)) != std::string::npos; ++at) folder.erase(at, 1);
    }
    const fs::path relative = fs::weakly_canonical(folder.empty() ? "." : folder).lexically_proximate(base_);
    const std::string literal = relative == "." ? "" : data::literal_pattern(relative.string()) + "/";
    return quoted(literal + pattern.substr(name));
  }
  static std::string listed(const std::vector<std::string>& texts) {
    return texts.size() == 1 ? texts[0] : fmt::format("[{}]", fmt::join(texts, ", "));
  }

  std::string operator()(const data::TokensOptions& options) const {
    std::string text = fmt::format("tokens {{ files: {} context: {}", paths(options.files), options.context);
    if (options.begin > 0) text += fmt::format(" begin: {}", options.begin);
    if (options.end < 1) text += fmt::format(" end: {}", options.end);
    if (!options.vocab_file.empty()) {
      text += fmt::format(" vocab_file: {} merges_file: {}", path(options.vocab_file), path(options.merges_file));
    }
    if (!options.tokenizer_file.empty()) text += fmt::format(" tokenizer_file: {}", path(options.tokenizer_file));
    if (options.masked) text += " masked {}";
    return text + " }";
  }
  std::string operator()(const data::ImageFolderOptions& options) const {
    return fmt::format("image_folder {{ folder: {}{} }}", path(options.folder), extents(options));
  }
  std::string operator()(const data::ShardsOptions& options) const {
    std::vector<std::string> patterns;
    for (const std::string& each : options.files) patterns.push_back(pattern(each));
    return fmt::format("shards {{ files: {}{} }}", listed(patterns), extents(options));
  }
  /// Each field that has another value than the options have by themselves.
  template <Described Options>
  std::string operator()(const Options& options) const {
    std::string text = std::string(Options::kKind) + " {";
    for (const auto& [name, value] : fields_of(options)) text += fmt::format(" {}: {}", name, value);
    return text + " }";
  }
  struct Field {
    std::string name;
    std::string value;
  };
  template <Described Options>
  std::vector<Field> fields_of(const Options& options) const {
    std::vector<Field> fields;
    for_each_field<Options>([&](const auto& field) {
      const auto& mine = options.*field.member;
      if (mine != Options().*field.member) fields.push_back({std::string(field.name), value(mine, field.names)});
    });
    return fields;
  }

 private:
  template <class Options>
  static std::string extents(const Options& options) {
    const std::string size = fmt::format(" size: {}", options.size);
    const std::string resize = options.resize > 0 ? fmt::format(" resize: {}", options.resize) : "";
    return size + resize + (options.exif_orientation ? " exif_orientation: true" : "");
  }
  std::string value(const std::string& text, Names names) const {
    return names == Names::kNothing ? quoted(text) : path(text);
  }
  std::string value(const std::vector<std::string>& texts, Names names) const {
    std::vector<std::string> values;
    for (const std::string& text : texts) values.push_back(value(text, names));
    return listed(values);
  }
  template <class Value>
  std::string value(const Value& value, Names) const {
    if constexpr (Named<Value>) {
      return std::string(job_name(value));
    } else if constexpr (std::is_arithmetic_v<Value>) {
      return fmt::format("{}", value);
    } else {
      throw UsageError("init does not write a job for data of this kind");
    }
  }

  fs::path base_;
};

}  // namespace

std::string path_text(const fs::path& path, const fs::path& base) {
  return quoted(fs::weakly_canonical(path).lexically_proximate(fs::weakly_canonical(base)).string());
}

std::string dataset_text(const data::DatasetOptions& options, const fs::path& base) {
  return std::visit(Writer(base), options);
}

std::string explained_dataset_text(const data::DatasetOptions& options, const fs::path& base,
                                   const std::vector<Reason>& reasons) {
  const Writer writer(base);
  std::string text = fmt::format("{} {{\n", data::kind_of(options));
  const auto fields = std::visit([&writer](const auto& chosen) { return writer.fields_of(chosen); }, options);
  for (const auto& [name, value] : fields) {
    text += fmt::format("      {}: {}", name, value);
    const auto reason = std::ranges::find(reasons, name, &Reason::field);
    text += reason == reasons.end() ? "\n" : fmt::format("   # {}\n", one_line(reason->text));
  }
  return text + "    }";
}

}  // namespace lockstep::init
