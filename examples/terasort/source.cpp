#include "source.hpp"

namespace terasort {

Source::Source(const Options& options, const Job& job) : generator_(options.is_ascii, options.skew) {
  if (!options.input.empty()) file_.emplace(File::to_read(options.input));
  all_ = file_ ? file_->records() : options.records * static_cast<std::uint64_t>(job.ranks);
  const Share share = share_of(all_, job);
  first_ = share.first;
  count_ = share.count;
}

void Source::read(std::uint64_t index, std::span<Record> records) const {
  if (file_)
    file_->read(first_ + index, records);
  else
    generator_.make(first_ + index, records);
}

void Source::load() {
  records_.resize(count_);
  read(0, records_);
  is_loaded_ = true;
}

std::span<const Record> Source::get(std::uint64_t index, std::uint64_t count, Records& room) const {
  if (is_loaded_) return std::span(records_).subspan(index, count);
  room.resize(count);
  read(index, room);
  return room;
}

}  // namespace terasort
