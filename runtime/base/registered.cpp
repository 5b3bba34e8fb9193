// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/registered.h"

#include <charconv>
#include <system_error>

#include "runtime/base/nearest.h"
#include "runtime/base/option_checks.h"
#include "runtime/base/program_name.h"

namespace lockstep {

namespace {

template <class Number>
Number parsed(const std::string& name, const std::string& text, const char* rule) {
  Number number = {};
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  if (problem == std::errc() && rest == end) return number;
  throw UsageError("the option \"" + name + "\" must be " + rule + ", is \"" + text + "\"");
}

}  // namespace

FieldProblems problems_of(const RegisteredOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  std::set<std::string> names;
  for (std::size_t i = 0; i < options.options.size(); ++i) {
    const std::string& name = options.options[i].name;
    if (!name.empty() && !names.insert(name).second) {
      checks.error("options[" + std::to_string(i) + "].name", "names \"" + name + "\" a second time");
    }
  }
  return checks.problems();
}

Settings::Settings(const std::vector<NamedValue>& options) {
  for (const NamedValue& option : options) values_.emplace(option.name, option.value);
}

const std::string* Settings::find(const std::string& name, bool required) const {
  asked_.insert(name);
  const auto found = values_.find(name);
  if (found != values_.end()) return &found->second;
  if (required) {
    throw UsageError("the option \"" + name + "\" has to be given",
                     "Write options { name: \"" + name + "\" value: \"...\" }.");
  }
  return nullptr;
}

std::string Settings::text(const std::string& name, const std::optional<std::string>& otherwise) const {
  const std::string* const value = find(name, !otherwise);
  return value == nullptr ? *otherwise : *value;
}

std::int64_t Settings::integer(const std::string& name, std::optional<std::int64_t> otherwise) const {
  const std::string* const value = find(name, !otherwise);
  return value == nullptr ? *otherwise : parsed<std::int64_t>(name, *value, "a whole number");
}

double Settings::number(const std::string& name, std::optional<double> otherwise) const {
  const std::string* const value = find(name, !otherwise);
  return value == nullptr ? *otherwise : parsed<double>(name, *value, "a number");
}

bool Settings::flag(const std::string& name, std::optional<bool> otherwise) const {
  const std::string* const value = find(name, !otherwise);
  if (value == nullptr) return *otherwise;
  if (*value == "true" || *value == "false") return *value == "true";
  throw UsageError("the option \"" + name + "\" must be true or false, is \"" + *value + "\"");
}

void Settings::require_all_read() const {
  for (const auto& [name, value] : values_) {
    if (asked_.contains(name)) continue;
    throw UsageError("there is no option \"" + name + "\"" +
                     (asked_.empty()
                          ? ": it has none"
                          : "; it has " + name_list(name, std::vector<std::string>(asked_.begin(), asked_.end()))));
  }
}

void throw_unregistered(std::string_view what, const std::string& name, const std::vector<std::string>& known) {
  const std::string noun(what);
  throw UsageError("no " + noun + " \"" + name + "\" is registered in this program, " + program_name() +
                       (known.empty() ? "" : "; it has " + name_list(name, known)),
                   "Start the job with the program that registers it, in place of " + program_name() +
                       " (docs/cpp.md, \"A program that is a command\").");
}

}  // namespace lockstep
