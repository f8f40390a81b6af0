// What a program holds of papaya's: a handle of one collective or segment, and what every function does with it first.
#pragma once

#include <fmt/format.h>
#include <mpi.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <new>

#include "api/error.hpp"

namespace papaya::weak {

// Never given back, so that a handle that has been freed is known as such.
template <class Object>
struct Handle {
  std::unique_ptr<Object> object;
  std::unique_ptr<Object> abandoned;  // freed, but other ranks may still write to it
  std::atomic<bool> is_used{false};   // by a thread, now
};

// What sentences call it.
struct Kind {
  const char* name;
  const char* plural;
  const char* null;  // the handle of none
};

template <class HandleType>
HandleType* new_handle() {
  static std::mutex mutex;
  static auto& all = *new std::deque<HandleType>;
  const std::lock_guard lock(mutex);
  return &all.emplace_back();
}

// Sets `handle` to one for the object that `make` returns. Null, on all ranks alike, where it sets its error.
template <class HandleType, class Make>
int create_handle(const Kind& kind, const char* function, MPI_Comm comm, HandleType** handle, Make&& make) {
  if (!is_mpi_running())
    return raise({MPI_ERR_OTHER, "MPI is not initialised, or finalized already; call it in between"}, function,
                 MPI_COMM_NULL);
  end_under_other_mpi();
  const auto fail = [&](const Error& error) {
    return raise(error, function, comm == MPI_COMM_NULL ? MPI_COMM_WORLD : comm);
  };
  if (handle == nullptr) return fail({MPI_ERR_ARG, "the handle to be set is a null pointer"});
  *handle = nullptr;
  if (comm == MPI_COMM_NULL) return fail({MPI_ERR_COMM, "the communicator is MPI_COMM_NULL"});
  int is_between = 0;
  if (const int code = PMPI_Comm_test_inter(comm, &is_between); code != MPI_SUCCESS) return code;
  if (is_between != 0) return fail({MPI_ERR_COMM, fmt::format("an inter-communicator has no {}", kind.plural)});
  Error error;
  try {
    HandleType* const one = new_handle<HandleType>();
    one->object = make(error);
    if (one->object != nullptr) *handle = one;
  } catch (const std::bad_alloc&) {
    error = {MPI_ERR_NO_MEM, "there is no memory"};
  }
  return *handle != nullptr ? MPI_SUCCESS : fail(error);
}

// Does it with the object of a handle that is in no other thread's use.
template <class HandleType, class Do>
int with_handle(const Kind& kind, const char* function, HandleType* handle, Do&& act) {
  const auto fail = [&](int code, const std::string& sentence) {
    return raise({code, sentence}, function, MPI_COMM_WORLD);
  };
  if (!is_mpi_running()) return fail(MPI_ERR_OTHER, "MPI is not initialised, or finalized already");
  if (handle == nullptr) return fail(MPI_ERR_ARG, fmt::format("the handle is {}", kind.null));
  if (handle->is_used.exchange(true, std::memory_order_acquire))
    return fail(MPI_ERR_ARG, fmt::format("another thread is using this {}; create one for each thread", kind.name));
  if (handle->object == nullptr) {
    handle->is_used.store(false, std::memory_order_release);
    return fail(MPI_ERR_ARG, fmt::format("the {} has been freed", kind.name));
  }
  Error error;
  try {
    error = act(*handle->object);
  } catch (const std::bad_alloc&) {
    error = {MPI_ERR_NO_MEM, "there is no memory"};
  }
  // Release: the partner is the next user's acquire above.
  handle->is_used.store(false, std::memory_order_release);
  if (!error.is_set()) return MPI_SUCCESS;
  // What could not be freed has its handler still.
  return (handle->object != nullptr ? *handle->object : *handle->abandoned).raise(error, function);
}

}  // namespace papaya::weak
