// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "launcher/commands/commands.h"
#include "launcher/commands/trained_options.h"
#include "launcher/supervisor/launch_options.h"
#include "runtime/base/error.h"
#include "runtime/job/job.h"
#include "runtime/train/infer/export_bundle.h"
#include "runtime/train/infer/export_graph.h"
#include "runtime/train/infer/export_weights.h"

namespace lockstep::launcher {

namespace {

struct ExportCommand {
  TrainedOptions trained;
  std::string out;
  std::string bundle;
  std::string onnx;
  bool half = false;
  bool json = false;
};

using Json = nlohmann::ordered_json;

void print(const ExportCommand& command, const Trained& trained, Json result, bool of_mean,
           const std::string& checkpoint, const std::string& what) {
  if (of_mean) result["weights"] = "mean";
  if (command.json) {
    std::printf("%s\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("checkpoint  %s%s%s\nwritten     %s\n", checkpoint.c_str(), trained.note.c_str(),
                of_mean ? "\nweights     their running mean" : "", what.c_str());
  }
}

ExitCode run_weights(const ExportCommand& command, const Trained& trained) {
  const train::ExportResult result =
      train::export_weights(trained.checked.job, {.saved = trained.saved, .out = command.out, .half = command.half});
  const std::string dtype(name_of(result.dtype));
  Json told{{"tensors", result.tensors},
            {"bytes", result.bytes},
            {"dtype", dtype},
            {"checkpoint", result.checkpoint},
            {"out", command.out}};
  std::string what = fmt::format("{}: {} tensors of {}, {} bytes", command.out, result.tensors, dtype, result.bytes);
  if (!result.files.empty()) {
    told["files"] = result.files;
    what += fmt::format("; beside them {}", fmt::join(result.files, ", "));
  }
  print(command, trained, std::move(told), result.of_mean, result.checkpoint, what);
  return ExitCode::kDone;
}

ExitCode run_graph(const ExportCommand& command, const Trained& trained) {
  const train::GraphResult result = train::export_graph(trained.checked.job, trained.saved, command.onnx);
  print(command, trained, {{"bytes", result.bytes}, {"checkpoint", result.checkpoint}, {"onnx", command.onnx}},
        result.of_mean, result.checkpoint, fmt::format("{}: {} bytes", command.onnx, result.bytes));
  return ExitCode::kDone;
}

ExitCode run_bundle(const ExportCommand& command, const Trained& trained) {
  const train::BundleResult result = train::export_bundle(trained.checked.job, trained.saved, command.bundle);
  print(command, trained, {{"bytes", result.bytes}, {"checkpoint", result.checkpoint}, {"bundle", command.bundle}},
        result.of_mean, result.checkpoint, fmt::format("{}: {} bytes", command.bundle, result.bytes));
  return ExitCode::kDone;
}

ExitCode run(ExportCommand& command) {
  if (command.out.empty() && command.onnx.empty() && command.bundle.empty()) {
    throw UsageError("--bundle, --out or --onnx is required");
  }
  const Trained& trained = command.trained.open();
  if (!command.bundle.empty()) return run_bundle(command, trained);
  return command.onnx.empty() ? run_weights(command, trained) : run_graph(command, trained);
}

}  // namespace

void add_export(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<ExportCommand>();
  CLI::App& exporting =
      *app.add_subcommand("export", "write a run as one file, its weights for PyTorch, or its graph as ONNX");
  command->trained.add_to(exporting);
  CLI::Option* const out =
      exporting
          .add_option("--out", command->out,
                      "where the weights go: a name that ends in .safetensors, or in / for a folder that "
                      "transformers' from_pretrained() reads")
          ->type_name("FILE|FOLDER/")
          ->check(not_empty());
  CLI::Option* const bundle =
      exporting
          .add_option("--bundle", command->bundle,
                      "where the run goes in one file, for infer, eval and export elsewhere: a name that ends in "
                      ".lockstep")
          ->type_name("FILE")
          ->check(not_empty())
          ->excludes(out);
  exporting.add_option("--onnx", command->onnx, "where the inference graph goes, float32: a name that ends in .onnx")
      ->type_name("FILE")
      ->check(not_empty())
      ->excludes(out, bundle);
  exporting.add_flag("--half", command->half, "16-bit weights: amp.dtype, or fp16")->needs(out);
  exporting.add_flag("--json", command->json, "print the result as JSON");
  exporting.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
