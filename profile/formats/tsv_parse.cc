// Reads rows: each is added to the data of its key; then schemas are assembled and checked.
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "profile/base/numbers.h"
#include "profile/data/inlined.h"
#include "profile/data/schema.h"
#include "profile/data/text.h"
#include "profile/formats/tsv.h"
#include "profile/formats/tsv_rows.h"

namespace uptier::profile {
namespace {

constexpr uint64_t kLeastWords = uint64_t{1} << 20;  // of all schemas, even if the text is short
constexpr uint64_t kWordsAByte = 4;

struct ParsedRow {
  MethodKey method;
  std::string name;
  uint64_t cfg_hash = 0;
  uint64_t schema = 0;
  std::string_view kind;
  SiteId site = 0;
  std::string_view word;
  uint64_t key_module = 0;
  uint64_t key = 0;
  uint64_t count = 0;
  uint64_t estimate = 0;
};

// A value that all rows should agree on; 0 if they differ.
struct Same {
  bool seen = false;
  uint64_t value = 0;

  void add(uint64_t n) {
    value = !seen || value == n ? n : 0;
    seen = true;
  }
};

// The least or the greatest value; 0 if there was none.
struct Extreme {
  bool seen = false;
  uint64_t value = 0;

  void add(bool least, uint64_t n) {
    const bool less = static_cast<int64_t>(n) < static_cast<int64_t>(value);
    value = !seen || less == least ? n : value;
    seen = true;
  }
};

struct SumWord {
  uint64_t count = 0;
  uint64_t estimate = 0;
};

// The combined rows of one method and schema.
struct Gathered {
  std::string name;
  uint64_t cfg_hash = 0;
  Same version, interval;
  uint64_t calls = 0, sampled_calls = 0, guessed_calls = 0, iterations = 0, bursts = 0,
           weight_squares = 0, time = 0;
  bool behind = false;
  std::set<std::tuple<SlotKind, SiteId, uint32_t, uint32_t>> runs;  // kind, first, number, top
  std::map<std::tuple<SlotKind, SiteId, uint32_t>, SumWord> sums;   // by word
  std::map<std::tuple<SlotKind, SiteId, uint32_t>, std::array<SumWord, kLimbs>> wide;
  std::map<std::tuple<SlotKind, SiteId, uint32_t>, Extreme> extremes;
  Tables tables;
};

std::optional<std::string> unescaped(std::string_view text) {
  static constexpr std::string_view kMarks = "tnr\\0bf'",
                                    kMeant = std::string_view("\t\n\r\\\0\b\f'", 8);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const size_t mark = ++i < text.size() ? kMarks.find(text[i]) : std::string_view::npos;
    if (mark == std::string_view::npos) return std::nullopt;
    out += kMeant[mark];
  }
  return out;
}

std::optional<SlotKind> kind_named(std::string_view name) {
  for (auto kind = SlotKind::kBlock; kind <= SlotKind::kGauge;
       kind = static_cast<SlotKind>(static_cast<int>(kind) + 1)) {
    if (slot_kind_name(kind) == name) return kind;
  }
  return std::nullopt;
}

class TsvParser {
 public:
  explicit TsvParser(std::string_view text)
      : text_(text), words_left_(kLeastWords + kWordsAByte * text.size()) {}

  Result<ProfileFile> run() {
    if (!looks_like_tsv(text_)) return broken("the first line is not the header of a profile");
    size_t at = 0;
    for (; at < text_.size(); ++at) {
      const size_t end = text_.find('\n', at);
      if (end == std::string_view::npos) return broken("the line is cut off");
      if (Status s = take(text_.substr(at, end - at)); !s) return s.error();
      at = end;
      ++line_;
    }
    if (Status s = finish(); !s) return s.error();
    return std::move(file_);
  }

 private:
  Error broken(const std::string& rule) const {
    return {ErrorCode::kCorruptInput, "line " + std::to_string(line_) + ": " + rule};
  }

