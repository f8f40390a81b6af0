#include "profiler/record/blocked_stack.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

#include "base/optional_library.hpp"
#include "profiler/record/format.hpp"

#if __has_include(<elfutils/libdwfl.h>)
#include <elfutils/libdwfl.h>
#endif

namespace papaya {

namespace {

constexpr std::uintptr_t page = 4096;
constexpr std::size_t most_pages = 64;  // of a stack

struct Copy {
  std::uintptr_t begin = 0;
  std::vector<std::byte> bytes;

  bool word(std::uintptr_t address, std::uint64_t& word) const noexcept {
    if (address < begin || address - begin > bytes.size() || bytes.size() - (address - begin) < sizeof word)
      return false;
    std::memcpy(&word, bytes.data() + (address - begin), sizeof word);
    return true;
  }
};

// As far as it can be read: a page that cannot ends it.
Copy copy_from(std::uintptr_t address) {
  Copy copy{address, std::vector<std::byte>(most_pages * page)};
  iovec pages[most_pages];
  std::uintptr_t next = address;
  for (iovec& one : pages) {
    const std::uintptr_t end = (next / page + 1) * page;
    one = {reinterpret_cast<void*>(next), end - next};
    next = end;
  }
  const iovec here{copy.bytes.data(), copy.bytes.size()};
  const ssize_t bytes = process_vm_readv(getpid(), &here, 1, pages, most_pages, 0);
  copy.bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  return copy;
}

}  // namespace

#if __has_include(<elfutils/libdwfl.h>) && (defined(__x86_64__) || defined(__aarch64__))

namespace {

#if defined(__x86_64__)
constexpr int stack_register = 7;
constexpr int address_register = 16;
#else
constexpr int stack_register = 31;
constexpr int address_register = -1;
#endif

struct Libdw {
  decltype(&::dwfl_begin) begin = nullptr;
  decltype(&::dwfl_end) end = nullptr;
  decltype(&::dwfl_linux_proc_report) report = nullptr;
  decltype(&::dwfl_linux_proc_find_elf) find_elf = nullptr;
  decltype(&::dwfl_report_end) report_end = nullptr;
  decltype(&::dwfl_attach_state) attach_state = nullptr;
  decltype(&::dwfl_getthread_frames) getthread_frames = nullptr;
  decltype(&::dwfl_thread_state_registers) set_registers = nullptr;
  decltype(&::dwfl_thread_state_register_pc) set_address = nullptr;
  decltype(&::dwfl_frame_pc) frame_address = nullptr;
  bool is_there = false;

  Libdw() noexcept {
    OptionalLibrary library("libdw.so.1");
    library.find(begin, "dwfl_begin");
    library.find(end, "dwfl_end");
    library.find(report, "dwfl_linux_proc_report");
    library.find(find_elf, "dwfl_linux_proc_find_elf");
    library.find(report_end, "dwfl_report_end");
    library.find(attach_state, "dwfl_attach_state");
    library.find(getthread_frames, "dwfl_getthread_frames");
    library.find(set_registers, "dwfl_thread_state_registers");
    library.find(set_address, "dwfl_thread_state_register_pc");
    library.find(frame_address, "dwfl_frame_pc");
    is_there = library.is_whole();
  }
};

const Libdw& libdw() noexcept {
  static const Libdw library;
  return library;
}

struct Unwinding {
  std::int32_t thread;
  const Sleep& sleep;
  const Copy& copy;
  std::vector<const void*> places;
};

pid_t next_thread(Dwfl*, void* unwinding, void** of_thread) {
  if (*of_thread == unwinding) return 0;
  *of_thread = unwinding;
  return static_cast<Unwinding*>(unwinding)->thread;
}

bool get_thread(Dwfl*, pid_t, void* unwinding, void** of_thread) {
  *of_thread = unwinding;
  return true;
}

bool read_memory(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* unwinding) {
  std::uint64_t found = 0;
  if (!static_cast<Unwinding*>(unwinding)->copy.word(address, found)) return false;
  *word = found;
  return true;
}

bool set_registers(Dwfl_Thread* thread, void* unwinding) {
  const Sleep& sleep = static_cast<Unwinding*>(unwinding)->sleep;
  const Dwarf_Word stack = sleep.stack;
  const Dwarf_Word address = sleep.address;
  if (!libdw().set_registers(thread, stack_register, 1, &stack)) return false;
  if (address_register >= 0) return libdw().set_registers(thread, address_register, 1, &address);
  libdw().set_address(thread, address);
  return true;
}

int note_frame(Dwfl_Frame* frame, void* unwinding) {
  auto& places = static_cast<Unwinding*>(unwinding)->places;
  Dwarf_Addr address = 0;
  if (places.size() >= trace::most_stack_frames || !libdw().frame_address(frame, &address, nullptr) || address == 0)
    return DWARF_CB_ABORT;
  places.push_back(reinterpret_cast<const void*>(address));
  return DWARF_CB_OK;
}

int find_no_debuginfo(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
  return -1;
}

std::vector<const void*> unwound(std::int32_t thread, const Sleep& sleep, const Copy& copy) {
  const Libdw& dw = libdw();
  if (!dw.is_there) return {};
  const Dwfl_Callbacks callbacks{.find_elf = dw.find_elf,
                                 .find_debuginfo = find_no_debuginfo,
                                 .section_address = nullptr,
                                 .debuginfo_path = nullptr};
  static constexpr Dwfl_Thread_Callbacks thread_callbacks{.next_thread = next_thread,
                                                          .get_thread = get_thread,
                                                          .memory_read = read_memory,
                                                          .set_initial_registers = set_registers,
                                                          .detach = nullptr,
                                                          .thread_detach = nullptr};
  Unwinding unwinding{thread, sleep, copy, {}};
  unwinding.places.reserve(trace::most_stack_frames);  // nothing may be thrown through libdw
  Dwfl* const session = dw.begin(&callbacks);
  if (session == nullptr) return {};
  if (dw.report(session, getpid()) == 0 && dw.report_end(session, nullptr, nullptr) == 0 &&
      dw.attach_state(session, nullptr, getpid(), &thread_callbacks, &unwinding))
    dw.getthread_frames(session, thread, note_frame, &unwinding);  // what it has found until it fails is right
  dw.end(session);
  return std::move(unwinding.places);
}

}  // namespace

#else

namespace {
std::vector<const void*> unwound(std::int32_t, const Sleep&, const Copy&) {
  return {};
}
}  // namespace

#endif

std::optional<std::vector<const void*>> blocked_stack(std::int32_t thread, const Sleep& sleep,
                                                      const std::function<void()>& meanwhile) {
  const std::optional<std::uint64_t> sleeps = sleeps_of(thread);
  if (!sleeps || sleep_of(thread) != sleep) return std::nullopt;
  const Copy copy = copy_from(sleep.stack);
  meanwhile();
  if (sleep_of(thread) != sleep || sleeps_of(thread) != sleeps) return std::nullopt;
  return unwound(thread, sleep, copy);
}

}  // namespace papaya
