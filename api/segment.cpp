// The functions of papaya_segment.h.
#include <cmath>
#include <utility>

#include "api/handle.hpp"
#include "api/notified_segment.hpp"
#include "include/papaya_segment.h"

#define PAPAYA_PUBLIC __attribute__((visibility("default")))

namespace weak = papaya::weak;
using weak::Error;
using weak::NotifiedSegment;

struct papaya_notified_segment : weak::Handle<NotifiedSegment> {};

namespace {

constexpr weak::Kind kind{.name = "segment", .plural = "segments", .null = "PAPAYA_SEGMENT_NULL"};

template <class Do>
int with(const char* function, papaya_segment handle, Do&& act) {
  return weak::with_handle(kind, function, handle, act);
}

const Error no_seconds{MPI_ERR_ARG, "the seconds are no number; less than 0 is for as long as it takes"};

}  // namespace

extern "C" {

PAPAYA_PUBLIC int papaya_segment_create(MPI_Comm comm, size_t bytes, int notifications, papaya_segment* segment) {
  return weak::create_handle(kind, __func__, comm, segment,
                             [&](Error& error) { return NotifiedSegment::create(comm, bytes, notifications, error); });
}

PAPAYA_PUBLIC int papaya_segment_address(papaya_segment segment, void** address) {
  return with(__func__, segment, [&](NotifiedSegment& one) -> Error {
    if (address == nullptr) return {MPI_ERR_ARG, "the address to be set is a null pointer"};
    *address = one.address();
    return {};
  });
}

PAPAYA_PUBLIC int papaya_write_notify(papaya_segment segment, int rank, size_t offset, const void* source, size_t bytes,
                                      int id, unsigned value) {
  return with(__func__, segment,
              [&](NotifiedSegment& one) { return one.write(rank, offset, source, bytes, id, value); });
}

PAPAYA_PUBLIC int papaya_notify(papaya_segment segment, int rank, int id, unsigned value) {
  return with(__func__, segment, [&](NotifiedSegment& one) { return one.write(rank, 0, nullptr, 0, id, value); });
}

PAPAYA_PUBLIC int papaya_write_wait(papaya_segment segment, double seconds, int* flag) {
  return with(__func__, segment, [&](NotifiedSegment& one) -> Error {
    if (flag == nullptr) return {MPI_ERR_ARG, "flag is a null pointer"};
    if (std::isnan(seconds)) return no_seconds;
    *flag = one.wait_for_sources(seconds) ? 1 : 0;
    return {};
  });
}

PAPAYA_PUBLIC int papaya_notify_wait(papaya_segment segment, int first, int count, double seconds, int* id) {
  return with(__func__, segment, [&](NotifiedSegment& one) -> Error {
    if (id == nullptr) return {MPI_ERR_ARG, "id is a null pointer"};
    if (std::isnan(seconds)) return no_seconds;
    return one.wait(first, count, seconds, *id);
  });
}

PAPAYA_PUBLIC int papaya_notify_reset(papaya_segment segment, int id, unsigned* value) {
  return with(__func__, segment, [&](NotifiedSegment& one) -> Error {
    if (value == nullptr) return {MPI_ERR_ARG, "value is a null pointer"};
    return one.reset(id, *value);
  });
}

PAPAYA_PUBLIC int papaya_segment_get_info(papaya_segment segment, char* text, int bytes) {
  return with(__func__, segment, [&](NotifiedSegment& one) -> Error {
    if (text == nullptr || bytes < 1) return {MPI_ERR_ARG, "the text has no room, not even for its end"};
    const std::string info = one.place();
    text[info.copy(text, static_cast<std::size_t>(bytes) - 1)] = '\0';
    return {};
  });
}

PAPAYA_PUBLIC int papaya_segment_free(papaya_segment* segment) {
  if (segment == nullptr) return with(__func__, PAPAYA_SEGMENT_NULL, [](NotifiedSegment&) { return Error{}; });
  papaya_segment const handle = *segment;
  return with(__func__, handle, [&](NotifiedSegment& one) -> Error {
    if (Error error = one.close(); error.is_set()) return error;
    *segment = PAPAYA_SEGMENT_NULL;
    handle->object.reset();
    return {};
  });
}

PAPAYA_PUBLIC int papaya_segment_state(papaya_segment segment, int* states) {
  return with(__func__, segment, [&](NotifiedSegment& one) -> Error {
    if (states == nullptr) return {MPI_ERR_ARG, "states is a null pointer; it has a place for each rank"};
    one.show_states(states);
    return {};
  });
}

PAPAYA_PUBLIC int papaya_segment_exclude(papaya_segment segment, int rank) {
  return with(__func__, segment, [&](NotifiedSegment& one) { return one.exclude(rank); });
}

PAPAYA_PUBLIC int papaya_segment_discard(papaya_segment* segment) {
  if (segment == nullptr) return with(__func__, PAPAYA_SEGMENT_NULL, [](NotifiedSegment&) { return Error{}; });
  papaya_segment const handle = *segment;
  return with(__func__, handle, [&](NotifiedSegment& one) -> Error {
    *segment = PAPAYA_SEGMENT_NULL;
    one.discard();
    handle->abandoned = std::move(handle->object);
    return {};
  });
}

}  // extern "C"
