// Every op with symbolic sizes: one trace of each sample, run at its sizes and at others, gives the
// bits of eager code, and fixes no size that need not be.
#include <doctest/doctest.h>

#include <map>

#include "base/error.h"
#include "base/text.h"
#include "functions/compiled.h"
#include "ir/emit.h"
#include "ir/number.h"
#include "ir/rewrite.h"
#include "run_graph.h"
#include "tenon/tenon.h"

using namespace tn;

namespace {

/// Why a size that an op is given stays fixed.
const std::map<std::string_view, std::string_view> kFixed = {
    {"broadcast_to", "the sample asks for known sizes"},
    {"slice_update", "the sample writes to a part of known size"},
    {"unflatten", "the sample asks for known sizes"},
    {"fft_axis", "half a spectrum of a known length"},
    {"rope", "features beyond `dims` are joined, if there are any"},
    {"dropout", "a key is two numbers"},
    {"interpolate", "the weights of its taps are computed when it is traced"},
    {"as_strided", "it is checked when it is traced that no stride leaves the tensor"},
    {"unstack", "one result for each slice"},
    {"cross", "vectors of three numbers"},
    {"window_fold", "windows have a known size"},
    {"multi_dot", "the order of the products is chosen when it is traced"},
    {"distinct", "rows are sorted by one column after the other"},
};
bool may_fix(std::string_view op, bool batched) {
  if (batched && op.starts_with("conv")) return true;       // a batch of kernels is one of groups
  return kFixed.contains(op) || op.starts_with("random_");  // a key is two numbers
}

/// Of three operands and more the order of products follows from the sizes it was traced for.
bool is_steered(const OpDef& op, size_t operands) { return op.name == "einsum" && operands > 2; }

std::vector<TypeRef> types_of(const Sample& sample) {
  std::vector<TypeRef> types;
  std::string_view rest = sample.args;
  while (!rest.empty()) {
    types.push_back(intern(*parse_type(rest)));
    size_t next = rest.find_first_not_of(", ");
    rest = next == rest.npos ? std::string_view() : rest.substr(next);
  }
  return types;
}

Tensors values_of(std::span<const TypeRef> types, const Sample& sample) {
  Tensors list;
  for (size_t i = 0; i < types.size(); ++i)
    list.push_back(random_tensor(types[i], 7 + i, sample.lo, sample.hi));
  return list;
}

/// The op as a function, of the operands it is called with.
Function call_of(const OpDef& op, const Sample& sample) {
  return [&op, &sample](const Tensors& in) {
    alignas(16) char attrs[2048];
    op.attrs->init(attrs);
    if (op.attrs->fields) parse_attrs(*op.attrs, attrs, sample.attrs, op.name);
    Tensors operands = in;
    if (!op.has_list()) operands.resize(static_cast<size_t>(op.args.size()));
    return call_with(op, operands, attrs);
  };
}

/// Cotangents of ones, for all operands that can have them.
Function gradient_of(Function f) {
  return [f](const Tensors& in) {
    Function loss = [&f](const Tensors& x) {
      Tensor total = Tensor(0.0f);
      for (const Tensor& y : f(x))
        if (is_inexact(y.dtype())) total = total + sum(cast_to(real(y * y), DType::f32));
      return Tensors{total};
    };
    std::vector<int> argnums;
    for (size_t i = 0; i < in.size(); ++i)
      if (is_inexact(in[i].dtype())) argnums.push_back(static_cast<int>(i));
    return argnums.empty() ? Tensors{} : flat::grad(loss, argnums)(in);
  };
}

bool differentiable(const OpDef& op, std::span<const TypeRef> types) {
  bool any = std::ranges::any_of(types, [](TypeRef t) { return is_inexact(t->dtype); });
  return any && op.gradient == Gradient::by_rule;
}

/// Traces `f` for any sizes and checks it at those of `types` and at others.
struct SymbolicRun {
  const OpDef& op;
  const Sample& sample;
  std::string what;
  std::vector<TypeRef> types;
  Function f;
  int served = 0, fixed = 0;
  std::string reasons = {};

  Tensors values(std::span<const TypeRef> at) const { return values_of(at, sample); }

  Compiled traced_for(const Pattern& pattern, const Tensors& in, Effort effort) const {
    CompileOptions options;
    options.effort = effort;
    return Compiled(f, in, pattern, options);
  }

  /// The same effort for known sizes. It is traced too: where values are known, ops may refuse
  /// them.
  Tensors wanted(std::span<const TypeRef> at, const Tensors& in, Effort effort) const {
    Tensors args = in;
    return traced_for(exact_pattern(at), in, effort)(args, {});
  }

