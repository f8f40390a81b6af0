#include "interpose/preload.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/mpi_library.hpp"
#include "base/version.hpp"
#include "interpose/flavour.hpp"
#include "interpose/preload_aside.hpp"
#include "interpose/preload_children.hpp"
#include "interpose/preload_filter.hpp"
#include "interpose/preload_layers.hpp"
#include "interpose/preload_module.hpp"
#include "interpose/presence.hpp"

papaya_range papaya_flavour_range{};
papaya_range papaya_native_range{};

using namespace papaya::preload;

namespace {

struct Function {
  const char* name;
  const char* older_name = nullptr;  // in an MPI before 4.0
};
constexpr Function functions[] = {
#define PAPAYA_SYMBOL(name) {"MPI_" #name},
#define PAPAYA_RENAMED(name) {"MPI_" #name, "MPIX_" #name},
#define PAPAYA_BOTH(name, kind) PAPAYA_SYMBOL(name)
#define PAPAYA_WAITING(name, kind) PAPAYA_SYMBOL(name)
#define PAPAYA_TIMED(name, kind) PAPAYA_SYMBOL(name)
#include "interpose/symbols.def"
#undef PAPAYA_SYMBOL
#undef PAPAYA_BOTH
#undef PAPAYA_WAITING
#undef PAPAYA_TIMED
};
constexpr std::size_t symbol_count = sizeof functions / sizeof functions[0];

constexpr std::size_t number_of(const char* name) {
  for (std::size_t i = 0; i < symbol_count; ++i)
    if (__builtin_strcmp(functions[i].name, name) == 0) return i;
  return symbol_count;
}
Init init_of(std::size_t number) {
  constexpr std::size_t init = number_of("MPI_Init");
  constexpr std::size_t init_thread = number_of("MPI_Init_thread");
  return number == init ? Init::init : number == init_thread ? Init::init_thread : Init::none;
}

// Functions that only wait, or are only timed: MPI's own until the flavour asks for them.
constexpr bool waits[] = {
#define PAPAYA_SYMBOL(name) false,
#define PAPAYA_BOTH(name, kind) false,
#define PAPAYA_WAITING(name, kind) true,
#define PAPAYA_TIMED(name, kind) true,
#include "interpose/symbols.def"
#undef PAPAYA_SYMBOL
#undef PAPAYA_BOTH
#undef PAPAYA_WAITING
#undef PAPAYA_TIMED
};

}  // namespace

extern "C" {
__attribute__((visibility("hidden"))) void* papaya_native_functions[symbol_count]{};
}

