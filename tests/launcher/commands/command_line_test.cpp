// SPDX-License-Identifier: Apache-2.0
// The command as a user meets it, without ranks.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "comm/group/versions.h"
#include "runtime/tensor/gpu.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;

class CommandLine : public testing::Test {
 protected:
  Ended run(std::vector<std::string> arguments, const Program::Variables& variables = {}) const {
    return lockstep_command(std::move(arguments), folder_, variables);
  }
  void refused(const std::vector<std::string>& arguments, int code, const std::string& what) const {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, code) << ended.err;
    EXPECT_THAT(ended.err, StartsWith("lockstep: error ("));
    EXPECT_THAT(ended.err, HasSubstr(what));
    EXPECT_EQ(count(ended.err, "error ("), 1u);
    EXPECT_THAT(ended.out, IsEmpty());
  }

  Folder folder_;
};

TEST_F(CommandLine, HelpAndVersionAreAnswers) {
  EXPECT_EQ(run({"--version"}).code, 0);
  EXPECT_THAT(run({"--version"}).out, MatchesRegex("lockstep [0-9.]+(\\+cuda)?\n"));
  for (const char* command : {"train", "eval", "validate", "find-lr", "inspect", "runs", "watch", "report", "sweep",
                              "launch", "bench", "doctor"}) {
    const Ended help = run({command, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.out, HasSubstr("Usage: lockstep " + std::string(command)));
  }
}

TEST_F(CommandLine, WrongUseIsOneBlockAndExitCodeTwo) {
  refused({}, 2, "subcommand is required");
  refused({"trian"}, 2, "there is no command \"trian\"; did you mean \"train\"?");
  refused({"frobnicate"}, 2, "there is no command \"frobnicate\"; known: ");
  refused({"--nprocs", "2"}, 2, "lockstep --help");
  refused({"train"}, 2, "JOB is required");
  refused({"train", kMlpJob, "--nprocs", "2"}, 2, "there is no option --nprocs; did you mean \"--nproc\"?");
  refused({"train", "--nprocs", "2", kMlpJob}, 2, "did you mean \"--nproc\"?");
  refused({"train", "--nprocs=2"}, 2, "did you mean \"--nproc\"?");
  refused({"train", kMlpJob, "--sett", "x=1"}, 2, "did you mean \"--set\"?");
  refused({"train", kMlpJob, "--set", "train.steps", "10"}, 2, "--set takes PATH=VALUE: write --set train.steps=10");
  refused({"train", kMlpJob, "--set", "train.steps", "=", "10"}, 2, "write --set train.steps=10\n");
  refused({"train", kMlpJob, "--set", "train.steps=", "10"}, 2, "write --set train.steps=10\n");
  refused({"train", kMlpJob, "--set", "train.steps", "=10"}, 2, "write --set train.steps=10\n");
  refused({"doctor", "--seed", "3"}, 2, "there is no option --seed; known: --help");
  refused({"validate", kMlpJob, "--max-restarts", "1"}, 2, "there is no option --max-restarts");
  refused({"train", kMlpJob, "--nproc", "0"}, 2, "--nproc");
  refused({"train", kMlpJob, "--device", "tpu"}, 2, "lockstep train --help");
  refused({"train", kMlpJob, "--hosts", "a:x"}, 2, "--hosts a:x");
  refused({"train", kMlpJob, "--hosts", "a:2", "--nproc", "3"}, 2, "more ranks than");
  refused({"validate", kMlpJob, "--json", "--print"}, 2, "--json");
}

// As a shell makes it of a variable that nobody set.
TEST_F(CommandLine, OptionsOfTrainingScriptsLeadToFieldsAndOptionsThatThereAre) {
  refused({"train", kMlpJob, "--lr", "3e-4"}, 2,
          "there is no option --lr; a field of the job says it: --set optimizer.adamw.lr=3e-4\n");
  write_text(folder_ / "job.pbtxt", "optimizer { lamb { lr: 1e-3 } }\n");
  refused({"train", "--learning_rate=1", "job.pbtxt"}, 2, "--set optimizer.lamb.lr=1\n");
  refused({"train", "--lr", "job.pbtxt"}, 2, "--set optimizer.lamb.lr=0.1\n");
  refused({"train", kMlpJob, "--epochs=30"}, 2, "--set train.epochs=30\n");
  refused({"train", kMlpJob, "--batch-size", "256"}, 2, "for all ranks together: --set data.global_batch=256\n");
  refused({"train", kMlpJob, "--batch-size"}, 2, "--set data.global_batch=64\n");
  refused({"train", kMlpJob, "--gpus", "2"}, 2, "each GPU has a rank of its own: --nproc 2");
  refused({"export", kMlpJob, "--gpus", "2"}, 2, "there is no option --gpus; known: --");
}

TEST_F(CommandLine, AnEmptyValueIsRefused) {
  for (const char* command : {"train", "validate"}) {
    refused({command, kMlpJob, "--run-dir", ""}, 2, "--run-dir: has an empty value");
    refused({command, kMlpJob, "--run-dir="}, 2, "--run-dir");
    refused({command, kMlpJob, "--hosts", ""}, 2, "--hosts: has an empty value");
    const Ended set = run({command, kMlpJob, "--set", "amp.dtype="});
    EXPECT_EQ(set.code, 2);
    EXPECT_THAT(set.err, HasSubstr("amp.dtype: has no value behind '='"));
  }
  refused({"train", kMlpJob, "--resume", ""}, 2, "--resume: has an empty value");
  refused({"eval", kMlpJob, "--checkpoint", ""}, 2, "--checkpoint: has an empty value");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

TEST_F(CommandLine, AJobThatIsNotThereIsNotToBeValidated) {
  const Ended missing = run({"train", "missing.pbtxt"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, testing::Not(HasSubstr("lockstep validate")));
}

TEST_F(CommandLine, InspectSaysThatAJobIsOne) {
  refused({"inspect", kMlpJob}, 2, "is a job, not something that a run has written");
  refused({"inspect", kMlpJob}, 2, "lockstep validate " + kMlpJob);
  std::filesystem::copy(kMlpJob, folder_ / "job.txt");
  refused({"inspect", "job.txt"}, 2, "is a job");
  write_text(folder_ / "notes.txt", "seed of an idea\n");
  EXPECT_EQ(run({"inspect", "notes.txt"}).code, 4);
}

TEST_F(CommandLine, AFileThatIsNoTextIsOneLine) {
  std::filesystem::copy(LOCKSTEP_BINARY, folder_ / "job.pbtxt");
  const Ended ended = run({"validate", "job.pbtxt"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(count(ended.err, "\n"), 2u) << ended.err;
}

TEST_F(CommandLine, ADeviceThatIsNotThereIsRefused) {
  if (gpu::device_count() > 0) GTEST_SKIP() << "there is a GPU";
  refused({"train", kMlpJob, "--device", "cuda"}, 3, gpu::why_none());
}

TEST_F(CommandLine, AWrongJobStartsNothing) {
  for (const char* ranks : {"1", "2"}) {
    refused({"train", "missing.pbtxt", "--nproc", ranks}, 2, "missing.pbtxt: cannot read the job");
    refused({"train", kMlpJob, "--set", "train.stepz=1", "--nproc", ranks}, 2, "did you mean \"steps\"?");
    refused({"eval", kMlpJob, "--set", "train.stepz=1", "--nproc", ranks}, 2, "did you mean \"steps\"?");
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

TEST_F(CommandLine, ARunDirectoryThatCannotBeMadeIsAStorageError) {
  write_text(folder_ / "file", "x");
  refused({"train", kMlpJob, "--nproc", "2", "--run-dir", folder_ / "file/run"}, 4, "cannot make the run directory");
}

TEST_F(CommandLine, ValidateAcceptsASoundJob) {
  const Ended sound = run({"validate", kMlpJob});
  EXPECT_EQ(sound.code, 0);
  EXPECT_THAT(sound.err, IsEmpty());
  EXPECT_EQ(sound.out, kMlpJob + R"(: a sound job, "digits_mlp"
  training      1,500 samples of [8,8,1] in 10 classes
  evaluation    297 samples, every 200 steps and at the end
  model         mlp, 26,122 parameters, O0 in FP32
  memory        weights 102.5 KiB, gradients 102.5 KiB, optimizer state 205.0 KiB
  steps         600 of 64 samples: 24 steps an epoch, 25 epochs
  ranks         1
  checkpoints   1 of 306.2 KiB, at the end; in runs/digits_mlp/checkpoints
)");
}

TEST_F(CommandLine, ValidateCountsTheRanksThatItIsTold) {
  const Ended two = run({"validate", kConvnetJob, "--nproc", "2", "--run-dir", "here"});
  EXPECT_EQ(two.code, 0) << two.err;
  EXPECT_THAT(two.out, HasSubstr("\n  ranks         2\n"));
  EXPECT_THAT(two.out, HasSubstr("optimizer state 116.0 KiB on each rank\n"));
  EXPECT_THAT(two.out,
              HasSubstr("6 of 228.6 KiB, every 100 steps and at the end; the newest 3 stay; in here/checkpoints"));
  const std::string fault = "fault={ kill { step: 1 rank: 1 } }";
  EXPECT_EQ(run({"validate", kConvnetJob, "--set", fault}).code, 2);
  EXPECT_EQ(run({"validate", kConvnetJob, "--set", fault, "--nproc", "2"}).code, 0);
  EXPECT_EQ(run({"validate", kConvnetJob, "--set", fault, "--hosts", "a:1,b:1"}).code, 0);
  EXPECT_THAT(run({"validate", kConvnetJob, "--nproc", "5000"}).err,
              HasSubstr("lockstep: warning: 5000 ranks share the"));
}

TEST_F(CommandLine, ValidateListsEveryErrorAtItsPlace) {
  write_text(folder_ / "job.pbtxt", "name: \"x\"\nmodel {\n  mlp { hiden: [3] }\n}\ntrain { steps: -1 }\n");
  const Ended wrong = run({"validate", "job.pbtxt"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("job.pbtxt:3:9: "));
  EXPECT_THAT(wrong.err, HasSubstr("job.pbtxt:5:"));
  EXPECT_THAT(wrong.err, testing::ContainsRegex("job.pbtxt: [0-9]+ errors"));
}

TEST_F(CommandLine, ValidateGivesJson) {
  const json sound = json::parse(run({"validate", kMlpJob, "--json"}).out);
  EXPECT_TRUE(sound["valid"]);
  EXPECT_EQ(sound["name"], "digits_mlp");
  EXPECT_THAT(sound["diagnostics"], IsEmpty());
  EXPECT_THAT(sound["warnings"], IsEmpty());
  EXPECT_EQ(sound["exit_code"], 0);
  EXPECT_EQ(sound["hash"].get<std::string>().size(), 32u);
  EXPECT_EQ(sound["plan"], json::parse(R"({
    "ranks": 1, "model": "mlp", "parameters": 26122, "opt_level": "O0", "dtype": "FP32",
    "train": {"samples": 1500, "sample_shape": [8, 8, 1], "classes": 10},
    "eval": {"samples": 297, "sample_shape": [8, 8, 1], "classes": 10},
    "global_batch": 64, "steps": 600, "steps_per_epoch": 24, "epochs": 25.0, "eval_every": 200,
    "memory": {"weights": 104960, "compute_copies": 0, "gradients": 104960, "gradient_sums": 0,
               "optimizer_state": 209920},
    "checkpoints": {"count": 1, "bytes": 313512, "every_steps": 0, "keep": 3,
                    "directory": "runs/digits_mlp/checkpoints"}})"));
  const json regression =
      json::parse(run({"validate", LOCKSTEP_SOURCE_DIR "/configs/recipe_mlp.pbtxt", "--json"}).out)["plan"];
  EXPECT_EQ(regression["train"], json::parse(R"({"samples": 25600, "sample_shape": [4096], "target_shape": [4096]})"));
  EXPECT_TRUE(regression["eval"].is_null());

  write_text(folder_ / "job.pbtxt", "name: \"x\"\ntrain { stepz: 1 }\n");
  const Ended ended = run({"validate", "job.pbtxt", "--json"});
  EXPECT_EQ(ended.code, 2);
  const json wrong = json::parse(ended.out);
  EXPECT_FALSE(wrong["valid"]);
  const json& first = wrong["diagnostics"][0];
  EXPECT_EQ(first["file"], "job.pbtxt");
  EXPECT_EQ(first["line"], 2);
  EXPECT_EQ(first["column"], 9);
  EXPECT_THAT(first["message"].get<std::string>(), HasSubstr("stepz"));
}

TEST_F(CommandLine, ValidatePrintsTheResolvedJobWithOverrides) {
  const Ended printed = run({"validate", kMlpJob, "--print", "--set", "train.steps=7"});
  EXPECT_EQ(printed.code, 0);
  EXPECT_THAT(printed.out, HasSubstr("steps: 7"));
  write_text(folder_ / "resolved.pbtxt", printed.out);
  EXPECT_EQ(run({"validate", "resolved.pbtxt", "--print"}).out, printed.out);
}

TEST_F(CommandLine, ValidateAnswersInvalidBytesWithValidJson) {
  write_text(folder_ / "job.pbtxt", "name: \"\xff\xfe\" \xff\n");
  const Ended ended = run({"validate", "job.pbtxt", "--json"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_FALSE(json::parse(ended.out)["valid"]);
}

TEST_F(CommandLine, AnEnvironmentThatMakesNoSenseIsNamed) {
  const Ended ended = run({"train", kMlpJob}, {{"OMPI_COMM_WORLD_RANK", "first"}});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("OMPI_COMM_WORLD_RANK"));
}

TEST_F(CommandLine, ATaskThatWouldTrainAloneIsRefused) {
  for (const char* name : {"WORLD_SIZE", "RANK", "SLURM_NTASKS"}) {
    const Ended ended = run({"train", kMlpJob}, {{name, "4"}});
    EXPECT_EQ(ended.code, 2) << name;
    EXPECT_THAT(ended.err, HasSubstr(name));
    EXPECT_THAT(ended.err, HasSubstr("would train alone"));
  }
}

TEST_F(CommandLine, OptionsForStartingRanksAreRefusedInARank) {
  const Program::Variables rank{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
  const Ended other = run({"train", kMlpJob, "--nproc", "3"}, rank);
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("rank 0 of 2"));
  EXPECT_EQ(run({"train", kMlpJob, "--hosts", "a:2"}, rank).code, 2);
  EXPECT_EQ(run({"train", kMlpJob, "--max-restarts", "2"}, rank).code, 2);
}

TEST_F(CommandLine, ACudaGraphThatIsDemandedNeedsAGpu) {
  const Ended ended = run({"train", kMlpJob, "--device", "cpu", "--set", "train.cuda_graph=ON"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("train.cuda_graph: ON needs a GPU"));
}

TEST_F(CommandLine, WithoutMpirunItNamesThePackage) {
  const Ended ended = run({"train", kMlpJob, "--nproc", "2"}, {{"PATH", "/nonexistent"}});
  EXPECT_EQ(ended.code, 3);
  EXPECT_THAT(ended.err, HasSubstr("openmpi-bin"));
}

TEST_F(CommandLine, ABuildWithoutMpiSaysHowToStartRanks) {
  if (!comm::mpi_version().empty()) GTEST_SKIP() << "this build has MPI";
  refused({"train", kMlpJob, "--nproc", "2"}, 3, "torchrun --nproc-per-node 2");
}

TEST_F(CommandLine, AnMpirunThatStartsNothingIsQuoted) {
  if (comm::mpi_version().empty()) GTEST_SKIP() << "this build has no MPI";
  const std::string dashes(74, '-');
  write_text(folder_ / "mpirun",
             "#!/bin/sh\nprintf '%s\\nno slots\\n%s\\n' " + dashes + " " + dashes + " >&2\nexit 213\n");
  std::filesystem::permissions(folder_ / "mpirun", std::filesystem::perms::owner_all);
  const Ended ended = run({"train", kMlpJob, "--nproc", "2"}, {{"PATH", folder_.path().string()}});
  EXPECT_EQ(ended.code, 3) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("mpirun could not start the ranks"));
  EXPECT_THAT(ended.err, HasSubstr("no slots"));
}

TEST_F(CommandLine, AHostThatIsUnknownIsOneSentenceWithMpirunsWordsBehindVerboseAndInTheRecord) {
  if (comm::mpi_version().empty()) GTEST_SKIP() << "this build has no MPI";
  const std::string dashes(74, '-');
  const std::string own = "ssh: Could not resolve hostname nowhere: Name or service not known\n";
  write_text(folder_ / "mpirun",
             "#!/bin/sh\ncat >&2 <<END\n" + own + dashes +
                 "\nORTE was unable to reliably start one or more daemons.\nThis usually is caused by:"
                 "\n\n* not finding the required libraries\n" +
                 dashes + "\nEND\nexit 1\n");
  std::filesystem::permissions(folder_ / "mpirun", std::filesystem::perms::owner_all);
  const std::string path = folder_.path().string() + ":/usr/bin:/bin";
  const std::vector<std::string> command{"train", kMlpJob, "--nproc", "2", "--run-dir", "run"};
  const Ended told = run(command, {{"PATH", path}});
  EXPECT_EQ(told.code, 3);
  EXPECT_EQ(told.err, R"(lockstep: error (environment, exit 3)
  mpirun could not start the ranks: host nowhere is unknown: its name has no address
  → Correct the name in --hosts, or give it an address in DNS or /etc/hosts.
    --verbose prints mpirun's own words.
)");
  const json error = json::parse(read_text(folder_ / "run/summary.json"))["error"];
  EXPECT_EQ(error["message"], "mpirun could not start the ranks: host nowhere is unknown: its name has no address");
  EXPECT_THAT(error["mpirun"].get<std::string>(), StartsWith(own + "ORTE was unable"));

  std::vector<std::string> verbose = command;
  verbose.emplace_back("--verbose");
  EXPECT_EQ(run(verbose, {{"PATH", path}}).err, error["mpirun"].get<std::string>() + told.err);
}

}  // namespace
}  // namespace lockstep::launcher
