// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/defaults.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>

#include "configs/job.pb.h"
#include "model_zoo/build.h"
#include "runtime/data/formats/brace_expansion.h"
#include "runtime/job/data_options.h"
#include "runtime/job/message_options.h"
#include "runtime/job/training_options.h"

namespace lockstep::job {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

struct Default {
  std::string_view message;
  std::string_view field;
  const char* value;
};

/// Messages that option structs of the core stand for, and which have their defaults.
const std::map<std::string_view, void (*)(Message&)> kDescribed{
    {"Mlp", write_defaults<model_zoo::MlpOptions>},
    {"Convnet", write_defaults<model_zoo::ConvnetOptions>},
    {"ConvBlock", write_defaults<model_zoo::ConvBlockOptions>},
    {"Resnet", write_defaults<model_zoo::ResnetOptions>},
    {"Gpt", write_defaults<model_zoo::GptOptions>},
    {"Llama", write_defaults<model_zoo::LlamaOptions>},
    {"Unet3d", write_defaults<model_zoo::Unet3dOptions>},
    {"Bert", write_defaults<model_zoo::BertOptions>},
    {"Vit", write_defaults<model_zoo::VitOptions>},
    {"Amp", write_defaults<amp::AmpOptions>},
    {"LossScale", write_defaults<amp::GradScalerOptions>},
    {"Comm", write_defaults<comm::DdpOptions>},
    {"Sgd", write_defaults<optim::SgdOptions>},
    {"Adam", write_defaults<optim::AdamOptions>},
    {"Adagrad", write_defaults<optim::AdagradOptions>},
    {"Lamb", write_defaults<optim::LambOptions>},
    {"Novograd", write_defaults<optim::NovogradOptions>},
    {"Lars", write_defaults<optim::LarsOptions>},
    {"Larc", write_defaults<optim::LarcOptions>},
    {"ParameterGroup", write_defaults<optim::ParameterGroup>},
    {"StepSchedule", write_defaults<optim::StepSchedule>},
    {"CosineSchedule", write_defaults<optim::CosineSchedule>},
    {"LinearSchedule", write_defaults<optim::LinearSchedule>},
    {"Ema", write_defaults<optim::WeightMeanOptions>},
};

/// The defaults of other fields that depend on nothing else.
constexpr Default kDefaults[] = {
    {"Data", "prefetch", "2"},
    {"Data", "shuffle", "true"},
    {"Data", "drop_last", "false"},
    {"Data", "on_error", "FAIL"},
    {"Data", "max_skipped", "100"},
    {"Cifar", "labels", "CIFAR10"},
    {"Synthetic", "resident", "false"},
    {"Tokens", "end", "1"},
    {"MaskedTokens", "share", "0.15"},
    {"Arrays", "target_kind", "CLASSES"},
    {"Csv", "header", "true"},
    {"Csv", "target_kind", "CLASSES"},
    {"ImageFolder", "size", "224"},
    {"ImageFolder", "max_pixels", "67108864"},
    {"Shards", "size", "224"},
    {"Shards", "max_pixels", "67108864"},
    {"Volumes", "target_kind", "NUMBERS"},
    {"Volumes", "max_voxels", "268435456"},
    {"RandomResizedCrop", "min_area", "0.08"},
    {"RandomResizedCrop", "max_area", "1"},
    {"RandomResizedCrop", "min_aspect", "0.75"},
    {"RandomResizedCrop", "max_aspect", "1.3333333333333333"},
    {"Spheres", "most", "3"},
    {"Spheres", "min_radius", "3"},
    {"Spheres", "max_radius", "8"},
    {"Spheres", "noise", "0.5"},
    {"Comm", "digest_every", "100"},
    {"Comm", "timeout_s", "60"},
    {"Comm", "shared_memory", "true"},
    {"Train", "accumulate", "1"},
    {"Train", "eval_every", "0"},
    {"Train", "label_smoothing", "0"},
    {"Train", "log_every", "50"},
    {"Train", "cuda_graph", "AUTO"},
    {"EarlyStopping", "patience", "5"},
    {"EarlyStopping", "min_delta", "0"},
    {"Checkpoint", "every_steps", "0"},
    {"Checkpoint", "keep", "3"},
    {"FaultPoint", "phase", "BACKWARD"},
    {"FaultPoint", "milliseconds", "1000"},
};

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

void make_absolute(std::string& path, const std::filesystem::path& folder) {
  if (!path.empty()) path = std::filesystem::absolute(folder / path).lexically_normal().string();
}

void make_absolute(Dataset& dataset, const std::filesystem::path& folder) {
  if (dataset.has_idx()) {
    make_absolute(*dataset.mutable_idx()->mutable_images(), folder);
    make_absolute(*dataset.mutable_idx()->mutable_labels(), folder);
  } else if (dataset.has_cifar()) {
    for (std::string& file : *dataset.mutable_cifar()->mutable_files()) make_absolute(file, folder);
  } else if (dataset.has_tokens()) {
    for (std::string& file : *dataset.mutable_tokens()->mutable_files()) make_absolute(file, folder);
    make_absolute(*dataset.mutable_tokens()->mutable_vocab_file(), folder);
    make_absolute(*dataset.mutable_tokens()->mutable_merges_file(), folder);
  } else if (dataset.has_arrays()) {
    make_absolute(*dataset.mutable_arrays()->mutable_features(), folder);
    make_absolute(*dataset.mutable_arrays()->mutable_targets(), folder);
    make_absolute(*dataset.mutable_arrays()->mutable_weights(), folder);
  } else if (dataset.has_csv()) {
    for (std::string& file : *dataset.mutable_csv()->mutable_files()) make_absolute(file, folder);
  } else if (dataset.has_image_folder()) {
    make_absolute(*dataset.mutable_image_folder()->mutable_folder(), folder);
  } else if (dataset.has_shards()) {
    // Braces are for what the job says, and not for the folder that it lies in.
    const std::filesystem::path pattern = data::literal_pattern(folder.string());
    for (std::string& file : *dataset.mutable_shards()->mutable_files()) make_absolute(file, pattern);
  } else if (dataset.has_volumes()) {
    make_absolute(*dataset.mutable_volumes()->mutable_images(), folder);
    make_absolute(*dataset.mutable_volumes()->mutable_masks(), folder);
  }
}

template <class Images>
void fill_resize(Images& images) {
  const std::uint64_t resize = std::uint64_t{images.size()} * 256 / 224;
  if (!images.has_resize()) images.set_resize(static_cast<std::uint32_t>(resize));
}

void fill_dataset(Dataset& dataset) {
  if (dataset.has_tokens()) {
    Tokens& tokens = *dataset.mutable_tokens();
    if (!tokens.has_stride()) tokens.set_stride(tokens.context());
  } else if (dataset.has_csv()) {
    Csv& csv = *dataset.mutable_csv();
    if (csv.delimiter().empty()) csv.set_delimiter(",");
  } else if (dataset.has_image_folder()) {
    fill_resize(*dataset.mutable_image_folder());
  } else if (dataset.has_shards()) {
    fill_resize(*dataset.mutable_shards());
  }
}

LossKind loss_of(const Dataset& dataset) {
  if (dataset.has_spheres() || (dataset.has_volumes() && learns_numbers(dataset))) return BCE_DICE;
  return learns_numbers(dataset) ? MSE : CROSS_ENTROPY;
}

}  // namespace

