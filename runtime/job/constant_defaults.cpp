// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "configs/job.pb.h"
#include "model_zoo/build.h"
#include "runtime/job/data_options.h"
#include "runtime/job/defaults.h"
#include "runtime/job/message_options.h"
#include "runtime/job/training_options.h"

namespace lockstep::job {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

struct Default {
  std::string_view message;
  std::string_view field;
  const char* value;
};

/// By message, what the option structs that stand for it write into it: their defaults.
class MessageDefaults {
 public:
  MessageDefaults() {
    add_kinds<model_zoo::ModelOptions>(*Model::descriptor());
    add_kinds<data::DatasetOptions>(*Dataset::descriptor());
    add_kinds<optim::AnyOptions>(*Optimizer::descriptor());
    add_kinds<optim::ScheduleOptions>(*Schedule::descriptor());
    add<optim::OptimizerOptions>(*Optimizer::descriptor());
    add<data::LoaderOptions>(*Data::descriptor());
    add<data::SampleErrors>(*Data::descriptor());
    add<data::HoldOutOptions>(*Data::descriptor());
    add<data::AugmentOptions>(*Augment::descriptor());
    add<amp::AmpOptions>(*Amp::descriptor());
    add<amp::GradScalerOptions>(*LossScale::descriptor());
    add<comm::DdpOptions>(*Comm::descriptor());
    add<optim::WeightMeanOptions>(*Ema::descriptor());
  }

  void write(Message& message) const {
    const auto [begin, end] = writers_.equal_range(message.GetDescriptor()->name());
    for (auto at = begin; at != end; ++at) at->second(message);
  }

 private:
  /// The structs within it, too.
  template <class Options>
  void add(const Descriptor& message) {
    writers_.emplace(message.name(), write_defaults<Options>);
    for_each_field<Options>([&](const auto& option) {
      using Value = std::remove_cvref_t<decltype(Options().*option.member)>;
      if constexpr (Described<Value>) {
        add<Value>(*message.FindFieldByName(std::string(option.name))->message_type());
      } else if constexpr (Optional<Value> || List<Value>) {
        if constexpr (Described<typename Value::value_type>) {
          add<typename Value::value_type>(*message.FindFieldByName(std::string(option.name))->message_type());
        }
      }
    });
  }

  template <class Variant>
  void add_kinds(const Descriptor& message) {
    for_each_alternative<Variant>([&]<class Options>(std::type_identity<Options>) {
      add<Options>(*message.FindFieldByName(std::string(Options::kKind))->message_type());
    });
  }

  std::multimap<std::string, void (*)(Message&)> writers_;
};

/// The defaults of other fields that depend on nothing else.
constexpr Default kDefaults[] = {
    {"Synthetic", "resident", "false"}, {"Comm", "digest_every", "100"},     {"Comm", "timeout_s", "60"},
    {"Comm", "shared_memory", "true"},  {"Train", "accumulate", "1"},        {"Train", "eval_every", "0"},
    {"Train", "label_smoothing", "0"},  {"Train", "log_every", "50"},        {"Train", "cuda_graph", "AUTO"},
    {"EarlyStopping", "patience", "5"}, {"EarlyStopping", "min_delta", "0"}, {"Checkpoint", "every_steps", "0"},
    {"Checkpoint", "keep", "3"},        {"FaultPoint", "phase", "BACKWARD"}, {"FaultPoint", "milliseconds", "1000"},
};

}  // namespace

void fill_constants(Message& message) {
  const auto* type = message.GetDescriptor();
  const auto* reflection = message.GetReflection();
  static const MessageDefaults defaults;
  defaults.write(message);
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

}  // namespace lockstep::job
