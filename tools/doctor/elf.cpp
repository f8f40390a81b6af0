#include "tools/doctor/elf.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace papaya::doctor {
namespace {

class Mapped {
 public:
  explicit Mapped(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      error_ = errno;
      return;
    }
    struct stat status {};
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      bytes_ = static_cast<std::size_t>(status.st_size);
      base_ = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
    }
    close(file);
  }
  ~Mapped() {
    if (is_good()) munmap(base_, bytes_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  bool is_good() const { return base_ != MAP_FAILED; }
  int error() const { return error_; }
  std::string_view part(std::uint64_t offset, std::uint64_t bytes) const {
    if (!is_good() || offset > bytes_ || bytes > bytes_ - offset) return {};
    return {static_cast<const char*>(base_) + offset, bytes};
  }
  template <typename T>
  bool get(std::uint64_t offset, T& value) const {
    const std::string_view bytes = part(offset, sizeof value);
    if (bytes.empty()) return false;
    std::memcpy(&value, bytes.data(), sizeof value);
    return true;
  }

 private:
  void* base_ = MAP_FAILED;
  std::size_t bytes_ = 0;
  int error_ = 0;
};

void add_symbols(const Mapped& file, const Elf64_Shdr& table, const Elf64_Shdr& texts, ElfFile& out) {
  const std::string_view names = file.part(texts.sh_offset, texts.sh_size);
  for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
    Elf64_Sym symbol;
    if (!file.get(table.sh_offset + at, symbol)) return;
    if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL || symbol.st_name >= names.size()) continue;
    const std::string_view rest = names.substr(symbol.st_name);
    std::string name(rest.substr(0, rest.find('\0')));
    // Older tools put the version behind the name.
    if (const std::size_t version = name.find('@'); version != name.npos) name.resize(version);
    (symbol.st_shndx == SHN_UNDEF ? out.undefined : out.defined).push_back(std::move(name));
  }
}

}  // namespace

ElfFile read_elf(const std::string& path) {
  ElfFile out;
  const Mapped file(path);
  Elf64_Ehdr header{};
  if (!file.is_good()) {
    out.problem = file.error() != 0 ? std::strerror(file.error()) : "is empty or not a regular file";
    return out;
  }
  if (!file.get(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    out.problem = "is not a program file (ELF)";
    return out;
  }
  out.is_64_bit = header.e_ident[EI_CLASS] == ELFCLASS64;
  out.machine = header.e_machine;
  if (!out.is_64_bit) return out;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    if (!file.get(header.e_phoff + std::uint64_t{i} * sizeof part, part)) break;
    if (part.p_type != PT_INTERP) continue;
    const std::string_view text = file.part(part.p_offset, part.p_filesz);
    out.interpreter = std::string(text.substr(0, text.find('\0')));
  }
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table;
    Elf64_Shdr texts;
    if (!file.get(header.e_shoff + std::uint64_t{i} * sizeof table, table)) break;
    if ((table.sh_type == SHT_DYNSYM || table.sh_type == SHT_SYMTAB) && table.sh_link < header.e_shnum &&
        file.get(header.e_shoff + std::uint64_t{table.sh_link} * sizeof texts, texts))
      add_symbols(file, table, texts, out);
  }
  return out;
}

}  // namespace papaya::doctor
