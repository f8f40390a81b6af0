#include "profiler/read/event_reader.hpp"

#include <algorithm>

#include "profiler/read/version_3.hpp"

namespace papaya::report {

std::size_t events_of(const Run& run) {
  std::size_t events = 0;
  for (const RankFile& file : run.files)
    events += file.ring_path.empty()
                  ? file.events.size()
                  : file.spilled_events + std::min(file.header.event_count, file.header.event_capacity);
  return events;
}

EventReader::EventReader(const RankFile& file, std::size_t piece, bool keeps_open, EventRange range)
    : file_(&file), piece_(piece), keeps_open_(keeps_open) {
  const RankHeader& header = file.header;
  number_ = header.event_count > header.event_capacity ? header.event_count - header.event_capacity : 0;
  number_ = std::max(number_, range.begin);
  end_ = std::min(header.event_count, range.end);
  has_spilled_ = !file.ring_path.empty() && file.spilled_events > 0;
}

std::span<const trace::Event> EventReader::next_spilled() {
  if (spilled_ == nullptr) {
    std::unique_ptr<Source> source;
    const std::string path = file_->ring_path + "z";
    if (keeps_open_)
      source = std::make_unique<FileSource>(path);
    else
      source = std::make_unique<ClosedFileSource>(path);
    const Source& its = *source;
    spilled_.reset(new Spilled{std::move(source), SpillReader(its, *file_, number_)});
  }
  const std::span<const trace::Event> block = spilled_->reader.next();
  has_spilled_ = !block.empty();
  if (!has_spilled_) spilled_.reset();
  return block;
}

bool EventReader::read_piece(std::uint64_t slot, std::size_t count) {
  if (source_ == nullptr) source_ = std::make_unique<FileSource>(file_->ring_path);
  const RankHeader& header = file_->header;
  events_.resize(count);
  bool good =
      source_->read(header.events_offset + slot * sizeof(trace::Event), events_.data(), count * sizeof(trace::Event));
  intervals_.clear();
  if (good && file_->has_interval_ring) {
    const std::uint64_t first = number_ & (header.interval_capacity - 1);
    intervals_.resize(count);
    if (!source_->read(header.intervals_offset + first * sizeof(trace::Interval), intervals_.data(),
                       intervals_.size() * sizeof(trace::Interval)))
      intervals_.clear();
    for (trace::Interval& interval : intervals_)
      if (interval.longest_site > file_->call_sites->size()) interval.longest_site = 0;
    first_commit_ = static_cast<std::uint32_t>(number_ + 1);
  }
  if (!keeps_open_) source_.reset();
  return good;
}

std::span<const trace::Event> EventReader::next() {
  if (file_->ring_path.empty()) {
    const std::size_t begin = given_;
    given_ += std::min(piece_, file_->events.size() - begin);
    return std::span(file_->events).subspan(begin, given_ - begin);
  }
  if (has_spilled_)
    if (const std::span<const trace::Event> block = next_spilled(); !block.empty()) return block;
  const RankHeader& header = file_->header;
  while (number_ < end_) {
    const std::uint64_t slot = number_ & (header.event_capacity - 1);
    std::uint64_t count = std::min({end_ - number_, header.event_capacity - slot, std::uint64_t{piece_}});
    if (file_->has_interval_ring)
      count = std::min(count, header.interval_capacity - (number_ & (header.interval_capacity - 1)));
    if (!read_piece(slot, count)) {
      skipped_ += end_ - number_;
      number_ = end_;
      break;
    }
    std::size_t kept = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      trace::Event& event = events_[i];
      if (header.version == version_3::format_version) event = version_3::event_of(event);
      if (!is_whole(event, number_ + i, header)) continue;
      if (kept != i) events_[kept] = event;
      ++kept;
    }
    skipped_ += count - kept;
    number_ += count;
    if (kept > 0) return std::span(events_).first(kept);
  }
  source_.reset();
  return {};
}

const trace::Interval* EventReader::interval_of(const trace::Event& event) const {
  if (file_->ring_path.empty()) return report::interval_of(*file_, event);
  const std::uint32_t place = event.commit - first_commit_;
  return place < intervals_.size() && intervals_[place].commit == event.commit ? &intervals_[place] : nullptr;
}

}  // namespace papaya::report
