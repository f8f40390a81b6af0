// A process that stands aside: papaya is in it, but cannot be used. It says so, on the node's roster and to the user.
#pragma once

#include <pthread.h>

#include <cstddef>

#include "interpose/presence.hpp"

namespace papaya::preload {

extern pthread_mutex_t mutex;  // guards what libpapaya.so keeps while it is being resolved
extern presence::Node node;    // written under the mutex

// One line on standard error.
void say(const char* first, const char* second = "", const char* third = "");

// Puts this rank down as one that stands aside and says why: at once on rank 0, on others when it is known that rank 0
// has not said the same.
void stand_aside(const char* first, const char* second = "", const char* third = "", const char* fourth = "",
                 const char* fifth = "");

// The same for a rank that is left out because the user wants it. It says so only where other ranks of the node take
// part.
void stand_aside_by_request(const char* first, const char* second);

// What a call of MPI_Init, or of MPI_Init_thread, leads to instead of `native` while this process has something to say.
enum class Init { none, init, init_thread };
void* by_way_of(Init function, void* native);

}  // namespace papaya::preload
