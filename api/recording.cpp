#include "api/recording.hpp"

#include <dlfcn.h>

#include <cmath>

#include "api/process.hpp"
#include "base/clock.hpp"
#include "base/version.hpp"

namespace papaya::weak {

void Recording::open(MPI_Comm comm, const std::string& collective, const std::string& algorithm,
                     const std::string& parameters, std::uint64_t bytes, int root) {
  const auto find = reinterpret_cast<FindWeakRecords>(dlsym(RTLD_DEFAULT, "papaya_weak_records"));
  records_ = find == nullptr ? nullptr : find(PAPAYA_VERSION);
  if (records_ == nullptr) return;
  records_->before_finalize(end_threads);
  collective_ = records_->open({.comm = &comm,
                                .collective = collective.c_str(),
                                .algorithm = algorithm.c_str(),
                                .parameters = parameters.c_str(),
                                .bytes = bytes,
                                .root = root});
}

void Recording::begin() noexcept {
  if (collective_ == nullptr) return;
  inside_ticks_ = 0;
  began_here_ = true;
  number_ = records_->begin(collective_, ++calls_, site_);
  enter();
}

void Recording::enter() noexcept {
  if (collective_ != nullptr) entered_ticks_ = clock::ticks();
}

void Recording::leave() noexcept {
  if (collective_ != nullptr) inside_ticks_ += clock::ticks() - entered_ticks_;
}

void Recording::finish_with(const papaya_weak_status& status, std::uint64_t element_bytes) noexcept {
  leave();
  records_->finish(collective_, number_, began_here_ ? nullptr : site_,
                   {.clock = calls_,
                    .oldest = static_cast<std::uint64_t>(status.oldest),
                    .own = static_cast<std::uint64_t>(status.own),
                    .updated_bytes = static_cast<std::uint64_t>(status.elements) * element_bytes,
                    .inside_ns = static_cast<std::uint64_t>(policy().to_ns(inside_ticks_)),
                    .waited_ns = static_cast<std::uint64_t>(std::llround(status.waited * 1e9)),
                    .share = status.share,
                    .ranks = status.ranks});
}

}  // namespace papaya::weak
