// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/foreign_format.h"

#include <gmock/gmock.h>

#include "runtime/job/job.h"

namespace {

using lockstep::job::foreign_format;
using testing::ElementsAre;

TEST(ForeignFormat, IsNamed) {
  EXPECT_EQ(foreign_format("{\"name\": \"a\"}"), "JSON");
  EXPECT_EQ(foreign_format("\n  [ {} ]"), "JSON");
  EXPECT_EQ(foreign_format("# mine\nmodel:\n  mlp:\n    hidden: 3\n"), "YAML");
  EXPECT_EQ(foreign_format("name: a\ndata:\n  - b\n"), "YAML");
  EXPECT_EQ(foreign_format("---\nname: a\n"), "YAML");
}

TEST(ForeignFormat, IsNotThatOfAJob) {
  for (const char* text :
       {"", "# nothing\n", "name: \"a\"\n", "model { mlp {} }\n", "name:\n  \"a\"\n", "seed:\n  4\n",
        "train:\n  { steps: 3 }\n", "model:\n  # wide\n  { mlp { hidden: [1, 2] } }\n", "steps\n:\n  3\n",
        "amp { dtype:\n  FP16 }\nname: \"a:b\"\n", "name: \"---\"\n", "{{{{", "["}) {
    EXPECT_EQ(foreign_format(text), "") << text;
  }
}

TEST(ForeignFormat, IsTheOneErrorOfSuchAFile) {
  const auto found = lockstep::job::check_text("{\"name\": \"a\", \"data\": {}}", "job.json", {}, ".").diagnostics;
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(str(found), "job.json: is JSON; a job is protobuf text, as in: name: \"first\" train { steps: 600 }");
}

}  // namespace
