#include "profile/formats/tsv.h"

#include "profile/base/checksum.h"
#include "profile/base/numbers.h"
#include "profile/data/inlined.h"
#include "profile/data/schema.h"
#include "profile/data/text.h"
#include "profile/formats/tsv_rows.h"

namespace uptier::profile {

uint64_t schema_name(const Schema& schema) {
  const std::string text = to_text(schema);
  return XXH3_64bits(text.data(), text.size());
}

namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\t': out += "\\t"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\\': out += "\\\\"; break;
      case '\0': out += "\\0"; break;
      default: out += c;
    }
  }
  return out;
}

// A row without the columns that are the same for a whole method.
struct TsvRow {
  std::string_view kind;
  uint64_t site = 0;
  std::string word;
  uint64_t key_module = 0;
  uint64_t key = 0;
  std::string_view rule = "sum";
  uint64_t count = 0;
  uint64_t estimate = 0;
};

std::string voter_of(const ProfileInfo& info) {
  if (!info.host.empty()) return "host " + info.host;
  if (info.uploads.empty()) return "";
  const UploadId& id = info.uploads.front();
  return "run " + std::to_string(id.time) + "-" + std::to_string(id.hash);
}

class TsvWriter {
 public:
  std::string run(const Profile& profile, const ProfileInfo& info, const CallProfile& calls) {
    out_ = std::string(kTsvHead) + "\n";
    tail_ = "\t" + escaped(voter_of(info)) + "\n";
    add_file(info);
    add_calls(calls);
    for (const auto& [key, m] : profile.methods) {
      if (m.check().ok()) add_method(m);
    }
    for (const auto& [at, m] : profile.other_code) {
      if (m.check().ok()) add_method(m);
    }
    for (const auto& [key, body] : profile.inlined) {
      if (body.check(key).ok()) add_inlined(key, body);
    }
    return std::move(out_);
  }

 private:
  void add(const TsvRow& row) {
    if (row.rule == "sum" && row.count == 0 && row.estimate == 0) return;
    out_ += head_;
    out_.append(row.kind).append("\t").append(std::to_string(row.site)).append("\t");
    out_.append(row.word).append("\t").append(std::to_string(row.key_module)).append("\t");
    out_.append(std::to_string(static_cast<int64_t>(row.key))).append("\t").append(row.rule);
    out_.append("\t").append(std::to_string(row.count));
    out_.append("\t").append(std::to_string(row.estimate)).append(tail_);
  }

  void start(const MethodKey& key, std::string_view text, uint64_t cfg_hash, uint64_t schema) {
    head_ = std::to_string(key.module_key) + "\t" + std::to_string(key.function_index) + "\t" +
            escaped(guarded(text)) + "\t" + std::to_string(cfg_hash) + "\t" +
            std::to_string(schema) + "\t";
  }

  void add_calls(const CallProfile& calls) {
    for (const auto& [key, shape] : calls.shapes) {
      start(key, shape_text(shape), shape.cfg_hash, 0);
      add({.kind = "shape", .word = "code", .rule = "greatest"});
    }
    for (const auto& [call, count] : calls.graph) {
      start(call.first, "", 0, 0);
      add({.kind = "call",
           .word = "callee",
           .key_module = call.second.module_key,
           .key = call.second.function_index,
           .estimate = count});
    }
    for (const auto& [key, first] : calls.first) {
      start(key, "", 0, 0);
      add({.kind = "first_call", .word = "positions", .count = first.positions});
      add({.kind = "first_call", .word = "runs", .count = first.runs});
    }
    start("");
    add({.kind = "time", .word = "asked", .count = calls.time.asked_ns});
    add({.kind = "time", .word = "squares", .count = calls.time.squares});
    std::vector<PathFrame> path;
    for (const PathTime& outermost : calls.time.root.callees) add_path(outermost, path);
  }

  void add_path(const PathTime& p, std::vector<PathFrame>& path) {
    path.push_back(p.frame);
    start(call_path_text(path));
    add({.kind = "time", .word = "path", .count = p.ns, .estimate = p.samples});
    for (const PathTime& callee : p.callees) add_path(callee, path);
    path.pop_back();
  }

  void start(std::string_view text) { start({}, text, 0, 0); }

  void add_file(const ProfileInfo& info) {
    const std::pair<const char*, const std::string*> texts[] = {
        {"engine", &info.engine}, {"host", &info.host}, {"schedule", &info.schedule}};
    for (const auto& [word, text] : texts) {
      start(*text);
      if (!text->empty()) add({.kind = "file", .word = word, .rule = "same"});
    }
    start("");
    const std::pair<const char*, uint64_t> sums[] = {
        {"runs", info.runs}, {"weight", info.weight}, {"forgotten", info.forgotten}};
    for (const auto& [word, count] : sums) add({.kind = "file", .word = word, .count = count});
    add({.kind = "file", .word = "time", .rule = "greatest", .count = info.time});
    if (info != ProfileInfo{}) {
      add({.kind = "file", .word = "interval", .rule = "same", .count = info.interval});
    }
    for (const uint64_t module : info.modules) {
      add({.kind = "file", .word = "module", .key_module = module, .rule = "same"});
    }
    for (const UploadId& id : info.uploads) {
      add({.kind = "file",
           .word = "upload",
           .key_module = id.time,
           .key = id.hash,
           .rule = "same"});
    }
  }

