// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "launcher/commands/commands.h"
#include "launcher/commands/rank.h"
#include "launcher/commands/trained_options.h"
#include "launcher/commands/window_options.h"
#include "launcher/supervisor/error_block.h"
#include "launcher/supervisor/launch.h"
#include "runtime/job/job.h"
#include "runtime/step/replicated.h"
#include "runtime/train/infer/volume_evaluation.h"
#include "runtime/train/record/confusion_file.h"
#include "runtime/train/record/status_board.h"
#include "runtime/train/record/summary.h"
#include "runtime/train/train.h"

namespace lockstep::launcher {

namespace {

constexpr std::size_t kMostPrinted = 32;  ///< classes; --json has all

struct EvalCommand {
  TrainedOptions trained;
  LaunchOptions launch;
  std::vector<std::string> confusion;
  std::string pictures;
  std::int64_t picture_count = 16;
  bool json = false;
  bool whole_volumes = false;
  WindowOptions windows;
};

std::vector<std::string> rank_arguments(const EvalCommand& command) {
  std::vector<std::string> arguments{"eval"};
  for (const std::string& argument : command.trained.arguments()) arguments.push_back(argument);
  arguments.insert(arguments.end(), {"--device", command.launch.device});
  for (const std::string& path : command.confusion) arguments.insert(arguments.end(), {"--confusion", path});
  if (command.whole_volumes) {
    arguments.push_back("--whole-volumes");
    for (const std::string& argument : command.windows.arguments()) arguments.push_back(argument);
  }
  if (!command.pictures.empty()) {
    arguments.insert(arguments.end(),
                     {"--pictures", command.pictures, "--picture-count", std::to_string(command.picture_count)});
  }
  if (command.json) arguments.push_back("--json");
  return arguments;
}

void print(const EvalCommand& command, const train::EvalResult& result, const std::string& note) {
  if (command.json) {
    nlohmann::ordered_json object = to_json(result);
    object["checkpoint"] = result.checkpoint;
    std::printf("%s\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    std::fflush(stdout);
    return;
  }
  std::printf("checkpoint  %s%s\n", result.checkpoint.c_str(), note.c_str());
  if (result.of_mean) std::printf("weights     their running mean\n");
  std::printf("samples     %lld\nloss        %.6f\n", static_cast<long long>(result.samples), result.loss);
  for (const train::Metric& metric : result.metrics) {
    std::printf("%-11s %s\n", metric.name.c_str(), text_beside_baseline(result, metric).c_str());
  }
  for (std::size_t c = 0; c < result.overlaps.size() && result.overlaps.size() <= kMostPrinted; ++c) {
    const train::ClassOverlap& overlap = result.overlaps[c];
    const std::string name = fmt::format("class {}", c);
    if (overlap.occurs) {
      std::printf("%-11s dice %.4f, iou %.4f\n", name.c_str(), overlap.dice, overlap.iou);
    } else {
      std::printf("%-11s occurs nowhere\n", name.c_str());
    }
  }
  for (const std::string& path : command.confusion) std::printf("written     %s\n", path.c_str());
  if (!command.pictures.empty()) std::printf("written     %s\n", command.pictures.c_str());
  std::fflush(stdout);
}

train::EvalResult evaluate(const EvalCommand& command, comm::World& world, const Trained& trained, Device device) {
  const job::Job& job = trained.checked.job;
  if (command.whole_volumes) {
    return train::evaluate_volumes(world, job, {.saved = trained.saved, .windows = command.windows.windows(device)});
  }
  return train::evaluate(world, job,
                         {.saved = trained.saved,
                          .device = device,
                          .confusion = !command.confusion.empty(),
                          .pictures = command.pictures,
                          .picture_count = command.picture_count});
}

/// All ranks have the same result, so none has to end the others: an abort might cut off what rank 0 has printed.
ExitCode end_of(const train::EvalResult& result, int rank) {
  try {
    train::require_finite(result, "");
  } catch (const Error& error) {
    if (rank == 0) print_error(error);
    return error.code();
  }
  return ExitCode::kDone;
}

ExitCode run(EvalCommand& command) {
  command.launch.require_device();
  for (const std::string& path : command.confusion) train::require_confusion_format(path);
  require_data(command.trained.open(), data::Split::kEval);
  if (must_start_ranks(command.launch)) {
    // A wrong job is one error, not one a rank.
    const std::chrono::milliseconds timeout = timeout_of(command.trained.open().checked.job.comm());
    return launch(command.launch, {.arguments = [&](int) { return rank_arguments(command); }, .timeout = timeout});
  }
  Trained trained;
  const auto load = [&] {
    trained = command.trained.open();
    return trained.checked;
  };
  return run_rank(load, command.launch, [&](comm::World& world, const job::Checked&, Device device) {
    train::StatusBoard::from_environment().set(world.rank(), train::RankPhase::kEval, 0);
    const train::EvalResult result = evaluate(command, world, trained, device);
    // No rank ends the others before the result is written.
    step::on_rank_zero(*world.communicator(), [&] {
      const auto& preparation = trained.saved.preparation;
      const auto names = preparation ? preparation->class_names : std::vector<std::string>();
      for (const std::string& path : command.confusion) train::write_confusion(path, *result.confusion, names);
      print(command, result, trained.note);
    });
    return end_of(result, world.rank());
  });
}

}  // namespace

void add_eval(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<EvalCommand>();
  CLI::App& eval = *app.add_subcommand("eval", "evaluate a run, or a job's checkpoint, on evaluation data");
  command->trained.add_to(eval);
  command->launch.add_to(eval, false);
  CLI::Option* const confusion =
      eval.add_option("--confusion", command->confusion,
                      "write how often each class was taken for each: FILE.json, or a picture, FILE.svg")
          ->type_name("FILE")
          ->take_all();
  CLI::Option* const whole =
      eval.add_flag("--whole-volumes", command->whole_volumes,
                    "of a job that trains on patches: evaluate whole volumes of any extents by sliding windows, with "
                    "Dice of each class")
          ->excludes(confusion);
  command->windows.add_to(eval, whole);
  CLI::Option* const pictures =
      eval.add_option("--pictures", command->pictures,
                      "write pictures of images there: of masks the first samples, input, target and answer side by "
                      "side; of classes the samples with the highest loss")
          ->type_name("FOLDER")
          ->excludes(whole);
  eval.add_option("--picture-count", command->picture_count, "how many samples; default 16")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->needs(pictures);
  eval.add_flag("--json", command->json, "print the result as JSON");
  eval.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
