// The peak memory of reading files that are built to take much: at most a fixed multiple of the
// file's size.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <new>

#include "profile/upf/file.h"
#include "profile/upf/read.h"
#include "profile/upf/write.h"
#include "tests/support/random.h"
#include "tests/support/trace_samples.h"
#include "tools/commands.h"
#include "tools/profile_commands.h"
#include "uptier/profile_file.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// From sanitizer/allocator_interface.h, which gcc does not install.
extern "C" size_t __sanitizer_get_allocated_size(const volatile void* p);
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*,
                                                                           size_t),
                                                         void (*on_free)(const volatile void*));

#define UPTIER_SANITIZED 1
#else
#define UPTIER_SANITIZED 0
#endif

namespace uptier::profile::upf_memory_test {
namespace {

// Replacing operator new is the only way to count its allocations. Bytes of other threads would
// count too; these tests have no other threads.
std::atomic<bool> counting{false};
std::atomic<int64_t> live{0}, most{0};

void count(size_t size) {
  if (!counting.load(std::memory_order_relaxed)) return;
  const int64_t now = live.fetch_add(static_cast<int64_t>(size)) + static_cast<int64_t>(size);
  if (now > most.load()) most.store(now);
}

void uncount(size_t size) {
  if (counting.load(std::memory_order_relaxed)) live.fetch_sub(static_cast<int64_t>(size));
}

}  // namespace
}  // namespace uptier::profile::upf_memory_test

#if UPTIER_SANITIZED
// With a sanitizer, its own operator new stays, because it checks more.
namespace uptier::profile::upf_memory_test {
namespace {
void on_malloc(const volatile void*, size_t size) { count(size); }
void on_free(const volatile void* p) {
  if (p != nullptr) uncount(__sanitizer_get_allocated_size(const_cast<const void*>(p)));
}
const int hooked = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
}  // namespace
}  // namespace uptier::profile::upf_memory_test
#else
void* operator new(size_t size) {
  void* p = std::malloc(size);
  if (p == nullptr) throw std::bad_alloc();
  uptier::profile::upf_memory_test::count(malloc_usable_size(p));
  return p;
}
void operator delete(void* p) noexcept {
  if (p != nullptr) uptier::profile::upf_memory_test::uncount(malloc_usable_size(p));
  std::free(p);
}
void operator delete(void* p, size_t) noexcept { operator delete(p); }
#endif

namespace uptier::profile::upf_memory_test {
namespace {

// Returns the peak number of bytes in use while `read` ran.
template <typename Read>
double peak_of(const Read& read) {
  live = most = 0;
  counting = true;
  read();
  counting = false;
  return static_cast<double>(most.load());
}

// Returns how many times the file's size reading it takes, without the memory that a file of any
// size takes.
constexpr double kConstant = 1 << 20;

double factor_of(const Bytes& file) {
  bool ok = false;
  const double peak = peak_of([&] { ok = profile_from_file(file).ok(); });
  EXPECT_TRUE(ok);
  return std::max(0.0, peak - kConstant) / static_cast<double>(file.size());
}

MethodProfile method_of_counts(uint32_t index, std::vector<uint64_t> counts) {
  MethodProfile m;
  m.key = {1, index};
  m.schema = Schema::block_schema(static_cast<uint32_t>(counts.size()), 7);
  m.counts = std::move(counts);
  m.weigh(1);
  return m;
}

// The most bytes in use for one byte of a file: a packed byte becomes 16 (kMaxRatio), and one of
// those becomes a block of a method's profile (slot, count and estimate) or of its shape.
constexpr double kPerByte = 50;
constexpr double kMost = 16 * kPerByte;

// `make` fills a profile so that one number in `rare` is arbitrary. The rarer these are, the better
// the file packs, until it would pack better than 16 times and is left unpacked. Returns the
// largest factor.
template <typename Make>
double worst_of(const char* what, const Make& make) {
  double worst = 0;
  for (const uint64_t rare : {8, 16, 32, 40, 48, 64, 96}) {
    const Bytes file = make(rare);
    const double factor = factor_of(file);
    std::printf("%-10s 1/%-3d %8zu bytes, times %.1f\n", what, static_cast<int>(rare), file.size(),
                factor);
    worst = std::max(worst, factor);
  }
  return worst;
}

TEST(UpfMemory, of_bodies_of_many_blocks) {
  const double worst = worst_of("blocks", [](uint64_t rare) {
    test::Random random(rare);
    Profile p;
    for (uint32_t f = 0; f < 8; ++f) {
      std::vector<uint64_t> counts(1 << 17, 1);
      for (uint64_t& c : counts) {
        if (random.below(rare) == 0) c = random.below(128);
      }
      p.methods.emplace(MethodKey{1, f}, method_of_counts(f, std::move(counts)));
    }
    return uptier::profile_to_file(p, {});
  });
  EXPECT_LT(worst, kMost);
  EXPECT_GT(worst, 16 * 16) << "there are worse inputs than these";
}

TEST(UpfMemory, of_shapes_of_many_blocks) {
  const double worst = worst_of("shapes", [](uint64_t rare) {
    test::Random random(rare);
    CallProfile calls;
    for (uint32_t f = 0; f < 8; ++f) {
      CodeShape& shape = calls.shapes[{1, f}];
      for (uint32_t b = 0; b < 1 << 17; ++b) {
        shape.successors.add_list();
        const bool leads = random.below(rare) == 0;
        if (leads) shape.successors.add(static_cast<SiteId>(1 + random.below(127)));
      }
    }
    return profile_to_file({}, {}, {}, {}, &calls);
  });
  EXPECT_LT(worst, kMost);
  EXPECT_GT(worst, 16 * 4) << "there are worse inputs than these";
}

// Keys in ascending order, with gaps here and there.
template <typename Take>
void ascend(uint64_t rare, uint32_t count, const Take& take) {
  test::Random random(rare);
  uint32_t f = 0;
  for (uint32_t i = 0; i < count; ++i) {
    f += 1 + static_cast<uint32_t>(random.below(rare) == 0 ? random.below(100) : 0);
    take(f);
  }
}

TEST(UpfMemory, of_many_tiny_methods) {
  EXPECT_LT(worst_of("methods",
                     [](uint64_t rare) {
                       Profile p;
                       ascend(rare, 20'000, [&](uint32_t f) {
                         p.methods.emplace(MethodKey{1, f}, method_of_counts(f, {1}));
                       });
                       return uptier::profile_to_file(p, {});
                     }),
            kMost);
}

TEST(UpfMemory, of_calls_and_first_calls) {
  EXPECT_LT(worst_of("calls",
                     [](uint64_t rare) {
                       CallProfile calls;
                       ascend(rare, 20'000, [&](uint32_t f) {
                         calls.graph[{{1, f}, {1, f}}] = 1;
                         calls.first[{1, f}] = {f, CallProfile::kOneRun};
                       });
                       return profile_to_file({}, {}, {}, {}, &calls);
                     }),
            kMost);
}

