// The verbs of `uptier profile` with pipes, full disks and wrong words.
#include "test_paths.h"
#include "tests/support/tool_dir.h"

namespace uptier::profile_verbs_test {
namespace {

using test::RunResult;

class ProfileVerbs : public test::ToolDir {
 protected:
  void SetUp() override { run("objects", "p.upf"); }
  std::string out(const std::string& words) const {
    const RunResult r = tool(words);
    EXPECT_EQ(r.code, 0) << words << r.err;
    return r.out;
  }
  void refuses(int code, const std::string& words, const std::string& why) const {
    const RunResult r = tool(words);
    EXPECT_EQ(r.code, code) << words << r.out;
    EXPECT_NE(r.err.find(why), std::string::npos) << words << ": " << r.err;
    EXPECT_LT(r.err.size(), 400u) << r.err;
  }
};

const std::string kTool = UPTIER_TOOL;

TEST_F(ProfileVerbs, stdin_and_pipes_are_read_as_files_are) {
  const std::string from[] = {" profile show",
                              " profile top",
                              " profile show --calls",
                              " profile show --order",
                              " profile show --timeline",
                              " profile show --log",
                              " profile export --format=tsv",
                              " profile export --format=json",
                              " profile dot"};
  for (const std::string& words : from) {
    const std::string plain = in_dir(kTool + words + " p.upf").out;
    EXPECT_FALSE(plain.empty()) << words;
    EXPECT_EQ(in_dir(kTool + words + " - < p.upf").out, plain) << words;
    EXPECT_EQ(in_dir("cat p.upf | " + kTool + words + " -").out, plain) << words;
    EXPECT_EQ(in_dir("cat p.upf | " + kTool + words + " /dev/stdin").out, plain) << words;
  }
  EXPECT_EQ(in_dir("cat p.upf | " + kTool + " profile check -").code, 0);
  EXPECT_NE(in_dir("cat p.upf | " + kTool + " profile overlap p.upf -").out.find("overlap 1.0000"),
            std::string::npos);
  // A merge of a profile from a pipe; a quorum reads its input twice.
  ASSERT_EQ(in_dir("cat p.upf | " + kTool + " profile merge --quorum 1 -o m.upf -").code, 0);
  EXPECT_EQ(read("m.upf").profile, read("p.upf").profile);
  ASSERT_EQ(in_dir("cat p.upf | " + kTool + " profile promote - --to q.upf --min-samples 1").code,
            0);
  EXPECT_EQ(test::slurp(path("q.upf")), test::slurp(path("p.upf")));
}

TEST_F(ProfileVerbs, stdout_is_a_file_where_one_is_wanted) {
  ASSERT_EQ(in_dir(kTool + " profile merge -o - p.upf > m.upf").code, 0);
  EXPECT_EQ(read("m.upf").profile, read("p.upf").profile);
  ASSERT_EQ(in_dir(kTool + " profile export p.upf --format=tsv -o - | " + kTool +
                   " profile import - -o - | " + kTool + " profile merge - -o i.upf")
                .code,
            0);
  EXPECT_EQ(read("i.upf").profile, read("p.upf").profile);
  EXPECT_FALSE(std::filesystem::exists(path("-")));
  for (const char* words : {"profile top p.upf -o -", "profile diff p.upf p.upf -o -"}) {
    refuses(2, words, "-o needs a file");
  }
  refuses(2, "profile promote p.upf --to -", "--to wants a file");
}

TEST_F(ProfileVerbs, what_stdout_does_not_take_is_a_failure) {
  if (!std::filesystem::exists("/dev/full"))
    GTEST_SKIP() << "SKIPPED: there is no /dev/full: a full disk on stdout was not tried";
  for (const char* words :
       {"profile show p.upf", "profile export p.upf --format=tsv", "profile merge -o - p.upf",
        "profile check p.upf", "profile show --timeline p.upf", "--help", "options"}) {
    const RunResult r = in_dir(kTool + " " + words + " > /dev/full");
    EXPECT_EQ(r.code, 1) << words;
    EXPECT_NE(r.err.find("uptier: stdout: No space left"), std::string::npos) << words << r.err;
  }
  // No error message if the reader of a pipe closes it early.
  const RunResult head = in_dir(kTool + " profile export p.upf --format=json | head -1");
  EXPECT_EQ(head.out, "{\n");
  EXPECT_EQ(head.err, "");
}

TEST_F(ProfileVerbs, wrong_words_are_named) {
  refuses(2, "profile nope", "nope: no such command; there are show, merge");
  refuses(2, "nope", "nope: no such command; there are run");
  refuses(2, "profile", "a command is missing; the commands are show, merge");
  refuses(2, "profile top p.upf -n -1", "-1");
  refuses(2, "profile merge --half-life -1 -o m.upf p.upf", "half-life");
  refuses(2, "profile show p.upf --log --calls", "");
  refuses(2, "profile show p.upf --nope", "--nope");
  refuses(3, "profile import p.upf -o m.upf", "a profile file already");
  std::filesystem::create_directory(path("d"));
  write_text("junk", "hello\n");
  for (const char* verb : {"show", "top", "check", "dot", "export --format=csv"}) {
    refuses(1, std::string("profile ") + verb + " d", "d: not a regular file");
    refuses(1, std::string("profile ") + verb + " missing", "missing: cannot open the file");
    refuses(3, std::string("profile ") + verb + " junk", "junk: neither a profile file");
  }
  for (const char* verb : {"show", "merge", "top", "check", "match", "overlap", "diff", "export",
                           "import", "dot", "promote"}) {
    EXPECT_GT(out(std::string("profile ") + verb + " --help").size(), 100u) << verb;
  }
}

}  // namespace
}  // namespace uptier::profile_verbs_test
