// libpapaya.so: finds out at the first MPI call which MPI the process has loaded, loads the flavour library
// for it from its own folder and points the trampolines there. It links neither MPI nor the C++ library, has
// nothing to do in a process that never calls MPI, and passes everything through where it does not know the
// MPI.

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "base/mpi_library.hpp"
#include "interpose/flavour.hpp"
#include "interpose/presence.hpp"

extern "C" {
extern void* papaya_mpi_slots[];
extern void* papaya_pmpi_entry;
extern void* papaya_pmpi_waiting_entry;
extern void* const papaya_sort_pmpi;
extern void* const papaya_straight_pmpi;

struct papaya_range {
  std::uintptr_t begin;
  std::uintptr_t bytes;
};
__attribute__((visibility("hidden"))) papaya_range papaya_flavour_range{};
__attribute__((visibility("hidden"))) papaya_range papaya_native_range{};

__attribute__((visibility("hidden"))) void* papaya_resolve_mpi(std::size_t number, const void* caller);
__attribute__((visibility("hidden"))) void* papaya_resolve_pmpi(std::size_t number, const void* caller);

// For `papaya bench`: FlavourSelect of interpose/flavour.hpp. 1 where there is no flavour library.
__attribute__((visibility("default"))) int papaya_select(const char* collective, const char* selection);
// Of include/papaya.h.
__attribute__((visibility("default"))) void papaya_phase_begin(const char* name);
__attribute__((visibility("default"))) void papaya_phase_end(void);
// FlavourReplaced, for the same. 0 where there is no flavour library.
__attribute__((visibility("default"))) unsigned long papaya_replaced(const char* collective);
}

namespace {

constexpr const char* names[] = {
#define PAPAYA_SYMBOL(name) "MPI_" #name,
#define PAPAYA_WAITING(name) "MPI_" #name,
#include "interpose/symbols.def"
#undef PAPAYA_SYMBOL
#undef PAPAYA_WAITING
};
constexpr std::size_t symbol_count = sizeof names / sizeof names[0];

constexpr std::size_t number_of(const char* name) {
  for (std::size_t i = 0; i < symbol_count; ++i)
    if (__builtin_strcmp(names[i], name) == 0) return i;
  return symbol_count;
}
constexpr std::size_t init_number = number_of("MPI_Init");
constexpr std::size_t init_thread_number = number_of("MPI_Init_thread");

// Functions that only wait: MPI's own until the flavour asks for them.
constexpr bool waits[] = {
#define PAPAYA_SYMBOL(name) false,
#define PAPAYA_WAITING(name) true,
#include "interpose/symbols.def"
#undef PAPAYA_SYMBOL
#undef PAPAYA_WAITING
};

}  // namespace

extern "C" {
__attribute__((visibility("hidden"))) void* papaya_native_functions[symbol_count]{};
}

