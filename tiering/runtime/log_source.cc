#include "tiering/runtime/log_source.h"

#include <x86intrin.h>

#include <ctime>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "profile/data/text.h"
#include "tiering/base/clock.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/runtime/engine.h"

namespace uptier::tiering {
namespace {

// Returns the scope of a method's instruments, as in queries.
std::string scope_of(const Method* m) {
  if (m == nullptr) return {};
  const std::string hash = m->has_shape() ? profile::hex(m->shape->cfg_hash) : std::string();
  return hash + "@" + m->info.name;
}

}  // namespace

LogSource::LogSource(const Engine& engine)
    : engine_(engine), first_cycles_(__rdtsc()), first_ns_(now_ns()) {}

uint64_t LogSource::Clock::time_of(uint64_t at) const {
  const auto ago = static_cast<double>(static_cast<int64_t>(cycles - at)) * ns_per_cycle;
  return unix_ns - static_cast<uint64_t>(static_cast<int64_t>(ago));
}

LogSource::Clock LogSource::clock() const {
  struct timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const uint64_t cycles = __rdtsc(), ns = now_ns();
  const double passed = static_cast<double>(cycles - first_cycles_);
  const double rate = passed == 0 ? 0 : static_cast<double>(ns - first_ns_) / passed;
  const auto unix_ns =
      static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  return {cycles, unix_ns, rate};
}

std::vector<profile::TextLog> LogSource::logs() const {
  std::map<std::tuple<uint32_t, SiteId, uint32_t>, profile::TextLog> by_site;
  const Clock clock = this->clock();
  HeldState lock(engine_.state_mutex);
  for (LogLine& line : log_lines(engine_.threads.peek_log())) {
    const auto [at, fresh] =
        by_site.try_emplace({line.method.number(), line.site, line.format.tag});
    profile::TextLog& log = at->second;
    if (fresh) {
      std::optional<std::string> format = formats_.find(line.format);
      if (!format) {  // the tag is the host's own
        by_site.erase(at);
        continue;
      }
      log.scope = scope_of(engine_.known(line.method));
      log.site = line.site;
      log.format = std::move(*format);
    }
    log.lines.push_back({clock.time_of(line.cycles), line.thread, std::move(line.arguments)});
  }
  std::vector<profile::TextLog> logs;
  for (auto& [at, log] : by_site) logs.push_back(std::move(log));
  return logs;
}

void LogSource::gather(GatherList& list) noexcept try {
  for (const profile::TextLog& log : logs()) profile::append_text_log(log, list);
} catch (const std::exception&) { list.fail("memory ran out"); }

}  // namespace uptier::tiering
