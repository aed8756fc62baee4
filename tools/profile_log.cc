// uptier profile log: the lines that compiled code has logged; show --data: the data of other tools.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "profile/base/checksum.h"
#include "profile/data/text.h"
#include "profile/upf/text_log.h"
#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/json_out.h"
#include "tools/profile_commands.h"
#include "uptier/log_text.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;
using profile::TextLog;

// A line, and the log of its site.
struct Entry {
  const TextLog* log;
  const TextLog::Line* line;
};

// "0x...@name" is the scope of a method's log.
std::string_view name_of(const TextLog& log) {
  const std::string_view scope = log.scope;
  const size_t at = scope.find('@');
  return at == scope.npos ? scope : scope.substr(at + 1);
}
std::string_view hash_of(const TextLog& log) {
  return std::string_view(log.scope).substr(0, log.scope.find('@'));
}

std::string utc(uint64_t ns) {
  const std::string text = time_text(ns / 1'000'000'000);  // "2026-11-27 01:50:24 UTC", or "-"
  if (text.size() < 19) return text;
  char part[16];
  std::snprintf(part, sizeof part, ".%09" PRIu64, ns % 1'000'000'000);
  return text.substr(0, 10) + "T" + text.substr(11, 8) + part + "Z";
}

// The arguments as numbers of the kinds that the format gives them.
ordered_json arguments_json(const Entry& e) {
  ordered_json list = ordered_json::array();
  const std::string kinds = *log_placeholders(e.log->format);
  for (size_t i = 0; i < e.line->arguments.size(); ++i) {
    const uint64_t bits = e.line->arguments[i];
    double real;
    std::memcpy(&real, &bits, sizeof real);
    switch (kinds[i]) {
      case 'd': list.push_back(static_cast<int64_t>(bits)); break;
      case 'f': list.push_back(real); break;
      default: list.push_back(bits); break;
    }
  }
  return list;
}

std::string text_of(const Entry& e) { return log_text(e.log->format, e.line->arguments); }

void print_json_line(const Entry& e) {
  const ordered_json j = {
      {"time_ns", e.line->time},   {"time", utc(e.line->time)},      {"thread", e.line->thread},
      {"method", name_of(*e.log)}, {"hash", hash_of(*e.log)},        {"site", e.log->site},
      {"format", e.log->format},   {"arguments", arguments_json(e)}, {"text", text_of(e)}};
  const std::string line = j.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
}

std::string csv_text(std::string_view text) {
  std::string field = "\"";
  for (const char c : profile::guarded(text)) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + "\"";
}

void print_csv_row(const Entry& e) {
  std::printf("%" PRIu64 ",%s,%u,%s,%s,%u,%s\n", e.line->time, utc(e.line->time).c_str(),
              e.line->thread, csv_text(name_of(*e.log)).c_str(), csv_text(hash_of(*e.log)).c_str(),
              e.log->site, csv_text(text_of(e)).c_str());
}

void print_text_line(const Entry& e) {
  std::string text(name_of(*e.log));
  text += ": " + text_of(e);
  for (char& c : text) c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  std::printf("%s thread %u %s\n", utc(e.line->time).c_str(), e.line->thread, text.c_str());
}

std::vector<Entry> in_order(const std::vector<TextLog>& logs) {
  std::vector<Entry> entries;
  for (const TextLog& log : logs) {
    for (const TextLog::Line& line : log.lines) entries.push_back({&log, &line});
  }
  std::ranges::stable_sort(entries, {},
                           [](const Entry& e) { return std::pair(e.line->time, e.line->thread); });
  return entries;
}

ordered_json instrument_json(const ForeignInstrument& i) {
  return {{"type", i.type},           {"stage", i.stage},       {"scope_hash", i.scope_hash},
          {"scope_key", i.scope_key}, {"metadata", i.metadata}, {"bytes", i.payload.size()}};
}

// A hash by which equal data can be recognized.
std::string content_hash(const std::vector<std::byte>& data) {
  return profile::hex(XXH3_64bits(data.data(), data.size()));
}

}  // namespace

int profile_log(const std::string& path, LogForm form) {
  ProfileFile file;
  if (int code = open_profile(path, file); code != kOk) return code;
  std::vector<TextLog> logs;
  int code = kOk;
  for (const ForeignInstrument& i : file.foreign.instruments) {
    if (!profile::is_text_log(i)) continue;
    Result<TextLog> read = profile::read_text_log(i);
    if (read) {
      logs.push_back(std::move(*read));
    } else {
      code = fail(kCorrupt, path + ": " + read.error().message);
    }
  }
  if (form == LogForm::kCsv) std::puts("time_ns,time,thread,method,hash,site,text");
  for (const Entry& e : in_order(logs)) {
    switch (form) {
      case LogForm::kText: print_text_line(e); break;
      case LogForm::kJson: print_json_line(e); break;
      case LogForm::kCsv: print_csv_row(e); break;
    }
  }
  return code;
}

int profile_show_data(const std::string& path, bool json) {
  ProfileFile file;
  if (int code = open_profile(path, file); code != kOk) return code;
  const ForeignTables& tables = file.foreign;
  if (json) {
    ordered_json instruments = ordered_json::array(), data = ordered_json::array();
    for (const ForeignInstrument& i : tables.instruments) {
      instruments.push_back(instrument_json(i));
    }
    for (const ForeignData& d : tables.data) {
      data.push_back({{"type", d.type},
                      {"metadata", d.metadata},
                      {"bytes", d.data.size()},
                      {"hash", content_hash(d.data)}});
    }
    return print_json({{"instruments", std::move(instruments)}, {"user_data", std::move(data)}});
  }
  std::printf("%12s  %-28s %-16s %s\n", "bytes", "type", "stage", "scope and key, or hash");
  for (const ForeignInstrument& i : tables.instruments) {
    std::printf("%12zu  %-28s %-16s %s %s\n", i.payload.size(), i.type.c_str(), i.stage.c_str(),
                i.scope_hash.c_str(), i.scope_key.c_str());
  }
  for (const ForeignData& d : tables.data) {
    std::printf("%12zu  %-28s %-16s %s\n", d.data.size(), d.type.c_str(), "user data",
                content_hash(d.data).c_str());
  }
  return kOk;
}

}  // namespace uptier::tools
