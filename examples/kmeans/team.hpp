// Who lives and who does what. A view says which rank holds which part of the points; there is a new one after each
// failure, made by the lowest rank that lives. Nothing is decided by all: should two ranks believe for a moment that
// they lead, the view with the higher number counts. That can cost work, never the result, since sums of a part and an
// iteration are the same bits whoever makes them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fate.hpp"
#include "mailbox.hpp"

namespace kmeans {

enum class State { healthy, suspected, dead };

// The ranks have to agree on a new view: whatever a rank does, it leaves it.
struct Interrupted {};
// Others have replaced this rank.
struct Replaced {};
// No spare is left.
struct Hopeless : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct View {
  unsigned number = 1;        // grows; of round and leader
  std::vector<int> holders;   // by part
  std::vector<State> states;  // by rank: the state vector
  long iteration = 0;         // goes on from here
  long reached = 0;           // so far somebody had come
  Numbers centroids;
  bool is_hopeless = false;
};

class Team {
 public:
  Team(const Job& job, int parts, const Shape& shape, double timeout, Mailbox& mailbox, Fate& fate);

  // On rank 0 it returns once all others have been heard.
  void begin(Numbers centroids);
  const View& view() const noexcept { return view_; }
  int part() const noexcept;  // that this rank holds, or -1
  bool is_first_holder() const noexcept;
  bool is_first_alive() const noexcept;
  int neighbour(int part) const noexcept;  // keeps its checkpoint, or -1

  // To be called every few milliseconds: this rank shows that it lives, and looks who else does. Throws Interrupted.
  void poll();
  void wait();  // for a message, a moment at most; then the same
  // Returns in a new view, or where all is done. Throws Replaced and Hopeless.
  void recover();
  // For others to have heard the end, so many seconds at most.
  void linger(double seconds);

  // What has come.
  bool has_sums(int from, long iteration) const noexcept;
  const double* sums_of(int from, long iteration) const noexcept;
  bool is_done() const noexcept { return is_done_; }

  // What goes out.
  void send_sums(const Content& sums, long iteration);
  // Not in iterations that follow each other: one that is being read here would be written again.
  void send_checkpoint(int part, const Content& centroids, long iteration);
  void tell_done();  // to all

  long iteration() const noexcept { return iteration_; }  // that this rank is in
  void advance() noexcept { ++iteration_; }
  double outage_began() const noexcept { return outage_began_; }
  int deaths() const noexcept;

 private:
  unsigned code(long iteration) const noexcept;
  unsigned round() const noexcept { return (view_.number - 1) / static_cast<unsigned>(job_.ranks); }
  void drain(double seconds);
  void take(const Message& message);
  void beat(double now);
  void look_for_silent(double now);
  int leader() const noexcept;
  bool lead();
  bool have_answered(unsigned value, double began) const;
  bool adopt_newer();
  void adopt(View view);
  void answer(int caller, unsigned value);
  void answer_calls();
  bool is_called_from_below() const noexcept;
  bool have_all_heard() const noexcept;
  View next_view(unsigned next_round);
  void take_over(View& next) const;
  void find_checkpoint(View& next) const;
  Content pack(const View& view) const;
  View unpack(unsigned number, const double* numbers) const;

  const Job& job_;
  const int parts_;
  const Shape shape_;
  const double timeout_;
  const double pace_;  // of looking
  Mailbox& mailbox_;
  Fate& fate_;
  View view_;
  std::vector<double> heard_;  // by rank, seconds
  double polled_ = 0;
  double has_beaten_ = 0;
  // By rank: the last value that has come. `calls_`: 0 once it has been answered.
  std::vector<unsigned> sums_[2], checkpoints_[2], answers_, calls_;
  std::vector<bool> has_ended_;
  std::vector<bool> is_lost_;  // by rank, and papaya knows
  int next_slot_ = 0;          // for a checkpoint
  unsigned newest_view_ = 0;
  int newest_from_ = -1;
  bool is_done_ = false;
  long iteration_ = 0;
  double outage_began_ = 0;
};

double now();  // seconds
// Of a message that carries a view.
std::size_t view_numbers(int parts, int ranks, const Shape& shape) noexcept;

}  // namespace kmeans
