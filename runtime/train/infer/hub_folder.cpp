// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/hub_folder.h"

#include "model_zoo/hub_export.h"
#include "runtime/base/error.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/checkpoint/temporary_directory.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"
#include "runtime/job/job.h"
#include "runtime/step/weight_file.h"

namespace lockstep::train {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMostTokenizerBytes = 64 << 20;

/// The folder's path without the "/" that ends it.
fs::path bare(const fs::path& folder) { return folder.has_filename() ? folder : folder.parent_path(); }

}  // namespace

void require_free_folder(const fs::path& folder) {
  const fs::path path = bare(folder);
  if (!fs::exists(path)) return;
  if (!fs::is_directory(path)) throw UsageError("--out " + folder.string() + ": it is a file, and no folder");
  if (!fs::is_empty(path)) {
    throw UsageError("--out " + folder.string() + ": the folder is not empty",
                     "Name a new one: files of another model beside the weights would be read with them.");
  }
}

std::map<std::string, std::string> tokenizer_files(const data::TokenizerFiles& files) {
  std::map<std::string, std::string> named;
  const auto name_of = [&files](std::size_t i) -> std::string {
    if (files.size() == 2) return i == 0 ? "vocab.json" : "merges.txt";
    return files[i].name.ends_with(".json") ? "tokenizer.json" : "tokenizer.model";
  };
  for (std::size_t i = 0; i < files.size(); ++i) named[name_of(i)] = files[i].content;
  return named;
}

std::vector<std::string> write_hub_folder(const data::Preparation& preparation, const RestoredModel& restored,
                                          const nn::StateDict& weights, DType dtype, const fs::path& folder) {
  require_free_folder(folder);
  model_zoo::HubFacts facts{.input = restored.task.model_input(), .dtype = std::string(name_of(dtype))};
  if (facts.input.vocabulary == 0) facts.class_names = preparation.class_names;
  std::map<std::string, std::string> files = tokenizer_files(preparation.tokenizer);
  files["config.json"] = model_zoo::hub_config_text(restored.options, *restored.model, facts);

  const fs::path path = fs::absolute(bare(folder));
  make_directories(path.parent_path().string());
  const checkpoint::TemporaryDirectory work(path.parent_path().string(), path.filename().string());
  step::write_weights(weights, fs::path(work.path()) / "model.safetensors");
  std::vector<std::string> names;
  for (const auto& [name, content] : files) {
    if (const std::error_code error = write_whole_file(fs::path(work.path()) / name, content)) {
      throw StorageError("cannot write " + (path / name).string() + ": " + error.message());
    }
    names.push_back(name);
  }
  if (!rename_directory(work.path(), path.string())) require_free_folder(folder);
  sync_directory(path.parent_path().string());
  return names;
}

}  // namespace lockstep::train
