// SPDX-License-Identifier: Apache-2.0
#include <spdlog/spdlog.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "launcher/commands/infer_command.h"
#include "launcher/commands/write_out.h"
#include "launcher/supervisor/launch.h"
#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/train/infer/prediction_file.h"
#include "runtime/train/infer/prompt_lines.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

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
    const nlohmann::ordered_json object{{"prompt", options.prompt},
                                        {"text", text},
                                        {"tokens", result.tokens},
                                        {"tokens_per_s", result.tokens_per_s},
                                        {"checkpoint", result.checkpoint}};
    std::printf("%s\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("\n");
  }
  return ExitCode::kDone;
}

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

}  // namespace lockstep::launcher
