// ir_corpus.h: loads the programs of tests/ir/ and their expected answers, for every executor of
// IR.
//
// A line `; run @f(1, mem+8, &@g) -> 3` in a .uir file is one run. Arguments and results are
// written as constants of the signature's types. Refs may also be
//
//   mem+8    an address in the scratch memory: its one page is readable and writable, and a mebibyte before
//            and after it faults
//   &@g      the address of a method, as `call_indirect` takes it
//
// A result is a constant, `nan` (any quiet NaN), `void`, or `trap <code>`. Each run starts with the
// scratch memory filled with the same bytes.
//
//   for (const CorpusFile& file : load_corpus()) {
//     for (const CorpusRun& run : file.runs) {
//       scratch.fill();
//       ... = file.module.functions[run.method.index()] applied to run.arguments(scratch, address_of)
//       EXPECT_EQ("", run.complaint(answer, scratch));
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "jit/frontend/interpret.h"
#include "jit/frontend/parse.h"
#include "jit/frontend/verify.h"
#include "jit/ir/names.h"
#include "jit/ir/print.h"
#include "test_paths.h"

namespace uptier::test {

// One page of memory between two guard regions of a mebibyte each.
class Scratch {
 public:
  static constexpr size_t kSize = 4096;
  static constexpr size_t kGuard = 1 << 20;
  static constexpr size_t kIndices = size_t{4} << 30;
  static constexpr size_t kReserved = 2 * (kGuard + kIndices);

  Scratch() {
    region_ =
        mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region_ == MAP_FAILED) throw std::runtime_error("no memory for the scratch page");
    mprotect(data(), kSize, PROT_READ | PROT_WRITE);
    fill();
  }
  ~Scratch() { munmap(region_, kReserved); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  uint8_t* data() const { return static_cast<uint8_t*>(region_) + kGuard + kIndices; }
  uint64_t base() const { return reinterpret_cast<uint64_t>(data()); }
  void fill() {
    for (size_t i = 0; i < kSize; ++i) data()[i] = static_cast<uint8_t>(37 * i + 11);
  }
  std::string bytes() const { return std::string(reinterpret_cast<char*>(data()), kSize); }

 private:
  void* region_;
};

// The result of a run: its bits, or a trap.
struct Answer {
  uint64_t bits = 0;
  TrapCode trap = TrapCode::kNone;

  friend bool operator==(const Answer&, const Answer&) = default;
};

inline bool is_nan(Type t, uint64_t bits) {
  if (t == Type::kF32) return (bits & 0x7fffffff) > 0x7f800000;
  return t == Type::kF64 && (bits & ~(uint64_t{1} << 63)) > 0x7ff0000000000000;
}

// Returns whether two results of executors agree: both have the same bits, or both are NaNs.
inline bool same_value(Type t, uint64_t a, uint64_t b) {
  if (t == Type::kNone || (is_nan(t, a) && is_nan(t, b))) return true;
  return jit::constant_text(t, a) == jit::constant_text(t, b);
}

inline std::string answer_text(Type t, const Answer& a) {
  if (a.trap != TrapCode::kNone) return "trap " + jit::trap_name(a.trap);
  return t == Type::kNone ? "void" : jit::constant_text(t, a.bits);
}

// A word of a run line: bits, or bits that depend on the executor.
struct CorpusWord {
  enum class Kind { kBits, kScratch, kMethod } kind = Kind::kBits;
  uint64_t bits = 0;  // or the offset into the scratch memory, or the MethodId
};

using AddressOf = std::function<uint64_t(MethodId)>;

struct CorpusRun {
  std::string text;   // "@f(1, 2) -> 3"
  std::string where;  // "file.uir:12"
  MethodId method;
  Type result = Type::kNone;
  std::vector<CorpusWord> args;
  bool any_nan = false;
  Answer expected;
  CorpusWord expected_word;

  static uint64_t resolve(const CorpusWord& w, const Scratch& scratch, const AddressOf& address) {
    if (w.kind == CorpusWord::Kind::kScratch) return scratch.base() + w.bits;
    if (w.kind == CorpusWord::Kind::kMethod) return address(MethodId(w.bits));
    return w.bits;
  }

