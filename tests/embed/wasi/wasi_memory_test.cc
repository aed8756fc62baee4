// No pointer that a guest passes can reach outside its memory, and a refused call has no effect.
#include <set>

#include "tests/support/wasi_guest.h"

namespace uptier::wasm::test::wasi_memory_test {
namespace {

TEST(GuestMemory, ranges_are_checked_without_overflow) {
  uint8_t bytes[16] = {};
  const GuestMemory memory{bytes, sizeof bytes};
  EXPECT_TRUE(memory.contains(0, 16));
  EXPECT_TRUE(memory.contains(16, 0));
  EXPECT_FALSE(memory.contains(17, 0));
  EXPECT_FALSE(memory.contains(1, 16));
  EXPECT_FALSE(memory.contains(8, UINT64_MAX));
  EXPECT_FALSE(memory.contains(UINT64_MAX, 1));
  EXPECT_FALSE(memory.contains(UINT64_MAX, 16));
  uint32_t value = 1;
  EXPECT_FALSE(memory.load32(13, &value));
  EXPECT_EQ(value, 1u);
  EXPECT_TRUE(memory.store32(11, 0x04030201));
  EXPECT_EQ(bytes[11], 1);
  EXPECT_EQ(bytes[14], 4);
  EXPECT_TRUE(memory.load32(11, &value));
  EXPECT_EQ(value, 0x04030201u);
  EXPECT_FALSE(memory.store64(9, 0));
}

TEST(GuestMemory, an_empty_memory_accepts_only_empty_ranges) {
  const GuestMemory memory;
  EXPECT_TRUE(memory.read(0, nullptr, 0));
  EXPECT_FALSE(memory.store32(0, 1));
  EXPECT_EQ(memory.at(0, 1), nullptr);
}

// A function with arguments that succeed, and the positions of the pointers among them.
struct Case {
  const char* name;
  std::vector<uint64_t> args;
  std::vector<size_t> pointers;
};

class WasiPointers : public testing::Test {
 protected:
  WasiPointers() : guest_(box_config(world_)) {
    WasiWorld::write(world_.in_box("file"), "0123456789");
    WasiWorld::write(world_.in_box("old"), "old");
    std::filesystem::create_directory(world_.in_box("dir"));
    std::filesystem::create_symlink("file", world_.in_box("link"));
    EXPECT_EQ(guest_.create("file"), "ESUCCESS");
    fd_ = guest_.fd;
    file_ = guest_.put("file");
    link_ = guest_.put("link");
    dir_ = guest_.put("dir");
    old_ = guest_.put("old");
    new_ = guest_.put("new");
    out_ = guest_.alloc(256);
    out2_ = guest_.alloc(256);
    iovec_ = guest_.put_iovecs({{out_, 4}});
    subscription_ = guest_.alloc(48);
    std::fill_n(guest_.bytes.begin() + subscription_, 48, 0);
    guest_.bytes[subscription_ + 16] = wasi::kMonotonic;
  }

