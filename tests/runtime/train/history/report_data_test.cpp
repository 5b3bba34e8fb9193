// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/report_data.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/train/history/event_text.h"
#include "tests/runtime/train/history/history_fixture.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class ReportData : public History {
 protected:
  fs::path make(const std::string& name, const std::string& lr) {
    write(folder_ / name / "job.pbtxt", job(lr));
    write(folder_ / name / "metrics.jsonl",
          step(1, 1.0) + step(2, 0.5) + eval(2, 0.75) + event("done", 2, ",\"exit_code\":0"));
    write(folder_ / name / "summary.json", "{\"status\":\"done\",\"step\":2,\"world_size\":2,\"device\":\"cuda:0\"}");
    return folder_ / name;
  }
};

TEST_F(ReportData, HoldsCurvesEventsSettingsAndTheCommandThatRepeatsARun) {
  const std::vector<fs::path> runs{make("first", "0.1"), make("second one/", "0.2")};
  const Json data = report_data(runs);
  ASSERT_EQ(data["runs"].size(), 2);
  const Json& second = data["runs"][1];
  EXPECT_EQ(data["runs"][0]["name"], "first");
  EXPECT_EQ(second["name"], "second one");
  EXPECT_EQ(second["curves"]["loss"], (Json{1.0, 0.5}));
  EXPECT_EQ(second["settings"], (Json{{"optimizer.sgd.lr", "0.2"}}));
  EXPECT_EQ(data["short_names"]["optimizer.sgd.lr"], "lr");
  EXPECT_EQ(second["evals"][0]["accuracy"], 0.75);
  EXPECT_EQ(second["best"]["value"], 0.75);
  EXPECT_EQ(second["events"][0]["text"], "done after step 2");
  EXPECT_THAT(second["command"].get<std::string>(),
              testing::MatchesRegex(
                  ".* train '.*/second one/job.pbtxt' --nproc 2 --device cuda --run-dir '.*/second one-again'"));
}

TEST_F(ReportData, TakesWhatAnEvaluationHasLeftInTheRun) {
  const std::vector<fs::path> runs{make("run", "0.1")};
  EXPECT_TRUE(report_data(runs)["runs"][0]["confusion"].is_null());
  write(folder_ / "run/confusion.json", R"({"classes":2,"names":["cat","dog"],"matrix":[[3,1],[0,4]]})");
  write(folder_ / "run/pictures/b.png", "png");
  write(folder_ / "run/pictures/a.png", "a");
  write(folder_ / "run/pictures/c.txt", "x");
  write(folder_ / "run/texts.jsonl", "{\"prompt\":\"Once\",\"text\":\" upon\"}\nno json\n{\"prompt\":1}\n");
  const Json data = report_data(runs);
  const Json& run = data["runs"][0];
  EXPECT_EQ(run["confusion"]["names"][1], "dog");
  EXPECT_EQ(run["pictures"], (Json{{{"name", "a.png"}, {"png", "YQ=="}}, {{"name", "b.png"}, {"png", "cG5n"}}}));
  EXPECT_EQ(run["texts"], (Json::array({{{"prompt", "Once"}, {"text", " upon"}}})));
  write(folder_ / "run/confusion.json", R"({"classes":2,"matrix":[[3,1],[0]]})");
  EXPECT_TRUE(report_data(runs)["runs"][0]["confusion"].is_null());
}

TEST_F(ReportData, RefusesWhatIsNoRun) {
  const std::vector<fs::path> runs{folder_.path()};
  EXPECT_THROW(report_data(runs), StorageError);
}

TEST(EventText, SaysEachEventInWords) {
  const auto text = [](const char* json) { return event_text(Json::parse(json)); };
  EXPECT_EQ(
      text(
          R"({"event":"eval","step":20,"time":1,"samples":9,"loss":0.51239,"accuracy":0.97,"baseline":{"accuracy":0.1}})"),
      "eval at step 20: loss 0.5124, accuracy 0.97");
  EXPECT_EQ(text(R"({"event":"best","step":20,"metric":"eval.loss","value":0.5})"), "best at step 20: eval.loss 0.5");
  EXPECT_EQ(text(R"({"event":"lr_reduced","step":20,"lr":0.01,"detail":"no better"})"),
            "learning rate 0.01 after step 20: no better");
  EXPECT_EQ(text(R"({"event":"failed","step":5,"detail":"NaN"})"), "failed in step 5: NaN");
  EXPECT_EQ(text(R"({"event":"of a later version","step":5})"), "of a later version at step 5");
}

}  // namespace
}  // namespace lockstep::train
