// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/plan.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "amp/grad_scaler/opt_level.h"
#include "comm/ddp/distributed_data_parallel.h"
#include "comm/group/communicator.h"
#include "model_zoo/build.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"
#include "runtime/job/job.h"
#include "runtime/job/model_options.h"
#include "runtime/job/training_options.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/tensor/memory.h"
#include "runtime/train/dry_run.h"
#include "runtime/train/network.h"
#include "runtime/train/task.h"

namespace lockstep::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kConfigs = LOCKSTEP_SOURCE_DIR "/configs/";

Plan plan_of(const std::string& file, const std::vector<std::string>& overrides = {}, const PlanOptions& options = {}) {
  const job::Checked checked = job::load_checked(kConfigs + file, overrides);
  return plan(checked.job, options, checked.locations);
}

struct ReadyJob {
  std::string file;
  std::int64_t parameters, samples, steps_per_epoch;
  std::int64_t weights, compute_copies, gradients, optimizer_state;
  std::vector<std::string> overrides = {};  ///< made samples instead of the user's files
};

class ReadyJobs : public testing::TestWithParam<ReadyJob> {};

// By hand: weights of layers and their biases, gamma and beta of batch norm. 4 bytes a weight, 2 where it has 16 bits;
// a parameter's share of the memory is a multiple of 32 elements.
TEST_P(ReadyJobs, ArePlannedExactly) {
  const ReadyJob& job = GetParam();
  const Plan planned = plan_of(job.file, job.overrides);
  EXPECT_THAT(planned.errors, IsEmpty());
  EXPECT_THAT(planned.warnings, IsEmpty());
  EXPECT_EQ(planned.parameters, job.parameters);
  EXPECT_EQ(planned.train.samples, job.samples);
  EXPECT_EQ(planned.steps_per_epoch, job.steps_per_epoch);
  EXPECT_EQ(planned.memory.weights, job.weights);
  EXPECT_EQ(planned.memory.compute_copies, job.compute_copies);
  EXPECT_EQ(planned.memory.gradients, job.gradients);
  EXPECT_EQ(planned.memory.gradient_sums, 0);
  EXPECT_EQ(planned.memory.optimizer_state, job.optimizer_state);
}

constexpr std::int64_t kConvnet = 9 * 32 + 2 * 32 + 9 * 32 * 64 + 2 * 64 + 4 * 4 * 64 * 10 + 10;
constexpr std::int64_t kMlp = 64 * 128 + 128 + 128 * 128 + 128 + 128 * 10 + 10;
constexpr std::int64_t kWide = 3 * (4096 * 4096 + 4096);
constexpr std::int64_t kNarrow = 3 * (1024 * 1024 + 1024);
constexpr std::int64_t kResnet50 = 25557032;  // as published
/// Of two 3x3x3 convolutions of a level and their batch norms.
constexpr std::int64_t level(std::int64_t in, std::int64_t out) { return 27 * (in * out + out * out) + 4 * out; }
constexpr std::int64_t kUnet3d = level(1, 8) + level(8, 16) + level(16, 32) + (8 * 32 * 16 + 16) + level(32, 16) +
                                 (8 * 16 * 8 + 8) + level(16, 8) + (8 + 1);
// In memory each tensor takes a multiple of 128 elements. Batch norms have two tensors of as many as there are
// channels.
constexpr std::int64_t kUnet3dMemory =
    kUnet3d + 2 * 4 * 120 + 2 * 4 * 112 + 4 * 96 + 40 + 64 + 112 + 120 + 64 + 120 + 127;
constexpr std::int64_t kBiasOf10 = 118;
constexpr std::int64_t kConvnetMemory = kConvnet + 96 + 2 * 96 + 2 * 64 + kBiasOf10, kMlpMemory = kMlp + kBiasOf10;
constexpr std::int64_t kResnet50Memory = kResnet50 + 64 + 14 * 64 + 24;

constexpr std::int64_t kMnist = 9 * 32 + 2 * 32 + 9 * 32 * 64 + 2 * 64 + 9 * 64 * 64 + 2 * 64 + 7 * 7 * 64 * 10 + 10;
constexpr std::int64_t kMnistMemory = kMnist + 96 + 2 * 96 + 4 * 64 + kBiasOf10;
constexpr std::int64_t kResnet18 = 11173962,
                       kResnet18Memory = kResnet18 + 64 + 10 * 64 + kBiasOf10;  // for 32x32 images in 10 classes

