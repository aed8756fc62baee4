#include "profile/trace/dump.h"

#include "profile/data/text.h"
#include "profile/trace/trace_file.h"

namespace uptier::profile {
namespace {

constexpr size_t kCountsPerLine = 8;

// Returns whether a slot is a single count, and so shares a line with others.
bool is_count(const Slot& slot) { return slot.words == 1 && slot.top == 0; }

// Returns prefix and number; a number that was not seen before gets the next one.
std::string renumber(std::map<uint64_t, uint64_t>& names, const char* prefix, uint64_t number) {
  const auto [at, added] = names.emplace(number, names.size() + 1);
  return prefix + std::to_string(at->second);
}

std::string slot_name(const Slot& slot) {
  return std::string(slot_kind_name(slot.kind)) + " " + std::to_string(slot.site) + ":";
}

// Prints "  block 1: 5 3 2" lines; a line ends if the kind changes or it is full.
std::string counts_by_site(const Schema& schema, std::span<const uint64_t> counts) {
  std::string out;
  size_t on_line = 0;
  const Slot* previous = nullptr;
  for (const Slot& slot : schema.slots) {
    if (!is_count(slot)) continue;
    const bool continues = previous != nullptr && previous->kind == slot.kind &&
                           previous->site + 1 == slot.site && on_line < kCountsPerLine;
    if (!continues) {
      out += previous == nullptr ? "  " : "\n  ";
      out += slot_name(slot);
      on_line = 0;
    }
    out += " " + std::to_string(counts[slot.word]);
    ++on_line;
    previous = &slot;
  }
  return out.empty() ? out : out + "\n";
}

std::string opaque(size_t bytes) { return " opaque " + std::to_string(bytes) + " bytes\n"; }

}  // namespace

std::string EventPrinter::print(const TraceEvent& event) {
  return std::visit([this](const auto& e) { return line(e); }, event);
}

std::string EventPrinter::line(const Provenance& event) {
  return "provenance engine " + quote(event.engine) + " interval " +
         std::to_string(event.interval) + " gap " + quote(event.gap) + " options " +
         quote(event.options) + "\n";
}

std::string EventPrinter::line(const MethodDetails& event) {
  return "method " + renumber(methods_, "m", event.handle) + " module " + hex(event.module_key) +
         " function " + std::to_string(event.function_index) + " name " + quote(event.name) + "\n";
}

std::string EventPrinter::line(const BulkType& event) {
  return "type " + renumber(types_, "t", event.handle) + " name " + quote(event.name) + "\n";
}

std::string EventPrinter::line(const FirstCallEvent& event) {
  return "first call " + renumber(methods_, "m", event.handle) + " position " +
         std::to_string(event.position) + "\n";
}

std::string EventPrinter::line(const InstrumentationDesc& event) {
  std::string out = "desc " + renumber(ids_, "d", event.id);
  const Result<Schema> schema = schema_of(event);
  if (!schema.ok()) {
    return out + " version " + std::to_string(event.version) + opaque(event.desc.size());
  }
  descs_[event.id] = event;
  out += " method " + renumber(methods_, "m", handle_of(event));
  const InlinedPlace place = place_of(event);
  if (place.root != 0) {
    out += " inlined in " + renumber(methods_, "m", place.root);
    for (const InlinedStep& step : place.path) {
      out += " at " + std::to_string(step.site) + " " + renumber(methods_, "m", step.callee);
    }
  }
  out += " " + to_text(*schema);
  const std::vector<Draw> draws = draws_of(event, *schema);
  for (size_t i = 0; i < draws.size(); ++i) {
    const bool header = draws[i] == Draw::kHeader;
    if (header) out += " header " + std::to_string(schema->slots[i].site);
  }
  return out + "\n";
}

std::string EventPrinter::line(const FlushEvent& event) {
  const std::string thread = event.thread == 0 ? "shared" : renumber(threads_, "", event.thread);
  return "flush " + renumber(ids_, "d", event.id) + " index " + std::to_string(event.flush_index) +
         " calls " + std::to_string(event.calls) + " sampled " +
         std::to_string(event.sampled_calls) + " thread " + thread + " reason " +
         std::string(flush_reason_name(event.reason)) + " interval " +
         std::to_string(event.interval) + " iterations " + std::to_string(event.iterations) +
         " bursts " + std::to_string(event.bursts) + " burst " + std::to_string(event.burst) +
         (event.exact_totals ? " exact totals\n" : "\n");
}

std::string EventPrinter::line(const InstrumentationData& event) {
  const std::string head = "data " + renumber(ids_, "d", event.id);
  const auto desc = descs_.find(event.id);
  if (desc == descs_.end()) return head + opaque(event.data.size());
  const Result<Schema> schema = schema_of(desc->second);
  const bool known = schema.ok() && event.data.size() == schema->data_words() * sizeof(uint64_t);
  if (!known) return head + opaque(event.data.size());
  const std::vector<uint64_t> words = words_of(event);
  return head + "\n" + counts_by_site(*schema, words) + other_slots(*schema, words);
}

std::string EventPrinter::other_slots(const Schema& schema, std::span<const uint64_t> words) {
  std::string out;
  size_t pairs = schema.words();
  for (const Slot& slot : schema.slots) {
    const size_t size = 2 * size_t{slot.top};
    if (!is_count(slot)) {
      out += "  " + slot_name(slot) + words_text(slot.kind, &words[slot.word], nullptr) +
             pairs_text(slot.kind, words.subspan(pairs, size)) + "\n";
    }
    pairs += size;
  }
  return out;
}

std::string EventPrinter::pairs_text(SlotKind kind, std::span<const uint64_t> pairs) {
  std::string out;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (pairs[i + 1] == 0) continue;
    const bool callee = kind == SlotKind::kCallTarget;
    out += callee ? " " + renumber(methods_, "m", pairs[i])
                  : " " + std::to_string(static_cast<int64_t>(pairs[i]));
    out += ":" + std::to_string(pairs[i + 1]);
  }
  return out.empty() ? out : " {" + out + " }";
}

std::string dump_trace(ByteSpan file) {
  TraceReader reader(file, TraceReader::OnDamage::kResume);
  EventPrinter printer;
  std::string out = "trace " + std::to_string(kTraceVersion) + "\n";
  while (reader.next()) out += printer.print(reader.event());
  const bool cut = reader.state() == TraceReader::State::kTruncated;
  // The last one may be the reason why the trace ends here.
  const bool spoiled =
      cut && !reader.damages().empty() && reader.damages().back() == reader.error().message;
  for (const std::string& damage : reader.damages()) {
    const bool last = spoiled && &damage == &reader.damages().back();
    if (!last) out += "damaged: " + damage + "\n";
  }
  if (reader.skipped() != 0) {
    out += "skipped " + std::to_string(reader.skipped()) + " of an unknown type or version\n";
  }
  switch (reader.state()) {
    case TraceReader::State::kOpen:
    case TraceReader::State::kComplete:
      return out + "end events " + std::to_string(reader.events()) + " dropped " +
             std::to_string(reader.dropped()) + "\n";
    case TraceReader::State::kTruncated:
      return out + (spoiled ? "corrupt: " : "truncated: ") + reader.error().message + "\n";
    case TraceReader::State::kCorrupt: return out + "corrupt: " + reader.error().message + "\n";
  }
  return out;
}

}  // namespace uptier::profile
