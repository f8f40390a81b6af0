#include "interpose/staging.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "interpose/device_memory.hpp"
#include "interpose/end_job.hpp"
#include "interpose/reduction.hpp"

namespace papaya {

namespace {

bool includes(Staging::Use use, Staging::Use part) {
  return (static_cast<unsigned>(use) & static_cast<unsigned>(part)) != 0;
}

// The other ranks count on this one, which cannot take part.
void copy_or_end(void* to, const void* from, std::size_t bytes, const void* on_device) noexcept {
  const device_memory::Copied copied = device_memory::copy(to, from, bytes, on_device);
  if (copied.error == 0) return;
  end_job("a buffer is in a device's memory, and " + std::string(copied.function) + " of " + std::to_string(bytes) +
              " bytes failed with error " + std::to_string(copied.error) +
              "; the job cannot go on. PAPAYA_DISABLE=1 leaves all calls to MPI.",
          MPI_ERR_BUFFER);
}

void take(const std::byte* buffer, std::size_t count, MPI_Datatype type, std::size_t element_bytes, std::byte* to) {
  if (const PairParts pair = padded_pair(type, element_bytes); pair.bytes != 0)
    copy_pairs(pair, buffer, to, count);
  else
    pack(buffer, count, type, element_bytes, to);
}

void put_back(const std::byte* from, std::byte* buffer, std::size_t count, MPI_Datatype type,
              std::size_t element_bytes) {
  if (const PairParts pair = padded_pair(type, element_bytes); pair.bytes != 0)
    copy_pairs(pair, from, buffer, count);
  else
    unpack(from, buffer, count, type, element_bytes);
}

}  // namespace

Span span_of(MPI_Datatype type, std::size_t count) noexcept {
  if (count == 0) return {0, 0};
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Aint true_lower = 0;
  MPI_Aint true_extent = 0;
  PMPI_Type_get_extent(type, &lower, &extent);
  PMPI_Type_get_true_extent(type, &true_lower, &true_extent);
  const MPI_Aint last = extent * static_cast<MPI_Aint>(count - 1);
  return {true_lower + std::min<MPI_Aint>(last, 0), static_cast<std::size_t>(true_extent + std::abs(last))};
}

Staging::Staging(const void* buffer, std::size_t count, MPI_Datatype type, std::size_t element_bytes, Use use,
                 bool on_device) noexcept
    : buffer_(const_cast<void*>(buffer)), count_(count), type_(type), element_bytes_(element_bytes), use_(use) {
  if (on_device) {
    span_ = span_of(type, count);
    image_ = Scratch(span_.bytes);
    if (image_.data() == nullptr) {
      lacks_ = span_.bytes;
      return;
    }
    // What is written may leave holes, which keep what was in them.
    copy_or_end(image_.data(), static_cast<std::byte*>(buffer_) + span_.lowest, span_.bytes, buffer_);
  }
  std::byte* const host = on_device ? image_.data() - span_.lowest : static_cast<std::byte*>(buffer_);
  if (is_dense(type)) {
    bytes_ = host;
    return;
  }
  packed_ = Scratch(count * element_bytes);
  bytes_ = packed_.data();
  if (bytes_ == nullptr)
    lacks_ = count * element_bytes;
  else if (includes(use, Use::read))
    take(host, count, type, element_bytes, bytes_);
}

void Staging::write_back(std::size_t count) noexcept {
  if (!includes(use_, Use::write)) return;
  std::byte* const host = image_.data() != nullptr ? image_.data() - span_.lowest : static_cast<std::byte*>(buffer_);
  if (packed_.data() != nullptr) put_back(packed_.data(), host, count, type_, element_bytes_);
  if (image_.data() != nullptr)
    copy_or_end(static_cast<std::byte*>(buffer_) + span_.lowest, image_.data(), span_.bytes, buffer_);
}

std::size_t StagedBlocks::stage(std::span<Block> blocks, MPI_Datatype type, std::size_t element_bytes, Staging::Use use,
                                int read_too, bool on_device) {
  element_bytes_ = std::max<std::size_t>(element_bytes, 1);
  staged_.resize(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].bytes == 0) continue;
    staged_[i] = Staging(blocks[i].at, blocks[i].bytes / element_bytes_, type, element_bytes,
                         static_cast<int>(i) == read_too ? Staging::Use::both : use, on_device);
    if (staged_[i].lacks() != 0) return staged_[i].lacks();
    blocks[i].at = staged_[i].bytes();
  }
  return 0;
}

void StagedBlocks::write_back(std::span<const Block> blocks) noexcept {
  for (std::size_t i = 0; i < staged_.size(); ++i) staged_[i].write_back(blocks[i].bytes / element_bytes_);
}

}  // namespace papaya
