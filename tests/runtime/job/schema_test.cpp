// SPDX-License-Identifier: Apache-2.0
// What configs/job.proto says of defaults is what a job is given.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <fstream>
#include <map>
#include <regex>
#include <string>

#include "configs/job.pb.h"
#include "runtime/job/defaults.h"

namespace lockstep::job {
namespace {

using google::protobuf::Descriptor;
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

}  // namespace
}  // namespace lockstep::job
