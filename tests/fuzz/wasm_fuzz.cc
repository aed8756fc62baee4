// Wasm: random modules that import from each other, also several instances of one module, give the
// same answers in every mode as in wabt's interpreter, and leave the same globals and memories.
#include <wabt/binary-writer.h>
#include <wabt/stream.h>
#include <wabt/wast-lexer.h>
#include <wabt/wast-parser.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "embed/wasm/engine.h"
#include "tests/fuzz/mode_options.h"
#include "tests/fuzz/wasm_oracle.h"
#include "tests/support/random_wasm.h"

namespace uptier::fuzz {
namespace {

using wasm::Val;

// The limit on calls of functions that make calls, per call from outside.
constexpr uint32_t kFuel = 60;
constexpr int kFewCalls = 30, kManyCalls = 240;

struct Mode {
  const char* options[9];  // NAME=VALUE
};
constexpr Mode kModes[] = {
    {{"tier=baseline"}},
    {{"tier=instrumented"}},
    {{"tier=optimized"}},
    {{"policy=always", "flush_first=1", "workers=0", "interval=1", "adaptive=off"}},
    // Decides by observations, which calls of imports are inlined for; optimizing always pays.
    {{"flush_first=20", "workers=0", "interval=1", "adaptive=off", "measure_rates=off",
      "compile_ns=1", "baseline_ns=1000"}},
    {{"flush_first=10", "workers=0", "interval=1", "adaptive=off", "measure_rates=off",
      "compile_ns=1", "baseline_ns=1000"}},
    {{"flush_first=20", "interval=1", "adaptive=off", "measure_rates=off", "compile_ns=1",
      "baseline_ns=1000"}},
    {{"flush_first=20", "workers=0", "interval=1", "adaptive=off", "measure_rates=off",
      "compile_ns=1", "baseline_ns=1000", "deopt_cold=on", "cold_samples=1"}},
    {{"flush_first=8", "workers=0", "interval=1", "adaptive=off", "measure_rates=off",
      "compile_ns=1", "baseline_ns=1000", "stress=osr=every:2,guard=random:0.1:3"}},
    {{"flush_first=8", "workers=0", "interval=1", "adaptive=off", "measure_rates=off",
      "compile_ns=1", "baseline_ns=1000", "stress=values=all,flip=every:3"}},
};

using Bytes = std::vector<uint8_t>;

Bytes assemble(const std::string& text) {
  wabt::Errors errors;
  auto lexer = wabt::WastLexer::CreateBufferLexer("random", text.data(), text.size(), &errors);
  wabt::WastParseOptions options{wabt::Features()};
  std::unique_ptr<wabt::Module> module;
  bool parsed = wabt::Succeeded(wabt::ParseWatModule(lexer.get(), &module, &errors, &options));
  for (const auto& e : errors) std::fprintf(stderr, "%s\n%s", e.message.c_str(), text.c_str());
  UPTIER_FUZZ_CHECK(parsed);
  wabt::MemoryStream stream;
  UPTIER_FUZZ_CHECK(wabt::Succeeded(wabt::WriteBinaryModule(&stream, module.get(), {})));
  return stream.output_buffer().data;
}

// ---- The two engines --------------------------------------------------------------------------

// The result of a call.
struct Answer {
  bool trapped = false;
  std::string why;
  std::vector<Val> results;
};

constexpr Type kTypes[] = {Type::kI32, Type::kI64, Type::kF32, Type::kF64};  // by WasmOracle::Kind

Val val(const WasmOracle::Number& n) { return {kTypes[static_cast<size_t>(n.kind)], n.bits}; }

WasmOracle::Number number(const Val& v) {
  size_t kind = static_cast<size_t>(std::ranges::find(kTypes, v.type) - kTypes);
  return {static_cast<WasmOracle::Kind>(kind), v.bits};
}

Answer call(WasmOracle& oracle, size_t instance, const std::string& name,
            const std::vector<Val>& args) {
  std::vector<WasmOracle::Number> numbers;
  for (const Val& v : args) numbers.push_back(number(v));
  WasmOracle::Answer a = oracle.call(instance, name, numbers);
  Answer out{a.trapped, a.why, {}};
  for (const WasmOracle::Number& n : a.results) out.results.push_back(val(n));
  return out;
}

class Ours {
 public:
  Ours(const Mode& mode, bool explicit_bounds) {
    wasm::EngineOptions options;
    options.explicit_bounds = explicit_bounds;
    auto engine = wasm::Engine::create(options_of(mode.options), options);
    UPTIER_FUZZ_CHECK(engine.ok());
    engine_ = std::move(*engine);
    store_ = std::make_unique<wasm::Store>(*engine_);
  }
  ~Ours() { store_.reset(); }

  void load(const Bytes& bytes) {
    auto m = wasm::Module::load(*engine_, bytes);
    if (!m.ok()) std::fprintf(stderr, "%s\n", m.error().message.c_str());
    UPTIER_FUZZ_CHECK(m.ok());
    modules_.push_back(std::move(*m));
  }
  void instantiate(size_t module, size_t from) {
    wasm::Linker linker;
    if (!instances_.empty()) linker.define_instance("env", *instances_[0]);
    if (!instances_.empty()) linker.define_instance("in", *instances_[from]);
    wasm::Instantiation made = store_->instantiate(*modules_[module], linker);
    UPTIER_FUZZ_CHECK(made.ok());
    instances_.push_back(made.instance);
  }
  Answer call(size_t instance, const std::string& name, const std::vector<Val>& args) {
    auto r = instances_[instance]->invoke(name, args);
    UPTIER_FUZZ_CHECK(r.ok());
    return {!r->ok(), r->trap.text(), r->results};
  }
  Val global(size_t instance, const std::string& name) {
    auto g = std::get<wasm::Global>(instances_[instance]->find_export(name));
    uint64_t bits = is_wide(g.type.type) ? *g.cell : static_cast<uint32_t>(*g.cell);
    return {g.type.type, bits};
  }
  void set_fuel(uint32_t n) {
    *std::get<wasm::Global>(instances_[0]->find_export("fuel")).cell = n;
  }
  std::span<const uint8_t> memory(size_t instance) {
    return instances_[instance]->memory()->bytes();
  }

