#include "sampler/fork.h"

#include <pthread.h>

#include "sampler/context.h"

namespace uptier::sampler {
namespace {

// Global because the handler has no argument. Written in a child before it has a second thread.
constinit uint32_t g_forks = 0;

void in_child() {
  ++g_forks;
  exchange_context(nullptr);
}

}  // namespace

bool watch_forks() noexcept {
  static const bool watched = pthread_atfork(nullptr, nullptr, in_child) == 0;
  return watched;
}

uint32_t forks() noexcept { return g_forks; }

}  // namespace uptier::sampler
