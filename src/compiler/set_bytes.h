#pragma once
// Kernel sets as bytes: what files hold of a compiled graph.
//
// A plan section has the sets: the optimised graph (as text), what is fused, the guards, the
// kernels in LoopIR and what each is for. Targets of one kind of device share it. Machine code is
// apart, by kernel, one section for each target; so are constants, by number: those of the traced
// graph first, then those that passes computed, then right sides as products read them (packed).
#include "compiler/kernel_set.h"

namespace tn {

/// A constant that a set needs beside those of the traced graph.
struct SetConstant {
  enum class Kind : uint8_t {
    computed,  // by passes: elements in row-major order
    packed,    // the second operand of an op in the layout of its kernel
  };
  Kind kind = Kind::computed;
  Bound value;
  int64_t bytes = 0;
  int32_t of = -1;  // packed: the constant that unpacking gives back; -1: it holds a part of one
  PackedLayout layout = 0;  // packed
};

/// Sets that were made for one kind of device, and the targets that code is wanted for.
struct SetsOfKind {
  std::span<const KernelSet> sets;
  std::span<const Target> targets;
};

struct SetBytes {
  std::string plan;
  /// By target as asked, then by kernel, all sets together; "" where one has none.
  std::vector<std::vector<std::string>> code;
  /// The same for the second kind, where there is one.
  std::string other_plan = {};
  std::vector<std::vector<std::string>> other_code = {};
  std::vector<SetConstant> constants;
  /// By number, over all constants: whether it is read as it lies. One that is not, and that some
  /// packed one is `of`, need not be kept.
  std::vector<bool> read;
};

/// Of sets that have been planned for all sizes that matter: only kernels that some plan asked for
/// are among them. `constants` are those of the traced graph. Code is made for each target.
SetBytes to_bytes(std::span<const KernelSet> sets, std::span<const Bound> constants,
                  std::span<const Target> targets, const SetsOfKind& other = {});

/// Library kernels that plans of these sets may call on a target.
std::vector<const LibraryKernel*> library_kernels_of(std::span<const KernelSet> sets,
                                                     const Target& target);

/// The inverse. `constants`: those of the traced graph, then those of SetBytes, in order; an absent
/// one is an absent_constant(). Without code (an empty list, or "") kernels are interpreted. The
/// bytes may be damaged, which is an error; they must be trusted where kernels are to run, since
/// memory accesses of LoopIR and code are not checked.
/// `stranger`: the bytes are untrusted, so graphs are checked like text from a user. Then only
/// restore_constants may use the sets.
std::vector<KernelSet> sets_from_bytes(std::string_view plan,
                                       std::span<const std::string_view> code,
                                       std::span<const Bound> constants,
                                       const CompileOptions& options, bool stranger = false);

}  // namespace tn