/// Samples as those of the user's files.
std::vector<std::string> made(std::int64_t samples, const std::string& shape_and_classes) {
  return {"data.train={ synthetic { samples: " + std::to_string(samples) + " " + shape_and_classes + " } }",
          "data.eval={ synthetic { samples: 1000 " + shape_and_classes + " } }", "data.augment={ flip: true }"};
}

INSTANTIATE_TEST_SUITE_P(
    Configs, ReadyJobs,
    testing::Values(
        ReadyJob{"digits_convnet.pbtxt", kConvnet, 1500, 24, 4 * kConvnetMemory, 2 * kConvnetMemory, 2 * kConvnetMemory,
                 4 * kConvnetMemory},
        ReadyJob{"digits_lars.pbtxt", kConvnet, 1500, 3, 4 * kConvnetMemory, 2 * kConvnetMemory, 2 * kConvnetMemory,
                 4 * kConvnetMemory},
        ReadyJob{"digits_mlp.pbtxt", kMlp, 1500, 24, 4 * kMlpMemory, 0, 4 * kMlpMemory, 8 * kMlpMemory},
        ReadyJob{"recipe_mlp.pbtxt", kWide, 25600, 50, 4 * kWide, 2 * kWide, 2 * kWide, 0},
        ReadyJob{"synthetic_mlp.pbtxt", kNarrow, 65536, 64, 4 * kNarrow, 2 * kNarrow, 2 * kNarrow, 4 * kNarrow},
        ReadyJob{"resnet50_synthetic.pbtxt", kResnet50, 12800, 50, 4 * kResnet50Memory, 2 * kResnet50Memory,
                 2 * kResnet50Memory, 4 * kResnet50Memory},
        ReadyJob{"unet3d_synthetic.pbtxt", kUnet3d, 400, 100, 4 * kUnet3dMemory, 2 * kUnet3dMemory, 2 * kUnet3dMemory,
                 8 * kUnet3dMemory},
        ReadyJob{"mnist_convnet.pbtxt", kMnist, 60000, 468, 4 * kMnistMemory, 2 * kMnistMemory, 2 * kMnistMemory,
                 4 * kMnistMemory, made(60000, "shape: [28, 28, 1] classes: 10")},
        ReadyJob{"cifar10_resnet18.pbtxt", kResnet18, 50000, 97, 4 * kResnet18Memory, 2 * kResnet18Memory,
                 2 * kResnet18Memory, 4 * kResnet18Memory, made(50000, "shape: [32, 32, 3] classes: 10")},
        ReadyJob{"imagenet_resnet50.pbtxt", kResnet50, 1281167, 1252, 4 * kResnet50Memory, 2 * kResnet50Memory,
                 2 * kResnet50Memory, 4 * kResnet50Memory, made(1281167, "shape: [224, 224, 3] classes: 1000")}),
    [](const auto& which) { return which.param.file.substr(0, which.param.file.find('.')); });

TEST(JobsForTheUsersFiles, SayWhichAreMissingAndWhereTheyComeFrom) {
  for (const char* name : {"mnist_convnet", "cifar10_resnet18", "imagenet_resnet50", "shakespeare_gpt", "gpt2_124m"}) {
    SCOPED_TRACE(name);
    std::ostringstream text;
    text << std::ifstream(kConfigs + name + ".pbtxt").rdbuf();
    const job::Checked checked = job::check_text(text.str(), "job.pbtxt", {}, "/absent");
    EXPECT_FALSE(checked.diagnostics.empty());
    for (const job::Diagnostic& found : checked.diagnostics) {
      EXPECT_THAT(found.message, testing::AllOf(testing::StartsWith("no such "), HasSubstr("(/absent/data/")));
    }
    EXPECT_THAT(checked.data_note, testing::AllOf(testing::StartsWith("Data: "), HasSubstr("https://"),
                                                  testing::Not(HasSubstr("lockstep train"))));
    try {
      job::load_text(text.str(), "job.pbtxt", {}, "/absent");
      ADD_FAILURE() << "trains on nothing";
    } catch (const UsageError& error) {
      EXPECT_THAT(error.advice(), HasSubstr(checked.data_note));
    }
  }
}

