// SPDX-License-Identifier: Apache-2.0
// A count of a job at which nobody can train costs neither time nor memory: looking at the job ends with an error, or
// with a plan.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "configs/job.pb.h"
#include "runtime/job/job.h"
#include "runtime/train/plan.h"

namespace lockstep::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kImages = "synthetic { samples: 64 shape: [32, 32, 3] classes: 4 }";
constexpr const char* kTexts = "synthetic { samples: 64 shape: 16 vocabulary: 64 }";
constexpr const char* kVolumes = "spheres { samples: 64 shape: [16, 16, 16, 1] }";

struct Base {
  std::string kind;   ///< of the model
  std::string model;  ///< its content
  std::string data;
  std::string loss = "CROSS_ENTROPY";
};

const std::vector<Base> kBases{
    {"mlp", "hidden: 8 batch_norm: true", kImages},
    {"convnet", "block { channels: 4 } hidden: 8", kImages},
    {"resnet", "depth: 18", kImages},
    {"mobilenet_v2", "", kImages},
    {"vit", "layers: 1 patch: 8", kImages},
    {"gpt", "layers: 1", kTexts},
    {"llama", "layers: 1 width: 128", kTexts},
    {"bert", "layers: 1", kTexts},
    {"unet3d", "levels: 1", kVolumes, "BCE_DICE"},
};

std::string job_of(const Base& base) {
  return fmt::format(
      "name: \"base\" model {{ {} {{ {} }} }} data {{ global_batch: 8 train {{ {} }} }} "
      "optimizer {{ sgd {{ lr: 0.1 momentum: 0.9 }} }} train {{ steps: 10 loss: {} }}",
      base.kind, base.model, base.data, base.loss);
}

struct Look {
  std::string said;  ///< the first error; empty of a plan
  long peak_kib = 0;
};

/// Looks at a job, in a process of its own.
Look look_at(const std::string& text, const std::vector<std::string>& overrides) {
  constexpr unsigned kSeconds = 60;  // far beyond what is needed
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    const job::Checked checked = job::check_text(text, "job.pbtxt", overrides, ".");
    std::string said = checked.diagnostics.empty() ? std::string() : checked.diagnostics.front().str();
    if (said.empty()) {
      Plan planned = plan(checked.job, {}, checked.locations);
      require_memory(planned, checked.job, checked.locations, std::size_t{64} << 30, 1);
      if (!planned.errors.empty()) said = planned.errors.front().at.str();
    }
    [[maybe_unused]] const ssize_t written = write(ends[1], said.data(), said.size());
    _exit(0);
  }
  close(ends[1]);
  Look look;
  char buffer[512];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;) look.said.append(buffer, count);
  close(ends[0]);
  int status = 0;
  rusage usage{};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  EXPECT_EQ(status, 0) << "it did not end within " << kSeconds << " s, or crashed";
  look.peak_kib = usage.ru_maxrss;
  return look;
}

/// The largest value of a field of whole numbers; 0 of another one.
std::uint64_t most_of(const google::protobuf::FieldDescriptor& field) {
  using google::protobuf::FieldDescriptor;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return std::numeric_limits<std::uint32_t>::max();
    case FieldDescriptor::CPPTYPE_INT32:
      return std::numeric_limits<std::int32_t>::max();
    case FieldDescriptor::CPPTYPE_UINT64:
      return std::numeric_limits<std::uint64_t>::max();
    case FieldDescriptor::CPPTYPE_INT64:
      return std::numeric_limits<std::int64_t>::max();
    default:
      return 0;
  }
}

/// Calls visit(path, field) for every field of whole numbers below `message`; of several kinds for those that the base
/// has alone.
void for_each_count(const google::protobuf::Descriptor& message, const std::string& at,
                    const std::vector<std::string>& kinds,
                    const std::function<void(const std::string&, const google::protobuf::FieldDescriptor&)>& visit) {
  for (int i = 0; i < message.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.field(i);
    const std::string path = at + (at.empty() ? "" : ".") + field.name();
    if (const google::protobuf::Descriptor* const part = field.message_type()) {
      const bool is_one_of_several = field.real_containing_oneof() != nullptr;
      if (is_one_of_several && std::ranges::find(kinds, path) == kinds.end()) continue;
      if (!field.is_repeated()) {
        for_each_count(*part, path, kinds, visit);
      } else if (path == "model.convnet.block") {
        for_each_count(*part, path + "[0]", kinds, visit);
      }
    } else if (most_of(field) > 0) {
      visit(path, field);
    }
  }
}

class HugeCounts : public testing::TestWithParam<Base> {};

TEST_P(HugeCounts, CostNeitherTimeNorMemory) {
  const Base& base = GetParam();
  const std::string text = job_of(base);
  const Look sound = look_at(text, {});
  ASSERT_EQ(sound.said, "");
  const std::string data = base.data.substr(0, base.data.find(' '));
  const std::vector<std::string> kinds{"model." + base.kind, "data.train." + data, "optimizer.sgd", "schedule.cosine"};
  int counts = 0;
  for_each_count(*job::Job::descriptor(), "", kinds,
                 [&](const std::string& path, const google::protobuf::FieldDescriptor& field) {
                   for (const std::uint64_t value : {std::uint64_t{1'000'000'000}, most_of(field)}) {
                     const std::string override = fmt::format("{}={}", path, value);
                     const Look look = look_at(text, {override});
                     EXPECT_LT(look.peak_kib - sound.peak_kib, 200 << 10) << override << ": " << look.said;
                     ++counts;
                   }
                 });
  EXPECT_GT(counts, 40);
}

INSTANTIATE_TEST_SUITE_P(Models, HugeCounts, testing::ValuesIn(kBases),
                         [](const auto& base) { return base.param.kind; });

TEST(HugeCount, NamesTheFieldTheMemoryItWouldTakeAndWhatThereIs) {
  const Base gpt{"gpt", "", kTexts};
  EXPECT_THAT(
      look_at(job_of(gpt), {"model.gpt.width=1200000"}).said,
      AllOf(HasSubstr("model.gpt.width: 1200000 makes too large a model: the weights of one of its layers take"),
            HasSubstr("this machine has ")));
  EXPECT_THAT(look_at(job_of(gpt), {"model.gpt.layers=1000000000"}).said,
              AllOf(HasSubstr("model.gpt.layers: 1000000000 makes too large a model"),
                    HasSubstr("its weights take 25.2 PiB"), HasSubstr("this machine has ")));
  EXPECT_THAT(look_at(job_of(gpt), {"model.gpt.layers=2500"}).said,
              AllOf(HasSubstr("model.gpt.layers: the weights, their gradients and the optimizer's state take "),
                    HasSubstr("this machine has 64.0 GiB of memory")));
}

}  // namespace
}  // namespace lockstep::train
