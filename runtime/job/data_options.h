// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/data/loader.h"
#include "runtime/data/make_dataset.h"

namespace lockstep::job {

class Augment;
class Data;
class Dataset;
class Job;

// The options of runtime/data, from a job. A field without a value gives the option's own default.

/// Throws FieldError where no data set is named.
data::DataOptions data_options(const Data& data);

/// Whether there are data to evaluate on: a data set, or a share of the training data.
bool evaluates(const Data& data);

data::AugmentOptions augment_options(const Augment& augment);

/// The kind of targets of a data set; classes where none is named.
data::Targets targets_of(const Dataset& dataset);

data::SampleErrors sample_errors(const Data& data);

/// For one rank of one, from the start: the caller fills in `rank`, `world_size` and `start`. Batches hold inputs in
/// the dtype in which the job's model takes them.
data::LoaderOptions loader_options(const Job& job);

}  // namespace lockstep::job