  // Returns the bits of the arguments, zero-extended. `address` gives the address that
  // call_indirect takes.
  std::vector<uint64_t> arguments(const Scratch& scratch, const AddressOf& address) const {
    std::vector<uint64_t> out;
    for (const CorpusWord& w : args) out.push_back(resolve(w, scratch, address));
    return out;
  }

  // Returns "" if the answer is as expected, otherwise a description of the difference.
  std::string complaint(const Answer& got, const Scratch& scratch) const {
    bool ok = got.trap == expected.trap;
    if (ok && expected.trap == TrapCode::kNone && result != Type::kNone) {
      uint64_t want = resolve(expected_word, scratch, nullptr);
      uint64_t quiet = result == Type::kF32 ? 0x400000 : uint64_t{1} << 51;
      ok = any_nan ? is_nan(result, got.bits) && (got.bits & quiet) : got.bits == want;
    }
    return ok ? "" : where + ": run " + text + ", but got " + answer_text(result, got);
  }
};

struct CorpusFile {
  std::string name;  // "calls.uir"
  jit::Module module;
  std::vector<CorpusRun> runs;
};

// ---- Host functions that the programs call ------------------------------------------------------

// Raises a trap for host functions of compiled programs; a test sets it before it runs one.
inline void (*corpus_raise)(TrapCode) = nullptr;
// Hashes the calls of `note`, so that the order of side effects can be compared.
inline uint64_t corpus_notes = 0;

// Sums wrap around: programs pass arbitrary bits.
inline uint64_t corpus_add3(uint64_t a, uint64_t b, uint64_t c) { return a + 10 * b + 100 * c; }
inline double corpus_mix(int32_t a, double b, int64_t c, float d, int32_t e, double f, int64_t g,
                         float h) {
  return a + 2 * b + 3 * static_cast<double>(c) + 4 * d + 5.0 * e + 6 * f +
         7 * static_cast<double>(g) + 8 * h;
}
inline uint64_t corpus_many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
                            uint64_t g, uint32_t h, double p, double q, double r, double s,
                            double t, double u, double v, double w, double x, float y) {
  double sum = p + 2 * q + 3 * r + 4 * s + 5 * t + 6 * u + 7 * v + 8 * w + 9 * x + 10 * double{y};
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + uint64_t{8} * h +
         1000 * static_cast<uint64_t>(sum);
}
inline void corpus_note(int32_t x) {
  corpus_notes = corpus_notes * 31 + static_cast<uint32_t>(x) + 1;
}
inline int32_t corpus_raise_if(int32_t code, int32_t value) {
  if (code != 0 && corpus_raise != nullptr) corpus_raise(static_cast<TrapCode>(code));
  return static_cast<int32_t>(static_cast<uint32_t>(value) + 1);
}
inline float corpus_half(float x) { return x / 2; }
// Adds to the byte and returns its old value.
inline int32_t corpus_poke(uint8_t* p, int32_t by) {
  uint8_t was = *p;
  *p = static_cast<uint8_t>(was + static_cast<uint32_t>(by));
  return was;
}
// Copy or fill bytes of the scratch page, with the semantics of kCallCopies and kCallFills.
inline bool corpus_has(uint32_t at, uint32_t n) { return uint64_t{at} + n <= Scratch::kSize; }
inline int32_t corpus_move(void*, uint8_t* page, uint32_t to, uint32_t from, uint32_t n) {
  if (!corpus_has(to, n) || !corpus_has(from, n)) return 1;
  std::memmove(page + to, page + from, n);
  return 0;
}
inline int32_t corpus_set(void*, uint8_t* page, uint32_t to, uint32_t byte, uint32_t n) {
  if (!corpus_has(to, n)) return 1;
  std::memset(page + to, static_cast<int>(byte & 0xff), n);
  return 0;
}
inline void* corpus_step(void* p, int32_t bytes) { return static_cast<char*>(p) + bytes; }

