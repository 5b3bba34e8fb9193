// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/option_fields.h"
#include "runtime/data/dataset.h"
#include "runtime/data/description.h"
#include "runtime/data/formats/brace_expansion.h"
#include "runtime/data/preparation.h"

namespace lockstep::data {

/// The kinds of targets that files hold.
enum class TargetKind {
  kClasses,  ///< each is one of several
  kNumbers,  ///< each is a value
};

/// Labels are counted up to here: a higher one is taken for a damaged file, unless the options say how many there are.
inline constexpr std::int64_t kMostCountedClasses = std::int64_t{1} << 24;

/// Generated evaluation samples come from so far behind the training samples of the same sequence.
inline constexpr std::int64_t kFirstEvalSample = std::int64_t{1} << 40;

/// The kinds of targets that a model learns. The default loss follows from them.
enum class Targets { kClasses, kNumbers, kMasks };

/// A file of a data set and the field of the options that names it: "images", "files[1]".
struct NamedFile {
  std::string field;
  std::string path;
};

/// The files that the fields name.
template <Described Options>
std::vector<NamedFile> files_in_fields(const Options& options) {
  std::vector<NamedFile> files;
  const auto add = [&files](const std::string& path, Names names, const std::string& field) {
    if (path.empty()) return;
    if (names != Names::kFilePattern) return files.push_back({field, path});
    for (std::string& each : expand_braces(path)) files.push_back({field, std::move(each)});
  };
  for_each_field<Options>([&](const auto& field) {
    using Value = std::remove_cvref_t<decltype(options.*field.member)>;
    const std::string name(field.name);
    if (field.names == Names::kNothing) return;
    if constexpr (std::same_as<Value, std::string>) {
      add(options.*field.member, field.names, name);
    } else if constexpr (std::same_as<Value, std::vector<std::string>>) {
      std::size_t i = 0;
      for (const std::string& path : options.*field.member) {
        add(path, field.names, name + "[" + std::to_string(i++) + "]");
      }
    }
  });
  return files;
}

/// Whether the number of classes is counted where the options do not say it.
template <Described Options>
constexpr bool counts_classes() {
  bool counts = false;
  for_each_field<Options>([&counts](const auto& field) {
    if (field.name == "classes" && field.otherwise == Otherwise::kFollows) counts = true;
  });
  return counts;
}

/// The functions by which make_dataset() knows a kind of data set. `Kind` derives from this struct and says what
/// differs from what stands here; it has to have open(). Beside it are its options, with kKind, the name that a job has
/// for them, fields(), and problems_of().
template <class Kind, Described OptionsOfKind>
struct DatasetKind {
  using Options = OptionsOfKind;

  // static DatasetPtr open(const Options& options);
  // `lockstep init` finds a kind with these three by the endings of its files' names, .gz left out. Its options have
  // `files`. Other kinds are found by functions of runtime/init/find_kinds.h.
  // static constexpr std::array<std::string_view, N> kEndings{".csv"};
  // static constexpr std::string_view kFound = "a table";                      what init calls them
  // static Options found(const std::vector<std::string>& files);               what a job says of these files

  /// Describes the data. Reads only headers and labels where that is cheaper than open().
  static Description describe(const Options& options) { return data::describe(*Kind::open(options)); }
  static std::vector<NamedFile> files(const Options& options) { return files_in_fields(options); }
  static Targets targets(const Options& options) {
    if constexpr (requires { options.target_kind; }) {
      return options.target_kind == TargetKind::kNumbers ? Targets::kNumbers : Targets::kClasses;
    } else {
      return Targets::kClasses;
    }
  }
  /// In their order; none where the data know classes by their numbers.
  static std::vector<std::string> class_names(const Options&) { return {}; }
  // static std::int64_t count_classes(const Options& train);

  /// Gives options of evaluation data what they take from the training data, which are null where of another kind: the
  /// number of classes, where the kind counts them, as an evaluation set may lack one.
  static void become_eval(Options& eval, const Options* train) {
    if constexpr (requires { Kind::count_classes(eval); }) {
      if (train == nullptr || eval.classes > 0 || !has_classes(eval) || !has_classes(*train)) return;
      eval.classes = train->classes > 0 ? train->classes : Kind::count_classes(*train);
    }
  }
  /// Gives options of training data what is known of these, so that become_eval() opens none of their files.
  static void take_preparation(Options& train, const Preparation& preparation) {
    set_counted_classes(train, preparation.trained.classes);
    if constexpr (requires { train.class_names; }) {
      if (train.class_names.empty()) train.class_names = preparation.class_names;
    }
  }
  static bool has_classes(const Options& options) { return Kind::targets(options) == Targets::kClasses; }
  /// The classes of the training data, which were counted.
  static void set_counted_classes(Options& options, std::int64_t classes) {
    if constexpr (counts_classes<Options>()) {
      if (options.classes == 0) options.classes = classes;
    }
  }
};

}  // namespace lockstep::data

namespace lockstep {

/// The kinds of targets that a job can name.
template <>
struct EnumNames<data::TargetKind> {
  static constexpr std::array kNames{std::pair{data::TargetKind::kClasses, std::string_view("CLASSES")},
                                     std::pair{data::TargetKind::kNumbers, std::string_view("NUMBERS")}};
};

}  // namespace lockstep