namespace {

// Written before the slots that lead there.
void* next_functions[symbol_count];  // where a call that the program made goes on
bool taken[symbol_count];            // by a tool in front of papaya

enum class State { unknown, flavour, native, several };

State state = State::unknown;                        // written under the mutex
bool resolved = false;                               // atomic: set once `state` is final
void* wrappers[symbol_count];                        // of the flavour, nullptr where it has none
char folder[4096] = "";                              // of the libraries; written when this one is loaded
papaya::FlavourSelect flavour_select = nullptr;      // written under the mutex
papaya::FlavourExplain flavour_explain = nullptr;    // the same
papaya::FlavourReplaced flavour_replaced = nullptr;  // written under the mutex
papaya::FlavourWeakRecords flavour_weak = nullptr;   // written under the mutex
papaya::FlavourPhase flavour_phase = nullptr;        // atomic
Start started_as = Start::preloaded;                 // how this process got this library

bool called_from_fortran(const void* address) {
  return origin_of(address) == Origin::fortran;
}

[[noreturn]] void no_such_function() {
  say("the program called an MPI function that the loaded MPI does not have.");
  abort();
}

void set_slot(void*& slot, void* target) {
  __atomic_store_n(&slot, target, __ATOMIC_RELEASE);
}

void pass_through() {
  for (std::size_t i = 0; i < symbol_count; ++i)
    if (next_functions[i] != reinterpret_cast<void*>(no_such_function)) {
      set_slot(papaya_mpi_slots[i], next_functions[i]);
      __atomic_store_n(&wrappers[i], static_cast<void*>(nullptr), __ATOMIC_RELEASE);
    }
  set_slot(papaya_pmpi_waiting_entry, papaya_straight_pmpi);
}

void intercept_waiting() {
  for (std::size_t i = 0; i < symbol_count; ++i)
    if (void* const wrapper = __atomic_load_n(&wrappers[i], __ATOMIC_ACQUIRE); waits[i] && wrapper != nullptr)
      set_slot(papaya_mpi_slots[i], wrapper);
  set_slot(papaya_pmpi_waiting_entry, papaya_sort_pmpi);
}

// `wrappers_that_time`: by number, nullptr where there is none.
void time_calls(void* const* wrappers_that_time) {
  for (std::size_t i = 0; i < symbol_count; ++i) {
    if (wrappers_that_time[i] == nullptr || papaya_native_functions[i] == reinterpret_cast<void*>(no_such_function))
      continue;
    __atomic_store_n(&wrappers[i], wrappers_that_time[i], __ATOMIC_RELEASE);
    set_slot(papaya_mpi_slots[i], wrappers_that_time[i]);
  }
  set_slot(papaya_pmpi_waiting_entry, papaya_sort_pmpi);
}

papaya::Preload services = {folder,
                            next_functions,
                            pass_through,
                            intercept_waiting,
                            time_calls,
                            called_from_fortran,
                            &node,
                            papaya::presence::announce,
                            papaya::presence::remove_name,
                            papaya::presence::close};

bool load_flavour(const char* flavour, const char* version, const char* mpi_path) {
  char first_line[128];
  snprintf(first_line, sizeof first_line, "%.*s", static_cast<int>(strcspn(version, "\n,")), version);
  for (char* c = first_line; *c != '\0'; ++c)
    if (*c == '\t') *c = ' ';
  if (flavour == nullptr) {
    stand_aside("this MPI is not one papaya knows (", first_line,
                "); every call goes straight to it, nothing is recorded.");
    return false;
  }
  // The flavour's PMPI symbols must be found even where MPI came in through a plugin opened RTLD_LOCAL.
  dlopen(mpi_path, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
  char path[4096 + 64];
  snprintf(path, sizeof path, "%s/libpapaya-%s.so", folder, flavour);
  void* const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    stand_aside("cannot load the library for this MPI (", first_line, "): ", why == nullptr ? "no reason given" : why,
                "; every call goes straight to it, nothing is recorded.");
    return false;
  }
  const auto their_version = static_cast<const papaya::FlavourVersion*>(dlsym(handle, "papaya_flavour_version"));
  if (their_version == nullptr || strcmp(*their_version, PAPAYA_VERSION) != 0) {
    stand_aside(path, " is of another version than libpapaya.so (" PAPAYA_VERSION
                      "); every call goes straight to MPI. Install both from one build.");
    return false;
  }
  for (std::size_t i = 0; i < symbol_count; ++i) {
    char symbol[128];
    snprintf(symbol, sizeof symbol, "papaya_%s", functions[i].name);
    wrappers[i] = dlsym(handle, symbol);
  }
  Module module;
  if (find_module(their_version, module)) {
    papaya_flavour_range = module.range;
    node.build = build_id_of(module.range.begin);
  }
  const auto start = reinterpret_cast<papaya::FlavourStart>(dlsym(handle, "papaya_flavour_start"));
  if (start == nullptr) return false;
  flavour_select = reinterpret_cast<papaya::FlavourSelect>(dlsym(handle, "papaya_flavour_select"));
  flavour_explain = reinterpret_cast<papaya::FlavourExplain>(dlsym(handle, "papaya_flavour_explain"));
  flavour_replaced = reinterpret_cast<papaya::FlavourReplaced>(dlsym(handle, "papaya_flavour_replaced"));
  flavour_weak = reinterpret_cast<papaya::FlavourWeakRecords>(dlsym(handle, "papaya_flavour_weak_records"));
  start(&services);
  // Release: partner of the acquire in change_phase().
  __atomic_store_n(&flavour_phase, reinterpret_cast<papaya::FlavourPhase>(dlsym(handle, "papaya_flavour_phase")),
                   __ATOMIC_RELEASE);
  return true;
}

// Mukautuva knows nothing before MPI_Init, and has not the standard's.
int standard_abi_of(const Search& search) {
  return search.translator != nullptr && strcmp(search.translator->name, "Mukautuva") == 0
             ? 0
             : papaya::standard_abi_of(abi_question_of(search.definitions[0]));
}

void resolve(const void* caller) {
  static Search search{};
  look_for_mpi(search);
  const int standard_abi = search.count == 1 ? standard_abi_of(search) : 0;
  if (search.translator != nullptr && standard_abi == 0 && search.translator->flavour == nullptr) {
    stand_aside(search.translator->name,
                " passes the program's calls on to another MPI by an ABI of its own, for which papaya has no library; "
                "every call goes straight to it, nothing is recorded. Build the program with that MPI itself.");
    state = State::several;
    return;
  }
  if (search.count > 1) {
    stand_aside(
        "two MPI libraries are loaded in this process; every call goes to the one it would reach without papaya, "
        "nothing is recorded.");
    state = State::several;
    return;
  }
  Module mpi{};
  Module self{};
  find_module(reinterpret_cast<const void*>(&no_such_function), self);
  void* mpi_handle = nullptr;
  if (search.count == 1 && find_module(search.definitions[0], mpi))
    mpi_handle = dlopen(mpi.path, RTLD_LAZY | RTLD_NOLOAD);
  for (std::size_t i = 0; i < symbol_count; ++i) {
    void* native = nullptr;
    for (const char* const name : {functions[i].name, functions[i].older_name}) {
      if (native != nullptr || name == nullptr) continue;
      char symbol[128];
      snprintf(symbol, sizeof symbol, "P%s", name);
      native = mpi_handle != nullptr ? dlsym(mpi_handle, symbol) : nullptr;
      if (native == nullptr) native = native_for(name, caller);
    }
    papaya_native_functions[i] = native != nullptr ? native : reinterpret_cast<void*>(no_such_function);
    next_functions[i] = native != nullptr ? next_of(functions[i].name, native, mpi.range) : papaya_native_functions[i];
    taken[i] = is_taken(functions[i].name, self.range);
  }
  // A tool may start MPI with more threads than the program asked for.
  taken[number_of("MPI_Init_thread")] |= taken[number_of("MPI_Init")];
  state = State::native;
  if (mpi_handle == nullptr) {
    stand_aside("this MPI is not one papaya knows; every call goes straight to it, nothing is recorded.");
    return;
  }
  papaya_native_range = mpi.range;
  using GetLibraryVersion = int (*)(char*, int*);
  static char version[8192];
  int length = 0;
  reinterpret_cast<GetLibraryVersion>(search.definitions[0])(version, &length);
  if (papaya::is_of_mpich(version)) node.launcher = papaya::presence::Launcher::pmi;
  // Who types `papaya run` means this program.
  if (started_as != Start::run && is_left_out()) return;
  if (started_as == Start::child_of_run) {
    stand_aside(
        "this MPI program was started by a process under `papaya run`, which preloads into one process only. Nothing "
        "is recorded. Put `papaya run` right before the program, or start the program with exec.");
    return;
  }
  const bool is_translated = search.translator != nullptr && standard_abi == 0;
  const char* const flavour = is_translated ? search.translator->flavour : papaya::flavour_of(standard_abi, version);
  if (load_flavour(flavour, version, mpi.path)) state = State::flavour;
}

void resolve_once(const void* caller) {
  // Acquire: partner of the release below; the slots and tables come with it.
  if (__atomic_load_n(&resolved, __ATOMIC_ACQUIRE)) return;
  pthread_mutex_lock(&mutex);
  if (state == State::unknown) {
    resolve(caller);
    if (state != State::several) {
      for (std::size_t i = 0; i < symbol_count; ++i) {
        void* const target = wrappers[i] != nullptr && !waits[i] ? wrappers[i] : next_functions[i];
        if (target != reinterpret_cast<void*>(no_such_function))
          set_slot(papaya_mpi_slots[i], by_way_of(init_of(i), target));
      }
      set_slot(papaya_pmpi_entry, papaya_sort_pmpi);
      set_slot(papaya_pmpi_waiting_entry, papaya_straight_pmpi);
    }
    __atomic_store_n(&resolved, true, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&mutex);
}

// MPI_Init or MPI_Init_thread is called under its other name, past every tool, so the flavour will not hear of it.
void note_hidden_init(const void* caller) {
  Dl_info object{};
  dladdr(caller, &object);
  pthread_mutex_lock(&mutex);
  if (node.mine == nullptr || node.mine->part.load(std::memory_order_relaxed) != papaya::presence::Part::takes_part)
    stand_aside(object.dli_fname == nullptr ? "the program" : object.dli_fname,
                " calls PMPI_Init where other programs call MPI_Init, so no tool sees it; nothing is recorded.");
  pthread_mutex_unlock(&mutex);
}

void* found_or_abort(void* target, const char* name) {
  if (target != nullptr && target != reinterpret_cast<void*>(no_such_function)) return target;
  say("the program called ", name, ", which the loaded MPI does not have.");
  abort();
}

// Which of several MPIs' functions the caller would reach without papaya.
void* native_of_several(std::size_t number, const char* prefix, const void* caller) {
  char symbol[128];
  void* native = nullptr;
  for (const char* const name : {functions[number].older_name, functions[number].name}) {
    if (native != nullptr || name == nullptr) continue;
    snprintf(symbol, sizeof symbol, "%s%s", prefix, name);
    native = native_for(symbol, caller);
  }
  return by_way_of(init_of(number), found_or_abort(native, symbol));
}

// LD_PRELOAD may name this library relative to the folder the process starts in, and the program may change that folder
// before its first MPI call. Other libraries looked up from there would not be papaya's.
void note_folder() {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&note_folder), &self) == 0 || self.dli_fname == nullptr) return;
  const char* const slash = strrchr(self.dli_fname, '/');
  snprintf(folder, sizeof folder, "%.*s", slash == nullptr ? 1 : static_cast<int>(slash - self.dli_fname),
           slash == nullptr ? "." : self.dli_fname);
  if (char absolute[PATH_MAX]; self.dli_fname[0] != '/' && realpath(folder, absolute) != nullptr)
    snprintf(folder, sizeof folder, "%s", absolute);
}

