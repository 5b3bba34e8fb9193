// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>

#include "launcher/commands/commands.h"
#include "launcher/commands/option_table.h"
#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/train/record/terminal.h"

namespace lockstep::launcher {

namespace {

Action printing(const std::string& text) {
  return [text] {
    train::put(stdout, text);
    return ExitCode::kDone;
  };
}

}  // namespace

void add_completion(CLI::App& app, Action& chosen) {
  const auto shell = std::make_shared<std::string>();
  CLI::App& completion =
      *app.add_subcommand("completion", "write a script that has a shell complete this command line");
  completion.add_option("SHELL", *shell, "the shell")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion.callback([shell, &app, &chosen] {
    const std::vector<CommandRow> table = option_table(app);
    chosen = printing(*shell == "bash"  ? bash_completion(table)
                      : *shell == "zsh" ? zsh_completion(table)
                                        : fish_completion(table));
  });
}

void add_man(CLI::App& app, Action& chosen) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  names.emplace_back("man");
  const auto name = std::make_shared<std::string>();
  const auto folder = std::make_shared<std::string>();
  CLI::App& man = *app.add_subcommand("man", "write a manual page; lockstep man train | man -l - shows that of train");
  CLI::Option* const command = man.add_option("COMMAND", *name, "the command; without one, the page of lockstep itself")
                                   ->check(CLI::IsMember(names));
  man.add_option("--all", *folder, "write all pages, as files into this folder")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory)
      ->excludes(command);
  man.callback([=, &app, &chosen] {
    const std::vector<CommandRow> table = option_table(app);
    if (folder->empty()) {
      chosen = printing(manual_page(table, *name));
      return;
    }
    chosen = [=] {
      for (const CommandRow& row : table) {
        const bool whole = &row == &table.front();
        const std::string file = whole ? "lockstep.1" : "lockstep-" + row.name + ".1";
        const std::error_code failed =
            write_whole_file(std::filesystem::path(*folder) / file, manual_page(table, whole ? "" : row.name));
        if (failed) throw StorageError(*folder + "/" + file + ": " + failed.message());
      }
      return ExitCode::kDone;
    };
  });
}

}  // namespace lockstep::launcher
