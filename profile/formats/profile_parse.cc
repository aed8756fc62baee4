// The parser of the text form of profiles, by recursive descent over words.
//
// All numbers of a slot are spelled out, so memory is proportional to the text.
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "profile/base/numbers.h"
#include "profile/base/wall.h"
#include "profile/data/schema.h"
#include "profile/formats/lexer.h"

namespace uptier {
namespace {

using profile::Lexer;
using profile::Position;
using profile::Token;
using profile::Wide;
using profile::Word;
using profile::WordRule;

constexpr uint64_t kTextVersion = 1;
constexpr std::string_view kTableRule = "a slot of this kind has no table";

std::optional<SlotKind> parse_kind(const Token& token) {
  for (auto kind = static_cast<uint8_t>(SlotKind::kBlock);
       kind <= static_cast<uint8_t>(SlotKind::kGauge); ++kind) {
    if (token.is(slot_kind_name(static_cast<SlotKind>(kind)))) return static_cast<SlotKind>(kind);
  }
  return std::nullopt;
}

// Returns the least and greatest number that a word of this rule can hold.
std::pair<Wide, Wide> bounds(WordRule rule) {
  switch (rule) {
    case WordRule::kWide: return {profile::kMinWide, profile::kMaxWide};
    case WordRule::kMin:
    case WordRule::kMax:
      return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
    default: return {0, profile::kMaxCount};
  }
}

// A line of a slot, before the positions of its words are known.
struct ParsedLine {
  uint32_t top = 0;
  std::vector<uint64_t> counts;
  std::vector<uint64_t> estimates;
  Table table;
};

class ProfileTextParser {
 public:
  explicit ProfileTextParser(std::string_view text) : lexer_(text) { step(); }

  Result<Profile> run() {
    if (!expect("uptier-profile")) return *error_;
    const Position version_at = token_.at;
    if (number(UINT64_MAX) != kTextVersion) fail(version_at, "only version 1 is known");
    while (!error_ && !at_end()) token_.is("inlined") ? inlined() : method();
    if (error_) return *error_;
    return std::move(profile_);
  }

 private:
  void method() {
    method_ = {};
    behind_ = 0;
    lines_.clear();
    seen_ = {};
    const Position at = token_.at;
    expect("method");
    method_.key.module_key = number(UINT64_MAX);
    method_.key.function_index = static_cast<uint32_t>(number(UINT32_MAX));
    name();
    expect("{");
    while (!error_ && !token_.is("}") && !at_end()) line();
    expect("}");
    if (!error_) finish_method(at);
  }

  void inlined() {
    const Position at = token_.at;
    InlinedKey key;
    InlinedBody body;
    step();
    key.root = method_key();
    body.code.push_back(number(UINT64_MAX));
    expect("{");
    while (!error_ && token_.is("at")) {
      step();
      const auto site = static_cast<SiteId>(number(UINT32_MAX));
      key.path.push_back({site, method_key()});
      body.code.push_back(number(UINT64_MAX));
    }
    while (!error_ && !token_.is("}") && !at_end()) {
      const std::optional<SlotKind> kind = parse_kind(token_);
      kind&& kind != SlotKind::kBlock ? inlined_site(*kind, body) : inlined_block(body);
    }
    expect("}");
    if (error_) return;
    if (const Status status = body.check(key); !status.ok()) {
      return fail(at, status.error().message);
    }
    const bool added = profile_.inlined.emplace(std::move(key), std::move(body)).second;
    if (!added) fail(at, "an inlined body stands twice");
  }

  void inlined_block(InlinedBody& body) {
    const Position at = token_.at;
    expect("block");
    const auto site = static_cast<SiteId>(number(UINT32_MAX));
    const uint64_t count = number(UINT64_MAX);
    const auto weighted = static_cast<uint64_t>(estimate(count, 0, profile::kMaxCount));
    expect("samples");
    const InlinedBlock block{count, weighted, number(UINT64_MAX)};
    if (error_) return;
    if (!body.blocks.emplace(site, block).second) fail(at, "a site stands twice");
  }

