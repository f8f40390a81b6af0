#include "profiler/record/call_sites.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include "profiler/record/recorder.hpp"

namespace papaya {

namespace {

// Papaya's own frames stand above the program's, fewer than this.
constexpr int own_frames = 32;
constexpr int own_python_frames = 3;  // those of papaya.py
constexpr std::size_t most_function_bytes = 100;
constexpr std::size_t most_known = 8 * trace::call_site_capacity;  // call sites, with those that have no number
// Rows of the table of modules that functions written in Python leave free.
constexpr std::size_t rows_for_files = 16;

// The object of the process that an address lies in.
struct Object {
  const void* address;
  std::uint64_t bias = 0;
  std::string_view path;
  std::span<const std::byte> build_id;
  bool found = false;
};

std::span<const std::byte> build_id_of(const std::byte* notes, std::size_t bytes) noexcept {
  const auto rounded = [](std::size_t size) { return (size + 3) / 4 * 4; };
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const std::size_t whole = sizeof note + rounded(note.n_namesz) + rounded(note.n_descsz);
    if (whole > bytes) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes + sizeof note, "GNU", 4) == 0)
      return {notes + sizeof note + 4, note.n_descsz};
    notes += whole;
    bytes -= whole;
  }
  return {};
}

int look_at(dl_phdr_info* info, std::size_t, void* data) noexcept {
  Object& object = *static_cast<Object*>(data);
  const std::span headers(info->dlpi_phdr, info->dlpi_phnum);
  const auto address = reinterpret_cast<std::uintptr_t>(object.address);
  const bool holds = std::any_of(headers.begin(), headers.end(), [&](const ElfW(Phdr) & header) {
    return header.p_type == PT_LOAD && address - (info->dlpi_addr + header.p_vaddr) < header.p_memsz;
  });
  if (!holds) return 0;
  object.found = true;
  object.bias = info->dlpi_addr;
  object.path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  for (const ElfW(Phdr) & header : headers)
    if (header.p_type == PT_NOTE && object.build_id.empty())
      object.build_id =
          build_id_of(reinterpret_cast<const std::byte*>(info->dlpi_addr + header.p_vaddr), header.p_memsz);
  return 1;
}

}  // namespace

bool CallSites::open(Recorder& recorder, int frames, IsBinding is_binding) noexcept {
  if (!recorder.is_open()) return true;
  header_ = &recorder.header();
  is_binding_ = is_binding;
  // Not linked: its copies of the unwinder's functions would take the place of the compiler's.
  if (void* const library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL); library != nullptr)
    backtrace_ = reinterpret_cast<int (*)(void**, int)>(dlsym(library, "unw_backtrace"));
  python_.open();
  const int most = backtrace_ != nullptr ? static_cast<int>(trace::most_frames) : 1;
  frames_ = std::min(frames, most);
  return frames <= most;
}

