// The op table's samples, for the test harness.
#include <nanobind/stl/string.h>

#include "base/error.h"
#include "core.h"
#include "ir/attrs.h"
#include "ir/dtype.h"

namespace tn::python {
namespace {

/// The attributes that the sample's text sets, as keyword values.
nb::dict keywords(const OpDef& op, const Sample& sample) {
  nb::dict made;
  if (op.attrs->fields == 0) return made;
  AttrBuffer attrs(*op.attrs);
  parse_attrs(*op.attrs, attrs.data, sample.attrs, op.name);
  std::string_view given = sample.attrs;
  FieldList fields;
  op.attrs->list(attrs.data, fields);
  for (const Field& f : fields.items) {
    size_t at = given.find(format("{}=", f.name));
    bool named = at != given.npos && (at == 0 || given[at - 1] == ' ' || given[at - 1] == ',');
    if (named && !(f.set && !*f.set)) made[f.name] = field_object(f);
  }
  return made;
}

nb::list arg_types(const OpDef& op, const Sample& sample) {
  nb::list made;
  std::string_view rest = sample.args;
  while (!rest.empty()) {
    std::optional<Type> type = parse_type(rest);
    invariant(type.has_value(), "{}: bad sample: '{}'", op.name, sample.args);
    made.append(nb::make_tuple(dtype_object(type->dtype), shape_tuple(type->shape)));
    size_t next = rest.find_first_not_of(", ");
    rest = next == rest.npos ? std::string_view() : rest.substr(next);
  }
  return made;
}

constexpr std::string_view kFamilies[] = {"elementwise", "reduction", "movement", "composite",
                                          "general"};

constexpr std::string_view kGradients[] = {"by_rule", "zero", "none"};

nb::dict describe(const OpDef& op, const Sample& sample) {
  nb::dict row;
  row["op"] = as_str(op.name);
  nb::list aliases;
  for (std::string_view alias : op.rules->aliases) aliases.append(as_str(alias));
  row["aliases"] = aliases;
  row["family"] = as_str(kFamilies[static_cast<size_t>(op.family)]);
  row["recorded"] = op.recorded;
  nb::list names;
  for (const ArgDef& arg : op.args) names.append(as_str(arg.name));
  row["arg_names"] = names;
  row["has_list"] = op.has_list();
  row["results"] = op.results.size();
  row["args"] = arg_types(op, sample);
  row["keywords"] = keywords(op, sample);
  row["text"] = format("{}({}{}{})", op.name, sample.args, *sample.attrs ? "; " : "", sample.attrs);
  row["gradient"] = as_str(kGradients[static_cast<size_t>(op.gradient)]);
  row["lo"] = sample.lo;
  row["hi"] = sample.hi;
  nb::list dtypes;
  for (int i = 0; i < kDTypes; ++i)
    if (accepts(op.types, static_cast<DType>(i)))
      dtypes.append(dtype_object(static_cast<DType>(i)));
  row["dtypes"] = dtypes;
  return row;
}

}  // namespace

void bind_samples(nb::module_& m) {
  m.def("_samples", [] {
    nb::list rows;
    for (const OpDef* op : surface_ops())
      for (const Sample& sample : op->rules->samples) rows.append(describe(*op, sample));
    return rows;
  });
  m.def("_op_names", [] {
    nb::list names;
    for (const OpDef* op : surface_ops()) names.append(as_str(op->name));
    return names;
  });
}

}  // namespace tn::python
