// uptier profile match: what of a profile is of use for a module that was edited since it was made.
//
// Methods are found by their key, or else by their name where only one has it, as the runtime does
// (tiering/saved/saved_profile.h); those of other code are matched by their calls (profile/algebra/match.h).
// Functions that have no name, in a module that was stripped, are found by their code and its order: of
// those with one hash the n-th is the n-th, where the profile has as many that nothing else was found
// for. (The runtime does not: it meets functions one by one.) Inlined
// bodies stay where no code on the way changed (profile/algebra/match_inlined.h).
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "jit/analysis/code_shape.h"
#include "profile/algebra/match.h"
#include "profile/algebra/match_inlined.h"
#include "profile/upf/file.h"
#include "tiering/model/probe_set.h"
#include "tools/commands.h"
#include "tools/compile_world.h"
#include "tools/fail.h"
#include "tools/json_out.h"
#include "tools/profile_commands.h"
#include "tools/streams.h"

namespace uptier::tools {
namespace {

class Match {
 public:
  Match(const ProfileFile& file, const Functions& functions);
  void run();
  void print() const;
  void print_as_json() const;
  const Profile& profile() const { return matched_; }
  CallProfile calls() const;

 private:
  const MethodProfile* find(MethodId m) const;
  const MethodProfile* find_named(MethodId m) const;
  void pair_nameless();
  void take(MethodId m, const MethodProfile& old);
  void take_inlined();
  MethodKey key_of(MethodId m) const;

