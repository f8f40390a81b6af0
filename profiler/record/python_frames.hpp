// Which line of a Python program the calling thread is at. mpi4py gives the interpreter's lock up around its calls of
// MPI, so nothing may be asked of the interpreter there that counts references or takes memory. But nobody else changes
// a thread's own stack of frames, and what its frames run stays where it is: both may be read without the lock, if one
// knows where they lie. That is known for some versions of CPython, and tried when MPI is initialised, which mpi4py
// does with the lock held: only if the frames read there are those that the interpreter's own functions name, frames
// are read at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace papaya {

class PythonFrames {
 public:
  struct Position {
    const void* code;         // the code object
    const void* instruction;  // in its instructions: where the frame is; different for each place that calls something
  };
  struct SourceLine {
    std::string file;
    std::string function;
    int line = 0;
  };
  // The same without memory of its own: the end of a long path, the beginning of a long name.
  struct Line {
    char file[160];
    char function[96];
    int number;
  };
  struct Layout;  // where a version of CPython has what

  // With the interpreter's lock held if there is an interpreter; else nothing will be found.
  void open() noexcept;
  bool is_open() const noexcept { return layout_ != nullptr; }

  // The innermost frames of the calling thread, innermost first, at most `most`. Returns how many; 0: it runs no
  // Python.
  int walk(Position* positions, int most) const noexcept;
  // Of a frame that `walk` has found in the call that is still going on.
  SourceLine source_line_of(const Position& position) const;
  // The same in a signal's handler, wherever the signal has come: takes no lock and no memory, and believes in no
  // pointer that it has not looked at.
  int walk_interrupted(Line* lines, int most) const noexcept;
  // The same of another thread, which sleeps: of the one that called open(), of others none.
  int walk_asleep(std::int32_t thread, Line* lines, int most) const noexcept;
  // Whether code at this address is the interpreter's.
  bool is_interpreter(const void* address) const noexcept;

 private:
  template <class Read>
  int walk_with(const void* state, Position* positions, int most, Read&& read) const noexcept;
  int walk_carefully(const void* state, Line* lines, int most) const noexcept;
  bool is_right() const;
  const char* instructions_of(const void* code) const noexcept;
  std::string text_of(const void* unicode) const;
  template <std::size_t capacity>
  void copy_text(const void* unicode, char (&text)[capacity], bool from_end) const noexcept;

  const Layout* layout_ = nullptr;
  const void* code_type_ = nullptr;  // as objects of these types begin
  const void* text_type_ = nullptr;
  const void* first_state_ = nullptr;  // of the thread that called open(), whose number is
  std::int32_t first_thread_ = 0;
  // The interpreter's functions. These need no lock, take no memory and count no references.
  void* (*this_thread_)() = nullptr;
  int (*is_finalizing_)() = nullptr;
  int (*is_initialized_)() = nullptr;
  int (*line_of_)(const void* code, int byte) = nullptr;
  long (*length_of_)(const void* unicode) = nullptr;
  unsigned (*character_of_)(const void* unicode, long index) = nullptr;
};

}  // namespace papaya
