#include "profiler/read/read_spill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/version.hpp"
#include "profiler/read/version_3.hpp"
#include "profiler/record/zstd.hpp"

namespace papaya::report {

using namespace trace::spill;

class SpillReader::Reading {
 public:
  Reading(const Source& source, const RankFile& record, std::uint64_t end)
      : source_(source), record_(record), end_(end) {
    if (!check_header()) return;
    is_usable_ = true;
    find_blocks();
  }

  // The events of the next block that has any; none: that was all.
  std::span<const trace::Event> next_block() {
    if (!has_late_) read_late_blocks();
    while (next_block_ < blocks_.size()) {
      const Block& block = blocks_[next_block_++];
      if (!is_wanted(block) || !read_payload(block)) continue;
      note_gap(next_, block.header.first);
      next_ = block.header.first + wanted_of(block);
      take_events(block.header.first, block.header.count, wanted_of(block));
      out_.kept += events_.size();
      if (!events_.empty()) return events_;
    }
    finish();
    return {};
  }

  void count_blocks() {
    for (const Block& block : blocks_) {
      if (!is_wanted(block)) continue;
      note_gap(next_, block.header.first);
      next_ = block.header.first + wanted_of(block);
      out_.unread += wanted_of(block);
    }
    finish();
  }

  const SpillFacts& facts() const { return out_; }

 private:
  struct Block {
    BlockHeader header;
    std::uint64_t payload_offset;
  };

  bool is_wanted(const Block& block) const {
    return block.header.kind == static_cast<std::uint32_t>(Kind::stretch) && block.header.first < end_;
  }
  std::uint64_t wanted_of(const Block& block) const {
    return std::min<std::uint64_t>(block.header.count, end_ - block.header.first);
  }

  void finish() {
    if (is_finished_ || !is_usable_) return;
    is_finished_ = true;
    note_gap(next_, end_);
    report_damage(next_);
  }

  void read_late_blocks() {
    has_late_ = true;
    for (const Block& block : blocks_)
      if (block.header.kind == static_cast<std::uint32_t>(Kind::late)) read_late(block);
  }

  bool fail(Trouble trouble, std::string problem) {
    out_.trouble = trouble;
    out_.problem = std::move(problem);
    note_gap(0, end_);
    return false;
  }

  bool check_header() {
    FileHeader& header = out_.header;
    if (source_.bytes() < sizeof header || !source_.read(0, &header, sizeof header))
      return fail(Trouble::cut_short, fmt::format("is cut short after {} bytes and is left out", source_.bytes()));
    if (std::memcmp(header.magic, magic, sizeof magic) != 0)
      return fail(Trouble::not_papaya, "is not a papaya trace and is left out");
    if (header.endian_mark == __builtin_bswap32(trace::endian_mark))
      return fail(Trouble::other_version,
                  "was written on a machine of the other byte order: use papaya on a machine like that one");
    if (header.endian_mark == trace::endian_mark && header.version != format_version &&
        header.version != version_3::spill_version)
      return fail(
          Trouble::other_version,
          fmt::format("has format version {}, but this papaya {} reads versions {} and {}: use the papaya command "
                      "that belongs to the library that wrote it",
                      header.version, PAPAYA_VERSION, version_3::spill_version, format_version));
    if (header.checksum != checksum_of(header) || header.endian_mark != trace::endian_mark ||
        header.header_bytes != sizeof header || header.event_bytes != sizeof(trace::Event) ||
        header.state > static_cast<std::uint32_t>(State::failed)) {
      header.state = 0;
      return fail(Trouble::damaged, "is damaged (its header) and is left out");
    }
    const RankHeader& own = record_.header;
    if (header.rank != own.rank || header.ranks != own.ranks || header.begin_ticks != own.begin_ticks ||
        header.begin_unix_ns != own.begin_unix_ns)
      return fail(Trouble::other_run, fmt::format("is not of the same run as {} and is left out", record_.name));
    return true;
  }

  // The blocks up to the first that is not to be relied on. Where one ends says its header alone, so behind a damaged
  // one there is nothing to be found.
  void find_blocks() {
    const std::uint64_t bytes = out_.header.bytes != 0 ? std::min(out_.header.bytes, source_.bytes()) : source_.bytes();
    is_cut_ = out_.header.bytes > bytes;
    std::uint64_t next = 0;
    for (std::uint64_t offset = sizeof(FileHeader); offset < bytes;) {
      Block block{};
      block.payload_offset = offset + sizeof block.header;
      is_cut_ = is_cut_ || block.payload_offset > bytes;
      if (block.payload_offset > bytes) return;
      const bool is_read = source_.read(offset, &block.header, sizeof block.header);
      if (!is_read || block.header.checksum != checksum_of(block.header) || !is_possible(block.header, next)) {
        damaged_at_ = offset;
        return;
      }
      is_cut_ = is_cut_ || block.header.bytes > bytes - block.payload_offset;
      if (block.header.bytes > bytes - block.payload_offset) return;
      if (block.header.kind == static_cast<std::uint32_t>(Kind::stretch))
        next = block.header.first + block.header.count;
      blocks_.push_back(block);
      offset = block.payload_offset + block.header.bytes;
    }
  }

