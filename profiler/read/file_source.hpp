// A file as the source of a record.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "profiler/read/read.hpp"

namespace papaya::report {

class FileSource final : public Source {
 public:
  explicit FileSource(const std::string& path);
  ~FileSource() override;
  const std::string& error() const { return error_; }
  std::uint64_t bytes() const override { return bytes_; }
  bool read(std::uint64_t offset, void* to, std::size_t count) const override;

 private:
  int file_;
  std::uint64_t bytes_ = 0;
  std::string error_;
};

// The same of one of so many files that not all can be open: it is opened for each reading.
class ClosedFileSource final : public Source {
 public:
  explicit ClosedFileSource(std::string path) : path_(std::move(path)), bytes_(FileSource(path_).bytes()) {}
  std::uint64_t bytes() const override { return bytes_; }
  bool read(std::uint64_t offset, void* to, std::size_t count) const override {
    return FileSource(path_).read(offset, to, count);
  }

 private:
  std::string path_;
  std::uint64_t bytes_;
};

}  // namespace papaya::report
