// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace lockstep::launcher {

/// Takes apart what comes out of mpirun's stderr: what the ranks print, and mpirun's own remarks, which it sets between
/// lines of dashes. What is too long to be mpirun's, a line or a remark, is passed on before it ends. Lines that may
/// tell why its daemons do not start on other hosts are held back until release().
class MpirunMessages {
 public:
  /// Takes the next piece of output, which may end anywhere. Returns what of it the ranks printed, with
  /// bytes that are no UTF-8 escaped.
  std::string feed(std::string_view text);
  /// The last line, where it was not ended, and a remark that was not closed.
  std::string finish();

  /// The lines that are held. From now on none is: a rank has started, or the start has not failed.
  std::string release();
  const std::string& held() const { return held_; }

  /// mpirun's remarks, one after the other, but for the one that only says that some rank has failed.
  const std::string& remarks() const { return remarks_; }
  /// The signals that ended ranks, where mpirun says so, by rank.
  const std::map<int, int>& signals() const { return signals_; }

 private:
  std::string take_line(const std::string& line);
  void note_signal(const std::string& remark);

  std::string line_;
  bool within_long_line_ = false;  ///< whose begin was passed on
  std::string open_remark_;
  bool in_remark_ = false;
  std::string remarks_;
  bool starting_ = true;
  std::string held_;
  std::map<int, int> signals_;
};

}  // namespace lockstep::launcher