inline const std::vector<HostFunction>& corpus_hosts() {
  constexpr Type i32 = Type::kI32, i64 = Type::kI64, f32 = Type::kF32, f64 = Type::kF64;
  auto address = [](auto* f) { return reinterpret_cast<const void*>(f); };
  static const std::vector<HostFunction> hosts = {
      {"add3", address(&corpus_add3), {{i64, i64, i64}, i64}},
      {"mix", address(&corpus_mix), {{i32, f64, i64, f32, i32, f64, i64, f32}, f64}},
      {"many",
       address(&corpus_many),
       {{i64, i64, i64, i64, i64, i64, i64, i32, f64, f64, f64, f64, f64, f64, f64, f64, f64, f32},
        i64}},
      {"note", address(&corpus_note), {{i32}, Type::kNone}},
      {"raise_if", address(&corpus_raise_if), {{i32, i32}, i32}},
      {"half", address(&corpus_half), {{f32}, f32}},
      {"step", address(&corpus_step), {{Type::kRef, i32}, Type::kRef}},
      {"poke", address(&corpus_poke), {{Type::kRef, i32}, i32}},
  };
  return hosts;
}

// Returns the host functions that random programs call with kCallCopies and kCallFills.
inline const std::vector<HostFunction>& moving_hosts() {
  static const std::vector<HostFunction> hosts = {host_function("move", corpus_move),
                                                  host_function("set", corpus_set)};
  return hosts;
}

// Calls a host function of the corpus on behalf of the interpreter.
inline jit::OutsideResult call_corpus_host(const jit::HostCallee& callee,
                                           std::span<const uint64_t> a) {
  auto f32 = [&](size_t i) { return std::bit_cast<float>(static_cast<uint32_t>(a[i])); };
  auto f64 = [&](size_t i) { return std::bit_cast<double>(a[i]); };
  auto i32 = [&](size_t i) { return static_cast<int32_t>(a[i]); };
  auto i64 = [&](size_t i) { return static_cast<int64_t>(a[i]); };
  auto value = [](uint64_t bits) { return jit::OutsideResult{bits, TrapCode::kNone}; };
  if (callee.name == "add3") return value(corpus_add3(a[0], a[1], a[2]));
  if (callee.name == "half") return value(std::bit_cast<uint32_t>(corpus_half(f32(0))));
  if (callee.name == "step") return value(a[0] + static_cast<uint64_t>(i64(1) << 32 >> 32));
  if (callee.name == "poke") {
    return value(static_cast<uint32_t>(corpus_poke(reinterpret_cast<uint8_t*>(a[0]), i32(1))));
  }
  if (callee.name == "move" || callee.name == "set") {
    auto u32 = [&](size_t i) { return static_cast<uint32_t>(a[i]); };
    auto* page = reinterpret_cast<uint8_t*>(a[1]);
    auto* f = callee.name == "move" ? corpus_move : corpus_set;
    return value(static_cast<uint32_t>(f(nullptr, page, u32(2), u32(3), u32(4))));
  }
  if (callee.name == "mix") {
    return value(std::bit_cast<uint64_t>(
        corpus_mix(i32(0), f64(1), i64(2), f32(3), i32(4), f64(5), i64(6), f32(7))));
  }
  if (callee.name == "many") {
    return value(corpus_many(a[0], a[1], a[2], a[3], a[4], a[5], a[6], static_cast<uint32_t>(a[7]),
                             f64(8), f64(9), f64(10), f64(11), f64(12), f64(13), f64(14), f64(15),
                             f64(16), f32(17)));
  }
  if (callee.name == "note") {
    corpus_note(i32(0));
    return value(0);
  }
  if (callee.name == "raise_if") {
    if (i32(0) != 0) return {0, static_cast<TrapCode>(i32(0))};
    return value(static_cast<uint32_t>(i32(1)) + 1);
  }
  return {0, TrapCode::kHost};
}

// ---- Interpreter --------------------------------------------------------------------------------

inline jit::InterpretOptions interpret_options(const Scratch& scratch) {
  jit::InterpretOptions options;
  options.memory = {{scratch.base(), Scratch::kSize, true}};
  options.call_host = call_corpus_host;
  options.depth_limit = 20'000;
  return options;
}

