// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/defaults.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <type_traits>

#include "configs/job.pb.h"
#include "runtime/job/data_options.h"
#include "runtime/job/message_options.h"
#include "runtime/job/path_fields.h"
#include "runtime/job/training_options.h"

namespace lockstep::job {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string default_name(const std::filesystem::path& file) {
  std::string name = file.stem().string();
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-' && c != '.'; },
      '_');
  return name.empty() ? "job" : name;
}

void fill_amp(Amp& amp) {
  if (amp.dtype() == PRECISION_DEFAULT) amp.set_dtype(amp.opt_level() == O0 ? FP32 : FP16);
  if (!amp.has_keep_batch_norm_fp32()) amp.set_keep_batch_norm_fp32(amp.opt_level() != O3);
  if (!amp.has_master_weights()) amp.set_master_weights(amp.opt_level() != O3);
  LossScale& scale = *amp.mutable_loss_scale();
  const bool autocast = amp.opt_level() == O1 || amp.opt_level() == O2;
  if (!scale.has_dynamic()) scale.set_dynamic(autocast && amp.dtype() == FP16);
  if (!scale.has_init()) scale.set_init(scale.dynamic() ? 65536 : 1);
}

/// Adam and AdamW share a message, and differ in this default.
void fill_optimizer(Optimizer& optimizer) {
  const auto fill = [](Adam& adam, double weight_decay) {
    if (!adam.has_weight_decay()) adam.set_weight_decay(weight_decay);
  };
  if (optimizer.has_adam()) fill(*optimizer.mutable_adam(), optim::AdamOptions().weight_decay);
  if (optimizer.has_adamw()) fill(*optimizer.mutable_adamw(), optim::AdamwOptions().weight_decay);
}

void fill_fault(Fault& fault, const Train& train) {
  const auto* kind = Fault::descriptor()->FindOneofByName("kind");
  const FieldDescriptor* field = fault.GetReflection()->GetOneofFieldDescriptor(fault, kind);
  if (field == nullptr) return;
  auto* point = dynamic_cast<FaultPoint*>(fault.GetReflection()->MutableMessage(&fault, field));
  if (!point->has_micro_batch()) point->set_micro_batch(std::max(train.accumulate(), 1u) - 1);
}

/// Writes the fields that follow from others, and counts paths from the job's folder.
void fill_dataset(Dataset& dataset, const std::filesystem::path& folder) {
  const FieldDescriptor* const kind = kind_of(dataset);
  for_each_alternative<data::DatasetOptions>([&]<class Options>(std::type_identity<Options>) {
    if (kind == nullptr || kind->name() != Options::kKind) return;
    Message& message = *dataset.GetReflection()->MutableMessage(&dataset, kind);
    write_followers<Options>(message);
    make_absolute(message, path_fields<Options>(), folder);
  });
}

LossKind loss_of(const Dataset& dataset) {
  switch (targets_of(dataset)) {
    case data::Targets::kMasks:
      return BCE_DICE;
    case data::Targets::kNumbers:
      return MSE;
    case data::Targets::kClasses:
      break;
  }
  return CROSS_ENTROPY;
}

}  // namespace

void fill_defaults(Job& job, const std::filesystem::path& file, const std::filesystem::path& folder) {
  if (job.name().empty()) job.set_name(default_name(file));
  // Messages that stand for themselves when left out.
  job.mutable_amp();
  job.mutable_comm();
  job.mutable_train();
  job.mutable_checkpoint();
  job.mutable_amp()->mutable_loss_scale();
  if (job.schedule().kind_case() == Schedule::KIND_NOT_SET) job.mutable_schedule()->mutable_constant();
  fill_constants(job);
  fill_amp(*job.mutable_amp());
  fill_optimizer(*job.mutable_optimizer());
  for (Fault& fault : *job.mutable_fault()) fill_fault(fault, job.train());

  if (job.comm().wire_dtype() == PRECISION_DEFAULT) job.mutable_comm()->set_wire_dtype(job.amp().dtype());
  const bool registered = job.train().has_registered_loss();
  if (job.train().loss() == LOSS_DEFAULT && !registered) job.mutable_train()->set_loss(loss_of(job.data().train()));
  if (job.has_data() && !job.data().has_eval_batch()) job.mutable_data()->set_eval_batch(job.data().global_batch());
  if (job.has_init_from()) make_absolute(*job.mutable_init_from()->mutable_path(), folder);
  if (job.data().has_train()) fill_dataset(*job.mutable_data()->mutable_train(), folder);
  if (job.data().has_eval()) fill_dataset(*job.mutable_data()->mutable_eval(), folder);
}

}  // namespace lockstep::job
