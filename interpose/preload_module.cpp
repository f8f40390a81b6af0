#include "interpose/preload_module.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstring>

namespace papaya::preload {

namespace {

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

int note_candidate(dl_phdr_info* info, std::size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  const bool is_candidate =
      strstr(file_name_of(info->dlpi_name), "mpi") != nullptr || translator_of(info->dlpi_name) != nullptr;
  if (is_candidate && search.path_count < 32)
    snprintf(search.paths[search.path_count++], sizeof search.paths[0], "%s", info->dlpi_name);
  return 0;
}

// In the object of this path itself, not in those it depends on.
void* defined_in(const char* path, const char* name) {
  void* const handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* const found = dlsym(handle, name);
  dlclose(handle);
  Module module;
  return found != nullptr && find_module(found, module) && strcmp(module.path, path) == 0 ? found : nullptr;
}

void keep(Search& search, void* definition) {
  search.definitions[0] = definition;
  search.count = definition == nullptr ? 0 : 1;
}

// Leaves the layer that the program calls, where one passes calls on to another.
void leave_out_what_is_beneath(Search& search) {
  for (int i = 0; i < search.path_count; ++i)
    if (const Translator* const translator = translator_of(search.paths[i])) {
      search.translator = translator;
      return keep(search, defined_in(search.paths[i], "PMPI_Get_library_version"));
    }
  void* of_standard_abi = nullptr;
  for (int i = 0; i < search.count; ++i) {
    if (standard_abi_of(abi_question_of(search.definitions[i])) == 0) continue;
    if (of_standard_abi != nullptr) return;  // two of them
    of_standard_abi = search.definitions[i];
  }
  void* const reached = dlsym(RTLD_NEXT, "PMPI_Get_library_version");
  if (of_standard_abi != nullptr && (reached == nullptr || reached == of_standard_abi)) keep(search, of_standard_abi);
}

}  // namespace

bool find_module(const void* address, Module& module) {
  module.address = reinterpret_cast<std::uintptr_t>(address);
  return dl_iterate_phdr(match_module, &module) == 1;
}

std::uint64_t build_id_of(std::uintptr_t begin) {
  BuildId build{begin, 0};
  dl_iterate_phdr(read_build_id, &build);
  return build.id;
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
  leave_out_what_is_beneath(search);
}

AbiGetVersion abi_question_of(const void* address) {
  Module module;
  if (!find_module(address, module)) return nullptr;
  return reinterpret_cast<AbiGetVersion>(defined_in(module.path, "PMPI_Abi_get_version"));
}

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

}  // namespace papaya::preload
