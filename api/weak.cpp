// The functions of papaya_weak.h.
#include <fmt/format.h>

#include <cmath>

#include "api/handle.hpp"
#include "api/instance.hpp"

#define PAPAYA_PUBLIC __attribute__((visibility("default")))

using papaya::WeakCollective;
namespace weak = papaya::weak;
using weak::Error;
using weak::Instance;
using weak::Wish;

struct papaya_weak_collective : weak::Handle<Instance> {};

namespace {

constexpr weak::Kind kind{.name = "collective", .plural = "weak collectives", .null = "PAPAYA_WEAK_NULL"};

int create(const char* function, MPI_Comm comm, const Wish& wish, papaya_weak* handle) {
  return weak::create_handle(kind, function, comm, handle,
                             [&](Error& error) { return Instance::create(comm, wish, error); });
}

template <class Do>
int with(const char* function, papaya_weak handle, Do&& act) {
  return weak::with_handle(kind, function, handle, act);
}

void tell(const Instance& collective, papaya_weak_status* status) {
  if (status != PAPAYA_WEAK_STATUS_IGNORE) *status = collective.status();
}

// `site`: where the program called `function`.
int call(const char* function, const void* site, papaya_weak handle, const void* contribution, void* result,
         papaya_weak_status* status) {
  return with(function, handle, [&](Instance& one) -> Error {
    if (one.is_under_way()) return {MPI_ERR_REQUEST, "a call is under way; finish it with papaya_weak_wait first"};
    one.called_from(site);
    if (Error error = one.start(contribution, result); error.is_set()) return error;
    if (!one.wait(one.limit())) return one.late();
    tell(one, status);
    return {};
  });
}

int start(const char* function, const void* site, papaya_weak handle, const void* contribution, void* result) {
  return with(function, handle, [&](Instance& one) -> Error {
    if (one.is_under_way()) return {MPI_ERR_REQUEST, "a call is under way; finish it with papaya_weak_wait first"};
    one.called_from(site);
    return one.start(contribution, result);
  });
}

int wait(const char* function, const void* site, papaya_weak handle, double seconds, int* flag,
         papaya_weak_status* status) {
  return with(function, handle, [&](Instance& one) -> Error {
    if (flag == nullptr) return {MPI_ERR_ARG, "flag is a null pointer"};
    if (std::isnan(seconds)) return {MPI_ERR_ARG, "the seconds are no number; less than 0 is for as long as it takes"};
    one.called_from(site);
    *flag = one.wait(seconds) ? 1 : 0;
    if (*flag != 0) tell(one, status);
    return {};
  });
}

}  // namespace

