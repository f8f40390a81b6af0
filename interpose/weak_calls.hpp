// What libpapaya-weak-MPI.so wants done in this process, whether or not its collectives are recorded.
#pragma once

namespace papaya::weak_calls {

// The last thing before MPI's MPI_Finalize.
void before_finalize() noexcept;

}  // namespace papaya::weak_calls
