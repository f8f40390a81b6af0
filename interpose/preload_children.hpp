// `papaya run` preloads into one process only: what that process starts runs without papaya.
#pragma once

namespace papaya::preload {

// When the library is loaded. `papaya run` marks the process it preloads into. A process that finds itself marked with
// another number is a child: it takes papaya out of its own environment, so that nothing it starts inherits it, and
// stays idle.
enum class Start {
  preloaded,     // LD_PRELOAD says so
  run,           // the process that `papaya run` has become
  child_of_run,  // started by that one
};
Start leave_children_alone();

}  // namespace papaya::preload
