#include "runtime/object.h"

#include <elf.h>
#include <sys/mman.h>

#include <cstring>

#include "base/error.h"

namespace tn {
namespace {

constexpr size_t kPage = 4096;

size_t round_up(size_t x, size_t to) { return (x + to - 1) / to * to; }

constexpr size_t kMostBytes = size_t{1} << 30;  // far beyond any kernel: sums stay in range

/// The tables of an object file; every read is checked against its size.
class Elf {
 public:
  explicit Elf(std::span<const std::byte> bytes) : bytes_(bytes), header_(at<Elf64_Ehdr>(0)) {
    bool ours = std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0 &&
                header_.e_ident[EI_CLASS] == ELFCLASS64 && header_.e_machine == EM_X86_64 &&
                header_.e_type == ET_REL;
    invariant(ours, "object: not an x86-64 object file");
    for (size_t k = 0; k < header_.e_shnum; ++k)
      sections.push_back(at<Elf64_Shdr>(header_.e_shoff + k * sizeof(Elf64_Shdr)));
  }

  template <class T>
  T at(size_t offset) const {
    invariant(offset <= bytes_.size() && bytes_.size() - offset >= sizeof(T),
              "object: cut off at byte {} of {}", offset, bytes_.size());
    T result;
    std::memcpy(&result, bytes_.data() + offset, sizeof(T));
    return result;
  }
  const std::byte* contents(const Elf64_Shdr& section) const {
    invariant(
        section.sh_offset <= bytes_.size() && bytes_.size() - section.sh_offset >= section.sh_size,
        "object: a section is cut off");
    return bytes_.data() + section.sh_offset;
  }
  const Elf64_Shdr& section(size_t k) const {
    invariant(k < sections.size(), "object: no section {}", k);
    return sections[k];
  }
  std::string text(const Elf64_Shdr& strings, size_t offset) const {
    std::string result;
    for (; offset < strings.sh_size; ++offset) {
      char c = at<char>(strings.sh_offset + offset);
      if (!c) break;
      result += c;
    }
    return result;
  }

  std::vector<Elf64_Shdr> sections;

 private:
  std::span<const std::byte> bytes_;
  Elf64_Ehdr header_;
};

bool is_loaded(const Elf64_Shdr& section) {
  return (section.sh_flags & SHF_ALLOC) && section.sh_size > 0;
}

void relocate(std::byte* place, uint32_t type, const std::byte* symbol, int64_t addend) {
  int64_t target = reinterpret_cast<int64_t>(symbol) + addend;
  if (type == R_X86_64_64) {
    std::memcpy(place, &target, 8);
    return;
  }
  invariant(type == R_X86_64_PC32 || type == R_X86_64_PLT32, "object: relocation type {}", type);
  int64_t distance = target - reinterpret_cast<int64_t>(place);
  invariant(distance == static_cast<int32_t>(distance), "object: a relocation out of reach");
  int32_t word = static_cast<int32_t>(distance);
  std::memcpy(place, &word, 4);
}

}  // namespace

// Code first, constants behind it on pages of their own: neither is ever both writable and in use.
// By way of the empty object, so that its destructor runs when this fails.
Object::Object(std::span<const std::byte> bytes) : Object() {
  Elf elf(bytes);
  std::vector<size_t> offsets(elf.sections.size(), 0);
  size_t end = 0, code = 0;
  for (bool executable : {true, false}) {
    for (size_t k = 0; k < elf.sections.size(); ++k) {
      const Elf64_Shdr& section = elf.sections[k];
      if (!is_loaded(section) || executable != ((section.sh_flags & SHF_EXECINSTR) != 0)) continue;
      invariant(!(section.sh_flags & SHF_WRITE), "object: it has writable data");
      invariant(section.sh_size < kMostBytes && section.sh_addralign <= kPage && end < kMostBytes,
                "object: a section of {} bytes", section.sh_size);
      end = round_up(end, std::max<size_t>(section.sh_addralign, 1));
      offsets[k] = end;
      end += section.sh_size;
    }
    end = round_up(end, kPage);
    if (executable) code = end;
  }
  bytes_ = std::max(end, kPage);
  void* pages = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) fail(Fault::memory, "object: no memory for {} bytes of code", bytes_);
  pages_ = static_cast<std::byte*>(pages);
  for (size_t k = 0; k < elf.sections.size(); ++k)
    if (is_loaded(elf.sections[k]) && elf.sections[k].sh_type != SHT_NOBITS)
      std::memcpy(pages_ + offsets[k], elf.contents(elf.sections[k]), elf.sections[k].sh_size);
  // A place in a loaded section, with room for so many bytes.
  auto place = [&](size_t section, uint64_t offset, size_t room) {
    const Elf64_Shdr& s = elf.section(section);
    bool inside = is_loaded(s) && offset <= s.sh_size && s.sh_size - offset >= room;
    invariant(inside, "object: a place outside its section");
    return pages_ + offsets[section] + offset;
  };
  for (const Elf64_Shdr& table : elf.sections) {
    if (table.sh_type != SHT_SYMTAB && table.sh_type != SHT_RELA) continue;
    if (table.sh_type == SHT_SYMTAB) {
      for (size_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
        auto symbol = elf.at<Elf64_Sym>(table.sh_offset + at);
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
        functions_.push_back({elf.text(elf.section(table.sh_link), symbol.st_name),
                              place(symbol.st_shndx, symbol.st_value, 1)});
      }
      continue;
    }
    if (!is_loaded(elf.section(table.sh_info))) continue;
    const Elf64_Shdr& symbols = elf.section(table.sh_link);
    for (size_t at = 0; at < table.sh_size; at += sizeof(Elf64_Rela)) {
      auto entry = elf.at<Elf64_Rela>(table.sh_offset + at);
      auto symbol =
          elf.at<Elf64_Sym>(symbols.sh_offset + ELF64_R_SYM(entry.r_info) * sizeof(Elf64_Sym));
      invariant(symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < SHN_LORESERVE,
                "object: it needs {}", elf.text(elf.section(symbols.sh_link), symbol.st_name));
      size_t room = ELF64_R_TYPE(entry.r_info) == R_X86_64_64 ? 8 : 4;
      relocate(place(table.sh_info, entry.r_offset, room), ELF64_R_TYPE(entry.r_info),
               place(symbol.st_shndx, symbol.st_value, 0), entry.r_addend);
    }
  }
  bool done = mprotect(pages_, code, PROT_READ | PROT_EXEC) == 0 &&
              (code == bytes_ || mprotect(pages_ + code, bytes_ - code, PROT_READ) == 0);
  if (!done) fail(Fault::memory, "object: the system refuses to execute generated code");
}

Object::~Object() {
  if (pages_) munmap(pages_, bytes_);
}

void* Object::find(std::string_view name) const {
  for (const Symbol& symbol : functions_)
    if (symbol.name == name) return symbol.address;
  throw_internal(format("object: it has no function {}", name));
}

}  // namespace tn