  Status take(std::string_view line) {
    if (line == kTsvHead || line == kTsvHeadVoterless) {  // the header of the next of several files
      columns_ = line == kTsvHead ? kTsvColumns : kTsvColumns - 1;
      return {};
    }
    std::array<std::string_view, kTsvColumns> columns;
    size_t count = 1;
    for (size_t at = 0;; ++count) {
      const size_t tab = line.find('\t', at);
      if (count <= kTsvColumns) columns[count - 1] = line.substr(at, tab - at);
      if (tab == std::string_view::npos) break;
      at = tab + 1;
    }
    if (count != columns_) {
      return broken(std::to_string(count) + " columns, not " + std::to_string(columns_));
    }
    ParsedRow row;
    if (Status s = read(columns, row); !s) return s;
    if (row.kind == "file") return take_file(row);
    if (row.kind == "shape" || row.kind == "call" || row.kind == "first_call") {
      return take_call(row);
    }
    if (row.kind == "time") return take_time(row);
    if (row.kind == "inlined") return take_inlined(row);
    if (row.kind.starts_with(kInlinedKind)) return take_inlined_site(row);
    Gathered& g = gathered_[{row.method, row.schema}];
    g.name = std::max(g.name, row.name);
    g.cfg_hash = row.cfg_hash;
    if (row.kind == "method") return take_method(row, g);
    const std::optional<SlotKind> kind = kind_named(row.kind);
    if (!kind) return broken("kind " + std::string(row.kind) + " is not known");
    if (row.word == "slots") return take_slots(row, *kind, g);
    if (row.word == "entry") return take_entry(row, *kind, g);
    return take_word(row, *kind, g);
  }

  Status read(const std::array<std::string_view, kTsvColumns>& columns, ParsedRow& row) const {
    std::optional<std::string> name = unescaped(columns[2]);
    if (!name) return broken("a backslash in the method's name that stands for nothing");
    row.name = unguarded(*name);
    uint64_t function = 0, site = 0;
    const std::pair<size_t, uint64_t*> numbers[] = {{0, &row.method.module_key},
                                                    {1, &function},
                                                    {3, &row.cfg_hash},
                                                    {4, &row.schema},
                                                    {6, &site},
                                                    {8, &row.key_module},
                                                    {11, &row.count},
                                                    {12, &row.estimate}};
    for (const auto& [i, number] : numbers) {
      const std::optional<uint64_t> n = parse_unsigned(columns[i]);
      if (!n) return broken("column " + std::to_string(i + 1) + " is no number");
      *number = *n;
    }
    const std::optional<Wide> key = parse_signed(columns[9], INT64_MIN, INT64_MAX);
    if (!key) return broken("column 10 is no number of 64 bits");
    if (function > UINT32_MAX || site > UINT32_MAX) return broken("a number of more than 32 bits");
    row.key = static_cast<uint64_t>(*key);
    row.method.function_index = static_cast<uint32_t>(function);
    row.site = static_cast<SiteId>(site);
    row.kind = columns[5];
    row.word = columns[7];
    return {};
  }

  void add(uint64_t& sum, uint64_t n) { file_.report.saturated += add_saturating(sum, n) ? 1 : 0; }

  Status take_file(const ParsedRow& row) {
    ProfileInfo& info = file_.info;
    const std::pair<const char*, uint64_t*> sums[] = {
        {"runs", &info.runs}, {"weight", &info.weight}, {"forgotten", &info.forgotten}};
    for (const auto& [word, sum] : sums) {
      if (row.word != word) continue;
      add(*sum, row.count);
      return {};
    }
    const std::pair<const char*, std::string*> texts[] = {
        {"engine", &info.engine}, {"host", &info.host}, {"schedule", &info.schedule}};
    for (const auto& [word, text] : texts) {
      if (row.word != word) continue;
      *text = std::max(*text, row.name);
      return {};
    }
    if (row.word == "time") {
      info.time = std::max(info.time, row.count);
    } else if (row.word == "interval") {
      interval_.add(row.count);
    } else if (row.word == "module") {
      modules_.insert(row.key_module);
    } else if (row.word == "upload") {
      uploads_.insert({row.key_module, row.key});
    } else {
      return broken("word " + std::string(row.word) + " of a file is not known");
    }
    return {};
  }

