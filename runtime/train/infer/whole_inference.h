// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "comm/group/world.h"
#include "runtime/train/infer/inference.h"

namespace lockstep::job {
class Job;
}

namespace lockstep::train {

/// Whether the inputs are predicted as wholes: data::predicts_wholes().
bool answers_wholes(const job::Job& job, const InferOptions& options);

/// Whether a path stands for a folder: it ends in /, or it is one.
bool names_answer_folder(const std::filesystem::path& path);

/// Throws UsageError for options that do not fit inputs that are predicted as wholes.
void require_answer_folder(const InferOptions& options);

/// Predicts files as wholes, whatever their extents, by windows of what the model was trained on (sliding_window.h),
/// and writes an answer for each into the folder options.out (data::WholeInput). Files are dealt to the ranks, and each
/// rank writes its answers, which have the same bits on any number of ranks. An input that cannot be read is one of
/// InferResult::failures and has no answer. InferResult::cost counts windows. A collective; throws UsageError, also
/// where an answer would overwrite an input or another answer, or where the ranks do not share the folder, and Error.
InferResult infer_wholes(comm::World& world, const job::Job& job, const InferOptions& options);

}  // namespace lockstep::train
