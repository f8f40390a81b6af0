// What a program's file says about how it is linked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace papaya::doctor {

struct ElfFile {
  std::string problem;  // why it could not be read, to follow its name; empty: it was
  bool is_64_bit = true;
  std::uint16_t machine = 0;           // EM_X86_64 ...
  std::string interpreter;             // the dynamic loader; empty: statically linked, or a library
  std::vector<std::string> undefined;  // functions and data that other files must have
  std::vector<std::string> defined;
};

// Of a 64-bit file all of it, of others that they are. Damaged files have a problem.
ElfFile read_elf(const std::string& path);

}  // namespace papaya::doctor
