// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/registered.h"

#include <utility>

#include "runtime/base/error.h"
#include "runtime/data/description.h"

namespace lockstep::data {

namespace {

Registry<DatasetPtr>& datasets() {
  static Registry<DatasetPtr> registry("data set");
  return registry;
}

}  // namespace

void register_dataset(const std::string& name, OpenDataset open) { datasets().add(name, std::move(open)); }

Registration lend_dataset(const std::string& name, OpenDataset open) { return datasets().lend(name, std::move(open)); }

DatasetPtr RegisteredKind::open(const Options& options) { return datasets().make(options); }

Targets RegisteredKind::targets(const Options& options) {
  try {
    return open(options)->classes() > 0 ? Targets::kClasses : Targets::kNumbers;
  } catch (const Error&) {
    return Targets::kClasses;  // whoever opens it reports the error
  }
}

}  // namespace lockstep::data
