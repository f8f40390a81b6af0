// Calls that PAPAYA_APPROX names by their call site. Where a rank calls from is its own: others may make the same call
// of MPI's elsewhere. A call is approximate on all ranks if it comes from a named site on any.
//
// For each call that such a rule may be for every rank begins one nonblocking allreduce, of whether its site is named.
// So the n-th of these is the n-th call's on all ranks. A rank at a named site goes on at once. Any other waits for the
// answer, that is until all ranks have come to this call, as an exact MPI_Allreduce does. Nobody waits in a circle: who
// waits for an answer waits for ranks that have not come to this call; who waits in an approximate call, for ranks that
// have not come to it either; each rank has begun its allreduce before it waits; so the rank that has made fewest calls
// waits for nobody.
#pragma once

#include <mpi.h>

#include <deque>

namespace papaya::approx {

class SiteAgreement {
 public:
  // Collective over `comm`, of which it has a copy.
  explicit SiteAgreement(MPI_Comm comm) noexcept;
  SiteAgreement(const SiteAgreement&) = delete;
  SiteAgreement& operator=(const SiteAgreement&) = delete;

  bool is_good() const noexcept { return comm_ != MPI_COMM_NULL; }

  // Whether the next call is approximate, on all ranks alike. `pause` is called while it waits.
  template <class Pause>
  bool is_approximate(bool is_named, Pause&& pause) {
    tell(is_named);
    drop_answered();
    if (is_named) return true;
    while (!answers_.back().is_there()) pause();
    return answers_.back().all != 0;
  }

  // While a rank at a named site waits in the call: who is elsewhere may need this rank for its answer.
  void progress() noexcept { drop_answered(); }

  // Once the communicator is gone: true if all ranks have come to all calls; then the copy is freed. In MPI_Finalize it
  // becomes true.
  bool end() noexcept;

 private:
  struct Answer {
    int mine = 0;
    int all = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    bool is_there() noexcept;
  };
  void tell(bool is_named);
  void drop_answered() noexcept;

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::deque<Answer> answers_;  // elements stay where they are; the last is the present call's
};

}  // namespace papaya::approx
