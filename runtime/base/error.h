// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace lockstep {

/// The process exit codes that users and schedulers rely on.
enum class ExitCode : int {
  kDone = 0,
  kUsage = 2,        ///< wrong command line, job or model
  kEnvironment = 3,  ///< something the machine lacks
  kStorage = 4,      ///< unreadable data, full disk, damaged checkpoint
  kNumerics = 5,     ///< NaN loss, collapsed loss scale
  kMemory = 6,
  kPeerLost = 7,    ///< another rank died, hung or disagrees
  kPreempted = 75,  ///< saved on request; run again to resume
};

/// Every failure that a user may meet: what happened, what to do about it, and the process's exit code.
/// `what()` says what was expected and what was found; `advice()` may be empty.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& what, std::string advice = {})
      : std::runtime_error(what), code_(code), advice_(std::move(advice)) {}

  ExitCode code() const noexcept { return code_; }
  const std::string& advice() const noexcept { return advice_; }

 private:
  ExitCode code_;
  std::string advice_;
};

/// Declares an error type with a fixed exit code.
template <ExitCode Code>
class ErrorOf : public Error {
 public:
  explicit ErrorOf(const std::string& what, std::string advice = {}) : Error(Code, what, std::move(advice)) {}
};

/// A job, command line or API call that cannot mean anything.
class UsageError : public ErrorOf<ExitCode::kUsage> {
  using ErrorOf::ErrorOf;
};
/// A field of the job whose value cannot be used: what() is "PATH: MESSAGE".
class FieldError : public UsageError {
 public:
  FieldError(const std::string& path, const std::string& message, std::string advice = {})
      : UsageError(path + ": " + message, std::move(advice)), path_(path), message_(message) {}

  const std::string& path() const noexcept { return path_; }
  const std::string& message() const noexcept { return message_; }

 private:
  std::string path_;
  std::string message_;
};
/// Shapes or dtypes that do not fit the operation.
class ShapeError : public UsageError {
  using UsageError::UsageError;
};
/// The machine lacks something: a device, a library, a program.
class EnvironmentError : public ErrorOf<ExitCode::kEnvironment> {
  using ErrorOf::ErrorOf;
};
/// A file that cannot be read or written, or whose content is damaged.
class StorageError : public ErrorOf<ExitCode::kStorage> {
  using ErrorOf::ErrorOf;
};
/// The numbers went wrong: NaN loss, collapsed loss scale, diverged ranks.
class NumericsError : public ErrorOf<ExitCode::kNumerics> {
  using ErrorOf::ErrorOf;
};
class MemoryError : public ErrorOf<ExitCode::kMemory> {
  using ErrorOf::ErrorOf;
};
/// A rank that died, did not arrive in time, or runs something else.
class PeerError : public ErrorOf<ExitCode::kPeerLost> {
  using ErrorOf::ErrorOf;
};

}  // namespace lockstep
