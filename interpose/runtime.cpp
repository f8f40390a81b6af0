#include "interpose/runtime.hpp"

namespace papaya {

thread_local constinit bool Entry::inside_ = false;

Runtime& the_runtime = *new Runtime;

}  // namespace papaya
