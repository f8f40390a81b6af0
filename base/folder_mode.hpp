// Who may read what papaya writes.
#pragma once

#include <string>

namespace papaya {

// Gives a file that was just made in a run's folder those of the permissions `mode` that the folder has: the umask of
// MPI_Init, whatever the program has set since.
void set_mode_by_folder(int file, const std::string& path, unsigned mode) noexcept;

}  // namespace papaya
