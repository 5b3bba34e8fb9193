// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/plan.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "amp/grad_scaler/opt_level.h"
#include "model_zoo/build.h"
#include "model_zoo/largest_count.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/base/byte_size.h"
#include "runtime/data/arrays.h"
#include "runtime/data/make_dataset.h"
#include "runtime/data/mixup.h"
#include "runtime/data/normalize_target.h"
#include "runtime/data/sampler.h"
#include "runtime/job/data_options.h"
#include "runtime/job/model_options.h"
#include "runtime/job/training_options.h"
#include "runtime/optim/optimizer.h"
#include "runtime/tensor/gpu_dtypes.h"
#include "runtime/train/derived_steps.h"
#include "runtime/train/eval_metrics.h"
#include "runtime/train/faults.h"
#include "runtime/train/goals.h"
#include "runtime/train/initial_weights.h"
#include "runtime/train/job_step.h"
#include "runtime/train/task.h"

namespace lockstep::train {

namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);
constexpr std::int64_t kStepCountBytes = sizeof(std::int64_t);  ///< each parameter counts its steps

/// The field of the one file that an error of reading a data set names; that of the whole data set where it names none
/// or several. `path` is that of the data set's kind, "data.train.idx".
std::string path_of_file(const data::DatasetOptions& dataset, const std::string& path, const std::string& error) {
  std::vector<data::NamedFile> files = data::files_of(dataset);
  std::erase_if(files, [&error](const auto& file) { return error.find(file.path) == std::string::npos; });
  return files.size() == 1 ? path + "." + files.front().field : path;
}

/// The field of the schedule's warm-up and its value.
std::pair<std::string, std::int64_t> warmup_of(const job::Schedule& schedule) {
  const auto of = []<class Kind>(const Kind& kind) {
    const std::string path = "schedule." + std::string(Kind::kKind) + ".warmup_steps";
    if constexpr (requires { kind.warmup_steps; }) {
      return std::pair(path, kind.warmup_steps);
    } else {
      return std::pair(path, std::int64_t{0});
    }
  };
  return std::visit(of, job::schedule_options(schedule));
}

class Planner {
 public:
  Planner(const job::Job& job, const PlanOptions& options, const job::Locations& locations)
      : job_(job), options_(options), locations_(locations) {}

  Plan run() {
    look_at_data();
    attempt("train.epochs", [&] { job_ = with_steps(job_, plan_.steps_per_epoch); });
    if (job_.train().steps() > 0) look_at_steps();
    warn_of_ranks();
    look_at_device();
    if (plan_.train.samples > 0) look_at_model();
    return std::move(plan_);
  }

 private:
  /// Runs one check; what it throws becomes an error at `path` or at the field that it names itself.
  bool attempt(const std::string& path, const std::function<void()>& check) {
    try {
      check();
      return true;
    } catch (const FieldError& error) {
      add(error.path(), error.message(), error);
    } catch (const Error& error) {
      add(path, error.what(), error);
    }
    return false;
  }

  void add(const std::string& path, const std::string& message, const Error& error) {
    // The classes of evaluation data are those of the training labels: one damaged file is one error.
    const auto same = [&](const Finding& other) { return other.at.message == message; };
    if (std::ranges::any_of(plan_.errors, same)) return;
    plan_.errors.push_back({{locations_.find(path), path, message}, error.code(), error.advice()});
  }

  void warn(const std::string& path, const std::string& message) {
    plan_.warnings.push_back({{locations_.find(path), path, message}, ExitCode::kDone, {}});
  }

  /// What follows from the number of steps, which that of the samples may decide.
  void look_at_steps() {
    attempt("schedule", [&] { schedule_of(job_); });
    const auto [path, warmup] = warmup_of(job_.schedule());
    const std::int64_t steps = job_.train().steps();
    if (warmup > steps) {
      warn(path, "the warm-up takes " + std::to_string(warmup) + " steps, the run only " + std::to_string(steps) +
                     ": the learning rate is never reached");
    }
  }

  void warn_of_ranks() {
    if (options_.cores > 0 && options_.ranks_here > options_.cores) {
      Finding& crowded = plan_.warnings.emplace_back();  // not the job's fault, so it has no place there
      crowded.at.message = std::to_string(options_.ranks_here) + " ranks share the " + std::to_string(options_.cores) +
                           (options_.cores == 1 ? " core" : " cores") + " of this machine";
    }
  }

