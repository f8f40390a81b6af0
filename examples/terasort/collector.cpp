#include "collector.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace terasort {

namespace {

constexpr std::uint64_t block = 8192;  // records that are merged, written and read at once

// The records of one run in order.
class Cursor {
 public:
  // In memory; `order` may be null.
  Cursor(const Record* records, const Place* order, std::uint64_t size) noexcept
      : records_(records), order_(order), left_(size) {}
  // In a file.
  Cursor(const File& file, std::uint64_t first, std::uint64_t size, std::uint64_t buffer)
      : file_(&file), next_(first), left_(size), buffer_(std::min(buffer, size)) {
    at_ = buffer_.size();
  }

  const Record* record() const noexcept { return record_; }
  const Key& key() const noexcept { return key_; }
  bool advance() {
    if (left_ == 0) return false;
    --left_;
    if (file_ != nullptr && at_ == buffer_.size()) fill();
    const std::uint64_t at = at_++;
    if (order_ != nullptr && left_ > ahead) __builtin_prefetch(&records_[order_[at + ahead].index]);
    record_ = file_ != nullptr ? &buffer_[at] : &records_[order_ != nullptr ? order_[at].index : at];
    if (order_ != nullptr)
      key_ = {order_[at].high, order_[at].low};
    else
      key_ = record_->key();
    return true;
  }

 private:
  static constexpr std::uint64_t ahead = 8;  // records of a run lie in memory in the order of their coming

  void fill() {
    buffer_.resize(std::min<std::uint64_t>(buffer_.size(), left_ + 1));
    file_->read(next_, buffer_);
    next_ += buffer_.size();
    at_ = 0;
  }

  const Record* records_ = nullptr;
  const Place* order_ = nullptr;
  const File* file_ = nullptr;
  std::uint64_t next_ = 0;
  std::uint64_t left_ = 0;
  std::uint64_t at_ = 0;
  Records buffer_;
  const Record* record_ = nullptr;
  Key key_;
};

// The cursor with the least key, by a tree of losers: each inner node has the loser of the match there, so that after
// the winner's advance one match for each level finds the next.
class Tournament {
 public:
  explicit Tournament(std::vector<Cursor>& cursors) : cursors_(cursors), losers_(cursors.size()) {
    is_over_.resize(cursors.size());
    std::vector<std::size_t> winners(2 * cursors.size());
    for (std::size_t i = 0; i < cursors.size(); ++i) {
      is_over_[i] = !cursors[i].advance();
      winners[cursors.size() + i] = i;
    }
    for (std::size_t node = cursors.size(); node-- > 1;) {
      const auto [winner, loser] = play(winners[2 * node], winners[2 * node + 1]);
      winners[node] = winner;
      losers_[node] = loser;
    }
    winner_ = cursors.size() > 1 ? winners[1] : 0;
  }

  bool is_over() const noexcept { return cursors_.empty() || is_over_[winner_]; }
  const Record& record() const noexcept { return *cursors_[winner_].record(); }
  void advance() {
    is_over_[winner_] = !cursors_[winner_].advance();
    for (std::size_t node = (winner_ + cursors_.size()) / 2; node > 0; node /= 2)
      std::tie(winner_, losers_[node]) = play(winner_, losers_[node]);
  }

 private:
  std::pair<std::size_t, std::size_t> play(std::size_t a, std::size_t b) const noexcept {
    const bool is_b_first = !is_over_[b] && (is_over_[a] || cursors_[b].key() < cursors_[a].key());
    return is_b_first ? std::pair(b, a) : std::pair(a, b);
  }

  std::vector<Cursor>& cursors_;
  std::vector<std::size_t> losers_;  // by inner node
  std::vector<char> is_over_;        // by cursor
  std::size_t winner_ = 0;
};

}  // namespace

Collector::Collector(const Shape& shape, bool needs_file, Times& times) : shape_(shape), times_(times) {
  if (needs_file) file_.emplace(File::temporary(shape.scratch));
}

void Collector::divide(const std::vector<Key>& bounds, std::uint64_t expected) {
  if (!bounds.empty()) bins_.emplace(bounds, expected, times_);
}

void Collector::add(std::span<const Record> records) {
  if (bins_) {
    bins_->add(records);
    size_ += records.size();
    return;
  }
  while (!records.empty()) {
    if (file_ && here_ == shape_.in_memory) spill();
    if (runs_.empty() || runs_.back().is_sorted || runs_.back().size == runs_.back().records.size())
      runs_.push_back({.records = Records(shape_.run)});
    Run& run = runs_.back();
    std::uint64_t count = std::min<std::uint64_t>(records.size(), run.records.size() - run.size);
    if (file_) count = std::min(count, shape_.in_memory - here_);
    std::copy_n(records.begin(), count, run.records.data() + run.size);
    run.size += count;
    here_ += count;
    size_ += count;
    records = records.subspan(count);
  }
}

std::span<Record> Collector::room_for(std::uint64_t count) {
  Run& run = runs_.emplace_back(Run{.records = Records(count), .size = count});
  here_ += count;
  size_ += count;
  return run.records;
}

void Collector::sort(Run& run) {
  const Within phase(times_, Phase::sort);
  run.is_sorted = true;
  if (shape_.moves_records) {
    std::sort(run.records.data(), run.records.data() + run.size,
              [](const Record& a, const Record& b) { return a.key() < b.key(); });
    return;
  }
  run.order = std::make_unique_for_overwrite<Place[]>(run.size);
  for (std::uint64_t i = 0; i < run.size; ++i) {
    const Key key = run.records[i].key();
    run.order[i] = {key.high, static_cast<std::uint32_t>(i), key.low};
  }
  std::sort(run.order.get(), run.order.get() + run.size);
}

bool Collector::sort_one() {
  if (sorted_ == runs_.size() || runs_[sorted_].size < runs_[sorted_].records.size()) return false;
  sort(runs_[sorted_++]);
  return true;
}

void Collector::finish() {
  for (; sorted_ < runs_.size(); ++sorted_) sort(runs_[sorted_]);
}

void Collector::spill() {
  finish();
  spilled_.push_back({in_file_, here_});
  merge_runs(false, [this](std::span<const Record> records) {
    const Within phase(times_, Phase::write);
    file_->write(in_file_, records);
    in_file_ += records.size();
  });
  runs_.clear();
  sorted_ = 0;
  here_ = 0;
}

void Collector::merge(const Taker& take) {
  merge_runs(true, take);
}

void Collector::merge_runs(bool with_files, const Taker& take) {
  const Within phase(times_, Phase::merge);
  Records merged;
  merged.reserve(std::min(block, size_));
  const auto give = [&](const Record& record) {
    merged.push_back(record);
    if (merged.size() < block) return;
    take(merged);
    merged.clear();
  };
  if (bins_) bins_->drain(give);
  std::vector<Cursor> cursors;
  cursors.reserve(runs_.size() + spilled_.size());
  for (const Run& run : runs_) cursors.emplace_back(run.records.data(), run.order.get(), run.size);
  if (with_files && !spilled_.empty()) {
    // What is in memory stays there; the readers share a tenth of what it may be.
    const std::uint64_t buffer = std::clamp<std::uint64_t>(shape_.in_memory / 10 / spilled_.size(), 1, block);
    for (const Spilled& one : spilled_) cursors.emplace_back(*file_, one.first, one.size, buffer);
  }
  for (Tournament first(cursors); !first.is_over(); first.advance()) give(first.record());
  if (!merged.empty()) take(merged);
}

}  // namespace terasort
