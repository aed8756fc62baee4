#include "tools/runtime_words.h"

#include <algorithm>
#include <cstdlib>

#include "tools/commands.h"
#include "tools/environment.h"
#include "tools/fail.h"
#include "tools/nearest.h"

namespace uptier::tools {

void RuntimeWords::add_to(CLI::App& app) {
  named(app, "--tier", "tier", "auto | baseline | instrumented (every call) | optimized");
  named(app, "--policy", "policy", "auto | always | never");
  named(app, "--interval", "interval", "mean gap between sampled calls; 1 samples every call");
  named(app, "--gap", "gap", "random | fixed | prime | exact");
  named(app, "--opt-range", "opt_range", "optimize only methods whose hash lies in low..high");
  named(app, "--profile", "profile",
        "a .upf file: read at the start, to optimize hot methods at once, and written at the end; "
        "samples stacks 100 times a second if no rate is given");
  named(app, "--stress", "stress", "force transitions, e.g. osr=all,copy=every:3");
  app.add_option_function<std::vector<std::string>>(
         "-O,--option",
         [this](const std::vector<std::string>& words) {
           for (const std::string& w : words) {
             size_t eq = w.find('=');
             if (eq == std::string::npos) throw CLI::ValidationError(w, "is not NAME=VALUE");
             given_.emplace_back(w.substr(0, eq), w.substr(eq + 1));
           }
         },
         "sets any option by NAME=VALUE; `uptier options` lists them; if one is set twice, the "
         "later wins")
      ->trigger_on_parse()
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
}

void RuntimeWords::named(CLI::App& app, const char* flag, const char* field, const char* help) {
  app.add_option_function<std::string>(
         flag, [this, field](const std::string& v) { given_.emplace_back(field, v); }, help)
      ->trigger_on_parse();
}

void RuntimeWords::imply_loops() {
  given_.insert(given_.begin(), {{"loops", "on"}, {"interval", "1"}, {"policy", "never"}});
}

bool RuntimeWords::sets(std::string_view name) const {
  return std::ranges::any_of(given_, [&](const auto& g) { return g.first == name; });
}

bool RuntimeWords::asks_for(std::string_view name, std::string_view unless) const {
  return std::ranges::any_of(given_,
                             [&](const auto& g) { return g.first == name && g.second != unless; });
}

// Methods that samples find need many of them. A profile file and a socket say where time goes,
// unless the user chooses otherwise: timers cost less than events, and no kernel refuses them.
void RuntimeWords::sample_if_told(Options& o) const {
  if (sets("sample_hz") || secure_getenv("UPTIER_SAMPLE_HZ") != nullptr) return;
  const bool finds = o.find != FindMode::kCounts || asks_for("find", "counts");
  if (finds || asks_for("keep_code", "off")) {
    o.sample_hz = 1000;
  } else if (sets("profile") || asks_for("listen", "off") || !o.listen.empty()) {
    o.sample_hz = 100;
    o.sample_engine = SampleEngine::kCpuTimer;
  }
}

Result<Options> RuntimeWords::options(bool guest) const {
  for (const std::string& line : doubtful_variables()) fail(kOk, line);
  Result<Options> o = Options::from_env();
  if (!o) return o.error();
  if (guest && secure_getenv("UPTIER_BLIND_CONSTANTS") == nullptr) o->blind_constants = true;
  sample_if_told(*o);
  for (const auto& [name, value] : given_) {
    if (Status s = o->set(name, value); !s) {
      const bool unknown = s.error().code == ErrorCode::kNotFound;
      const std::string meant = unknown ? did_you_mean(name, option_names()) : "";
      return Error{s.error().code, s.error().message + meant};
    }
  }
  return o;
}

}  // namespace uptier::tools