  void look_at_data() {
    const job::Data& data = job_.data();
    data::DataOptions options;
    if (!attempt("data", [&] { options = job::data_options(data); })) return;
    options.contents = std::make_shared<data::SampleContents>();
    const auto describe = [&](data::Split split, data::Description& description) {
      const bool training = split == data::Split::kTrain;
      const std::string path = training ? "data.train" : "data.eval";
      try {
        description = data::describe(options, split);
        return true;
      } catch (const FieldError& error) {
        add(error.path(), error.message(), error);
        return false;
      } catch (const Error& error) {
        const bool of_train = training || !options.eval;  // held out
        const data::DatasetOptions& dataset = of_train ? options.train : *options.eval;
        const std::string kind = join_path(of_train ? "data.train" : path, data::kind_of(dataset));
        add(path_of_file(dataset, kind, error.what()), error.what(), error);
        return false;
      }
    };
    const bool counts = data::counts_classes(options.train);
    const bool known = describe(data::Split::kTrain, plan_.train);
    if (known) data::set_counted_classes(options, plan_.train.classes);
    if (options.evaluates() && describe(data::Split::kEval, plan_.eval.emplace()) && known) {
      attempt("data.eval", [&] { data::require_alike(*plan_.eval, plan_.train); });
      if (!options.eval) warn_of_classes_without_evaluation(options);
    }
    const auto warn_of = [&](const data::Description& description, const std::string& path) {
      for (const std::string& remark : description.remarks) warn(path, remark);
    };
    warn_of(plan_.train, join_path("data.train", data::kind_of(options.train)));
    if (options.eval && plan_.eval) warn_of(*plan_.eval, join_path("data.eval", data::kind_of(*options.eval)));
    if (!known) return;
    attempt("data.augment", [&] {
      data::require_augment(options.augment, plan_.train);
      data::require_volume_augment(options.augment.volume, plan_.train);
      if (options.augment.mixup != 0) data::require_mixup(options.augment.mixup, plan_.train);
    });
    attempt("data.normalize", [&] { data::require_normalize(options.normalize, plan_.train); });
    attempt("data.normalize_target", [&] { data::require_normalize_target(options.normalize_target, plan_.train); });
    plan_.steps_per_epoch = data::steps_per_epoch(plan_.train.samples, data.global_batch(), data.drop_last());
    if (data.global_batch() > plan_.train.samples) {
      warn(data.drop_last() ? "data.drop_last" : "data.global_batch",
           "a batch of " + std::to_string(data.global_batch()) + " is more than the " +
               std::to_string(plan_.train.samples) + " samples of data.train: every step takes all of them" +
               (data.drop_last() ? ", and nothing is dropped" : ""));
    }
    // To a model that flattens its samples their order is all one.
    const bool ordered = data.train().has_arrays() && plan_.train.vocabulary == 0 && !job_.model().has_mlp();
    if (ordered && data::look_channels_first(plan_.train.sample_shape)) {
      warn("data.train.arrays.features", "samples of shape " + plan_.train.sample_shape.str() +
                                             " have channels first, as it looks; they are read " +
                                             "channels last, as " + std::to_string(plan_.train.sample_shape.back()) +
                                             " channels: write numpy.moveaxis(x, 1, -1)");
    }
    const std::string labels = data.train().has_idx() ? "idx.labels" : std::string(data::kind_of(options.train));
    for (const std::string& strange : data::strange_labels(plan_.train, counts)) {
      warn("data.train." + labels, strange);
    }
  }

  void warn_of_classes_without_evaluation(const data::DataOptions& options) {
    const std::string missing = data::classes_without_evaluation(
        *plan_.eval, plan_.eval->labels.empty() ? std::vector<std::string>() : data::class_names(options.train));
    if (!missing.empty()) warn("data.eval_share", missing);
  }

  void look_at_device() {
    attempt("train.cuda_graph", [&] { require_graph_device(job_.train(), options_.device); });
    if (options_.device == kCpu) return;
    attempt("amp.dtype", [&] {
      const DType dtype = amp::properties_of(job::amp_options(job_.amp())).compute_dtype;
      const gpu::Description gpu = gpu::describe(options_.device);
      require_dtype("amp.dtype", dtype, options_.device, gpu);
      require_dtype("comm.wire_dtype", job::ddp_options(job_.comm()).wire_dtype.value_or(dtype), options_.device, gpu);
    });
  }

  void look_at_model() {
    std::unique_ptr<nn::Module> model;
    std::unique_ptr<optim::Optimizer> optimizer;
    const bool built = attempt("model", [&] {
      const Task task(job_.train(), plan_.train);
      model = model_zoo::outline(job::model_options(job_.model()), task.model_input());
      run_without_samples(*model, task);
      const data::Description evaluated = plan_.eval ? data::as_trained(*plan_.eval, plan_.train) : plan_.train;
      const std::vector<std::string> metrics = EvalMetrics::metrics_of(Task(job_.train(), evaluated));
      Goals::require_known(job_, metrics);
      if (plan_.eval) plan_.metrics = Goals::names_of(metrics);
    });
    if (!built) return;
    const std::vector<nn::Parameter> parameters = model->parameters();
    attempt("optimizer", [&] { optimizer = job::make_optimizer(job_.optimizer(), parameters); });
    std::vector<std::string> names;
    for (const nn::Parameter& parameter : parameters) {
      names.push_back(parameter.name);
      plan_.parameters += parameter.tensor.numel();
    }
    const comm::DdpOptions ddp = job::ddp_options(job_.comm());
    attempt("comm.bucket_ends", [&] { comm::require_bucket_ends(ddp, names); });
    if (ddp.sync_batch_norm) {
      attempt("comm.sync_batch_norm_group", [&] { comm::require_group(ddp.sync_batch_norm_group, options_.ranks); });
    }
    for (int i = 0; i < job_.fault_size(); ++i) {
      attempt("fault", [&] { require_possible(job_.fault(i), i, names, options_.ranks); });
    }
    if (options_.reads_weights && job_.has_init_from()) {
      attempt("init_from.path", [&] { load_initial_weights(job_, *model); });
    }
    if (optimizer) count_bytes(*model, *optimizer, static_cast<std::int64_t>(parameters.size()));
  }

