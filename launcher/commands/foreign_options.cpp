// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/foreign_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "runtime/job/job.h"
#include "runtime/job/message_options.h"

namespace lockstep::launcher {

namespace {

constexpr std::string_view kJobEnding = ".pbtxt";

/// Options of training scripts that mean the same.
struct Foreign {
  std::vector<std::string_view> names;  ///< with '-' for '_'
  std::string_view needs;               ///< an option of the command
  std::string_view sample;              ///< a value; empty where that of the script is of another kind
  /// {0}: the value; {1}: the job's optimizer, as "sgd".
  std::string_view words;
};

const std::vector<Foreign>& foreign_options() {
  static const std::vector<Foreign> foreign{
      {{"--lr", "--learning-rate"}, "--set", "0.1", "a field of the job says it: --set optimizer.{1}.lr={0}"},
      {{"--weight-decay"}, "--set", "1e-4", "a field of the job says it: --set optimizer.{1}.weight_decay={0}"},
      {{"--batch-size", "--train-batch-size"},
       "--set",
       "64",
       "a field of the job says it, for all ranks together: --set data.global_batch={0}"},
      {{"--epochs", "--num-epochs", "--max-epochs", "--num-train-epochs"},
       "--set",
       "3",
       "a field of the job says it: --set train.epochs={0}"},
      {{"--steps", "--max-steps", "--iterations"}, "--set", "600", "a field of the job says it: --set train.steps={0}"},
      {{"--seed"}, "--set", "1", "a field of the job says it: --set seed={0}"},
      {{"--fp16"}, "--set", "", "fields of the job say it: --set amp.opt_level=O1 --set amp.dtype=FP16"},
      {{"--bf16", "--precision", "--amp"},
       "--set",
       "",
       "fields of the job say it: --set amp.opt_level=O1 --set amp.dtype=BF16"},
      {{"--accumulate-grad-batches", "--gradient-accumulation-steps"},
       "--set",
       "4",
       "a field of the job says it: --set train.accumulate={0}"},
      {{"--clip-grad-norm", "--max-grad-norm", "--gradient-clip-val"},
       "--set",
       "1.0",
       "a field of the job says it: --set optimizer.clip_norm={0}"},
      {{"--workers", "--num-workers"}, "--set", "4", "a field of the job says it: --set data.decode_threads={0}"},
      {{"--gpus", "--num-gpus", "--ngpus", "--devices", "--nproc-per-node"},
       "--nproc",
       "",
       "each GPU has a rank of its own: --nproc 2 starts two"},
      {{"--nodes", "--nnodes", "--num-nodes"}, "--hosts", "", "hosts are named: --hosts a:4,b:4"},
      {{"--output-dir", "--save-dir", "--default-root-dir"}, "--run-dir", "DIR", "a run has a folder: --run-dir {0}"},
  };
  return foreign;
}

/// Whether it is neither an option nor the job; "-0.5" is a number.
bool is_value(std::string_view argument) {
  if (argument.ends_with(kJobEnding)) return false;
  constexpr std::string_view kOfNumbers = "0123456789.";
  return !argument.starts_with('-') || (argument.size() > 1 && kOfNumbers.find(argument[1]) != std::string_view::npos);
}

/// Behind the option, or behind its '='; `otherwise` where there is none.
std::string given_value(const std::string& option, std::span<const char* const> arguments, std::string_view otherwise) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument.starts_with(option + "=")) return std::string(argument.substr(option.size() + 1));
    if (argument == option && i + 1 < arguments.size() && is_value(arguments[i + 1])) return arguments[i + 1];
  }
  return std::string(otherwise);
}

/// The optimizer of the job that the arguments name; "sgd" where none can be read. A field of another one would replace
/// the job's.
std::string optimizer_in(std::span<const char* const> arguments) {
  for (const std::filesystem::path argument : arguments) {
    if (argument.extension() != kJobEnding) continue;
    const job::Checked checked = job::check(argument, {});
    if (const auto* const kind = job::kind_of(checked.job.optimizer())) return kind->name();
  }
  return "sgd";
}

}  // namespace

std::string instead_of_foreign(const std::string& option, const CLI::App& command,
                               std::span<const char* const> arguments) {
  std::string name = option;
  std::ranges::replace(name, '_', '-');
  for (const Foreign& foreign : foreign_options()) {
    if (std::ranges::find(foreign.names, name) == foreign.names.end()) continue;
    if (command.get_option_no_throw(std::string(foreign.needs)) == nullptr) return {};
    return fmt::format(fmt::runtime(foreign.words), given_value(option, arguments, foreign.sample),
                       optimizer_in(arguments));
  }
  return {};
}

}  // namespace lockstep::launcher
