// SPDX-License-Identifier: Apache-2.0
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "launcher/commands/commands.h"
#include "launcher/commands/infer_command.h"
#include "launcher/commands/rank.h"
#include "launcher/commands/write_out.h"
#include "launcher/supervisor/launch.h"
#include "runtime/base/error.h"
#include "runtime/job/job.h"
#include "runtime/train/infer/inference.h"
#include "runtime/train/infer/prediction_file.h"
#include "runtime/train/infer/prediction_stream.h"
#include "runtime/train/infer/predictor.h"
#include "runtime/train/infer/trained_run.h"
#include "runtime/train/infer/whole_inference.h"
#include "runtime/train/record/status_board.h"

namespace lockstep::launcher {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> rank_arguments(const InferCommand& command) {
  std::vector<std::string> arguments{"infer"};
  for (const std::string& argument : command.trained.arguments()) arguments.push_back(argument);
  arguments.insert(arguments.end(), {"--device", command.launch.device});
  if (command.inputs.empty()) arguments.insert(arguments.end(), {"--data", command.data});
  for (const std::string& path : command.inputs) arguments.insert(arguments.end(), {"--input", path});
  if (command.text.sampling.top_k > 0) {
    arguments.insert(arguments.end(), {"--top-k", std::to_string(command.text.sampling.top_k)});
  }
  if (!command.inputs.empty()) {
    for (const std::string& argument : command.windows.arguments()) arguments.push_back(argument);
  }
  if (command.strict) arguments.push_back("--strict");
  if (!command.out.empty()) arguments.insert(arguments.end(), {"--out", command.out});
  if (command.half) arguments.push_back("--half");
  if (command.json) arguments.push_back("--json");
  return arguments;
}

/// Of predictions that go to stdout.
std::optional<train::TextFormat> text_format(const InferCommand& command) {
  if (command.inputs.empty() || !command.out.empty()) return std::nullopt;
  return command.json ? train::TextFormat::kJsonLines : train::TextFormat::kCsv;
}

constexpr std::size_t kNamedFailures = 20;

/// Predictions of files: themselves on stdout where no file takes them. And on stderr what is not read.
ExitCode tell(const InferCommand& command, const train::InferResult& result, const std::string& note) {
  const bool of_files = !command.inputs.empty();
  if (of_files && command.out.empty()) {
    write_out(result.text);
  } else {
    print_result(command, result, note);
  }
  std::size_t named = 0;
  for (const auto& [index, error] : result.failures) {
    if (++named > kNamedFailures) break;
    of_files ? spdlog::warn("not read: {}", error) : spdlog::warn("sample {} is not read: {}", index, error);
  }
  if (result.failures.empty()) return ExitCode::kDone;
  spdlog::warn("{} of {} {} could not be read; the others are predicted", result.failures.size(), result.samples,
               of_files ? "inputs" : "samples");
  return command.strict ? ExitCode::kStorage : ExitCode::kDone;
}

/// Answers must not take the place of what they answer.
void require_other_file(const InferCommand& command) {
  if (command.out.empty()) return;
  for (const std::string& input : command.inputs) {
    std::error_code none;
    if (!fs::equivalent(input, command.out, none) || fs::is_directory(input)) continue;
    throw UsageError("--out " + command.out + " is an input", "Choose another name.");
  }
}

void require_no_draws(const InferCommand& command) {
  if (!command.draws) return;
  throw UsageError("--tokens, --temperature and --seed are for texts",
                   "Give a --prompt, or --input of texts and a run of a language model.");
}

/// Whether the run's inputs are texts to go on with.
bool takes_prompts(const Trained& trained) { return trained.checked.job.data().train().has_tokens(); }

train::InferOptions options_of(const InferCommand& command, const Trained& trained, Device device) {
  return {.saved = trained.saved,
          .split = command.data == "train" ? data::Split::kTrain : data::Split::kEval,
          .inputs = command.inputs,
          .top = command.text.sampling.top_k,
          .half = command.half,
          .out = command.out,
          .text = text_format(command),
          .windows = command.windows.windows(device),
          .device = device};
}

/// Lines in, lines out.
ExitCode stream(const InferCommand& command, const Trained& trained) {
  if (must_start_ranks(command.launch)) {
    throw UsageError("--input -: one process answers lines", "Leave out --nproc and --hosts.");
  }
  if (!command.out.empty()) throw UsageError("--input -: answers go to stdout", "Leave out --out.");
  if (train::answers_wholes(trained.checked.job, options_of(command, trained, kCpu))) {
    throw UsageError("--input -: the run answers each input with a file, and has no line for it",
                     "Name the inputs: --input PATH... --out FOLDER/");
  }
  train::Predictor predictor({.checked = trained.checked, .saved = trained.saved},
                             {.half = command.half, .device = command.launch.device_of(0)});
  const train::PredictionLine line = predictor.line(*text_format(command), command.text.sampling.top_k);
  if (line.top > 0 && line.kind != train::PredictionKind::kProbabilities) {
    throw UsageError("--top-k is for runs that tell a class a sample", "Leave it out.");
  }
  const train::StreamCounts counts =
      train::predict_lines(predictor, STDIN_FILENO, line, [](std::string_view text) { write_out(text); });
  return command.strict && counts.failures > 0 ? ExitCode::kStorage : ExitCode::kDone;
}

ExitCode run(InferCommand& command) {
  command.launch.require_device();
  if (!command.inputs.empty()) {
    const Trained& trained = command.trained.open();
    if (takes_prompts(trained)) {
      require_other_file(command);
      return write_texts(command, trained);
    }
    require_no_draws(command);
    require_other_file(command);
    if (command.inputs == std::vector<std::string>{"-"}) return stream(command, trained);
  }
  if (!command.text.prompt.empty()) {
    if (must_start_ranks(command.launch))
      throw UsageError("--prompt: one process writes a text", "Leave out --nproc and --hosts.");
    return write_text(command);
  }
  if (command.inputs.empty()) {
    require_no_draws(command);
    require_data(command.trained.open(), command.data == "train" ? data::Split::kTrain : data::Split::kEval);
  }
  if (command.inputs.empty() && !command.out.empty()) train::require_prediction_format(command.out);
  if (must_start_ranks(command.launch)) {
    // A wrong job or option is one error, not one a rank.
    const Trained& trained = command.trained.open();
    if (!command.inputs.empty()) {
      train::require_destination(trained.checked.job, options_of(command, trained, kCpu));
    }
    const std::chrono::milliseconds timeout = timeout_of(trained.checked.job.comm());
    return launch(command.launch, {.arguments = [&](int) { return rank_arguments(command); }, .timeout = timeout});
  }
  Trained trained;
  const auto load = [&] {
    trained = command.trained.open();
    return trained.checked;
  };
  return run_rank(load, command.launch, [&](comm::World& world, const job::Checked& checked, Device device) {
    const job::Job& job = checked.job;
    train::StatusBoard::from_environment().set(world.rank(), train::RankPhase::kEval, 0);
    const train::InferResult result = train::infer(world, job, options_of(command, trained, device));
    return world.rank() == 0 ? tell(command, result, trained.note) : ExitCode::kDone;
  });
}

}  // namespace