__attribute__((constructor)) void at_load() {
  note_folder();
  started_as = leave_children_alone();
}

}  // namespace

void* papaya_resolve_mpi(std::size_t number, const void* caller) {
  resolve_once(caller);
  if (state == State::several) return native_of_several(number, "", caller);
  void* const wrapper = __atomic_load_n(&wrappers[number], __ATOMIC_ACQUIRE);
  return found_or_abort(wrapper != nullptr ? wrapper : by_way_of(init_of(number), next_functions[number]),
                        functions[number].name);
}

void* papaya_resolve_pmpi(std::size_t number, const void* caller) {
  resolve_once(caller);
  if (state == State::several) return native_of_several(number, "P", caller);
  void* const wrapper = __atomic_load_n(&wrappers[number], __ATOMIC_ACQUIRE);
  if (wrapper != nullptr) {
    const Origin origin = origin_of(caller);
    if (origin == Origin::fortran || (origin == Origin::program && taken[number])) return wrapper;
    if (init_of(number) != Init::none && origin == Origin::program) note_hidden_init(caller);
  }
  return found_or_abort(by_way_of(init_of(number), papaya_native_functions[number]), functions[number].name);
}

int papaya_select(const char* collective, const char* selection) {
  pthread_mutex_lock(&mutex);
  const papaya::FlavourSelect select = flavour_select;
  pthread_mutex_unlock(&mutex);
  return select == nullptr ? 1 : select(collective, selection);
}

