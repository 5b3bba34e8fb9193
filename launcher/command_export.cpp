// SPDX-License-Identifier: Apache-2.0
#include "launcher/command_export.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "launcher/run_directory.h"
#include "runtime/job/job.h"
#include "runtime/train/export_weights.h"

namespace lockstep::launcher {

namespace {

struct ExportCommand {
  JobOptions job;
  std::string checkpoint;
  std::string out;
  bool half = false;
  bool raw_weights = false;
  bool json = false;
};

ExitCode run(const ExportCommand& command) {
  const job::Job job = job::load(command.job.job, command.job.overrides);
  const train::ExportResult result = train::export_weights(job, {.checkpoint = run_directory(command.checkpoint, job),
                                                                 .out = command.out,
                                                                 .half = command.half,
                                                                 .raw_weights = command.raw_weights});
  const std::string dtype(name_of(result.dtype));
  if (command.json) {
    nlohmann::ordered_json object{{"tensors", result.tensors},
                                  {"bytes", result.bytes},
                                  {"dtype", dtype},
                                  {"checkpoint", result.checkpoint},
                                  {"out", command.out}};
    if (result.of_mean) object["weights"] = "mean";
    std::printf("%s\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return ExitCode::kDone;
  }
  std::printf("checkpoint  %s%s\nwritten     %s: %lld tensors of %s, %lld bytes\n", result.checkpoint.c_str(),
              result.of_mean ? "\nweights     their running mean" : "", command.out.c_str(),
              static_cast<long long>(result.tensors), dtype.c_str(), static_cast<long long>(result.bytes));
  return ExitCode::kDone;
}

}  // namespace

void add_export(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<ExportCommand>();
  CLI::App& exporting = *app.add_subcommand("export", "write a checkpoint's weights for PyTorch");
  command->job.add_to(exporting);
  add_checkpoint(exporting, command->checkpoint);
  add_raw_weights(exporting, command->raw_weights);
  exporting.add_option("--out", command->out, "where the weights go: a name that ends in .safetensors")
      ->type_name("FILE")
      ->required()
      ->check(not_empty());
  exporting.add_flag("--half", command->half, "16-bit weights: amp.dtype, or fp16");
  exporting.add_flag("--json", command->json, "print the result as JSON");
  exporting.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
