// A program with what -fdebug-info-for-profiling adds: names of the linker, and discriminators.
namespace a {
volatile int sink;
struct S {
  static int f(int i);
};
__attribute__((noinline)) int S::f(int i) {
  return sink + i;  // line 8
}
}  // namespace a

extern "C" __attribute__((export_name("_start"))) void start() {
  for (int i = 0; i < 900; i++) a::sink = i % 9 == 0 ? a::S::f(i) : i;  // line 13
}
