// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/trainer.h"

#include <utility>

#include "model_zoo/registered.h"
#include "runtime/base/program_name.h"
#include "runtime/data/registered.h"
#include "runtime/job/job.h"
#include "runtime/step/registered_loss.h"
#include "runtime/train/same_job.h"
#include "runtime/train/train.h"

namespace lockstep::train {

namespace {

// The names under which a job calls what its program gives.
constexpr const char* kOwn = "program's own";
constexpr const char* kOwnEval = "program's own, to evaluate";

/// A part of a run: the program gives it, or fields of the job do.
struct Part {
  std::vector<std::string> fields;  ///< none of which the job may give then
  std::string call;                 ///< the field that calls it
  const char* name;
  bool given;
};

std::vector<Part> parts(const TrainerOptions& options) {
  return {{{"model"}, "model.registered.name", kOwn, options.model != nullptr},
          {{"data.train"}, "data.train.registered.name", kOwn, options.train_data != nullptr},
          {{"data.eval"}, "data.eval.registered.name", kOwnEval, options.eval_data != nullptr},
          {{"train.loss", "train.registered_loss"}, "train.registered_loss.name", kOwn, options.loss != nullptr},
          {{"schedule"}, "schedule.registered.name", kOwn, options.schedule != nullptr}};
}

/// Lets jobs call what the program gives while they live.
std::vector<Registration> registrations(const TrainerOptions& options) {
  std::vector<Registration> all;
  if (options.model) {
    const auto make = [model = options.model](const model_zoo::ModelInput& input, const Settings&) {
      return model(input);
    };
    all.push_back(model_zoo::lend_model(kOwn, make));
  }
  const auto lend_data = [&](const char* name, const data::DatasetPtr& data) {
    if (data != nullptr) all.push_back(data::lend_dataset(name, [data](const Settings&) { return data; }));
  };
  lend_data(kOwn, options.train_data);
  lend_data(kOwnEval, options.eval_data);
  if (options.loss) all.push_back(step::lend_loss(kOwn, [loss = options.loss](const Settings&) { return loss; }));
  if (options.schedule) {
    const auto make = [schedule = options.schedule](const Settings&) { return schedule; };
    all.push_back(optim::lend_schedule(kOwn, make));
  }
  return all;
}

[[noreturn]] void refuse(const std::string& text, const std::string& advice) {
  throw UsageError("the job of a Trainer: " + text, advice);
}

/// The overrides that make the job call what the program gives. Throws where the job speaks of these parts, too.
std::vector<std::string> calls(const TrainerOptions& options, const job::Locations& given) {
  std::vector<std::string> overrides;
  for (const Part& part : parts(options)) {
    if (!part.given) continue;
    for (const std::string& field : part.fields) {
      if (given.contains(field))
        refuse(field + " is given, and the program gives its own", "Leave out one of the two.");
    }
    overrides.push_back(part.call + "=" + part.name);
  }
  return overrides;
}

/// Keeps what the result tells.
class LastEvaluation final : public RunObserver {
 public:
  void evaluation(std::uint64_t /*step*/, const EvalResult& found) override { result = found; }
  std::optional<EvalResult> result;
};

/// Withdraws the wish to end, however the run ended.
struct EndsOnce {
  std::atomic<bool>& wish;
  ~EndsOnce() { wish = false; }
};

}  // namespace

struct Trainer::Read {
  job::Checked checked;
};

Trainer::Trainer(comm::World& world, TrainerOptions options) : world_(world), options_(std::move(options)) {
  if (options_.run_dir.empty()) throw UsageError("TrainerOptions::run_dir has to be given", "Name the run's folder.");
  const std::vector<Registration> lent = registrations(options_);
  const std::filesystem::path folder = std::filesystem::current_path();
  const auto read = [&](const std::vector<std::string>& overrides) {
    return job::check_text(options_.job, running_program(), overrides, folder);
  };
  const job::Locations given = read(options_.overrides).locations;
  for (const char* const field : {"comm.timeout_s", "comm.shared_memory"}) {
    if (given.contains(field)) {
      refuse(std::string(field) + " comes too late: the program has made its World",
             "Give comm::World::from_environment() the option of that name.");
    }
  }
  std::vector<std::string> overrides = calls(options_, given);
  overrides.insert(overrides.end(), options_.overrides.begin(), options_.overrides.end());
  read_ = std::make_unique<const Read>(read(overrides));
  if (const job::Diagnostics& wrong = read_->checked.diagnostics; !wrong.empty()) {
    throw UsageError(job::str(wrong), "Correct TrainerOptions::job and its overrides.");
  }
}

Trainer::~Trainer() = default;

void Trainer::observe(RunObserver& observer) { observers_.push_back(&observer); }

TrainerResult Trainer::run() {
  const std::vector<Registration> lent = registrations(options_);
  const job::Checked& read = read_->checked;
  if (world_.size() > 1) require_same_job(*world_.communicator(), read.job);
  const EndsOnce until_next_time{*end_};
  LastEvaluation last;
  TrainOptions options{.job = read.job,
                       .run_dir = options_.run_dir,
                       .resume = options_.resume,
                       .process_start = begin_,
                       .device = options_.device,
                       .output = {.quiet = options_.quiet},
                       .locations = read.locations,
                       .is_command = false,
                       .observers = observers_,
                       .end = end_};
  options.observers.push_back(&last);
  const ExitCode code = train(world_, options);
  return {.code = code, .step = *options.reached, .evaluation = std::move(last.result)};
}

}  // namespace lockstep::train
