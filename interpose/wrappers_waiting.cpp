// The wrappers of MPI's functions that only wait: for requests, for messages. While operations of papaya's
// are outstanding in this process, what would block is made of its nonblocking form and a loop that moves
// them on: another rank may wait for them in the very call that this one waits for. Otherwise they cost a
// load and a call; and where no nonblocking collective is papaya's libpapaya.so leads past them.

#include <mpi.h>

#include "interpose/mpi_features.hpp"
#include "interpose/next.hpp"
#include "interpose/nonblocking.hpp"
#include "interpose/scratch.hpp"
#include "interpose/wrappers.hpp"

namespace papaya::nonblocking {

namespace {

// `test(flag)` asks MPI without waiting, `block()` waits inside MPI. The latter once nothing of papaya's is
// outstanding any more.
template <class Test, class Block>
int wait_by(Test&& test, Block&& block) {
  int code = MPI_SUCCESS;
  int flag = 0;
  wait_until([&] {
    code = test(flag);
    return code != MPI_SUCCESS || flag != 0 || !needs_attention();
  });
  return code != MPI_SUCCESS || flag != 0 ? code : block();
}

int wait_for(MPI_Request& request, MPI_Status* status) {
  return wait_by([&](int& flag) { return PMPI_Test(&request, &flag, status); },
                 [&] { return PMPI_Wait(&request, status); });
}

// What `start(&request)` starts, to its end.
template <class Start>
int run(Start&& start, MPI_Status* status = MPI_STATUS_IGNORE) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = start(&request);
  return code == MPI_SUCCESS ? wait_for(request, status) : code;
}

// A receive and a send at once.
template <class Receive, class Send>
int run_both(Receive&& receive, Send&& send, MPI_Status* status) {
  MPI_Request received = MPI_REQUEST_NULL;
  MPI_Request sent = MPI_REQUEST_NULL;
  int code = receive(&received);
  if (code != MPI_SUCCESS) return code;
  code = send(&sent);
  if (code != MPI_SUCCESS) {
    PMPI_Cancel(&received);
    PMPI_Request_free(&received);
    return code;
  }
  const int of_receive = wait_for(received, status);
  const int of_send = wait_for(sent, MPI_STATUS_IGNORE);
  return of_receive != MPI_SUCCESS ? of_receive : of_send;
}

// The same from MPI_PROC_NULL. MPICH 4.0.2 leaves the status of MPI_Irecv from there empty; MPI_Recv, which does not
// wait for anybody there, fills it.
template <class Receive, class Send>
int run_send(Send&& send, Receive&& receive_nothing) {
  const int code = run(send);
  return code == MPI_SUCCESS ? receive_nothing() : code;
}

// What MPI_Sendrecv_replace sends: MPI matches packed bytes with any type.
class Packed {
 public:
  Packed(const void* buffer, int count, MPI_Datatype type, MPI_Comm comm) {
    int room = 0;
    code = PMPI_Pack_size(count, type, comm, &room);
    if (code != MPI_SUCCESS || !allocate(static_cast<std::size_t>(room))) return;
    int position = 0;
    code = PMPI_Pack(buffer, count, type, bytes.data(), room, &position, comm);
    size = position;
  }
#if PAPAYA_HAS_LARGE_COUNTS
  Packed(const void* buffer, MPI_Count count, MPI_Datatype type, MPI_Comm comm) {
    MPI_Count room = 0;
    code = PMPI_Pack_size_c(count, type, comm, &room);
    if (code != MPI_SUCCESS || !allocate(static_cast<std::size_t>(room))) return;
    MPI_Count position = 0;
    code = PMPI_Pack_c(buffer, count, type, bytes.data(), room, &position, comm);
    size = position;
  }
#endif
  int code = MPI_SUCCESS;
  Scratch bytes;
  MPI_Count size = 0;

 private:
  bool allocate(std::size_t room) {
    bytes = Scratch(room);
    if (bytes.data() == nullptr) code = MPI_ERR_NO_MEM;
    return bytes.data() != nullptr;
  }
};

}  // namespace

}  // namespace papaya::nonblocking

using papaya::nonblocking::needs_attention;

