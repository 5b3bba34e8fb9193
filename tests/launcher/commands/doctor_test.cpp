// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/doctor.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "comm/group/versions.h"
#include "launcher/commands/product_times.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using nlohmann::ordered_json;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

class Doctor : public testing::Test {
 protected:
  Ended run(std::vector<std::string> arguments, const Program::Variables& variables = {}) const {
    arguments.insert(arguments.begin(), "doctor");
    return lockstep_command(std::move(arguments), folder_, variables);
  }
  ordered_json examined(const Program::Variables& variables = {}) const {
    const Ended ended = run({"--json"}, variables);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ordered_json::parse(ended.out);
  }
  static bool lacks(const ordered_json& examination, const std::string& what) {
    for (const ordered_json& finding : examination["findings"]) {
      if (finding["missing"].get<std::string>().find(what) != std::string::npos) return true;
    }
    return false;
  }

  Folder folder_;
};

TEST_F(Doctor, NamesWhatTheMachineHas) {
  const ordered_json found = examined();
  EXPECT_THAT(found["trains_on"].get<std::vector<std::string>>(), testing::Contains("cpu"));
  EXPECT_GT(found["processor"]["cores"].get<int>(), 0);
  EXPECT_THAT(found["processor"]["isa"].get<std::string>(), AnyOf("baseline", "avx2", "avx512", "neon", "neon_bf16"));
  for (const char* dtype : {"float16", "bfloat16"}) {
    EXPECT_THAT(found["processor"][dtype].get<std::string>(), AnyOf(HasSubstr("float32"), HasSubstr("instructions")));
  }
  for (const auto& name : found["processor"]["half_instructions"]) {
    EXPECT_THAT(name.get<std::string>(),
                AnyOf("F16C", "AVX512_BF16", "AVX512_FP16", "AMX_BF16", "AMX_FP16", "FCVT", "FP16", "BF16"));
  }
  const bool native = found["processor"]["native_bfloat16"];
  EXPECT_EQ(native, found["processor"]["bfloat16"] != found["processor"]["float16"]);
  for (const char* library : {"onednn", "protobuf"}) {
    EXPECT_THAT(found["libraries"][library].get<std::string>(), MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+")) << library;
  }
  if (comm::mpi_version().empty()) {
    EXPECT_TRUE(found["libraries"]["mpi"].is_null());
    EXPECT_TRUE(lacks(found, "MPI"));
  } else {
    EXPECT_THAT(found["libraries"]["mpi"].get<std::string>(), MatchesRegex("Open MPI [0-9.]+.*"));
  }
  EXPECT_GE(found["shared_memory"]["bytes"].get<double>(), found["shared_memory"]["free_bytes"].get<double>());
}

TEST_F(Doctor, AMachineWithoutGpusSaysWhatFollows) {
  const ordered_json found = examined();
  if (!found["devices"].empty()) GTEST_SKIP() << "this machine has GPUs";
  EXPECT_TRUE(lacks(found, "a GPU"));
  EXPECT_THAT(found["trains_on"].get<std::vector<std::string>>(), Each(testing::StrEq("cpu")));
}

TEST_F(Doctor, AMachineWithGpusListsThem) {
  const ordered_json found = examined();
  if (found["devices"].empty()) GTEST_SKIP() << "this machine has no GPU";
  EXPECT_THAT(found["trains_on"].get<std::vector<std::string>>(), testing::Contains("cuda"));
  for (const char* library : {"cuda", "cudnn", "cublas", "nccl"}) {
    EXPECT_TRUE(found["libraries"][library].is_string()) << library;
  }
  EXPECT_TRUE(found["cuda_driver"].is_string());
  const ordered_json& device = found["devices"][0];
  EXPECT_EQ(device["device"], "cuda:0");
  EXPECT_THAT(device["compute_capability"].get<std::string>(), MatchesRegex("[0-9]+\\.[0-9]"));
  EXPECT_TRUE(device.contains("float16") && device.contains("bfloat16"));
  EXPECT_GE(device["memory_bytes"].get<double>(), device["free_bytes"].get<double>());
}

TEST_F(Doctor, AMachineWithoutMpirunCanStillTrain) {
  if (comm::mpi_version().empty()) GTEST_SKIP() << "this build has no MPI, and tells that instead";
  EXPECT_FALSE(lacks(examined(), "mpirun"));
  const ordered_json found = examined({{"PATH", folder_.path()}});
  EXPECT_TRUE(found["mpirun"].is_null());
  EXPECT_TRUE(lacks(found, "mpirun"));
}

TEST_F(Doctor, ANarrowProcessorIsTold) {
  const ordered_json found = examined({{"LOCKSTEP_CPU_ISA", "baseline"}});
  EXPECT_EQ(found["processor"]["isa"], "baseline");
  EXPECT_TRUE(lacks(found, "AVX2 or NEON"));
  EXPECT_THAT(found["processor"]["float16"].get<std::string>(), HasSubstr("in software"));
  EXPECT_TRUE(found["processor"]["product_times"].is_null());
}

TEST_F(Doctor, MeasuresWhatSixteenBitsCost) {
  const ordered_json found = examined();
  if (found["processor"]["isa"] == "baseline") GTEST_SKIP() << "it computes them in software";
  for (const char* size : {"64", "512"}) {
    for (const char* dtype : {"float16", "bfloat16"}) {
      EXPECT_GT(found["processor"]["product_times"][size][dtype].get<double>(), 0.0) << size << " " << dtype;
    }
  }
  EXPECT_EQ(found["processor"]["advice"], advice_on(found["processor"]["product_times"]));
  const Ended told = run({});
  EXPECT_THAT(told.out, testing::ContainsRegex("products        64 x 64: float16 [0-9.]+, bfloat16 [0-9.]+ times "
                                               "float32's time\n                512 x 512: float16"));
  EXPECT_THAT(told.out, HasSubstr("                For speed, train "));
}

TEST(ProductTimes, TheAdviceIsTheFastestDtype) {
  const auto advice = [](double float16, double bfloat16) {
    const ordered_json times = {{"64", {{"float16", 2.0}, {"bfloat16", 2.0}}},
                                {"512", {{"float16", float16}, {"bfloat16", bfloat16}}}};
    return advice_on(times);
  };
  EXPECT_THAT(advice(1.1, 1.0), HasSubstr("opt_level: O0 dtype: FP32"));
  EXPECT_THAT(advice(1.1, 0.5), HasSubstr("opt_level: O1 dtype: BF16"));
  EXPECT_THAT(advice(0.5, 0.6), HasSubstr("opt_level: O1 dtype: FP16"));
}

TEST_F(Doctor, SpeaksToAPersonToo) {
  const Ended ended = run({}, {{"PATH", folder_.path()}});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.err, IsEmpty());
  for (const char* part : {"trains on       cpu", "16-bit instructions: ", "\nbfloat16        ", "onednn", "protobuf",
                           comm::mpi_version().empty() ? "missing: MPI\n  --nproc and --hosts"
                                                       : "missing: mpirun\n  --nproc and --hosts"}) {
    EXPECT_THAT(ended.out, HasSubstr(part));
  }
}

TEST(Examination, AMachineThatComputesNowhereCannotTrain) {
  EXPECT_FALSE(can_train({{"trains_on", ordered_json::array()}}));
  EXPECT_TRUE(can_train({{"trains_on", {"cpu"}}}));
}

}  // namespace
}  // namespace lockstep::launcher
