#include "profile/upf/text_log.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

#include "profile/base/corrupt.h"
#include "uptier/log_text.h"

namespace uptier::profile {
namespace {

constexpr std::string_view kKey = "log#";
constexpr std::string_view kFormatFront = "{\"format\":\"", kFormatEnd = "\"}";
constexpr size_t kLineHead = 16;

std::string format_json(std::string_view format) {
  std::string json(kFormatFront);
  for (const char c : format) {
    if (c == '"' || c == '\\') json += '\\';
    if (static_cast<unsigned char>(c) >= ' ') {
      json += c;
      continue;
    }
    char code[8];
    std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
    json += code;
  }
  return json += kFormatEnd;
}

// Reads what format_json writes.
std::optional<std::string> format_of(std::string_view json) {
  const bool framed = json.size() >= kFormatFront.size() + kFormatEnd.size() &&
                      json.starts_with(kFormatFront) && json.ends_with(kFormatEnd);
  if (!framed) return std::nullopt;
  json = json.substr(kFormatFront.size(), json.size() - kFormatFront.size() - kFormatEnd.size());
  std::string format;
  for (; !json.empty(); json.remove_prefix(1)) {
    if (json[0] == '"') return std::nullopt;
    if (json[0] != '\\') {
      format += json[0];
      continue;
    }
    json.remove_prefix(1);
    if (json.starts_with('"') || json.starts_with('\\')) {
      format += json[0];
      continue;
    }
    unsigned code = 0;
    if (json.size() < 5 || json[0] != 'u') return std::nullopt;
    const auto [end, error] = std::from_chars(json.data() + 1, json.data() + 5, code, 16);
    if (error != std::errc() || end != json.data() + 5 || code >= ' ') return std::nullopt;
    format += static_cast<char>(code);
    json.remove_prefix(4);
  }
  return format;
}

std::optional<uint32_t> site_of(std::string_view key) {
  if (!key.starts_with(kKey)) return std::nullopt;
  key.remove_prefix(kKey.size());
  uint32_t site = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), site);
  const bool whole = error == std::errc() && end == key.data() + key.size();
  return whole ? std::optional(site) : std::nullopt;
}

Bytes payload_of(const std::vector<TextLog::Line>& lines) {
  Bytes out;
  ByteWriter writer(out);
  for (const TextLog::Line& line : lines) {
    writer.u64(line.time);
    writer.u32(line.thread);
    writer.u32(static_cast<uint32_t>(line.arguments.size()));
    for (const uint64_t a : line.arguments) writer.u64(a);
  }
  return out;
}

// Returns the rule that a payload breaks, or nothing.
std::string read_lines(ByteSpan payload, size_t arguments, std::vector<TextLog::Line>& lines) {
  for (size_t at = 0; at < payload.size();) {
    const std::string here = "byte " + std::to_string(at) + ": ";
    if (payload.size() - at < kLineHead) return here + "the line is cut off";
    TextLog::Line line{load<uint64_t>(payload, at), load<uint32_t>(payload, at + 8), {}};
    const uint32_t count = load<uint32_t>(payload, at + 12);
    if (count != arguments) {
      return here + std::to_string(count) + " arguments for a format with " +
             std::to_string(arguments);
    }
    at += kLineHead;
    if ((payload.size() - at) / sizeof(uint64_t) < count) return here + "the line is cut off";
    for (uint32_t i = 0; i < count; ++i, at += sizeof(uint64_t)) {
      line.arguments.push_back(load<uint64_t>(payload, at));
    }
    lines.push_back(std::move(line));
  }
  return {};
}

}  // namespace

void append_text_log(const TextLog& log, GatherList& list) {
  const std::string key = std::string(kKey) + std::to_string(log.site);
  const std::string metadata = format_json(log.format);
  const Bytes payload = payload_of(log.lines);
  const std::span<const std::byte> kept = list.keep(payload);
  const GatheredInstrument one{kTextLogType, kTextLogStage, log.scope, key, metadata, kept};
  list.instruments({&one, 1});
}

Result<TextLog> read_text_log(const ForeignInstrument& i) {
  const auto refuse = [&](const std::string& rule) {
    return corrupt("log " + i.scope_hash + " " + i.scope_key + ": " + rule);
  };
  TextLog log;
  log.scope = i.scope_hash;
  const std::optional<uint32_t> site = site_of(i.scope_key);
  if (!site) return refuse("the key is not log#SITE");
  log.site = *site;
  std::optional<std::string> format = format_of(i.metadata);
  if (!format) return refuse("the metadata is not {\"format\":\"...\"}");
  log.format = std::move(*format);
  const Result<std::string> placeholders = log_placeholders(log.format);
  if (!placeholders.ok()) return refuse(placeholders.error().message);
  const std::string rule = read_lines(i.payload, placeholders->size(), log.lines);
  if (!rule.empty()) return refuse(rule);
  return log;
}

void keep_latest_logs(ForeignTables& tables, uint64_t bytes) {
  struct Dated {
    uint64_t time;
    std::set<ForeignInstrument>::iterator at;
  };
  std::vector<Dated> logs;
  uint64_t sum = 0;
  for (auto at = tables.instruments.begin(); at != tables.instruments.end(); ++at) {
    if (!is_text_log(*at)) continue;
    const Result<TextLog> read = read_text_log(*at);
    logs.push_back({read.ok() && !read->lines.empty() ? read->lines.back().time : 0, at});
    sum += at->payload.size();
  }
  std::ranges::stable_sort(logs, {}, &Dated::time);
  for (const Dated& log : logs) {
    if (sum <= bytes) return;
    sum -= log.at->payload.size();
    tables.instruments.erase(log.at);
  }
}

}  // namespace uptier::profile