  // The calls succeed in this order: each relies on the effects of the earlier ones.
  std::vector<Case> cases() const {
    const uint64_t write = wasi::kFdWrite;
    return {
        {"args_get", {out_, out2_}, {0, 1}},
        {"args_sizes_get", {out_, out2_}, {0, 1}},
        {"environ_get", {out_, out2_}, {0, 1}},
        {"environ_sizes_get", {out_, out2_}, {0, 1}},
        {"clock_res_get", {0, out_}, {1}},
        {"clock_time_get", {0, 0, out_}, {2}},
        {"random_get", {out_, 8}, {0}},
        {"fd_fdstat_get", {fd_, out_}, {1}},
        {"fd_filestat_get", {fd_, out_}, {1}},
        {"fd_read", {fd_, iovec_, 1, out2_}, {1, 3}},
        {"fd_pread", {fd_, iovec_, 1, 0, out2_}, {1, 4}},
        {"fd_write", {fd_, iovec_, 1, out2_}, {1, 3}},
        {"fd_pwrite", {fd_, iovec_, 1, 0, out2_}, {1, 4}},
        {"fd_seek", {fd_, 2, 0, out_}, {3}},
        {"fd_tell", {fd_, out_}, {1}},
        {"fd_prestat_get", {kBox, out_}, {1}},
        {"fd_prestat_dir_name", {kBox, out_, 4}, {1}},
        {"fd_readdir", {kBox, out_, 100, 0, out2_}, {1, 4}},
        {"poll_oneoff", {subscription_, out_, 1, out2_}, {0, 1, 3}},
        {"path_create_directory", {kBox, new_, 3}, {1}},
        {"path_remove_directory", {kBox, dir_, 3}, {1}},
        {"path_filestat_get", {kBox, 0, file_, 4, out_}, {2, 4}},
        {"path_filestat_set_times", {kBox, 0, file_, 4, 1, 1, 5}, {2}},
        {"path_link", {kBox, 0, file_, 4, kBox, dir_, 3}, {2, 5}},
        {"path_unlink_file", {kBox, dir_, 3}, {1}},
        {"path_symlink", {file_, 4, kBox, dir_, 3}, {0, 3}},
        {"path_readlink", {kBox, link_, 4, out_, 16, out2_}, {1, 3, 5}},
        {"path_rename", {kBox, old_, 3, kBox, dir_, 3}, {1, 4}},
        {"path_open", {kBox, 0, old_, 3, wasi::kOpenCreat, write, 0, 0, out_}, {2, 8}},
    };
  }

  WasiOutcome call(const Case& c, const std::vector<uint64_t>& args) {
    return find_wasi_function(c.name)->handler(*guest_.wasi, guest_.memory(), args.data());
  }

  void expect_fault(const Case& c, size_t pointer, uint64_t address) {
    SCOPED_TRACE(testing::Message() << c.name << " argument " << pointer << " = " << address);
    const std::vector<uint8_t> bytes = guest_.bytes;
    const std::string picture = world_.picture();
    const off_t position = position_of_file();
    std::vector<uint64_t> args = c.args;
    args[pointer] = address;
    EXPECT_STREQ(wasi_errno_name(call(c, args).errno_), "EFAULT");
    EXPECT_TRUE(bytes == guest_.bytes);
    EXPECT_EQ(world_.picture(), picture);
    EXPECT_EQ(position_of_file(), position);
  }

  off_t position_of_file() {
    const uint32_t at = guest_.alloc(8);
    const std::string saved = guest_.text(at, 8);
    EXPECT_EQ(guest_.call("fd_tell", {fd_, at}), "ESUCCESS");
    const off_t position = static_cast<off_t>(guest_.u64(at));
    std::copy(saved.begin(), saved.end(), guest_.bytes.begin() + at);
    return position;
  }

