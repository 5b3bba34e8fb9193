// SPDX-License-Identifier: Apache-2.0
// What configs/job.proto says of fields and defaults is what the options say.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <type_traits>
#include <variant>

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
using google::protobuf::MessageFactory;

/// By "Message.field", the constant of a comment that ends in "default X", as in "share that stays; default 0.9".
std::map<std::string, std::string> constants_of_schema() {
  const std::regex message(R"(message (\w+) \{.*)");
  const std::regex field(R"(\s*(?:optional |repeated )?\w+ (\w+) = \d+;\s*(?://\s*(.*))?)");
  const std::regex constant(R"((?:.*; )?default ([^:\s]+)(?: \(.+\))?\s*)");
  std::map<std::string, std::string> constants;
  std::ifstream file(LOCKSTEP_SOURCE_DIR "/configs/job.proto");
  std::string of, above;
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (std::regex_match(line, match, message)) {
      of = match[1];
      above.clear();
    } else if (std::regex_match(line, match, field)) {
      const std::string name = match[1], comment = above + match[2].str();
      above.clear();
      if (std::smatch value; std::regex_match(comment, value, constant)) constants[of + "." + name] = value[1];
    } else {
      const std::size_t at = line.find("// ");
      above = at == std::string::npos ? "" : above + line.substr(at + 3) + " ";
    }
  }
  return constants;
}

TEST(Schema, SaysTheDefaultsThatAJobIsGiven) {
  const std::map<std::string, std::string> constants = constants_of_schema();
  EXPECT_GT(constants.size(), 100u);
  std::size_t found = 0;
  const auto* const schema = Job::descriptor()->file();
  for (int i = 0; i < schema->message_type_count(); ++i) {
    const Descriptor* const type = schema->message_type(i);
    SCOPED_TRACE(type->name());
    const Message* const empty = MessageFactory::generated_factory()->GetPrototype(type);
    const std::unique_ptr<Message> given(empty->New()), said(empty->New());
    fill_constants(*given);
    for (int f = 0; f < type->field_count(); ++f) {
      const auto constant = constants.find(type->name() + "." + type->field(f)->name());
      if (constant == constants.end()) continue;
      ++found;
      EXPECT_TRUE(google::protobuf::TextFormat::ParseFieldValueFromString(constant->second, type->field(f), said.get()))
          << constant->first << " cannot be " << constant->second;
    }
    EXPECT_EQ(given->DebugString(), said->DebugString());
  }
  EXPECT_EQ(found, constants.size());
}

/// Calls `visit` with the type of the options and the message that they stand for, and with those within them.
template <class Options, class Visit>
void visit_options(const Descriptor& message, Visit& visit) {
  visit(std::type_identity<Options>(), message);
  for_each_field<Options>([&](const auto& option) {
    const auto* const field = message.FindFieldByName(std::string(option.name));
    ASSERT_NE(field, nullptr) << message.name() << " has no field " << option.name;
    using Value = std::remove_cvref_t<decltype(Options().*option.member)>;
    if constexpr (Described<Value>) {
      visit_options<Value>(*field->message_type(), visit);
    } else if constexpr (Optional<Value> || List<Value>) {
      if constexpr (Described<typename Value::value_type>) {
        visit_options<typename Value::value_type>(*field->message_type(), visit);
      }
    }
  });
}

template <class Variant, class Visit>
void visit_kinds(const Descriptor& message, Visit& visit) {
  const auto* const kind = message.FindOneofByName("kind");
  EXPECT_EQ(static_cast<std::size_t>(kind->field_count()), std::variant_size_v<Variant>) << message.name();
  for_each_alternative<Variant>([&]<class Options>(std::type_identity<Options>) {
    const auto* const field = message.FindFieldByName(std::string(Options::kKind));
    ASSERT_NE(field, nullptr) << message.name() << " has no kind " << Options::kKind;
    visit_options<Options>(*field->message_type(), visit);
  });
}

