// The file rank-NNNNN.papz beside rank-NNNNN.pap, version 2: with PAPAYA_PROFILE=trace the events that the ring of the
// latter is about to lose. A header, then blocks, appended as the job runs: a file that was cut anywhere is good up to
// there. docs/trace_format.md describes it for other tools.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "profiler/record/checksum.hpp"
#include "profiler/record/format.hpp"

namespace papaya::trace::spill {

inline constexpr char magic[8] = {'P', 'A', 'P', 'A', 'Y', 'A', 'Z', '\n'};
inline constexpr std::uint32_t format_version = 2;
inline constexpr std::uint32_t block_magic = 0x6b6c4250;  // "PBlk"
inline constexpr std::uint32_t most_in_block = 1u << 13;  // events: 512 KiB

enum class State : std::uint32_t {
  open = 0,     // being written, or its process was killed
  closed = 1,   // in MPI_Finalize
  limited = 2,  // it would have become larger than `limit_bytes`: nothing more was written
  failed = 3,   // it could not be written, see `error`: the same
};

struct FileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t endian_mark;
  std::uint32_t header_bytes;
  std::uint32_t event_bytes;
  std::int32_t rank;  // this and the next three as in the rank's .pap, which they tie the file to
  std::int32_t ranks;
  std::uint64_t begin_ticks;
  std::int64_t begin_unix_ns;
  std::uint64_t limit_bytes;  // PAPAYA_TRACE_LIMIT
  std::uint64_t bytes;        // of the whole file; 0 while it is open
  std::uint32_t state;        // State
  std::uint32_t error;        // errno
  std::uint32_t reserved;
  std::uint32_t checksum;  // CRC-32C of what comes before
};
static_assert(sizeof(FileHeader) == 80);

enum class Kind : std::uint32_t {
  stretch = 0,  // `count` events, numbers `first` and following, as columns
  late = 1,     // `count` LateEvents: events of blocks before this one, once more
};

enum class Compression : std::uint32_t { none = 0, zstd = 1 };

struct BlockHeader {
  std::uint32_t magic;
  std::uint32_t kind;
  std::uint64_t first;  // number of the first event; 0 in late blocks
  std::uint32_t count;
  std::uint32_t compression;
  std::uint32_t bytes;             // that follow this header
  std::uint32_t payload_checksum;  // CRC-32C of these
  std::uint32_t reserved;
  std::uint32_t checksum;  // CRC-32C of what comes before
};
static_assert(sizeof(BlockHeader) == 40);

// An event that was open when its stretch was written, as it became.
struct LateEvent {
  std::uint64_t number;
  Event event;
};
static_assert(sizeof(LateEvent) == 72);

template <typename Header>
std::uint32_t checksum_of(const Header& header) noexcept {
  return crc32c(&header, offsetof(Header, checksum));
}

// Events as columns: an event is eight words, and word w of all events comes before word w + 1 of any, each less the
// same word of the event before. Most columns are then constant.
inline constexpr std::size_t words_in_event = sizeof(Event) / sizeof(std::uint64_t);
using Words = std::array<std::uint64_t, words_in_event>;

inline void to_columns(std::span<const Event> events, std::uint64_t* columns) noexcept {
  Words before{};
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Words words = std::bit_cast<Words>(events[i]);
    for (std::size_t w = 0; w < words_in_event; ++w) columns[w * events.size() + i] = words[w] - before[w];
    before = words;
  }
}

inline void from_columns(const std::uint64_t* columns, std::span<Event> events) noexcept {
  Words words{};
  for (std::size_t i = 0; i < events.size(); ++i) {
    for (std::size_t w = 0; w < words_in_event; ++w) words[w] += columns[w * events.size() + i];
    events[i] = std::bit_cast<Event>(words);
  }
}

}  // namespace papaya::trace::spill