/// "sgd { lr: 0.1 }" for each kind of optimizer that a job can name, and with what makes it keep more or less.
std::vector<std::string> optimizers() {
  std::vector<std::string> texts{"sgd { lr: 0.1 momentum: 0.9 } clip_norm: 1"};
  const auto* kinds = job::Optimizer::descriptor()->FindOneofByName("kind");
  for (int i = 0; i < kinds->field_count(); ++i) texts.push_back(kinds->field(i)->name() + " { lr: 0.1 }");
  return texts;
}

const std::vector<std::string> kLevels{"", "opt_level: O1", "opt_level: O2 dtype: BF16", "opt_level: O3"};

/// The bytes that the allocator holds for what a plan predicts.
PlannedMemory held() {
  const auto bytes = [](MemoryPurpose purpose) {
    return static_cast<std::int64_t>(memory_use(kCpu, purpose).allocated);
  };
  return {bytes(MemoryPurpose::kMasterWeights), bytes(MemoryPurpose::kComputeCopies), bytes(MemoryPurpose::kGradients),
          bytes(MemoryPurpose::kFloat32Gradients), bytes(MemoryPurpose::kOptimizerState)};
}

/// Compares the plan with what the allocator hands out to the model and optimizer of the job, values left out.
void expect_planned_to_the_byte(const std::string& file, const std::vector<std::string>& overrides) {
  const job::Job job = job::load(kConfigs + file, overrides);
  const Plan planned = plan_of(file, overrides);
  ASSERT_THAT(planned.errors, IsEmpty());
  const PlannedMemory before = held();
  ASSERT_EQ(before.weights, 0);
  comm::World world = comm::World::from_environment();
  const auto model =
      model_zoo::outline(job::model_options(job.model()), Task(job.train(), planned.train).model_input());
  const auto optimizer = job::make_optimizer(job.optimizer(), model->parameters());
  amp::initialize(*model, *optimizer, job::amp_options(job.amp()));
  const comm::DistributedDataParallel ddp(*model, world, job::ddp_options(job.comm()));
  if (planned.memory.gradient_sums > 0) model->arena()->float32_grads();
  const PlannedMemory now = held();
  EXPECT_EQ(planned.memory.weights, now.weights);
  EXPECT_EQ(planned.memory.compute_copies, now.compute_copies);
  EXPECT_EQ(planned.memory.gradients, now.gradients);
  EXPECT_EQ(planned.memory.gradient_sums, now.gradient_sums);
  EXPECT_EQ(planned.memory.optimizer_state, now.optimizer_state);
}

TEST_P(ReadyJobs, ArePlannedToTheByteThatIsAllocatedAtEveryOptLevel) {
  for (const std::string& amp : kLevels) {
    SCOPED_TRACE(amp);
    std::vector<std::string> overrides = GetParam().overrides;
    overrides.insert(overrides.end(), {"amp={ " + amp + " }", "comm.wire_dtype=unset"});
    expect_planned_to_the_byte(GetParam().file, overrides);
  }
}

TEST(Plan, OfTheReadyJobWhoseDataAreNotHereIsToTheByteToo) {
  const std::string data = "data={ global_batch: 8 train { synthetic { samples: 8 shape: [32, 32, 3] classes: 10 } } }";
  for (const std::string& amp : kLevels) {
    SCOPED_TRACE(amp);
    expect_planned_to_the_byte("cifar10_resnet18.pbtxt",
                               {data, "train.eval_every=0", "amp={ " + amp + " }", "comm.wire_dtype=unset"});
  }
}

/// What a ready job would run, its data but for their files as it says.
Plan sound_plan_of(const std::string& file, const std::vector<std::string>& overrides) {
  const Plan planned = plan_of(file, overrides);
  EXPECT_THAT(planned.errors, IsEmpty());
  EXPECT_THAT(planned.warnings, IsEmpty());
  return planned;
}

TEST(Plan, OfVitB16HasItsPublishedSize) {
  const std::string images = "={ synthetic { samples: 8192 shape: [224, 224, 3] classes: 1000 } }";
  const Plan planned = sound_plan_of(
      "vit_b16.pbtxt", {"data.train" + images, "data.eval" + images, "data.augment.random_resized_crop=unset"});
  EXPECT_EQ(planned.parameters, 86567656);
}