// Runs a method in an interpreter. Throws if the interpreter stopped: the program broke a rule or
// ran too long.
inline Answer interpret(jit::Interpreter& interpreter, MethodId m, std::span<const uint64_t> args) {
  jit::InterpretOutcome o = interpreter.run(m, args);
  if (o.kind == jit::InterpretOutcome::Kind::kStopped) throw std::runtime_error(o.why);
  return {o.bits, o.trap};
}

// ---- Reading ------------------------------------------------------------------------------------

class CorpusReader {
 public:
  explicit CorpusReader(const std::filesystem::path& path) : path_(path) {}

  CorpusFile read() {
    std::ifstream in(path_, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    file_.name = path_.filename().string();
    auto module = jit::parse_module(text.str(), {file_.name, corpus_hosts()});
    if (!module) throw std::runtime_error(module.error().message);
    file_.module = std::move(*module);
    std::istringstream lines(text.str());
    for (std::string line; std::getline(lines, line);) {
      ++line_;
      if (line.starts_with("; run ")) run(line.substr(6));
    }
    return std::move(file_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(file_.name + ":" + std::to_string(line_) + ": " + what);
  }

  // Parses "@f(1, 2) -> 3".
  void run(const std::string& text) {
    size_t open = text.find('('), arrow = text.rfind(") -> ");
    if (text[0] != '@' || open == std::string::npos || arrow == std::string::npos) {
      fail("a run is @name(args) -> result");
    }
    CorpusRun r;
    r.text = text;
    r.where = file_.name + ":" + std::to_string(line_);
    r.method = file_.module.find(text.substr(1, open - 1));
    if (!r.method.valid()) fail("no function " + text.substr(0, open));
    const Signature& s = file_.module.functions[r.method.index()].signature();
    r.result = s.result;
    std::istringstream args(text.substr(open + 1, arrow - open - 1));
    for (std::string word; args >> word;) {
      if (word.back() == ',') word.pop_back();
      if (r.args.size() == s.params.size()) fail("too many arguments");
      r.args.push_back(read_word(s.params[r.args.size()], word));
    }
    if (r.args.size() != s.params.size()) fail("too few arguments");
    expect(r, text.substr(arrow + 5));
    file_.runs.push_back(std::move(r));
  }

  void expect(CorpusRun& r, const std::string& text) {
    if (text.starts_with("trap ")) {
      auto code = jit::trap_of_name(text.substr(5));
      if (!code) fail("no trap code " + text.substr(5));
      r.expected.trap = *code;
    } else if (text == "nan") {
      r.any_nan = true;
    } else if (text != "void") {
      r.expected_word = read_word(r.result, text);
      r.expected.bits = r.expected_word.bits;
    }
    if ((text == "void") != (r.result == Type::kNone) && r.expected.trap == TrapCode::kNone) {
      fail("`void` is for functions without a result, and only for them");
    }
  }

  CorpusWord read_word(Type t, const std::string& text) {
    using Kind = CorpusWord::Kind;
    if (t == Type::kRef && text.starts_with("&@")) {
      MethodId m = file_.module.find(text.substr(2));
      if (!m.valid()) fail("no function " + text.substr(1));
      return {Kind::kMethod, m.index()};
    }
    if (t == Type::kRef && text.starts_with("mem")) {
      std::string offset = text.size() == 3 ? "0" : text.substr(text[3] == '+' ? 4 : 3);
      auto bits = jit::parse_constant(Type::kI64, offset);
      if (!bits) fail("bad offset " + offset);
      return {Kind::kScratch, *bits};
    }
    auto bits = jit::parse_constant(t, text);
    if (!bits) fail("no constant of type " + std::string(type_name(t)) + ": " + text);
    return {Kind::kBits, *bits};
  }

  std::filesystem::path path_;
  CorpusFile file_;
  int line_ = 0;
};

// Reads every .uir file of tests/ir, in order of names. Throws if one cannot be read.
inline std::vector<CorpusFile> load_corpus() {
  std::vector<std::filesystem::path> paths;
  auto folder = std::filesystem::path(UPTIER_SOURCE_DIR) / "tests" / "ir";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".uir") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<CorpusFile> files;
  for (const auto& path : paths) files.push_back(CorpusReader(path).read());
  return files;
}

}  // namespace uptier::test
