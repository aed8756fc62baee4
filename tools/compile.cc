// uptier compile: what the compilers make of a function, stage by stage; or how fast they are.
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "jit/analysis/frame_layout.h"
#include "jit/analysis/liveness.h"
#include "jit/ir/print.h"
#include "jit/probes/probe_plan.h"
#include "tools/commands.h"
#include "tools/compile_world.h"
#include "tools/fail.h"
#include "tools/json_out.h"
#include "tools/listing.h"
#include "tools/profile_commands.h"

namespace uptier::tools {
namespace {

void print_out(const std::string& s) { std::fwrite(s.data(), 1, s.size(), stdout); }

bool wants(const CompileCommand& c, const char* what) {
  for (const std::string& d : c.dump) {
    if (d == what) return true;
  }
  return false;
}

// Prints what each pass left, if it left something new.
class PassPrinter final : public jit::PassObserver {
 public:
  explicit PassPrinter(const jit::Function& f) : last_(jit::to_text(f)) {}

  void after(std::string_view pass, const jit::Function& f) override {
    std::string now = jit::to_text(f);
    print_out("== after " + std::string(pass) + (now == last_ ? ": the same\n" : "\n"));
    if (now != last_) print_out(now);
    last_ = std::move(now);
  }

 private:
  std::string last_;
};

std::string location(int32_t displacement) {
  return "[rbp" + std::string(displacement < 0 ? "-" : "+") +
         std::to_string(displacement < 0 ? -displacement : displacement) + "]";
}

// The canonical frame of baseline code: what lives at each loop header, and where.
void print_frames(const jit::Function& f) {
  jit::Liveness live = jit::compute_liveness(f);
  jit::FrameLayout frame = jit::layout_frame(f, live);
  jit::Printer names(f);
  print_out("== frames: " + std::to_string(frame.size) + " bytes below rbp\n");
  for (Block b : f.layout) {
    for (jit::InstId i : f.block(b).insts) {
      const jit::Inst& inst = f.inst(i);
      if (inst.op != Opcode::kLoopHeader && inst.op != Opcode::kFrameState) continue;
      print_out(names.block(b) + ": " + names.inst(inst) + "\n");
      for (Value v : f.args(inst)) {
        int32_t at = frame.slot[v.index()];
        print_out("  " + names.value(v) + " " + type_name(f.type_of(v)) + " " +
                  (at == 0 ? "no slot" : location(at)) + "\n");
      }
    }
  }
}

std::string body_name(const CompileWorld& world, const jit::Code& code, uint32_t body) {
  return "body " + std::to_string(body) + " (" +
         world.name(code.tables().inlined[body - 1].method) + ")";
}

void print_probes(const CompileWorld& world, const jit::Code& code) {
  const std::vector<jit::ProbeRow>& rows = code.tables().probes;
  std::printf("== probes: offset, site, body; %zu rows, %zu bytes\n", rows.size(),
              rows.size() * sizeof rows[0]);
  for (const jit::ProbeRow& r : rows) {
    std::printf("  0x%04x  site %u", r.offset, r.site);
    if (r.body != 0) std::printf(" of %s", body_name(world, code, r.body).c_str());
    // Partial: other copies of the block have no row.
    std::printf("%s%s\n", r.starts ? " starts" : " goes on", r.partial ? ", partial" : "");
  }
  print_out("== traps: offset, location\n");
  for (const jit::TrapRow& r : code.tables().traps) {
    std::printf("  0x%04x  @0x%x %s\n", r.offset, r.loc, trap_text(r.code));
  }
  if (code.tables().calls.empty()) return;
  print_out("== calls: return offset, location\n");
  for (const jit::CallRow& r : code.tables().calls) {
    std::printf("  0x%04x  @0x%x", r.offset, r.loc);
    if (r.body != 0) std::printf(" of %s", body_name(world, code, r.body).c_str());
    std::printf("\n");
  }
}

void print_lines(const CompileWorld& world, const jit::Code& code) {
  const std::vector<jit::LineRow>& rows = code.tables().lines;
  std::printf("== lines: offset, location; %zu rows, %zu bytes\n", rows.size(),
              rows.size() * sizeof(jit::LineRow));
  for (const jit::LineRow& r : rows) {
    if (r.loc == jit::LineRow::kUnknown) {
      std::printf("  0x%04x  not known\n", r.offset);
      continue;
    }
    std::printf("  0x%04x  @0x%x", r.offset, r.loc);
    if (r.body != 0) std::printf(" of %s", body_name(world, code, r.body).c_str());
    std::printf("\n");
  }
}

void print_listing(const jit::Function& f, const CompileWorld& world, const jit::Code& code,
                   const std::vector<uint64_t>& counts) {
  std::printf("== listing: %u bytes, entered at 0x%04x\n", code.size(),
              static_cast<unsigned>(static_cast<const uint8_t*>(code.entry()) - code.base()));
  ListingNames names;
  names.site = [&](SiteId s, uint32_t body) {
    std::string text = (s == 0 ? "no site" : "site " + std::to_string(s)) +
                       (body == 0 ? "" : " of " + body_name(world, code, body));
    bool counted = body == 0 && s != 0 && s <= f.block_sites && !counts.empty();
    return counted ? text + ", " + std::to_string(counts[s - 1]) + " executions" : text;
  };
  names.address = [&](const void* at) { return world.name_of(at); };
  print_out(listing(code, names));
}

const char* register_name(uint64_t n, bool vector) {
  static constexpr const char* kGp[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                        "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
  static constexpr const char* kXmm[] = {"xmm0",  "xmm1",  "xmm2",  "xmm3", "xmm4",  "xmm5",
                                         "xmm6",  "xmm7",  "xmm8",  "xmm9", "xmm10", "xmm11",
                                         "xmm12", "xmm13", "xmm14", "xmm15"};
  return vector ? kXmm[n & 15] : kGp[n & 15];
}

std::string exit_value_text(const jit::ExitValue& v, bool to_host) {
  using From = jit::ExitValue::From;
  std::string to = to_host ? "slot " + std::to_string(v.to) : location(v.to);
  switch (v.from) {
    case From::kGp: return to + " = " + register_name(v.what, false);
    case From::kXmm: return to + " = " + register_name(v.what, true);
    case From::kFrame:
      return to + " = own " + location(static_cast<int32_t>(static_cast<int64_t>(v.what)));
    case From::kConstant: break;
  }
  return to + " = " + std::to_string(static_cast<int64_t>(v.what));
}

// Where optimized code may be left, and the frames that it is left for, the innermost first.
void print_exits(const jit::Code& code) {
  const jit::CodeTables& t = code.tables();
  if (t.exits.empty()) return;
  print_out("== exits: offset, number, reason, location\n");
  for (const jit::ExitRow& r : t.exits) {
    std::printf("  0x%04x  exit %u %s @0x%x\n", r.offset, r.exit, guard_reason_name(r.reason),
                r.loc);
    for (uint32_t n = 0; n < r.frames; ++n) {
      const jit::ExitFrame& f = t.exit_frames[r.frames_at + n];
      if (r.to_host) {
        std::printf("    the host's frame at pc %u:", f.pc);
      } else {
        std::printf("    a frame of body %u at point %u:", f.body, f.point);
      }
      for (uint32_t k = 0; k < f.values; ++k) {
        std::string v = exit_value_text(t.exit_values[f.values_at + k], r.to_host);
        std::printf("%s %s", k == 0 ? "" : ",", v.c_str());
      }
      std::printf("\n");
    }
  }
}

Result<std::unique_ptr<jit::Code>> compile_one(const CompileCommand& c, CompileWorld& world,
                                               const jit::Function& f, MethodId m,
                                               const jit::BodyProfile& seen) {
  Copy copy = c.instrumented ? Copy::kInstrumented : Copy::kPlain;
  if (c.baseline) {
    jit::ProbePlan plan = jit::plan_probes(f, {});
    return world.baseline(m, {.copy = copy, .probes = &plan});
  }
  PassPrinter passes(f);
  jit::OptimizeRequest r{.block_counts = seen.blocks, .sample = seen.sample, .copy = copy};
  r.targets = seen.targets;
  r.uncommon_traps = c.cold_exits;
  if (c.osr_loop >= 0) r.osr_loop = LoopId(static_cast<uint32_t>(c.osr_loop));
  if (wants(c, "passes")) r.observer = &passes;
  return world.optimized(m, r, c.inlining);
}

int dump(const CompileCommand& c, Functions& fs) {
  MethodId m = find_function(fs, c.function);
  if (!m.valid()) return fail(kFailed, c.file + ": " + no_function(fs, c.function));
  const jit::Function& f = fs.module.functions[m.index()];
  Profile profile;
  jit::BodyProfile seen;
  if (!c.profile.empty()) {
    Result<ProfileFile> p = load_profile(c.profile);
    if (!p) return fail(p.error());
    profile = std::move(p->profile);
    double runs = static_cast<double>(p->info.weight) / ProfileInfo::kRunWeight;
    note_own_probes(fs, profile, runs > 0 ? runs : 1);
    Result<jit::BodyProfile> body = body_profile(fs, m, profile);
    if (!body) return fail(kFailed, c.profile + ": " + body.error().message);
    seen = std::move(*body);
    if (seen.blocks.empty()) {
      std::fprintf(stderr, "uptier: %s: the profile has no %s\n", c.profile.c_str(),
                   f.name.c_str());
    }
  }
  auto world = CompileWorld::create(fs, c.profile.empty() ? nullptr : &profile, kCodeBudget);
  if (!world) return fail(kFailed, world.error().message);
  (*world)->lines = wants(c, "lines");
  if (wants(c, "ir")) print_out("== ir\n" + jit::to_text(f));
  auto code = compile_one(c, **world, f, m, seen);
  if (!code) return fail(kFailed, code.error().message);
  if (wants(c, "listing")) print_listing(f, **world, **code, seen.blocks);
  if (wants(c, "probes")) print_probes(**world, **code);
  if (wants(c, "lines")) print_lines(**world, **code);
  if (wants(c, "frames")) {
    print_frames(f);
    print_exits(**code);
  }
  return kOk;
}

// One compiler over all functions of a file.
struct Speed {
  const char* compiler;
  double seconds = 0;
  uint64_t functions = 0, failed = 0, instructions = 0, wasm_bytes = 0, code_bytes = 0;
  uint64_t line_rows = 0;  // with --lines
};

uint64_t size_of(const jit::Function& f) {
  uint64_t n = 0;
  for (Block b : f.layout) n += f.block(b).insts.size();
  return n;
}

// Their numbers in the file, sizes and names.
int list_functions(const CompileCommand& c, const Functions& fs) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  if (!c.json) std::printf("%8s %10s %10s  %s\n", "number", "IR insts", "bytes", "name");
  for (uint32_t i = 0; i < fs.module.functions.size(); ++i) {
    const jit::Function& f = fs.module.functions[i];
    const uint64_t bytes = fs.bytes.empty() ? 0 : fs.bytes[i];
    if (c.json) {
      list.push_back({{"number", fs.first + i},
                      {"name", f.name},
                      {"ir_instructions", size_of(f)},
                      {"wasm_bytes", bytes}});
    } else {
      std::printf("%8u %10llu %10llu  %s\n", fs.first + i,
                  static_cast<unsigned long long>(size_of(f)),
                  static_cast<unsigned long long>(bytes), f.name.c_str());
    }
  }
  return c.json ? print_json({{"functions", std::move(list)}}) : int{kOk};
}

template <typename Compile>
Result<Speed> measure(const char* compiler, const Functions& fs, bool lines, Compile compile) {
  Speed s{.compiler = compiler};
  auto world = CompileWorld::create(fs, nullptr, kCodeBudget, true);
  if (!world) return world.error();
  (*world)->lines = lines;
  std::vector<std::unique_ptr<jit::Code>> in_service;  // as code of a runtime is
  for (uint32_t i = 0; i < fs.module.functions.size(); ++i) {
    auto start = std::chrono::steady_clock::now();
    auto code = compile(**world, MethodId(i));
    s.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    s.functions++;
    if (!code) {
      s.failed++;
      continue;
    }
    s.instructions += size_of(fs.module.functions[i]);
    s.wasm_bytes += fs.bytes.empty() ? 0 : fs.bytes[i];
    s.code_bytes += (*code)->size();
    s.line_rows += (*code)->tables().lines.size();
    in_service.push_back(std::move(*code));
  }
  return s;
}

nlohmann::json speed_json(const Speed& s, const Functions& fs) {
  return {{"compiler", s.compiler},
          {"seconds", s.seconds},
          {"read_seconds", fs.read_seconds},
          {"describe_seconds", fs.describe_seconds},
          {"verify_seconds", fs.verify_seconds},
          {"functions", s.functions},
          {"failed", s.failed},
          {"ir_instructions", s.instructions},
          {"wasm_bytes", s.wasm_bytes},
          {"code_bytes", s.code_bytes},
          {"line_rows", s.line_rows},
          {"line_row_bytes", s.line_rows * sizeof(jit::LineRow)}};
}

int show_speeds(const CompileCommand& c, const Functions& fs) {
  auto baseline = measure("baseline", fs, c.lines,
                          [](CompileWorld& w, MethodId m) { return w.baseline(m, {}); });
  auto optimized = measure("optimized", fs, c.lines,
                           [](CompileWorld& w, MethodId m) { return w.optimized(m, {}, true); });
  if (!baseline) return fail(kFailed, baseline.error().message);
  if (!optimized) return fail(kFailed, optimized.error().message);
  if (c.speed == "json") {
    print_out(nlohmann::json{speed_json(*baseline, fs), speed_json(*optimized, fs)}.dump(2) + "\n");
    return kOk;
  }
  std::printf("%-10s %9s %11s %12s %11s %10s %9s\n", "compiler", "functions", "IR insts",
              "ns per inst", "Wasm MB/s", "code KiB", "ms");
  for (const Speed* s : {&*baseline, &*optimized}) {
    std::printf("%-10s %9llu %11llu %12.1f %11.2f %10llu %9.1f\n", s->compiler,
                static_cast<unsigned long long>(s->functions),
                static_cast<unsigned long long>(s->instructions),
                s->seconds * 1e9 / static_cast<double>(std::max<uint64_t>(s->instructions, 1)),
                static_cast<double>(s->wasm_bytes) / 1e6 / (s->seconds + fs.seconds()),
                static_cast<unsigned long long>(s->code_bytes >> 10), s->seconds * 1e3);
  }
  if (c.lines) {
    std::printf("rows of lines: %llu and %llu, %zu bytes each\n",
                static_cast<unsigned long long>(baseline->line_rows),
                static_cast<unsigned long long>(optimized->line_rows), sizeof(jit::LineRow));
  }
  std::printf("in both rows of MB/s: reading %.1f ms, describing %.1f ms, verifying %.1f ms\n",
              fs.read_seconds * 1e3, fs.describe_seconds * 1e3, fs.verify_seconds * 1e3);
  return kOk;
}

}  // namespace

int compile(const CompileCommand& c) {
  Result<std::vector<uint8_t>> bytes = read_file(c.file);
  if (!bytes) return fail(bytes.error());
  Result<Functions> fs = read_functions(c.file, *bytes);
  if (!fs) return fail(fs.error());
  if (c.list) return list_functions(c, *fs);
  return c.speed.empty() ? dump(c, *fs) : show_speeds(c, *fs);
}

}  // namespace uptier::tools