  Status take_call(const ParsedRow& row) {
    CallProfile& calls = file_.calls;
    if (row.kind == "shape" && row.word == "code") {
      std::optional<CodeShape> shape = parse_shape(row.name);
      if (!shape) return broken("the shape of its code is none");
      shape->cfg_hash = row.cfg_hash;
      CodeShape& kept = calls.shapes[row.method];
      if (kept < *shape) kept = std::move(*shape);
    } else if (row.kind == "call" && row.word == "callee") {
      if (row.key > UINT32_MAX) return broken("column 10 is no number of a function");
      if (row.estimate == 0) return {};
      add(calls.graph[{row.method, {row.key_module, static_cast<uint32_t>(row.key)}}],
          row.estimate);
    } else if (row.kind == "first_call" && (row.word == "positions" || row.word == "runs")) {
      if (row.count == 0) return {};
      FirstCall& first = calls.first[row.method];
      add(row.word == "runs" ? first.runs : first.positions, row.count);
    } else {
      return broken("word " + std::string(row.word) + " of kind " + std::string(row.kind) +
                    " is not known");
    }
    return {};
  }

  Status take_time(const ParsedRow& row) {
    TimeProfile& time = file_.calls.time;
    if (row.word == "asked") {
      add(time.asked_ns, row.count);
    } else if (row.word == "squares") {
      add(time.squares, row.count);
    } else if (row.word == "path") {
      const std::optional<std::vector<PathFrame>> path = parse_call_path(row.name);
      if (!path) return broken("the call path is none");
      time.add(*path, row.estimate, row.count);
    } else {
      return broken("word " + std::string(row.word) + " of kind time is not known");
    }
    return {};
  }

  Status take_inlined(const ParsedRow& row) {
    InlinedKey key{row.method, {}};
    std::vector<uint64_t> code = {row.cfg_hash};
    if (!parse_place(row.name, key, code)) return broken("the place of an inlined body is none");
    const bool samples = row.word == "samples";
    if (!samples && row.word != "block") {
      return broken("word " + std::string(row.word) + " of an inlined body is not known");
    }
    InlinedBlock more{row.count, row.estimate, 0};
    if (samples) more = {0, 0, row.count};
    if (more == InlinedBlock{}) return {};
    InlinedBlock& block = inlined_[{std::move(key), std::move(code)}].blocks[row.site];
    file_.report.saturated += profile::add(block, more);
    return {};
  }

  Status take_inlined_site(const ParsedRow& row) {
    InlinedKey key{row.method, {}};
    std::vector<uint64_t> code = {row.cfg_hash};
    if (!parse_place(row.name, key, code)) return broken("the place of an inlined body is none");
    const std::optional<SlotKind> kind = kind_named(row.kind.substr(kInlinedKind.size()));
    if (!kind) return broken("kind " + std::string(row.kind) + " is not known");
    GatheredSites& g = inlined_sites_[{std::move(key), std::move(code)}];
    g.places.emplace(*kind, row.site);
    if (row.word == "entry") return take_entry(row, *kind, g.words);
    if (row.word != "samples") return take_word(row, *kind, g.words);
    add(g.samples[{*kind, row.site}], row.count);
    return {};
  }

  Status take_method(const ParsedRow& row, Gathered& g) {
    const std::pair<const char*, uint64_t*> sums[] = {{"calls", &g.calls},
                                                      {"sampled_calls", &g.sampled_calls},
                                                      {"guessed_calls", &g.guessed_calls},
                                                      {"iterations", &g.iterations},
                                                      {"bursts", &g.bursts},
                                                      {"weight_squares", &g.weight_squares}};
    for (const auto& [word, sum] : sums) {
      if (row.word != word) continue;
      add(*sum, row.count);
      return {};
    }
    if (row.word == "time") {
      g.time = std::max(g.time, row.count);
      return {};
    }
    if (row.word == "behind") {
      g.behind = g.behind || row.count != 0;
      return {};
    }
    if (row.word != "version" && row.word != "interval") {
      return broken("word " + std::string(row.word) + " of a method is not known");
    }
    (row.word == "version" ? g.version : g.interval).add(row.count);
    return {};
  }

  Status take_slots(const ParsedRow& row, SlotKind kind, Gathered& g) {
    const uint64_t each = slot_words(kind) + 2 * row.count;
    const bool sized = row.count <= Schema::kMaxWords && row.key <= Schema::kMaxWords;
    if (!sized || each * row.key > words_left_) return broken("slots of more words than may be");
    const bool fresh = g.runs
                           .emplace(kind, row.site, static_cast<uint32_t>(row.key),
                                    static_cast<uint32_t>(row.count))
                           .second;
    if (fresh) words_left_ -= each * row.key;
    return {};
  }

