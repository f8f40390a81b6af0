// Processes that read a run together: each reads parts of its time that follow each other, and what they add up to goes
// up a tree whose root is number 0. A part has the events of all ranks, not those of one node's: who waited for whom is
// known only where all ranks of a call are.
//
// Nobody is waited for in vain: whatever happens to a process, as many messages are sent. One that cannot do its share
// sends an empty one, and number 0 reads the run alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "profiler/analysis/archive.hpp"
#include "profiler/analysis/readers.hpp"

namespace papaya::report {

class SharedReading {
 public:
  SharedReading() = default;
  SharedReading(const SharedReading&) = delete;
  SharedReading& operator=(const SharedReading&) = delete;
  // Sends and receives what is left to be, without a share.
  ~SharedReading();

  // Number 0 asks so many processes, itself among them. `digest`: of what each of them sees of the run. False: they do
  // not see the same; number 0 reads it alone.
  bool begin(Readers& readers, std::size_t count, std::uint64_t digest);
  // One of the others, which number 0 has asked.
  bool join(Readers& readers, std::size_t count, std::uint64_t digest);
  // The same, of one that cannot see the run.
  static void decline(Readers& readers);

  // False from when it has failed.
  bool is_shared() const { return is_good_ && left_ > 0; }
  bool is_first() const { return readers_ == nullptr || readers_->number() == 0; }
  // If it is: which of so many parts are this process's, from the first to before the second.
  std::pair<std::size_t, std::size_t> share_of(std::size_t parts) const;

  // The end of a reading. `own`: what this process's share adds up to; null: it could not be read. Its merge() takes
  // that of later parts, its pack() serves an Archive, and `make()` returns one of no parts. After the first reading
  // everybody has that of all parts, after the second and last one number 0 alone. False: it is not known.
  template <class Sums, class Make>
  bool combine(std::unique_ptr<Sums>& own, const Make& make);

 private:
  // Of what one process has.
  struct Share {
    std::function<std::vector<std::byte>()> pack;
    std::function<void(std::span<const std::byte>)> merge;
    std::function<void(std::span<const std::byte>)> replace;
  };
  static constexpr int readings = 2;

  bool exchange(bool is_good, const Share& share) noexcept;
  std::size_t send_up(bool& is_good, const Share& share) noexcept;
  bool send_down(bool is_good, const Share& share, std::size_t step) noexcept;

  Readers* readers_ = nullptr;
  std::size_t count_ = 1;
  int left_ = 0;  // readings
  bool is_good_ = false;
};

template <class Sums, class Make>
bool SharedReading::combine(std::unique_ptr<Sums>& own, const Make& make) {
  const auto unpacked = [&](std::span<const std::byte> bytes) {
    std::unique_ptr<Sums> sums = make();
    Archive archive(bytes);
    archive(*sums);
    return sums;
  };
  return exchange(own != nullptr, {[&] {
                                     Archive archive;
                                     archive(*own);
                                     return archive.take();
                                   },
                                   [&](std::span<const std::byte> bytes) { own->merge(std::move(*unpacked(bytes))); },
                                   [&](std::span<const std::byte> bytes) { own = unpacked(bytes); }});
}

}  // namespace papaya::report
