// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "launcher/commands/commands.h"
#include "launcher/commands/runs_listing.h"
#include "launcher/commands/write_out.h"
#include "runtime/base/printable.h"

namespace lockstep::launcher {

namespace {

struct RunsCommand {
  std::string folder = "runs";
  std::string sort = "run";
  bool json = false;
  bool csv = false;
};

ExitCode run(const RunsCommand& command) {
  RunsListing listing = list_runs(command.folder);
  sort_runs(listing, command.sort);
  if (command.json) {
    write_out(to_json(listing).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } else if (command.csv) {
    write_out(listing_csv(listing));
  } else if (listing.runs.empty()) {
    write_out("no runs in " + printable(command.folder) + "\n");
  } else {
    write_out(listing_text(listing, width_of_stdout()));
  }
  return ExitCode::kDone;
}

}  // namespace

void add_runs(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<RunsCommand>();
  CLI::App& runs = *app.add_subcommand("runs", "list runs: how far they are, their best value, and how they differ");
  runs.add_option("FOLDER", command->folder, "a folder with runs in it or below it; default runs/");
  runs.add_option("--sort", command->sort,
                  "run, status, step, best, rate or age, or a setting that differs, for example lr")
      ->type_name("COLUMN")
      ->capture_default_str();
  CLI::Option* const json = runs.add_flag("--json", command->json, "print them as JSON");
  runs.add_flag("--csv", command->csv, "print them as CSV")->excludes(json);
  runs.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