  void check(const Compiled& traced, std::span<const TypeRef> at, Effort effort) {
    std::vector<Binding> sizes;
    if (!traced.takes(at, sizes)) return;
    Tensors in = values(at), want;
    try {
      want = wanted(at, in, effort);
    } catch (const Error& error) {
      FAIL_CHECK(what << ": a trace serves what one for known sizes refuses: "
                      << std::string(error.what()));
      return;
    }
    ++served;
    INFO(what << " at " << at.size() << " operands, first "
              << (at.empty() ? "none" : to_text(*at[0])));
    Tensors got = traced(in, sizes);
    bool hinted = std::ranges::equal(at, types);
    if (hinted || !is_steered(op, at.size())) CHECK(bytes_of(got) == bytes_of(want));
    for (size_t i = 0; i < got.size(); ++i) CHECK(got[i].shape() == want[i].shape());
  }

  void run(Effort effort) {
    try {
      run_traced(traced_for(shapeless_pattern(types), values(types), effort), effort);
    } catch (const UserError& error) {
      if (!needs_values(error.what())) FAIL_CHECK(what << ": " << std::string(error.what()));
    } catch (const InternalError& error) {
      FAIL_CHECK(what << ": " << std::string(error.what()));
    }
  }

  /// Sizes of results that follow from values are not known while tracing.
  static bool needs_values(std::string_view text) {
    return text.find("value is not known") != text.npos || text.find("values") != text.npos;
  }

  /// Nothing where a size that follows from others would be negative.
  static std::optional<std::vector<TypeRef>> types_at(const Pattern& pattern,
                                                      std::span<const Replacement> sizes) {
    try {
      std::vector<TypeRef> at;
      for (TypeRef t : pattern.types) at.push_back(substitute(t, sizes));
      return at;
    } catch (const UserError&) {
      return {};
    }
  }

  void run_traced(const Compiled& traced, Effort effort) {
    check(traced, types, effort);
    std::vector<Binding> sizes;
    REQUIRE(traced.takes(types, sizes));
    for (auto [times, plus] : {std::pair<int64_t, int64_t>{2, 0}, {1, 1}, {1, 2}, {3, 0}}) {
      std::vector<Replacement> other;
      for (const Binding& b : sizes) other.push_back({b.symbol, Dim(b.value * times + plus)});
      if (auto at = types_at(traced.pattern(), other)) check(traced, *at, effort);
      if (effort != Effort::e0) return;  // code generation takes its time
    }
    for (size_t i = 0; i < types.size(); ++i)
      for (int k = 0; k < types[i]->rank(); ++k)
        fixed += traced.pattern().types[i]->shape[k].is_const() && types[i]->shape[k].raw > 1;
    for (const SizeGuard& g : traced.assumed()) reasons += to_text(g) + "; ";
  }
};

/// A function of operands of these types.
struct Case {
  Function f;
  std::vector<TypeRef> types;
};

template <class Make>
void check_all(std::initializer_list<Effort> efforts, Make make, bool batched = false) {
  std::map<std::string, std::string> fixed;
  int served = 0, samples = 0;
  for (const OpDef* op : surface_ops())
    for (const Sample& sample : op->rules->samples) {
      auto [f, types] = make(*op, sample);
      if (!f || types.empty()) continue;
      std::string text = format("{}({}; {})", op->name, sample.args, sample.attrs);
      SymbolicRun run{*op, sample, text, types, f};
      for (Effort effort : efforts) run.run(effort);
      served += run.served, ++samples;
      if (run.fixed && !may_fix(op->name, batched)) fixed[text] = run.reasons;
    }
  MESSAGE(samples << " samples, " << served << " runs served");
  for (const auto& [text, reasons] : fixed) FAIL_CHECK(text << " fixes sizes: " << reasons);
}

}  // namespace

TEST_CASE("every op serves other sizes from one trace") {
  check_all({Effort::e0, Effort::e2}, [](const OpDef& op, const Sample& sample) {
    return Case{call_of(op, sample), types_of(sample)};
  });
}

TEST_CASE("the derivative of every op serves other sizes from one trace") {
  check_all({Effort::e0}, [](const OpDef& op, const Sample& sample) {
    std::vector<TypeRef> types = types_of(sample);
    if (!differentiable(op, types)) return Case{};
    return Case{gradient_of(call_of(op, sample)), types};
  });
}

TEST_CASE("every op on a batch serves other sizes from one trace") {
  check_all(
      {Effort::e0},
      [](const OpDef& op, const Sample& sample) {
        std::vector<TypeRef> types = types_of(sample);
        for (TypeRef& t : types) {
          Shape shape = t->shape;
          shape.insert(0, 2);
          t = intern(t->dtype, shape);
        }
        return Case{vmap(call_of(op, sample)), types};
      },
      true);
}
