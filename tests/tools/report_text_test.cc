#include <gtest/gtest.h>

#include <string>

#include "tests/support/golden.h"
#include "tests/support/report_samples.h"

namespace uptier::report_text_test {
namespace {

using test::sample_report;

bool shows(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ReportText, shows_methods_decisions_totals_losses_and_stress) {
  test::expect_golden("report_text", sample_report().text());
}

TEST(ReportText, empty_report_says_so) {
  test::expect_golden("report_text_empty", Report().text());
}

TEST(ReportText, shows_as_many_methods_as_asked_for) {
  Report r = sample_report();
  for (uint32_t i = 0; i < 40; ++i) r.methods.push_back(test::sample_method(i, "more", 1));
  auto count = [](const std::string& text) {
    size_t n = 0;
    for (size_t at = 0; (at = text.find("\nmore ", at)) != std::string::npos; ++at) ++n;
    return n;
  };
  EXPECT_EQ(count(r.text()), 27u) << "30 methods by default, 3 of them others";
  EXPECT_TRUE(shows(r.text(), "... and 13 more methods"));
  EXPECT_EQ(count(r.text(5)), 2u);
  EXPECT_TRUE(shows(r.text(5), "... and 38 more methods"));
  EXPECT_EQ(count(r.text(0)), 40u);
  EXPECT_EQ(count(r.text(43)), 40u);
  EXPECT_FALSE(shows(r.text(0), "more methods"));
  EXPECT_FALSE(shows(r.text(43), "more methods"));
}

TEST(ReportText, decisions_to_keep_are_counted_and_not_listed) {
  std::string text = sample_report().text();
  EXPECT_TRUE(shows(text, "decisions: 3, of which 2 change something"));
  EXPECT_FALSE(shows(text, "2 needed"));
  EXPECT_TRUE(shows(sample_report().text(1), "... and 1 more"));
}

TEST(ReportText, each_loss_is_named_and_none_is_said) {
  EXPECT_TRUE(shows(Report().text(), "losses: none"));
  const std::pair<uint64_t LossReport::*, const char*> losses[] = {
      {&LossReport::samples_without_copy, "samples without an instrumented copy 9"},
      {&LossReport::slabs_refused, "slabs refused 9"},
      {&LossReport::flushes_delayed, "flushes delayed 9"},
      {&LossReport::flushes_lost, "flushes lost 9"},
      {&LossReport::requests_dropped, "requests dropped 9"},
      {&LossReport::compiles_failed, "compilations failed 9"},
      {&LossReport::code_refused, "code refused 9"},
      {&LossReport::evictions, "evictions 9"},
      {&LossReport::polls_refused, "versions without poll words 9"},
      {&LossReport::methods_forgotten, "removed methods forgotten 9"},
      {&LossReport::decisions_forgotten, "decisions forgotten 9"},
      {&LossReport::versions_forgotten, "freed versions forgotten 9"},
      {&LossReport::calls_unattached, "calls on threads that are not attached 9"},
      {&LossReport::keys_shared, "methods that share a key 9"},
      {&LossReport::unstable_bodies, "bodies described differently each time 9"},
      {&LossReport::traps_lost, "traps that nobody took 9"},
      {&LossReport::trace_events_lost, "trace events lost 9"},
      {&LossReport::log_records, "log records overwritten 9"},
      {&LossReport::stack_samples, "stack samples dropped 9"},
      {&LossReport::code_names_lost, "bodies without a name for perf 9"},
      {&LossReport::loops_full, "loops too deep to time 9"},
      {&LossReport::loops_stale, "loops whose end was not seen 9"},
      {&LossReport::loops_spoiled, "loops spoiled by recursion 9"}};
  for (auto [field, text] : losses) {
    Report r;
    r.losses.*field = 9;
    EXPECT_TRUE(shows(r.text(), "losses: " + std::string(text) + "\n")) << r.text();
  }
}

TEST(ReportText, stress_is_shown_where_it_was_asked_for) {
  Report r;
  EXPECT_FALSE(shows(r.text(), "stress"));
  r.stress = {{"guard", 5, 2}};
  EXPECT_TRUE(shows(r.text(), "guard 2 of 5"));
}

TEST(ReportText, long_texts_are_whole) {
  Report r = sample_report();
  r.methods[2].last_error = std::string(2000, 'e') + "!";
  r.methods[0].versions.clear();
  for (uint32_t l = 0; l < 100; ++l) {
    r.methods[0].versions.push_back({Tier::kOptimized, Copy::kPlain, LoopId(l), 1, 1, true, true});
  }
  std::string text = r.text();
  EXPECT_TRUE(shows(text, r.methods[2].last_error + "\n"));
  for (uint32_t l = 0; l < 100; ++l) {
    EXPECT_TRUE(shows(text, "@loop" + std::to_string(l) + " (freed)")) << l;
  }
}

TEST(ReportText, like_versions_are_counted) {
  Report r = sample_report();
  r.methods[0].versions.clear();
  for (int i = 0; i < 40; ++i) {
    for (Tier tier : {Tier::kBaseline, Tier::kOptimized}) {
      bool freed = i != 39;
      r.methods[0].versions.push_back({tier, Copy::kPlain, LoopId::none(), 1, 1, freed, freed});
    }
  }
  EXPECT_TRUE(
      shows(r.text(), "\n    baseline (freed) x 39, optimized (freed) x 39, baseline, optimized\n"))
      << r.text();
}

}  // namespace
}  // namespace uptier::report_text_test
