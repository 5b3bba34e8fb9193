// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/job/checker.h"

namespace lockstep::job {

class Amp;
class Data;
class Model;
class Optimizer;
class Schedule;

// The checks of validate(), by part of the job: as resolved, and as the job has it written. What concerns two parts is
// checked in validate(). validate_data() has a file of its own.

void validate_model(const Model& model, const Model& written, Checker& checker);
void validate_data(const Data& resolved, const Data& written, Checker& checker);
void validate_amp(const Amp& amp, Checker& checker);
void validate_optimizer(const Optimizer& optimizer, const Optimizer& written, Checker& checker);
void validate_schedule(const Schedule& schedule, const Schedule& written, Checker& checker);

}  // namespace lockstep::job
