// A rank's share of the input, from a file or generated, in memory or not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "file.hpp"
#include "generator.hpp"
#include "job.hpp"
#include "memory.hpp"
#include "options.hpp"

namespace terasort {

class Source {
 public:
  // Throws Problem.
  Source(const Options& options, const Job& job);

  std::uint64_t all() const noexcept { return all_; }      // records of all ranks
  std::uint64_t first() const noexcept { return first_; }  // this rank's, among them
  std::uint64_t count() const noexcept { return count_; }

  void load();  // all of this rank's
  bool is_loaded() const noexcept { return is_loaded_; }
  std::span<const Record> loaded() const noexcept { return records_; }
  // Some of this rank's: in memory as they are, else read into `room`.
  std::span<const Record> get(std::uint64_t index, std::uint64_t count, Records& room) const;
  void release() noexcept { records_ = {}; }

  bool is_file(const std::string& path) const { return file_ && file_->is_same_as(path); }

 private:
  void read(std::uint64_t index, std::span<Record> records) const;

  std::optional<File> file_;
  const Generator generator_;
  std::uint64_t all_ = 0;
  std::uint64_t first_ = 0;
  std::uint64_t count_ = 0;
  bool is_loaded_ = false;
  Records records_;
};

}  // namespace terasort
