#include "ir/type.h"

#include <mutex>
#include <unordered_set>

#include "base/at_fork.h"
#include "base/error.h"
#include "base/hash.h"
#include "ir/interned.h"
#include "ir/place.h"
#include "ir/sizes.h"
#include "runtime/device.h"

namespace tn {

Device::Device(std::string_view name, std::source_location at) {
  LocScope scope(at);
  *this = device_named(name, "device");
}

void fail_too_long(const char* what, int64_t count) {
  fail("{}: {} entries, but tensors have at most {} axes", what, count, kMaxRank);
}

bool Shape::is_const() const {
  for (Dim d : *this)
    if (!d.is_const()) return false;
  return true;
}

Dim Shape::elements() const {
  Dim product = 1;
  for (Dim d : *this) {
    if (d.is(0)) return 0;  // an empty tensor is empty however large its other axes are
  }
  for (Dim d : *this) product = product * d;
  return product;
}

bool Axes::has(int axis) const {
  for (Axis a : *this)
    if (a.i == axis) return true;
  return false;
}

uint64_t hash_of(const Shape& shape, uint64_t seed) {
  uint64_t hash = combine(seed, static_cast<uint64_t>(shape.rank()));
  for (Dim d : shape) hash = combine(hash, static_cast<uint64_t>(d.raw));
  return hash;
}

namespace {

struct Hasher {
  using is_transparent = void;
  size_t operator()(const Type& t) const {
    uint64_t place = static_cast<uint64_t>(t.device.kind) << 8 | t.device.index;
    return hash_of(t.shape, place << 8 | static_cast<uint64_t>(t.dtype));
  }
  size_t operator()(const InternedType* t) const { return t->hash; }
};
struct Same {
  using is_transparent = void;
  bool operator()(const InternedType* a, const InternedType* b) const { return a == b; }
  bool operator()(const Type& a, const InternedType* b) const { return a == *b; }
  bool operator()(const InternedType* a, const Type& b) const { return *a == b; }
};

}  // namespace

namespace {

struct TypeTable {
  std::mutex mutex;
  std::unordered_set<const InternedType*, Hasher, Same> types;
};

TypeTable& type_table() {
  static auto& only = *[] {
    auto* made = new TypeTable;
    guarded_at_fork(made->mutex, 4);
    return made;
  }();
  return only;
}

constexpr std::align_val_t kTypeAlignment{16};

TypeRef new_type(const Type& type, Dim elements, bool is_lasting) {
  int64_t bytes;
  if (elements.is_const() && __builtin_mul_overflow(elements.raw, size_of(type.dtype), &bytes))
    fail(Fault::memory, "{}: more bytes than fit 64 bits", type);
  auto* memory =
      static_cast<char*>(::operator new(kCountBytes + sizeof(InternedType), kTypeAlignment));
  new (memory) std::atomic<int32_t>(is_lasting ? kLasting : 0);
  return new (memory + kCountBytes)
      InternedType{type, Hasher{}(type), elements.is_const() ? elements.raw : -1};
}

void delete_type(TypeRef type) {
  auto* memory = reinterpret_cast<const char*>(type) - kCountBytes;
  ::operator delete(const_cast<char*>(memory), kTypeAlignment);
}

}  // namespace

void drop_counted(TypeRef type) noexcept {
  TypeTable& table = type_table();
  if (drop_last(type, table.mutex, table.types)) delete_type(type);
}

TypeRef intern(const Type& type) {
  TypeTable& table = type_table();
  thread_local TypeRef last = nullptr;  // a lasting one
  if (last && *last == type) return last;
  for (Dim d : type.shape)
    if (d.is_negative()) fail("shape {}: negative dimensions are not allowed here", type.shape);
  Dim elements = type.shape.elements();  // fails on overflow, before anything is remembered
  std::lock_guard lock(table.mutex);
  auto found = table.types.find(type);
  if (found == table.types.end()) {
    bool lasts = !elements.is_const() || type.shape.empty() || is_among_first(table.types.size());
    TypeRef made = new_type(type, elements, lasts);
    try {
      found = table.types.insert(made).first;
    } catch (...) {
      delete_type(made);
      throw;
    }
  }
  hand_out(*found);
  if (is_lasting(*found)) last = *found;
  return *found;
}

TypeRef on_device(TypeRef type, Device device) {
  if (type->device == device) return type;
  return intern(Type{type->dtype, type->shape, device});
}

size_t count_types() {
  std::lock_guard lock(type_table().mutex);
  return type_table().types.size();
}

std::string to_text(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) {
    if (i) text += ',';
    text += to_text(shape[i]);
  }
  return text + "]";
}

std::string to_text(const Type& type) {
  std::string text = std::string(info(type.dtype).text) + to_text(type.shape);
  return type.device.is_host() ? text : format("{}@{}", text, to_text(type.device));
}

std::optional<Type> parse_type(std::string_view& text) {
  size_t open = text.find('[');
  if (open == text.npos) return {};
  std::optional<DType> dtype = parse_dtype(text.substr(0, open));
  size_t close = text.find(']', open);
  if (!dtype || close == text.npos) return {};
  Type type{*dtype, {}};
  std::string_view dims = text.substr(open + 1, close - open - 1);
  int depth = 0;
  for (size_t from = 0, at = 0; at <= dims.size() && !dims.empty(); ++at) {
    if (at < dims.size()) depth += (dims[at] == '(') - (dims[at] == ')');
    if (at < dims.size() && (dims[at] != ',' || depth)) continue;
    type.shape.push_back(parse_dim(dims.substr(from, at - from)));
    from = at + 1;
  }
  text.remove_prefix(close + 1);
  if (text.starts_with('@')) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789:";
    size_t end = std::min(text.find_first_not_of(kLetters, 1), text.size());
    if (text.substr(end).starts_with(".at("))
      end = std::min(text.find(')', end), text.size() - 1) + 1;
    std::string_view name = text.substr(1, end - 1);
    type.device = Device(name);
    text.remove_prefix(1 + name.size());
  }
  return type;
}

bool can_broadcast(const Shape& a, const Shape& b) {
  for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
    Dim x = a[a.rank() - i], y = b[b.rank() - i];
    if (identical(x, y) || x.is(1) || y.is(1) || decide_equal(x, y)) continue;
    if (!decide_equal(x, 1) && !decide_equal(y, 1)) return false;
  }
  return true;
}

Shape broadcast(const Shape& a, const Shape& b, std::string_view op) {
  if (!can_broadcast(a, b)) fail("{}: shapes do not broadcast: {} and {}", op, a, b);
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape out = longer;
  int shift = longer.rank() - shorter.rank();
  for (int i = 0; i < shorter.rank(); ++i) {
    Dim& made = out[i + shift];
    if (identical(made, shorter[i]) || shorter[i].is(1)) continue;
    if (made.is(1) || (!decide_equal(made, shorter[i]) && decide_equal(made, 1))) made = shorter[i];
  }
  return out;
}

}  // namespace tn
