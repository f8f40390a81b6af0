// What ranks tell each other once one of them may die: only by a segment (papaya_segment.h), where a rank that is dead
// or slow makes nobody wait. Every rank has a slot of its own for every kind of message in the memory of every other:
// whoever has been replaced and does not know yet can spoil nothing.
#pragma once

#include <papaya.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clustering.hpp"

namespace kmeans {

// In the order in which they are looked at where several have come.
enum class Kind { beat, call, answer, view, sums_0, sums_1, checkpoint_0, checkpoint_1, half_written, done };
constexpr int kinds = 10;

struct Message {
  Kind kind;
  int from;
  unsigned value;
};
using Content = std::shared_ptr<const Numbers>;

class Mailbox {
 public:
  // Collective. `numbers`: of a view or answer, which are the longest besides sums.
  Mailbox(const Job& job, const Shape& shape, std::size_t numbers);

  // Waits for nobody. `value` is not 0; one that has not been read yet is replaced. Nothing goes to a rank that is
  // lost.
  void send(Kind kind, int to, unsigned value, const Content& content = {});
  // As far as a rank comes that dies at it.
  void send_half(Kind kind, int to, const Content& content);
  // At most so many seconds; 0: only looks.
  std::optional<Message> receive(double seconds);
  const double* slot(Kind kind, int from) const noexcept;
  // Whether what has been sent has left.
  bool has_left(double seconds);
  // Of each rank, whether papaya has lost it: then it is dead. Who is not lost may be, too.
  const std::vector<int>& states();
  // It is dead, whatever papaya knows.
  void exclude(int rank);
  // Of no use any more; waits for nobody.
  void discard();
  const std::string& place() const noexcept { return place_; }

 private:
  std::size_t offset(Kind kind, int from) const noexcept;

  void write(int to, std::size_t at, const Content& content, std::size_t count, Kind kind, unsigned value);

  const int rank_;
  const int ranks_;
  std::size_t starts_[kinds + 1] = {};  // in the share of a writer, numbers
  papaya_segment segment_ = PAPAYA_SEGMENT_NULL;
  const double* memory_ = nullptr;
  std::vector<int> states_;
  std::deque<Content> under_way_;
  std::deque<Content> kept_;  // on their way to ranks that were excluded, which may live
  std::string place_;
};

}  // namespace kmeans
