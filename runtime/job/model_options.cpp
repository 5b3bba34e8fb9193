// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/model_options.h"

#include "configs/job.pb.h"
#include "runtime/base/error.h"

namespace lockstep::job {

namespace {

kernels::Activation translate(ActivationKind kind) {
  switch (kind) {
    case GELU:
      return kernels::Activation::kGelu;
    case GELU_TANH:
      return kernels::Activation::kGeluTanh;
    default:  // an open enum: RELU, no value, or a number that validation has refused
      return kernels::Activation::kRelu;
  }
}

model_zoo::MlpOptions translate(const Mlp& mlp) {
  model_zoo::MlpOptions options;
  options.hidden = {mlp.hidden().begin(), mlp.hidden().end()};
  options.activation = translate(mlp.activation());
  if (mlp.has_dropout()) options.dropout = mlp.dropout();
  if (mlp.has_outputs()) options.outputs = mlp.outputs();
  if (mlp.has_batch_norm()) options.batch_norm = mlp.batch_norm();
  if (mlp.has_batch_norm_momentum()) options.batch_norm_momentum = mlp.batch_norm_momentum();
  if (mlp.has_batch_norm_epsilon()) options.batch_norm_epsilon = mlp.batch_norm_epsilon();
  return options;
}

model_zoo::ConvBlockOptions translate(const ConvBlock& block) {
  model_zoo::ConvBlockOptions options;
  options.channels = block.channels();
  if (block.has_kernel()) options.kernel = block.kernel();
  if (block.has_stride()) options.stride = block.stride();
  if (block.has_batch_norm()) options.batch_norm = block.batch_norm();
  options.activation = translate(block.activation());
  if (block.has_max_pool()) options.max_pool = block.max_pool();
  if (block.has_dropout()) options.dropout = block.dropout();
  return options;
}

model_zoo::ConvnetOptions translate(const Convnet& convnet) {
  model_zoo::ConvnetOptions options;
  for (const ConvBlock& block : convnet.block()) options.blocks.push_back(translate(block));
  if (convnet.has_dropout()) options.dropout = convnet.dropout();
  options.hidden = {convnet.hidden().begin(), convnet.hidden().end()};
  if (convnet.head_pool() == GLOBAL_AVERAGE) options.head_pool = model_zoo::HeadPool::kGlobalAverage;
  if (convnet.has_batch_norm_momentum()) options.batch_norm_momentum = convnet.batch_norm_momentum();
  if (convnet.has_batch_norm_epsilon()) options.batch_norm_epsilon = convnet.batch_norm_epsilon();
  return options;
}

model_zoo::ResnetOptions translate(const Resnet& resnet) {
  model_zoo::ResnetOptions options;
  options.depth = resnet.depth();
  if (resnet.stem() == CIFAR) options.stem = model_zoo::ResnetStem::kCifar;
  if (resnet.has_width()) options.width = resnet.width();
  if (resnet.has_zero_init_residual()) options.zero_init_residual = resnet.zero_init_residual();
  if (resnet.has_batch_norm_momentum()) options.batch_norm_momentum = resnet.batch_norm_momentum();
  if (resnet.has_batch_norm_epsilon()) options.batch_norm_epsilon = resnet.batch_norm_epsilon();
  if (resnet.has_checkpoint_activations()) options.checkpoint_activations = resnet.checkpoint_activations();
  return options;
}

model_zoo::GptOptions translate(const Gpt& gpt) {
  model_zoo::GptOptions options;
  if (gpt.has_layers()) options.layers = gpt.layers();
  if (gpt.has_heads()) options.heads = gpt.heads();
  if (gpt.has_width()) options.width = gpt.width();
  if (gpt.has_hidden()) options.hidden = gpt.hidden();
  if (gpt.has_context()) options.context = gpt.context();
  if (gpt.has_vocabulary()) options.vocabulary = gpt.vocabulary();
  if (gpt.has_dropout()) options.dropout = gpt.dropout();
  if (gpt.has_bias()) options.bias = gpt.bias();
  if (gpt.has_tied_head()) options.tied_head = gpt.tied_head();
  if (gpt.has_norm_epsilon()) options.norm_epsilon = gpt.norm_epsilon();
  if (gpt.has_initial_deviation()) options.initial_deviation = gpt.initial_deviation();
  if (gpt.has_checkpoint_activations()) options.checkpoint_activations = gpt.checkpoint_activations();
  return options;
}

model_zoo::LlamaOptions translate(const Llama& llama) {
  model_zoo::LlamaOptions options;
  if (llama.has_layers()) options.layers = llama.layers();
  if (llama.has_heads()) options.heads = llama.heads();
  if (llama.has_kv_heads()) options.kv_heads = llama.kv_heads();
  if (llama.has_width()) options.width = llama.width();
  if (llama.has_hidden()) options.hidden = llama.hidden();
  if (llama.has_context()) options.context = llama.context();
  if (llama.has_vocabulary()) options.vocabulary = llama.vocabulary();
  if (llama.has_rope_theta()) options.rope_theta = llama.rope_theta();
  if (llama.has_attention_bias()) options.attention_bias = llama.attention_bias();
  if (llama.has_tied_head()) options.tied_head = llama.tied_head();
  if (llama.has_norm_epsilon()) options.norm_epsilon = llama.norm_epsilon();
  if (llama.has_initial_deviation()) options.initial_deviation = llama.initial_deviation();
  if (llama.has_checkpoint_activations()) options.checkpoint_activations = llama.checkpoint_activations();
  return options;
}

model_zoo::Unet3dOptions translate(const Unet3d& unet) {
  model_zoo::Unet3dOptions options;
  if (unet.has_levels()) options.levels = unet.levels();
  if (unet.has_channels()) options.channels = unet.channels();
  if (unet.has_convolutions()) options.convolutions = unet.convolutions();
  if (unet.up() == TRILINEAR) options.up = model_zoo::Unet3dUp::kTrilinear;
  if (unet.norm() == INSTANCE) options.norm = model_zoo::Unet3dNorm::kInstance;
  if (unet.norm() == GROUP) options.norm = model_zoo::Unet3dNorm::kGroup;
  if (unet.has_groups()) options.groups = unet.groups();
  options.activation = translate(unet.activation());
  if (unet.has_batch_norm_momentum()) options.batch_norm_momentum = unet.batch_norm_momentum();
  if (unet.has_batch_norm_epsilon()) options.batch_norm_epsilon = unet.batch_norm_epsilon();
  if (unet.has_checkpoint_activations()) options.checkpoint_activations = unet.checkpoint_activations();
  return options;
}

model_zoo::VitOptions translate(const Vit& vit) {
  model_zoo::VitOptions options;
  if (vit.has_patch()) options.patch = vit.patch();
  if (vit.has_layers()) options.layers = vit.layers();
  if (vit.has_heads()) options.heads = vit.heads();
  if (vit.has_width()) options.width = vit.width();
  if (vit.has_hidden()) options.hidden = vit.hidden();
  if (vit.has_dropout()) options.dropout = vit.dropout();
  if (vit.has_attention_dropout()) options.attention_dropout = vit.attention_dropout();
  if (vit.has_norm_epsilon()) options.norm_epsilon = vit.norm_epsilon();
  if (vit.has_checkpoint_activations()) options.checkpoint_activations = vit.checkpoint_activations();
  return options;
}

model_zoo::BertOptions translate(const Bert& bert) {
  model_zoo::BertOptions options;
  if (bert.has_layers()) options.layers = bert.layers();
  if (bert.has_heads()) options.heads = bert.heads();
  if (bert.has_width()) options.width = bert.width();
  if (bert.has_hidden()) options.hidden = bert.hidden();
  if (bert.has_context()) options.context = bert.context();
  if (bert.has_vocabulary()) options.vocabulary = bert.vocabulary();
  if (bert.has_dropout()) options.dropout = bert.dropout();
  if (bert.has_norm_epsilon()) options.norm_epsilon = bert.norm_epsilon();
  if (bert.has_initial_deviation()) options.initial_deviation = bert.initial_deviation();
  if (bert.has_pad_token()) options.pad_token = bert.pad_token();
  if (bert.has_checkpoint_activations()) options.checkpoint_activations = bert.checkpoint_activations();
  return options;
}

}  // namespace

model_zoo::ModelOptions model_options(const Model& model) {
  switch (model.kind_case()) {
    case Model::kMlp:
      return translate(model.mlp());
    case Model::kConvnet:
      return translate(model.convnet());
    case Model::kResnet:
      return translate(model.resnet());
    case Model::kGpt:
      return translate(model.gpt());
    case Model::kLlama:
      return translate(model.llama());
    case Model::kUnet3D:
      return translate(model.unet3d());
    case Model::kVit:
      return translate(model.vit());
    case Model::kBert:
      return translate(model.bert());
    case Model::KIND_NOT_SET:
      break;
  }
  throw FieldError("model", "none is named", "Name one of mlp, convnet, resnet, gpt, llama, unet3d, bert, vit.");
}

std::string model_kind(const Model& model) {
  const auto* kind = Model::descriptor()->FindOneofByName("kind");
  const auto* field = model.GetReflection()->GetOneofFieldDescriptor(model, kind);
  return field == nullptr ? "unknown" : field->name();
}

}  // namespace lockstep::job
