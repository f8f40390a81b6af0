// What valsort checks: the order within ranks and across them, the number of records, records whose key is that of the
// record before, and the checksum: the sum of the CRC-32 of all records, which no order changes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "job.hpp"
#include "record.hpp"

namespace terasort {

struct Verdict {
  std::uint64_t records = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t unordered = 0;  // records that are less than the one before
  std::uint64_t first_unordered = 0;
  std::string checksum;  // hexadecimal
};

class Validator {
 public:
  // The next records of this rank.
  void see(std::span<const Record> records) noexcept;
  // Of all ranks, one after the other. Collective.
  Verdict finish(const Job& job) const;

 private:
  struct Part {
    std::uint64_t records = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t unordered = 0;
    std::uint64_t first_unordered = 0;
    std::uint64_t sum = 0;
    Key first;
    Key last;
  };
  Part part_;
};

}  // namespace terasort
