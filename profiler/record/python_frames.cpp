#include "profiler/record/python_frames.hpp"

#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>

namespace papaya {

// Offsets in bytes, as in the headers of CPython (internal/pycore_frame.h, cpython/code.h, cpython/pystate.h).
struct PythonFrames::Layout {
  std::string_view version;
  int thread_frame;   // in the thread's state: its innermost frame,
  int through_frame;  // or, if this is not none, something that has the frame at this offset
  // In a frame:
  int code;
  int previous;
  int position;      // a pointer to the instruction; or its number, an int
  int number_bytes;  // by which that counts; 0: a pointer
  int owner;         // a byte; from no_code on: a frame that only stands for a call from C
  // In a code object:
  int instructions;  // they begin here; or, where `number_bytes` is not 0, in the bytes object pointed to from here
  int file;
  int function;
};

namespace {

constexpr int none = -1;
constexpr char no_code = 3;
constexpr std::uintptr_t marks = 3;  // in a pointer to code: the lowest bits, which 3.14 keeps something in
constexpr int type_offset = 8;       // in every object: a pointer to its type
constexpr int bytes_header = 32;     // before the bytes of a bytes object
constexpr int most_compared = 16;
constexpr int most_interrupted = 32;

constexpr PythonFrames::Layout layouts[] = {
    {"3.9.", 24, none, 32, 24, 104, 1, none, 48, 104, 112}, {"3.10.", 24, none, 32, 24, 96, 2, none, 48, 104, 112},
    {"3.11.", 56, 8, 32, 48, 56, 0, none, 184, 112, 128},   {"3.12.", 56, 0, 0, 8, 56, 0, 70, 192, 112, 128},
    {"3.13.", 72, none, 0, 8, 56, 0, 70, 200, 112, 128},    {"3.14.", 72, none, 0, 8, 56, 0, 74, 208, 112, 128},
};

template <class Function>
bool look_up(Function& function, const char* name) noexcept {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

// From wherever it is: false where nothing can be read.
bool read_carefully(const void* from, void* to, std::size_t bytes) noexcept {
  const iovec here{to, bytes};
  const iovec there{const_cast<void*>(from), bytes};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

bool read_directly(const void* from, void* to, std::size_t bytes) noexcept {
  std::memcpy(to, from, bytes);
  return true;
}

const void* at(const void* object, int offset) noexcept {
  return static_cast<const char*>(object) + offset;
}

// Returns how many bytes.
std::size_t utf8_of(unsigned character, char (&bytes)[4]) noexcept {
  if (character < 0x80) {
    bytes[0] = static_cast<char>(character);
    return 1;
  }
  const unsigned more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  constexpr unsigned lead[] = {0, 0xc0, 0xe0, 0xf0};
  bytes[0] = static_cast<char>(lead[more] | character >> (6 * more));
  for (unsigned i = 1; i <= more; ++i) bytes[i] = static_cast<char>(0x80 | (character >> (6 * (more - i)) & 0x3f));
  return more + 1;
}

}  // namespace

void PythonFrames::open() noexcept {
  const char* (*version)() = nullptr;
  void* (*lock_holder)() = nullptr;
  if (!look_up(version, "Py_GetVersion") || !look_up(is_initialized_, "Py_IsInitialized") ||
      !(look_up(lock_holder, "PyThreadState_GetUnchecked") || look_up(lock_holder, "_PyThreadState_UncheckedGet")) ||
      !look_up(this_thread_, "PyGILState_GetThisThreadState") || !look_up(line_of_, "PyCode_Addr2Line") ||
      !look_up(length_of_, "PyUnicode_GetLength") || !look_up(character_of_, "PyUnicode_ReadChar") ||
      !(look_up(is_finalizing_, "Py_IsFinalizing") || look_up(is_finalizing_, "_Py_IsFinalizing")))
    return;
  const std::string_view running = version();
  const auto layout = std::find_if(std::begin(layouts), std::end(layouts),
                                   [&](const Layout& known) { return running.starts_with(known.version); });
  if (layout == std::end(layouts) || is_initialized_() == 0) return;
  void* const thread = this_thread_();
  if (thread == nullptr || lock_holder() != thread) return;
  layout_ = &*layout;
  try {
    if (!is_right()) layout_ = nullptr;
    Position here;
    if (layout_ == nullptr || walk_with(thread, &here, 1, read_carefully) != 1) return;
    first_state_ = thread;
    first_thread_ = gettid();
    const void* name = nullptr;
    if (!read_carefully(at(here.code, layout_->function), &name, sizeof name) ||
        !read_carefully(at(name, type_offset), &text_type_, sizeof text_type_) ||
        !read_carefully(at(here.code, type_offset), &code_type_, sizeof code_type_))
      code_type_ = nullptr;
  } catch (...) {
    layout_ = nullptr;
  }
}

// The frames of this thread as read here, and as the interpreter's functions tell them. With the lock held.
bool PythonFrames::is_right() const {
  void* (*innermost)() = nullptr;
  void* (*back_of)(void*) = nullptr;
  void* (*code_of)(void*) = nullptr;
  int (*line_of_frame)(void*) = nullptr;
  void* (*attribute_of)(void*, const char*) = nullptr;
  void (*forget_error)() = nullptr;
  void (*release)(void*) = nullptr;
  if (!look_up(innermost, "PyEval_GetFrame") || !look_up(back_of, "PyFrame_GetBack") ||
      !look_up(code_of, "PyFrame_GetCode") || !look_up(line_of_frame, "PyFrame_GetLineNumber") ||
      !look_up(attribute_of, "PyObject_GetAttrString") || !look_up(forget_error, "PyErr_Clear") ||
      !look_up(release, "Py_DecRef"))
    return false;
  Position found[most_compared];
  const int count = walk_with(this_thread_(), found, most_compared, read_carefully);
  // Names are objects that the code object points to: they must be the same ones.
  const auto has_name = [&](void* code, int offset, const char* name) {
    void* const expected = attribute_of(code, name);
    if (expected == nullptr) forget_error();
    const void* read = nullptr;
    const bool same = read_carefully(at(code, offset), &read, sizeof read) && read == expected;
    release(expected);
    return same;
  };
  int same = 0;
  void* frame = innermost();  // borrowed; the others are not
  for (bool borrowed = true; frame != nullptr; borrowed = false) {
    void* const code = code_of(frame);
    if (same < count && found[same].code == code && has_name(code, layout_->file, "co_filename") &&
        has_name(code, layout_->function, layout_->number_bytes == 0 ? "co_qualname" : "co_name") &&
        source_line_of(found[same]).line == line_of_frame(frame))
      ++same;
    else
      same = most_compared + 1;
    void* const outer = same < most_compared ? back_of(frame) : nullptr;
    release(code);
    if (!borrowed) release(frame);
    frame = outer;
  }
  return count > 0 && same == count;
}

template <class Read>
int PythonFrames::walk_with(const void* state, Position* positions, int most, Read&& read) const noexcept {
  const Layout& layout = *layout_;
  const void* frame = nullptr;
  if (state == nullptr || !read(at(state, layout.thread_frame), &frame, sizeof frame)) return 0;
  if (layout.through_frame != none &&
      (frame == nullptr || !read(at(frame, layout.through_frame), &frame, sizeof frame)))
    return 0;
  int count = 0;
  while (frame != nullptr && count < most) {
    Position& position = positions[count];
    char owner = 0;
    std::uintptr_t code = 0;
    if (!read(at(frame, layout.code), &code, sizeof code) || (code & ~marks) == 0) break;
    position.code = reinterpret_cast<const void*>(code & ~marks);
    if (layout.number_bytes == 0) {
      if (!read(at(frame, layout.position), &position.instruction, sizeof position.instruction)) break;
    } else {
      int number = 0;
      const void* bytes = nullptr;
      if (!read(at(frame, layout.position), &number, sizeof number) ||
          !read(at(position.code, layout.instructions), &bytes, sizeof bytes))
        break;
      position.instruction = at(bytes, bytes_header + number * layout.number_bytes);
    }
    if (layout.owner != none && !read(at(frame, layout.owner), &owner, sizeof owner)) break;
    if (owner < no_code) ++count;
    if (!read(at(frame, layout.previous), &frame, sizeof frame)) break;
  }
  return count;
}

int PythonFrames::walk(Position* positions, int most) const noexcept {
  // An interpreter that ends frees the states of other threads.
  return is_finalizing_() != 0 ? 0 : walk_with(this_thread_(), positions, most, read_directly);
}

const char* PythonFrames::instructions_of(const void* code) const noexcept {
  const void* const instructions = at(code, layout_->instructions);
  if (layout_->number_bytes == 0) return static_cast<const char*>(instructions);
  return *static_cast<const char* const*>(instructions) + bytes_header;
}

PythonFrames::SourceLine PythonFrames::source_line_of(const Position& position) const {
  const auto name = [&](int offset) { return text_of(*static_cast<const void* const*>(at(position.code, offset))); };
  const std::ptrdiff_t byte = static_cast<const char*>(position.instruction) - instructions_of(position.code);
  return {name(layout_->file), name(layout_->function), line_of_(position.code, static_cast<int>(byte))};
}

template <std::size_t capacity>
void PythonFrames::copy_text(const void* unicode, char (&text)[capacity], bool from_end) const noexcept {
  std::size_t bytes = 0;
  const long length = length_of_(unicode);
  // As if all letters had one byte; of others fewer fit.
  const long first = from_end ? std::max(0L, length - static_cast<long>(capacity - 1)) : 0;
  for (long i = first; i < length; ++i) {
    char character[4];
    const std::size_t size = utf8_of(character_of_(unicode, i), character);
    if (bytes + size >= capacity) break;
    std::memcpy(text + bytes, character, size);
    bytes += size;
  }
  text[bytes] = '\0';
}

int PythonFrames::walk_interrupted(Line* lines, int most) const noexcept {
  return code_type_ == nullptr || is_finalizing_() != 0 ? 0 : walk_carefully(this_thread_(), lines, most);
}

int PythonFrames::walk_asleep(std::int32_t thread, Line* lines, int most) const noexcept {
  const bool can = code_type_ != nullptr && thread == first_thread_ && is_initialized_() != 0 && is_finalizing_() == 0;
  return can ? walk_carefully(first_state_, lines, most) : 0;
}

int PythonFrames::walk_carefully(const void* state, Line* lines, int most) const noexcept {
  Position positions[most_interrupted];
  const int found = walk_with(state, positions, std::min(most, most_interrupted), read_carefully);
  int count = 0;
  for (const Position& position : std::span(positions, static_cast<std::size_t>(found))) {
    const auto is_of = [](const void* object, const void* type) {
      const void* its_type = nullptr;
      return object != nullptr && read_carefully(at(object, type_offset), &its_type, sizeof its_type) &&
             its_type == type;
    };
    const void* file = nullptr;
    const void* function = nullptr;
    if (!is_of(position.code, code_type_) || !read_carefully(at(position.code, layout_->file), &file, sizeof file) ||
        !read_carefully(at(position.code, layout_->function), &function, sizeof function) || !is_of(file, text_type_) ||
        !is_of(function, text_type_))
      break;
    Line& line = lines[count++];
    copy_text(file, line.file, true);
    copy_text(function, line.function, false);
    line.number = line_of_(position.code, static_cast<int>(static_cast<const char*>(position.instruction) -
                                                           instructions_of(position.code)));
  }
  return count;
}

bool PythonFrames::is_interpreter(const void* address) const noexcept {
  Dl_info here{};
  Dl_info interpreter{};
  return layout_ != nullptr && dladdr(address, &here) != 0 &&
         dladdr(reinterpret_cast<const void*>(line_of_), &interpreter) != 0 && here.dli_fbase == interpreter.dli_fbase;
}

std::string PythonFrames::text_of(const void* unicode) const {
  std::string text;
  const long length = length_of_(unicode);
  for (long i = 0; i < length; ++i) {
    char character[4];
    text.append(character, utf8_of(character_of_(unicode, i), character));
  }
  return text;
}

}  // namespace papaya
