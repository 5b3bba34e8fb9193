// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/job_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "runtime/data/sample_reader.h"
#include "runtime/init/dataset_text.h"

namespace lockstep::init {

namespace {

/// The least steps of a run, however few its data are.
constexpr std::int64_t kLeastSteps = 200;

std::string size_of(const FoundData& found, const data::Description& data) {
  std::string text = fmt::format("{}: {} samples of ", found.what, data.samples);
  text += data.vocabulary > 0 ? fmt::format("{} tokens below {}", data.sample_shape[0], data.vocabulary)
                              : data.inputs_text();
  if (data.vocabulary == 0 && data.classes > 0) text += fmt::format(" in {} classes", data.classes);
  return text;
}

std::string counted(std::int64_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string numbers(const std::vector<std::string>& texts) {
  return texts.size() == 1 ? texts[0] : fmt::format("[{}]", fmt::join(texts, ", "));
}

/// The mean with as many digits as the deviation needs: 4 digits of a timestamp would not tell a day from the next.
std::string mean_text(float mean, float deviation) {
  std::string text;
  for (int digits = 4; digits <= 9; ++digits) {
    text = fmt::format("{:.{}g}", mean, digits);
    if (std::abs(std::strtod(text.c_str(), nullptr) - mean) <= 1e-3 * deviation) break;
  }
  return text;
}

std::string normalize_text(const data::NormalizeOptions& options) {
  std::vector<std::string> means, deviations;
  for (std::size_t i = 0; i < options.mean.size(); ++i) {
    means.push_back(mean_text(options.mean[i], options.std[i]));
    deviations.push_back(fmt::format("{:.4g}", options.std[i]));
  }
  return fmt::format("mean: {} std: {}", numbers(means), numbers(deviations));
}

/// Leaves out samples that cannot be read, as many as there are.
std::string skip_text(std::int64_t damaged) {
  const std::int64_t taken = data::SampleErrors().max_skipped;
  return fmt::format("  on_error: SKIP   # {} cannot be read; FAIL ends the run at the first\n{}",
                     counted(damaged, "sample"), damaged > taken ? fmt::format("  max_skipped: {}\n", damaged) : "");
}

}  // namespace

std::string job_text(const FoundData& found, const data::Description& data, const std::optional<Measured>& measured,
                     const Recipe& recipe, const JobTextOptions& options) {
  const std::int64_t epoch = (data.samples + recipe.batch - 1) / recipe.batch;
  const std::int64_t wanted = options.epochs > 0 ? options.epochs : recipe.epochs;
  const std::int64_t epochs = options.epochs > 0 ? wanted : std::max(wanted, (kLeastSteps + epoch - 1) / epoch);
  const std::int64_t steps = epochs * epoch;
  const std::int64_t eval_every = epoch * std::max<std::int64_t>(1, epochs / 10);
  const bool evaluates = found.options.evaluates();
  const bool holds_out = evaluates && !found.options.eval;
  const std::int64_t held = holds_out ? data::describe(found.options, data::Split::kEval).samples : 0;

  std::string text = fmt::format("# {}\n", size_of(found, data));
  for (const std::string& note : found.notes) text += fmt::format("# {}\n", note);
  text += fmt::format("#   lockstep validate {0}\n#   lockstep train {0}\n", options.file);
  text += "# What is left out takes the default that docs/job.md names.\n";
  text += fmt::format("name: \"{}\"\nseed: 1\n\nmodel {{ {} }}\n\n", options.name, recipe.model);
  if (!recipe.init_from.empty()) text += recipe.init_from + "\n\n";
  text += "data {\n";
  text += fmt::format("  global_batch: {}   # samples a step, over all ranks\n", recipe.batch);
  if (found.reasons.empty()) {
    text += fmt::format("  train {{ {} }}\n", dataset_text(found.options.train, options.base));
  } else {
    text += fmt::format("  train {{\n    {}\n  }}\n",
                        explained_dataset_text(found.options.train, options.base, found.reasons));
  }
  if (found.options.eval) {
    text += fmt::format("  eval {{ {} }}\n", dataset_text(*found.options.eval, options.base));
  } else if (holds_out) {
    text += fmt::format(
        "  # {} of {} samples are for evaluation alone: a hash of its content chooses a sample, so that\n"
        "  # equal ones stay together; data of their own would stand here as eval {{ ... }}\n"
        "  eval_share: {}\n",
        held, held + data.samples, found.options.hold_out.eval_share);
  } else {
    text += "  # no data to evaluate on were found: put some aside, and name them here as eval { ... }\n";
  }
  if (options.damaged > 0) text += skip_text(options.damaged);
  if (!recipe.normalize.empty()) {
    text +=
        fmt::format("  # as the images were that the weights learned from\n  normalize {{ {} }}\n", recipe.normalize);
  } else if (measured) {
    const std::string on = fmt::format("measured on {} {}samples{}", measured->samples, holds_out ? "" : "training ",
                                       measured->samples < data.samples + held ? ", spread over all" : "");
    if (measured->normalize != data::NormalizeOptions()) {
      text += fmt::format("  # {}\n  normalize {{ {} }}\n", on, normalize_text(measured->normalize));
    }
    if (measured->target != data::NormalizeOptions() && recipe.loss.empty()) {
      text += fmt::format(
          "  # {}; for the loss alone: metrics and predictions are in the files' units\n"
          "  normalize_target {{ {} }}\n",
          on, normalize_text(measured->target));
    }
  }
  std::string augment = recipe.augment;
  if (recipe.patch) {
    augment =
        fmt::format("patch: [{}]{}{}", fmt::join(recipe.patch->extents(), ", "), augment.empty() ? "" : " ", augment);
  }
  if (!augment.empty()) {
    text += fmt::format("  augment {{ {} }}", augment);
    text += recipe.augment.find("flip") == std::string::npos ? "\n"
                                                             : "   # no flip where left and right differ in meaning\n";
  }
  text += "}\n\n";
  if (!recipe.amp.empty()) {
    text += fmt::format("amp {{ {} }}   # O0 trains in fp32\n\n", recipe.amp);
  }
  text += fmt::format("optimizer {{ {} }}\n\nschedule {{ cosine {{ warmup_steps: {} }} }}\n\n", recipe.optimizer,
                      std::max<std::int64_t>(1, steps / 20));
  text += fmt::format("train {{\n  steps: {}   # {} of {}\n", steps, counted(epochs, "epoch"), counted(epoch, "step"));
  if (evaluates) text += fmt::format("  eval_every: {}\n", eval_every);
  if (!recipe.loss.empty()) text += fmt::format("  loss: {}\n", recipe.loss);
  if (evaluates && recipe.patience > 0) {
    text += fmt::format(
        "  # {0} evaluations in a row that are no better than the best one end the run\n"
        "  early_stopping {{ metric: \"eval.loss\" patience: {0} }}\n",
        recipe.patience);
  }
  text += fmt::format("}}\n\ncheckpoint {{ every_steps: {} keep: 3{} }}\n", eval_every,
                      evaluates ? fmt::format(" best: \"{}\"", recipe.metric) : "");
  return text;
}

}  // namespace lockstep::init
