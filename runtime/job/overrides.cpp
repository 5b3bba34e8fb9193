// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/overrides.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "configs/job.pb.h"
#include "runtime/job/scalar.h"
#include "runtime/job/text_reader.h"

namespace lockstep::job {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr std::string_view kUnset = "unset";

/// For texts, "unset" is a text.
bool is_text(const FieldDescriptor& field) { return field.cpp_type() == FieldDescriptor::CPPTYPE_STRING; }

/// One component of a path: "block[1]" is {"block", 1}.
struct Step {
  std::string name;
  std::optional<int> index;
};

/// Empty when the component has brackets that hold no number.
std::optional<Step> parse_step(const std::string& component) {
  const std::size_t bracket = component.find('[');
  if (bracket == std::string::npos) return Step{component, {}};
  int index = -1;
  const char* end = component.data() + component.size();
  const auto [stop, failure] = std::from_chars(component.data() + bracket + 1, end, index);
  if (failure != std::errc() || index < 0 || stop + 1 != end || *stop != ']') return {};
  return Step{component.substr(0, bracket), index};
}

/// The field that a path names and the message that holds it.
struct Place {
  Message* message;
  const FieldDescriptor* field;
};

class Override {
 public:
  Override(const std::string& assignment, Locations& locations, Diagnostics& diagnostics)
      : source_("--set " + assignment), locations_(locations), diagnostics_(diagnostics) {
    const std::size_t equals = assignment.find('=');
    path_ = assignment.substr(0, equals);
    if (equals == std::string::npos) {
      error("", "expected path=value, for example train.steps=100");
    } else if (equals + 1 == assignment.size()) {
      // A shell puts an empty text in the place of a variable that nobody set.
      error(path_,
            "has no value behind '='; =unset clears a field that is no text, ='\"\"' gives an empty text, =[] an empty "
            "list");
    } else {
      value_ = assignment.substr(equals + 1);
    }
  }

  void apply(Job& job) {
    if (!value_) return;
    const std::optional<Place> place = find(job);
    if (!place) return;
    locations_.erase(path_);
    place->message->GetReflection()->ClearField(place->message, place->field);
    if (*value_ != kUnset || is_text(*place->field)) set(*place);
    // Whatever the value holds came from the command line, where a line and a column mean nothing.
    locations_.relocate(path_, {source_, 0, 0});
  }

 private:
  std::optional<Place> find(Job& job) {
    Message* message = &job;
    std::string walked;
    for (std::size_t begin = 0;;) {
      const std::size_t dot = std::min(path_.find('.', begin), path_.size());
      const std::string component = path_.substr(begin, dot - begin);
      const std::optional<Step> step = parse_step(component);
      if (!step) return error(walked, "expected an index as in block[0], found \"" + component + "\"");
      const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(step->name);
      if (field == nullptr) return error(walked, unknown_field(step->name, *message->GetDescriptor()));
      walked = join_path(walked, component);
      if (!valid_index(*message, *field, *step, walked)) return {};
      const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      if (dot == path_.size()) {
        if (!step->index) return Place{message, field};
        return error(walked, "set the whole list, " + step->name + "=[...], or a field of an element");
      }
      if (!is_message) return error(walked, "is a single value and has no field \"" + path_.substr(dot + 1) + "\"");
      message = field->is_repeated() ? message->GetReflection()->MutableRepeatedMessage(message, field, *step->index)
                                     : message->GetReflection()->MutableMessage(message, field);
      begin = dot + 1;
    }
  }

  bool valid_index(const Message& message, const FieldDescriptor& field, const Step& step, const std::string& walked) {
    if (!field.is_repeated()) {
      if (step.index) error(walked, "is no list, so it takes no index");
      return !step.index;
    }
    const int size = message.GetReflection()->FieldSize(message, &field);
    const bool last = walked == path_;
    if (!step.index) {
      if (!last) error(walked, fmt::format("is a list of {}; name one as in {}[0]", size, step.name));
      return last;
    }
    if (*step.index >= size) error(walked, "the list has " + std::to_string(size) + " elements, counted from 0");
    return *step.index < size;
  }

  void set(const Place& place) {
    const bool bare_text =
        is_text(*place.field) && !value_->starts_with('"') && !value_->starts_with('\'') && !value_->starts_with('[');
    if (bare_text) {
      const std::string wrong = set_text(*place.message, *place.field, *value_);
      if (!wrong.empty()) error(path_, wrong);
      return;
    }
    Diagnostics wrong;
    TextReader(*value_, source_, locations_, wrong).read_value(*place.message, *place.field, path_);
    for (const Diagnostic& diagnostic : wrong) error(diagnostic.path, diagnostic.message);
  }

  std::nullopt_t error(const std::string& path, const std::string& message) {
    diagnostics_.emplace_back(Position{source_, 0, 0}, path, message);
    return std::nullopt;
  }

  std::string source_;
  std::string path_;
  std::optional<std::string> value_;
  Locations& locations_;
  Diagnostics& diagnostics_;
};

}  // namespace

void apply_override(Job& job, const std::string& assignment, Locations& locations, Diagnostics& diagnostics) {
  Override(assignment, locations, diagnostics).apply(job);
}

}  // namespace lockstep::job
