// For calls of MPI's that PAPAYA_APPROX names (interpose/weak_service.hpp).
#include <cstring>
#include <deque>
#include <mutex>
#include <new>

#include "api/instance.hpp"
#include "base/version.hpp"
#include "interpose/weak_service.hpp"

namespace papaya::weak {

namespace {

// Never destroyed: MPI_Finalize ends them, and other ranks may write to them until then.
Instance* keep(std::unique_ptr<Instance> instance) {
  static std::mutex mutex;
  static auto& all = *new std::deque<std::unique_ptr<Instance>>;
  const std::lock_guard lock(mutex);
  return all.emplace_back(std::move(instance)).get();
}

std::span<const WeakDescriptor* const> algorithms() noexcept {
  return weak_registry();
}

void* create(MPI_Comm comm, const WeakOrder& order, std::string& problem) noexcept {
  Error error;
  std::unique_ptr<Instance> instance = Instance::create(comm,
                                                        {.collective = order.collective,
                                                         .count = order.count,
                                                         .type = order.type,
                                                         .op = order.op,
                                                         .root = order.root,
                                                         .share = order.share,
                                                         .algorithm = order.algorithm},
                                                        error);
  if (instance != nullptr) return keep(std::move(instance));
  problem = error.sentence;
  return nullptr;
}

bool start(void* collective, const void* site, const void* contribution, void* result, std::string& problem) noexcept {
  Instance& instance = *static_cast<Instance*>(collective);
  instance.called_from(site);
  const Error error = instance.start(contribution, result);
  if (error.is_set()) problem = error.sentence;
  return !error.is_set();
}

bool wait(void* collective, double seconds) noexcept {
  return static_cast<Instance*>(collective)->wait(seconds);
}

WeakStatus status(void* collective) noexcept {
  return static_cast<Instance*>(collective)->weak_status();
}

constexpr WeakService service{algorithms, create, start, wait, status};

}  // namespace

}  // namespace papaya::weak

extern "C" __attribute__((visibility("default"))) const papaya::WeakService* papaya_weak_service(const char* version);
const papaya::WeakService* papaya_weak_service(const char* version) {
  return std::strcmp(version, PAPAYA_VERSION) == 0 ? &papaya::weak::service : nullptr;
}
