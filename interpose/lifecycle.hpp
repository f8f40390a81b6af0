// From MPI_Init to MPI_Finalize: what papaya opens, in which order, and what it closes.
#pragma once

namespace papaya {

// Before MPI_Init, after a successful one, before MPI_Finalize, before MPI_Abort. They return when done; they do not
// fail.
void announce() noexcept;
void start() noexcept;
void stop() noexcept;
void note_abort(int code) noexcept;

}  // namespace papaya
