// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"

// Models, data sets, losses and schedules that a program adds to those that every program has. A job calls them by
// their names.
namespace lockstep {

/// An entry of a Registry that goes with its last owner.
using Registration = std::shared_ptr<const void>;

/// An option that a job gives to code of the program's own.
struct NamedValue {
  std::string name = {};
  std::string value = {};

  static constexpr auto fields() {
    return std::tuple(option("name", &NamedValue::name, Required{"the option's name"}),
                      option("value", &NamedValue::value, Required{"the option's value, as a text"}));
  }
  bool operator==(const NamedValue&) const = default;
};

/// A job's call of a model, a data set, a loss or a schedule that the program has registered.
struct RegisteredOptions {
  std::string name = {};
  std::vector<NamedValue> options = {};

  static constexpr std::string_view kKind = "registered";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("name", &RegisteredOptions::name, Required{"the name under which a program registers it"}),
                      option("options", &RegisteredOptions::options));
  }
  bool operator==(const RegisteredOptions&) const = default;
};

/// By field.
FieldProblems problems_of(const RegisteredOptions& options);

/// Reads the options of one call. A getter gives the option's value, or `otherwise` where the job does not give it.
/// Without `otherwise` the option has to be given. Each throws UsageError for a text that is no such value, and for one
/// that is missing.
class Settings {
 public:
  explicit Settings(const std::vector<NamedValue>& options);

  std::string text(const std::string& name, const std::optional<std::string>& otherwise = {}) const;
  std::int64_t integer(const std::string& name, std::optional<std::int64_t> otherwise = {}) const;
  double number(const std::string& name, std::optional<double> otherwise = {}) const;
  /// "true" or "false"
  bool flag(const std::string& name, std::optional<bool> otherwise = {}) const;

  /// Throws UsageError for an option that no getter was asked for: a misspelt one, most often.
  void require_all_read() const;

 private:
  /// Null where the job does not give the option.
  const std::string* find(const std::string& name, bool required) const;

  std::map<std::string, std::string> values_;
  mutable std::set<std::string> asked_;
};

/// Throws UsageError for a name that the program has not registered. `known`: those that it has.
[[noreturn]] void throw_unregistered(std::string_view what, const std::string& name,
                                     const std::vector<std::string>& known);

/// The functions that make what a program registers, by name. `what` is the noun for messages: "model".
template <class Product, class... Inputs>
class Registry {
 public:
  using Make = std::function<Product(Inputs..., const Settings&)>;

  explicit Registry(std::string_view what) : what_(what) {}

  /// Throws UsageError for an empty name or function, and for a name that is taken.
  void add(const std::string& name, Make make) {
    const std::string noun(what_);
    if (name.empty() || make == nullptr) throw UsageError("a registered " + noun + " needs a name and a function");
    if (!makers_.emplace(name, std::move(make)).second) {
      throw UsageError("the " + noun + " \"" + name + "\" is registered already");
    }
  }

  /// add(), until what it returns is gone.
  [[nodiscard]] Registration lend(const std::string& name, Make make) {
    add(name, std::move(make));
    return {this, [this, name](const void*) { makers_.erase(name); }};
  }

  /// Makes what the call names. Throws UsageError for a name that is unknown, for an option that nothing asks for, and
  /// for a function that gives nothing or throws what is no Error.
  Product make(const RegisteredOptions& call, Inputs... inputs) const {
    const auto found = makers_.find(call.name);
    if (found == makers_.end()) {
      std::vector<std::string> known;
      for (const auto& [name, unused] : makers_) known.push_back(name);
      throw_unregistered(what_, call.name, known);
    }
    const Settings settings(call.options);
    Product product = made(call.name, found->second, settings, inputs...);
    settings.require_all_read();
    if (product == nullptr) throw UsageError("the function of \"" + call.name + "\" gave no " + std::string(what_));
    return product;
  }

 private:
  Product made(const std::string& name, const Make& make, const Settings& settings, Inputs... inputs) const try {
    return make(inputs..., settings);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw UsageError("the function of \"" + name + "\" made no " + std::string(what_) + ": " + error.what());
  }

  std::string_view what_;
  std::map<std::string, Make> makers_;
};

}  // namespace lockstep