  Status take_entry(const ParsedRow& row, SlotKind kind, Gathered& g) {
    if (!has_table(kind)) return broken("an entry of a kind that has no table");
    if (row.count == 0 && row.estimate == 0) return {};
    TableEntry& entry = g.tables[{kind, row.site}][{row.key_module, row.key}];
    add(entry.count, row.count);
    add(entry.estimate, row.estimate);
    return {};
  }

  Status take_word(const ParsedRow& row, SlotKind kind, Gathered& g) {
    const std::span<const Word> words = words_of(kind);
    for (uint32_t i = 0; i < words.size(); ++i) {
      const std::tuple at{kind, row.site, i};
      const WordRule rule = words[i].rule;
      if (rule == WordRule::kWide) {
        const std::optional<unsigned> limb = limb_of(row.word, words[i].name);
        if (!limb) continue;
        add(g.wide[at][*limb].count, row.count);
        add(g.wide[at][*limb].estimate, row.estimate);
        return {};
      }
      if (row.word != words[i].name || rule == WordRule::kWideHigh) continue;
      if (rule == WordRule::kMin || rule == WordRule::kMax) {
        g.extremes[at].add(rule == WordRule::kMin, row.count);
      } else if (rule == WordRule::kGreatest) {
        g.sums[at].count = std::max(g.sums[at].count, row.count);
      } else {
        add(g.sums[at].count, row.count);
        add(g.sums[at].estimate, row.estimate);
      }
      return {};
    }
    return broken("word " + std::string(row.word) + " is none of kind " + std::string(row.kind));
  }

  static std::optional<unsigned> limb_of(std::string_view word, std::string_view name) {
    const bool limb = word.size() == name.size() + 2 && word.starts_with(name) &&
                      word[name.size()] == '.' && word.back() >= '0' && word.back() < '0' + 4;
    return limb ? std::optional<unsigned>(word.back() - '0') : std::nullopt;
  }

  Status finish() {
    file_.info.interval = interval_.value;
    file_.info.modules.assign(modules_.begin(), modules_.end());
    ProfileInfo uploads;  // += keeps the latest
    uploads.uploads.assign(uploads_.begin(), uploads_.end());
    uploads.interval = interval_.value;
    file_.info += uploads;
    for (const auto& [at, g] : gathered_) {
      Result<MethodProfile> method = method_of(at.first, at.second, g);
      if (!method) return method.error();
      Profile one;
      one.methods.emplace(at.first, std::move(*method));
      file_.report += merge(file_.profile, std::move(one));
    }
    for (const auto& [at, g] : inlined_sites_) {
      if (!take_sites(g, inlined_[at])) return broken("a word of an inlined site that has none");
    }
    for (auto& [at, gathered] : inlined_) {
      Profile one;
      gathered.code = at.second;
      InlinedBody& body = one.inlined[at.first] = std::move(gathered);
      if (Status s = body.check(at.first); !s)
        return Error{ErrorCode::kCorruptInput, s.error().message};
      file_.report += merge(file_.profile, std::move(one));
    }
    return {};
  }

  // The combined rows of the sites of one inlined body.
  struct GatheredSites {
    std::set<std::pair<SlotKind, SiteId>> places;
    std::map<std::pair<SlotKind, SiteId>, uint64_t> samples;
    Gathered words;
  };
  static bool take_sites(const GatheredSites& g, InlinedBody& into);
  static Result<MethodProfile> method_of(const MethodKey& key, uint64_t name, const Gathered& g);

