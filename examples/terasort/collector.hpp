// The records of a rank's partition as they arrive: in bins by their keys, each sorted by itself in the end; or in
// runs, each sorted as soon as there is time, and merged in the end. Where memory is short sorted runs go to a file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bins.hpp"
#include "file.hpp"
#include "memory.hpp"
#include "record.hpp"
#include "times.hpp"

namespace terasort {

class Collector {
 public:
  struct Shape {
    std::uint64_t run;           // records of each
    std::uint64_t in_memory;     // at most so many at a time
    std::string scratch;         // folder of what goes to files
    bool moves_records = false;  // as sort(1) would: records are sorted themselves, not places
  };
  // Throws Problem where it may need a file and can have none.
  Collector(const Shape& shape, bool needs_file, Times& times);

  // From now on each record goes into the bin of its key, for about `expected` records; `bounds`: the least key of each
  // bin but the first. Not where a file is needed. A bin that fits into the cache is sorted and given there at once.
  void divide(const std::vector<Key>& bounds, std::uint64_t expected);
  bool is_divided() const noexcept { return bins_.has_value(); }

  void add(std::span<const Record> records);
  // Room for so many at once, a run of their own, which the caller fills.
  std::span<Record> room_for(std::uint64_t count);
  // Sorts a run that is complete; false: there is none.
  bool sort_one();
  // Sorts what is in a bin though more may come, if that is much; false: there is none.
  bool sort_bin() { return bins_ && bins_->sort_one(); }
  // Sorts what is left. Nothing is added any more.
  void finish();

  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t runs_in_files() const noexcept { return spilled_.size(); }
  static constexpr std::uint64_t bytes_of_record(bool moves_records) noexcept {
    return record_bytes + (moves_records ? 0 : sizeof(Place));
  }

  using Taker = std::function<void(std::span<const Record>)>;
  // Gives all records in order, block by block. After finish().
  void merge(const Taker& take);

 private:
  struct Run {
    Records records;  // room for all that it is to have
    std::uint64_t size = 0;
    std::unique_ptr<Place[]> order;  // null, though it is sorted: as the records are
    bool is_sorted = false;
  };
  struct Spilled {  // in the file
    std::uint64_t first;
    std::uint64_t size;
  };

  void sort(Run& run);
  void spill();
  void merge_runs(bool with_files, const Taker& take);

  const Shape shape_;
  Times& times_;
  std::optional<File> file_;
  std::vector<Run> runs_;
  std::optional<Bins> bins_;  // instead of runs
  std::size_t sorted_ = 0;    // of them, the first
  std::vector<Spilled> spilled_;
  std::uint64_t size_ = 0;
  std::uint64_t here_ = 0;  // in memory
  std::uint64_t in_file_ = 0;
};

}  // namespace terasort
