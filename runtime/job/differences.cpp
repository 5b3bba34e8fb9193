// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include "runtime/job/job.h"

namespace lockstep::job {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;

class Lines : public MessageDifferencer::Reporter {
 public:
  using Path = std::vector<MessageDifferencer::SpecificField>;

  void ReportAdded(const Message&, const Message& b, const Path& path) override {
    lines_.push_back(name(path) + ": (unset) / " + value(b, path.back().field, path.back().new_index));
  }
  void ReportDeleted(const Message& a, const Message&, const Path& path) override {
    lines_.push_back(name(path) + ": " + value(a, path.back().field, path.back().index) + " / (unset)");
  }
  void ReportModified(const Message& a, const Message& b, const Path& path) override {
    lines_.push_back(name(path) + ": " + value(a, path.back().field, path.back().index) + " / " +
                     value(b, path.back().field, path.back().new_index));
  }

  std::vector<std::string> take() { return std::move(lines_); }

 private:
  static std::string name(const Path& path) {
    std::string name;
    for (const MessageDifferencer::SpecificField& part : path) {
      name = join_path(name, part.field->name());
      if (part.field->is_repeated()) name = element_path(name, part.index >= 0 ? part.index : part.new_index);
    }
    return name;
  }

  static std::string value(const Message& message, const FieldDescriptor* field, int index) {
    google::protobuf::TextFormat::Printer printer;
    printer.SetSingleLineMode(true);
    std::string text;
    printer.PrintFieldValueToString(message, field, field->is_repeated() ? index : -1, &text);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) text = "{ " + text + "}";
    return text;
  }

  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> differences(const Job& a, const Job& b) {
  Lines lines;
  MessageDifferencer differencer;
  differencer.ReportDifferencesTo(&lines);
  differencer.Compare(a, b);
  return lines.take();
}

}  // namespace lockstep::job
