// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/run_facts.h"

#include <utility>

#include "runtime/train/record/progress_line.h"

namespace lockstep::train {

namespace {

std::string line(std::string name, const std::string& value) {
  name.resize(11, ' ');
  return name + value;
}

std::string count_of(std::uint64_t number, const std::string& one) {
  std::string text = grouped(number);
  text.append(" ").append(one);
  if (number != 1) text.append("s");
  return text;
}

}  // namespace

std::string header_text(const RunFacts& facts, bool bold) {
  std::string data = count_of(facts.samples, "sample") + " of " + facts.sample_shape;
  if (facts.classes > 0) data += ", " + std::to_string(facts.classes) + " classes";
  if (facts.eval_samples) data += "; " + grouped(*facts.eval_samples) + " to evaluate";
  std::string text = line("job", bold ? std::string("\033[1m").append(facts.job).append("\033[0m") : facts.job);
  const auto add = [&](const std::string& what, const std::string& value) {
    text.append("\n").append(line(what, value));
  };
  add("model", facts.model + ", " + count_of(facts.parameters, "parameter"));
  add("data", data);
  add("steps", grouped(facts.steps) + " of " + count_of(facts.global_batch, "sample") + ", " +
                   grouped(static_cast<std::uint64_t>(facts.steps_per_epoch)) + " an epoch");
  add("ranks", std::to_string(facts.ranks) + " x " + count_of(static_cast<std::uint64_t>(facts.threads), "thread") +
                   (facts.transport.empty() ? "" : ", through " + facts.transport + " between hosts"));
  add("device", facts.device);
  add("precision", facts.precision);
  add("run", facts.run_dir.string() + (facts.host.empty() ? "" : ", on host " + facts.host));
  for (const std::string& remark : facts.remarks) text.append("\n").append(remark);
  return text;
}

}  // namespace lockstep::train
