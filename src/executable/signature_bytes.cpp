// Signatures as bytes. Sizes are texts: "s0", "2*s0+1".
#include <algorithm>

#include "executable/signature.h"

namespace tn {

using Range = InputSignature::Range;

namespace {

void write_type(ByteWriter& out, const Type& type) {
  out(type.dtype);
  out.list(std::vector<Dim>(type.shape.begin(), type.shape.end()),
           [](ByteWriter& w, Dim d) { w(to_text(d)); });
}

void write_input(ByteWriter& out, const InputSignature& in) {
  out(in.name), out(in.place);
  out(!in.type);
  out(in.type ? in.type->dtype : DType::i64);
  out(static_cast<uint64_t>(in.sizes.size()));
  for (size_t k = 0; k < in.sizes.size(); ++k) {
    const Range& r = in.sizes[k];
    out(r.min), out(r.opt), out(r.max), out(r.name);
    out(symbol_name(in.dim(k)));
  }
}

/// A signature being read: symbols are known by name from the inputs on.
class SignatureReader {
 public:
  explicit SignatureReader(ByteReader& in) : in_(in) {}

  Signature read() {
    Signature made;
    in_(made.function), in_(made.surface);
    in_.list(made.inputs, [&](ByteReader&, InputSignature& input) { input = this->input(); });
    made.opt = std::move(opt_);
    in_.list(made.outputs, [&](ByteReader&, TypeRef& type) { type = intern(this->type()); });
    in_(made.output_names);
    ByteReader::must(made.output_names.size() == made.outputs.size(),
                     "results and their names differ in number");
    in_.list(made.demands, [&](ByteReader&, SizeDemand& d) { d = demand(); });
    return made;
  }

 private:
  DType dtype() {
    auto number = in_.read<uint8_t>();
    ByteReader::must(number < kDTypes, "there is no such element type");
    return static_cast<DType>(number);
  }
  Dim size() {
    Dim made = parse_dim(in_.read<std::string>(), symbols_);
    for (Dim symbol : made.is_const() ? std::vector<Dim>() : symbols_of(made))
      ByteReader::must(contains(symbols_, symbol), "a size is unknown");
    return made;
  }
  Type type() {
    Type made{dtype(), {}};
    auto rank = in_.read<uint64_t>();
    ByteReader::must(rank <= kMaxRank, "a tensor has too many dimensions");
    for (uint64_t k = 0; k < rank; ++k) made.shape.push_back(size());
    return made;
  }
  InputSignature input() {
    InputSignature made;
    in_(made.name), in_(made.place);
    bool is_size = in_.read<bool>();
    Type type{dtype(), {}};
    auto rank = in_.read<uint64_t>();
    ByteReader::must(rank <= kMaxRank && (!is_size || rank == 1),
                     "an input has too many dimensions");
    for (uint64_t k = 0; k < rank; ++k) {
      made.sizes.push_back(range());
      type.shape.push_back(declared(made.sizes.back()));
    }
    if (is_size)
      made.size = type.shape[0];
    else
      made.type = intern(type);
    return made;
  }
  Range range() {
    Range r{};
    in_(r.min), in_(r.opt), in_(r.max), in_(r.name);
    ByteReader::must(0 <= r.min && r.min <= r.opt && r.opt <= r.max && r.max <= Dim::kLargestSymbol,
                     "a range of sizes is none");
    return r;
  }
  /// The size that is declared with this range.
  Dim declared(const Range& r) {
    auto name = in_.read<std::string>();
    ByteReader::must(name.empty() == !r.is_open(), "an open size has no name, or a fixed one has");
    if (!r.is_open()) return r.min;
    Dim symbol = Dim::symbol(name, r.min, r.max);
    for (size_t i = 0; i < opt_.size(); ++i)
      ByteReader::must(symbol_name(opt_[i].symbol) != name ||
                           (identical(opt_[i].symbol, symbol) && opt_[i].value == r.opt),
                       "one size has two ranges");
    if (contains(symbols_, symbol)) return symbol;
    opt_.push_back({symbol, r.opt});
    return symbols_.emplace_back(symbol);
  }
  SizeDemand demand() {
    auto kind = in_.read<uint8_t>();
    ByteReader::must(kind <= 1, "a demand is of no kind");
    Dim a = size(), b = size();
    bool holds = in_.read<bool>();
    return {{static_cast<SizeGuard::Kind>(kind), a, b, holds, {}}, in_.read<std::string>()};
  }

  ByteReader& in_;
  std::vector<Dim> symbols_;
  std::vector<Binding> opt_;
};

}  // namespace

void write(ByteWriter& out, const Signature& s) {
  out(s.function), out(s.surface);
  out.list(s.inputs, write_input);
  out.list(s.outputs, [](ByteWriter& w, TypeRef type) { write_type(w, *type); });
  out(s.output_names);
  out.list(s.demands, [](ByteWriter& w, const SizeDemand& d) {
    w(d.guard.kind);
    w(to_text(d.guard.a)), w(to_text(d.guard.b));
    w(d.guard.holds), w(d.place);
  });
}

Signature read_signature(ByteReader& in) { return SignatureReader(in).read(); }

}  // namespace tn
