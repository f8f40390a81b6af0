#include "interpose/preload_aside.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace papaya::preload {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
presence::Node node;

namespace {

constexpr int peers_told_within_ms = 500;
char why_aside[6144] = "";    // what this rank has to say about it, until it has
bool is_requested = false;    // to stand aside; written under the mutex
void* native_init = nullptr;  // written under the mutex, before anybody gets init_aside()
void* native_init_thread = nullptr;

bool another_takes_part() {
  if (node.roster == nullptr) return false;
  for (std::uint32_t i = 0; i < node.ranks; ++i)
    if (node.roster->entries()[i].part.load(std::memory_order_acquire) == presence::Part::takes_part) return true;
  return false;
}

// Whether all ranks of the node stand aside, and the lowest of them speaks for them.
bool is_spoken_for() {
  using namespace papaya::presence;
  if (node.roster == nullptr || node.mine == nullptr) return false;
  std::uint32_t aside = 0;
  int lowest = node.rank;
  // MPI_Init has ended, so usually all have announced themselves.
  for (int waited = 0; waited < peers_told_within_ms && aside < node.ranks; ++waited) {
    if (waited > 0) usleep(1000);
    aside = 0;
    for (std::uint32_t i = 0; i < node.ranks; ++i) {
      const Entry& entry = node.roster->entries()[i];
      const Part part = entry.part.load(std::memory_order_acquire);
      if (part == Part::takes_part) return false;
      if (part != Part::stands_aside) continue;
      ++aside;
      if (entry.rank < lowest) lowest = entry.rank;
    }
  }
  return aside == node.ranks && lowest != node.rank;
}

int after_init(int code) {
  pthread_mutex_lock(&mutex);
  if (why_aside[0] != '\0' && (is_requested ? another_takes_part() : !is_spoken_for())) say(why_aside);
  why_aside[0] = '\0';
  presence::remove_name(node);
  presence::close(node);
  pthread_mutex_unlock(&mutex);
  return code;
}

// Every MPI has them with these types.
int init_aside(int* argc, char*** argv) {
  return after_init(reinterpret_cast<int (*)(int*, char***)>(native_init)(argc, argv));
}
int init_thread_aside(int* argc, char*** argv, int required, int* provided) {
  return after_init(
      reinterpret_cast<int (*)(int*, char***, int, int*)>(native_init_thread)(argc, argv, required, provided));
}

void note_reason(const char* first, const char* second, const char* third, const char* fourth, const char* fifth) {
  presence::announce(node, presence::Part::stands_aside);
  char rank[32] = "";
  if (node.rank >= 0) snprintf(rank, sizeof rank, "rank %d: ", node.rank);
  snprintf(why_aside, sizeof why_aside, "%s%s%s%s%s%s", rank, first, second, third, fourth, fifth);
}

}  // namespace

void say(const char* first, const char* second, const char* third) {
  char line[8192];
  const int length = snprintf(line, sizeof line, "papaya: %s%s%s\n", first, second, third);
  if (length > 0) {
    [[maybe_unused]] const ssize_t written =
        write(STDERR_FILENO, line,
              static_cast<std::size_t>(length) < sizeof line ? static_cast<std::size_t>(length) : sizeof line - 1);
  }
}

void stand_aside(const char* first, const char* second, const char* third, const char* fourth, const char* fifth) {
  note_reason(first, second, third, fourth, fifth);
  if (node.rank > 0) return;
  say(why_aside);
  why_aside[0] = '\0';
}

void stand_aside_by_request(const char* first, const char* second) {
  note_reason(first, second, ".", "", "");
  is_requested = true;
}

void* by_way_of(Init function, void* native) {
  if (why_aside[0] == '\0' || native == nullptr || function == Init::none) return native;
  (function == Init::init ? native_init : native_init_thread) = native;
  return function == Init::init ? reinterpret_cast<void*>(init_aside) : reinterpret_cast<void*>(init_thread_aside);
}

}  // namespace papaya::preload
