#include "interpose/site_names.hpp"

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#if __has_include(<elfutils/libdwfl.h>)
#include <cxxabi.h>
#include <dlfcn.h>
#include <elfutils/libdwfl.h>

#include <cstdlib>
#include <memory>
#endif

namespace papaya::approx {

namespace {

std::string_view file_name(std::string_view path) noexcept {
  return path.substr(path.find_last_of('/') + 1);
}

struct Names {
  std::string function;
  std::string file;
  int line = 0;
};

#if __has_include(<elfutils/libdwfl.h>)
// Debug information in files of its own is not looked for: that may ask a server, in the middle of the job.
int find_no_debuginfo(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
  return -1;
}

std::string demangled(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(symbol, nullptr, nullptr, &status),
                                                         std::free);
  return status == 0 ? name.get() : symbol;
}

// Of what a call returns to. Not linked: few programs need it.
Names names_of(const char* path, std::uint64_t offset) {
  Names names;
  static void* const library = dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr || offset == 0) return names;
#define PAPAYA_FIND(function) const auto function = reinterpret_cast<decltype(&::function)>(dlsym(library, #function))
  PAPAYA_FIND(dwfl_begin);
  PAPAYA_FIND(dwfl_end);
  PAPAYA_FIND(dwfl_report_offline);
  PAPAYA_FIND(dwfl_report_end);
  PAPAYA_FIND(dwfl_module_getelf);
  PAPAYA_FIND(dwfl_module_addrname);
  PAPAYA_FIND(dwfl_module_getsrc);
  PAPAYA_FIND(dwfl_lineinfo);
  PAPAYA_FIND(dwfl_build_id_find_elf);
  PAPAYA_FIND(dwfl_offline_section_address);
#undef PAPAYA_FIND
  if (dwfl_begin == nullptr || dwfl_end == nullptr || dwfl_report_offline == nullptr || dwfl_report_end == nullptr ||
      dwfl_module_getelf == nullptr || dwfl_module_addrname == nullptr || dwfl_module_getsrc == nullptr ||
      dwfl_lineinfo == nullptr)
    return names;
  const Dwfl_Callbacks callbacks{.find_elf = dwfl_build_id_find_elf,
                                 .find_debuginfo = find_no_debuginfo,
                                 .section_address = dwfl_offline_section_address,
                                 .debuginfo_path = nullptr};
  const std::unique_ptr<Dwfl, decltype(dwfl_end)> session(dwfl_begin(&callbacks), dwfl_end);
  if (session == nullptr) return names;
  Dwfl_Module* const module = dwfl_report_offline(session.get(), path, path, -1);
  dwfl_report_end(session.get(), nullptr, nullptr);
  GElf_Addr bias = 0;
  if (module == nullptr || dwfl_module_getelf(module, &bias) == nullptr) return names;
  const Dwarf_Addr address = offset - 1 + bias;  // of the call
  if (const char* const symbol = dwfl_module_addrname(module, address); symbol != nullptr)
    names.function = demangled(symbol);
  if (Dwfl_Line* const line = dwfl_module_getsrc(module, address); line != nullptr)
    if (const char* const file = dwfl_lineinfo(line, nullptr, &names.line, nullptr, nullptr, nullptr); file != nullptr)
      names.file = file_name(file);
  return names;
}
#else
Names names_of(const char*, std::uint64_t) {
  return {};
}
#endif

}  // namespace

std::uint64_t SiteNames::rules_at(const void* return_address, CallSites& call_sites, const trace::Header& record,
                                  const std::vector<tuning::ApproxRule>& rules) {
  const std::uint64_t number = call_sites.number_of(return_address);
  if (number == 0) return 0;
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = known_.try_emplace(number, 0);
  if (!is_new) return entry->second;
  const auto* const base = reinterpret_cast<const std::byte*>(&record);
  const auto& site = reinterpret_cast<const trace::CallSite*>(base + trace::call_sites_offset)[number - 1];
  const auto& frame = reinterpret_cast<const trace::Frame*>(base + trace::frames_offset)[site.first_frame];
  if (frame.module == 0) return 0;
  const auto& module = reinterpret_cast<const trace::Module*>(base + trace::modules_offset)[frame.module - 1];
  Names names;
  tuning::NamedSite named;
  if (module.language != 0) {
    names.function = module.path + std::strlen(module.path) + 1;
    named.file = file_name(module.path);
    named.line = static_cast<int>(frame.offset);
  } else {
    names = names_of(module.path, frame.offset);
    named.module = file_name(module.path);
    named.offset = frame.offset;
    named.file = names.file;
    named.line = names.line;
  }
  named.function = names.function;
  for (std::size_t i = 0; i < rules.size(); ++i)
    for (const std::string& place : rules[i].sites)
      if (tuning::is_site(place, named)) entry->second |= std::uint64_t{1} << i;
  return entry->second;
}

}  // namespace papaya::approx
