// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/commands/trained_options.h"
#include "launcher/commands/window_options.h"
#include "launcher/supervisor/launch_options.h"
#include "runtime/base/error.h"
#include "runtime/train/infer/generation.h"
#include "runtime/train/infer/inference.h"

namespace lockstep::launcher {

/// The options of `lockstep infer`.
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

/// Writes on from --prompt. Prints each piece as soon as it exists, or, with --json, the whole text at the end.
ExitCode write_text(InferCommand& command);

/// Writes on from each line of --input.
ExitCode write_texts(const InferCommand& command, const Trained& trained);

/// Prints what predicting came to: the command's options say how, `note` is on the choice of the checkpoint.
void print_result(const InferCommand& command, const train::InferResult& result, const std::string& note);

}  // namespace lockstep::launcher
