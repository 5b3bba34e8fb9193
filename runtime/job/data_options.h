// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "runtime/data/loader.h"
#include "runtime/data/make_dataset.h"

namespace lockstep::job {

class Arrays;
class Augment;
class Csv;
class Data;
class Dataset;
class ImageFolder;
class Job;
class Shards;
class Spheres;
class Tokens;
class Volumes;

// What a job says of its data, as the options of runtime/data. A field without a value gives the option's own default.

data::SpheresOptions spheres_options(const Spheres& spheres);
data::VolumeAugmentOptions volume_augment_options(const Augment& augment);

/// Throws FieldError where no data set is named.
data::DataOptions data_options(const Data& data);

data::TokensOptions tokens_options(const Tokens& tokens);
data::ArraysOptions arrays_options(const Arrays& arrays);
data::CsvOptions csv_options(const Csv& csv);
data::ImageFolderOptions image_folder_options(const ImageFolder& images);
data::ShardsOptions shards_options(const Shards& shards);
data::VolumesOptions volumes_options(const Volumes& volumes);
data::AugmentOptions augment_options(const Augment& augment);

/// Whether the targets are values rather than classes.
bool learns_numbers(const Dataset& dataset);

/// The fields of Dataset.kind, for messages: "idx, cifar, ...".
std::string list_of_kinds();

data::SampleErrors sample_errors(const Data& data);

/// For one rank of one, from the start: the caller fills in `rank`, `world_size` and `start`. Batches hold inputs in
/// the dtype in which the job's model takes them.
data::LoaderOptions loader_options(const Job& job);

}  // namespace lockstep::job
