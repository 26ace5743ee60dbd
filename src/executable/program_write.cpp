// Programs to files: which sections there are, and what is in them. The order of what is written is
// that of program_read.cpp.
#include <algorithm>
#include <map>

#include "compiler/set_bytes.h"
#include "executable/file_sections.h"
#include "executable/program.h"
#include "storage/seal.h"

namespace tn {
namespace {

using Section = tnx::Kind;

/// Gives constants their places among the weights; memory that several share is there once.
class Weights {
 public:
  void add(const Bound& value, int64_t bytes) {
    HostView host(value);
    const void* data = host.data();
    auto [at, is_new] = pieces_.try_emplace({data, bytes}, list_.size());
    if (is_new) {
      list_.push_back({data, static_cast<size_t>(bytes)});
      kept_.push_back(std::move(host));
    }
    numbers_.push_back(at->second);
  }
  /// The places of all that were added, in order.
  std::vector<uint64_t> write(tnx::Writer& out) {
    std::vector<uint64_t> places = out.add_weights(std::move(list_)), made;
    for (size_t number : numbers_) made.push_back(places[number]);
    return made;
  }

 private:
  std::map<std::pair<const void*, int64_t>, size_t> pieces_;
  std::vector<tnx::Piece> list_;
  std::vector<HostView> kept_;  // of the list
  std::vector<size_t> numbers_;
};

Signature without_places(Signature signature) {
  for (InputSignature& in : signature.inputs) in.place.clear();
  for (SizeDemand& d : signature.demands) d.place.clear();
  return signature;
}

std::string meta_bytes(const Signature& signature, const CompileOptions& options) {
  ByteWriter meta;
  write(meta, signature);
  meta(options.effort), meta(options.off);
  // Files without are as they always were.
  bool has_products = options.products != Products::highest;
  bool usual = options.memory_planning == MemoryPlanning::usual && !options.one_thread &&
               options.on.empty() && !has_products;
  if (options.memory_limit || !usual) meta(options.memory_limit);
  if (!usual) meta(options.memory_planning), meta(options.one_thread), meta(options.on);
  if (has_products) meta(options.products);
  return std::move(meta.bytes);
}

/// Whether the file needs a constant as it is: it does not where only products read it, which have
/// it packed.
bool is_kept(const SetBytes& sets, size_t number) {
  if (sets.read.empty() || sets.read[number]) return true;
  for (const SetConstant& c : sets.constants)
    if (c.kind == SetConstant::Kind::packed && c.of == static_cast<int32_t>(number)) return false;
  return true;
}

/// Names, types and places of the constants of the traced graph, then bytes and places of those of
/// the sets. One that is not there has no bytes.
std::string write_constants(tnx::Writer& out, const std::vector<NamedConstant>& named,
                            const SetBytes& sets) {
  Weights weights;
  std::vector<int64_t> bytes;
  for (size_t i = 0; i < named.size(); ++i) {
    bool is_there = !named[i].value.is_absent() && is_kept(sets, i);
    bytes.push_back(is_there ? named[i].type->bytes() : 0);
  }
  for (const SetConstant& c : sets.constants)
    bytes.push_back(is_kept(sets, bytes.size()) ? c.bytes : 0);
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] > 0)
      weights.add(i < named.size() ? named[i].value : sets.constants[i - named.size()].value,
                  bytes[i]);
  std::vector<uint64_t> places = weights.write(out);
  ByteWriter list;
  list(static_cast<uint64_t>(named.size()));
  for (const NamedConstant& c : named) list(c.name), list(to_text(*c.type));
  auto place = places.begin();
  list.list(bytes, [&](ByteWriter& w, int64_t b) { w(b), w(b > 0 ? *place++ : uint64_t{0}); });
  return std::move(list.bytes);
}

/// What is executed, by section; a seal has the digest of each.
struct Code {
  Section kind;
  std::string name;
  std::string bytes;
  tnx::Codec codec = tnx::Codec::zstd;
};

std::vector<Code> code_of(std::span<const Target> targets,
                          const std::vector<std::vector<std::string>>& kernels, tnx::Codec codec) {
  std::vector<Code> made;
  for (size_t i = 0; i < kernels.size(); ++i) {
    ByteWriter bytes;
    bytes(kernels[i]);
    made.push_back(
        {Section::code, std::string(name_of(targets[i])), std::move(bytes.bytes), codec});
  }
  return made;
}

}  // namespace

void Program::write(tnx::Writer& out, std::span<const Target> targets, bool debug) const {
  verify_weights();                                 // new checksums must not cover damage
  if (mesh_ && mesh_->file) mesh_->file->verify();  // also that of the blocks of other workers
  SetBytes sets;
  ByteWriter codes, sealed;
  std::vector<Target> own, other;  // of the CPU, and of other devices
  for (const Target& target : targets)
    (target.kind == options_.target.kind ? own : other).push_back(target);
  if (sets_.empty()) own.clear();
  SetsOfKind others;
  if (!other.empty()) others = {sets_for(other.front()), other};
  sets = to_bytes(sets_, options_.constants, own, others);
  std::vector<Code> code = code_of(own, sets.code, tnx::Codec::raw);
  if (!other.empty()) {
    code.push_back({Section::plan, kOtherPlan, std::move(sets.other_plan)});
    std::ranges::move(code_of(other, sets.other_code, tnx::Codec::zstd), std::back_inserter(code));
    const Target& target = other.front();
    std::string bytes = backend_of(target).library_code(library_kernels_of(others.sets, target));
    if (!bytes.empty()) code.push_back({Section::code, kLibraryCode, std::move(bytes)});
  }
  std::string meta = meta_bytes(debug ? signature_ : without_places(signature_), options_);
  std::string constants = write_constants(out, constants_, sets);
  // What would be executed, and what it rests on.
  sealed(meta), sealed(constants), sealed(sets.plan);
  codes.list(code, [](ByteWriter& w, const Code& c) { w(c.name), w(sha256(c.bytes)); });
  std::string seal = seal_of(sealed.bytes + codes.bytes);

  out.add(Section::meta, "", std::move(meta));
  out.add(Section::graph, "", to_text(graph_));
  out.add(Section::constants, "", std::move(constants));
  if (mesh_) {
    ByteWriter mesh;
    mesh(mesh_->text), mesh(mesh_->divisions);
    out.add(Section::mesh, "", std::move(mesh.bytes), tnx::Codec::raw, true);
  }
  if (!own.empty()) out.add(Section::plan, "", std::move(sets.plan));
  for (Code& c : code) out.add(c.kind, c.name, std::move(c.bytes), c.codec);
  if (debug && !places.empty()) {
    ByteWriter list;
    list(places);
    out.add(Section::debug, "", std::move(list.bytes));
  }
  if (!code.empty() && !seal.empty()) {
    codes(seal);
    out.add(Section::seal, "", std::move(codes.bytes), tnx::Codec::raw);
  }
}

}  // namespace tn
