// SPDX-License-Identifier: Apache-2.0
#include "launcher/report/report_page.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "launcher/report/embedded_files.h"
#include "runtime/base/error.h"

namespace lockstep::launcher {

namespace {

/// In the order in which they use each other.
constexpr std::array<std::string_view, 6> kScripts{"base.js",   "series.js", "runs.js",
                                                   "charts.js", "panels.js", "main.js"};

/// Text in a script element ends at "</script" and changes its meaning at "<!--", wherever they stand.
std::string script_text(const nlohmann::ordered_json& data) {
  const std::string json = data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string text;
  for (const char c : json) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

/// A file of the library without its last line, the name of a file that a browser would look for beside the page.
std::string library_file(std::string_view name) {
  const std::string_view text = embedded_file(name);
  const std::size_t map = text.find("# sourceMappingURL");
  return std::string(text.substr(0, map == std::string_view::npos ? map : text.rfind('\n', map)));
}

std::string part(std::string_view name, const nlohmann::ordered_json& data) {
  if (name == "data") return script_text(data);
  if (name == "style") return std::string(embedded_file("page.css"));
  if (name == "library style") return library_file("dygraph.min.css");
  if (name == "library") return library_file("dygraph.min.js");
  std::string scripts = "'use strict';\n";
  for (const std::string_view script : kScripts) scripts += embedded_file(script);
  return scripts;
}

}  // namespace

void require_plotting() {
  if (!embedded_file("dygraph.min.js").empty() && !embedded_file("dygraph.min.css").empty()) return;
  throw EnvironmentError("this build draws no curves: it was made without dygraphs",
                         "Install Debian's package libjs-dygraphs and build again.");
}

std::string report_page(const nlohmann::ordered_json& data) {
  require_plotting();
  std::string_view page = embedded_file("page.html");
  std::string text;
  for (std::size_t begin = page.find("{{"); begin != std::string_view::npos; begin = page.find("{{")) {
    const std::size_t end = page.find("}}", begin);
    text += page.substr(0, begin);
    text += part(page.substr(begin + 2, end - begin - 2), data);
    page.remove_prefix(end + 2);
  }
  return text + std::string(page);
}

}  // namespace lockstep::launcher
