// Jacobians: all directions at once, by vmap.
//
//   jacrev: row i is the pullback of basis vector i of the result
//   jacfwd: column j is the derivative in the direction of basis vector j of the argument
#include "base/error.h"
#include "ir/dtype.h"
#include "tenon/flat.h"
#include "tenon/ops.h"
#include "transforms/derivative.h"
#include "transforms/names.h"

namespace tn::flat {

namespace {

/// The unit tensors like `x`, along a new axis 0.
Tensor basis_of(const Tensor& x) {
  Shape shape = x.shape();
  shape.insert(0, x.shape().elements());
  return tn::reshape(tn::eye(x.shape().elements(), {}, 0, x.dtype()), shape);
}

Shape joined(Shape a, const Shape& b) {
  for (int i = 0; i < b.rank(); ++i) a.push_back(b[i]);
  return a;
}

/// One direction per element says all about a map from `from` to `to` unless a complex number is
/// to be told from two real ones.
void check_covers(const Tensor& from, const Tensor& to, std::string_view other, const Names& names,
                  NameOf name, size_t i) {
  if (!is_inexact(from.dtype()))
    fail(Fault::type, "{}: {} is {}: derivatives exist for floating and complex results only",
         names.transform, name(names, i), *type_of(from));
  if (kind_of(from.dtype()) == Kind::complex && kind_of(to.dtype()) != Kind::complex)
    fail(Fault::type, Hint{format("use {}, or split it with real and imag", other)},
         "{}: {} is {} beside {}: a complex number has two real directions", names.transform,
         name(names, i), *type_of(from), *type_of(to));
}

const Tensor& argument(const Tensors& args, int n) {
  return args[static_cast<size_t>(n < 0 ? n + static_cast<int>(args.size()) : n)];
}

}  // namespace

Function jacrev(Function f, std::vector<int> argnums, Names names) {
  return [f = std::move(f), argnums = std::move(argnums),
          names = std::move(names)](const Tensors& args) {
    Pullback pullback(f, args, argnums, names);
    const Tensors& out = pullback.outputs();
    Tensors result;
    for (size_t i = 0; i < out.size() && !argnums.empty(); ++i) {
      for (int n : argnums)
        check_covers(out[i], argument(args, n), "jacfwd", names, result_name, i);
      auto row = [&](const Tensors& unit) {
        Tensors cotangents(out.size());
        cotangents[i] = unit[0];
        return pullback(cotangents);
      };
      Tensors rows = vmap(row)({basis_of(out[i])});
      for (size_t k = 0; k < rows.size(); ++k)
        result.push_back(
            tn::reshape(rows[k], joined(out[i].shape(), argument(args, argnums[k]).shape())));
    }
    return result;
  };
}

Function jacfwd(Function f, std::vector<int> argnums, Names names) {
  return [f = std::move(f), argnums = std::move(argnums),
          names = std::move(names)](const Tensors& args) {
    if (argnums.empty()) {  // no column says how many results there are
      jvp(f, args, Tensors(args.size()), names);
      return Tensors();
    }
    std::vector<Tensors> columns;
    for (int n : argnums) {
      const Tensor& x = argument(args, n);
      size_t at = static_cast<size_t>(&x - args.data());
      auto column = [&](const Tensors& unit) {
        Tensors tangents(args.size());
        tangents[at] = unit[0];
        return jvp(f, args, tangents, names).derivatives;
      };
      columns.push_back(vmap(column)({basis_of(x)}));
      for (Tensor& c : columns.back()) {
        check_covers(x, c, "jacrev", names, argument_name, at);
        Shape shape = c.shape();
        shape.erase(0);
        c = tn::reshape(tn::moveaxis(c, Axes(0), Axes(c.rank() - 1)), joined(shape, x.shape()));
      }
    }
    Tensors result;
    for (size_t i = 0; i < columns[0].size(); ++i)
      for (const Tensors& of_argument : columns) result.push_back(of_argument[i]);
    return result;
  };
}

Function hessian(Function f, std::vector<int> argnums) {
  Function gradient = grad(std::move(f), argnums);
  return jacfwd(std::move(gradient), std::move(argnums), {"hessian"});
}

}  // namespace tn::flat
