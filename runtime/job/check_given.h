// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <type_traits>

#include "runtime/base/option_checks.h"
#include "runtime/job/checker.h"
#include "runtime/job/message_options.h"

namespace lockstep::job {

/// Reports what a message shows and its option struct cannot: a required field that is missing, a written number that
/// the struct takes for an absent one, extents that make no shape. `written`: the message as the job has it.
/// problems_of() reports the rest.
template <Described Options>
void check_given(const google::protobuf::Message& written, const std::string& path, Checker& checker) {
  for_each_field<Options>([&](const auto& option) {
    using Value = std::remove_cvref_t<decltype(Options().*option.member)>;
    const google::protobuf::FieldDescriptor& field = field_of(written, option.name);
    const std::string at = join_path(path, option.name);
    const int count = field.is_repeated() ? written.GetReflection()->FieldSize(written, &field) : 0;
    if (option.otherwise == Otherwise::kRequired) {
      const std::string what = what_is_required(option);
      if constexpr (std::is_arithmetic_v<Value>) {
        checker.require_value(at, what);
      } else {
        checker.require(field.is_repeated() ? count > 0 : has_value(written, field), at, what);
      }
    }
    if constexpr (std::is_arithmetic_v<Value>) {
      if (option.otherwise != Otherwise::kFollows || !option.bound || !has_value(written, field)) return;
      const double number = number_in(written, field, -1);
      checker.check(option.bound->holds(number), at, option.bound->rule, number);
    } else if constexpr (IsShape<Value>) {
      std::string problem = count > 0 && option.ranks ? problem_of_ranks(count, *option.ranks) : std::string();
      if (problem.empty()) problem = problem_of_extents(written, field);
      if (!problem.empty()) checker.error(at, problem);
    } else if constexpr (List<Value>) {
      if constexpr (Described<typename Value::value_type>) {
        for (int i = 0; i < count; ++i) {
          check_given<typename Value::value_type>(message_in(written, field, i), element_path(at, i), checker);
        }
      }
    }
  });
}

/// Checks the kind that a message has set, one of the variant's alternatives.
template <class Variant>
void check_given_kind(const google::protobuf::Message& written, const std::string& path, Checker& checker) {
  const google::protobuf::FieldDescriptor* const kind = kind_of(written);
  for_each_alternative<Variant>([&]<class Options>(std::type_identity<Options>) {
    if (kind == nullptr || kind->name() != Options::kKind) return;
    check_given<Options>(message_in(written, *kind, -1), join_path(path, kind->name()), checker);
  });
}

}  // namespace lockstep::job
