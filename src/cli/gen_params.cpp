// The parameters of public functions, from arguments and attribute fields.
#include <algorithm>
#include <cmath>

#include "cli/gen.h"
#include "ir/call_order.h"

namespace tn {
namespace {

template <class T>
const T& at(const Field& f) {
  return *static_cast<const T*>(f.at);
}

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
std::string list_text(const List& list, const char* type, bool python) {
  std::string items;
  for (const auto& item : list) items += format("{}{}", items.empty() ? "" : ", ", plain(item));
  if (!python) return items.empty() ? "{}" : format("{}{{{}}}", type, items);
  return list.size() == 1 ? format("({},)", items) : format("({})", items);
}

std::string default_text(const Field& f, bool python) {
  if (f.set && !*f.set) return python ? "None" : "{}";
  switch (f.kind) {
    case FieldKind::boolean:
      return scalar_text(Scalar(at<bool>(f)), python);
    case FieldKind::integer:
      return format("{}", at<int64_t>(f));
    case FieldKind::real:
      return number_text(at<double>(f), python);
    case FieldKind::axis:
      return format("{}", at<Axis>(f).i);
    case FieldKind::axes:
      return list_text(at<Axes>(f), "Axes", python);
    case FieldKind::perm:
      return list_text(at<Perm>(f), "Perm", python);
    case FieldKind::size:
      return format("{}", at<Dim>(f));
    case FieldKind::shape:
      return list_text(at<Shape>(f), "Shape", python);
    case FieldKind::ints:
      return list_text(at<Ints>(f), "Ints", python);
    case FieldKind::offsets:
      return list_text(at<Offsets>(f), "Offsets", python);
    case FieldKind::dtype:
      return python ? format("\"{}\"", name_of(at<DType>(f))) : format("DType::{}", at<DType>(f));
    case FieldKind::choice:
      return format("\"{}\"", f.choices[at<uint8_t>(f)]);
    case FieldKind::text:
      return format("\"{}\"", at<std::string_view>(f));
    case FieldKind::scalar:
      return scalar_text(at<Scalar>(f), python);
    case FieldKind::graph:
      break;  // not on the surface
  }
  return "";
}

std::vector<Param> field_params(const OpDef& op) {
  std::vector<char> space(op.attrs->size + 16);
  void* value = space.data();
  size_t room = space.size();
  std::align(16, op.attrs->size, value, room);
  op.attrs->init(value);
  FieldList fields;
  op.attrs->list(value, fields);
  std::vector<Param> params;
  for (size_t i = 0; i < fields.items.size(); ++i) {
    const Field& f = fields.items[i];
    params.push_back({Param::Role::field, f.name, f.required, static_cast<int>(i), f.kind,
                      f.set != nullptr, f.choices, default_text(f, false), default_text(f, true)});
  }
  return params;
}

}  // namespace

std::vector<Param> params_of(const OpDef& op) {
  std::vector<Param> fields = field_params(op), params;
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
