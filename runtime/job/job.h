// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "configs/job.pb.h"
#include "runtime/job/diagnostic.h"

namespace lockstep::job {

/// A job as resolved (defaults filled in, paths absolute) and all that is wrong with it; sound when nothing is.
struct Checked {
  Job job;
  Diagnostics diagnostics;
  Locations locations;    ///< what gave each field its value
  std::string data_note;  ///< where files that are missing come from, if the job says so: runtime/job/data_note.h
};

/// Reads a job file, applies overrides ("train.steps=10"; later ones win), fills in the defaults and checks the values.
/// Never throws for what a job says: every error is in the diagnostics, in the order of reading, then of checking.
Checked check(const std::filesystem::path& file, std::span<const std::string> overrides = {});

/// Checks a text. Messages call it `file`; relative paths of data and of init_from start at `folder`.
Checked check_text(std::string_view text, const std::filesystem::path& file, std::span<const std::string> overrides,
                   const std::filesystem::path& folder);

/// check(), for a job without errors. Throws one UsageError that lists every diagnostic, one a line.
Checked load_checked(const std::filesystem::path& file, std::span<const std::string> overrides = {});
Job load(const std::filesystem::path& file, std::span<const std::string> overrides = {});
Job load_text(std::string_view text, const std::filesystem::path& file, std::span<const std::string> overrides,
              const std::filesystem::path& folder);

/// The job that a run was trained with, as its checkpoint has it, with overrides, whose relative paths start at the
/// current folder. Overrides of data.eval begin with what data.train says, where the job has no such evaluation data:
/// sizes, columns and kinds of targets are those of training, and a share that was held out gives way. Texts that an
/// override names are taken whole. The files that the job names need not be there: only what an override says of them
/// is checked. What training alone reads, init_from and faults, is left out. Throws as load() does; messages call the
/// job `run`.
Checked load_trained(const Job& trained, const std::filesystem::path& run, std::span<const std::string> overrides);

/// The job as protobuf text that load() reads back to an equal job. Equal jobs give equal texts.
std::string to_text(const Job& job);

/// 32 hexadecimal digits that name what is trained: all of the resolved job but its injected faults.
std::string hash(const Job& job);

}  // namespace lockstep::job
