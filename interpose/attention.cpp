#include "interpose/attention.hpp"

namespace papaya::nonblocking {

constinit std::atomic<int> attention{0};
constinit bool asked_for = false;

}  // namespace papaya::nonblocking
