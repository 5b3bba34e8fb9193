// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "launcher/commands/commands.h"
#include "launcher/commands/job_plan.h"
#include "launcher/commands/new_file.h"
#include "model_zoo/hub_model.h"
#include "runtime/base/error.h"
#include "runtime/base/program_name.h"
#include "runtime/base/shell_word.h"
#include "runtime/init/damage.h"
#include "runtime/init/find_data.h"
#include "runtime/init/held_out.h"
#include "runtime/init/hub_recipe.h"
#include "runtime/init/job_text.h"
#include "runtime/init/measure.h"
#include "runtime/init/recipe.h"
#include "runtime/job/job.h"
#include "runtime/train/initial_weights.h"

namespace lockstep::launcher {

namespace {

namespace fs = std::filesystem;

struct InitCommand {
  std::vector<std::string> paths;
  std::string model;
  std::string out;
  std::string target;
  std::int64_t context = 128;
  std::int64_t epochs = 0;
};

/// The data's own name, of the characters that a job's name may have.
std::string name_of(const fs::path& path) {
  std::string name = fs::weakly_canonical(path).stem().string();
  while (name.find('.') != std::string::npos) name = fs::path(name).stem().string();  // x.csv.gz
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
  }
  return name.empty() ? "job" : name;
}

/// Counts the samples that cannot be read, and says which they are.
std::int64_t note_damage(init::FoundData& found, const std::optional<init::Measured>& measured) {
  std::int64_t count = 0;
  const auto look = [&](data::Split split, const char* what) {
    const init::Damage damage = init::look_for_damage(found.options, split);
    if (damage.count == 0) return;
    count += damage.count;
    found.notes.push_back(
        fmt::format("{} of the {} samples cannot be read; on_error: SKIP leaves them out:", damage.count, what));
    for (const std::string& sentence : damage.sentences) found.notes.push_back("  " + sentence);
  };
  if (measured && measured->unread > 0) look(data::Split::kTrain, "training");
  if (found.options.eval) look(data::Split::kEval, "evaluation");
  return count;
}

struct Planned {
  job::Job job;
  train::Plan plan;
};

/// Throws UsageError where the job could not train: a model that does not fit the data.
Planned plan_of_text(const std::string& text, const fs::path& file) {
  job::Checked checked = job::check_text(text, file, {}, fs::absolute(file).parent_path());
  if (!checked.diagnostics.empty())
    throw UsageError("init wrote a job with a mistake: " + checked.diagnostics[0].str());
  train::Plan plan = plan_of(checked, {}, fs::path("runs") / checked.job.name());
  if (!plan.errors.empty()) {
    throw UsageError("these data cannot be trained on so: " + plan.errors[0].at.message, plan.errors[0].advice);
  }
  return {std::move(checked.job), std::move(plan)};
}

/// A folder of a model that transformers wrote, where --model names one.
std::optional<model_zoo::HubModel> hub_model_of(const std::string& model) {
  const bool is_path = model.find('/') != std::string::npos;
  if (model.empty() || (!is_path && !fs::exists(fs::path(model) / "config.json"))) return std::nullopt;
  if (!fs::is_directory(model)) {
    throw UsageError("--model " + model + ": there is no such folder",
                     "It takes a folder with a config.json and its weights, or one of " + init::known_models() + ".");
  }
  return model_zoo::read_hub_model(model);
}

/// The data, fit for the model that they are for.
init::FoundData data_for(const InitCommand& command, const std::vector<fs::path>& paths,
                         const std::optional<model_zoo::HubModel>& hub) {
  init::FindOptions options{.target = command.target, .context = command.context};
  options.hides_tokens = (hub ? hub->kind : command.model) == "bert";
  if (!hub) return init::find_data(paths, options);
  options.tokenizer = command.model;
  if (hub->context > 0) options.context = std::min(options.context, hub->context);
  init::FoundData found = init::find_data(paths, options);
  init::fit_data_to_hub_model(*hub, command.model, found);
  return found;
}

/// Writes the text of a job for data, with what it has to leave out of a folder's weights.
class JobWriter {
 public:
  JobWriter(const InitCommand& command, fs::path out, init::FoundData found, std::optional<model_zoo::HubModel> hub)
      : command_(command), out_(std::move(out)), found_(std::move(found)), hub_(std::move(hub)) {
    init::hold_out(found_);
    found_.options.augment.volume.patch = recipe_for({}).patch;
    data_ = data::describe(found_.options, data::Split::kTrain);
    data::DataOptions all = found_.options;
    all.hold_out = {};
    measured_ = init::measure(all);
    damaged_ = note_damage(found_, measured_);
  }

