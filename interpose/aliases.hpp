// Whether this MPI refuses a send buffer that is the receive buffer as well.
#pragma once

namespace papaya::aliases {

// By its settings; asked once.
bool are_refused() noexcept;

}  // namespace papaya::aliases
