// uptier replay: repeats the decisions of a run from their inputs in its report.
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/json_out.h"
#include "uptier/policy.h"

namespace uptier::tools {
namespace {

using nlohmann::json;

// Throws what nlohmann's library throws where a field is missing or of another type.
DecisionRecord read_decision(const json& j) {
  DecisionRecord r;
  r.sequence = j.at("sequence").get<uint64_t>();
  r.method_name = j.at("method_name").get<std::string>();
  r.action = j.at("action").get<std::string>();
  r.reason = j.at("reason").get<std::string>();
  r.priority = j.at("priority").get<double>();
  r.inputs = j.at("inputs").get<std::string>();
  return r;
}

Result<std::vector<DecisionRecord>> read_decisions(const std::string& file,
                                                   const std::vector<uint8_t>& bytes) {
  try {
    const json report = json::parse(bytes);
    std::vector<DecisionRecord> found;
    for (const json& j : report.at("decisions")) found.push_back(read_decision(j));
    return found;
  } catch (const json::parse_error& e) {
    return Error{ErrorCode::kCorruptInput,
                 file + ": not JSON, from byte " + std::to_string(e.byte) +
                     " on; replay reads the output of `run --report=json`"};
  } catch (const json::exception&) {
    return Error{ErrorCode::kCorruptInput,
                 file +
                     ": JSON, but not a report: replay reads the output of `run --report=json`, "
                     "with \"decisions\" and their \"inputs\""};
  }
}

struct Count {
  uint64_t same = 0, other = 0, noticed = 0;
};

bool same_answer(const DecisionRecord& a, const DecisionRecord& b) {
  return a.action == b.action && a.reason == b.reason && a.priority == b.priority;
}

nlohmann::ordered_json decision_json(const DecisionRecord& r) {
  return {{"action", r.action}, {"reason", r.reason}, {"priority", r.priority}};
}

void print_other(const DecisionRecord& was, const DecisionRecord& now) {
  std::printf("#%-5" PRIu64 " %s\n  was  %-18s %s\n  now  %-18s %s\n", was.sequence,
              was.method_name.c_str(), was.action.c_str(), was.reason.c_str(), now.action.c_str(),
              now.reason.c_str());
}

}  // namespace

int replay(const ReplayCommand& c) {
  std::vector<uint8_t> bytes;
  if (!read_file(c.file, bytes)) return kFailed;
  Result<std::vector<DecisionRecord>> decisions = read_decisions(c.file, bytes);
  if (!decisions) return fail(decisions.error());
  Options options = c.options;
  Count count;
  nlohmann::ordered_json others = nlohmann::ordered_json::array();
  for (const DecisionRecord& r : *decisions) {
    if (r.inputs.empty()) {
      ++count.noticed;
      // Options that changed while the program ran. Changes of observe() decide nothing.
      if (r.action == "set" && r.reason.find('=') != std::string::npos) {
        if (Status s = options.set(r.reason); !s) return fail(s.error());
      }
      continue;
    }
    Result<DecisionRecord> again = uptier::replay(r, PolicyOptions::from(options));
    if (!again) {
      return fail({ErrorCode::kCorruptInput, c.file + ": decision " + std::to_string(r.sequence) +
                                                 ": " + again.error().message});
    }
    bool same = same_answer(r, *again);
    ++(same ? count.same : count.other);
    if (same) continue;
    if (c.json) {
      others.push_back({{"sequence", r.sequence},
                        {"method", r.method_name},
                        {"was", decision_json(r)},
                        {"now", decision_json(*again)}});
    } else {
      print_other(r, *again);
    }
  }
  if (c.json) {
    print_json({{"same", count.same},
                {"other", count.other},
                {"noticed", count.noticed},
                {"differences", std::move(others)}});
    return count.other == 0 ? kOk : kFailed;
  }
  std::printf("%" PRIu64 " decisions are the same, %" PRIu64 " differ; %" PRIu64
              " records are events or settings\n",
              count.same, count.other, count.noticed);
  return count.other == 0 ? kOk : kFailed;
}

}  // namespace uptier::tools
