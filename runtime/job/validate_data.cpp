// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "configs/job.pb.h"
#include "runtime/base/error.h"
#include "runtime/data/formats/brace_expansion.h"
#include "runtime/job/data_options.h"
#include "runtime/job/scalar.h"
#include "runtime/job/validate_parts.h"

namespace lockstep::job {

namespace {

constexpr std::uint32_t kMostPrefetch = 1024;
constexpr std::uint32_t kMostDecodeThreads = 256;
constexpr int kMostSampleDimensions = 4;

enum class Kind { kFile, kFolder };

/// What keeps `resolved` from being there and of its kind; nothing where it is.
std::string problem_of_file(const std::string& resolved, const std::string& written, Kind kind) {
  const bool folder = kind == Kind::kFolder;
  const std::string shown = "\"" + written + "\"" + (written == resolved ? "" : " (" + resolved + ")");
  std::error_code failure;
  const std::filesystem::file_status status = std::filesystem::status(resolved, failure);
  if (status.type() == std::filesystem::file_type::not_found) {
    return std::string(kMissing) + (folder ? "folder: " : "file: ") + shown;
  }
  if (folder && status.type() != std::filesystem::file_type::directory && std::filesystem::exists(status)) {
    return "is no folder: " + shown;
  }
  if (!folder && status.type() == std::filesystem::file_type::directory) {
    return "is a directory, not a file: " + shown;
  }
  if (!std::filesystem::exists(status)) {
    return "cannot be reached: " + shown + ": " + failure.message();
  }
  if (!folder && status.type() != std::filesystem::file_type::regular) {
    return "is no regular file: " + shown;
  }
  return "";
}

/// A checkpoint holds the resolved job.
void check_utf8(const std::string& resolved, const std::string& path, Checker& checker) {
  if (!is_clean_utf8(resolved)) checker.error(path, "must lie in a folder whose name is UTF-8 text");
}

/// `resolved` is there and of its kind.
void check_file(const std::string& resolved, const std::string& written, const std::string& path, Checker& checker,
                Kind kind = Kind::kFile) {
  const bool folder = kind == Kind::kFolder;
  if (!checker.require(!resolved.empty(), path, folder ? "the path of a folder" : "the path of a file")) return;
  const std::string problem = problem_of_file(resolved, written, kind);
  if (!problem.empty()) checker.error(path, problem);
  check_utf8(resolved, path, checker);
}

/// Whether a shape of these extents has a number of elements that a tensor can have.
template <class Extents>
bool check_elements(const Extents& extents, const std::string& path, Checker& checker) {
  std::int64_t count = 1;
  for (const auto extent : extents) {
    if (!__builtin_mul_overflow(count, static_cast<std::int64_t>(extent), &count)) continue;
    checker.error(path, "has more elements than can be counted");
    return false;
  }
  return true;
}

void check_synthetic(const Synthetic& synthetic, const std::string& path, Checker& checker) {
  checker.required_positive(synthetic.samples(), path + ".samples", "the number of samples");
  checker.require(synthetic.shape_size() > 0, path + ".shape", "the extents of one sample, [32, 32, 3] or [1024]");
  checker.check(synthetic.shape_size() <= kMostSampleDimensions, path + ".shape", "of at most 4 extents",
                synthetic.shape_size());
  for (int i = 0; i < synthetic.shape_size(); ++i) {
    checker.at_least_one(synthetic.shape(i), element_path(path + ".shape", i));
  }
  check_elements(synthetic.shape(), path + ".shape", checker);
  if (!checker.trusts({path + ".classes", path + ".target_size", path + ".vocabulary"})) return;
  if (synthetic.vocabulary() > 0) {
    checker.check(synthetic.shape_size() == 1, path + ".shape", "of 1 extent where samples are tokens",
                  synthetic.shape_size());
    checker.check(synthetic.classes() == 0, path + ".classes", "absent where samples are tokens", synthetic.classes());
    checker.check(synthetic.target_size() == 0, path + ".target_size", "absent where samples are tokens",
                  synthetic.target_size());
  } else if (synthetic.classes() == 0) {
    checker.required_positive(synthetic.target_size(), path + ".target_size",
                              "the length of a regression target (or give the number of classes)");
  } else {
    checker.check(synthetic.target_size() == 0, path + ".target_size", "absent where there are classes",
                  synthetic.target_size());
  }
}

void check_spheres(const Spheres& spheres, const std::string& path, Checker& checker) {
  checker.required_positive(spheres.samples(), path + ".samples", "the number of samples");
  const std::string shape = path + ".shape";
  const bool fits = checker.require(spheres.shape_size() > 0, shape, "the extents of one sample, [32, 32, 32, 1]") &&
                    checker.check(spheres.shape_size() == 4, shape, "of 4 extents", spheres.shape_size());
  for (int i = 0; i < spheres.shape_size(); ++i) {
    if (!checker.at_least_one(spheres.shape(i), element_path(shape, i))) return;
  }
  if (fits && check_elements(spheres.shape(), shape, checker))
    checker.adopt(data::problems_of(spheres_options(spheres)), path);
}

/// Whether the patch, where there is one, is a shape.
bool check_volume_augment(const Augment& augment, Checker& checker) {
  const std::string path = "data.augment";
  bool is_shape = check_elements(augment.patch(), path + ".patch", checker);
  if (augment.patch_size() > 0) {
    is_shape &= checker.check(augment.patch_size() == 3, path + ".patch", "of 3 extents", augment.patch_size());
    for (int i = 0; i < augment.patch_size(); ++i) {
      checker.at_least_one(augment.patch(i), element_path(path + ".patch", i));
    }
  }
  checker.fraction(augment.intensity_scale(), path + ".intensity_scale");
  checker.not_negative(augment.intensity_shift(), path + ".intensity_shift");
  return is_shape;
}

/// Written as they were in the job, and as resolved.
template <class Files>
void check_files(const Files& resolved, const Files& written, const std::string& path, Checker& checker) {
  for (int i = 0; i < resolved.size(); ++i) check_file(resolved[i], written[i], element_path(path, i), checker);
}

void check_tokens(const Tokens& resolved, const Tokens& written, const std::string& path, Checker& checker) {
  checker.require(resolved.files_size() > 0, path + ".files", "the files of tokens, [\"train.bin\"]");
  check_files(resolved.files(), written.files(), path + ".files", checker);
  if (!resolved.vocab_file().empty()) {
    check_file(resolved.vocab_file(), written.vocab_file(), path + ".vocab_file", checker);
  }
  if (!resolved.merges_file().empty()) {
    check_file(resolved.merges_file(), written.merges_file(), path + ".merges_file", checker);
  }
  checker.require_value(path + ".context", "the tokens of a sample");
  if (written.has_stride()) checker.at_least_one(written.stride(), path + ".stride");
  if (written.has_vocabulary()) checker.at_least_one(written.vocabulary(), path + ".vocabulary");
  checker.adopt(data::problems_of(tokens_options(resolved)), path);
}

void check_arrays(const Arrays& resolved, const Arrays& written, const std::string& path, Checker& checker) {
  check_file(resolved.features(), written.features(), path + ".features", checker);
  check_file(resolved.targets(), written.targets(), path + ".targets", checker);
  if (!resolved.weights().empty()) check_file(resolved.weights(), written.weights(), path + ".weights", checker);
  if (written.has_classes()) checker.at_least_one(written.classes(), path + ".classes");
  checker.adopt(data::problems_of(arrays_options(resolved)), path);
}

void check_csv(const Csv& resolved, const Csv& written, const std::string& path, Checker& checker) {
  checker.require(resolved.files_size() > 0, path + ".files", "the files, [\"train.csv\"]");
  check_files(resolved.files(), written.files(), path + ".files", checker);
  if (written.has_classes()) checker.at_least_one(written.classes(), path + ".classes");
  checker.adopt(data::problems_of(csv_options(resolved)), path);
}

void check_image_folder(const ImageFolder& resolved, const ImageFolder& written, const std::string& path,
                        Checker& checker) {
  check_file(resolved.folder(), written.folder(), path + ".folder", checker, Kind::kFolder);
  if (written.has_resize()) checker.at_least_one(written.resize(), path + ".resize");
  checker.adopt(data::problems_of(image_folder_options(resolved)), path);
}

/// Thousands of files that are not there have one cause, most often: the first is named, and the others counted.
void check_shard_files(const std::string& resolved, const std::string& written, const std::string& path,
                       Checker& checker) {
  if (!checker.require(!resolved.empty(), path, "the path of a file")) return;
  const std::vector<std::string> files = data::expand_braces(resolved);
  std::string first;
  std::size_t wrong = 0;
  for (const std::string& file : files) {
    std::string problem = problem_of_file(file, files.size() == 1 ? written : file, Kind::kFile);
    if (!problem.empty() && ++wrong == 1) first = std::move(problem);
  }
  if (wrong > 1) first += fmt::format("; {} of its {} files cannot be read", wrong, files.size());
  if (wrong > 0) checker.error(path, first);
  check_utf8(resolved, path, checker);
}

void check_shards(const Shards& resolved, const Shards& written, const std::string& path, Checker& checker) {
  const data::ShardsOptions options = shards_options(resolved);
  const FieldProblems problems = data::problems_of(options);
  if (written.has_resize()) checker.at_least_one(written.resize(), path + ".resize");
  if (written.has_classes()) checker.at_least_one(written.classes(), path + ".classes");
  checker.adopt(problems, path);
  for (int i = 0; i < resolved.files_size(); ++i) {
    const std::string field = element_path("files", i);
    if (std::ranges::any_of(problems, [&field](const FieldProblem& problem) { return problem.field == field; })) {
      continue;
    }
    check_shard_files(resolved.files(i), written.files(i), path + "." + field, checker);
  }
}

void check_volumes(const Volumes& resolved, const Volumes& written, const std::string& path, Checker& checker) {
  check_file(resolved.images(), written.images(), path + ".images", checker, Kind::kFolder);
  check_file(resolved.masks(), written.masks(), path + ".masks", checker, Kind::kFolder);
  if (written.has_classes()) checker.at_least_one(written.classes(), path + ".classes");
  checker.adopt(data::problems_of(volumes_options(resolved)), path);
}

void check_augment(const Data& data, Checker& checker) {
  checker.not_negative(data.augment().mixup(), "data.augment.mixup");
  if (!check_volume_augment(data.augment(), checker)) return;
  const data::AugmentOptions options = augment_options(data.augment());
  checker.adopt(data::problems_of(options.color_jitter), "data.augment.color_jitter");
  if (data.augment().has_color_jitter() && data.train().has_arrays()) {
    // It keeps values between 0 and 1, as those of images are; arrays are taken as they stand.
    checker.error("data.augment.color_jitter", "is for images, not for data.train.arrays");
  }
  if (!options.random_resized_crop) return;
  const std::string path = "data.augment.random_resized_crop";
  checker.adopt(data::problems_of(*options.random_resized_crop), path);
  if (!checker.trusts({"data.train"}) || !data.has_train()) return;
  if (data.train().has_image_folder() || data.train().has_shards()) return;
  checker.error(path, "is for data.train.image_folder and data.train.shards; pad_crop crops images of one size");
}

void check_dataset(const Dataset& resolved, const Dataset& written, const std::string& path, Checker& checker) {
  switch (resolved.kind_case()) {
    case Dataset::kIdx:
      check_file(resolved.idx().images(), written.idx().images(), path + ".idx.images", checker);
      check_file(resolved.idx().labels(), written.idx().labels(), path + ".idx.labels", checker);
      if (resolved.idx().has_classes()) checker.at_least_one(resolved.idx().classes(), path + ".idx.classes");
      return;
    case Dataset::kCifar:
      checker.require(resolved.cifar().files_size() > 0, path + ".cifar.files", "the binary files, [\"train.bin\"]");
      return check_files(resolved.cifar().files(), written.cifar().files(), path + ".cifar.files", checker);
    case Dataset::kSynthetic:
      return check_synthetic(resolved.synthetic(), path + ".synthetic", checker);
    case Dataset::kTokens:
      return check_tokens(resolved.tokens(), written.tokens(), path + ".tokens", checker);
    case Dataset::kArrays:
      return check_arrays(resolved.arrays(), written.arrays(), path + ".arrays", checker);
    case Dataset::kCsv:
      return check_csv(resolved.csv(), written.csv(), path + ".csv", checker);
    case Dataset::kImageFolder:
      return check_image_folder(resolved.image_folder(), written.image_folder(), path + ".image_folder", checker);
    case Dataset::kSpheres:
      return check_spheres(resolved.spheres(), path + ".spheres", checker);
    case Dataset::kShards:
      return check_shards(resolved.shards(), written.shards(), path + ".shards", checker);
    case Dataset::kVolumes:
      return check_volumes(resolved.volumes(), written.volumes(), path + ".volumes", checker);
    case Dataset::KIND_NOT_SET:
      checker.require(false, path, "one of " + list_of_kinds());
  }
}

void check_normalize(const Normalize& normalize, Checker& checker) {
  const std::string path = "data.normalize";
  for (int i = 0; i < normalize.mean_size(); ++i) {
    checker.check(std::isfinite(normalize.mean(i)), element_path(path + ".mean", i), "finite", normalize.mean(i));
  }
  for (int i = 0; i < normalize.std_size(); ++i) {
    checker.positive(normalize.std(i), element_path(path + ".std", i));
  }
  const int means = normalize.mean_size();
  const int stds = normalize.std_size();
  if (means > 1 && stds > 1 && means != stds && checker.trusts({path + ".mean", path + ".std"})) {
    checker.error(path, fmt::format("mean has {} values and std {}; give one a channel, or one for all", means, stds));
  }
}

}  // namespace

void validate_data(const Data& resolved, const Data& written, Checker& checker) {
  checker.required_positive(resolved.global_batch(), "data.global_batch", "the samples a step over all ranks");
  check_dataset(resolved.train(), written.train(), "data.train", checker);
  if (resolved.has_eval()) check_dataset(resolved.eval(), written.eval(), "data.eval", checker);
  if (resolved.has_augment()) check_augment(resolved, checker);
  if (resolved.has_normalize()) check_normalize(resolved.normalize(), checker);
  if (resolved.eval().synthetic().resident()) {
    checker.error("data.eval.synthetic.resident", "is for data.train.synthetic: evaluation loads its samples");
  }
  // A resolved job says max_skipped, too: with its default value.
  if (checker.trusts({"data.on_error", "data.max_skipped"}) && resolved.on_error() != SKIP &&
      resolved.max_skipped() != data::SampleErrors().max_skipped) {
    checker.error("data.max_skipped", "needs on_error: SKIP");
  }
  checker.check(resolved.prefetch() <= kMostPrefetch, "data.prefetch", "<= 1024", resolved.prefetch());
  if (written.has_decode_threads()) {
    checker.check(written.decode_threads() >= 1 && written.decode_threads() <= kMostDecodeThreads,
                  "data.decode_threads", ">= 1 and <= 256", written.decode_threads());
    if (resolved.prefetch() == 0 && checker.trusts({"data.prefetch"})) {
      checker.error("data.decode_threads", "needs prefetch > 0: without it no thread decodes");
    }
  }
  if (written.has_eval_batch()) checker.at_least_one(written.eval_batch(), "data.eval_batch");
}

}  // namespace lockstep::job