TEST(Plan, OfBertLargeHasItsPublishedSizeAndTargets) {
  const std::filesystem::path tokens =
      std::filesystem::temp_directory_path() / ("lockstep-plan-" + std::to_string(getpid()) + ".bin");
  std::ofstream(tokens, std::ios::binary) << std::string(2 * 5000, '\0');
  std::vector<std::string> overrides;
  for (const std::string split : {"train", "eval"}) {
    overrides.push_back("data." + split + ".tokens.files=['" + tokens.string() + "']");
    overrides.push_back("data." + split + ".tokens.stride=1");
  }
  const Plan planned = sound_plan_of("bert_large.pbtxt", overrides);
  std::filesystem::remove(tokens);
  // Hugging Face's bert-large-uncased with the masked-token head, and a vocabulary of 70 tokens more.
  EXPECT_EQ(planned.parameters, 335174458 + 70 * (1024 + 1));
  EXPECT_EQ(planned.train.targets_per_sample, 19);
  EXPECT_EQ(planned.train.vocabulary, 30522);
}

TEST(Plan, StatesTheMemoryOfEveryOptimizerToTheByte) {
  for (const std::string& optimizer : optimizers()) {
    for (const std::string& amp : kLevels) {
      SCOPED_TRACE(optimizer + ", " + amp);
      expect_planned_to_the_byte("digits_convnet.pbtxt",
                                 {"optimizer={ " + optimizer + " }", "amp={ " + amp + " }", "train.accumulate=2"});
    }
  }
}

TEST(Plan, StatesWhatACheckpointHolds) {
  for (const std::string& optimizer : optimizers()) {
    const std::vector<std::string> overrides{"optimizer={ " + optimizer + " }"};
    const job::Job job = job::load(kConfigs + "digits_convnet.pbtxt", overrides);
    const data::DatasetPtr data = data::make_dataset(job::data_options(job.data()), data::Split::kTrain);
    Network network(job, data::describe(*data), kCpu);
    std::int64_t saved = 0;
    for (const auto& [name, tensor] : step::state_tensors({{"", network.arena()}}, {{"", network.optimizer()}})) {
      saved += static_cast<std::int64_t>(tensor.bytes());
    }
    EXPECT_EQ(plan_of("digits_convnet.pbtxt", overrides).checkpoints.bytes, saved) << optimizer;
    std::vector<std::string> names;
    for (const auto& [name, flat] : network.optimizer().state()) names.push_back(name);
    EXPECT_EQ(network.optimizer().state_names(), names);
  }
}

TEST(Plan, OfADryRunMeasuresActivationsAndWritesNothing) {
  const auto measured = [](const std::vector<std::string>& overrides, int ranks) {
    const job::Job job = job::load(kConfigs + "digits_convnet.pbtxt", overrides);
    return dry_run(job, ranks, kCpu);
  };
  const DryRun whole = measured({}, 1);
  EXPECT_GT(whole.activations, 0u);
  EXPECT_GT(whole.activation_gradients, 0u);
  EXPECT_GT(whole.peak, whole.activations);
  EXPECT_LT(whole.peak, 64u << 20);
  const DryRun share = measured({"fault={ kill { step: 1 } }"}, 2);
  EXPECT_LT(share.activations, whole.activations * 3 / 4) << "half of the samples";
  EXPECT_LT(measured({"train.accumulate=4"}, 1).activations, whole.activations / 2) << "a quarter at a time";
  EXPECT_EQ(held().weights, 0) << "nothing is kept";
}

TEST(Plan, StatesWhatMicroBatchesAddUpIn) {
  EXPECT_EQ(plan_of("digits_convnet.pbtxt", {"train.accumulate=4"}).memory.gradient_sums, 4 * kConvnetMemory);
  EXPECT_EQ(plan_of("digits_convnet.pbtxt", {"train.accumulate=4", "comm.wire_dtype=FP32"}).memory.gradient_sums, 0);
}

TEST(Plan, RefusesBFloat16ByNameOnAGpuThatHasNone) {
  const Device device{DeviceType::kCuda, 1};
  const gpu::Description old{.name = "Tesla T4", .compute_capability = 75};
  require_dtype("amp.dtype", DType::kFloat16, device, old);
  require_dtype("amp.dtype", DType::kBFloat16, device, {.name = "A100", .compute_capability = 80});
  try {
    require_dtype("amp.dtype", DType::kBFloat16, device, old);
    FAIL() << "bfloat16 was taken";
  } catch (const FieldError& error) {
    EXPECT_EQ(error.path(), "amp.dtype");
    EXPECT_THAT(error.message(), HasSubstr("8.0 or newer; cuda:1, Tesla T4, has 7.5"));
    EXPECT_THAT(error.advice(), HasSubstr("FP16"));
  }
}

