// What the failure of a message does.
#pragma once

#include <cstdint>

namespace papaya {

enum class OnFailure : std::uint8_t {
  // In a collective the others wait for what will never come, and cannot be told: as after an error in one of MPI's
  // own, the job ends.
  end_job,
  // The peer is lost from then on: what is under way to it is given up, what is written to it is dropped. The others
  // go on.
  lose_peer
};

}  // namespace papaya
