// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/model_options.h"

#include <gmock/gmock.h>

#include "tests/runtime/job/sample_job.h"

namespace lockstep::job {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ModelOptions, NeedANamedModel) {
  EXPECT_THAT([] { model_options(Model()); }, ThrowsMessage<FieldError>(HasSubstr("model: names no kind")));
}

TEST(ModelKind, IsTheFieldThatNamesIt) {
  Model model;
  EXPECT_EQ(model_kind(model), "unknown");
  model.mutable_convnet();
  EXPECT_EQ(model_kind(model), "convnet");
}

/// What the reader refuses with a line, the options refuse too, for whoever gives them without a job, and name the same
/// field.
TEST(ModelOptions, RefuseWhatTheJobsReaderRefuses) {
  for (const std::string field : {"model.mlp.hidden=[4, 0]",
                                  "model.mlp.dropout=1",
                                  "model.mlp.dropout=nan",
                                  "model.mlp.outputs=0",
                                  "model={ convnet { } }",
                                  "model={ convnet { block { } } }",
                                  "model={ convnet { block { channels: 8 kernel: 4 } } }",
                                  "model={ convnet { block { channels: 8 stride: 0 } } }",
                                  "model={ convnet { block { channels: 8 dropout: 2 } } }",
                                  "model={ convnet { block { channels: 8 } dropout: 1 } }",
                                  "model={ convnet { block { channels: 8 } hidden: 0 } }",
                                  "model={ resnet { } }",
                                  "model.resnet.depth=20",
                                  "model={ resnet { depth: 18 width: 0 } }",
                                  "model.mlp.batch_norm_momentum=1.5",
                                  "model.mlp.batch_norm_epsilon=0",
                                  "model={ convnet { block { channels: 8 } batch_norm_epsilon: -1 } }",
                                  "model={ resnet { depth: 18 batch_norm_momentum: -0.1 } }",
                                  "model={ gpt { layers: 0 } }",
                                  "model={ gpt { width: 10 heads: 4 } }",
                                  "model={ gpt { dropout: 1 } }",
                                  "model={ gpt { hidden: 0 } }",
                                  "model={ gpt { context: 0 } }",
                                  "model={ gpt { vocabulary: 0 } }",
                                  "model={ gpt { norm_epsilon: 0 } }",
                                  "model={ gpt { initial_deviation: -1 } }",
                                  "model={ llama { kv_heads: 5 } }",
                                  "model={ llama { kv_heads: 0 } }",
                                  "model={ llama { width: 24 heads: 8 } }",
                                  "model={ llama { rope_theta: 0 } }",
                                  "model={ llama { head_width: 3 } }",
                                  "model={ llama { rope_scaling { factor: 0.5 } } }",
                                  "model={ llama { rope_scaling { low_freq_factor: 4 } } }",
                                  "model={ unet3d { levels: 0 } }",
                                  "model={ unet3d { channels: 0 } }",
                                  "model={ unet3d { convolutions: 0 } }",
                                  "model={ unet3d { norm: GROUP groups: 5 } }",
                                  "model={ unet3d { batch_norm_epsilon: 0 } }"}) {
    const Checked checked = check_text(kSample, "job.pbtxt", std::vector<std::string>{field}, "/data");
    ASSERT_EQ(checked.diagnostics.size(), 1u) << field;
    try {
      model_zoo::outline(model_options(checked.job.model()), {{8, 8, 1}, 10});
      ADD_FAILURE() << field << " was accepted";
    } catch (const FieldError& error) {
      EXPECT_EQ(error.path(), checked.diagnostics[0].path) << field;
    }
  }
}

}  // namespace
}  // namespace lockstep::job
