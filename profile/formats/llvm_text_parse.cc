#include <optional>

#include "profile/base/numbers.h"
#include "profile/formats/llvm_text.h"

namespace uptier::profile {
namespace {

// By name and hash & kLlvmHash.
using Names = std::map<std::pair<std::string_view, uint64_t>, const MethodProfile*>;

class LlvmTextParser {
 public:
  LlvmTextParser(std::string_view text, const Profile* like) : text_(text) {
    if (like == nullptr) return;
    for (const auto& [key, m] : like->methods) {
      names_.emplace(Names::key_type(m.name, m.schema.cfg_hash & kLlvmHash), &m);
    }
  }

  Result<Profile> run() {
    bool is_ir = false;
    std::optional<std::string_view> line;
    while ((line = next()) && line->starts_with(':')) is_ir |= *line == ":ir";
    if (!is_ir) return broken("no line \":ir\": it is not the profile of an IR");
    for (; line; line = next()) {
      if (Status s = take(*line); !s) return s.error();
    }
    return std::move(profile_);
  }

 private:
  Error broken(const std::string& rule) const {
    return {ErrorCode::kCorruptInput, "line " + std::to_string(number_) + ": " + rule};
  }

  // Returns the next line unchanged; nothing at the end.
  std::optional<std::string_view> raw() {
    if (at_ >= text_.size()) return std::nullopt;
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++number_;
    return line;
  }

  // Returns the next line that is neither empty nor a comment.
  std::optional<std::string_view> next() {
    std::optional<std::string_view> line;
    while ((line = raw()) && (line->empty() || line->starts_with('#'))) {
      if (line->starts_with(kWholeHash))
        whole_hash_ = parse_unsigned(line->substr(kWholeHash.size()));
    }
    return line;
  }

  Result<uint64_t> number() {
    const std::optional<std::string_view> line = next();
    const std::optional<uint64_t> n = line ? parse_unsigned(*line) : std::nullopt;
    if (!n) return broken("a number was expected");
    return *n;
  }

  uint64_t hash_of(Names::const_iterator known, uint64_t written) const {
    if (known != names_.end()) return known->second->schema.cfg_hash;
    const bool fits = whole_hash_ && (*whole_hash_ & kLlvmHash) == written;
    return fits ? *whole_hash_ : written;
  }

  Status take(std::string_view name) {
    MethodProfile m;
    m.name = name;
    whole_hash_.reset();
    const Result<uint64_t> written = number();
    if (!written) return written.error();
    const auto known = names_.find(std::pair(name, *written & kLlvmHash));
    const uint64_t hash = hash_of(known, *written);
    const Result<uint64_t> counters = number();
    if (!counters) return counters.error();
    // Each has a line of its own, of at least two bytes.
    if (*counters > (text_.size() - std::min(at_, text_.size()) + 1) / 2) {
      return broken("more counters than there is text");
    }
    m.schema = Schema::block_schema(static_cast<uint32_t>(*counters), hash);
    for (uint64_t i = 0; i < *counters; ++i) {
      const Result<uint64_t> count = number();
      if (!count) return count.error();
      m.counts.push_back(*count);
    }
    for (auto rest = raw(); rest && !rest->empty(); rest = raw()) {}  // value profiles
    if (!m.counts.empty()) m.calls = m.sampled_calls = m.counts[0];
    m.weigh(1);
    m.key = known != names_.end() ? known->second->key : MethodKey{0, place_};
    ++place_;
    if (Status s = m.check(); !s) return broken(s.error().message);
    if (!profile_.methods.emplace(m.key, m).second) {
      return broken(std::string(name) + " is there twice");
    }
    return {};
  }

  std::string_view text_;
  Names names_;
  std::optional<uint64_t> whole_hash_;  // of the last such comment
  size_t at_ = 0;
  uint64_t number_ = 0;
  uint32_t place_ = 0;
  Profile profile_;
};

}  // namespace

bool looks_like_llvm_text(std::string_view text) {
  return text.starts_with(":ir") || text.starts_with("# IR level");
}

Result<Profile> profile_from_llvm_text(std::string_view text, const Profile* like) {
  return LlvmTextParser(text, like).run();
}

}  // namespace uptier::profile
