// Pseudo-probes of a runtime's code, read by LLVM's own tools: their counts equal those that follow from
// the rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "profile/formats/probe_elf.h"
#include "profile/formats/probed_run.h"
#include "tests/support/llvm_profile_text.h"
#include "tests/support/random.h"
#include "tests/support/tool_dir.h"
#include "tests/support/workshop.h"

namespace uptier::test::pseudo_probe_test {
namespace {

using Kind = ImageRow::Kind;

// The counts of probes by the rows themselves: no addresses, no encoding.
class Truth {
 public:
  explicit Truth(const CodeImages& images) : images_(images) {}

  // The path to a body in its code: "outer:3 @ leaf".
  std::string path(const CodeImage& c, uint32_t body) const {
    const ImageBody& b = c.bodies[body];
    const std::string name = images_.methods[b.method].name;
    if (body == 0) return name;
    return path(c, b.parent) + ":" + std::to_string(b.site) + " @ " + name;
  }
  // The same for a call, with its site: a caller's part of a context.
  std::string call_path(const CodeImage& c, const ImageRow& call) const {
    return path(c, call.body) + ":" + std::to_string(call.site);
  }

  static const ImageRow* call_returning_to(const CodeImage& c, uint32_t offset) {
    for (const ImageRow& r : c.rows) {
      if (r.is_call() && r.returns == offset) return &r;
    }
    return nullptr;
  }

  // Returns the rows that a sample counts for.
  static std::vector<const ImageRow*> rows_at(const CodeImage& c, uint32_t offset) {
    std::vector<const ImageRow*> blocks, found;
    for (const ImageRow& r : c.rows) {
      if (!r.is_call()) blocks.push_back(&r);
    }
    const ImageRow* last = blocks[0];
    for (const ImageRow* r : blocks) {
      if (r->offset <= offset) last = r;
    }
    add_rows_from(c, blocks, last->offset, found);
    if (last->kind != Kind::kContinues) return found;
    const ImageRow* start = nullptr;
    for (const ImageRow* r : blocks) {
      if (r == last) break;
      const bool same = r->site == last->site && r->body == last->body;
      if (same && r->kind == Kind::kBlock) start = r;
    }
    if (start != nullptr && start->offset != last->offset) {
      add_rows_from(c, blocks, start->offset, found);
    }
    return found;
  }

  ProbeCounts flat() const {
    ProbeCounts counts;
    for (const ImagedStack& s : images_.stacks) {
      const CodeImage& c = images_.codes[s.frames[0].code];
      for (const ImageRow* r : rows_at(c, s.frames[0].offset)) {
        counts[path(c, r->body) + "#" + std::to_string(r->site)] += s.ns / 1000;
      }
    }
    return counts;
  }

  // An entry of an inlined body counts for the call in whose place the body is.
  ProbeCounts with_contexts() const {
    ProbeCounts counts;
    for (const ImagedStack& s : images_.stacks) {
      const CodeImage& c = images_.codes[s.frames[0].code];
      const std::string callers = context_of(s);
      for (const ImageRow* r : rows_at(c, s.frames[0].offset)) {
        counts[callers + path(c, r->body) + "#" + std::to_string(r->site)] += s.ns / 1000;
        if (r->kind != Kind::kBlock || r->site != 1 || r->body == 0) continue;
        const ImageBody& b = c.bodies[r->body];
        counts[callers + path(c, b.parent) + "#" + std::to_string(b.site)] += s.ns / 1000;
      }
    }
    return counts;
  }
  std::string context_of(const ImagedStack& s) const {
    std::string context;
    for (size_t i = 1; i < s.frames.size(); ++i) {
      const CodeImage& c = images_.codes[s.frames[i].code];
      const ImageRow* call = call_returning_to(c, s.frames[i].offset);
      if (call == nullptr) break;
      context = call_path(c, *call) + " @ " + context;
    }
    return context;
  }

 private:
  // The blocks that start at an offset, and the calls from there to the next row of a block.
  static void add_rows_from(const CodeImage& c, const std::vector<const ImageRow*>& blocks,
                            uint32_t from, std::vector<const ImageRow*>& to) {
    uint32_t end = UINT32_MAX;
    for (const ImageRow* r : blocks) {
      if (r->offset == from && r->kind == Kind::kBlock) to.push_back(r);
      if (r->offset > from) end = std::min(end, r->offset);
    }
    for (const ImageRow& r : c.rows) {
      if (r.is_call() && r.offset >= from && r.offset < end) to.push_back(&r);
    }
  }