 private:
  std::unique_ptr<wasm::Engine> engine_;
  std::vector<std::unique_ptr<wasm::Module>> modules_;
  std::vector<wasm::Instance*> instances_;
  std::unique_ptr<wasm::Store> store_;
};

// ---- Comparison -------------------------------------------------------------------------------

bool is_nan(const Val& v) {
  if (v.type == Type::kF64) return std::isnan(std::bit_cast<double>(v.bits));
  if (v.type != Type::kF32) return false;
  return std::isnan(std::bit_cast<float>(static_cast<uint32_t>(v.bits)));
}

bool same(const Val& a, const Val& b) { return a == b || (is_nan(a) && is_nan(b)); }

bool same(const Answer& a, const Answer& b) {
  if (a.trapped != b.trapped) return false;
  bool (*equal)(const Val&, const Val&) = same;
  return a.trapped ||
         std::equal(a.results.begin(), a.results.end(), b.results.begin(), b.results.end(), equal);
}

// Returns a difference between the states of the instances, or nothing.
std::optional<std::string> difference(const WasmOracle& want, Ours& got, size_t instances) {
  for (size_t i = 0; i < instances; ++i) {
    for (const char* g : {"g0", "g1", "g2"}) {
      if (!same(val(want.global(i, g)), got.global(i, g))) return g + (" of " + std::to_string(i));
    }
    WasmOracle::Memory x = want.memory(i, "mem");
    auto y = got.memory(i);
    bool equal = x.size == y.size() && std::memcmp(x.data, y.data(), x.size) == 0;
    if (!equal) return "memory of " + std::to_string(i);
  }
  return std::nullopt;
}

constexpr Type kParams[4][2] = {{Type::kI32, Type::kI32},
                                {Type::kI64, Type::kF64},
                                {Type::kI32, Type::kNone},
                                {Type::kF64, Type::kI32}};

std::vector<Val> arguments(size_t function, test::Random& random) {
  std::vector<Val> args;
  for (Type t : kParams[function]) {
    if (t != Type::kNone) args.push_back({t, test::random_bits(t, random)});
  }
  return args;
}

struct Program {
  std::vector<std::string> texts;  // of the modules, the base first
  struct Instance {
    size_t module, from;
  };
  std::vector<Instance> instances;
};

Program make_program(test::Random& random) {
  Program p;
  p.texts.push_back(test::wasm_base());
  p.instances.push_back({0, 0});
  for (size_t n = random.chance(60) ? 1 : 2; n > 0; --n) {
    p.texts.push_back(test::RandomWasm(random).module());
  }
  for (size_t n = 1; n < 2 + random.below(3) || n < p.texts.size(); ++n) {
    size_t module = n < p.texts.size() ? n : 1 + random.below(p.texts.size() - 1);
    p.instances.push_back({module, random.chance(70) ? n - 1 : random.below(n)});
  }
  return p;
}

void compare(const Program& p, const Mode& mode, bool explicit_bounds, test::Random& random) {
  WasmOracle oracle;
  Ours ours(mode, explicit_bounds);
  for (const std::string& text : p.texts) {
    Bytes bytes = assemble(text);
    oracle.load(bytes);
    ours.load(bytes);
  }
  for (const auto& i : p.instances) {
    oracle.instantiate(i.module, i.from);
    ours.instantiate(i.module, i.from);
  }
  bool steady = random.chance(70);  // calls from outside always go to the last instance
  int calls = random.chance(60) ? kManyCalls : kFewCalls;
  for (int n = 0; n < calls; ++n) {
    size_t instance = steady ? p.instances.size() - 1 : random.below(p.instances.size());
    size_t k = random.below(4);
    std::string name = "f" + std::to_string(k);
    std::vector<Val> args = arguments(k, random);
    oracle.set_i32(0, "fuel", kFuel);
    ours.set_fuel(kFuel);
    Answer want = call(oracle, instance, name, args), got = ours.call(instance, name, args);
    // wabt's call stack is smaller than ours.
    if (want.why.find("exhausted") != std::string::npos) return;
    std::string what = same(want, got) ? "" : "the answer of " + name;
    if (what.empty()) what = difference(oracle, ours, p.instances.size()).value_or("");
    if (what.empty()) continue;
    for (const std::string& text : p.texts) std::fprintf(stderr, "%s\n", text.c_str());
    for (const auto& i : p.instances)
      std::fprintf(stderr, "module %zu, in: %zu\n", i.module, i.from);
    for (const char* o : mode.options) std::fprintf(stderr, " %s", o == nullptr ? "" : o);
    std::fprintf(stderr, "%s: call %d, of %zu: %s differs (%s; %s)\n",
                 explicit_bounds ? " explicit" : "", n, instance, what.c_str(), want.why.c_str(),
                 got.why.c_str());
    UPTIER_FUZZ_CHECK(!"the same");
  }
}

}  // namespace

std::vector<std::string> seeds() { return {"a program is a number"}; }

void feed(const std::string& input) {
  uint64_t seed = 0xcbf29ce484222325;
  for (char c : input) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  test::Random random(seed);
  const Mode& mode = kModes[random.below(std::size(kModes))];
  Program p = make_program(random);
  compare(p, mode, random.chance(30), random);
}

}  // namespace uptier::fuzz
