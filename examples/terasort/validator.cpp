#include "validator.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <zlib.h>

#include <vector>

namespace terasort {

void Validator::see(std::span<const Record> records) noexcept {
  for (const Record& record : records) {
    const Key key = record.key();
    part_.sum += crc32(0, record.bytes, record_bytes);
    if (part_.records == 0) {
      part_.first = key;
    } else if (key < part_.last) {
      if (part_.unordered++ == 0) part_.first_unordered = part_.records;
    } else if (key == part_.last) {
      ++part_.duplicates;
    }
    part_.last = key;
    ++part_.records;
  }
}

Verdict Validator::finish(const Job& job) const {
  std::vector<Part> parts(static_cast<std::size_t>(job.ranks));
  MPI_Allgather(&part_, sizeof(Part), MPI_BYTE, parts.data(), sizeof(Part), MPI_BYTE, MPI_COMM_WORLD);
  Verdict all;
  __extension__ unsigned __int128 sum = 0;
  const Part* before = nullptr;
  for (const Part& part : parts) {
    if (part.records == 0) continue;
    if (before != nullptr && part.first < before->last && all.unordered++ == 0) all.first_unordered = all.records;
    if (before != nullptr && part.first == before->last) ++all.duplicates;
    if (part.unordered != 0 && all.unordered == 0) all.first_unordered = all.records + part.first_unordered;
    all.unordered += part.unordered;
    all.duplicates += part.duplicates;
    all.records += part.records;
    sum += part.sum;
    before = &part;
  }
  const auto high = static_cast<std::uint64_t>(sum >> 64);
  const auto low = static_cast<std::uint64_t>(sum);
  all.checksum = high != 0 ? fmt::format("{:x}{:016x}", high, low) : fmt::format("{:x}", low);
  return all;
}

}  // namespace terasort