namespace {

enum class State { unknown, flavour, native, several };

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
State state = State::unknown;                        // written under the mutex
bool resolved = false;                               // atomic: set once `state` is final
void* wrappers[symbol_count];                        // of the flavour, nullptr where it has none
char folder[4096] = "";                              // of the libraries; written when this one is loaded
papaya::FlavourSelect flavour_select = nullptr;      // written under the mutex
papaya::FlavourReplaced flavour_replaced = nullptr;  // written under the mutex
papaya::FlavourPhase flavour_phase = nullptr;        // atomic
bool child_of_run = false;    // started by a process under `papaya run`, which preloads into one process only
papaya::presence::Node node;  // written under the mutex

void say(const char* first, const char* second = "", const char* third = "") {
  char line[8192];
  const int length = snprintf(line, sizeof line, "papaya: %s%s%s\n", first, second, third);
  if (length > 0) {
    [[maybe_unused]] const ssize_t written =
        write(STDERR_FILENO, line,
              static_cast<std::size_t>(length) < sizeof line ? static_cast<std::size_t>(length) : sizeof line - 1);
  }
}

// ---- A process that stands aside: papaya is in it, but cannot be used.

constexpr int peers_told_within_ms = 500;
char why_aside[6144] = "";    // what this rank has to say about it, until it has
void* native_init = nullptr;  // written under the mutex, before anybody gets init_aside()
void* native_init_thread = nullptr;

// Puts this rank down as one that stands aside and says why: at once on rank 0, on others when it is known that rank 0
// has not said the same.
void stand_aside(const char* first, const char* second = "", const char* third = "", const char* fourth = "",
                 const char* fifth = "") {
  papaya::presence::announce(node, papaya::presence::Part::stands_aside);
  char rank[32] = "";
  if (node.rank >= 0) snprintf(rank, sizeof rank, "rank %d: ", node.rank);
  snprintf(why_aside, sizeof why_aside, "%s%s%s%s%s%s", rank, first, second, third, fourth, fifth);
  if (node.rank > 0) return;
  say(why_aside);
  why_aside[0] = '\0';
}

// Whether all ranks of the node stand aside, and the lowest of them speaks for them.
bool is_spoken_for() {
  using namespace papaya::presence;
  if (node.board == nullptr || node.mine == nullptr) return false;
  std::uint32_t aside = 0;
  int lowest = node.rank;
  // MPI_Init has ended, so usually all have announced themselves.
  for (int waited = 0; waited < peers_told_within_ms && aside < node.ranks; ++waited) {
    if (waited > 0) usleep(1000);
    aside = 0;
    for (std::uint32_t i = 0; i < node.ranks; ++i) {
      const Entry& entry = node.board->entries()[i];
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
  if (why_aside[0] != '\0' && !is_spoken_for()) say(why_aside);
  why_aside[0] = '\0';
  papaya::presence::remove_name(node);
  papaya::presence::close(node);
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

// What a call of function `number` leads to instead of `native` while this process has something to say.
void* by_way_of(std::size_t number, void* native) {
  if (why_aside[0] == '\0' || native == nullptr || (number != init_number && number != init_thread_number))
    return native;
  (number == init_number ? native_init : native_init_thread) = native;
  return number == init_number ? reinterpret_cast<void*>(init_aside) : reinterpret_cast<void*>(init_thread_aside);
}

// The object that contains an address.
struct Module {
  std::uintptr_t address;
  papaya_range range;
  char path[1024];
};

int match_module(dl_phdr_info* info, std::size_t, void* data) {
  Module& module = *static_cast<Module*>(data);
  std::uintptr_t lowest = ~std::uintptr_t{0};
  std::uintptr_t highest = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (begin < lowest) lowest = begin;
    if (begin + part.p_memsz > highest) highest = begin + part.p_memsz;
  }
  if (module.address < lowest || module.address >= highest) return 0;
  module.range = {lowest, highest - lowest};
  snprintf(module.path, sizeof module.path, "%s", info->dlpi_name);
  return 1;
}

bool find_module(const void* address, Module& module) {
  module.address = reinterpret_cast<std::uintptr_t>(address);
  return dl_iterate_phdr(match_module, &module) == 1;
}

// Classes of callers of PMPI_X seen so far beside the two the trampoline knows. A library loaded later than
// MPI_Init (a Python plugin) is classified at its first call. Entries are written under the mutex and
// published by `count`.
struct Caller {
  papaya_range range;
  bool fortran;
};
Caller callers[64];
std::size_t caller_count = 0;

bool called_from_fortran(const void* address) {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  const std::size_t known = __atomic_load_n(&caller_count, __ATOMIC_ACQUIRE);
  for (std::size_t i = 0; i < known; ++i)
    if (place - callers[i].range.begin < callers[i].range.bytes) return callers[i].fortran;
  Module module;
  if (!find_module(address, module)) return false;
  const bool fortran = papaya::is_fortran_binding(module.path);
  pthread_mutex_lock(&mutex);
  if (caller_count < sizeof callers / sizeof callers[0]) {
    callers[caller_count] = {module.range, fortran};
    __atomic_store_n(&caller_count, caller_count + 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&mutex);
  return fortran;
}

// Every object that defines MPI's version function, each once.
struct Search {
  char paths[32][1024];
  int path_count;
  void* definitions[8];
  int count;
};

int note_candidate(dl_phdr_info* info, std::size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  const char* const slash = strrchr(info->dlpi_name, '/');
  const char* const base = slash == nullptr ? info->dlpi_name : slash + 1;
  if (strstr(base, "mpi") != nullptr && search.path_count < 32)
    snprintf(search.paths[search.path_count++], sizeof search.paths[0], "%s", info->dlpi_name);
  return 0;
}

void look_for_mpi(Search& search) {
  // Two steps: the loader's lock is held while objects are listed, and asking them needs another one.
  dl_iterate_phdr(note_candidate, &search);
  for (int i = 0; i < search.path_count; ++i) {
    void* const handle = dlopen(search.paths[i], RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* const definition = dlsym(handle, "PMPI_Get_library_version");
    dlclose(handle);
    bool known = definition == nullptr;
    for (int k = 0; k < search.count; ++k) known = known || search.definitions[k] == definition;
    if (!known && search.count < 8) search.definitions[search.count++] = definition;
  }
}

// What a call would reach without papaya: the next definition in the global scope, else the one among the
// dependencies of the calling object (a plugin opened RTLD_LOCAL, as Python does, brings MPI with it).
void* native_for(const char* name, const void* caller) {
  if (void* const next = dlsym(RTLD_NEXT, name)) return next;
  Module module;
  if (!find_module(caller, module)) return nullptr;
  void* const handle = dlopen(module.path[0] == '\0' ? nullptr : module.path, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* const found = dlsym(handle, name);
  dlclose(handle);
  Module definer;
  Module self;
  if (found != nullptr && find_module(found, definer) &&
      find_module(reinterpret_cast<const void*>(&native_for), self) && definer.range.begin == self.range.begin)
    return nullptr;
  return found;
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
    if (papaya_native_functions[i] != reinterpret_cast<void*>(no_such_function)) {
      set_slot(papaya_mpi_slots[i], papaya_native_functions[i]);
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

papaya::Preload services = {folder,
                            pass_through,
                            intercept_waiting,
                            called_from_fortran,
                            &node,
                            papaya::presence::announce,
                            papaya::presence::remove_name,
                            papaya::presence::close};

// The first eight bytes of the id that the linker computed from the object's content; 0 without one.
struct BuildId {
  std::uintptr_t begin;  // of the object
  std::uint64_t id;
};

int read_build_id(dl_phdr_info* info, std::size_t, void* data) {
  BuildId& build = *static_cast<BuildId*>(data);
  bool is_it = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    is_it = is_it || (part.p_type == PT_LOAD && info->dlpi_addr + part.p_vaddr == build.begin);
  }
  if (!is_it) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
    const char* const end = at + part.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      memcpy(&note, at, sizeof note);
      const char* const name = at + sizeof note;
      const char* const content = name + (note.n_namesz + 3) / 4 * 4;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(name, "GNU", 4) == 0 &&
          note.n_descsz >= sizeof build.id && content + sizeof build.id <= end)
        memcpy(&build.id, content, sizeof build.id);
      at = content + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return 1;
}

bool load_flavour(const char* version, const char* mpi_path) {
  const char* const flavour = papaya::flavour_of(version);
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
    snprintf(symbol, sizeof symbol, "papaya_%s", names[i]);
    wrappers[i] = dlsym(handle, symbol);
  }
  Module module;
  if (find_module(their_version, module)) {
    papaya_flavour_range = module.range;
    BuildId build{module.range.begin, 0};
    dl_iterate_phdr(read_build_id, &build);
    node.build = build.id;
  }
  const auto start = reinterpret_cast<papaya::FlavourStart>(dlsym(handle, "papaya_flavour_start"));
  if (start == nullptr) return false;
  flavour_select = reinterpret_cast<papaya::FlavourSelect>(dlsym(handle, "papaya_flavour_select"));
  flavour_replaced = reinterpret_cast<papaya::FlavourReplaced>(dlsym(handle, "papaya_flavour_replaced"));
  start(&services);
  // Release: partner of the acquire in change_phase().
  __atomic_store_n(&flavour_phase, reinterpret_cast<papaya::FlavourPhase>(dlsym(handle, "papaya_flavour_phase")),
                   __ATOMIC_RELEASE);
  return true;
}

void resolve(const void* caller) {
  static Search search{};
  look_for_mpi(search);
  if (search.count > 1) {
    stand_aside(
        "two MPI libraries are loaded in this process; every call goes to the one it would reach without papaya, "
        "nothing is recorded.");
    state = State::several;
    return;
  }
  Module mpi{};
  void* mpi_handle = nullptr;
  if (search.count == 1 && find_module(search.definitions[0], mpi))
    mpi_handle = dlopen(mpi.path, RTLD_LAZY | RTLD_NOLOAD);
  for (std::size_t i = 0; i < symbol_count; ++i) {
    char symbol[128];
    snprintf(symbol, sizeof symbol, "P%s", names[i]);
    void* native = mpi_handle != nullptr ? dlsym(mpi_handle, symbol) : nullptr;
    if (native == nullptr) native = native_for(names[i], caller);
    papaya_native_functions[i] = native != nullptr ? native : reinterpret_cast<void*>(no_such_function);
  }
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
  if (const char* const flavour = papaya::flavour_of(version); flavour != nullptr && strcmp(flavour, "mpich") == 0)
    node.launcher = papaya::presence::Launcher::pmi;
  if (child_of_run) {
    stand_aside(
        "this MPI program was started by a process under `papaya run`, which preloads into one process only. Nothing "
        "is recorded. Put `papaya run` right before the program, or start the program with exec.");
    return;
  }
  if (load_flavour(version, mpi.path)) state = State::flavour;
}

void resolve_once(const void* caller) {
  // Acquire: partner of the release below; the slots and tables come with it.
  if (__atomic_load_n(&resolved, __ATOMIC_ACQUIRE)) return;
  pthread_mutex_lock(&mutex);
  if (state == State::unknown) {
    resolve(caller);
    if (state != State::several) {
      for (std::size_t i = 0; i < symbol_count; ++i) {
        void* const target = wrappers[i] != nullptr && !waits[i] ? wrappers[i] : papaya_native_functions[i];
        if (target != reinterpret_cast<void*>(no_such_function)) set_slot(papaya_mpi_slots[i], by_way_of(i, target));
      }
      set_slot(papaya_pmpi_entry, papaya_sort_pmpi);
      set_slot(papaya_pmpi_waiting_entry, papaya_straight_pmpi);
    }
    __atomic_store_n(&resolved, true, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&mutex);
}

Dl_info object_of(const void* address) {
  Dl_info object{};
  return address != nullptr && dladdr(address, &object) != 0 ? object : Dl_info{};
}

// MPI_Init or MPI_Init_thread has been taken by a library that calls PMPI's itself, so the flavour will not hear of it.
void note_hiding_tool(std::size_t number, const void* caller) {
  // Not by the caller alone: the tool's last call may be a jump.
  void* const taker = dlsym(RTLD_DEFAULT, names[number]);
  const Dl_info own = object_of(reinterpret_cast<const void*>(&note_hiding_tool));
  Dl_info tool = object_of(taker);
  if (tool.dli_fbase == own.dli_fbase) tool = object_of(caller);
  pthread_mutex_lock(&mutex);
  if (node.mine == nullptr || node.mine->part.load(std::memory_order_relaxed) != papaya::presence::Part::takes_part)
    stand_aside(tool.dli_fname == nullptr ? "another library" : tool.dli_fname,
                " takes MPI_Init for itself and calls PMPI_Init, so papaya does not see it; nothing is recorded. Use "
                "one such tool "
                "at a time.");
  pthread_mutex_unlock(&mutex);
}

void* found_or_abort(void* target, const char* name) {
  if (target != nullptr && target != reinterpret_cast<void*>(no_such_function)) return target;
  say("the program called ", name, ", which the loaded MPI does not have.");
  abort();
}

// A shell may bring functions of its own under the names getenv and unsetenv (bash does), which are not ready
// yet when this library is initialised; and it reads the environment it was started with, so that is what is
// changed.
char* find_variable(const char* name) {
  const std::size_t length = strlen(name);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  return nullptr;
}

void remove_variable(const char* name) {
  const std::size_t length = strlen(name);
  char** out = environ;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (strncmp(*entry, name, length) != 0 || (*entry)[length] != '=') *out++ = *entry;
  if (out != nullptr) *out = nullptr;
}

// `papaya run` marks the process it preloads into. A process that finds itself marked with another number is
// a child: it takes papaya out of its own environment, so that nothing it starts inherits it, and stays idle.
void leave_children_alone() {
  const char* const marked = find_variable("PAPAYA_RUN_PID");
  if (marked == nullptr || strtol(marked, nullptr, 10) == static_cast<long>(getpid())) return;
  child_of_run = true;
  remove_variable("PAPAYA_RUN_PID");
  char* const preload = find_variable("LD_PRELOAD");
  Dl_info self;
  if (preload == nullptr || dladdr(reinterpret_cast<const void*>(&leave_children_alone), &self) == 0) return;
  // Edited in place: it only gets shorter.
  char* out = preload;
  for (const char* item = preload; *item != '\0';) {
    const std::size_t length = strcspn(item, ": ");
    const std::size_t separators = strspn(item + length, ": ");
    const bool ours = strlen(self.dli_fname) == length && strncmp(item, self.dli_fname, length) == 0;
    if (!ours && length != 0) {
      if (out != preload) *out++ = ':';
      memmove(out, item, length);
      out += length;
    }
    item += length + separators;
  }
  *out = '\0';
  if (preload[0] == '\0') remove_variable("LD_PRELOAD");
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
  leave_children_alone();
}

}  // namespace

void* papaya_resolve_mpi(std::size_t number, const void* caller) {
  resolve_once(caller);
  if (state == State::several)
    return by_way_of(number, found_or_abort(native_for(names[number], caller), names[number]));
  void* const wrapper = __atomic_load_n(&wrappers[number], __ATOMIC_ACQUIRE);
  return found_or_abort(wrapper != nullptr ? wrapper : by_way_of(number, papaya_native_functions[number]),
                        names[number]);
}

void* papaya_resolve_pmpi(std::size_t number, const void* caller) {
  resolve_once(caller);
  if (state == State::several) {
    char symbol[128];
    snprintf(symbol, sizeof symbol, "P%s", names[number]);
    return by_way_of(number, found_or_abort(native_for(symbol, caller), symbol));
  }
  void* const wrapper = __atomic_load_n(&wrappers[number], __ATOMIC_ACQUIRE);
  const bool is_init = number == init_number || number == init_thread_number;
  if (wrapper != nullptr && called_from_fortran(caller)) return wrapper;
  if (is_init && wrapper != nullptr) note_hiding_tool(number, caller);
  return found_or_abort(by_way_of(number, papaya_native_functions[number]), names[number]);
}

int papaya_select(const char* collective, const char* selection) {
  pthread_mutex_lock(&mutex);
  const papaya::FlavourSelect select = flavour_select;
  pthread_mutex_unlock(&mutex);
  return select == nullptr ? 1 : select(collective, selection);
}

unsigned long papaya_replaced(const char* collective) {
  pthread_mutex_lock(&mutex);
  const papaya::FlavourReplaced replaced = flavour_replaced;
  pthread_mutex_unlock(&mutex);
  return replaced == nullptr ? 0 : replaced(collective);
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