/// Of all messages that options stand for, field by field.
template <class Visit>
void visit_all(Visit visit) {
  visit_kinds<model_zoo::ModelOptions>(*Model::descriptor(), visit);
  visit_kinds<data::DatasetOptions>(*Dataset::descriptor(), visit);
  visit_kinds<optim::AnyOptions>(*Optimizer::descriptor(), visit);
  visit_kinds<optim::ScheduleOptions>(*Schedule::descriptor(), visit);
  visit_options<optim::ParameterGroup>(*ParameterGroup::descriptor(), visit);
  visit_options<data::AugmentOptions>(*Augment::descriptor(), visit);
  visit_options<data::VolumeAugmentOptions>(*Augment::descriptor(), visit);
  visit_options<data::NormalizeOptions>(*Normalize::descriptor(), visit);
  visit_options<amp::AmpOptions>(*Amp::descriptor(), visit);
  visit_options<amp::GradScalerOptions>(*LossScale::descriptor(), visit);
  visit_options<optim::WeightMeanOptions>(*Ema::descriptor(), visit);
  // These have fields of other options, too.
  visit_options<comm::DdpOptions>(*Comm::descriptor(), visit);
  visit_options<optim::OptimizerOptions>(*Optimizer::descriptor(), visit);
  visit_options<data::LoaderOptions>(*Data::descriptor(), visit);
  visit_options<data::SampleErrors>(*Data::descriptor(), visit);
}

std::unique_ptr<Message> empty_of(const Descriptor& type) {
  return std::unique_ptr<Message>(MessageFactory::generated_factory()->GetPrototype(&type)->New());
}

TEST(Schema, HasTheFieldsOfTheOptionsThatStandForIt) {
  std::map<std::string, std::set<std::string>> options;
  visit_all([&options]<class Options>(std::type_identity<Options>, const Descriptor& message) {
    for_each_field<Options>([&](const auto& option) { options[message.name()].emplace(option.name); });
  });
  for (const auto* const shared : {"Comm", "Optimizer", "Data"}) options.erase(shared);
  options["Amp"].insert("loss_scale");      // a message of its own
  options["Synthetic"].insert("resident");  // of the run, not of the data
  for (const auto& [message, listed] : options) {
    const Descriptor* const type = Job::descriptor()->file()->FindMessageTypeByName(message);
    for (int f = 0; f < type->field_count(); ++f) {
      EXPECT_TRUE(listed.contains(type->field(f)->name())) << "no option stands for " << type->field(f)->full_name();
    }
  }
}

TEST(Schema, AMessageThatSaysNothingIsTheDefaultOptions) {
  visit_all([]<class Options>(std::type_identity<Options>, const Descriptor& type) {
    const std::unique_ptr<Message> message = empty_of(type);
    if (auto* const data = dynamic_cast<Data*>(message.get())) data->set_global_batch(1);  // has to be given
    EXPECT_EQ(options_of<Options>(*message), Options()) << type.name();
    fill_constants(*message);
    EXPECT_EQ(options_of<Options>(*message), Options()) << type.name() << " as resolved";
  });
}

/// Gives a field a value that is no default, its second one of a list, and returns it as text.
std::string give(Message& message, const FieldDescriptor& field, int number) {
  const auto* const of = message.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    const auto* const value = field.enum_type()->value(field.enum_type()->value_count() - 1);
    field.is_repeated() ? of->AddEnum(&message, &field, value) : of->SetEnum(&message, &field, value);
    return value->name();
  }
  std::string text = std::to_string(number);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    text = of->GetBool(message, &field) ? "false" : "true";
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE ||
             field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
    text += ".5";
  }
  const bool quoted = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFieldValueFromString(quoted ? "'" + text + "'" : text, &field, &message))
      << field.full_name();
  return text;
}

TEST(Schema, EveryFieldReachesItsOption) {
  visit_all([]<class Options>(std::type_identity<Options>, const Descriptor& type) {
    const std::unique_ptr<Message> message = empty_of(type);
    fill_constants(*message);
    std::map<std::string, std::string> said;
    int number = 2;
    for_each_field<Options>([&](const auto& option) {
      const FieldDescriptor& field = field_of(*message, option.name);
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return;  // whose options are visited, too
      if (!field.is_repeated()) {
        said[field.name()] = give(*message, field, ++number);
      } else if constexpr (IsShape<std::remove_cvref_t<decltype(Options().*option.member)>>) {
        const std::string first = give(*message, field, ++number), second = give(*message, field, ++number);
        said[field.name()] = "[" + first + ", " + second + "]";
      } else {
        said[field.name() + "[0]"] = give(*message, field, ++number);
        said[field.name() + "[1]"] = give(*message, field, ++number);
      }
    });
    const std::string lines = "\n" + lockstep::lines_of(options_of<Options>(*message));
    for (const auto& [name, value] : said) {
      EXPECT_NE(lines.find("\n" + name + ": " + value + "\n"), std::string::npos)
          << type.name() << "." << name << " of " << value << " is in\n"
          << lines;
    }
  });
}

}  // namespace
}  // namespace lockstep::job
