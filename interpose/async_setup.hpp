// The set-up of an algorithm whose ranks may leave a call before the others come to it (bcast, reduce): no rank waits
// for another. The first that comes to it takes shared memory under a key that all ranks compute alike, the others find
// it there, and they agree in that memory on the call from which the algorithm serves
// (algorithms/waiting/switch_over.hpp). Until then calls go to MPI.
#pragma once

#include <cstdint>
#include <memory>

#include "algorithms/algorithm.hpp"
#include "base/reason.hpp"

namespace papaya {

struct Communicator;
struct Setup;

class AsyncSetup {
 public:
  // One step at each call that `setup` would serve: `call` counts them. Reason::none: setup.prepared serves from this
  // call on; else why this call goes to MPI, which is setup.failure if all later ones do so too.
  Reason step(Communicator& state, Setup& setup, std::uint64_t call) noexcept;
  // Before the memory is given back.
  void end() noexcept { prepared_.reset(); }

 private:
  bool is_joined_ = false;
  std::uint64_t next_try_ = 1;  // the call
  std::unique_ptr<Prepared> prepared_;
};

}  // namespace papaya