void fill_constants(Message& message) {
  const auto* type = message.GetDescriptor();
  const auto* reflection = message.GetReflection();
  if (const auto described = kDescribed.find(type->name()); described != kDescribed.end()) described->second(message);
  for (const Default& entry : kDefaults) {
    if (entry.message != type->name()) continue;
    const FieldDescriptor* field = type->FindFieldByName(std::string(entry.field));
    if (reflection->HasField(message, field)) continue;
    google::protobuf::TextFormat::ParseFieldValueFromString(entry.value, field, &message);
  }
  std::vector<const FieldDescriptor*> set;
  reflection->ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      fill_constants(*reflection->MutableMessage(&message, field));
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      fill_constants(*reflection->MutableRepeatedMessage(&message, field, i));
    }
  }
}

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
  if (job.train().loss() == LOSS_DEFAULT) job.mutable_train()->set_loss(loss_of(job.data().train()));
  if (job.has_data() && !job.data().has_eval_batch()) job.mutable_data()->set_eval_batch(job.data().global_batch());
  if (job.has_init_from()) make_absolute(*job.mutable_init_from()->mutable_path(), folder);
  const auto fill = [&folder](Dataset& dataset) {
    fill_dataset(dataset);
    make_absolute(dataset, folder);
  };
  if (job.data().has_train()) fill(*job.mutable_data()->mutable_train());
  if (job.data().has_eval()) fill(*job.mutable_data()->mutable_eval());
}

}  // namespace lockstep::job
