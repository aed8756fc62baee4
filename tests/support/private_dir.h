// private_dir.h: a directory of the user's own, for sockets.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace uptier::test {

class PrivateDir {
 public:
  PrivateDir() {
    char name[] = "/tmp/uptier-own-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~PrivateDir() { std::filesystem::remove_all(path_); }
  PrivateDir(const PrivateDir&) = delete;
  PrivateDir& operator=(const PrivateDir&) = delete;

  std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }

 private:
  std::string path_;
};

}  // namespace uptier::test
