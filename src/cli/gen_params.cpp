// The parameters of public functions, from arguments and attribute fields.
#include <algorithm>
#include <cmath>

#include "cli/gen.h"
#include "ir/call_order.h"
#include "ir/visit_field.h"

namespace tn {
namespace {

std::string number_text(double value, bool python) {
  if (std::isnan(value)) return python ? "nan" : "std::numeric_limits<double>::quiet_NaN()";
  if (std::isinf(value)) {
    std::string text = python ? "inf" : "std::numeric_limits<double>::infinity()";
    return value < 0 ? "-" + text : text;
  }
  std::string text = format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string scalar_text(const Scalar& s, bool python) {
  if (s.kind == Kind::boolean)
    return s.integer ? (python ? "True" : "true") : (python ? "False" : "false");
  if (s.is_integral()) return format("{}", s.integer);
  return number_text(s.real, python);
}

int64_t plain(Axis axis) { return axis.i; }
int64_t plain(int64_t value) { return value; }
int64_t plain(Offset offset) { return offset.value(); }
int64_t plain(Dim dim) { return dim.is_inferred() ? -1 : dim.value(); }

template <class List>
std::string list_text(const List& list, bool python) {
  std::string items;
  for (const auto& item : list) items += format("{}{}", items.empty() ? "" : ", ", plain(item));
  if (!python)
    return items.empty() ? "{}" : format("{}{{{}}}", names_of(FieldOf<List>::kind).cpp, items);
  return list.size() == 1 ? format("({},)", items) : format("({})", items);
}

}  // namespace

std::string default_text(const Field& f, bool python) {
  if (f.set && !*f.set) return python ? "None" : "{}";
  auto quoted = [](std::string_view text) { return format("\"{}\"", text); };
  return visit_field(
      f, Overloads{
             [&](bool v) { return scalar_text(Scalar(v), python); },
             [](int64_t v) { return format("{}", v); },
             [&](double v) { return number_text(v, python); },
             [](Axis v) { return format("{}", v.i); },
             [](Dim v) { return format("{}", v); },
             [&](DType v) { return python ? quoted(name_of(v)) : format("DType::{}", v); },
             [&](uint8_t v) { return quoted(f.choices[v]); },
             [&](std::string_view v) { return quoted(v); },
             [&](const Scalar& v) { return scalar_text(v, python); },
             [](GraphRef) { return std::string(); },  // not on the surface
             [&](const auto& v) { return list_text(v, python); },
         });
}

std::vector<Param> field_params(const AttrKind& attrs) {
  AttrBuffer defaults(attrs);
  FieldList fields = list_fields(attrs, defaults.data);
  std::vector<Param> params;
  for (size_t i = 0; i < fields.items.size(); ++i) {
    const Field& f = fields.items[i];
    params.push_back({Param::Role::field, f.name, f.required, static_cast<int>(i), f.kind,
                      f.set != nullptr, f.choices, default_text(f, false), default_text(f, true)});
  }
  return params;
}

const KindNames& names_of(FieldKind kind) {
  constexpr bool kCopied = false, kByReference = true;
  static constexpr KindNames kNames[] = {
      {"bool", kCopied, "_bool"},
      {"int64_t", kCopied, "int"},
      {"double", kCopied, "float"},
      {"Axis", kCopied, "int"},
      {"Axes", kByReference, "int | Sequence[int]"},
      {"Perm", kByReference, "Sequence[int]"},
      {"Dim", kCopied, "int"},
      {"Shape", kByReference, "int | Sequence[int]"},
      {"Ints", kByReference, "int | Sequence[int]"},
      {"Offsets", kByReference, "int | Sequence[int]"},
      {"DType", kCopied, "DTypeLike"},
      {"std::string_view", kCopied, ""},
      {"std::string_view", kCopied, "str"},
      {"Scalar", kByReference, "_complex"},
      {},
  };
  return kNames[static_cast<size_t>(kind)];
}

std::vector<Param> params_of(const OpDef& op) {
  std::vector<Param> fields = field_params(*op.attrs), params;
  auto add_fields = [&](int after) {
    std::copy_if(fields.begin(), fields.end(), std::back_inserter(params), [&](const Param& p) {
      return operands_before(p.kind, p.required, op.args.size()) == after;
    });
  };
  for (int i = 0; i < op.args.size(); ++i) {
    const ArgDef& arg = op.args[i];
    Param p;
    p.role = arg.list ? Param::Role::list : Param::Role::operand;
    p.name = arg.name, p.required = !arg.optional, p.place = i;
    p.cpp_default = "nullptr", p.python_default = "None";
    add_fields(i);
    params.push_back(p);
  }
  add_fields(op.args.size());
  return params;
}

std::string_view summary_of(std::string_view doc) {
  size_t end = doc.find(". ");
  size_t line = doc.find('\n');
  return doc.substr(0, std::min(end == doc.npos ? doc.size() : end + 1, line));
}

std::string wrapped(std::string_view text, std::string_view prefix, size_t width) {
  std::string out;
  while (!text.empty()) {
    size_t stop = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, stop);
    text.remove_prefix(std::min(stop + 1, text.size()));
    do {
      size_t room = width - prefix.size(), cut = line.size();
      if (cut > room) {
        cut = line.rfind(' ', room);
        if (cut == line.npos || cut == 0) cut = std::min(line.find(' '), line.size());
      }
      std::string row = format("{}{}", prefix, line.substr(0, cut));
      row.erase(row.find_last_not_of(' ') + 1);
      out += row + "\n";
      line.remove_prefix(std::min(cut + 1, line.size()));
    } while (!line.empty());
  }
  return out;
}

}  // namespace tn
