#include "profiler/record/identity.hpp"

namespace papaya::identity {

namespace {

// The finaliser of splitmix64: every input bit changes every output bit with probability near one half.
std::uint64_t mix(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

std::uint64_t of_members(std::span<const int> members) noexcept {
  std::uint64_t hash = mix(members.size());
  for (const int member : members) hash = mix(hash ^ static_cast<std::uint64_t>(static_cast<std::uint32_t>(member)));
  return hash;
}

std::uint64_t of_child(std::uint64_t parent, std::uint64_t members, std::uint64_t salt,
                       std::uint64_t ordinal) noexcept {
  const std::uint64_t id = mix(mix(mix(mix(parent) ^ members) ^ salt) ^ ordinal);
  return id > world ? id : id + 2;  // 0 means unknown, 1 is the world
}

}  // namespace papaya::identity
