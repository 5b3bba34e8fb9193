// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/dataset.h"
#include "runtime/data/dataset_kind.h"
#include "runtime/data/description.h"

namespace lockstep::data {

enum class CifarLabels {
  kCifar10,         ///< 1 label byte a record
  kCifar100Fine,    ///< a coarse and a fine label byte; the fine one is used
  kCifar100Coarse,  ///< the same records; the coarse one is used
};

struct CifarOptions {
  std::vector<std::string> files = {};  ///< of the binary version, taken one after the other; at least one
  CifarLabels labels = CifarLabels::kCifar10;

  static constexpr std::string_view kKind = "cifar";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(
        option("files", &CifarOptions::files, Names::kFile, Required{"the binary files, [\"train.bin\"]"}),
        option("labels", &CifarOptions::labels));
  }
  bool operator==(const CifarOptions&) const = default;
};

/// By field; what is in the files is looked at when they are opened.
FieldProblems problems_of(const CifarOptions& options);

/// Images as a job asks for them. Samples are [32, 32, 3].
struct CifarKind : DatasetKind<CifarKind, CifarOptions> {
  /// Throws StorageError that names the file and what is wrong with it.
  static DatasetPtr open(const Options& options);
  /// Describes the data without reading the pixels.
  static Description describe(const Options& options);
};

}  // namespace lockstep::data

namespace lockstep {

/// The labels that a job can name.
template <>
struct EnumNames<data::CifarLabels> {
  static constexpr std::array kNames{
      std::pair{data::CifarLabels::kCifar10, std::string_view("CIFAR10")},
      std::pair{data::CifarLabels::kCifar100Fine, std::string_view("CIFAR100_FINE")},
      std::pair{data::CifarLabels::kCifar100Coarse, std::string_view("CIFAR100_COARSE")}};
};

}  // namespace lockstep