TEST(UpfMemory, of_inlined_bodies) {
  EXPECT_LT(worst_of("inlined",
                     [](uint64_t rare) {
                       Profile p;
                       ascend(rare, 20'000, [&](uint32_t f) {
                         p.inlined[{{1, 1}, {{f, {1, 1}}}}] = {{7, 7}, {{1, {1, 1, 1}}}};
                       });
                       return uptier::profile_to_file(p, {});
                     }),
            kMost);
}

// A site takes at least six bytes.
TEST(UpfMemory, of_sites_of_inlined_bodies) {
  EXPECT_LT(worst_of("sites",
                     [](uint64_t rare) {
                       Profile p;
                       for (SiteId place = 1; place <= 4; ++place) {
                         uptier::InlinedBody& body = p.inlined[{{1, 1}, {{place, {1, 1}}}}];
                         body.code = {7, 7};
                         ascend(rare, 20'000, [&](uint32_t site) {
                           body.sites[{SlotKind::kCounter, site}] = {{1}, {1}, {}, 0};
                         });
                       }
                       return uptier::profile_to_file(p, {});
                     }),
            kMost);
}

// The file grows, but the factor does not.
TEST(UpfMemory, grows_with_the_file) {
  const auto file_of = [](uint32_t methods) {
    test::Random random(1);
    Profile p;
    for (uint32_t f = 0; f < methods; ++f) {
      std::vector<uint64_t> counts(1000, 1);
      for (uint64_t& c : counts) {
        if (random.below(20) == 0) c = random.below(128);
      }
      p.methods.emplace(MethodKey{1, f}, method_of_counts(f, std::move(counts)));
    }
    return uptier::profile_to_file(p, {});
  };
  const double one = factor_of(file_of(1000)), four = factor_of(file_of(4000));
  EXPECT_NEAR(four / one, 1, 0.25) << one << " and " << four;
}

// A merge of files holds one range of the sum, and one group of a file per thread: neither the
// complete sum nor its written form. Mapped parts of the files are not counted here.
TEST(UpfMemory, of_a_merge_of_many) {
  char name[] = "/tmp/uptier-memory-XXXXXX";
  const std::string dir = mkdtemp(name);
  tools::ProfileMergeCommand c;
  double largest = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    test::Random random(i);
    Profile p;
    for (uint32_t f = 0; f < 8000; ++f) {
      std::vector<uint64_t> counts(100);
      for (uint64_t& count : counts) count = random.chance(70) ? random.below(256) : 0;
      p.methods.emplace(MethodKey{1, f}, method_of_counts(f, std::move(counts)));
    }
    const Bytes file = uptier::profile_to_file(p, {});
    largest = std::max(largest, static_cast<double>(file.size()));
    c.files.push_back(dir + "/" + std::to_string(i));
    ASSERT_TRUE(replace_file(c.files.back(), file, Sync::kNo).ok());
  }
  c.out = dir + "/sum";
  int code = 1;
  const auto merge_all = [&] { code = tools::profile_merge(c); };
  for (const size_t threads : {1, 2, 4}) {
    c.threads = threads;
    const double by_ranges = peak_of(merge_all) / largest;
    EXPECT_EQ(code, 0);
    std::printf("%.0f bytes, %zu threads: times %.2f range by range\n", largest, threads,
                by_ranges);
    EXPECT_LT(by_ranges, 1.5) << threads;
  }
  c.threads = 1;
  c.methods = "*";  // needs the complete sum
  const double at_once = peak_of(merge_all) / largest;
  EXPECT_EQ(code, 0);
  std::printf("times %.1f at once\n", at_once);
  EXPECT_GT(at_once, 16);
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace uptier::profile::upf_memory_test