PAPAYA_WRAPPER papaya_MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (needs_attention()) papaya::nonblocking::progress();
  return PAPAYA_NEXT(Test)(request, flag, status);
}
PAPAYA_WRAPPER papaya_MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  if (needs_attention()) papaya::nonblocking::progress();
  return PAPAYA_NEXT(Testall)(count, requests, flag, statuses);
}
PAPAYA_WRAPPER papaya_MPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  if (needs_attention()) papaya::nonblocking::progress();
  return PAPAYA_NEXT(Testany)(count, requests, index, flag, status);
}
PAPAYA_WRAPPER papaya_MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]) {
  if (needs_attention()) papaya::nonblocking::progress();
  return PAPAYA_NEXT(Testsome)(count, requests, done, indices, statuses);
}
PAPAYA_WRAPPER papaya_MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  if (needs_attention()) papaya::nonblocking::progress();
  return PAPAYA_NEXT(Request_get_status)(request, flag, status);
}
PAPAYA_WRAPPER papaya_MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  if (needs_attention()) papaya::nonblocking::progress();
  return PAPAYA_NEXT(Iprobe)(source, tag, comm, flag, status);
}
PAPAYA_WRAPPER papaya_MPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                                  MPI_Status* status) {
  if (needs_attention()) papaya::nonblocking::progress();
  return PAPAYA_NEXT(Improbe)(source, tag, comm, flag, message, status);
}

PAPAYA_WRAPPER papaya_MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (!needs_attention()) return PAPAYA_NEXT(Wait)(request, status);
  return papaya::nonblocking::wait_by([&](int& flag) { return PMPI_Test(request, &flag, status); },
                                      [&] { return PAPAYA_NEXT(Wait)(request, status); });
}
PAPAYA_WRAPPER papaya_MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  if (!needs_attention()) return PAPAYA_NEXT(Waitall)(count, requests, statuses);
  return papaya::nonblocking::wait_by([&](int& flag) { return PMPI_Testall(count, requests, &flag, statuses); },
                                      [&] { return PAPAYA_NEXT(Waitall)(count, requests, statuses); });
}
PAPAYA_WRAPPER papaya_MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  if (!needs_attention()) return PAPAYA_NEXT(Waitany)(count, requests, index, status);
  return papaya::nonblocking::wait_by([&](int& flag) { return PMPI_Testany(count, requests, index, &flag, status); },
                                      [&] { return PAPAYA_NEXT(Waitany)(count, requests, index, status); });
}
PAPAYA_WRAPPER papaya_MPI_Waitsome(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]) {
  if (!needs_attention()) return PAPAYA_NEXT(Waitsome)(count, requests, done, indices, statuses);
  return papaya::nonblocking::wait_by(
      [&](int& flag) {
        const int code = PMPI_Testsome(count, requests, done, indices, statuses);
        flag = code == MPI_SUCCESS && *done != 0;  // MPI_UNDEFINED: there is nothing to wait for
        return code;
      },
      [&] { return PAPAYA_NEXT(Waitsome)(count, requests, done, indices, statuses); });
}
PAPAYA_WRAPPER papaya_MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  if (!needs_attention()) return PAPAYA_NEXT(Probe)(source, tag, comm, status);
  return papaya::nonblocking::wait_by([&](int& flag) { return PMPI_Iprobe(source, tag, comm, &flag, status); },
                                      [&] { return PAPAYA_NEXT(Probe)(source, tag, comm, status); });
}
PAPAYA_WRAPPER papaya_MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  if (!needs_attention()) return PAPAYA_NEXT(Mprobe)(source, tag, comm, message, status);
  return papaya::nonblocking::wait_by(
      [&](int& flag) { return PMPI_Improbe(source, tag, comm, &flag, message, status); },
      [&] { return PAPAYA_NEXT(Mprobe)(source, tag, comm, message, status); });
}

