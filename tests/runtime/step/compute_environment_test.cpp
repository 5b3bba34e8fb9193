// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/compute_environment.h"

#include <gmock/gmock.h>

#include "comm/group/world.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/kernels/cpu/isa.h"
#include "runtime/kernels/cpu/threads.h"

namespace lockstep::step {
namespace {

using checkpoint::ComputeEnvironment;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ComputeEnvironment on_cpu(std::uint32_t threads, const std::string& isa = "avx512") {
  ComputeEnvironment environment;
  environment.set_device("cpu");
  environment.set_instruction_set(isa);
  environment.set_threads(threads);
  return environment;
}

ComputeEnvironment on_gpu(bool autotune) {
  ComputeEnvironment environment;
  environment.set_device("NVIDIA H100");
  environment.set_cudnn("9.13.0");
  environment.set_autotune(autotune);
  return environment;
}

checkpoint::TrainingState saved_by(int ranks, const ComputeEnvironment& environment) {
  checkpoint::TrainingState state;
  state.set_world_size(static_cast<std::uint32_t>(ranks));
  *state.mutable_environment() = environment;
  return state;
}

TEST(ComputeEnvironment, OfTheCpuNamesItsThreadsAndInstructionSet) {
  const ComputeEnvironment here = compute_environment(kCpu);
  EXPECT_EQ(here.device(), "cpu");
  EXPECT_EQ(here.threads(), static_cast<std::uint32_t>(kernels::cpu::threads()));
  EXPECT_EQ(here.instruction_set(), kernels::cpu::name_of(kernels::cpu::isa()));
  for (const std::string& name : {here.lockstep(), here.compiler(), here.processor(), here.onednn()}) {
    EXPECT_FALSE(name.empty());
  }
  EXPECT_THAT(differences(here, compute_environment(kCpu)), IsEmpty());
}

TEST(ComputeEnvironment, OfARunCountsItsMachines) {
  const comm::World world = comm::World::from_environment();
  EXPECT_EQ(environment_of_run(*world.communicator(), kCpu).machines(), 1u);
}

TEST(ComputeEnvironment, DifferencesNameTheFieldAndBothValues) {
  EXPECT_THAT(differences(on_cpu(2), on_cpu(1)), ElementsAre("threads 2 -> 1"));
  EXPECT_THAT(differences(on_cpu(2), on_cpu(1, "avx2")),
              ElementsAre("instruction set avx512 -> avx2", "threads 2 -> 1"));
  EXPECT_THAT(differences(on_gpu(false), on_gpu(true)), ElementsAre("autotune off -> on"));
}

TEST(ComputeEnvironment, AnotherDeviceIsTheOnlyDifference) {
  EXPECT_THAT(differences(on_cpu(2), on_gpu(true)), ElementsAre("device cpu -> NVIDIA H100"));
}

TEST(ComputeEnvironment, RanksThatDifferAlikeShareALine) {
  EXPECT_THAT(disagreements({on_cpu(2), on_cpu(2)}), IsEmpty());
  EXPECT_THAT(disagreements({on_cpu(2), on_cpu(1), on_cpu(2), on_cpu(1)}),
              ElementsAre("threads 2 on rank 0, 1 on ranks 1, 3"));
}

TEST(ComputeEnvironment, RanksWithAndWithoutFusedMultiplyAddAreRefused) {
  EXPECT_NO_THROW(require_one_rounding({on_cpu(1, "avx2"), on_cpu(1, "avx512")}));
  EXPECT_NO_THROW(require_one_rounding({on_cpu(1, "neon"), on_cpu(1, "neon_bf16")}));
  EXPECT_NO_THROW(require_one_rounding({on_cpu(1, "baseline"), on_cpu(1, "baseline")}));
  EXPECT_THROW(require_one_rounding({on_cpu(1, "avx2"), on_cpu(1, "neon")}), PeerError);
  std::vector<ComputeEnvironment> by_clang{on_cpu(1, "avx2"), on_cpu(1, "avx512")};
  for (ComputeEnvironment& rank : by_clang) rank.set_compiler("Debian Clang 19.1.7");
  EXPECT_THROW(require_one_rounding(by_clang), PeerError);
  try {
    require_one_rounding({on_cpu(1, "avx2"), on_cpu(1, "baseline"), on_cpu(1, "avx512")});
    FAIL();
  } catch (const PeerError& error) {
    EXPECT_THAT(error.what(), HasSubstr("avx2 on rank 0; avx512 on rank 2; baseline on rank 1"));
    EXPECT_THAT(error.advice(), HasSubstr("LOCKSTEP_CPU_ISA=baseline"));
  }
}

TEST(ComputeEnvironment, AResumeUnderOtherConditionsIsOneSentence) {
  EXPECT_EQ(resume_warning(saved_by(2, on_cpu(1)), on_cpu(1), 2), "");
  EXPECT_EQ(resume_warning(saved_by(2, on_cpu(2)), on_cpu(1, "avx2"), 3),
            "the bits may differ from those of an uninterrupted run: ranks 2 -> 3; instruction set avx512 -> avx2; "
            "threads 2 -> 1");
}

TEST(ComputeEnvironment, IsWrittenAsJsonWithTheFieldsThatCount) {
  const std::string text = to_json(on_cpu(2));
  EXPECT_THAT(text, HasSubstr("\"instruction_set\":\"avx512\""));
  EXPECT_THAT(text, HasSubstr("\"threads\":2"));
  EXPECT_THAT(text, testing::Not(HasSubstr("cudnn")));
}

}  // namespace
}  // namespace lockstep::step
