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

std::map<std::string, std::string> tokenizer_files(const job::Job& job) {
  std::map<std::string, std::string> files;
  const job::Tokens& tokens = job.data().train().tokens();
  const auto add = [&files](const char* name, const std::string& path) {
    if (!path.empty() && fs::is_regular_file(path)) files[name] = read_file(path, kMostTokenizerBytes);
  };
  add("vocab.json", tokens.vocab_file());
  add("merges.txt", tokens.merges_file());
  return files;
}

std::vector<std::string> write_hub_folder(const job::Job& job, const RestoredModel& restored,
                                          const nn::StateDict& weights, DType dtype, const fs::path& folder) {
  require_free_folder(folder);
  model_zoo::HubFacts facts{.input = restored.task.model_input(), .dtype = std::string(name_of(dtype))};
  if (facts.input.vocabulary == 0) facts.class_names = data::class_names(job::data_options(job.data()).train);
  std::map<std::string, std::string> files = tokenizer_files(job);
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