// With counts of type C; `form` is nothing or _c.
#define PAPAYA_SENDS(Name, IName, C, form)                                                                          \
  PAPAYA_WRAPPER papaya_MPI_##Name##form(const void* buffer, C count, MPI_Datatype type, int target, int tag,       \
                                         MPI_Comm comm) {                                                           \
    if (!needs_attention()) return PAPAYA_NEXT(Name##form)(buffer, count, type, target, tag, comm);                 \
    return papaya::nonblocking::run(                                                                                \
        [&](MPI_Request* request) { return PMPI_##IName##form(buffer, count, type, target, tag, comm, request); }); \
  }
#define PAPAYA_POINT_TO_POINT(C, form)                                                                                 \
  PAPAYA_SENDS(Send, Isend, C, form)                                                                                   \
  PAPAYA_SENDS(Ssend, Issend, C, form)                                                                                 \
  PAPAYA_SENDS(Rsend, Irsend, C, form)                                                                                 \
  PAPAYA_WRAPPER papaya_MPI_Recv##form(void* buffer, C count, MPI_Datatype type, int source, int tag, MPI_Comm comm,   \
                                       MPI_Status* status) {                                                           \
    if (!needs_attention() || source == MPI_PROC_NULL)                                                                 \
      return PAPAYA_NEXT(Recv##form)(buffer, count, type, source, tag, comm, status);                                  \
    return papaya::nonblocking::run(                                                                                   \
        [&](MPI_Request* request) { return PMPI_Irecv##form(buffer, count, type, source, tag, comm, request); },       \
        status);                                                                                                       \
  }                                                                                                                    \
  PAPAYA_WRAPPER papaya_MPI_Mrecv##form(void* buffer, C count, MPI_Datatype type, MPI_Message* message,                \
                                        MPI_Status* status) {                                                          \
    if (!needs_attention()) return PAPAYA_NEXT(Mrecv##form)(buffer, count, type, message, status);                     \
    return papaya::nonblocking::run(                                                                                   \
        [&](MPI_Request* request) { return PMPI_Imrecv##form(buffer, count, type, message, request); }, status);       \
  }                                                                                                                    \
  PAPAYA_WRAPPER papaya_MPI_Sendrecv##form(const void* sent, C send_count, MPI_Datatype send_type, int target,         \
                                           int send_tag, void* received, C count, MPI_Datatype type, int source,       \
                                           int tag, MPI_Comm comm, MPI_Status* status) {                               \
    if (!needs_attention())                                                                                            \
      return PAPAYA_NEXT(Sendrecv##form)(sent, send_count, send_type, target, send_tag, received, count, type, source, \
                                         tag, comm, status);                                                           \
    if (source == MPI_PROC_NULL)                                                                                       \
      return papaya::nonblocking::run_send(                                                                            \
          [&](MPI_Request* request) {                                                                                  \
            return PMPI_Isend##form(sent, send_count, send_type, target, send_tag, comm, request);                     \
          },                                                                                                           \
          [&] { return PMPI_Recv##form(received, count, type, source, tag, comm, status); });                          \
    return papaya::nonblocking::run_both(                                                                              \
        [&](MPI_Request* request) { return PMPI_Irecv##form(received, count, type, source, tag, comm, request); },     \
        [&](MPI_Request* request) {                                                                                    \
          return PMPI_Isend##form(sent, send_count, send_type, target, send_tag, comm, request);                       \
        },                                                                                                             \
        status);                                                                                                       \
  }                                                                                                                    \
  PAPAYA_WRAPPER papaya_MPI_Sendrecv_replace##form(void* buffer, C count, MPI_Datatype type, int target, int send_tag, \
                                                   int source, int tag, MPI_Comm comm, MPI_Status* status) {           \
    if (!needs_attention())                                                                                            \
      return PAPAYA_NEXT(Sendrecv_replace##form)(buffer, count, type, target, send_tag, source, tag, comm, status);    \
    if (source == MPI_PROC_NULL)                                                                                       \
      return papaya::nonblocking::run_send(                                                                            \
          [&](MPI_Request* request) {                                                                                  \
            return PMPI_Isend##form(buffer, count, type, target, send_tag, comm, request);                             \
          },                                                                                                           \
          [&] { return PMPI_Recv##form(buffer, count, type, source, tag, comm, status); });                            \
    const papaya::nonblocking::Packed packed(buffer, count, type, comm);                                               \
    if (packed.code != MPI_SUCCESS) return packed.code;                                                                \
    return papaya::nonblocking::run_both(                                                                              \
        [&](MPI_Request* request) { return PMPI_Irecv##form(buffer, count, type, source, tag, comm, request); },       \
        [&](MPI_Request* request) {                                                                                    \
          return PMPI_Isend##form(packed.bytes.data(), static_cast<C>(packed.size), MPI_PACKED, target, send_tag,      \
                                  comm, request);                                                                      \
        },                                                                                                             \
        status);                                                                                                       \
  }
PAPAYA_POINT_TO_POINT(int, )
#if PAPAYA_HAS_LARGE_COUNTS
PAPAYA_POINT_TO_POINT(MPI_Count, _c)
#endif
