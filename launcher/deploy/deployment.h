// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::launcher {

/// A training that a batch system, a cluster or a container engine is to start.
struct Deployment {
  std::string name;                ///< a label of DNS: is_label()
  std::string program;             ///< the command, to be found in PATH
  std::vector<std::string> train;  ///< its arguments, "train" first; paths are absolute
  int nodes = 1;
  int ranks = 1;       ///< of a node
  int gpus = 0;        ///< of a node
  int cpus = 0;        ///< cores of a rank; 0: not given
  int minutes = 0;     ///< after which it is ended; 0: no limit
  bool plain = false;  ///< ranks join over TCP; no launcher of MPI starts them
  // Of containers:
  std::string image;
  std::string claim;   ///< the PersistentVolumeClaim with the folder's files
  std::string folder;  ///< absolute: where containers find job, data and run
};

/// Seconds between the signal that asks a training to save and its end.
constexpr int kSecondsToSave = 120;
/// How often what has lost a rank is started again.
constexpr int kRestarts = 10;

/// A script for sbatch.
std::string slurm_script(const Deployment& deployment);

/// Files for kubectl. An MPIJob of kubeflow.org/v2beta1; or a Service and an indexed Job, whose ranks need no MPI.
std::string kubernetes_mpi_job(const Deployment& deployment);
std::string kubernetes_indexed_job(const Deployment& deployment);

/// A compose.yaml for one machine.
std::string compose_file(const Deployment& deployment);

/// Whether Kubernetes takes the text as the name of a Service, with room for what is put behind it in the names of
/// pods: at most 40 lower-case letters, digits and '-', a letter first, no '-' last.
bool is_label(const std::string& text);
/// The text with the characters of a label.
std::string label_of(const std::string& text);

}  // namespace lockstep::launcher
