// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/data_digest.h"

namespace lockstep::data {

/// A file to predict, and the file that its answer is written to.
struct AnswerFile {
  std::string input;
  std::string answer;
};

/// The files of input_files(), and below `folder` a file for the answer to each: of the input's name, or, of an input
/// in a folder that `paths` names, of its path below that folder. `ending` stands in place of the input's ending, which
/// is kept in lower case where `ending` is empty. Throws UsageError as input_files() does, where two answers would have
/// one name, and where an answer would overwrite an input.
std::vector<AnswerFile> answer_files(std::span<const std::string> paths, std::span<const std::string_view> endings,
                                     const std::string& folder, std::string_view ending);

/// A digest of the inputs' content and of the names of the answers.
DataDigest digest_of(const std::vector<AnswerFile>& files);

}  // namespace lockstep::data