  void inlined_site(SlotKind kind, InlinedBody& body) {
    const Position at = token_.at;
    step();
    const auto site = static_cast<SiteId>(number(UINT32_MAX));
    ParsedLine line;
    words(kind, line);
    expect("samples");
    const uint64_t samples = number(UINT64_MAX);
    if (token_.is("{")) table(kind, line);
    if (error_) return;
    InlinedSite seen{std::move(line.counts), std::move(line.estimates), std::move(line.table),
                     samples};
    const bool added = body.sites.emplace(std::pair(kind, site), std::move(seen)).second;
    if (!added) fail(at, "a site stands twice");
  }

  // Parses one line between the braces: a field that occurs once, or a slot.
  void line() {
    const std::array<std::pair<std::string_view, uint64_t*>, kFields> fields = {{
        {"cfg", &method_.schema.cfg_hash},
        {"calls", &method_.calls},
        {"sampled", &method_.sampled_calls},
        {"iterations", &method_.iterations},
        {"bursts", &method_.bursts},
        {"interval", &method_.interval},
        {"weight_squares", &method_.weight_squares},
        {"guessed", &method_.guessed_calls},
        {"time", &method_.time},
        {"behind", &behind_},
    }};
    for (size_t i = 0; i < fields.size(); ++i) {
      if (!token_.is(fields[i].first)) continue;
      if (seen_[i]) return fail(token_.at, "a field stands twice");
      seen_[i] = true;
      step();
      *fields[i].second = number(fields[i].second == &behind_ ? 1 : UINT64_MAX);
      return;
    }
    slot_line();
  }

  void slot_line() {
    const Position at = token_.at;
    const std::optional<SlotKind> kind = parse_kind(token_);
    if (!kind) {
      return fail(
          at,
          "expected calls, sampled, iterations, bursts, interval, weight_squares, guessed, time, "
          "behind, cfg, a slot kind or }");
    }
    step();
    const auto site = static_cast<uint32_t>(number(UINT32_MAX));
    ParsedLine line;
    if (has_table(*kind)) line.top = Slot::kDefaultTop;
    if (has_table(*kind) && token_.is("top")) {
      step();
      line.top = static_cast<uint32_t>(number(UINT32_MAX));
    }
    words(*kind, line);
    if (token_.is("{")) table(*kind, line);
    if (error_) return;
    const bool added = lines_.emplace(std::pair(*kind, site), std::move(line)).second;
    if (!added) fail(at, "a site stands twice");
  }

  // Parses the words of a slot: with names if there are several, and with an estimate after a sum.
  void words(SlotKind kind, ParsedLine& line) {
    const std::span<const Word> words = profile::words_of(kind);
    line.counts.resize(words.size());
    line.estimates.resize(words.size());
    for (size_t i = 0; i < words.size() && !error_; ++i) {
      const WordRule rule = words[i].rule;
      if (rule == WordRule::kWideHigh) continue;
      if (words.size() > 1 || has_table(kind)) expect(words[i].name);
      const auto [min, max] = bounds(rule);
      const Wide count = signed_number(min, max);
      store(rule, &line.counts[i], count);
      if (profile::is_sum(rule)) store(rule, &line.estimates[i], estimate(count, min, max));
    }
  }

  static void store(WordRule rule, uint64_t* word, Wide value) {
    if (rule == WordRule::kWide) return profile::store_wide(word, value);
    *word = static_cast<uint64_t>(value);
  }

  // Parses a number after ~; without one, the estimate is the count.
  Wide estimate(Wide count, Wide min, Wide max) {
    if (token_.quoted || !token_.text.starts_with('~')) return count;
    const Position at = token_.at;
    token_.text.remove_prefix(1);
    token_.at.column = at.column + 1;
    return signed_number(min, max);
  }

  void table(SlotKind kind, ParsedLine& line) {
    if (!has_table(kind)) return fail(token_.at, std::string(kTableRule));
    expect("{");
    while (!error_ && !token_.is("}") && !at_end()) entry(kind, line.table);
    expect("}");
  }

