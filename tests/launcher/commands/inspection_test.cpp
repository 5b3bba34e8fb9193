// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/inspection.h"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/store.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using testing::HasSubstr;

const std::map<std::string, Tensor> kTensors{
    {"model/weight", Tensor::from<float>({1.0f, -3.0f, 5.0f, 1.0f}, {2, 2})},
    {"model/bias", Tensor::from<float>({std::numeric_limits<float>::quiet_NaN(), 2.0f}, {2})},
};

class Inspection : public testing::Test {
 protected:
  std::string save(std::uint64_t step) const {
    checkpoint::TrainingState state;
    state.set_step(step);
    state.add_schedule()->set_applied_steps(step - 1);
    state.set_epoch(2);
    state.set_job_hash("0123abcd");
    state.set_world_size(2);
    checkpoint::ScalerState& scaler = *state.add_scaler();
    scaler.set_scale(1024.0f);
    scaler.set_skipped_steps(1);
    return checkpoint::Store(folder_ / "run/checkpoints").save(state, kTensors);
  }
  static void damage(const std::string& checkpoint) {
    std::fstream file(checkpoint + "/tensors.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('x');
  }

  Folder folder_;
};

TEST_F(Inspection, OfACheckpointTellsStateAndTensors) {
  const auto found = inspect(save(7));
  EXPECT_EQ(found["kind"], "checkpoint");
  EXPECT_EQ(found["step"], 7);
  EXPECT_EQ(found["applied_steps"], 6);
  EXPECT_EQ(found["epoch"], 2);
  EXPECT_EQ(found["job_hash"], "0123abcd");
  EXPECT_EQ(found["scaler"]["scale"], 1024.0);
  EXPECT_FALSE(is_damaged(found));
  const auto& weight = found["tensors"][1];
  EXPECT_EQ(weight["name"], "model/weight");
  EXPECT_EQ(weight["dtype"], "float32");
  EXPECT_EQ(weight["shape"], (std::vector<int>{2, 2}));
  EXPECT_EQ(weight["mean"], 1.0);
  EXPECT_EQ(weight["min"], -3.0);
  EXPECT_EQ(weight["max"], 5.0);
  EXPECT_EQ(found["tensors"][0]["not_finite"], 1);
  const std::string text = inspection_text(found);
  EXPECT_THAT(text, HasSubstr("7, 6 of them applied"));
  EXPECT_THAT(text, HasSubstr("model/weight"));
  EXPECT_THAT(text, HasSubstr("1 not finite"));
}

TEST_F(Inspection, NamesTheOptimizersAndScalersOfACheckpointThatHasSeveral) {
  checkpoint::TrainingState state;
  state.set_step(3);
  for (const char* name : {"generator", "critic"}) {
    checkpoint::ScheduleState& schedule = *state.add_schedule();
    schedule.set_name(name);
    schedule.set_applied_steps(2);
    state.add_optimizer("adam");
    checkpoint::ScalerState& scaler = *state.add_scaler();
    scaler.set_name(name);
    scaler.set_scale(8);
  }
  const auto found = inspect(checkpoint::Store(folder_ / "several").save(state, kTensors));
  EXPECT_EQ(found["optimizer"]["critic"], "adam");
  EXPECT_EQ(found["scaler"]["generator"]["scale"], 8.0);
  const std::string text = inspection_text(found);
  EXPECT_THAT(text, HasSubstr("generator 2, critic 2 of them applied"));
  EXPECT_THAT(text, HasSubstr("generator adam, critic adam"));
  EXPECT_THAT(text, HasSubstr("scale of critic"));
}

TEST_F(Inspection, OfADamagedCheckpointSaysWhatIsDamaged) {
  const std::string path = save(7);
  damage(path);
  const auto found = inspect(path);
  EXPECT_TRUE(is_damaged(found));
  EXPECT_THAT(found["damage"].get<std::string>(), HasSubstr("is damaged"));
  EXPECT_FALSE(found.contains("tensors"));
  EXPECT_THAT(inspection_text(found), HasSubstr("damaged"));
}

TEST_F(Inspection, OfARunListsItsCheckpointsNewestFirst) {
  damage(save(5));
  save(6);
  for (const char* path : {"run", "run/checkpoints"}) {
    const auto found = inspect(folder_ / path);
    EXPECT_EQ(found["kind"], "run");
    ASSERT_EQ(found["checkpoints"].size(), 2u);
    EXPECT_EQ(found["checkpoints"][0]["step"], 6);
    EXPECT_TRUE(found["checkpoints"][0]["valid"]);
    EXPECT_FALSE(found["checkpoints"][1]["valid"]);
    EXPECT_TRUE(is_damaged(found));
    EXPECT_THAT(inspection_text(found), HasSubstr("whole"));
  }
}

TEST_F(Inspection, OfARunThatHasNotSavedFindsNothing) {
  std::filesystem::create_directory(folder_ / "run");
  write_text(folder_ / "run/job.pbtxt", "");
  EXPECT_TRUE(inspect(folder_ / "run")["checkpoints"].empty());
}

TEST_F(Inspection, OfASafetensorsFileTellsTensorsAndMetadata) {
  checkpoint::write_safetensors(folder_ / "x.safetensors", {{"w", Tensor::from<Half>({Half(0.5f)}, {1})}},
                                {{"a", "b"}});
  const auto found = inspect(folder_ / "x.safetensors");
  EXPECT_EQ(found["kind"], "safetensors");
  EXPECT_EQ(found["metadata"]["a"], "b");
  EXPECT_EQ(found["tensors"][0]["dtype"], "float16");
  EXPECT_EQ(found["tensors"][0]["max"], 0.5);
}

TEST_F(Inspection, RefusesWhatIsNoneOfThese) {
  EXPECT_THROW(inspect(folder_ / "missing"), StorageError);
  EXPECT_THROW(inspect(folder_.path()), StorageError);
  write_text(folder_ / "text", "not a safetensors file at all");
  EXPECT_THROW(inspect(folder_ / "text"), StorageError);
}

TEST_F(Inspection, IsACommandWhoseExitCodeTellsDamage) {
  const std::string path = save(7);
  const Ended whole = lockstep_command({"inspect", path, "--json"}, folder_);
  EXPECT_EQ(whole.code, 0);
  EXPECT_EQ(nlohmann::json::parse(whole.out)["step"], 7);
  damage(path);
  EXPECT_EQ(lockstep_command({"inspect", path}, folder_).code, 4);
  const Ended missing = lockstep_command({"inspect", "missing"}, folder_);
  EXPECT_EQ(missing.code, 4);
  EXPECT_THAT(missing.err, HasSubstr("there is no missing"));
}

}  // namespace
}  // namespace lockstep::launcher
