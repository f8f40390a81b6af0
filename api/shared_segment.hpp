// Memory that ranks of one node share: a file in /dev/shm that has a name until all of them have it.
#pragma once

#include <cstddef>
#include <string>

namespace papaya::weak {

class SharedSegment {
 public:
  SharedSegment() = default;
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  // One rank, before the others are told its name: an empty file. False if there can be none.
  bool create(const std::string& name);
  // Every rank, with the same numbers; makes the `rank`th share of the pages present, which are zero. False if there is
  // no memory for it. All may write once all have it.
  bool open(const std::string& name, std::size_t bytes, int rank, int ranks) noexcept;
  std::byte* begin() const noexcept { return begin_; }

  // Once all have it, or will not: nothing is left behind, whatever ends the processes.
  void forget_name() noexcept;

 private:
  std::string name_;  // of the file that this rank has created
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

// The same number on all ranks that share /dev/shm, and on no other.
std::size_t number_of_node();

}  // namespace papaya::weak
