#include "ir/attrs.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include "base/at_fork.h"
#include "base/error.h"
#include "base/hash.h"
#include "ir/body.h"
#include "ir/interned.h"
#include "ir/visit_field.h"

namespace tn {

static bool same(double a, double b) {  // 0 and -0 differ, a NaN is itself
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}
static bool same(const Scalar& a, const Scalar& b) {
  return a.kind == b.kind && a.integer == b.integer && same(a.real, b.real) && same(a.imag, b.imag);
}
template <class T>
static bool same(const T& a, const T& b) {
  return a == b;
}
static bool same(Dim a, Dim b) { return identical(a, b); }
static bool same(const Shape& a, const Shape& b) { return identical(a, b); }

static uint64_t hash_value(bool v) { return v; }
static uint64_t hash_value(int64_t v) { return static_cast<uint64_t>(v); }
static uint64_t hash_value(uint8_t v) { return v; }
static uint64_t hash_value(double v) { return hash_bytes(&v, 8); }
static uint64_t hash_value(Axis v) { return static_cast<uint64_t>(v.i); }
static uint64_t hash_value(Dim v) { return static_cast<uint64_t>(v.raw); }
static uint64_t hash_value(Offset v) { return static_cast<uint64_t>(v.raw); }
static uint64_t hash_value(DType v) { return static_cast<uint64_t>(v); }
static uint64_t hash_value(std::string_view v) { return hash_text(v); }
static uint64_t hash_value(GraphRef v) { return v.body ? v.body->hash : 0; }
static uint64_t hash_value(const Scalar& v) {
  return combine(combine(static_cast<uint64_t>(v.kind), static_cast<uint64_t>(v.integer)),
                 hash_bytes(&v.real, 16));
}
template <class T>
static uint64_t hash_value(const SmallList<T>& list) {
  uint64_t hash = static_cast<uint64_t>(list.size());
  for (const T& v : list) hash = combine(hash, hash_value(v));
  return hash;
}

FieldList list_fields(const AttrKind& kind, void* value) {
  FieldList list;
  list.items.reserve(kind.fields);
  if (value) {
    kind.list(value, list);
  } else {
    std::vector<char> plain(kind.size);
    kind.init(plain.data());
    kind.list(plain.data(), list);
    for (Field& f : list.items) f.at = nullptr, f.set = f.set ? &f.required : nullptr;
  }
  return list;
}

bool equal(const AttrKind& kind, const void* a, const void* b) {
  FieldList x = list_fields(kind, const_cast<void*>(a)),
            y = list_fields(kind, const_cast<void*>(b));
  for (size_t i = 0; i < x.items.size(); ++i) {
    const Field &f = x.items[i], &g = y.items[i];
    if (f.set && *f.set != *g.set) return false;
    if (f.set && !*f.set) continue;
    bool equal = visit_field(f, [&]<class T>(T& v) { return same(v, *static_cast<T*>(g.at)); });
    if (!equal) return false;
  }
  return true;
}

uint64_t hash_of(const AttrKind& kind, const void* value) {
  uint64_t hash = kind.fields;
  for (const Field& f : list_fields(kind, const_cast<void*>(value)).items) {
    bool unset = f.set && !*f.set;
    hash = combine(hash, unset ? 0x5eed : visit_field(f, [](auto& v) { return hash_value(v); }));
  }
  return hash;
}

void pack(const AttrKind& kind, void* value, const void* const* fields) {
  kind.init(value);
  if (!fields || kind.fields == 0) return;
  FieldList list = list_fields(kind, value);
  for (size_t i = 0; i < list.items.size(); ++i) {
    const Field& f = list.items[i];
    if (f.set) {  // the caller passes a Maybe: its flag, then its value
      const bool given = *static_cast<const bool*>(fields[i]);
      *f.set = given;
      if (!given) continue;
    }
    ptrdiff_t skip = f.set ? static_cast<char*>(f.at) - reinterpret_cast<char*>(f.set) : 0;
    visit_field(f, [&]<class T>(T& v) {
      v = *reinterpret_cast<const T*>(static_cast<const char*>(fields[i]) + skip);
      return 0;
    });
  }
}

namespace {

struct AttrsHash {
  size_t operator()(const Attrs* a) const { return a->hash; }
};
struct AttrsSame {
  bool operator()(const Attrs* a, const Attrs* b) const {
    return a->kind == b->kind && a->hash == b->hash && equal(*a->kind, a->data, b->data);
  }
};

}  // namespace

std::string_view intern(std::string_view text) {
  static auto& mutex = guarded_at_fork(*new std::mutex, 7);
  static auto& table = *new std::unordered_set<std::string>;
  std::lock_guard lock(mutex);
  return *table.insert(std::string(text)).first;
}

namespace {

struct AttrsTable {
  std::mutex mutex;
  std::unordered_set<const Attrs*, AttrsHash, AttrsSame> all;
};

AttrsTable& attrs_table() {
  static auto& only = *[] {
    auto* made = new AttrsTable;
    guarded_at_fork(made->mutex, 5);
    return made;
  }();
  return only;
}

/// What stands before attributes.
struct AttrsHead {
  std::atomic<int32_t> holders = 0;
  std::vector<Hold<Body>>* bodies = nullptr;  // the graphs among the fields; null: there are none
};
static_assert(sizeof(AttrsHead) == kCountBytes);
AttrsHead& head_of(const Attrs* attrs) {
  auto* at = const_cast<char*>(reinterpret_cast<const char*>(attrs)) - kCountBytes;
  return *reinterpret_cast<AttrsHead*>(at);
}

struct DeleteAttrs {
  void operator()(const Attrs* attrs) const {
    AttrsHead& head = head_of(attrs);
    delete head.bodies;
    ::operator delete(&head, std::align_val_t(16));
  }
};
using NewAttrs = std::unique_ptr<Attrs, DeleteAttrs>;

NewAttrs new_attrs(const AttrKind& kind, const void* value) {
  auto* memory = static_cast<char*>(
      ::operator new(kCountBytes + sizeof(Attrs) + kind.size, std::align_val_t(16)));
  new (memory) AttrsHead;
  NewAttrs made(reinterpret_cast<Attrs*>(memory + kCountBytes));
  made->kind = &kind;
  made->hash = hash_of(kind, value);
  std::memcpy(made->data, value, kind.size);
  return made;
}

/// Text and graphs were the caller's: from here on they are the table's own.
void keep_fields(Attrs& attrs) {
  for (const Field& f : list_fields(*attrs.kind, attrs.data).items) {
    if (f.kind == FieldKind::text) {
      auto& text = *static_cast<std::string_view*>(f.at);
      text = intern(text);
    }
    if (f.kind == FieldKind::graph) {
      auto*& bodies = head_of(&attrs).bodies;
      if (!bodies) bodies = new std::vector<Hold<Body>>;
      bodies->emplace_back(static_cast<GraphRef*>(f.at)->body);
    }
  }
}

}  // namespace

void drop_counted(const Attrs* attrs) noexcept {
  AttrsTable& table = attrs_table();
  if (drop_last(attrs, table.mutex, table.all)) DeleteAttrs()(attrs);
}

const Attrs* intern(const AttrKind& kind, const void* value) {
  if (kind.fields == 0) return nullptr;
  NewAttrs made = new_attrs(kind, value);
  AttrsTable& table = attrs_table();
  std::lock_guard lock(table.mutex);
  auto [at, added] = table.all.insert(made.get());
  if (added) {
    try {
      keep_fields(*made);
    } catch (...) {
      table.all.erase(at);  // out of memory: its fields are still the caller's
      throw;
    }
    if (is_among_first(table.all.size() - 1)) make_lasting(made.get());
    (void)made.release();
  }
  hand_out(*at);
  return *at;
}

size_t count_attrs() {
  std::lock_guard lock(attrs_table().mutex);
  return attrs_table().all.size();
}

int normal_axis(Axis axis, int rank, std::string_view op) {
  return normal_axis(int64_t{axis.i}, rank, op);
}

int normal_axis(int64_t axis, int rank, std::string_view op) {
  if (axis < -rank || axis >= rank)
    fail(Fault::index, "{}: axis {} is out of range for a tensor of rank {}", op, axis, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Axes normal_axes(const Maybe<Axes>& axes, int rank, std::string_view op) {
  Axes out;
  if (!axes.set) {
    for (int i = 0; i < rank; ++i) out.push_back(i);
    return out;
  }
  for (Axis a : *axes) {
    int i = normal_axis(a, rank, op);
    if (out.has(i)) fail("{}: axis {} is given twice", op, i);
    out.push_back(i);
  }
  std::sort(out.begin(), out.end(), [](Axis a, Axis b) { return a.i < b.i; });
  return out;
}

Perm normal_perm(const Perm& perm, int rank, std::string_view op) {
  if (perm.size() != rank)
    fail(Hint{perm.size() == 2 ? "swapaxes exchanges two axes" : ""},
         "{}: {} axes given for a tensor of rank {}", op, perm.size(), rank);
  Perm out;
  uint32_t seen = 0;
  for (Axis a : perm) {
    int i = normal_axis(a, rank, op);
    if (seen >> i & 1) fail("{}: axis {} is given twice", op, i);
    seen |= 1u << i;
    out.push_back(i);
  }
  return out;
}

}  // namespace tn
