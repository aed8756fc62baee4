// driver.cc: main() of every fuzzer.
//
//   fuzzer [--runs N | --seconds N] [--seed S] [--first N]     N runs (10000), or N seconds
//   fuzzer FILE...                                             feeds these files instead
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/driver_corpus.h"
#include "tests/fuzz/fuzz.h"

// The sanitizers must report the end of the process: one does so by a callback, one by a signal.
extern "C" const char* __ubsan_default_options();
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace uptier::fuzz {
namespace {

struct Arguments {
  std::string name;  // of the fuzzer
  uint64_t runs = 10000;
  uint64_t seconds = 0;
  uint64_t seed = 1;
  uint64_t first = 0;
  std::vector<std::string> files;
};

// A signal handler has no other way to know which run it ends.
uint64_t current_seed = 0;
uint64_t current_run = 0;

void name_the_run() {
  std::fprintf(stderr, "to repeat: --seed %llu --first %llu --runs 1\n",
               static_cast<unsigned long long>(current_seed),
               static_cast<unsigned long long>(current_run));
}

void on_signal(int signal) {
  name_the_run();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void catch_crashes() {
  std::signal(SIGABRT, on_signal);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(name_the_run);
    return;
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, on_signal);
}

void overwrite_number(std::string& input, Random& random) {
  constexpr uint64_t kEdges[] = {0,
                                 1,
                                 0x7f,
                                 0x80,
                                 0xff,
                                 0x7fffffff,
                                 0x80000000,
                                 0xffffffff,
                                 0x7fffffffffffffff,
                                 0x8000000000000000,
                                 ~0ull};
  const uint64_t number = kEdges[random.below(std::size(kEdges))];
  const size_t width = size_t{1} << random.below(4);
  if (input.size() < width) return;
  std::memcpy(input.data() + random.below(input.size() - width + 1), &number, width);
}

// Makes one change. `other` is an input to take pieces from.
void mutate(std::string& input, const std::string& other, Random& random) {
  const size_t at = random.below(input.size() + 1);
  const size_t length = 1 + random.below(16);
  switch (random.below(7)) {
    case 0: input.insert(at, 1, static_cast<char>(random.next())); return;
    case 1: input.erase(at, length); return;
    case 2: input.insert(at, input.substr(random.below(input.size() + 1), length)); return;
    case 3: input.insert(at, other.substr(random.below(other.size() + 1), 4 * length)); return;
    case 4: overwrite_number(input, random); return;
    case 5:
      if (random.below(8) == 0) input.resize(at);
      return;
    default:
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1u << random.below(8)));
      return;
  }
}

std::string make_input(const std::vector<std::string>& pool, Random& random) {
  std::string input = pool[random.below(pool.size())];
  for (size_t changes = random.below(8); changes > 0; --changes) {
    if (mutate_input != nullptr && random.below(2) == 0) {
      mutate_input(input, random);
    } else {
      mutate(input, pool[random.below(pool.size())], random);
    }
  }
  return input;
}

int feed_files(const std::vector<std::string>& files) {
  for (const std::string& name : files) {
    std::ifstream file(name, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "cannot read %s\n", name.c_str());
      return 2;
    }
    feed(std::string(std::istreambuf_iterator<char>(file), {}));
  }
  return 0;
}

int run(const Arguments& arguments) {
  std::vector<std::string> pool = seeds();
  for (std::string& input : kept_inputs(arguments.name)) {
    feed(input);
    pool.push_back(std::move(input));
  }
  const std::time_t end = std::time(nullptr) + static_cast<std::time_t>(arguments.seconds);
  uint64_t done = 0;
  const auto more = [&] {
    if (arguments.seconds == 0) return done < arguments.runs;
    return done % 256 != 0 || std::time(nullptr) < end;
  };
  for (; more(); ++done) {
    current_run = arguments.first + done;
    Random random(arguments.seed * 0x100000001b3 + current_run);
    feed(make_input(pool, random));
  }
  std::printf("%llu runs of seed %llu\n", static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(arguments.seed));
  return 0;
}

bool parse(int count, char** words, Arguments& arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word.rfind("--", 0) != 0) {
      arguments.files.push_back(word);
      continue;
    }
    uint64_t* number = word == "--runs"      ? &arguments.runs
                       : word == "--seconds" ? &arguments.seconds
                       : word == "--seed"    ? &arguments.seed
                       : word == "--first"   ? &arguments.first
                                             : nullptr;
    if (number == nullptr || ++i == count) return false;
    *number = std::strtoull(words[i], nullptr, 0);
  }
  return true;
}

}  // namespace
}  // namespace uptier::fuzz

int main(int count, char** words) {
  using namespace uptier::fuzz;
  Arguments arguments;
  arguments.name = std::filesystem::path(words[0]).filename();
  if (!parse(count, words, arguments)) {
    std::fprintf(stderr, "%s [--runs N | --seconds N] [--seed S] [--first N] [FILE...]\n",
                 words[0]);
    return 2;
  }
  current_seed = arguments.seed;
  catch_crashes();
  return arguments.files.empty() ? run(arguments) : feed_files(arguments.files);
}