std::uint64_t CallSites::find(const void* return_address) noexcept {
  try {
    std::uint64_t python = 0;
    if (python_.is_open() && find_python(return_address, python)) return python;
    const bool passes_on = is_binding_ != nullptr && is_binding_(return_address);
    const bool unwinds = backtrace_ != nullptr && (frames_ > 1 || passes_on);
    std::vector<const void*> frames;
    if (unwinds) {
      void* stack[own_frames + trace::most_frames];
      const int depth = backtrace_(stack, static_cast<int>(std::size(stack)));
      const void* const* const end = stack + std::max(depth, 0);
      const void* const* first = std::find(static_cast<const void* const*>(stack), end, return_address);
      while (first != end && passes_on && is_binding_(*first)) ++first;
      frames.assign(first, std::min(end, first + std::min<std::ptrdiff_t>(end - first, frames_)));
    }
    if (frames.empty()) frames.push_back(return_address);
    const std::lock_guard lock(mutex_);
    const std::uint64_t number = number_of_frames(frames, nullptr);
    if (!unwinds) remember(return_address, number);
    return number;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

void CallSites::remember(const void* return_address, std::uint64_t number) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  if (address <= address_mask)
    cache_[slot_of(address)].store(number << address_bits | address, std::memory_order_relaxed);
}

bool CallSites::is_python_module(const void* return_address) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  std::atomic<std::uint64_t>& caller = callers_[slot_of(address) % callers_.size()];
  const std::uint64_t cached = caller.load(std::memory_order_relaxed);
  if ((cached & address_mask) == address) return cached >> address_bits != 0;
  Object object{.address = return_address};
  dl_iterate_phdr(look_at, &object);
  const std::string_view name = object.path.substr(object.path.find_last_of('/') + 1);
  // By libffi Python's ctypes calls, as papaya.py does.
  const bool is_one =
      name.find(".cpython-") != name.npos || name.find(".abi3.so") != name.npos || name.starts_with("libffi.so.");
  if (address <= address_mask) caller.store((is_one ? 1ull << address_bits : 0) | address, std::memory_order_relaxed);
  return is_one;
}

bool CallSites::is_own_module(const PythonFrames::Position& position) {
  const auto code = reinterpret_cast<std::uintptr_t>(position.code);
  std::atomic<std::uint64_t>& known = codes_[slot_of(code) % codes_.size()];
  const std::uint64_t cached = known.load(std::memory_order_relaxed);
  if ((cached & address_mask) == code) return cached >> address_bits != 0;
  const std::string file = python_.source_line_of(position).file;
  const bool is_own = file.substr(file.find_last_of('/') + 1) == "papaya.py";
  if (code <= address_mask) known.store((is_own ? 1ull << address_bits : 0) | code, std::memory_order_relaxed);
  return is_own;
}

bool CallSites::find_python(const void* return_address, std::uint64_t& number) {
  if (!is_python_module(return_address)) return false;
  PythonFrames::Position stack[own_python_frames + trace::most_frames];
  int count = python_.walk(stack, frames_);
  const PythonFrames::Position* positions = stack;
  if (count > 0 && is_own_module(stack[0])) {
    count = python_.walk(stack, own_python_frames + frames_);
    for (; count > 1 && is_own_module(*positions); --count) ++positions;
    count = std::min(count, frames_);
  }
  if (count == 0) return false;
  // One cache for both: instructions of Python lie elsewhere than the machine's.
  const auto instruction = reinterpret_cast<std::uintptr_t>(positions[0].instruction);
  const std::uint64_t cached = cache_[slot_of(instruction)].load(std::memory_order_relaxed);
  if (frames_ == 1 && (cached & address_mask) == instruction) {
    number = cached >> address_bits;
    return true;
  }
  std::vector<const void*> frames;
  for (int i = 0; i < count; ++i) frames.push_back(positions[i].instruction);
  const std::lock_guard lock(mutex_);
  number = number_of_frames(frames, positions);
  if (frames_ == 1) remember(positions[0].instruction, number);
  return true;
}

std::uint64_t CallSites::number_of_frames(const std::vector<const void*>& frames,
                                          const PythonFrames::Position* python) {
  if (const auto known = numbers_.find(frames); known != numbers_.end()) return known->second;
  trace::Header& header = *header_;
  const bool is_full =
      header.call_site_count >= trace::call_site_capacity || header.frame_count + frames.size() > trace::frame_capacity;
  // A program that generates code, or calls itself, has places without end: no more of them are told apart.
  if (is_full && numbers_.size() >= most_known) return 0;
  std::uint64_t& number = numbers_[frames];
  if (is_full) {
    ++header.lost_call_sites;  // of this number of frames all that follow will have none
    return number;
  }
  auto* const base = reinterpret_cast<std::byte*>(header_);
  auto* const own = reinterpret_cast<trace::Frame*>(base + trace::frames_offset) + header.frame_count;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    own[i] = {};
    own[i].module = python != nullptr ? function_of(python[i], own[i].offset) : module_of(frames[i], own[i].offset);
  }
  reinterpret_cast<trace::CallSite*>(base + trace::call_sites_offset)[header.call_site_count] = {
      static_cast<std::uint32_t>(header.frame_count), static_cast<std::uint32_t>(frames.size())};
  header.frame_count += frames.size();
  // Release: who reads the count, from the file, finds the row.
  std::atomic_ref(header.call_site_count).store(header.call_site_count + 1, std::memory_order_release);
  return number = header.call_site_count;
}