  /// A forward pass and the loss on no samples at all: every operation checks its shapes, and none computes anything.
  void run_without_samples(nn::Module& model, const Task& task) const {
    std::vector<Tensor> inputs;
    for (const InputSpec& input : plan_.train.inputs()) {
      inputs.push_back(Tensor::empty(input.shape.batched(0), input.dtype()));
    }
    const autograd::NoGrad no_grad;
    model.train(false);
    const Tensor output = model.forward(inputs);
    task.require_output(output.shape());
    const DType target = plan_.train.classes > 0 ? DType::kInt64 : DType::kFloat32;
    task.loss(output, Tensor::empty(plan_.train.target_shape.batched(0), target), 1.0);
  }

  void count_bytes(nn::Module& model, const optim::Optimizer& optimizer, std::int64_t tensors) {
    const std::int64_t elements = nn::arena_elements(model.parameters());
    const auto bytes = [elements](DType dtype) { return elements * static_cast<std::int64_t>(size_of(dtype)); };
    const DType compute = amp::properties_of(job::amp_options(job_.amp())).compute_dtype;
    const DType wire = job::ddp_options(job_.comm()).wire_dtype.value_or(compute);
    plan_.memory.weights = bytes(DType::kFloat32);
    plan_.memory.compute_copies = compute == DType::kFloat32 ? 0 : bytes(compute);
    plan_.memory.gradients = bytes(wire);
    plan_.memory.gradient_sums = job_.train().accumulate() > 1 && is_reduced(wire) ? bytes(DType::kFloat32) : 0;
    const std::int64_t mean_bytes = job_.train().has_ema() ? kFloatBytes : 0;  // a parameter
    // While the mean is evaluated, the weights wait beside it.
    const std::int64_t copies = job::evaluates(job_.data()) ? 2 : 1;
    plan_.memory.optimizer_state =
        static_cast<std::int64_t>(optimizer.state_bytes(elements, tensors)) + copies * mean_bytes * elements;

    std::int64_t statistics = 0;
    for (const auto& [name, running] : model.statistics()) statistics += running->committed().numel();
    const std::int64_t steps = job_.train().steps();
    const std::int64_t every = job_.checkpoint().every_steps();
    plan_.checkpoints.count = every == 0 ? 1 : (steps + every - 1) / every;
    // Without the padding.
    const auto state =
        static_cast<std::int64_t>(optimizer.state_bytes(plan_.parameters, tensors)) + mean_bytes * plan_.parameters;
    plan_.checkpoints.bytes = (plan_.parameters + statistics) * kFloatBytes + state + tensors * kStepCountBytes;
    plan_.checkpoints.directory = options_.run_dir / "checkpoints";
  }

  job::Job job_;  ///< with its steps once they are known
  const PlanOptions& options_;
  const job::Locations& locations_;
  Plan plan_;
};

}  // namespace

Plan plan(const job::Job& job, const PlanOptions& options, const job::Locations& locations) {
  return Planner(job, options, locations).run();
}

void require_memory(Plan& plan, const job::Job& job, const job::Locations& locations, std::optional<std::size_t> memory,
                    int ranks) {
  const double needed = static_cast<double>(plan.memory.sum()) * ranks;
  if (!memory || needed <= static_cast<double>(*memory)) return;
  const model_zoo::Count count = model_zoo::largest_count(job::model_options(job.model()));
  const std::string message = "the weights, their gradients and the optimizer's state take " + byte_size(needed) +
                              (ranks == 1 ? "" : " on " + std::to_string(ranks) + " ranks") +
                              ", and this machine has " + byte_size(static_cast<double>(*memory)) + " of memory";
  plan.errors.push_back({{locations.find(count.path), count.path, message},
                         ExitCode::kEnvironment,
                         "Choose a smaller model, or a machine with more memory or a GPU."});
}

void require_dtype(const std::string& field, DType dtype, Device device, const gpu::Description& gpu) {
  const std::string why = gpu::why_no_dtype(dtype, device, gpu);
  if (!why.empty()) throw FieldError(field, why, "Use FP16 there.");
}

int cores_of_this_machine() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

void require_sound(const Plan& plan) {
  if (plan.errors.empty()) return;
  std::string lines;
  std::string advice;
  for (const Finding& error : plan.errors) {
    if (!lines.empty()) lines += '\n';
    lines += error.at.str();
    if (!error.advice.empty() && !advice.empty()) advice += '\n';
    advice += error.advice;
  }
  throw Error(plan.errors.front().code, lines, advice);
}

void print_warnings(const Plan& plan) {
  for (const Finding& warning : plan.warnings) spdlog::warn(warning.at.str());
}

}  // namespace lockstep::train
