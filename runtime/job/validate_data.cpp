// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "configs/job.pb.h"
#include "runtime/base/option_checks.h"
#include "runtime/job/check_given.h"
#include "runtime/job/data_options.h"
#include "runtime/job/message_options.h"
#include "runtime/job/path_fields.h"
#include "runtime/job/validate_parts.h"

namespace lockstep::job {

namespace {

/// `written`: the data set as the job has it.
void check_dataset(const Dataset& resolved, const Dataset& written, const std::string& path, Checker& checker) {
  const google::protobuf::FieldDescriptor* const kind = kind_of(resolved);
  if (!checker.require(kind != nullptr, path, "one of " + kinds_of(*Dataset::descriptor()))) return;
  check_given_kind<data::DatasetOptions>(written, path, checker);
  const auto check = [&]<class Options>(const Options& options) {
    const std::string at = join_path(path, Options::kKind);
    checker.adopt(problems_of(options), at);
    check_paths(message_in(resolved, *kind, -1), message_in(written, *kind, -1), path_fields<Options>(), at, checker);
  };
  std::visit(check, kind_options_of<data::DatasetOptions>(resolved, path));
}

/// Whether the data set crops the images that it decodes.
bool crops(const Dataset& dataset) {
  return std::visit(
      [](const auto& options) {
        return requires { options.random_resized_crop; };
      },
      kind_options_of<data::DatasetOptions>(dataset, "data.train"));
}

void check_augment(const Data& data, Checker& checker) {
  const std::string path = "data.augment";
  check_given<data::VolumeAugmentOptions>(data.augment(), path, checker);
  checker.adopt(problems_of(augment_options(data.augment())), path);
  if (data.augment().has_color_jitter() && data.train().has_arrays()) {
    // It keeps values between 0 and 1, as those of images are; arrays are taken as they stand.
    checker.error(path + ".color_jitter", "is for images, not for data.train.arrays");
  }
  if (!data.augment().has_random_resized_crop() || !checker.trusts({"data.train"})) return;
  if (kind_of(data.train()) == nullptr || crops(data.train())) return;
  checker.error(path + ".random_resized_crop",
                "is for data.train.image_folder and data.train.shards; pad_crop crops images of one size");
}

void check_normalize(const Normalize& normalize, const std::string& path, Checker& checker) {
  checker.adopt(problems_in_fields(options_of<data::NormalizeOptions>(normalize)), path);
  const int means = normalize.mean_size();
  const int stds = normalize.std_size();
  if (means > 1 && stds > 1 && means != stds && checker.trusts({path + ".mean", path + ".std"})) {
    checker.error(path, fmt::format("mean has {} values and std {}; give one a channel, or one for all", means, stds));
  }
}

}  // namespace

void validate_data(const Data& resolved, const Data& written, Checker& checker) {
  check_given<data::LoaderOptions>(written, "data", checker);
  checker.adopt(problems_in_fields(options_of<data::LoaderOptions>(resolved)), "data");
  check_dataset(resolved.train(), written.train(), "data.train", checker);
  if (resolved.has_eval()) check_dataset(resolved.eval(), written.eval(), "data.eval", checker);
  checker.adopt(problems_in_fields(options_of<data::HoldOutOptions>(resolved)), "data");
  if (resolved.has_eval() && resolved.eval_share() > 0 && checker.trusts({"data.eval"})) {
    checker.error("data.eval_share", "stands in place of data.eval: give one");
  }
  if (resolved.has_augment()) check_augment(resolved, checker);
  if (resolved.has_normalize()) check_normalize(resolved.normalize(), "data.normalize", checker);
  if (resolved.has_normalize_target()) {
    check_normalize(resolved.normalize_target(), "data.normalize_target", checker);
  }
  if (resolved.eval().synthetic().resident()) {
    checker.error("data.eval.synthetic.resident", "is for data.train.synthetic: evaluation loads its samples");
  }
  // A resolved job says max_skipped, too: with its default value.
  if (checker.trusts({"data.on_error", "data.max_skipped"}) && resolved.on_error() != SKIP &&
      resolved.max_skipped() != data::SampleErrors().max_skipped) {
    checker.error("data.max_skipped", "needs on_error: SKIP");
  }
  if (written.has_decode_threads() && resolved.prefetch() == 0 && checker.trusts({"data.prefetch"})) {
    checker.error("data.decode_threads", "needs prefetch > 0: without it no thread decodes");
  }
  if (written.has_eval_batch()) checker.at_least_one(written.eval_batch(), "data.eval_batch");
}

}  // namespace lockstep::job