  const ProfileFile& file_;
  const Functions& functions_;
  std::map<std::string, const MethodProfile*> by_name_;  // null where two have it
  std::map<uint32_t, const MethodProfile*> by_order_;    // functions without a name
  std::set<const MethodProfile*> paired_;                // what these are
  std::map<MethodKey, MethodKey> moved_;                 // old key -> new one
  profile::SameMethods same_;
  Profile matched_;
  CallProfile calls_;
  struct Changed {
    std::string name;
    bool accepted;
    std::string text;
  };
  std::vector<Changed> changed_;
  uint64_t kept_ = 0, matched_count_ = 0, dropped_ = 0, unknown_ = 0, bodies_dropped_ = 0;
};

Match::Match(const ProfileFile& file, const Functions& functions)
    : file_(file), functions_(functions) {
  for (const auto& [key, m] : file.profile.methods) {
    auto [at, added] = by_name_.emplace(m.name, &m);
    if (!added) at->second = nullptr;
  }
  pair_nameless();
}

// The name that stands for none says where a function is, which an edit changes.
bool is_nameless(const std::string& name) { return name.empty() || name.starts_with("func["); }

void Match::pair_nameless() {
  std::map<uint64_t, std::vector<uint32_t>> here;
  std::set<const MethodProfile*> found;
  for (uint32_t i = 0; i < functions_.module.functions.size(); ++i) {
    const MethodId m(i);
    const jit::Function& f = functions_.module.functions[i];
    const MethodProfile* old = find_named(m);
    const bool by_key = file_.profile.find(key_of(m)) != nullptr;
    if (!by_key && is_nameless(f.name)) {
      here[f.cfg_hash].push_back(i);
    } else if (old != nullptr) {
      found.insert(old);
    }
  }
  std::map<uint64_t, std::vector<const MethodProfile*>> there;
  for (const auto& [key, m] : file_.profile.methods) {
    if (!found.contains(&m)) there[m.schema.cfg_hash].push_back(&m);
  }
  for (const auto& [hash, functions] : here) {
    const auto same = there.find(hash);
    if (same == there.end() || same->second.size() != functions.size()) continue;
    for (size_t n = 0; n < functions.size(); ++n) by_order_[functions[n]] = same->second[n];
    paired_.insert(same->second.begin(), same->second.end());
  }
}

MethodKey Match::key_of(MethodId m) const {
  return functions_.keys.empty() ? MethodKey{0, m.index()} : functions_.keys[m.index()];
}

const MethodProfile* Match::find(MethodId m) const {
  const auto at = by_order_.find(m.index());
  if (at != by_order_.end()) return at->second;
  const MethodProfile* named = find_named(m);
  return paired_.contains(named) ? nullptr : named;
}

const MethodProfile* Match::find_named(MethodId m) const {
  if (const MethodProfile* same = file_.profile.find(key_of(m))) return same;
  const std::string& name = functions_.module.functions[m.index()].name;
  auto at = by_name_.find(name);
  return name.empty() || at == by_name_.end() ? nullptr : at->second;
}

void Match::take(MethodId id, const MethodProfile& old) {
  const jit::Function& f = functions_.module.functions[id.index()];
  const CodeShape shape = jit::code_shape(f, [&](MethodId callee) -> std::string_view {
    return functions_.module.functions[callee.index()].name;
  });
  MethodProfile m = old;
  if (old.schema.cfg_hash == f.cfg_hash) {
    ++kept_;
    // The hash covers the number of calls, but not their callees.
    const auto known = file_.calls.shapes.find(old.key);
    if (known == file_.calls.shapes.end() || known->second == shape) {
      same_[old.key] = {key_of(id), f.cfg_hash, true};
    }
  } else {
    const auto there = file_.calls.shapes.find(old.key);
    const Schema schema = tiering::ProbeSet(f, tiering::ProbeChoice::from({})).schema();
    profile::MatchReport report;
    m = profile::match_profile(old, there == file_.calls.shapes.end() ? CodeShape{} : there->second,
                               schema, shape, report);
    changed_.push_back({f.name, report.accepted, report.text()});
    if (!report.accepted) {
      ++dropped_;
      return;
    }
    ++matched_count_;
  }
  m.key = key_of(id);
  moved_[old.key] = m.key;
  calls_.shapes[m.key] = shape;
  matched_.methods.insert_or_assign(m.key, std::move(m));
}

void Match::run() {
  for (uint32_t i = 0; i < functions_.module.functions.size(); ++i) {
    const MethodProfile* old = find(MethodId(i));
    if (old != nullptr) {
      take(MethodId(i), *old);
    } else {
      if (!functions_.keys.empty()) {
        // It may have been seen inlined all the same, in this very module: its key says so.
        const uint64_t hash = functions_.module.functions[i].cfg_hash;
        same_[key_of(MethodId(i))] = {key_of(MethodId(i)), hash, false};
      }
      ++unknown_;
    }
  }
  take_inlined();
}

void Match::print() const {
  for (const Changed& c : changed_) {
    std::printf("%-8s %s: %s\n", c.accepted ? "matched" : "dropped", c.name.c_str(),
                c.text.c_str());
  }
  const auto ull = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf(
      "%llu methods kept, %llu matched, %llu dropped; %llu of the module are not in the "
      "profile, %llu of the profile not in the module\n",
      ull(kept_), ull(matched_count_), ull(dropped_), ull(unknown_),
      ull(file_.profile.methods.size() - kept_ - matched_count_ - dropped_));
  if (file_.profile.inlined.empty()) return;
  std::printf("%llu inlined bodies kept, %llu dropped\n", ull(matched_.inlined.size()),
              ull(bodies_dropped_));
}

void Match::print_as_json() const {
  nlohmann::ordered_json changed = nlohmann::ordered_json::array();
  for (const Changed& c : changed_) {
    changed.push_back({{"name", c.name}, {"matched", c.accepted}, {"how", c.text}});
  }
  print_json({{"kept", kept_},
              {"matched", matched_count_},
              {"dropped", dropped_},
              {"not_in_profile", unknown_},
              {"not_in_module", file_.profile.methods.size() - kept_ - matched_count_ - dropped_},
              {"inlined_bodies_kept", matched_.inlined.size()},
              {"inlined_bodies_dropped", bodies_dropped_},
              {"changed", std::move(changed)}});
}

void Match::take_inlined() {
  if (file_.profile.inlined.empty()) return;
  profile::InlinedMatch match = profile::match_inlined(file_.profile.inlined, same_);
  bodies_dropped_ = match.dropped;
  matched_.inlined = std::move(match.kept);
}

// The calls between methods that were found again, and their order. Targets in tables keep their
// old keys: a table says what was seen.
CallProfile Match::calls() const {
  CallProfile calls = calls_;
  for (const auto& [call, count] : file_.calls.graph) {
    auto caller = moved_.find(call.first), callee = moved_.find(call.second);
    if (caller == moved_.end() || callee == moved_.end()) continue;
    calls.graph[{caller->second, callee->second}] += count;
  }
  for (const auto& [key, first] : file_.calls.first) {
    if (auto at = moved_.find(key); at != moved_.end()) calls.first[at->second] = first;
  }
  return calls;
}

}  // namespace

int profile_match(const std::string& path, const std::string& module, const std::string& out,
                  bool json) {
  if (out == kStream) return fail(kUsage, "the report goes to stdout: -o needs a file");
  Result<ProfileFile> file = load_profile(path);
  if (!file) return fail(file.error());
  Result<std::vector<uint8_t>> bytes = read_file(module);
  if (!bytes) return fail(bytes.error());
  Result<Functions> functions = read_functions(module, *bytes);
  if (!functions) return fail(functions.error());
  Match match(*file, *functions);
  match.run();
  if (json) {
    match.print_as_json();
  } else {
    match.print();
  }
  if (out.empty()) return kOk;
  ProfileInfo info = file->info;
  info.uploads.clear();  // what is left is not the sum of any runs
  info.modules.clear();
  if (!functions->keys.empty()) info.modules.push_back(functions->keys.front().module_key);
  const CallProfile calls = match.calls();
  Status s = write_output(out, profile_to_file(match.profile(), info, {}, nullptr, &calls));
  return s ? kOk : fail(kFailed, s.error().message);
}

}  // namespace uptier::tools