  void entry(SlotKind kind, Table& table) {
    const Position at = token_.at;
    const TableKey key = kind == SlotKind::kValue ? value_key() : callee_key();
    const Wide count = signed_number(0, profile::kMaxCount);
    const Wide weighted = estimate(count, 0, profile::kMaxCount);
    if (error_) return;
    const TableEntry entry{static_cast<uint64_t>(count), static_cast<uint64_t>(weighted)};
    if (entry == TableEntry{}) return fail(at, "an entry without a count");
    if (!table.emplace(key, entry).second) fail(at, "an entry stands twice");
  }

  TableKey value_key() {
    const auto [min, max] = bounds(WordRule::kMin);
    return {0, static_cast<uint64_t>(signed_number(min, max))};
  }

  TableKey callee_key() {
    const MethodKey key = method_key();
    return {key.module_key, key.function_index};
  }

  MethodKey method_key() {
    const size_t colon = token_.text.find(':');
    const bool split = !token_.quoted && colon != std::string_view::npos;
    const auto module =
        split ? profile::parse_unsigned(token_.text.substr(0, colon)) : std::nullopt;
    const auto index =
        split ? profile::parse_unsigned(token_.text.substr(colon + 1)) : std::nullopt;
    if (!module || !index || *index > UINT32_MAX) {
      fail(token_.at, "expected a method, module key:function index");
      return {};
    }
    step();
    return {*module, static_cast<uint32_t>(*index)};
  }

  void finish_method(Position at) {
    if (!seen_[0]) return fail(at, "the method has no cfg hash");
    method_.behind = behind_ != 0;
    for (auto& [site, line] : lines_) {
      method_.schema.add(site.first, site.second, line.top);
      method_.counts.insert(method_.counts.end(), line.counts.begin(), line.counts.end());
      method_.estimates.insert(method_.estimates.end(), line.estimates.begin(),
                               line.estimates.end());
      if (!line.table.empty()) method_.tables.emplace(site, std::move(line.table));
    }
    if (const Status status = method_.check(); !status.ok()) {
      return fail(at, status.error().message);
    }
    const bool added = written_.emplace(method_.key, method_.schema.cfg_hash).second;
    if (!added) return fail(at, "a method stands twice");
    Profile one;
    one.methods.emplace(method_.key, std::move(method_));
    merge(profile_, std::move(one));
  }

  void name() {
    const std::optional<std::string> text = profile::unquote(token_.text);
    if (!token_.quoted) return fail(token_.at, "expected a name in double quotes");
    if (!text) return fail(token_.at, "escapes are \\\", \\\\ and \\xNN");
    method_.name = *text;
    step();
  }

  uint64_t number(uint64_t max) { return static_cast<uint64_t>(signed_number(0, max)); }

  Wide signed_number(Wide min, Wide max) {
    const std::optional<Wide> value =
        token_.quoted ? std::nullopt : profile::parse_signed(token_.text, min, max);
    if (!value) {
      fail(token_.at,
           "expected a number from " + profile::to_text(min) + " to " + profile::to_text(max));
      return 0;
    }
    step();
    return *value;
  }

  bool expect(std::string_view word) {
    if (!token_.is(word)) fail(token_.at, "expected " + std::string(word));
    step();
    return !error_;
  }

  // Keeps only the first error.
  void fail(Position at, const std::string& rule) {
    if (error_) return;
    error_ = Error{ErrorCode::kInvalidInput, "profile " + std::to_string(at.line) + ":" +
                                                 std::to_string(at.column) + ": " + rule};
  }

  void step() { token_ = lexer_.next(); }
  bool at_end() const { return token_.text.empty() && !token_.quoted; }

  static constexpr size_t kFields = 10;

  Lexer lexer_;
  Token token_;
  Profile profile_;
  MethodProfile method_;  // between the current braces
  uint64_t behind_ = 0;   // its field `behind`
  std::map<std::pair<SlotKind, SiteId>, ParsedLine> lines_;
  std::set<std::pair<MethodKey, uint64_t>> written_;  // methods, and the hashes of their code
  std::array<bool, kFields> seen_ = {};               // fields of `line`, cfg first
  std::optional<Error> error_;
};

}  // namespace

Result<Profile> parse_profile(std::string_view text) {
  return walled("profile", [&] { return ProfileTextParser(text).run(); });
}

}  // namespace uptier
