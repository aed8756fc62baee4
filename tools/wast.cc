#include "tools/wast.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <deque>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>

#include "tools/commands.h"

namespace uptier::tools {
namespace {

using wasm::CallResult;
using wasm::Extern;
using wasm::FuncType;
using wasm::Instance;
using wasm::Val;

std::string print_val(const Val& v) {
  char text[32];
  std::snprintf(text, sizeof text, "%s:%llx", type_name(v.type),
                static_cast<unsigned long long>(v.bits));
  return text;
}

std::string print_vals(const std::vector<Val>& values) {
  std::string s;
  for (const Val& v : values) s += " " + print_val(v);
  return s;
}

std::optional<uint64_t> parse_hex(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

std::optional<Val> parse_val(const std::string& word) {
  size_t colon = word.find(':');
  if (colon == std::string::npos) return {};
  std::optional<uint64_t> bits = parse_hex(std::string_view(word).substr(colon + 1));
  for (Type t : {Type::kI32, Type::kI64, Type::kF32, Type::kF64}) {
    if (!bits || word.compare(0, colon, type_name(t)) != 0) continue;
    if (is_wide(t) || *bits <= UINT32_MAX) return Val{t, *bits};
  }
  return {};
}

std::optional<std::string> parse_name(const std::string& hex) {
  std::string name;
  if (hex == "-") return name;
  if (hex.size() % 2 != 0) return {};
  for (size_t i = 0; i < hex.size(); i += 2) {
    auto byte = parse_hex(std::string_view(hex).substr(i, 2));
    if (!byte) return {};
    name += static_cast<char>(*byte);
  }
  return name;
}

// An answer is one line, whatever names a message quotes.
std::string one_line(std::string s) {
  for (char& c : s) {
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  }
  return s;
}

// The host module that the specification's tests import.
class Spectest {
 public:
  explicit Spectest(std::ostream& out) : out_(out) {}

  Status define(wasm::Store& store, wasm::Linker& linker) {
    define_print(linker, "print", {});
    define_print(linker, "print_i32", {Type::kI32});
    define_print(linker, "print_i64", {Type::kI64});
    define_print(linker, "print_f32", {Type::kF32});
    define_print(linker, "print_f64", {Type::kF64});
    define_print(linker, "print_i32_f32", {Type::kI32, Type::kF32});
    define_print(linker, "print_f64_f64", {Type::kF64, Type::kF64});
    for (Val v : {Val::i32(666), Val::i64(666), Val::f32(666.6f), Val::f64(666.6)}) {
      linker.define("spectest", std::string("global_") + type_name(v.type),
                    store.create_global({v.type, false}, v.bits));
    }
    auto table = store.create_table({10, 20});
    if (!table) return table.error();
    linker.define("spectest", "table", *table);
    auto memory = store.create_memory({1, 2});
    if (!memory) return memory.error();
    linker.define("spectest", "memory", *memory);
    return {};
  }

 private:
  struct Print {
    std::ostream& out;
    std::vector<Type> types;
  };

  void define_print(wasm::Linker& linker, const char* name, std::vector<Type> types) {
    prints_.push_back({out_, types});
    linker.define({"spectest", name, FuncType{std::move(types), {}}, print, &prints_.back()});
  }

  static void print(void* env, Instance&, const uint64_t* args, uint64_t*) noexcept {
    auto& p = *static_cast<Print*>(env);
    std::vector<Val> values;
    for (size_t i = 0; i < p.types.size(); ++i) values.push_back({p.types[i], args[i]});
    p.out << "print" << print_vals(values) << "\n";
  }

  std::ostream& out_;
  std::deque<Print> prints_;
};

class Session {
 public:
  Session(wasm::Engine& engine, std::ostream& out)
      : engine_(engine), spectest_(out), store_(engine) {}

  Status start() { return spectest_.define(store_, linker_); }

  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "module") return load(words);
    if (command == "check") return check(words);
    if (command == "register") return register_as(words);
    if (command == "invoke") return invoke(words, 1);
    if (command == "get") return get(words);
    uint64_t times = 0;
    if (command == "repeat" && words >> times) return invoke(words, times);
    return "error unknown command";
  }

 private:
  struct Target {
    Instance* instance = nullptr;
    std::string name;
  };

  static std::string refusal(const Error& e) {
    const char* word = "error ";
    if (e.code == ErrorCode::kCorruptInput) word = "malformed ";
    if (e.code == ErrorCode::kInvalidInput || e.code == ErrorCode::kUnsupported) word = "invalid ";
    return word + e.message;
  }

