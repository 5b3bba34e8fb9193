// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/export_weights.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/files/storage_faults.h"
#include "runtime/job/job.h"
#include "runtime/train/train.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

// Or a power cut may take the name of a file that the command has reported.
TEST(ExportWeights, SyncsTheFileAndThenItsFolder) {
  std::string pattern = (fs::temp_directory_path() / "lockstep-export-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  TrainOptions options;
  const std::vector<std::string> settings = {"train.steps=1", "train.eval_every=0", "checkpoint.every_steps=1"};
  options.job = job::load(LOCKSTEP_SOURCE_DIR "/configs/digits_convnet.pbtxt", settings);
  options.run_dir = folder / "run";
  comm::World world = comm::World::from_environment();
  ASSERT_EQ(train(world, options), ExitCode::kDone);

  std::vector<std::string> synced;
  set_storage_hook([&](const StorageCall& call) {
    if (call.operation == StorageOperation::kSync) synced.push_back(call.path);
    return StorageFault{};
  });
  const fs::path out = folder / "out" / "weights.safetensors";
  export_weights(options.job, {.saved = {.checkpoint = options.run_dir}, .out = out});
  set_storage_hook({});
  EXPECT_THAT(synced, testing::ElementsAre(out.string() + ".tmp", out.parent_path().string()));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::train
