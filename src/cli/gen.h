#pragma once
// What `tenon gen` writes: the surfaces that follow from the tables of ops, layers and
// optimizers, as text.
#include <string>
#include <vector>

#include "ir/opdef.h"

namespace tn {

struct GeneratedFile {
  std::string path;  // from the root of the repository
  std::string text;
};

/// One parameter of an op's public function, in the order callers write them.
struct Param {
  enum class Role : uint8_t { operand, list, field };
  Role role = Role::operand;
  std::string name;
  bool required = true;  // has no default of its own
  int place = 0;         // among the operands or the fields
  FieldKind kind{};      // of a field
  bool maybe = false;    // a field that may be None
  ChoiceNames choices;
  std::string cpp_default, python_default;
};

/// How the values of a field are written. A choice is one of its literals in Python, and graphs are
/// not on the surface.
struct KindNames {
  std::string_view cpp;
  bool by_reference = false;
  std::string_view python;
};
const KindNames& names_of(FieldKind kind);

/// The value of a field as either language writes it.
std::string default_text(const Field& field, bool python);

/// The fields of a kind of attributes, in order.
std::vector<Param> field_params(const AttrKind& attrs);
/// Operands, and fields where `operands_before` says.
std::vector<Param> params_of(const OpDef& op);

/// Whether C++ has the op in `tn::nn`: activations and losses.
inline bool is_of_nn(const OpDef& op) { return op.module.starts_with("nn"); }

/// The first sentence of a doc.
std::string_view summary_of(std::string_view doc);
/// `text` in lines of at most `width` columns, each after `prefix`; line breaks in it stay.
std::string wrapped(std::string_view text, std::string_view prefix, size_t width);
/// Python's `(x: ArrayLike, axis: int | None = None)`; parts of it without annotations for docs.
std::string python_signature(const OpDef& op, bool annotated, bool method);
/// As tenon/ops.h declares the op, but for the place of the call.
std::string cpp_signature(const OpDef& op);

GeneratedFile cpp_header();
GeneratedFile cpp_operators();
/// The functions of `tn::nn`.
GeneratedFile cpp_nn_functions();
GeneratedFile python_losses();
GeneratedFile cpp_aliases();
GeneratedFile cpp_functions();
/// `written`: the file as it is, whose first part is by hand.
GeneratedFile python_stub(std::string_view written);
std::vector<GeneratedFile> reference_pages();
GeneratedFile cpp_optimizers();
GeneratedFile python_optimizers();
/// Classes and blocks of layers in C++ (tenon/nn/layers.h, tenon/model_layers.h) and their bodies.
std::vector<GeneratedFile> cpp_layers();
/// Classes of layers in Python: a file for each module that the records name.
std::vector<GeneratedFile> python_layers();

/// Writes what differs under `root`, or with `check` only reports it. Returns the exit status.
int generate(const std::string& root, bool check);

}  // namespace tn