void add_infer(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<InferCommand>();
  CLI::App& infer =
      *app.add_subcommand("infer", "predict files or a data set with a run's weights, in fp32 or 16 bits");
  command->trained.add_to(infer);
  command->launch.add_to(infer, false);
  infer.add_option("--data", command->data, "which data of the job to predict")
      ->capture_default_str()
      ->check(CLI::IsMember({"eval", "train"}));
  CLI::Option* const inputs =
      infer
          .add_option("--input", command->inputs,
                      "files and folders to predict, without targets: images, arrays *.npy, tables, texts or volumes, "
                      "as the run was trained on; -: lines on stdin, each answered as it comes")
          ->type_name("PATH")
          ->check(not_empty())
          ->excludes("--data");
  command->windows.add_to(infer, inputs);
  infer.add_flag("--strict", command->strict, "exit with 4 where an input cannot be read")->needs(inputs);
  infer.add_flag("--half", command->half, "16-bit weights, and say how they agree with float32");
  infer
      .add_option(
          "--out", command->out,
          "where the predictions go: a name that ends in .csv, .jsonl or .npy, or FOLDER/ of a run that answers "
          "volumes or images")
      ->type_name("FILE|FOLDER/")
      ->check(not_empty());
  infer.add_option("--prompt", command->text.prompt, "write on from this text, with a language model")
      ->type_name("TEXT")
      ->check(not_empty())
      ->excludes("--data", "--half", "--out", "--input");
  CLI::Option* const tokens =
      infer.add_option("--tokens", command->text.tokens, "how many tokens to write behind a prompt")
          ->capture_default_str()
          ->check(CLI::NonNegativeNumber);
  CLI::Option* const temperature = infer
                                       .add_option("--temperature", command->text.sampling.temperature,
                                                   "0: the likeliest token; 1: as the model says")
                                       ->capture_default_str()
                                       ->check(CLI::NonNegativeNumber);
  infer
      .add_option("--top-k", command->text.sampling.top_k,
                  "with --input: say so many of the most probable classes; with --prompt: draw among so many of the "
                  "likeliest tokens; 0: all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  CLI::Option* const seed = infer.add_option("--seed", command->text.seed, "of the draws")->capture_default_str();
  infer.add_flag("--json", command->json, "print the result as JSON");
  infer.callback([command, tokens, temperature, seed, &chosen] {
    command->draws = tokens->count() + temperature->count() + seed->count() > 0;
    chosen = [command] { return run(*command); };
  });
}

}  // namespace lockstep::launcher