  const CodeImages& images_;
};

constexpr const char* kProfgen =
    "llvm-profgen-22 --binary=code.elf --load-function-from-symbol --format=text ";
// Without merging and moving of contexts.
constexpr const char* kContexts =
    "--csprof-merge-cold-context=false --csspgo-preinliner=false --gen-cs-nested-profile=false ";

class PseudoProbe : public ToolDir {
 protected:
  static int64_t look(int64_t n) { return n; }

  // Programs with loops, branches, calls of all kinds, and inlined bodies in inlined bodies.
  void make() {
    Options o;
    for (auto [name, value] :
         std::initializer_list<std::pair<const char*, const char*>>{{"keep_code", "on"},
                                                                    {"policy", "always"},
                                                                    {"workers", "0"},
                                                                    {"flush_first", "1"},
                                                                    {"interval", "2"},
                                                                    {"overhead_budget", "0"},
                                                                    {"measure_rates", "off"}}) {
      ASSERT_TRUE(o.set(name, value).ok()) << name;
    }
    shop_ = std::make_unique<Workshop>(o);
    scope_ = std::make_unique<ThreadScope>(*shop_->runtime);
    const MethodId leaf = shop_->add("leaf", kOne, [](FunctionBuilder& b) {
      Block asks = b.create_block(), done = b.create_block();
      b.branch(b.unary(Opcode::kEqz, b.param(0)), done, asks);
      b.seal(asks);
      b.seal(done);
      b.switch_to(asks);
      b.ret(b.call_host(host_function("look", look), {b.param(0)}));
      b.switch_to(done);
      b.ret(b.i64(3));
    });
    const MethodId middle = shop_->add("middle", kOne, [leaf](FunctionBuilder& b) {
      loop_down(b, b.param(0), b.i64(0), [&](Value sum, Value x) {
        Value args[] = {x};
        return b.binary(Opcode::kAdd, sum, b.call(leaf, kOne, args));
      });
    });
    const MethodId dispatch = shop_->dispatcher();
    const MethodId twice = shop_->add("twice", kOne, [middle, leaf](FunctionBuilder& b) {
      Value once[] = {b.call(middle, kOne, std::array{b.param(0)})};
      b.ret(b.call(leaf, kOne, once));
    });
    for (uint64_t i = 0; i < 200; ++i) {
      for (const MethodId m : {leaf, middle, twice}) ASSERT_TRUE(shop_->call(m, {i % 7}).ok());
      ASSERT_TRUE(shop_->call(dispatch, {shop_->address(twice), i % 5}).ok());
    }
    shop_->runtime->flush();
  }

  // Returns the code of the runtime with invented samples: on every row, below up to two callers.
  CodeImages images_with_samples() const {
    CodeImages images = shop_->runtime->code_images();
    images.stacks.clear();
    Random random(7);
    std::vector<ImageFrame> calls;
    for (uint32_t c = 0; c < images.codes.size(); ++c) {
      for (const ImageRow& r : images.codes[c].rows) {
        if (r.is_call()) calls.push_back({c, r.returns});
      }
    }
    for (uint32_t c = 0; c < images.codes.size(); ++c) {
      for (const ImageRow& r : images.codes[c].rows) {
        for (size_t callers = 0; callers < 3; ++callers) {
          ImagedStack s{{{c, r.offset}}, 1, 1000 * (1 + random.below(50))};
          for (size_t i = 0; i < callers; ++i)
            s.frames.push_back(calls[random.below(calls.size())]);
          if (is_plain(images, s)) images.stacks.push_back(std::move(s));
        }
      }
    }
    return images;
  }

  // LLVM folds repeated frames, and has no form for a return that leads out of the program.
  static bool is_plain(const CodeImages& images, const ImagedStack& s) {
    const Truth truth(images);
    const CodeImage& leaf = images.codes[s.frames[0].code];
    if (leaf.bytes[s.frames[0].offset] == 0xc3 && s.frames.size() == 1) return false;
    std::set<std::string> frames;
    size_t all = add_frames(truth.context_of(s), frames);
    if (frames.size() != all) return false;
    for (uint32_t b = 0; b < leaf.bodies.size(); ++b) {
      std::set<std::string> own;
      add_frames(truth.path(leaf, b), own);
      for (const std::string& f : own) {
        if (frames.contains(f)) return false;
      }
    }
    return true;
  }
  // Adds the frames of a path that have a site. Returns how many there were.
  static size_t add_frames(const std::string& path, std::set<std::string>& to) {
    size_t count = 0;
    for (size_t at = 0, end; (end = path.find(" @ ", at)) != path.npos; at = end + 3, ++count) {
      to.insert(path.substr(at, end - at));
    }
    return count;
  }

