#include "mailbox.hpp"

#include <fmt/format.h>

namespace kmeans {

namespace {

// Never freed: that would wait for all ranks. Its error handler lets this program say what is wrong.
MPI_Comm copy_of_world() {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  return copy;
}

void check(int code) {
  if (code != MPI_SUCCESS) throw Problem(fmt::format("papaya: {}", papaya_error()));
}

}  // namespace

Mailbox::Mailbox(const Job& job, const Shape& shape, std::size_t numbers)
    : rank_(job.rank), ranks_(job.ranks), states_(static_cast<std::size_t>(job.ranks)) {
  const std::size_t sizes[kinds] = {
      0, 0, numbers, numbers, shape.sums(), shape.sums(), shape.centroids(), shape.centroids(), 0, 0};
  for (int i = 0; i < kinds; ++i) starts_[i + 1] = starts_[i] + sizes[i];
  const MPI_Comm world = copy_of_world();
  job.together([&] {
    check(papaya_segment_create(world, static_cast<std::size_t>(ranks_) * starts_[kinds] * sizeof(double),
                                kinds * ranks_, &segment_));
    void* address = nullptr;
    check(papaya_segment_address(segment_, &address));
    memory_ = static_cast<const double*>(address);
    char text[64];
    check(papaya_segment_get_info(segment_, text, sizeof text));
    place_ = text;
  });
}

std::size_t Mailbox::offset(Kind kind, int from) const noexcept {
  return static_cast<std::size_t>(from) * starts_[kinds] + starts_[static_cast<int>(kind)];
}

void Mailbox::write(int to, std::size_t at, const Content& content, std::size_t count, Kind kind, unsigned value) {
  // Between nodes a source stays as it is until it has left.
  if (has_left(0)) under_way_.clear();
  if (content) under_way_.push_back(content);
  const int code = papaya_write_notify(segment_, to, at * sizeof(double), content ? content->data() : nullptr,
                                       count * sizeof(double), static_cast<int>(kind) * ranks_ + rank_, value);
  // A lost one's silence is enough.
  if (code != MPI_ERR_OTHER) check(code);
}

void Mailbox::send(Kind kind, int to, unsigned value, const Content& content) {
  write(to, offset(kind, rank_), content, content ? content->size() : 0, kind, value);
}

void Mailbox::send_half(Kind kind, int to, const Content& content) {
  write(to, offset(kind, rank_), content, content->size() / 2, Kind::half_written, 1);
}

std::optional<Message> Mailbox::receive(double seconds) {
  int id = -1;
  check(papaya_notify_wait(segment_, 0, kinds * ranks_, seconds, &id));
  if (id < 0) return std::nullopt;
  Message message{static_cast<Kind>(id / ranks_), id % ranks_, 0};
  check(papaya_notify_reset(segment_, id, &message.value));
  return message;
}

const double* Mailbox::slot(Kind kind, int from) const noexcept {
  return memory_ + offset(kind, from);
}

const std::vector<int>& Mailbox::states() {
  check(papaya_segment_state(segment_, states_.data()));
  return states_;
}

void Mailbox::exclude(int rank) {
  check(papaya_segment_exclude(segment_, rank));
  kept_.insert(kept_.end(), under_way_.begin(), under_way_.end());
  under_way_.clear();
}

void Mailbox::discard() {
  check(papaya_segment_discard(&segment_));
}

bool Mailbox::has_left(double seconds) {
  int flag = 0;
  check(papaya_write_wait(segment_, seconds, &flag));
  return flag != 0;
}

}  // namespace kmeans
