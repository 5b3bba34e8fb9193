// SPDX-License-Identifier: Apache-2.0
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "launcher/commands/commands.h"
#include "launcher/commands/rank.h"
#include "launcher/commands/trained_options.h"
#include "launcher/commands/window_options.h"
#include "launcher/commands/write_out.h"
#include "launcher/supervisor/launch.h"
#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/job/job.h"
#include "runtime/train/infer/generation.h"
#include "runtime/train/infer/inference.h"
#include "runtime/train/infer/prediction_file.h"
#include "runtime/train/infer/prediction_stream.h"
#include "runtime/train/infer/predictor.h"
#include "runtime/train/infer/prompt_lines.h"
#include "runtime/train/infer/trained_run.h"
#include "runtime/train/infer/whole_inference.h"
#include "runtime/train/record/status_board.h"

namespace lockstep::launcher {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct InferCommand {
  TrainedOptions trained;
  LaunchOptions launch;
  std::string data = "eval";
  std::vector<std::string> inputs;
  WindowOptions windows;
  bool strict = false;
  std::string out;
  bool half = false;
  bool json = false;
  train::GenerateOptions text;  ///< with --prompt, and with --input of a language model
  bool draws = false;           ///< an option of these was given
};

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
  if (!result.failures.empty()) object["unread"] = result.failures.size();
  object["checkpoint"] = result.checkpoint;
  object["out"] = out.empty() ? Json() : Json(out);
  std::printf("%s\n", object.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

/// Of predictions that go to stdout.
std::optional<train::TextFormat> text_format(const InferCommand& command) {
  if (command.inputs.empty() || !command.out.empty()) return std::nullopt;
  return command.json ? train::TextFormat::kJsonLines : train::TextFormat::kCsv;
}

void print_cost(const char* name, const train::ModelCost& cost) {
  std::printf("%-11s %lld bytes of weights, %.0f samples/s\n", name, static_cast<long long>(cost.weight_bytes),
              cost.samples_per_s);
}

void print_text(const train::InferResult& result, const std::string& note, const std::string& out) {
  std::printf("checkpoint  %s%s\nsamples     %lld\n", result.checkpoint.c_str(), note.c_str(),
              static_cast<long long>(result.samples));
  if (result.of_mean) std::printf("weights     their running mean\n");
  if (result.accuracy) std::printf("accuracy    %.2f %%\n", 100.0 * *result.accuracy);
  if (!result.failures.empty()) std::printf("unread      %zu of them\n", result.failures.size());
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
ExitCode write_text(InferCommand& command) {
  const Trained& trained = command.trained.open();
  train::GenerateOptions options = command.text;
  options.saved = trained.saved;
  options.device = command.launch.device_of(0);
  std::string text;
  bool begun = false;
  const auto show = [&](std::string_view piece) {
    if (command.json) return;
    write_out(piece);
  };
  const auto emit = [&](std::string_view piece) {
    // Behind all that may be refused.
    if (!begun) show(options.prompt);
    begun = true;
    text += piece;
    show(piece);
  };
  const train::GenerateResult result = train::generate(trained.checked.job, options, emit);
  if (!begun) show(options.prompt);
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

constexpr std::size_t kNamedFailures = 20;

/// Predictions of files: themselves on stdout where no file takes them, and what is not read on stderr.
ExitCode tell_inputs(const InferCommand& command, const train::InferResult& result, const std::string& note) {
  if (command.out.empty()) {
    write_out(result.text);
  } else {
    command.json ? print_json(result, command.out) : print_text(result, note, command.out);
  }
  std::size_t named = 0;
  for (const auto& [index, error] : result.failures) {
    if (++named > kNamedFailures) break;
    spdlog::warn("not read: {}", error);
  }
  if (result.failures.empty()) return ExitCode::kDone;
  spdlog::warn("{} of {} inputs could not be read; the others are predicted", result.failures.size(), result.samples);
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

/// Continues each line of the inputs.
ExitCode write_texts(const InferCommand& command, const Trained& trained) {
  if (must_start_ranks(command.launch)) {
    throw UsageError("--input: one process writes texts", "Leave out --nproc and --hosts.");
  }
  const bool to_json = command.out.empty() ? command.json : fs::path(command.out).extension() == ".jsonl";
  if (!command.out.empty() && !to_json && fs::path(command.out).extension() != ".csv") {
    throw UsageError("--out " + command.out + ": the name must end in .csv or .jsonl, for texts");
  }
  train::Generator generator(trained.checked.job, trained.saved, command.launch.device_of(0));
  std::string kept;
  const train::StreamCounts counts = train::continue_lines(
      generator, command.text, command.inputs, to_json ? train::TextFormat::kJsonLines : train::TextFormat::kCsv,
      [&](std::string_view text) {
        if (!command.out.empty()) return void(kept += text);
        write_out(text);
      });
  if (!command.out.empty()) {
    train::require_writable(command.out);
    if (const std::error_code error = write_whole_file(command.out, kept)) {
      throw StorageError("cannot write " + command.out + ": " + error.message());
    }
  }
  if (counts.failures > 0) spdlog::warn("{} of {} lines could not be continued", counts.failures, counts.inputs);
  return command.strict && counts.failures > 0 ? ExitCode::kStorage : ExitCode::kDone;
}

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
    if (world.rank() == 0 && !command.inputs.empty()) return tell_inputs(command, result, trained.note);
    if (world.rank() == 0)
      command.json ? print_json(result, command.out) : print_text(result, trained.note, command.out);
    return ExitCode::kDone;
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