  WasiWorld world_;
  Guest guest_;
  uint32_t fd_ = 0, file_ = 0, link_ = 0, dir_ = 0, old_ = 0, new_ = 0;
  uint32_t out_ = 0, out2_ = 0, iovec_ = 0, subscription_ = 0;
};

TEST_F(WasiPointers, every_bad_pointer_is_a_fault_that_changes_nothing) {
  for (const Case& c : cases()) {
    for (const size_t pointer : c.pointers) {
      for (const uint64_t bad :
           {uint64_t{0xffffffff}, uint64_t{0xfffffff0}, uint64_t{0xffff0000},
            uint64_t{guest_.bytes.size()}, uint64_t{guest_.bytes.size() - 1}}) {
        expect_fault(c, pointer, bad);
      }
    }
    EXPECT_STREQ(wasi_errno_name(call(c, c.args).errno_), "ESUCCESS") << c.name;
  }
}

TEST_F(WasiPointers, every_function_with_a_pointer_is_among_the_cases) {
  std::set<std::string> tried = {
      // without pointers
      "fd_advise", "fd_allocate", "fd_close", "fd_datasync", "fd_fdstat_set_flags",
      "fd_fdstat_set_rights", "fd_filestat_set_size", "fd_filestat_set_times", "fd_renumber",
      "fd_sync", "proc_exit", "proc_raise", "sched_yield", "sock_shutdown",
      // refused before they use a pointer
      "sock_accept", "sock_recv", "sock_send"};
  for (const Case& c : cases()) tried.insert(c.name);
  for (const WasiFunction& function : wasi_functions()) {
    EXPECT_TRUE(tried.contains(function.name)) << function.name;
  }
}

TEST_F(WasiPointers, a_buffer_in_a_list_must_lie_inside_as_well) {
  const uint32_t end = static_cast<uint32_t>(guest_.bytes.size());
  const std::pair<uint32_t, uint32_t> bad[] = {{0xfffffff0, 32}, {0xfffffff0, 0xfffffff0},
                                               {end - 3, 4},     {end, 1},
                                               {0, end + 1},     {16, 0xffffffff}};
  for (const auto& part : bad) {
    const uint32_t list = guest_.put_iovecs({{out_, 4}, part});
    const Case read{"fd_read", {fd_, list, 2, out2_}, {}};
    const Case others[] = {read,
                           {"fd_write", {fd_, list, 2, out2_}, {}},
                           {"fd_pread", {fd_, list, 2, 0, out2_}, {}},
                           {"fd_pwrite", {fd_, list, 2, 0, out2_}, {}}};
    for (const Case& c : others) expect_fault(c, 1, list);
  }
}

TEST_F(WasiPointers, sizes_and_counts_that_reach_past_the_end_are_faults) {
  for (const uint64_t huge : {uint64_t{0xffffffff}, uint64_t{0x20000000}, uint64_t{0x80000000}}) {
    expect_fault({"fd_read", {fd_, iovec_, huge, out2_}, {}}, 2, huge);
    expect_fault({"fd_write", {fd_, iovec_, huge, out2_}, {}}, 2, huge);
    expect_fault({"poll_oneoff", {subscription_, out_, huge, out2_}, {}}, 2, huge);
    expect_fault({"random_get", {out_, huge}, {}}, 1, huge);
    expect_fault({"fd_readdir", {kBox, out_, huge, 0, out2_}, {}}, 2, huge);
    expect_fault({"path_open", {kBox, 0, file_, huge, 0, 0, 0, 0, out_}, {}}, 3, huge);
    expect_fault({"path_readlink", {kBox, link_, 4, out_, huge, out2_}, {}}, 4, huge);
    expect_fault({"fd_prestat_dir_name", {kBox, out_, huge}, {}}, 2, huge);
  }
}

TEST_F(WasiPointers, the_high_half_of_an_i32_does_not_count) {
  const uint64_t noise = 0xabcdef01'00000000;
  EXPECT_EQ(guest_.call("fd_tell", {noise | fd_, noise | out_}), "ESUCCESS");
  EXPECT_EQ(guest_.call("clock_time_get", {noise | 1, 0, noise | out_}), "ESUCCESS");
}

TEST_F(WasiPointers, structures_may_end_at_the_last_byte_of_memory) {
  const uint64_t end = guest_.bytes.size();
  EXPECT_EQ(guest_.call("fd_fdstat_get", {fd_, end - 24}), "ESUCCESS");
  EXPECT_EQ(guest_.call("fd_filestat_get", {fd_, end - 64}), "ESUCCESS");
  EXPECT_EQ(guest_.call("fd_prestat_get", {kBox, end - 8}), "ESUCCESS");
  EXPECT_EQ(guest_.call("fd_tell", {fd_, end - 8}), "ESUCCESS");
  EXPECT_EQ(guest_.call("random_get", {end - 5, 5}), "ESUCCESS");
}

}  // namespace
}  // namespace uptier::wasm::test::wasi_memory_test
