// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/defaults.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "configs/job.pb.h"
#include "runtime/data/formats/brace_expansion.h"
#include "runtime/job/data_options.h"

namespace lockstep::job {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

struct Default {
  std::string_view message;
  std::string_view field;
  const char* value;
};

/// The defaults that depend on nothing else. scripts/make_job_reference compares them with job.proto's comments.
constexpr Default kDefaults[] = {
    {"Mlp", "activation", "RELU"},
    {"Mlp", "dropout", "0"},
    {"Mlp", "batch_norm", "false"},
    {"Mlp", "batch_norm_momentum", "0.1"},
    {"Mlp", "batch_norm_epsilon", "1e-5"},
    {"Convnet", "dropout", "0"},
    {"Convnet", "head_pool", "FLATTEN"},
    {"Convnet", "batch_norm_momentum", "0.1"},
    {"Convnet", "batch_norm_epsilon", "1e-5"},
    {"ConvBlock", "kernel", "3"},
    {"ConvBlock", "stride", "1"},
    {"ConvBlock", "batch_norm", "true"},
    {"ConvBlock", "activation", "RELU"},
    {"ConvBlock", "dropout", "0"},
    {"Resnet", "stem", "IMAGENET"},
    {"Resnet", "width", "64"},
    {"Resnet", "zero_init_residual", "false"},
    {"Resnet", "batch_norm_momentum", "0.1"},
    {"Resnet", "batch_norm_epsilon", "1e-5"},
    {"Resnet", "checkpoint_activations", "false"},
    {"Gpt", "layers", "12"},
    {"Gpt", "heads", "12"},
    {"Gpt", "width", "768"},
    {"Gpt", "context", "1024"},
    {"Gpt", "dropout", "0"},
    {"Gpt", "bias", "true"},
    {"Gpt", "tied_head", "true"},
    {"Gpt", "norm_epsilon", "1e-5"},
    {"Gpt", "initial_deviation", "0.02"},
    {"Gpt", "checkpoint_activations", "false"},
    {"Llama", "layers", "32"},
    {"Llama", "heads", "32"},
    {"Llama", "width", "4096"},
    {"Llama", "context", "4096"},
    {"Llama", "rope_theta", "10000"},
    {"Llama", "attention_bias", "false"},
    {"Llama", "tied_head", "false"},
    {"Llama", "norm_epsilon", "1e-5"},
    {"Llama", "initial_deviation", "0.02"},
    {"Llama", "checkpoint_activations", "false"},
    {"Unet3d", "levels", "4"},
    {"Unet3d", "channels", "32"},
    {"Unet3d", "convolutions", "2"},
    {"Unet3d", "up", "TRANSPOSED"},
    {"Unet3d", "norm", "BATCH"},
    {"Unet3d", "groups", "8"},
    {"Unet3d", "activation", "RELU"},
    {"Unet3d", "batch_norm_momentum", "0.1"},
    {"Unet3d", "batch_norm_epsilon", "1e-5"},
    {"Unet3d", "checkpoint_activations", "false"},
    {"Bert", "layers", "12"},
    {"Bert", "heads", "12"},
    {"Bert", "width", "768"},
    {"Bert", "context", "512"},
    {"Bert", "dropout", "0.1"},
    {"Bert", "norm_epsilon", "1e-12"},
    {"Bert", "initial_deviation", "0.02"},
    {"Bert", "checkpoint_activations", "false"},
    {"Vit", "patch", "16"},
    {"Vit", "layers", "12"},
    {"Vit", "heads", "12"},
    {"Vit", "width", "768"},
    {"Vit", "dropout", "0"},
    {"Vit", "attention_dropout", "0"},
    {"Vit", "norm_epsilon", "1e-6"},
    {"Vit", "checkpoint_activations", "false"},
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
    {"Amp", "opt_level", "O0"},
    {"LossScale", "growth_factor", "2"},
    {"LossScale", "backoff_factor", "0.5"},
    {"LossScale", "growth_interval", "2000"},
    {"LossScale", "min", "1"},
    {"LossScale", "max", "16777216"},
    {"LossScale", "max_consecutive_skips", "20"},
    {"Comm", "bucket_mb", "25"},
    {"Comm", "first_bucket_mb", "1"},
    {"Comm", "sync_batch_norm", "true"},
    {"Comm", "digest_every", "100"},
    {"Comm", "gradient_average", "true"},
    {"Comm", "gradient_predivide_factor", "1"},
    {"Comm", "find_unused", "false"},
    {"Comm", "timeout_s", "60"},
    {"Comm", "shared_memory", "true"},
    {"Comm", "delay_reduction", "false"},
    {"Comm", "reduction_streams", "1"},
    {"Comm", "reduce_in_float32", "false"},
    {"Comm", "sync_batch_norm_group", "0"},
    {"Sgd", "momentum", "0"},
    {"Sgd", "weight_decay", "0"},
    {"Sgd", "nesterov", "false"},
    {"Sgd", "dampening", "0"},
    {"Adam", "beta1", "0.9"},
    {"Adam", "beta2", "0.999"},
    {"Adam", "epsilon", "1e-8"},
    {"Adam", "amsgrad", "false"},
    {"Adagrad", "lr_decay", "0"},
    {"Adagrad", "weight_decay", "0"},
    {"Adagrad", "initial_accumulator_value", "0"},
    {"Adagrad", "epsilon", "1e-10"},
    {"Adagrad", "adagrad_w_mode", "false"},
    {"Lamb", "beta1", "0.9"},
    {"Lamb", "beta2", "0.999"},
    {"Lamb", "epsilon", "1e-6"},
    {"Lamb", "weight_decay", "0.01"},
    {"Lamb", "bias_correction", "true"},
    {"Lamb", "grad_averaging", "true"},
    {"Lamb", "max_grad_norm", "1"},
    {"Lamb", "use_nvlamb", "false"},
    {"Lamb", "adam_w_mode", "true"},
    {"Novograd", "beta1", "0.9"},
    {"Novograd", "beta2", "0.999"},
    {"Novograd", "epsilon", "1e-8"},
    {"Novograd", "weight_decay", "0"},
    {"Novograd", "bias_correction", "true"},
    {"Novograd", "grad_averaging", "true"},
    {"Novograd", "reg_inside_moment", "false"},
    {"Novograd", "norm", "L2"},
    {"Novograd", "init_zero", "false"},
    {"Lars", "momentum", "0.9"},
    {"Lars", "weight_decay", "0"},
    {"Lars", "trust_coefficient", "0.001"},
    {"Lars", "epsilon", "0"},
    {"Lars", "nesterov", "false"},
    {"Larc", "trust_coefficient", "0.02"},
    {"Larc", "clip", "true"},
    {"Larc", "epsilon", "1e-8"},
    {"ParameterGroup", "lr_scale", "1"},
    {"ParameterGroup", "frozen", "false"},
    {"StepSchedule", "gamma", "0.1"},
    {"CosineSchedule", "final_fraction", "0"},
    {"LinearSchedule", "final_fraction", "0"},
    {"Train", "accumulate", "1"},
    {"Train", "eval_every", "0"},
    {"Train", "label_smoothing", "0"},
    {"Train", "log_every", "50"},
    {"Train", "cuda_graph", "AUTO"},
    {"Ema", "decay", "0.999"},
    {"EarlyStopping", "patience", "5"},
    {"EarlyStopping", "min_delta", "0"},
    {"Checkpoint", "every_steps", "0"},
    {"Checkpoint", "keep", "3"},
    {"FaultPoint", "phase", "BACKWARD"},
    {"FaultPoint", "milliseconds", "1000"},
};

void fill_fields(Message& message) {
  const auto* type = message.GetDescriptor();
  const auto* reflection = message.GetReflection();
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
      fill_fields(*reflection->MutableMessage(&message, field));
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      fill_fields(*reflection->MutableRepeatedMessage(&message, field, i));
    }
  }
}

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

void fill_optimizer(Optimizer& optimizer) {
  if (optimizer.has_adam() && !optimizer.adam().has_weight_decay()) optimizer.mutable_adam()->set_weight_decay(0);
  if (optimizer.has_adamw() && !optimizer.adamw().has_weight_decay()) optimizer.mutable_adamw()->set_weight_decay(0.01);
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

void fill_defaults(Job& job, const std::filesystem::path& file, const std::filesystem::path& folder) {
  if (job.name().empty()) job.set_name(default_name(file));
  // Messages that stand for themselves when left out.
  job.mutable_amp();
  job.mutable_comm();
  job.mutable_train();
  job.mutable_checkpoint();
  job.mutable_amp()->mutable_loss_scale();
  if (job.schedule().kind_case() == Schedule::KIND_NOT_SET) job.mutable_schedule()->mutable_constant();
  fill_fields(job);
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
