// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/data/dataset.h"
#include "runtime/data/dataset_kind.h"
#include "runtime/data/description.h"

namespace lockstep::data {

struct SpheresOptions {
  std::int64_t samples = 0;       ///< has to be given
  Shape shape = {};               ///< of one sample, [D, H, W, C]; has to be given
  std::int64_t most = 3;          ///< a sample has between 1 and so many spheres
  double min_radius = 3;          ///< in voxels
  double max_radius = 8;          ///< in voxels
  double noise = 0.5;             ///< its standard deviation
  std::int64_t first_sample = 0;  ///< where the samples begin in an endless sequence: keeps training and test apart

  static constexpr std::string_view kKind = "spheres";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(
        option("samples", &SpheresOptions::samples, kPositive, Required{"the number of samples"}),
        option("shape", &SpheresOptions::shape, Ranks{4, 4}, Required{"the extents of one sample, [32, 32, 32, 1]"}),
        option("most", &SpheresOptions::most, Bound{"in [1, 1000]", 1, false, 1000}),
        option("min_radius", &SpheresOptions::min_radius, kPositive),
        option("max_radius", &SpheresOptions::max_radius, kPositive),
        option("noise", &SpheresOptions::noise, kNotNegative));
  }
  bool operator==(const SpheresOptions&) const = default;
};

/// All that is wrong with the options, by the names of the job's fields.
FieldProblems problems_of(const SpheresOptions& options);

/// Generated volumes: 1 within spheres of random places and radii, 0 outside, and noise over both, of each channel its
/// own. Targets are masks [D, H, W]: 1 where the centre of a voxel lies within a sphere. A sample depends on its index
/// alone, to the bit.
class SpheresDataset : public Dataset {
 public:
  /// Throws FieldError for the first of problems_of().
  explicit SpheresDataset(const SpheresOptions& options);

  std::int64_t size() const override { return options_.samples; }
  Shape sample_shape() const override { return options_.shape; }
  std::int64_t classes() const override { return 0; }
  Shape target_shape() const override;
  void get(const SampleKey& key, const Sample& sample) const override;

 private:
  SpheresOptions options_;
};

/// Spheres, as a job asks for them.
struct SpheresKind : DatasetKind<SpheresKind, SpheresOptions> {
  static DatasetPtr open(const Options& options) { return std::make_shared<SpheresDataset>(options); }
  static Targets targets(const Options&) { return Targets::kMasks; }
  static void become_eval(Options& eval, const Options*) { eval.first_sample += kFirstEvalSample; }
};

}  // namespace lockstep::data
