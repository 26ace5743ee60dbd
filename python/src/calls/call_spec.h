#pragma once
// How an op is called from Python: its parameters in order, with converters for their values.
#include <string>
#include <vector>

#include "core.h"
#include "ir/attrs.h"

namespace tn::python {

/// A field's value as Python gives it, written into the attribute struct.
struct FieldSlot {
  std::string_view op;
  const char* name = nullptr;
  FieldKind kind{};
  ChoiceNames choices;
  size_t at = 0;       // offset in the struct
  ptrdiff_t set = -1;  // offset of the flag of a Maybe

  void write(char* attrs, PyObject* value, std::vector<nb::object>& keep) const;
  [[noreturn]] void refuse(const char* wanted, PyObject* value) const;
};

/// The fields of a kind of attributes, in order. `owner` begins errors.
std::vector<FieldSlot> make_slots(std::string_view owner, const AttrKind& kind, FieldList& fields);

struct CallParam {
  enum class Role : uint8_t { operand, list, field };
  Role role = Role::operand;
  PyObject* name = nullptr;  // interned
  std::string_view text;
  bool required = true;
  int place = 0;  // among operands or fields
};

/// Everything one vectorcall needs to know about an op.
struct CallSpec {
  const OpDef* op = nullptr;
  std::vector<CallParam> params;
  std::vector<FieldSlot> fields;
  bool has_list = false;
  PyTypeObject* result = nullptr;  // of ops with several results
};

CallSpec make_spec(const OpDef& op);
/// The parameters as [(name, required, default), …], for inspect.signature.
nb::object describe_params(const CallSpec& spec);
/// Calls the op with Python's arguments.
nb::object call_python(const CallSpec& spec, PyObject* const* args, size_t count,
                       PyObject* keywords);

/// What is given of an op's arguments.
struct GivenArguments {
  AttrBuffer attrs;  // defaults for what is left out
  Tensors operands;  // by operand; null: not given
};
/// Reads attributes, in order or by name, and operands by name. Fails for attributes that must be
/// given and are not.
GivenArguments read_given(const CallSpec& spec, nb::tuple attributes, nb::dict keywords);
/// How the op is called.
const CallSpec& spec_of(const OpDef& op);

/// Errors begin with `op`, if there is one, and name `what`.
int64_t read_int(PyObject* object, std::string_view what, std::string_view op = {});

}  // namespace tn::python
