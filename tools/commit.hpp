#pragma once

namespace papaya {

// The commit that the command was built from, "unknown" where neither git nor the archive of the sources tells.
extern const char* const commit;

}  // namespace papaya