  static std::string trap_answer(const wasm::TrapReport& trap) {
    return (trap.code == TrapCode::kStackExhausted ? "exhaustion " : "trap ") + trap.text();
  }

  static Result<std::vector<uint8_t>> read(std::istream& words) {
    std::string path;
    std::getline(words >> std::ws, path);
    std::ifstream file(path, std::ios::binary);
    if (!file) return Error{ErrorCode::kIo, "cannot read " + path};
    return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
  }

  std::string check(std::istream& words) {
    auto bytes = read(words);
    if (!bytes) return refusal(bytes.error());
    auto module = wasm::Module::load(engine_, std::move(*bytes));
    return module ? "ok" : refusal(module.error());
  }

  std::string load(std::istream& words) {
    std::string id;
    words >> id;
    auto bytes = read(words);
    if (!bytes) return refusal(bytes.error());
    auto module = wasm::Module::load(engine_, std::move(*bytes));
    if (!module) return refusal(module.error());
    modules_.push_back(std::move(*module));
    wasm::Instantiation made = store_.instantiate(*modules_.back(), linker_);
    if (made.ok()) {
      instances_[id] = made.instance;
      return "ok";
    }
    if (made.error) return (made.unlinkable() ? "unlinkable " : "error ") + made.error->message;
    return trap_answer(made.trap);
  }

  Result<Target> target(std::istream& words) {
    std::string id, hex;
    words >> id >> hex;
    auto it = instances_.find(id);
    if (it == instances_.end()) return Error{ErrorCode::kNotFound, "no instance " + id};
    auto name = parse_name(hex);
    if (!name) return Error{ErrorCode::kInvalidArgument, "not a name in hex: " + hex};
    return Target{it->second, *name};
  }

  std::string register_as(std::istream& words) {
    auto t = target(words);
    if (!t) return "error " + t.error().message;
    linker_.define_instance(t->name, *t->instance);
    return "ok";
  }

  std::string get(std::istream& words) {
    auto t = target(words);
    if (!t) return "error " + t.error().message;
    Extern e = t->instance->find_export(t->name);
    auto* global = std::get_if<wasm::Global>(&e);
    return global != nullptr ? "ok " + print_val(global->get()) : "error no such global";
  }

  std::string invoke(std::istream& words, uint64_t times) {
    auto t = target(words);
    if (!t) return "error " + t.error().message;
    std::vector<Val> args;
    for (std::string word; words >> word;) {
      auto v = parse_val(word);
      if (!v) return "error not a value: " + word;
      args.push_back(*v);
    }
    std::vector<std::string> outcomes;
    for (uint64_t i = 0; i < times; ++i) {
      std::string outcome = invoke_once(*t, args);
      if (std::find(outcomes.begin(), outcomes.end(), outcome) == outcomes.end()) {
        outcomes.push_back(outcome);
      }
    }
    std::string all;
    for (const std::string& o : outcomes) all += (all.empty() ? "" : " | ") + o;
    return all;
  }

  static std::string invoke_once(const Target& t, const std::vector<Val>& args) {
    Result<CallResult> r = t.instance->invoke(t.name, args);
    if (!r) return "error " + r.error().message;
    return r->ok() ? "ok" + print_vals(r->results) : trap_answer(r->trap);
  }

  wasm::Engine& engine_;
  std::vector<std::unique_ptr<wasm::Module>> modules_;
  Spectest spectest_;
  wasm::Store store_;
  wasm::Linker linker_;
  std::map<std::string, Instance*> instances_;
};

}  // namespace

int run_wast(const Options& options, const wasm::EngineOptions& engine_options, std::istream& in,
             std::ostream& out) {
  auto engine = wasm::Engine::create(options, engine_options);
  if (!engine) {
    std::cerr << "uptier: " << engine.error().message << "\n";
    return kFailed;
  }
  // Attached for good: a thread that comes and goes with every invoke would flush every time.
  ThreadScope attached((*engine)->runtime());
  if (!attached.status()) {
    std::cerr << "uptier: " << attached.status().error().message << "\n";
    return kFailed;
  }
  Session session(**engine, out);
  if (Status s = session.start(); !s) {
    std::cerr << "uptier: " << s.error().message << "\n";
    return kFailed;
  }
  for (std::string line; std::getline(in, line) && line != "quit";) {
    out << one_line(session.answer(line)) << std::endl;
  }
  return kOk;
}

int wast(const Options& options) {
  wasm::EngineOptions engine_options;
  engine_options.blind_constants = false;  // as the options say, see RuntimeWords
  return run_wast(options, engine_options, std::cin, std::cout);
}

}  // namespace uptier::tools
