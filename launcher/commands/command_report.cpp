// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "launcher/commands/commands.h"
#include "launcher/commands/write_out.h"
#include "launcher/report/report_page.h"
#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/base/printable.h"
#include "runtime/train/history/find_runs.h"
#include "runtime/train/history/report_data.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

namespace {

struct ReportCommand {
  std::vector<std::string> runs;
  std::string out = "report.html";
  bool json = false;
};

/// The runs that are named, and those in folders that are no runs.
std::vector<fs::path> runs_of(const ReportCommand& command) {
  std::vector<fs::path> runs;
  for (const std::string& name : command.runs) {
    const std::vector<fs::path> found = train::find_runs(name);
    if (found.empty()) throw StorageError("there is no run in " + printable(name), "Name runs, or folders of runs.");
    runs.insert(runs.end(), found.begin(), found.end());
  }
  return runs;
}

ExitCode run(const ReportCommand& command) {
  if (!command.json) require_plotting();
  const nlohmann::ordered_json data = train::report_data(runs_of(command));
  if (command.json) {
    write_out(data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
    return ExitCode::kDone;
  }
  const std::string page = report_page(data);
  if (const std::error_code error = write_whole_file(command.out, page)) {
    throw StorageError("cannot write " + printable(command.out) + ": " + error.message(),
                       "Check the space and the permissions there, or choose another --out.");
  }
  write_out("written     " + printable(command.out) + "\n");
  return ExitCode::kDone;
}

}  // namespace

void add_report(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<ReportCommand>();
  CLI::App& report = *app.add_subcommand("report", "write a page with the curves of runs and how they differ");
  report.add_option("RUN", command->runs, "runs, or folders with runs in them or below them")->required();
  CLI::Option* const out = report.add_option("--out", command->out, "the page, one file that needs no network")
                               ->type_name("FILE")
                               ->capture_default_str();
  report.add_flag("--json", command->json, "print what the page shows as JSON")->excludes(out);
  report.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