  void add_inlined(const InlinedKey& key, const InlinedBody& body) {
    start(key.root, place_text(key, body.code), body.code[0], 0);
    for (const auto& [site, block] : body.blocks) {
      add({.kind = "inlined",
           .site = site,
           .word = "block",
           .count = block.count,
           .estimate = block.estimate});
      add({.kind = "inlined", .site = site, .word = "samples", .count = block.samples});
    }
    for (const auto& [at, site] : body.sites) {
      const MethodProfile m = as_method(at.first, at.second, site);
      const std::string kind = std::string(kInlinedKind) + std::string(slot_kind_name(at.first));
      add_words(m, m.schema.slots[0], kind);
      add_table(m, m.schema.slots[0], kind);
      add({.kind = kind, .site = at.second, .word = "samples", .count = site.samples});
    }
  }

  void add_method(const MethodProfile& m) {
    start(m.key, m.name, m.schema.cfg_hash, schema_name(m.schema));
    const std::pair<const char*, uint64_t> sums[] = {{"calls", m.calls},
                                                     {"sampled_calls", m.sampled_calls},
                                                     {"guessed_calls", m.guessed_calls},
                                                     {"iterations", m.iterations},
                                                     {"bursts", m.bursts},
                                                     {"weight_squares", m.weight_squares}};
    for (const auto& [word, count] : sums) add({.kind = "method", .word = word, .count = count});
    add({.kind = "method", .word = "version", .rule = "same", .count = m.schema.version});
    add({.kind = "method", .word = "interval", .rule = "same", .count = m.interval});
    if (m.time != 0) {
      add({.kind = "method", .word = "time", .rule = "greatest", .count = m.time});
    }
    if (m.behind) add({.kind = "method", .word = "behind", .rule = "greatest", .count = 1});
    for (const SlotRun& run : runs_of(m.schema)) {
      add({.kind = slot_kind_name(run.kind),
           .site = run.first_site,
           .word = "slots",
           .key = run.count,
           .rule = "same",
           .count = run.top});
    }
    for (const Slot& slot : m.schema.slots) {
      add_words(m, slot, slot_kind_name(slot.kind));
      add_table(m, slot, slot_kind_name(slot.kind));
    }
  }

  void add_words(const MethodProfile& m, const Slot& slot, std::string_view kind) {
    const std::span<const Word> words = words_of(slot.kind);
    const uint64_t* counts = &m.counts[slot.word];
    const uint64_t* estimates = &m.estimates[slot.word];
    for (uint32_t i = 0; i < words.size(); ++i) {
      TsvRow row{.kind = kind,
                 .site = slot.site,
                 .word = std::string(words[i].name),
                 .count = counts[i],
                 .estimate = estimates[i]};
      switch (words[i].rule) {
        case WordRule::kSum:
        case WordRule::kOther: add(row); break;
        case WordRule::kWide: add_limbs(row, counts + i, estimates + i); break;
        case WordRule::kWideHigh: break;
        case WordRule::kGreatest:
          row.rule = "greatest";
          add(row);
          break;
        case WordRule::kMin:
        case WordRule::kMax:
          row.rule = words[i].rule == WordRule::kMin ? "min" : "max";
          if (counts[0] != 0) add(row);
          break;
      }
    }
  }

  void add_limbs(TsvRow row, const uint64_t* count, const uint64_t* estimate) {
    const std::string name = row.word;
    for (unsigned i = 0; i < kLimbs; ++i) {
      const unsigned shift = i % 2 * kLimbBits;
      row.word = name + "." + std::to_string(i);
      row.count = static_cast<uint32_t>(count[i / 2] >> shift);
      row.estimate = static_cast<uint32_t>(estimate[i / 2] >> shift);
      add(row);
    }
  }

  void add_table(const MethodProfile& m, const Slot& slot, std::string_view kind) {
    const Table* table = m.table(slot.kind, slot.site);
    if (table == nullptr) return;
    for (const auto& [key, entry] : *table) {
      add({.kind = kind,
           .site = slot.site,
           .word = "entry",
           .key_module = key.module_key,
           .key = key.value,
           .count = entry.count,
           .estimate = entry.estimate});
    }
  }

  std::string out_;
  std::string head_, tail_;
};

}  // namespace

std::string to_tsv(const Profile& profile, const ProfileInfo& info, const CallProfile& calls) {
  return TsvWriter().run(profile, info, calls);
}

}  // namespace uptier::profile
