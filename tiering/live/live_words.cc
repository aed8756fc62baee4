#include "tiering/live/live_words.h"

#include <charconv>
#include <concepts>
#include <iterator>

namespace uptier {

const char* compile_state_name(CompileState s) {
  static constexpr const char* kNames[] = {"ready",  "waiting", "given_up",
                                           "failed", "evicted", "removed"};
  static_assert(std::size(kNames) == kCompileStates);
  return kNames[static_cast<size_t>(s)];
}

}  // namespace uptier

namespace uptier::tiering {
namespace {

constexpr std::string_view kHello = "uptier-live ";
constexpr uint64_t kVersion = 1;
constexpr std::string_view kRefused = "error ";

void put(std::string& out, std::string_view word) { (out += ' ') += word; }
void put(std::string& out, uint64_t n) { put(out, std::to_string(n)); }
template <typename E>
requires std::is_enum_v<E>
void put(std::string& out, E e) { put(out, static_cast<uint64_t>(e)); }

// Names come from modules: bytes that would end a line, or steer a terminal, become '?'.
std::string printable(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  return out;
}

// The words of one line, one after the other. Once one is wrong, all are.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }
  // The line begins with this word.
  void expect(std::string_view word) {
    ok_ = ok_ && rest_.starts_with(word);
    if (ok_) rest_.remove_prefix(word.size());
  }
  template <std::unsigned_integral T>
  void take(T& to) {
    expect(" ");
    if (!ok_) return;
    const char* end = rest_.data() + rest_.size();
    const auto [at, error] = std::from_chars(rest_.data(), end, to);
    ok_ = error == std::errc();
    rest_.remove_prefix(static_cast<size_t>(at - rest_.data()));
  }
  // `count`: the number of values of the enum, or of bool.
  template <typename E>
  void take(E& to, uint32_t count) {
    uint32_t n = 0;
    take(n);
    ok_ = ok_ && n < count;
    if (ok_) to = static_cast<E>(n);
  }
  std::string_view rest() {
    expect(" ");
    return ok_ ? rest_ : std::string_view();
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

void put_row(std::string& out, const LiveRow& r) {
  out += "row";
  put(out, r.place);
  put(out, uint64_t{r.method.number()});
  put(out, r.key.module_key);
  put(out, uint64_t{r.key.function_index});
  put(out, r.tier);
  put(out, r.copy);
  put(out, uint64_t{r.osr});
  put(out, uint64_t{r.inlined});
  put(out, r.samples);
  put(out, r.ns);
  put(out, r.serves);
  put(out, r.state);
  put(out, printable(r.name));
  out += '\n';
}

bool read_row(std::string_view line, LiveRow& r) {
  Words w(line);
  uint32_t method = 0;
  w.expect("row");
  w.take(r.place, kTimePlaces);
  w.take(method);
  w.take(r.key.module_key);
  w.take(r.key.function_index);
  w.take(r.tier, 3);
  w.take(r.copy, 2);
  w.take(r.osr, 2);
  w.take(r.inlined, 2);
  w.take(r.samples);
  w.take(r.ns);
  w.take(r.serves, 3);
  w.take(r.state, kCompileStates);
  r.name = printable(w.rest());
  r.method = MethodId(method);
  return w.ok();
}

bool read_process(std::string_view line, LiveTime& t) {
  Words w(line);
  w.expect("process");
  for (uint64_t* n : {&t.process, &t.age_ns, &t.hz, &t.asked_ns, &t.sampled_ns, &t.squares,
                      &t.samples, &t.dropped, &t.waiting, &t.code_bytes}) {
    w.take(*n);
  }
  return w.at_end();
}

}  // namespace

std::string answer_of(const LiveTime& t) {
  std::string body = "process";
  for (const uint64_t n : {t.process, t.age_ns, t.hz, t.asked_ns, t.sampled_ns, t.squares,
                           t.samples, t.dropped, t.waiting, t.code_bytes}) {
    put(body, n);
  }
  body += '\n';
  for (const LiveRow& r : t.rows) put_row(body, r);
  return std::string(kHello) + std::to_string(kVersion) + " " + std::to_string(body.size()) + "\n" +
         body;
}

std::string refusal_of(std::string_view why) {
  return std::string(kRefused) + printable(why) + "\n";
}

Result<uint64_t> read_greeting(std::string_view line) {
  if (line.starts_with(kRefused)) {
    return Error{ErrorCode::kIo, "refused: " + printable(line.substr(kRefused.size()))};
  }
  Words w(line);
  uint64_t version = 0, bytes = 0;
  w.expect(kHello.substr(0, kHello.size() - 1));
  w.take(version);
  if (w.ok() && version != kVersion) {
    return Error{ErrorCode::kUnsupported,
                 "it speaks version " + std::to_string(version) + " of the form, this program " +
                     std::to_string(kVersion) + ": use the uptier that the process was built with"};
  }
  w.take(bytes);
  if (!w.at_end()) return Error{ErrorCode::kCorruptInput, "it is no process of Uptier's"};
  if (bytes <= kMostAnswer) return bytes;
  return Error{ErrorCode::kCorruptInput, "it announces an answer of " + std::to_string(bytes) +
                                             " bytes, more than " + std::to_string(kMostAnswer)};
}

Result<LiveTime> read_live_time(std::string_view text) {
  LiveTime t;
  for (uint64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const bool whole = end != text.npos;
    bool good = whole && number == 1 && read_process(line, t);
    if (number > 1) good = whole && read_row(line, t.rows.emplace_back());
    if (!good) {
      return Error{ErrorCode::kCorruptInput,
                   "line " + std::to_string(number) + " of the answer is neither a row nor whole"};
    }
    text.remove_prefix(end + 1);
  }
  if (t.process == 0) return Error{ErrorCode::kCorruptInput, "the answer is empty"};
  return t;
}

}  // namespace uptier::tiering
