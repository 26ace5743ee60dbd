#include "backend/cuda/interpreter/bytecode_list.h"

#include <algorithm>
#include <bit>

namespace tn::cuda {

using bytecode::Code;

/// From the first to the last instruction that names a register. What is made before a loop and
/// read in it is needed until the loop ends.
std::vector<CodeList::Life> CodeList::lives() const {
  std::vector<Life> made(widths_.size());
  int begin = -1;
  for (int k = 0; k < static_cast<int>(list.size()); ++k) {
    const VirtualInstruction& i = list[static_cast<size_t>(k)];
    if (i.code == Code::sweep) begin = k;
    for_each_register(i, [&](VirtualRegister r) {
      Life& life = made[static_cast<size_t>(r)];
      if (life.first < 0) life.first = k;
      life.last = k;
    });
    if (i.code == Code::again)
      for (Life& life : made)
        if (life.first >= 0 && life.first < begin && life.last >= begin) life.last = k;
  }
  return made;
}

std::vector<uint64_t> CodeList::encode(int& registers) const {
  constexpr int kMost = 96;
  std::vector<Life> life = lives();
  std::vector<int> place(widths_.size(), -1);
  std::vector<bool> used(kMost + 2);
  std::vector<uint64_t> words;
  registers = 0;
  auto take = [&](size_t r) {
    int width = widths_[r], at = 0;
    while (at < kMost &&
           (used[static_cast<size_t>(at)] || (width == 2 && used[static_cast<size_t>(at) + 1])))
      ++at;
    place[r] = at;
    for (int k = 0; k < width; ++k) used[static_cast<size_t>(at + k)] = true;
    registers = std::max(registers, at + width);
  };
  auto number = [&](VirtualRegister r) {
    return static_cast<uint8_t>(place[static_cast<size_t>(r)]);
  };
  for (int k = 0; k < static_cast<int>(list.size()); ++k) {
    const VirtualInstruction& i = list[static_cast<size_t>(k)];
    // Operands keep their places until the result has its own: no instruction overwrites what it
    // has yet to read.
    for_each_register(i, [&](VirtualRegister r) {
      if (place[static_cast<size_t>(r)] < 0) take(static_cast<size_t>(r));
    });
    if (registers > kMost) return {};
    bytecode::Instruction out;
    out.code = i.code, out.immediate = i.immediate;
    out.a = i.a == kNoRegister ? i.number : number(i.a);
    out.b = i.b == kNoRegister ? i.number : number(i.b);
    out.c = i.c == kNoRegister ? bytecode::kNoMask : number(i.c);
    if (i.dst != kNoRegister) out.dst = number(i.dst);
    out.words = static_cast<uint8_t>(i.words.size() + i.factors.size());
    words.push_back(std::bit_cast<uint64_t>(out));
    words.insert(words.end(), i.words.begin(), i.words.end());
    for (auto [r, factor] : i.factors)
      words.push_back(std::bit_cast<uint64_t>(bytecode::Factor{factor, number(r)}));
    for_each_register(i, [&](VirtualRegister r) {
      if (life[static_cast<size_t>(r)].last != k) return;
      for (int w = 0; w < widths_[static_cast<size_t>(r)]; ++w)
        used[static_cast<size_t>(place[static_cast<size_t>(r)] + w)] = false;
    });
  }
  return words;
}

}  // namespace tn::cuda