  std::string_view text_;
  uint64_t words_left_;
  uint64_t line_ = 1;
  size_t columns_ = kTsvColumns;
  ProfileFile file_;
  Same interval_;
  std::set<uint64_t> modules_;
  std::set<UploadId> uploads_;
  std::map<std::pair<MethodKey, uint64_t>, Gathered> gathered_;
  // Keyed by place and code.
  std::map<std::pair<InlinedKey, std::vector<uint64_t>>, InlinedBody> inlined_;
  std::map<std::pair<InlinedKey, std::vector<uint64_t>>, GatheredSites> inlined_sites_;
};

// Stores the gathered words that the schema has; returns false if there are others.
bool fill(const Gathered& g, MethodProfile& m) {
  const auto word_at = [&](const auto& at) -> std::optional<uint32_t> {
    const Slot* slot = m.schema.find(std::get<0>(at), std::get<1>(at));
    if (slot == nullptr) return std::nullopt;
    return slot->word + std::get<2>(at);
  };
  for (const auto& [at, sum] : g.sums) {
    const std::optional<uint32_t> word = word_at(at);
    if (!word) return false;
    m.counts[*word] = sum.count;
    m.estimates[*word] = sum.estimate;
  }
  for (const auto& [at, extreme] : g.extremes) {
    const std::optional<uint32_t> word = word_at(at);
    if (!word) return false;
    const bool seen = m.counts[*word - std::get<2>(at)] != 0;
    m.counts[*word] = seen ? extreme.value : 0;
  }
  for (const auto& [at, limbs] : g.wide) {
    const std::optional<uint32_t> word = word_at(at);
    if (!word) return false;
    UnsignedWide count = 0, estimate = 0;
    for (unsigned i = 0; i < kLimbs; ++i) {
      count += UnsignedWide{limbs[i].count} << (i * kLimbBits);
      estimate += UnsignedWide{limbs[i].estimate} << (i * kLimbBits);
    }
    store_wide(&m.counts[*word], static_cast<Wide>(count));
    store_wide(&m.estimates[*word], static_cast<Wide>(estimate));
  }
  return true;
}

// Returns false for a word that a site's kind does not have.
bool TsvParser::take_sites(const GatheredSites& g, InlinedBody& into) {
  MethodProfile m;
  for (const auto& [kind, site] : g.places) m.schema.add(kind, site);
  m.counts.resize(m.schema.words());
  m.estimates.resize(m.schema.words());
  if (!fill(g.words, m)) return false;
  for (const Slot& slot : m.schema.slots) {
    const std::pair at{slot.kind, slot.site};
    InlinedSite s;
    const auto words = [&](const std::vector<uint64_t>& of) {
      const auto first = of.begin() + static_cast<ptrdiff_t>(slot.word);
      return std::vector<uint64_t>(first, first + static_cast<ptrdiff_t>(slot.words));
    };
    s.counts = words(m.counts);
    s.estimates = words(m.estimates);
    if (const auto table = g.words.tables.find(at); table != g.words.tables.end()) {
      s.table = table->second;
    }
    if (const auto n = g.samples.find(at); n != g.samples.end()) s.samples = n->second;
    const bool some = s != InlinedSite{words(std::vector<uint64_t>(m.counts.size())),
                                       words(std::vector<uint64_t>(m.counts.size())),
                                       {},
                                       0};
    if (some) into.sites.emplace(at, std::move(s));
  }
  return true;
}

Result<MethodProfile> TsvParser::method_of(const MethodKey& key, uint64_t name, const Gathered& g) {
  const auto broken = [&](const std::string& rule) {
    return Error{ErrorCode::kCorruptInput, "method " + std::to_string(key.module_key) + " " +
                                               std::to_string(key.function_index) + " (" + g.name +
                                               "): " + rule};
  };
  MethodProfile m;
  m.key = key;
  m.name = g.name;
  m.schema.version = static_cast<uint32_t>(g.version.value);
  m.schema.cfg_hash = g.cfg_hash;
  for (const auto& [kind, first, count, top] : g.runs) {
    for (uint32_t i = 0; i < count; ++i) m.schema.add(kind, first + i, top);
  }
  if (Status s = m.schema.check(); !s) return broken(s.error().message);
  if (schema_name(m.schema) != name) return broken("its rows do not make the schema they name");
  m.counts.resize(m.schema.words());
  m.estimates.resize(m.schema.words());
  if (!fill(g, m)) return broken("a word of a slot that its schema does not have");
  m.tables = g.tables;
  m.calls = g.calls;
  m.sampled_calls = g.sampled_calls;
  m.guessed_calls = g.guessed_calls;
  m.iterations = g.iterations;
  m.bursts = g.bursts;
  m.weight_squares = g.weight_squares;
  m.interval = g.interval.value;
  m.time = g.time;
  m.behind = g.behind;
  if (Status s = m.check(); !s) return broken(s.error().message);
  return m;
}

}  // namespace

bool looks_like_tsv(std::string_view text) {
  const std::string_view head = text.substr(0, text.find('\n'));
  return head.size() < text.size() && (head == kTsvHead || head == kTsvHeadVoterless);
}

Result<ProfileFile> profile_from_tsv(std::string_view text) { return TsvParser(text).run(); }

}  // namespace uptier::profile
