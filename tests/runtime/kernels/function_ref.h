// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::kernels::testing {

template <class Signature>
class FunctionRef;

/// A function that a call is given, as long as the call runs. std::function, which keeps what it is made of, takes the
/// compiler several times as long for each lambda, and tests have hundreds.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Function>
  FunctionRef(const Function& function)
      : function_(&function), call_([](const void* called, Arguments... arguments) -> Result {
          return (*static_cast<const Function*>(called))(arguments...);
        }) {}

  Result operator()(Arguments... arguments) const { return call_(function_, arguments...); }

 private:
  const void* function_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace lockstep::kernels::testing
