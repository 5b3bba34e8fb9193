// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lockstep::launcher {

/// The means of this machine, as `lockstep doctor --json` prints them: {"lockstep", "trains_on": ["cpu", "cuda"],
/// "processor": {"cores", "isa", "native_bfloat16", "half_instructions": [name], "float16", "bfloat16": what follows
/// for speed, "product_times": as measure_product_times() gives them, null in software, "advice"}, "shared_memory":
/// {"path", "bytes", "free_bytes"}, "mpirun", "libraries": {name: version}, "cuda_driver", "devices": [{"device",
/// "name", "compute_capability", "float16" and "bfloat16" ("tensor cores"), "multiprocessors", "memory_bytes",
/// "free_bytes"}], "findings": [{"missing", "consequence", "advice"}]}; null for what there is not. Each device is made
/// to compute something.
nlohmann::ordered_json examine();

/// Whether there is a device on which a job can be trained.
bool can_train(const nlohmann::ordered_json& examination);

/// The findings of examine(), for a person to read.
std::string doctor_text(const nlohmann::ordered_json& examination);

}  // namespace lockstep::launcher