std::uint32_t CallSites::module_of(const void* address, std::uint64_t& offset) {
  offset = reinterpret_cast<std::uint64_t>(address);
  Object object{.address = address};
  dl_iterate_phdr(look_at, &object);
  if (!object.found) return 0;  // generated code, say
  char path[trace::path_bytes] = "";
  if (object.path.empty()) {
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    object.path = std::string_view(path, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  }
  offset -= object.bias;
  trace::Header& header = *header_;
  auto* const modules = reinterpret_cast<trace::Module*>(reinterpret_cast<std::byte*>(header_) + trace::modules_offset);
  for (std::uint32_t i = 0; i < header.module_count; ++i)
    if (modules[i].bias == object.bias && modules[i].language == 0 && object.path.starts_with(modules[i].path))
      return i + 1;
  if (header.module_count >= trace::module_capacity) return 0;
  trace::Module& module = modules[header.module_count];
  module.bias = object.bias;
  module.build_id_bytes = static_cast<std::uint32_t>(std::min(object.build_id.size(), sizeof module.build_id));
  std::memcpy(module.build_id, object.build_id.data(), module.build_id_bytes);
  Recorder::set_name(module.path, sizeof module.path, object.path);
  return static_cast<std::uint32_t>(++header.module_count);
}

std::uint32_t CallSites::function_of(const PythonFrames::Position& position, std::uint64_t& line) {
  const PythonFrames::SourceLine source = python_.source_line_of(position);
  const std::uint32_t row = row_of_function(source.file, source.function);
  line = row == 0 ? reinterpret_cast<std::uint64_t>(position.instruction)
                  : static_cast<std::uint64_t>(std::max(source.line, 0));
  return row;
}

std::uint32_t CallSites::row_of_function(std::string_view file, std::string_view function) {
  // The end of a long path, and the beginning of a long name.
  function = function.substr(0, most_function_bytes);
  const std::size_t room = trace::path_bytes - function.size() - 2;
  std::string text(file.substr(file.size() - std::min(file.size(), room)));
  text.append(1, '\0').append(function);
  trace::Header& header = *header_;
  auto* const modules = reinterpret_cast<trace::Module*>(reinterpret_cast<std::byte*>(header_) + trace::modules_offset);
  for (std::uint32_t i = 0; i < header.module_count; ++i)
    if (modules[i].language != 0 && std::memcmp(modules[i].path, text.c_str(), text.size() + 1) == 0) return i + 1;
  if (header.module_count + rows_for_files >= trace::module_capacity) return 0;
  trace::Module& module = modules[header.module_count];
  module.language = static_cast<std::uint32_t>(trace::Language::python);
  Recorder::set_name(module.path, sizeof module.path, text);
  return static_cast<std::uint32_t>(++header.module_count);
}

trace::Frame CallSites::frame_at(const void* address) {
  const std::lock_guard lock(mutex_);
  trace::Frame frame{};
  frame.module = module_of(address, frame.offset);
  return frame;
}

trace::Frame CallSites::frame_at(const PythonFrames::Line& line) {
  const std::lock_guard lock(mutex_);
  trace::Frame frame{};
  frame.module = row_of_function(line.file, line.function);
  frame.offset = frame.module == 0 ? 0 : static_cast<std::uint64_t>(std::max(line.number, 0));
  return frame;
}

}  // namespace papaya
