// Names of functions and lines, looked up in the files of a running program as far as libdw.so.1 is there to read them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace papaya {

struct FunctionName {
  std::string function;  // empty: not known, as are
  std::string file;      // of the source
  int line = 0;
};

// Files stay open as long as this lives. What is looked for is in the program's own files: debug information elsewhere
// may have to be asked of a server, in the middle of the job.
class FunctionNames {
 public:
  FunctionNames() noexcept;
  ~FunctionNames();
  FunctionNames(const FunctionNames&) = delete;
  FunctionNames& operator=(const FunctionNames&) = delete;

  // Of the call that returns to this offset of the program or library of this path.
  FunctionName at(const std::string& path, std::uint64_t offset);

 private:
  class File;
  std::map<std::string, std::unique_ptr<File>> files_;
};

}  // namespace papaya