TEST(Plan, CountsCheckpoints) {
  const auto count = [](const std::string& every) {
    return plan_of("digits_convnet.pbtxt", {"checkpoint.every_steps=" + every}).checkpoints.count;
  };
  EXPECT_EQ(count("0"), 1);
  EXPECT_EQ(count("100"), 6);
  EXPECT_EQ(count("599"), 2);
  EXPECT_EQ(count("700"), 1);
  const PlanOptions options{.run_dir = "here"};
  EXPECT_EQ(plan_of("digits_convnet.pbtxt", {}, options).checkpoints.directory, "here/checkpoints");
}

TEST(Plan, NamesEveryErrorAtItsPlace) {
  const Plan planned =
      plan_of("digits_convnet.pbtxt", {"data.augment.pad_crop=9", "optimizer.group=[{ match: \"x\" }]"});
  ASSERT_THAT(planned.errors, SizeIs(2));
  EXPECT_EQ(planned.errors[0].at.str(),
            "--set data.augment.pad_crop=9: data.augment.pad_crop: 9 is more than the images' extent, [8, 8, 1]");
  EXPECT_THAT(planned.errors[1].at.str(), HasSubstr("optimizer.group[0].match: \"x\" matches no parameter"));
  EXPECT_THAT(planned.errors[1].advice, HasSubstr("block0_conv.weight"));
  try {
    require_sound(planned);
    FAIL() << "a plan with errors was taken for sound";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_EQ(error.what(), planned.errors[0].at.str() + "\n" + planned.errors[1].at.str());
  }
}

TEST(Plan, NamesTheFieldOfTheFileThatCannotBeRead) {
  const std::string readme = LOCKSTEP_SOURCE_DIR "/README.md";
  const auto path_for = [&](const std::string& field) {
    return plan_of("digits_convnet.pbtxt", {field + "=" + readme}).errors.at(0).at.path;
  };
  EXPECT_EQ(path_for("data.train.idx.images"), "data.train.idx.images");
  EXPECT_EQ(path_for("data.eval.idx.labels"), "data.eval.idx.labels");
  const Plan apart =
      plan_of("digits_convnet.pbtxt", {"data.train.idx.labels=" + kConfigs + "data/digits/test-labels-idx1-ubyte.gz"});
  EXPECT_EQ(apart.errors.at(0).at.path, "data.train.idx") << "neither of two files that do not belong together";
  EXPECT_EQ(apart.errors.at(0).code, ExitCode::kStorage);
}

TEST(Plan, WithoutLocationsNamesTheField) {
  job::Job job = job::load(kConfigs + "digits_convnet.pbtxt");
  job.mutable_data()->mutable_augment()->set_pad_crop(9);
  EXPECT_THAT(plan(job, {}).errors.at(0).at.str(), testing::StartsWith("data.augment.pad_crop: 9 is more"));
}

TEST(Plan, WarnsOfMoreRanksThanCores) {
  const auto warnings = [](int here, int cores) {
    return plan_of("digits_mlp.pbtxt", {}, {.ranks = 8, .ranks_here = here, .cores = cores}).warnings;
  };
  EXPECT_THAT(warnings(2, 2), IsEmpty());
  EXPECT_THAT(warnings(0, 2), IsEmpty()) << "not known where they run";
  EXPECT_THAT(warnings(8, 0), IsEmpty()) << "not known how many cores there are";
  ASSERT_THAT(warnings(3, 2), SizeIs(1));
  EXPECT_EQ(warnings(3, 2)[0].at.str(), "3 ranks share the 2 cores of this machine");
}

/// KiB that this process has had at most.
long most_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Plan, TakesNoMemoryForTheWeights) {
  const long before = most_memory();
  const Plan planned = plan_of("recipe_mlp.pbtxt", {"model.mlp.hidden=[4096, 65536]"});
  EXPECT_LT(most_memory() - before, 256 * 1024) << "KiB, of 2 GiB of weights";
  EXPECT_THAT(planned.errors, IsEmpty());
  EXPECT_EQ(planned.parameters, 4096 * 4096 + 4096 + 4096 * 65536 + 65536 + 65536 * 4096 + 4096);
}

}  // namespace
}  // namespace lockstep::train
