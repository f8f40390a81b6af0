// PythonFrames as a library that frames.py calls: opened with the interpreter's lock or without, and what it reads.
#include <string>

#include "profiler/record/python_frames.hpp"

namespace {

papaya::PythonFrames frames;
std::string lines;

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int open_frames() {
  frames.open();
  return frames.is_open() ? 1 : 0;
}

// "function file line" of each frame, innermost first.
__attribute__((visibility("default"))) const char* read_frames(int most) {
  papaya::PythonFrames::Position positions[64];
  const int count = frames.walk(positions, most);
  lines.clear();
  for (int i = 0; i < count; ++i) {
    const papaya::PythonFrames::SourceLine source = frames.source_line_of(positions[i]);
    lines += source.function + " " + source.file + " " + std::to_string(source.line) + "\n";
  }
  return lines.c_str();
}
}
