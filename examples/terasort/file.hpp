// Files of records, read and written at any place. What fails is a Problem that names the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "record.hpp"

namespace terasort {

class File {
 public:
  File() = default;
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;

  static File to_read(const std::string& path);
  // Of so many records; what was there is gone.
  static File to_create(const std::string& path, std::uint64_t records);
  static File to_write(const std::string& path);  // that one, on another rank
  // Without a name, so that nothing is left behind.
  static File temporary(const std::string& folder);

  std::uint64_t records() const;  // Problem: its length is no whole number of them
  bool is_same_as(const std::string& path) const;
  void read(std::uint64_t first, std::span<Record> records) const;
  void write(std::uint64_t first, std::span<const Record> records) const;

 private:
  File(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  int descriptor_ = -1;
  std::string path_;
};

}  // namespace terasort
