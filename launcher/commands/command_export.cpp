// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "launcher/commands/commands.h"
#include "launcher/commands/run_directory.h"
#include "launcher/supervisor/launch_options.h"
#include "runtime/base/error.h"
#include "runtime/job/job.h"
#include "runtime/train/infer/export_graph.h"
#include "runtime/train/infer/export_weights.h"

namespace lockstep::launcher {

namespace {

struct ExportCommand {
  JobOptions job;
  std::string checkpoint;
  std::string out;
  std::string onnx;
  bool half = false;
  bool raw_weights = false;
  bool json = false;
};

using Json = nlohmann::ordered_json;

void print(const ExportCommand& command, Json result, bool of_mean, const std::string& checkpoint,
           const std::string& what) {
  if (of_mean) result["weights"] = "mean";
  if (command.json) {
    std::printf("%s\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("checkpoint  %s%s\nwritten     %s\n", checkpoint.c_str(),
                of_mean ? "\nweights     their running mean" : "", what.c_str());
  }
}

ExitCode run_weights(const ExportCommand& command, const job::Job& job) {
  const train::ExportResult result = train::export_weights(job, {.checkpoint = run_directory(command.checkpoint, job),
                                                                 .out = command.out,
                                                                 .half = command.half,
                                                                 .raw_weights = command.raw_weights});
  const std::string dtype(name_of(result.dtype));
  print(command,
        {{"tensors", result.tensors},
         {"bytes", result.bytes},
         {"dtype", dtype},
         {"checkpoint", result.checkpoint},
         {"out", command.out}},
        result.of_mean, result.checkpoint,
        fmt::format("{}: {} tensors of {}, {} bytes", command.out, result.tensors, dtype, result.bytes));
  return ExitCode::kDone;
}

ExitCode run_graph(const ExportCommand& command, const job::Job& job) {
  const train::GraphResult result =
      train::export_graph(job, run_directory(command.checkpoint, job), command.onnx, command.raw_weights);
  print(command, {{"bytes", result.bytes}, {"checkpoint", result.checkpoint}, {"onnx", command.onnx}}, result.of_mean,
        result.checkpoint, fmt::format("{}: {} bytes", command.onnx, result.bytes));
  return ExitCode::kDone;
}

ExitCode run(const ExportCommand& command) {
  if (command.out.empty() && command.onnx.empty()) throw UsageError("--out or --onnx is required");
  const job::Job job = job::load(command.job.job, command.job.overrides);
  return command.onnx.empty() ? run_weights(command, job) : run_graph(command, job);
}

}  // namespace

void add_export(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<ExportCommand>();
  CLI::App& exporting = *app.add_subcommand("export", "write a checkpoint's weights for PyTorch, or its graph as ONNX");
  command->job.add_to(exporting);
  add_checkpoint(exporting, command->checkpoint);
  add_raw_weights(exporting, command->raw_weights);
  CLI::Option* const out =
      exporting.add_option("--out", command->out, "where the weights go: a name that ends in .safetensors")
          ->type_name("FILE")
          ->check(not_empty());
  exporting.add_option("--onnx", command->onnx, "where the inference graph goes, float32: a name that ends in .onnx")
      ->type_name("FILE")
      ->check(not_empty())
      ->excludes(out);
  exporting.add_flag("--half", command->half, "16-bit weights: amp.dtype, or fp16")->needs(out);
  exporting.add_flag("--json", command->json, "print the result as JSON");
  exporting.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