  static std::size_t raw_bytes(const BlockHeader& block) {
    return block.count *
           (block.kind == static_cast<std::uint32_t>(Kind::late) ? sizeof(LateEvent) : sizeof(trace::Event));
  }

  static bool is_possible(const BlockHeader& block, std::uint64_t next) {
    return block.magic == block_magic && block.kind <= static_cast<std::uint32_t>(Kind::late) && block.count > 0 &&
           block.count <= most_in_block && block.compression <= static_cast<std::uint32_t>(Compression::zstd) &&
           block.bytes <= raw_bytes(block) &&
           (block.compression != static_cast<std::uint32_t>(Compression::none) || block.bytes == raw_bytes(block)) &&
           (block.kind == static_cast<std::uint32_t>(Kind::late) ||
            (block.first >= next && block.first <= ~std::uint64_t{0} - block.count));
  }

  // Into raw_.
  bool read_payload(const Block& block) {
    raw_.resize(raw_bytes(block.header) / sizeof(std::uint64_t));
    stored_.resize(block.header.bytes);
    bool good = source_.read(block.payload_offset, stored_.data(), stored_.size()) &&
                crc32c(stored_.data(), stored_.size()) == block.header.payload_checksum;
    if (good && block.header.compression == static_cast<std::uint32_t>(Compression::none)) {
      std::memcpy(raw_.data(), stored_.data(), stored_.size());
    } else if (good) {
      needs_zstd_ = needs_zstd_ || !zstd::is_there();
      if (needs_zstd_) return false;
      good = zstd::decompress(raw_.data(), raw_.size() * sizeof(std::uint64_t), stored_.data(), stored_.size());
    }
    if (!good && damaged_at_ == 0) damaged_at_ = block.payload_offset - sizeof(BlockHeader);
    return good;
  }

  void read_late(const Block& block) {
    if (!read_payload(block)) return;
    for (std::uint32_t i = 0; i < block.header.count; ++i) {
      LateEvent event;
      std::memcpy(&event, raw_.data() + i * (sizeof event / sizeof(std::uint64_t)), sizeof event);
      late_[event.number] = as_today(event.event);
    }
  }

  void take_events(std::uint64_t first, std::size_t count, std::uint64_t wanted) {
    events_.resize(count);
    from_columns(raw_.data(), events_);
    // Of many ranks each has a block of events in memory, but not what it was made of.
    raw_ = {};
    stored_ = {};
    std::size_t kept = 0;
    for (std::uint64_t i = 0; i < wanted; ++i) {
      trace::Event event = as_today(events_[i]);
      if (const auto late = late_.empty() ? late_.end() : late_.find(first + i); late != late_.end())
        event = late->second;
      if (is_whole(event, first + i, record_.header))
        events_[kept++] = event;
      else
        ++out_.skipped;
    }
    events_.resize(kept);
  }

  trace::Event as_today(const trace::Event& event) const {
    return out_.header.version == version_3::spill_version ? version_3::event_of(event) : event;
  }

  void note_gap(std::uint64_t from, std::uint64_t to) {
    if (from < to) out_.gaps.push_back({out_.kept, to - from});
  }

  // A file that ends in the middle of a block was being written as its process was killed; if the ring has the rest,
  // nothing is missing.
  void report_damage(std::uint64_t next) {
    std::uint64_t missing = 0;
    for (const Gap& gap : out_.gaps) missing += gap.events;
    if (needs_zstd_) {
      out_.trouble = Trouble::unreadable;
      out_.problem = "is compressed, and libzstd.so.1 cannot be loaded here: install libzstd1 to read it";
    } else if (damaged_at_ != 0) {
      out_.problem = fmt::format("is damaged at byte {}: {} calls are missing", damaged_at_, missing);
    } else if (out_.header.bytes > source_.bytes() || (is_cut_ && next < end_)) {
      out_.trouble = Trouble::cut_short;
      out_.problem = fmt::format("is cut short after {} bytes: {} calls are missing", source_.bytes(), missing);
    }
  }

  const Source& source_;
  const RankFile& record_;
  const std::uint64_t end_;
  bool is_usable_ = false;
  bool has_late_ = false;
  bool is_finished_ = false;
  SpillFacts out_;
  std::vector<Block> blocks_;
  std::size_t next_block_ = 0;
  std::uint64_t next_ = 0;  // number of the event after those read
  std::vector<trace::Event> events_;
  std::unordered_map<std::uint64_t, trace::Event> late_;
  std::vector<std::uint64_t> raw_;
  std::vector<std::byte> stored_;
  std::uint64_t damaged_at_ = 0;
  bool is_cut_ = false;
  bool needs_zstd_ = false;
};

SpillReader::SpillReader(const Source& source, const RankFile& record, std::uint64_t end)
    : reading_(std::make_unique<Reading>(source, record, end)) {}
SpillReader::~SpillReader() = default;
std::span<const trace::Event> SpillReader::next() {
  return reading_->next_block();
}
void SpillReader::leave_unread() {
  reading_->count_blocks();
}
const SpillFacts& SpillReader::facts() const {
  return reading_->facts();
}

}  // namespace papaya::report