extern "C" {

PAPAYA_PUBLIC int papaya_ssp_allreduce_create(MPI_Comm comm, MPI_Count count, MPI_Datatype type, MPI_Op op, int slack,
                                              const char* algorithm, papaya_weak* collective) {
  return create(__func__, comm,
                {.collective = WeakCollective::ssp_allreduce,
                 .count = count,
                 .type = type,
                 .op = op,
                 .algorithm = algorithm,
                 .values = {{"slack", slack}}},
                collective);
}

PAPAYA_PUBLIC int papaya_ssp_accumulate_create(MPI_Comm comm, MPI_Count count, MPI_Datatype type, MPI_Op op, int slack,
                                               const char* algorithm, papaya_weak* collective) {
  return create(__func__, comm,
                {.collective = WeakCollective::ssp_allreduce,
                 .count = count,
                 .type = type,
                 .op = op,
                 .algorithm = algorithm,
                 .accumulates = true,
                 .values = {{"slack", slack}}},
                collective);
}

PAPAYA_PUBLIC int papaya_threshold_bcast_create(MPI_Comm comm, MPI_Count count, MPI_Datatype type, double threshold,
                                                int of, int root, papaya_weak* collective) {
  return create(__func__, comm,
                {.collective = WeakCollective::threshold_bcast,
                 .count = count,
                 .type = type,
                 .root = root,
                 .share = threshold,
                 .values = {{"of_ranks", of}}},
                collective);
}

PAPAYA_PUBLIC int papaya_threshold_reduce_create(MPI_Comm comm, MPI_Count count, MPI_Datatype type, MPI_Op op,
                                                 double threshold, int of, int root, papaya_weak* collective) {
  return create(__func__, comm,
                {.collective = WeakCollective::threshold_reduce,
                 .count = count,
                 .type = type,
                 .op = op,
                 .root = root,
                 .share = threshold,
                 .values = {{"of_ranks", of}}},
                collective);
}

PAPAYA_PUBLIC int papaya_sparse_allreduce_create(MPI_Comm comm, MPI_Count count, MPI_Datatype type, double share,
                                                 papaya_weak* collective) {
  return create(__func__, comm,
                {.collective = WeakCollective::sparse_allreduce,
                 .count = count,
                 .type = type,
                 .op = MPI_SUM,
                 .share = share,
                 .values = {{"per_million", share > 0 && share <= 1 ? std::llround(std::ceil(share * 1e6)) : 1}}},
                collective);
}

PAPAYA_PUBLIC int papaya_partial_allreduce_create(MPI_Comm comm, MPI_Count count, MPI_Datatype type, MPI_Op op,
                                                  const char* algorithm, papaya_weak* collective) {
  return create(
      __func__, comm,
      {.collective = WeakCollective::partial_allreduce, .count = count, .type = type, .op = op, .algorithm = algorithm},
      collective);
}

PAPAYA_PUBLIC int papaya_group_allreduce_create(MPI_Comm comm, MPI_Count count, MPI_Datatype type, MPI_Op op, int group,
                                                int period, papaya_weak* collective) {
  return create(__func__, comm,
                {.collective = WeakCollective::group_allreduce,
                 .count = count,
                 .type = type,
                 .op = op,
                 .values = {{"group", group}, {"period", period}}},
                collective);
}

PAPAYA_PUBLIC int papaya_weak_withdraw(papaya_weak collective, void* contributions, long long* calls) {
  return with(__func__, collective, [&](Instance& one) -> Error {
    if (one.is_under_way()) return {MPI_ERR_REQUEST, "a call is under way; finish it with papaya_weak_wait first"};
    if (calls == nullptr) return {MPI_ERR_ARG, "calls is a null pointer"};
    return one.withdraw(contributions, *calls);
  });
}

PAPAYA_PUBLIC int papaya_weak_get_info(papaya_weak collective, char* text, int bytes) {
  return with(__func__, collective, [&](Instance& one) -> Error {
    if (text == nullptr || bytes < 1) return {MPI_ERR_ARG, "the text has no room, not even for its end"};
    const std::string info = one.info();
    text[info.copy(text, static_cast<std::size_t>(bytes) - 1)] = '\0';
    return {};
  });
}

PAPAYA_PUBLIC int papaya_weak_flush(papaya_weak collective) {
  return with(__func__, collective, [&](Instance& one) -> Error {
    if (one.is_under_way()) return {MPI_ERR_REQUEST, "a call is under way; finish it with papaya_weak_wait first"};
    return one.flush();
  });
}

PAPAYA_PUBLIC int papaya_weak_call(papaya_weak collective, const void* contribution, void* result,
                                   papaya_weak_status* status) {
  return call(__func__, __builtin_return_address(0), collective, contribution, result, status);
}

PAPAYA_PUBLIC int papaya_weak_call_in_place(papaya_weak collective, void* result, papaya_weak_status* status) {
  return call(__func__, __builtin_return_address(0), collective, MPI_IN_PLACE, result, status);
}

PAPAYA_PUBLIC int papaya_weak_start(papaya_weak collective, const void* contribution, void* result) {
  return start(__func__, __builtin_return_address(0), collective, contribution, result);
}

PAPAYA_PUBLIC int papaya_weak_start_in_place(papaya_weak collective, void* result) {
  return start(__func__, __builtin_return_address(0), collective, MPI_IN_PLACE, result);
}

PAPAYA_PUBLIC int papaya_weak_wait(papaya_weak collective, double seconds, int* flag, papaya_weak_status* status) {
  return wait(__func__, __builtin_return_address(0), collective, seconds, flag, status);
}

PAPAYA_PUBLIC int papaya_weak_test(papaya_weak collective, int* flag, papaya_weak_status* status) {
  return wait(__func__, __builtin_return_address(0), collective, 0, flag, status);
}

PAPAYA_PUBLIC int papaya_weak_set_limit(papaya_weak collective, double seconds) {
  return with(__func__, collective, [&](Instance& one) -> Error {
    if (!(seconds >= 0))
      return {MPI_ERR_ARG, fmt::format("seconds is {}; it must be 0, for no limit, or more", seconds)};
    one.set_limit(seconds);
    return {};
  });
}

PAPAYA_PUBLIC int papaya_weak_free(papaya_weak* collective) {
  if (collective == nullptr) return with(__func__, PAPAYA_WEAK_NULL, [](Instance&) { return Error{}; });
  papaya_weak const handle = *collective;
  return with(__func__, handle, [&](Instance& one) -> Error {
    if (one.is_under_way())
      return {MPI_ERR_REQUEST, "a call is under way; finish it with papaya_weak_wait before the collective is freed"};
    *collective = PAPAYA_WEAK_NULL;
    const Error error = one.close();
    // What others may still write to stays.
    if (error.is_set())
      handle->abandoned.swap(handle->object);
    else
      handle->object.reset();
    return error;
  });
}

PAPAYA_PUBLIC const char* papaya_error(void) {
  return weak::last_sentence();
}

}  // extern "C"
