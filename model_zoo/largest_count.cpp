// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/largest_count.h"

#include <algorithm>
#include <concepts>
#include <type_traits>
#include <variant>

#include "runtime/base/option_fields.h"

namespace lockstep::model_zoo {

namespace {

/// Usual for a count that has no default: a width.
constexpr double kUsualWidth = 1024;

class LargestCount {
 public:
  explicit LargestCount(std::string kind) : found_{.path = std::move(kind)} {}

  template <Described Options>
  void look_at(const Options& options, const std::string& path) {
    const Options usual;
    for_each_field<Options>([&](const auto& field) {
      const std::string name = path + "." + std::string(field.name);
      const auto& value = options.*field.member;
      if constexpr (std::integral<std::remove_cvref_t<decltype(value)>>) {
        take(value, name, static_cast<double>(usual.*field.member));
      } else {
        look_into(value, name);
      }
    });
  }

  const Count& found() const { return found_; }

 private:
  template <class Value>
  void look_into(const Value& value, const std::string& name) {
    if constexpr (Optional<Value>) {
      if (value) look_into(*value, name);
    } else if constexpr (List<Value>) {
      for (std::size_t i = 0; i < value.size(); ++i) look_into(value[i], name + "[" + std::to_string(i) + "]");
    } else if constexpr (Described<Value>) {
      look_at(value, name);
    } else if constexpr (std::integral<Value>) {
      take(value, name, kUsualWidth);
    }
  }

  template <std::integral Value>
  void take(Value value, const std::string& name, double usual) {
    if constexpr (std::same_as<Value, bool>) return;
    const double share = static_cast<double>(value) / std::max(usual, 1.0);
    if (share <= largest_) return;
    largest_ = share;
    found_ = {name, static_cast<std::int64_t>(value)};
  }

  Count found_;
  double largest_ = 0;
};

}  // namespace

Count largest_count(const ModelOptions& options) {
  return std::visit(
      []<class Options>(const Options& kind) {
        if constexpr (std::same_as<Options, RegisteredOptions>) {
          return Count{.path = "model.registered"};
        } else {
          const std::string path = "model." + std::string(Options::kKind);
          LargestCount largest(path);
          largest.look_at(kind, path);
          return largest.found();
        }
      },
      options);
}

}  // namespace lockstep::model_zoo