  std::string text(const std::string& choice = {}) const {
    return init::job_text(found_, data_, measured_, recipe_for(choice),
                          {.name = name_of(out_),
                           .base = base(),
                           .file = shell_word(out_.string()),
                           .epochs = command_.epochs,
                           .damaged = damaged_});
  }
  const init::FoundData& found() const { return found_; }

 private:
  fs::path base() const { return fs::absolute(out_).parent_path(); }
  init::Recipe recipe_for(const std::string& choice) const {
    const data::Description data = data::describe(found_.options, data::Split::kTrain);
    if (hub_) return init::hub_recipe(*hub_, command_.model, found_, data, base(), choice);
    return init::recipe_for(found_, data, command_.model);
  }

  const InitCommand& command_;
  fs::path out_;
  init::FoundData found_;
  std::optional<model_zoo::HubModel> hub_;
  data::Description data_;
  std::optional<init::Measured> measured_;
  std::int64_t damaged_ = 0;
};

ExitCode run(const InitCommand& command) {
  const std::vector<fs::path> paths(command.paths.begin(), command.paths.end());
  const fs::path out = command.out.empty() ? fs::path(name_of(paths[0]) + ".pbtxt") : fs::path(command.out);
  require_new_file(out);

  const std::optional<model_zoo::HubModel> hub = hub_model_of(command.model);
  const JobWriter writer(command, out, data_for(command, paths, hub), hub);
  const init::FoundData& found = writer.found();
  const std::string as_word = shell_word(out.string());
  std::string text = writer.text();
  Planned planned = plan_of_text(text, out);
  std::string choice;
  if (hub) {
    // The folder's weights say what of the model they fill.
    choice = train::choice_that_fits(planned.job, planned.plan.train);
    if (!choice.empty()) planned = plan_of_text(text = writer.text(choice), out);
  }
  write_new_file(out, text);
  std::printf("found     %s\n", found.what.c_str());
  for (const std::string& note : found.notes) std::printf("          %s\n", note.c_str());
  if (hub) std::printf("weights   %s of %s\n", choice.empty() ? "all" : choice.c_str(), command.model.c_str());
  for (const train::Finding& warning : planned.plan.warnings) std::printf("warning   %s\n", warning.at.str().c_str());
  std::printf("written   %s, which trains:\n%s\nnext      %s train %s\n", out.c_str(),
              plan_text(to_json(planned.plan, planned.job, 1)).c_str(), program_name().c_str(), as_word.c_str());
  return ExitCode::kDone;
}

}  // namespace

void add_init(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<InitCommand>();
  CLI::App& init = *app.add_subcommand("init", "look at a data set and write a job for it");
  init.add_option("paths", command->paths, "a folder, or the files of one data set")
      ->type_name("PATH")
      ->required()
      ->check(not_empty());
  init.add_option("--model", command->model,
                  init::known_models() +
                      ", or a folder that transformers' save_pretrained() wrote, whose weights the job starts from; "
                      "default: by the data")
      ->type_name("NAME|FOLDER")
      ->check(not_empty());
  init.add_option("--out", command->out,
                  "the job's file, which must not exist yet; default NAME.pbtxt, the data's name")
      ->type_name("FILE")
      ->check(not_empty());
  init.add_option("--target", command->target,
                  "the column of a table to learn, its name or number; default: the last one")
      ->type_name("COLUMN")
      ->check(not_empty());
  init.add_option("--context", command->context, "tokens of a sample of text; default 128")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{4}, std::int64_t{1} << 20));
  init.add_option("--epochs", command->epochs, "passes over the training data; default: by the data")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  init.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
