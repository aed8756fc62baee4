// The answers on a process's socket: what a view accepts is written and read again as the same.
#include "tests/fuzz/fuzz.h"
#include "tiering/live/live_words.h"

namespace uptier::fuzz {

using tiering::answer_of;
using tiering::read_greeting;
using tiering::read_live_time;

std::vector<std::string> seeds() {
  LiveTime t;
  t.process = 4711;
  t.samples = UINT64_MAX;
  LiveRow row;
  row.method = MethodId(7, 1);
  row.key = {UINT64_MAX, 12};
  row.name = "a name";
  row.tier = row.serves = Tier::kOptimized;
  row.copy = Copy::kInstrumented;
  row.osr = true;
  row.state = CompileState::kEvicted;
  LiveRow host;
  host.place = TimePlace::kHost;
  host.name = "[host]";
  const std::string empty = answer_of(t);
  t.rows = {row, host};
  return {empty, answer_of(t), tiering::refusal_of("no"), "uptier-live 2 1\n"};
}

void feed(const std::string& input) {
  const size_t line = input.find('\n');
  const Result<uint64_t> bytes = read_greeting(std::string_view(input).substr(0, line));
  UPTIER_FUZZ_CHECK(bytes.ok() || !bytes.error().message.empty());
  UPTIER_FUZZ_CHECK(!bytes || *bytes <= tiering::kMostAnswer);
  if (line == input.npos) return;
  const Result<LiveTime> t = read_live_time(std::string_view(input).substr(line + 1));
  UPTIER_FUZZ_CHECK(t.ok() || !t.error().message.empty());
  if (!t) return;
  const std::string again = answer_of(*t);
  const Result<LiveTime> same =
      read_live_time(std::string_view(again).substr(again.find('\n') + 1));
  UPTIER_FUZZ_CHECK(same.ok());
  UPTIER_FUZZ_CHECK(*same == *t);
}

}  // namespace uptier::fuzz