  void write_files(const CodeImages& images) const {
    const profile::ProbedRun run = profile::probed_run(images);
    write_text("code.elf", profile::to_probe_elf(run.file));
    write_text("flat.txt", profile::to_unsymbolized(run.samples));
    write_text("contexts.txt", profile::to_perfscript(run.samples));
  }
  ProbeCounts profgen(const std::string& words) const {
    const RunResult r = in_dir(kProfgen + words + " -o out.prof");
    EXPECT_EQ(r.code, 0) << r.err;
    return counts_in_profile(slurp(path("out.prof")));
  }

  std::unique_ptr<Workshop> shop_;
  std::unique_ptr<ThreadScope> scope_;
};

// Returns the first few differences, or "".
std::string difference(const ProbeCounts& got, const ProbeCounts& want) {
  std::string out;
  std::set<std::string> keys;
  for (const auto& [key, n] : got) keys.insert(key);
  for (const auto& [key, n] : want) keys.insert(key);
  int shown = 0;
  for (const std::string& key : keys) {
    const auto a = got.find(key), b = want.find(key);
    const uint64_t x = a == got.end() ? 0 : a->second, y = b == want.end() ? 0 : b->second;
    if (x != y && ++shown <= 8) {
      out += key + ": " + std::to_string(x) + ", not " + std::to_string(y) + "\n";
    }
  }
  return out;
}

TEST_F(PseudoProbe, images_are_of_every_kind_of_code) {
  ASSERT_NO_FATAL_FAILURE(make());
  const CodeImages images = shop_->runtime->code_images();
  uint64_t baseline = 0, instrumented = 0, optimized = 0, inlined = 0, freed = 0, nested = 0;
  uint64_t direct = 0, indirect = 0, known = 0;
  for (const CodeImage& c : images.codes) {
    optimized += c.tier == Tier::kOptimized;
    baseline += c.tier == Tier::kBaseline && c.copy == Copy::kPlain;
    instrumented += c.copy == Copy::kInstrumented;
    freed += c.freed;
    for (const ImageBody& b : c.bodies) nested += b.parent != 0;
    inlined += c.bodies.size() - 1;
    for (const ImageRow& r : c.rows) {
      EXPECT_LT(r.offset, c.bytes.size());
      direct += r.kind == Kind::kCall;
      indirect += r.kind == Kind::kIndirectCall;
      known += r.callee != ImageRow::kNoCallee;
      if (!r.is_call()) continue;
      EXPECT_NE(r.site, 0u);
      const uint8_t first = c.bytes[r.offset];  // e8: call rel32; ff: call; 41: a prefix of it
      EXPECT_TRUE(first == 0xe8 || first == 0xff || first == 0x41) << int{first};
    }
  }
  EXPECT_GE(baseline, 4u);
  EXPECT_GE(instrumented, 3u);
  EXPECT_GE(optimized, 3u);
  EXPECT_GE(inlined, 2u);
  EXPECT_GE(nested, 1u);
  EXPECT_GE(freed, 1u);
  EXPECT_GE(direct, 10u);
  EXPECT_GE(indirect, 2u);
  EXPECT_GE(known, 4u);
}

TEST_F(PseudoProbe, profgen_counts_as_the_rows_do) {
  if (!installed("llvm-profgen-22")) GTEST_SKIP() << "SKIPPED: llvm-profgen-22 is not installed";
  ASSERT_NO_FATAL_FAILURE(make());
  const CodeImages images = images_with_samples();
  ASSERT_GT(images.stacks.size(), 100u);
  write_files(images);
  const ProbeCounts flat = Truth(images).flat();
  EXPECT_GT(flat.size(), 20u);
  EXPECT_EQ(difference(profgen("--unsymbolized-profile=flat.txt --use-offset=false"), flat), "");
  const ProbeCounts contexts = Truth(images).with_contexts();
  EXPECT_GT(contexts.size(), 2 * flat.size());
  EXPECT_EQ(difference(profgen(std::string(kContexts) + "--perfscript=contexts.txt"), contexts),
            "");
}

// Returns the probes that llvm-bolt lists: address, function, id and kind.
std::multiset<std::string> listed(const std::string& text) {
  std::multiset<std::string> probes;
  std::istringstream lines(text);
  std::string address;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Address:")) address = line.substr(line.find_first_of("0123456789"));
    const size_t at = line.find("FUNC: ");
    if (at == std::string::npos) continue;
    std::istringstream words(line.substr(at));
    std::string word, name, id, kind;
    words >> word >> name >> word >> id >> word >> kind;
    probes.insert(address + " " + name + " " + id + " " + kind);
  }
  return probes;
}

TEST_F(PseudoProbe, bolt_lists_every_row) {
  if (!installed("llvm-bolt-22")) GTEST_SKIP() << "SKIPPED: llvm-bolt-22 is not installed";
  ASSERT_NO_FATAL_FAILURE(make());
  const profile::ProbedRun run = profile::probed_run(shop_->runtime->code_images());
  write_text("code.elf", profile::to_probe_elf(run.file));
  std::multiset<std::string> rows;
  for (const profile::ProbedCode& c : run.file.codes) {
    for (const profile::PlacedProbe& p : c.probes) {
      static constexpr const char* kKinds[] = {"Block", "IndirectCall", "DirectCall"};
      rows.insert(std::to_string(p.address) + " " +
                  run.file.functions[c.bodies[p.body].function].name + " " + std::to_string(p.id) +
                  " " + kKinds[static_cast<int>(p.kind)]);
    }
  }
  ASSERT_GT(rows.size(), 50u);
  const RunResult r = in_dir("llvm-bolt-22 code.elf -o b --print-pseudo-probes=decode");
  EXPECT_EQ(listed(r.out), rows) << r.err;
}

// The files of a run agree with one another.
TEST_F(PseudoProbe, a_run_writes_what_llvm_reads) {
  const RunResult ran = tool("run --pseudo-probe out --sample=4000 " + wasm_path("mix") + " 4000");
  ASSERT_EQ(ran.code, 0) << ran.err;
  uint64_t samples = 0;
  std::istringstream lines(slurp(path("out/samples.unsymbolized.txt")));
  std::string line;
  for (std::getline(lines, line); std::getline(lines, line);) {
    if (line.find('-') == std::string::npos || line.find("->") != std::string::npos) break;
    samples += std::stoull(line.substr(line.find(':') + 1));
  }
  EXPECT_GT(samples, 20'000u) << "microseconds";
  EXPECT_EQ(slurp(path("out/code.elf")).substr(0, 4),
            "\x7f"
            "ELF");
  if (!installed("llvm-profgen-22")) GTEST_SKIP() << "SKIPPED: llvm-profgen-22 is not installed";
  in_dir("cp out/* .");
  uint64_t flat = 0, contexts = 0;
  std::set<std::string> functions;
  for (const auto& [key, n] :
       profgen("--unsymbolized-profile=samples.unsymbolized.txt --use-offset=false")) {
    functions.insert(key.substr(0, key.find_first_of(":#")));
    flat += n;
  }
  EXPECT_GE(flat, samples);  // an instruction may have several probes
  EXPECT_TRUE(functions.contains("list_round") || functions.contains("sort"));
  bool below_main = false;
  for (const auto& [key, n] :
       profgen(std::string(kContexts) + "--perfscript=samples.perfscript.txt")) {
    below_main |= key.find("main:") != key.npos && key.find("_round:") != key.npos;
    contexts += n;
  }
  EXPECT_TRUE(below_main);
  EXPECT_GE(contexts, flat);  // and entries of inlined bodies count for their calls, too
  const RunResult shown = in_dir("llvm-profdata-22 show --sample out.prof");
  EXPECT_NE(shown.out.find("CFG checksum"), std::string::npos) << shown.err;
}

TEST_F(PseudoProbe, a_directory_that_cannot_be_made_is_an_error_before_the_run) {
  write_text("file", "");
  const RunResult r = tool("run --pseudo-probe file/sub " + wasm_path("mix"));
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.out, "");
  EXPECT_NE(r.err.find("file/sub: the directory for --pseudo-probe cannot be made"),
            std::string::npos)
      << r.err;
}

TEST_F(PseudoProbe, a_run_without_samples_says_so) {
  const RunResult r = tool("run --pseudo-probe out -O sample_hz=0 " + wasm_path("mix"));
  EXPECT_EQ(r.code, 0);
  EXPECT_NE(r.err.find("no sample was in compiled code"), std::string::npos) << r.err;
  EXPECT_EQ(slurp(path("out/samples.unsymbolized.txt")), "0\n0\n");
}

}  // namespace
}  // namespace uptier::test::pseudo_probe_test
