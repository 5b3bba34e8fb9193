// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace lockstep::train {

// What `lockstep eval` and `lockstep infer` have written into a run's directory, for its report. What is damaged or
// too large for a page is left out.

/// RUN/confusion.json, as confusion_file.h describes it; null where there is none.
nlohmann::ordered_json confusion_of(const std::filesystem::path& run);
/// The first of RUN/pictures/*.png: [{"name", "png": base64}].
nlohmann::ordered_json pictures_of(const std::filesystem::path& run);
/// The first lines of RUN/texts.jsonl: [{"prompt", "text"}].
nlohmann::ordered_json texts_of(const std::filesystem::path& run);

}  // namespace lockstep::train