int papaya_explain(const char* collective, const void* comm, unsigned long bytes, char* text, unsigned long size) {
  pthread_mutex_lock(&mutex);
  const papaya::FlavourExplain explain = flavour_explain;
  pthread_mutex_unlock(&mutex);
  return explain == nullptr ? 1 : explain(collective, comm, bytes, text, size);
}

unsigned long papaya_replaced(const char* collective) {
  pthread_mutex_lock(&mutex);
  const papaya::FlavourReplaced replaced = flavour_replaced;
  pthread_mutex_unlock(&mutex);
  return replaced == nullptr ? 0 : replaced(collective);
}

const papaya::WeakRecords* papaya_weak_records(const char* version) {
  if (version == nullptr || strcmp(version, PAPAYA_VERSION) != 0) return nullptr;
  pthread_mutex_lock(&mutex);
  const papaya::FlavourWeakRecords records = flavour_weak;
  pthread_mutex_unlock(&mutex);
  return records == nullptr ? nullptr : records();
}

namespace {
void change_phase(const char* name) {
  if (const papaya::FlavourPhase phase = __atomic_load_n(&flavour_phase, __ATOMIC_ACQUIRE); phase != nullptr)
    phase(name);
}
}  // namespace

void papaya_phase_begin(const char* name) {
  if (name != nullptr) change_phase(name);
}

void papaya_phase_end(void) {
  change_phase(nullptr);
}
