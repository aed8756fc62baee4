#include "tiering/model/log_formats.h"

#include "uptier/log_text.h"

namespace uptier::tiering {

Result<LogFormat> LogFormats::add(std::string_view text) {
  const Result<std::string> placeholders = log_placeholders(text);
  if (!placeholders) return placeholders.error();
  const Held lock(mutex_);
  if (const auto at = by_text_.find(text); at != by_text_.end()) return at->second;
  if (texts_.size() == LogFormat::kMostFormats) {
    return Error{ErrorCode::kResourceExhausted,
                 "add_log_format: there are " + std::to_string(texts_.size()) +
                     " formats already; make one for each site, not for each line"};
  }
  const LogFormat format{1u << 31 | static_cast<uint32_t>(texts_.size()) << 8 |
                         static_cast<uint32_t>(placeholders->size()) << 4};
  texts_.emplace_back(text);
  try {
    by_text_.emplace(texts_.back(), format);
  } catch (...) {
    texts_.pop_back();
    throw;
  }
  return format;
}

std::optional<std::string> LogFormats::find(LogFormat format) const {
  const Held lock(mutex_);
  if (!format.valid() || format.number() >= texts_.size()) return std::nullopt;
  const std::string& text = texts_[format.number()];
  const auto at = by_text_.find(text);
  const bool same = at != by_text_.end() && at->second == format;
  return same ? std::optional(text) : std::nullopt;
}

}  // namespace uptier::tiering
