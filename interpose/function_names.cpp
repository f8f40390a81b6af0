#include "interpose/function_names.hpp"

#if __has_include(<elfutils/libdwfl.h>)
#include <elfutils/libdwfl.h>

#include "base/function_name.hpp"
#include "base/optional_library.hpp"
#endif

namespace papaya {

#if __has_include(<elfutils/libdwfl.h>)

namespace {

int find_no_debuginfo(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
  return -1;
}

struct Libdw {
  decltype(&::dwfl_begin) begin = nullptr;
  decltype(&::dwfl_end) end = nullptr;
  decltype(&::dwfl_report_offline) report_offline = nullptr;
  decltype(&::dwfl_report_end) report_end = nullptr;
  decltype(&::dwfl_module_getelf) module_getelf = nullptr;
  decltype(&::dwfl_module_addrname) module_addrname = nullptr;
  decltype(&::dwfl_module_getsrc) module_getsrc = nullptr;
  decltype(&::dwfl_lineinfo) lineinfo = nullptr;
  decltype(&::dwfl_build_id_find_elf) build_id_find_elf = nullptr;
  decltype(&::dwfl_offline_section_address) offline_section_address = nullptr;
  bool is_there = false;

  Libdw() noexcept {
    OptionalLibrary library("libdw.so.1");
    library.find(begin, "dwfl_begin");
    library.find(end, "dwfl_end");
    library.find(report_offline, "dwfl_report_offline");
    library.find(report_end, "dwfl_report_end");
    library.find(module_getelf, "dwfl_module_getelf");
    library.find(module_addrname, "dwfl_module_addrname");
    library.find(module_getsrc, "dwfl_module_getsrc");
    library.find(lineinfo, "dwfl_lineinfo");
    library.find(build_id_find_elf, "dwfl_build_id_find_elf");
    library.find(offline_section_address, "dwfl_offline_section_address");
    is_there = library.is_whole();
  }
};

const Libdw& libdw() noexcept {
  static const Libdw library;
  return library;
}

}  // namespace

class FunctionNames::File {
 public:
  explicit File(const std::string& path) {
    const Libdw& dw = libdw();
    if (!dw.is_there) return;
    callbacks_ = {.find_elf = dw.build_id_find_elf,
                  .find_debuginfo = find_no_debuginfo,
                  .section_address = dw.offline_section_address,
                  .debuginfo_path = nullptr};
    session_ = dw.begin(&callbacks_);
    if (session_ == nullptr) return;
    module_ = dw.report_offline(session_, path.c_str(), path.c_str(), -1);
    dw.report_end(session_, nullptr, nullptr);
    if (module_ != nullptr && dw.module_getelf(module_, &bias_) == nullptr) module_ = nullptr;
  }
  ~File() {
    if (session_ != nullptr) libdw().end(session_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  FunctionName at(std::uint64_t offset) const {
    FunctionName name;
    if (module_ == nullptr || offset == 0) return name;
    const Dwarf_Addr address = offset - 1 + bias_;  // of the call
    if (const char* const symbol = libdw().module_addrname(module_, address); symbol != nullptr)
      name.function = function_name(symbol);
    if (Dwfl_Line* const line = libdw().module_getsrc(module_, address); line != nullptr)
      if (const char* const file = libdw().lineinfo(line, nullptr, &name.line, nullptr, nullptr, nullptr);
          file != nullptr)
        name.file = file;
    return name;
  }

 private:
  Dwfl_Callbacks callbacks_{};
  Dwfl* session_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  GElf_Addr bias_ = 0;
};

#else

class FunctionNames::File {
 public:
  explicit File(const std::string&) {}
  FunctionName at(std::uint64_t) const { return {}; }
};

#endif

FunctionNames::FunctionNames() noexcept = default;
FunctionNames::~FunctionNames() = default;

FunctionName FunctionNames::at(const std::string& path, std::uint64_t offset) {
  const auto [entry, is_new] = files_.try_emplace(path, nullptr);
  if (is_new) entry->second = std::make_unique<File>(path);
  return entry->second->at(offset);
}

}  // namespace papaya
