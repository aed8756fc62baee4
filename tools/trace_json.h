// trace_json.h: an event of a trace as one line of JSON.
//
// Handles, ids and threads are those of the file. Of data whose Desc came before, each observed
// site has its words; of other data only the size is given.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>

#include "profile/data/schema.h"
#include "profile/trace/events.h"

namespace uptier::tools {

class EventJson {
 public:
  nlohmann::ordered_json of(const TraceEvent& event);

 private:
  nlohmann::ordered_json one(const Provenance& e);
  nlohmann::ordered_json one(const MethodDetails& e);
  nlohmann::ordered_json one(const BulkType& e);
  nlohmann::ordered_json one(const InstrumentationDesc& e);
  nlohmann::ordered_json one(const InstrumentationData& e);
  nlohmann::ordered_json one(const FlushEvent& e);
  nlohmann::ordered_json one(const FirstCallEvent& e);

  std::map<uint64_t, Schema> schemas_;  // by id
};

}  // namespace uptier::tools
