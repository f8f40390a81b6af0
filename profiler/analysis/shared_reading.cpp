#include "profiler/analysis/shared_reading.hpp"

#include <cstring>

namespace papaya::report {
namespace {

template <class Action>
bool succeeds(const Action& action) noexcept {
  try {
    action();
    return true;
  } catch (...) {  // out of memory
    return false;
  }
}

}  // namespace

SharedReading::~SharedReading() {
  while (left_ > 0) exchange(false, {});
}

bool SharedReading::begin(Readers& readers, std::size_t count, std::uint64_t digest) {
  readers.ask(count);
  if (count < 2) return false;
  bool is_same = true;
  for (std::size_t from = 1; from < count; ++from) {
    const std::vector<std::byte> answer = readers.receive(from);
    is_same = is_same && answer.size() == sizeof digest && std::memcmp(answer.data(), &digest, sizeof digest) == 0;
  }
  const std::byte goes_on{1};
  for (std::size_t to = 1; to < count; ++to)
    readers.send(to, is_same ? std::span(&goes_on, 1) : std::span<const std::byte>());
  if (!is_same) return false;
  readers_ = &readers;
  count_ = count;
  left_ = readings;
  is_good_ = true;
  return true;
}

bool SharedReading::join(Readers& readers, std::size_t count, std::uint64_t digest) {
  readers.send(0, std::as_bytes(std::span(&digest, 1)));
  if (readers.receive(0).empty()) return false;
  readers_ = &readers;
  count_ = count;
  left_ = readings;
  is_good_ = true;
  return true;
}

void SharedReading::decline(Readers& readers) {
  readers.send(0, {});
  readers.receive(0);
}

std::pair<std::size_t, std::size_t> SharedReading::share_of(std::size_t parts) const {
  const std::size_t number = readers_->number();
  return {number * parts / count_, (number + 1) * parts / count_};
}

// Returns how far the one that it has sent to is from it; of number 0, how far the farthest would be.
std::size_t SharedReading::send_up(bool& is_good, const Share& share) noexcept {
  const std::size_t number = readers_->number();
  for (std::size_t step = 1; step < count_; step *= 2) {
    if (number % (2 * step) != 0) {
      std::vector<std::byte> bytes;
      is_good = is_good && succeeds([&] { bytes = share.pack(); });
      readers_->send(number - step, bytes);
      return step;
    }
    if (number + step >= count_) continue;
    const std::vector<std::byte> bytes = readers_->receive(number + step);
    is_good = is_good && !bytes.empty() && succeeds([&] { share.merge(bytes); });
  }
  std::size_t farthest = 1;
  while (farthest < count_) farthest *= 2;
  return farthest;
}

bool SharedReading::send_down(bool is_good, const Share& share, std::size_t step) noexcept {
  const std::size_t number = readers_->number();
  std::vector<std::byte> bytes;
  if (number != 0)
    bytes = readers_->receive(number - step);
  else if (is_good)
    is_good = succeeds([&] { bytes = share.pack(); });
  for (step /= 2; step > 0; step /= 2)
    if (number + step < count_) readers_->send(number + step, bytes);
  return !bytes.empty() && (number == 0 ? is_good : share.replace && succeeds([&] { share.replace(bytes); }));
}

bool SharedReading::exchange(bool is_good, const Share& share) noexcept {
  const bool is_for_all = left_-- == readings;
  const std::size_t step = send_up(is_good, share);
  if (is_for_all) is_good = send_down(is_good, share, step);
  is_good_ = is_good;
  return is_good;
}

}  // namespace papaya::report
