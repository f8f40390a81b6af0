#include "team.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>

namespace kmeans {

namespace {

constexpr double patience = 40;                  // timeouts
constexpr double longest_pace = 0.25;            // seconds: papaya may know of a death sooner than silence shows it
constexpr std::size_t words_before_holders = 3;  // of a view

}  // namespace

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::size_t view_numbers(int parts, int ranks, const Shape& shape) noexcept {
  return words_before_holders + static_cast<std::size_t>(parts + ranks) + shape.centroids();
}

Team::Team(const Job& job, int parts, const Shape& shape, double timeout, Mailbox& mailbox, Fate& fate)
    : job_(job),
      parts_(parts),
      shape_(shape),
      timeout_(timeout),
      pace_(std::min(timeout, longest_pace)),
      mailbox_(mailbox),
      fate_(fate) {
  const auto ranks = static_cast<std::size_t>(job.ranks);
  heard_.resize(ranks);
  for (auto* const values : {&sums_[0], &sums_[1], &checkpoints_[0], &checkpoints_[1], &answers_, &calls_})
    values->assign(ranks, 0);
  has_ended_.assign(ranks, false);
  is_lost_.assign(ranks, false);
  view_.states.assign(ranks, State::healthy);
  for (int part = 0; part < parts; ++part) view_.holders.push_back(part);
}

void Team::begin(Numbers centroids) {
  View first = view_;
  first.centroids = std::move(centroids);
  adopt(std::move(first));
  const double began = now();
  beat(began);
  const auto is_silent = [&](double time) { return time <= began; };
  std::fill(heard_.begin(), heard_.end(), began);
  if (job_.rank != 0) return;
  for (heard_[0] = now(); now() - began < patience * timeout_ && std::any_of(heard_.begin(), heard_.end(), is_silent);)
    drain(pace_ / 20);
}

int Team::part() const noexcept {
  const auto found = std::find(view_.holders.begin(), view_.holders.end(), job_.rank);
  return found == view_.holders.end() ? -1 : static_cast<int>(found - view_.holders.begin());
}

bool Team::is_first_holder() const noexcept {
  return *std::min_element(view_.holders.begin(), view_.holders.end()) == job_.rank;
}

bool Team::is_first_alive() const noexcept {
  const auto dead_before =
      std::find_if(view_.states.begin(), view_.states.end(), [](State one) { return one != State::dead; });
  return dead_before - view_.states.begin() == job_.rank;
}

// The holder of the next part; of a single one the first spare.
int Team::neighbour(int part) const noexcept {
  if (parts_ > 1) return view_.holders[static_cast<std::size_t>((part + 1) % parts_)];
  for (int rank = 0; rank < job_.ranks; ++rank)
    if (rank != view_.holders[0] && view_.states[static_cast<std::size_t>(rank)] == State::healthy) return rank;
  return -1;
}

int Team::deaths() const noexcept {
  return static_cast<int>(std::count(view_.states.begin(), view_.states.end(), State::dead));
}

// What a notification says: the view, so that nothing of an older one counts, and the iteration.
unsigned Team::code(long iteration) const noexcept {
  return (view_.number & 0xFFF) << 20 | static_cast<unsigned>(iteration + 1);
}

void Team::take(const Message& message) {
  const auto from = static_cast<std::size_t>(message.from);
  heard_[from] = now();
  switch (message.kind) {
    case Kind::sums_0:
    case Kind::sums_1:
      sums_[message.kind == Kind::sums_1][from] = message.value;
      break;
    case Kind::checkpoint_0:
    case Kind::checkpoint_1:
      checkpoints_[message.kind == Kind::checkpoint_1][from] = message.value;
      break;
    case Kind::answer:
      answers_[from] = message.value;
      break;
    case Kind::call:
      calls_[from] = message.value;
      break;
    case Kind::view:
      if (message.value <= newest_view_) break;
      newest_view_ = message.value;
      newest_from_ = message.from;
      break;
    case Kind::done:
      has_ended_[from] = true;
      is_done_ = true;
      break;
    case Kind::beat:
    case Kind::half_written:
      break;
  }
}

void Team::drain(double seconds) {
  for (std::optional<Message> message = mailbox_.receive(seconds); message; message = mailbox_.receive(0))
    take(*message);
}

void Team::beat(double time) {
  if (time - has_beaten_ < timeout_ / 5) return;
  has_beaten_ = time;
  for (int rank = 0; rank < job_.ranks; ++rank)
    if (rank != job_.rank && view_.states[static_cast<std::size_t>(rank)] != State::dead)
      mailbox_.send(Kind::beat, rank, 1);
}

// Or lost, which it becomes sooner where papaya can tell.
void Team::look_for_silent(double time) {
  const std::vector<int>& known = mailbox_.states();
  for (std::size_t rank = 0; rank < heard_.size(); ++rank) {
    State& state = view_.states[rank];
    if (state == State::dead || static_cast<int>(rank) == job_.rank) continue;
    is_lost_[rank] = known[rank] != PAPAYA_STATE_HEALTHY;
    state = is_lost_[rank] || time - heard_[rank] > timeout_ ? State::suspected : State::healthy;
  }
}

int Team::leader() const noexcept {
  return static_cast<int>(std::find(view_.states.begin(), view_.states.end(), State::healthy) - view_.states.begin());
}

void Team::poll() {
  double time = now();
  if (time - polled_ < pace_ / 50) return;
  // Who has been away itself cannot tell who else has.
  const bool was_away = time - polled_ > timeout_ / 2;
  drain(0);
  time = now();
  if (was_away) std::fill(heard_.begin(), heard_.end(), time);
  polled_ = time;
  beat(time);
  look_for_silent(time);
  answer_calls();
  if (newest_view_ > view_.number || std::any_of(calls_.begin(), calls_.end(), [](unsigned call) { return call != 0; }))
    throw Interrupted{};
  const bool is_missed = std::any_of(view_.holders.begin(), view_.holders.end(), [&](int rank) {
    return view_.states[static_cast<std::size_t>(rank)] == State::suspected;
  });
  if (is_missed && leader() == job_.rank) throw Interrupted{};
}

void Team::wait() {
  drain(pace_ / 20);
  poll();
}

void Team::recover() {
  fate_.meet(Moment::recovering);
  const double began = now();
  while (!is_done_ && !adopt_newer()) {
    for (int rank = 0; rank < job_.ranks; ++rank)
      if (unsigned& call = calls_[static_cast<std::size_t>(rank)]; call != 0) {
        answer(rank, std::max(call, round() + 1));
        call = 0;
      }
    drain(pace_ / 20);
    polled_ = now();
    beat(polled_);
    look_for_silent(polled_);
    if (leader() == job_.rank && newest_view_ <= view_.number && !is_called_from_below() && lead()) return;
    if (polled_ - began > patience * timeout_)
      throw Hopeless(
          fmt::format("Rank {} has found no agreement with the others within {} s.", job_.rank, patience * timeout_));
  }
}

// Those of ranks that do not know the present view yet: they hear that it is there, and call again.
void Team::answer_calls() {
  for (int rank = 0; rank < job_.ranks; ++rank)
    if (unsigned& call = calls_[static_cast<std::size_t>(rank)]; call != 0 && call <= round()) {
      answer(rank, round() + 1);
      call = 0;
    }
}

bool Team::is_called_from_below() const noexcept {
  return std::any_of(calls_.begin(), calls_.begin() + job_.rank, [](unsigned call) { return call != 0; });
}

void Team::answer(int caller, unsigned value) {
  // The newest checkpoint of this view that another rank has completed here, or what the view began with.
  long newest = view_.iteration;
  const double* numbers = view_.centroids.data();
  for (int slot = 0; slot < 2; ++slot)
    for (int from = 0; from < job_.ranks; ++from) {
      const unsigned is = checkpoints_[slot][static_cast<std::size_t>(from)];
      const long at = static_cast<long>(is & 0xFFFFF) - 1;
      if (is == 0 || is != code(at) || at <= newest) continue;
      newest = at;
      numbers = mailbox_.slot(slot == 1 ? Kind::checkpoint_1 : Kind::checkpoint_0, from);
    }
  auto content = std::make_shared<Numbers>(Numbers{static_cast<double>(newest), static_cast<double>(iteration_)});
  content->insert(content->end(), numbers, numbers + shape_.centroids());
  mailbox_.send(Kind::answer, caller, value, content);
}

// Whether nobody is waited for any longer. Who is not suspected will answer.
bool Team::have_answered(unsigned value, double began) const {
  const bool is_over = now() - began > timeout_ / 2;
  for (std::size_t rank = 0; rank < answers_.size(); ++rank)
    if (answers_[rank] < value && view_.states[rank] != State::dead &&
        !(view_.states[rank] == State::suspected && (is_over || is_lost_[rank])))
      return false;
  return true;
}

// False where another rank leads, or knows of a later view.
bool Team::lead() {
  const unsigned next_round = std::max(round(), *std::max_element(answers_.begin(), answers_.end())) + 1;
  std::fill(answers_.begin(), answers_.end(), 0);
  for (int rank = 0; rank < job_.ranks; ++rank)
    if (rank != job_.rank && view_.states[static_cast<std::size_t>(rank)] != State::dead)
      mailbox_.send(Kind::call, rank, next_round);
  answer(job_.rank, next_round);
  const double began = now();
  do {
    drain(pace_ / 50);
    polled_ = now();
    beat(polled_);
    look_for_silent(polled_);
    if (newest_view_ > view_.number || is_called_from_below()) return false;
  } while (!have_answered(next_round, began));
  if (*std::max_element(answers_.begin(), answers_.end()) > next_round) return false;
  View next = next_view(next_round);
  const Content content = pack(next);
  for (int rank = 0; rank < job_.ranks; ++rank) {
    if (rank == job_.rank || view_.states[static_cast<std::size_t>(rank)] == State::dead) continue;
    mailbox_.send(Kind::view, rank, next.number, content);
    fate_.meet(Moment::leading);
  }
  adopt(std::move(next));
  return true;
}

View Team::next_view(unsigned next_round) {
  View next = view_;
  next.number = next_round * static_cast<unsigned>(job_.ranks) + static_cast<unsigned>(job_.rank) + 1;
  for (std::size_t rank = 0; rank < answers_.size(); ++rank)
    if (next.states[rank] != State::dead) next.states[rank] = answers_[rank] != 0 ? State::healthy : State::dead;
  find_checkpoint(next);
  take_over(next);
  return next;
}

// The newest one; it is of all ranks, as centroids are the same everywhere.
void Team::find_checkpoint(View& next) const {
  for (int rank = 0; rank < job_.ranks; ++rank) {
    if (answers_[static_cast<std::size_t>(rank)] == 0) continue;
    const double* const numbers = mailbox_.slot(Kind::answer, rank);
    next.reached = std::max(next.reached, static_cast<long>(numbers[1]));
    if (static_cast<long>(numbers[0]) <= next.iteration) continue;
    next.iteration = static_cast<long>(numbers[0]);
    next.centroids.assign(numbers + 2, numbers + 2 + shape_.centroids());
  }
}

void Team::take_over(View& next) const {
  for (int& holder : next.holders) {
    if (next.states[static_cast<std::size_t>(holder)] != State::dead) continue;
    int spare = 0;
    while (spare < job_.ranks && (next.states[static_cast<std::size_t>(spare)] == State::dead ||
                                  std::count(next.holders.begin(), next.holders.end(), spare) != 0))
      ++spare;
    if (spare == job_.ranks)
      next.is_hopeless = true;
    else
      holder = spare;
  }
}

Content Team::pack(const View& view) const {
  auto numbers = std::make_shared<Numbers>(
      Numbers{static_cast<double>(view.iteration), static_cast<double>(view.reached), view.is_hopeless ? 1.0 : 0.0});
  for (const int holder : view.holders) numbers->push_back(holder);
  for (const State state : view.states) numbers->push_back(static_cast<double>(state));
  numbers->insert(numbers->end(), view.centroids.begin(), view.centroids.end());
  return numbers;
}

View Team::unpack(unsigned number, const double* numbers) const {
  View view{.number = number,
            .holders = {},
            .states = {},
            .iteration = static_cast<long>(numbers[0]),
            .reached = static_cast<long>(numbers[1]),
            .centroids = {},
            .is_hopeless = numbers[2] != 0};
  numbers += words_before_holders;
  for (int part = 0; part < parts_; ++part) view.holders.push_back(static_cast<int>(*numbers++));
  for (int rank = 0; rank < job_.ranks; ++rank) view.states.push_back(static_cast<State>(static_cast<int>(*numbers++)));
  view.centroids.assign(numbers, numbers + shape_.centroids());
  return view;
}

bool Team::adopt_newer() {
  if (newest_view_ <= view_.number) return false;
  adopt(unpack(newest_view_, mailbox_.slot(Kind::view, newest_from_)));
  return true;
}

void Team::adopt(View view) {
  const double time = now();
  outage_began_ = time;
  for (std::size_t rank = 0; rank < heard_.size(); ++rank)
    if (view.states[rank] == State::dead && view_.states[rank] != State::dead) {
      outage_began_ = std::min(outage_began_, heard_[rank]);
      if (static_cast<int>(rank) != job_.rank) mailbox_.exclude(static_cast<int>(rank));
    }
  view_ = std::move(view);
  if (view_.states[static_cast<std::size_t>(job_.rank)] == State::dead) throw Replaced{};
  if (view_.is_hopeless)
    throw Hopeless(fmt::format("{} of the {} ranks are dead, and no spare is left; start with more --spares.", deaths(),
                               job_.ranks));
  heard_.assign(heard_.size(), time);
  polled_ = time;
  next_slot_ = 0;
  iteration_ = view_.iteration;
}

bool Team::has_sums(int from, long of) const noexcept {
  return sums_[of % 2][static_cast<std::size_t>(from)] == code(of);
}

const double* Team::sums_of(int from, long of) const noexcept {
  return mailbox_.slot(of % 2 == 1 ? Kind::sums_1 : Kind::sums_0, from);
}

void Team::send_sums(const Content& sums, long of) {
  for (const int holder : view_.holders) {
    mailbox_.send(of % 2 == 1 ? Kind::sums_1 : Kind::sums_0, holder, code(of), sums);
    if (holder != job_.rank) fate_.meet(Moment::sending, of);
  }
}

void Team::send_checkpoint(int part, const Content& centroids, long of) {
  const int to = neighbour(part);
  if (to < 0) return;
  const Kind slot = next_slot_ == 1 ? Kind::checkpoint_1 : Kind::checkpoint_0;
  if (fate_.is_now(Moment::checkpoint, of)) {
    mailbox_.send_half(slot, to, centroids);
    Fate::die();
  }
  mailbox_.send(slot, to, code(of), centroids);
  next_slot_ = 1 - next_slot_;
}

void Team::tell_done() {
  is_done_ = true;
  for (int rank = 0; rank < job_.ranks; ++rank)
    if (rank != job_.rank && view_.states[static_cast<std::size_t>(rank)] != State::dead)
      mailbox_.send(Kind::done, rank, 1);
}

bool Team::have_all_heard() const noexcept {
  for (std::size_t rank = 0; rank < has_ended_.size(); ++rank)
    if (!has_ended_[rank] && view_.states[rank] != State::dead && static_cast<int>(rank) != job_.rank) return false;
  return true;
}

void Team::linger(double seconds) {
  const double until = now() + seconds;
  while (now() < until && !(have_all_heard() && mailbox_.has_left(0))) drain(pace_ / 50);
}

}  // namespace kmeans
