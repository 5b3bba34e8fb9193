// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "launcher/commands/commands.h"
#include "launcher/commands/rank.h"
#include "launcher/commands/run_directory.h"
#include "launcher/supervisor/launch.h"
#include "runtime/job/job.h"
#include "runtime/train/infer/generation.h"
#include "runtime/train/infer/inference.h"
#include "runtime/train/infer/prediction_file.h"
#include "runtime/train/record/status_board.h"

namespace lockstep::launcher {

namespace {

using Json = nlohmann::ordered_json;

struct InferCommand {
  JobOptions job;
  LaunchOptions launch;
  std::string checkpoint;
  std::string data = "eval";
  std::string out;
  bool half = false;
  bool raw_weights = false;
  bool json = false;
  train::GenerateOptions text;  ///< with --prompt
};

std::vector<std::string> rank_arguments(const InferCommand& command) {
  std::vector<std::string> arguments{"infer"};
  for (const std::string& argument : command.job.arguments()) arguments.push_back(argument);
  arguments.insert(arguments.end(), {"--device", command.launch.device, "--data", command.data});
  if (!command.checkpoint.empty()) arguments.insert(arguments.end(), {"--checkpoint", command.checkpoint});
  if (!command.out.empty()) arguments.insert(arguments.end(), {"--out", command.out});
  if (command.half) arguments.push_back("--half");
  if (command.raw_weights) arguments.push_back("--raw-weights");
  if (command.json) arguments.push_back("--json");
  return arguments;
}

void print_json(const train::InferResult& result, const std::string& out) {
  Json object{{"samples", result.samples},
              {"dtype", name_of(result.dtype)},
              {"weight_bytes", result.cost.weight_bytes},
              {"samples_per_s", result.cost.samples_per_s},
              {"not_finite", result.not_finite}};
  if (result.accuracy) object["accuracy"] = *result.accuracy;
  if (result.agreement) {
    const train::Agreement& agreement = *result.agreement;
    Json& float32 = object["float32"];
    if (agreement.equal_classes) float32["equal_classes"] = *agreement.equal_classes;
    float32["largest_difference"] = agreement.largest_difference;
    float32["weight_bytes"] = agreement.float32.weight_bytes;
    float32["samples_per_s"] = agreement.float32.samples_per_s;
  }
  if (result.of_mean) object["weights"] = "mean";
  object["checkpoint"] = result.checkpoint;
  object["out"] = out.empty() ? Json() : Json(out);
  std::printf("%s\n", object.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

void print_cost(const char* name, const train::ModelCost& cost) {
  std::printf("%-11s %lld bytes of weights, %.0f samples/s\n", name, static_cast<long long>(cost.weight_bytes),
              cost.samples_per_s);
}

void print_text(const train::InferResult& result, const std::string& out) {
  std::printf("checkpoint  %s\nsamples     %lld\n", result.checkpoint.c_str(), static_cast<long long>(result.samples));
  if (result.of_mean) std::printf("weights     their running mean\n");
  if (result.accuracy) std::printf("accuracy    %.2f %%\n", 100.0 * *result.accuracy);
  if (result.not_finite > 0) {
    std::printf("not finite  %lld of them\n", static_cast<long long>(result.not_finite));
  }
  print_cost(std::string(name_of(result.dtype)).c_str(), result.cost);
  if (result.agreement) {
    const train::Agreement& agreement = *result.agreement;
    print_cost("float32", agreement.float32);
    std::printf("agreement   ");
    if (agreement.equal_classes) std::printf("%.2f %% equal classes, ", 100.0 * *agreement.equal_classes);
    std::printf("largest difference %.3g\n", agreement.largest_difference);
  }
  if (!out.empty()) std::printf("written     %s\n", out.c_str());
}

/// Generates a text. Prints each piece as soon as it exists, or, with --json, the whole text at the end.
ExitCode write_text(const InferCommand& command) {
  const job::Job job = job::load(command.job.job, command.job.overrides);
  train::GenerateOptions options = command.text;
  options.checkpoint = run_directory(command.checkpoint, job);
  options.raw_weights = command.raw_weights;
  options.device = command.launch.device_of(0);
  std::string text;
  bool begun = false;
  const auto show = [&](std::string_view piece) {
    if (command.json) return;
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    std::fflush(stdout);
  };
  const auto emit = [&](std::string_view piece) {
    // Behind all that may be refused.
    if (!begun) show(options.prompt);
    begun = true;
    text += piece;
    show(piece);
  };
  const train::GenerateResult result = train::generate(job, options, emit);
  if (command.json) {
    const Json object{{"prompt", options.prompt},
                      {"text", text},
                      {"tokens", result.tokens},
                      {"tokens_per_s", result.tokens_per_s},
                      {"checkpoint", result.checkpoint}};
    std::printf("%s\n", object.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    std::printf("\n");
  }
  return ExitCode::kDone;
}

ExitCode run(const InferCommand& command) {
  command.launch.require_device();
  if (!command.text.prompt.empty()) {
    if (must_start_ranks(command.launch))
      throw UsageError("--prompt: one process writes a text", "Leave out --nproc and --hosts.");
    return write_text(command);
  }
  if (!command.out.empty()) train::require_prediction_format(command.out);
  if (must_start_ranks(command.launch)) {
    // A wrong job is one error, not one a rank.
    const job::Job job = job::load(command.job.job, command.job.overrides);
    return launch(command.launch,
                  {.arguments = [&](int) { return rank_arguments(command); }, .timeout = timeout_of(job.comm())});
  }
  return run_rank(command.job, command.launch, [&](comm::World& world, const job::Checked& checked, Device device) {
    const job::Job& job = checked.job;
    train::StatusBoard::from_environment().set(world.rank(), train::RankPhase::kEval, 0);
    const train::InferResult result =
        train::infer(world, job,
                     {.checkpoint = run_directory(command.checkpoint, job),
                      .split = command.data == "train" ? data::Split::kTrain : data::Split::kEval,
                      .half = command.half,
                      .raw_weights = command.raw_weights,
                      .out = command.out,
                      .device = device});
    if (world.rank() == 0) command.json ? print_json(result, command.out) : print_text(result, command.out);
    return ExitCode::kDone;
  });
}

}  // namespace

void add_infer(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<InferCommand>();
  CLI::App& infer = *app.add_subcommand("infer", "predict a data set with a checkpoint's weights, in fp32 or 16 bits");
  command->job.add_to(infer);
  command->launch.add_to(infer, false);
  add_checkpoint(infer, command->checkpoint);
  add_raw_weights(infer, command->raw_weights);
  infer.add_option("--data", command->data, "which data of the job to predict")
      ->capture_default_str()
      ->check(CLI::IsMember({"eval", "train"}));
  infer.add_flag("--half", command->half, "16-bit weights, and say how they agree with float32");
  infer.add_option("--out", command->out, "where the predictions go: a name that ends in .csv, .jsonl or .npy")
      ->type_name("FILE")
      ->check(not_empty());
  CLI::Option* const prompt =
      infer.add_option("--prompt", command->text.prompt, "write on from this text, with a language model")
          ->type_name("TEXT")
          ->check(not_empty())
          ->excludes("--data", "--half", "--out");
  infer.add_option("--tokens", command->text.tokens, "how many tokens to write behind --prompt")
      ->needs(prompt)
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  infer.add_option("--temperature", command->text.sampling.temperature, "0: the likeliest token; 1: as the model says")
      ->needs(prompt)
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  infer.add_option("--top-k", command->text.sampling.top_k, "draw among so many of the likeliest tokens; 0: among all")
      ->needs(prompt)
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  infer.add_option("--seed", command->text.seed, "of the draws")->needs(prompt)->capture_default_str();
  infer.add_flag("--json", command->json, "print the result as JSON");
  infer.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
