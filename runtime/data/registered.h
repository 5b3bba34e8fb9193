// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "runtime/base/registered.h"
#include "runtime/data/dataset.h"
#include "runtime/data/dataset_kind.h"

namespace lockstep::data {

/// Opens a data set. Called several times a run; each opens the same samples.
using OpenDataset = std::function<DatasetPtr(const Settings& settings)>;

/// Adds a data set that jobs call by `train { registered { name: "NAME" } }`, or eval. To be called before a job is
/// read, from one thread. Throws UsageError for a name that is empty or taken.
void register_dataset(const std::string& name, OpenDataset open);
/// The same, until what it returns is gone.
[[nodiscard]] Registration lend_dataset(const std::string& name, OpenDataset open);

/// A program's own data, as a job asks for them.
struct RegisteredKind : DatasetKind<RegisteredKind, RegisteredOptions> {
  static DatasetPtr open(const Options& options);
  static Targets targets(const Options& options);
};

}  // namespace lockstep::data
