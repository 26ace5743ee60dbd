// What ops are in Python, where that does not follow from their families.
#include <algorithm>

#include "backend/source/python_call.h"
#include "backend/source/python_text.h"
#include "base/text.h"
#include "ops/contract.h"
#include "ops/conv_attrs.h"
#include "ops/cumulative.h"
#include "ops/families.h"
#include "ops/fourier.h"
#include "ops/indexing.h"
#include "ops/matrices.h"
#include "ops/op_attrs.h"
#include "ops/op_decls.h"
#include "ops/slice_attrs.h"

namespace tn::source {
namespace {

using namespace ops;

/// A product of matrices, where `@` pairs the axes in this way.
std::string spell_matmul(const DotAttrs& a, Types in) {
  int m = in[0]->rank(), n = in[1]->rank(), batch = a.lhs_batch.size();
  if (a.lhs_contract.size() != 1) return "";
  for (int k = 0; k < batch; ++k)
    if (a.lhs_batch[k].i != k || a.rhs_batch[k].i != k) return "";
  int left = a.lhs_contract[0].i, right = a.rhs_contract[0].i;
  bool matrices = m == batch + 2 && n == batch + 2;
  bool rows = matrices || (batch == 0 && m > 0 && n == 2) || (batch == 0 && n == 1);
  if (!rows && !(batch == 0 && m == 1 && n == 2)) return "";
  if (left != m - 1 && !(matrices && left == m - 2)) return "";
  std::string_view turn = batch ? ".mT" : ".T";
  std::string text = left == m - 1 ? "{0}" : format("{{0}}{}", turn);
  text += " @ {1}";
  if (n > 1 && right == n - 1) text += turn;
  return text;
}

std::string spell_einsum(const DotAttrs& a, Types in) {
  std::string left, right, out;
  for (int k = 0; k < in[0]->rank(); ++k) left += static_cast<char>('a' + k);
  for (int k = 0; k < in[1]->rank(); ++k) right += static_cast<char>('a' + in[0]->rank() + k);
  auto at = [](std::string& s, Axis k) -> char& { return s[static_cast<size_t>(k.i)]; };
  for (int i = 0; i < a.lhs_batch.size(); ++i) at(right, a.rhs_batch[i]) = at(left, a.lhs_batch[i]);
  for (int i = 0; i < a.lhs_contract.size(); ++i)
    at(right, a.rhs_contract[i]) = at(left, a.lhs_contract[i]);
  for (Axis k : a.lhs_batch) out += at(left, k);
  for (Axis k : free_axes(in[0]->rank(), a.lhs_batch, a.lhs_contract)) out += at(left, k);
  for (Axis k : free_axes(in[1]->rank(), a.rhs_batch, a.rhs_contract)) out += at(right, k);
  return format("{{xp}}.einsum(\"{},{}->{}\", {{0}}, {{1}})", left, right, out);
}

std::string spell_dot(const DotAttrs& a, PythonCall& call) {
  std::string text = spell_matmul(a, call.in);
  if (text.empty()) text = spell_einsum(a, call.in);
  DType type = call.in[0]->dtype;
  auto within = [&](std::string_view wide, std::string_view narrow) {
    for (std::string_view k : {"{0}", "{1}"})
      text.replace(text.find(k), 3, format("{}{}", k, wide));
    return call.fill(format("({}){}", text, narrow));
  };
  if (call.is("numpy") && type == DType::f16)
    return within(".astype(np.float32)", ".astype(np.float16)");
  if (type == DType::b1 && !call.is("numpy"))
    return call.is("torch") ? within(".float()", " > 0") : within(".astype(jnp.float32)", " > 0");
  return call.fill(text);
}

template <class List>
bool all_equal(const List& list, int64_t to) {
  return std::all_of(list.begin(), list.end(), [&](auto x) { return x == decltype(x)(to); });
}

/// The option `name`, an attribute, unless all of it is 1.
std::string option(std::string_view name, std::string_view attribute, const Ints& list) {
  return all_equal(list, 1) ? "" : format(", {}={{{}}}", name, attribute);
}

std::string spell_conv(const ConvAttrs& a, PythonCall& call) {
  int axes = call.in[0]->rank() - 2;
  bool even = a.padding.size() == 2 * axes;
  std::vector<std::string> sides, halves;
  for (int k = 0; k < axes; ++k) {
    std::string before = call.size(a.padding[2 * k]), after = call.size(a.padding[2 * k + 1]);
    even &= a.padding[2 * k] == a.padding[2 * k + 1] && before[0] != '-';
    sides.push_back(format("({}, {})", before, after)), halves.push_back(before);
  }
  std::string_view groups_name = call.is("jax") ? "feature_group_count" : "groups";
  std::string groups = a.groups == 1 ? "" : format(", {}={{groups}}", groups_name);
  if (call.is("jax")) {
    std::string_view inner = std::string_view("DHW").substr(static_cast<size_t>(3 - axes));
    std::string layout;
    if (a.channels_last)
      layout = format(", dimension_numbers=(\"N{0}C\", \"O{0}I\", \"N{0}C\")", inner);
    return call.fill(
        format("lax.conv_general_dilated({{0}}, {{1}}, {{stride}}, {}{}{}{}{})", tuple(sides),
               option("lhs_dilation", "input_dilation", a.input_dilation),
               option("rhs_dilation", "kernel_dilation", a.kernel_dilation), groups, layout));
  }
  if (call.is("torch") && even && !a.channels_last && all_equal(a.input_dilation, 1)) {
    std::string padding = all_equal(a.padding, 0) ? "" : ", padding=" + tuple(halves);
    return call.fill(format("F.conv{}d({{0}}, {{1}}{}{}{}{})", axes,
                            option("stride", "stride", a.stride), padding,
                            option("dilation", "kernel_dilation", a.kernel_dilation), groups));
  }
  return call.fill(
      "_conv({0}, {1}, {stride}, {padding}, {input_dilation}, {kernel_dilation}, {groups}, "
      "{channels_last})");
}

std::string spell_max_pool(const MaxPoolAttrs& a, PythonCall& call) {
  int axes = call.in[0]->rank() - 2;
  if (!call.is("torch") || a.channels_last || !is_float(call.in[0]->dtype)) return "";
  auto each = [&](const Ints& list) { return for_each_axis("max_pool", "", list, axes, 0); };
  Ints size = each(a.kernel_size), padding;
  Offsets sides = for_each_side("max_pool", a.padding, axes);
  for (int k = 0; k < axes; ++k) {
    Offset side = sides[2 * k];
    if (!side.is_const() || side != sides[2 * k + 1] || 2 * side.raw > size[k]) return "";
    padding.push_back(side.raw);
  }
  auto option = [&](std::string_view name, const Ints& list, const Ints& usual) {
    if (list == usual) return std::string();
    return format(", {}[{}]", name, join(std::vector<int64_t>(list.begin(), list.end()), ", "));
  };
  return call.fill(format("F.max_pool{}d({{0}}{}{}{}{})", axes, option("", size, {}),
                          option("stride=", a.stride ? each(*a.stride) : size, size),
                          option("padding=", padding, each(just(0))),
                          option("dilation=", each(a.dilation), each(just(1)))));
}

std::string spell_gather(const GatherAttrs& a, PythonCall& call) {
  if (a.axes.size() > 1 || a.batch_dims > 0 || when_reading(a.outside) == OutOfRange::drop)
    return call.fill("_gather({0}, [{*1}], {axes}, {batch_dims}, {outside})");
  int axis = a.axes[0].i;
  if (!call.is("torch"))
    return call.fill(format("{{xp}}.take({{0}}, {{1}}, axis={}, mode=\"clip\")", axis));
  std::string before;
  for (int k = 0; k < axis; ++k) before += ":, ";
  Offset last = Offset(call.in[0]->shape[axis]) - Offset(1);
  return call.fill(format("{{0}}[{}{{1}}{}.clamp(0, {})]", before,
                          call.in[1]->dtype == DType::i64 ? "" : ".long()", call.size(last)));
}

std::string spell_slice_update(const SliceAttrs& a, PythonCall& call) {
  std::vector<std::string> parts(static_cast<size_t>(call.in[0]->rank()), "slice(None)");
  for (int i = 0; i < a.axis->size(); ++i) {
    std::string& part = parts[static_cast<size_t>((*a.axis)[i].i)];
    part = format("slice({}, {}", call.size(a.start[i]), call.size(a.stop[i]));
    part += a.step && (*a.step)[i] != 1 ? format(", {})", (*a.step)[i]) : ")";
  }
  return call.fill(format("_updated({{0}}, ({},), {{1}})", join(parts, ", ")));
}

std::string spell_pad(const PadWithAttrs& a, PythonCall& call) {
  std::vector<std::string> sides;
  for (int k = 0; k < a.pad_width.size(); k += 2)
    sides.push_back(format("({}, {})", call.size(a.pad_width[k]), call.size(a.pad_width[k + 1])));
  std::string widths = tuple(sides);
  if (sides.empty()) return call.fill("{0}");
  if (call.is("torch")) return call.fill(format("_pad({{0}}, {}, {{1}}, {{mode}})", widths));
  return call.fill(format("{{xp}}.pad({{0}}, {}, {})", widths,
                          a.mode == PadMode::constant ? "constant_values={1}" : "mode={mode}"));
}

std::string spell_argreduce(const ArgreduceAttrs& a, PythonCall& call) {
  return call.fill(format("{{xp}}.arg{}({{0}}, {}={{axis}})",
                          a.mode == Extreme::max ? "max" : "min",
                          call.is("torch") ? "dim" : "axis"));
}

std::string spell_cumulative(const CumulativeAttrs& a, PythonCall& call) {
  bool plain = !a.reverse && !a.exclusive && (a.mode == Running::sum || a.mode == Running::prod);
  DType type = call.in[0]->dtype;
  if (!plain || (call.is("torch") && kind_of(type) == Kind::natural))
    return call.fill("_cumulative({0}, {axis}, {mode}, {reverse}, {exclusive})");
  bool widens = is_integer(type) && size_of(type) < 8;  // unless dtype is given
  return call.fill(format("{{xp}}.cum{}({{0}}, {}={{axis}}{})", kRunning[static_cast<int>(a.mode)],
                          call.is("torch") ? "dim" : "axis", widens ? ", dtype={0.dtype}" : ""));
}

/// In a narrow float NumPy, and JAX where it does not see to it, get bodies, which say where they
/// compute in f32.
bool is_narrow(const PythonCall& call) {
  return info(call.in[0]->dtype).compute != call.in[0]->dtype;
}

/// PyTorch has it, but counts causal queries from the other end.
std::string spell_attention(const AttentionAttrs& a, PythonCall& call) {
  const Shape &q = call.in[0]->shape, &k = call.in[1]->shape;
  bool torch = call.is("torch");
  if (q.rank() != 4 || k.rank() != 4 || k[2].is(0) || (is_narrow(call) && !torch)) return "";
  bool other_end = a.is_causal && (!identical(q[2], k[2]) || call.in.size() > 3);
  if (torch && (other_end || !identical(q[1], k[1]))) return "";
  std::string options = call.in.size() > 3 ? (torch ? ", attn_mask={3}" : ", mask={3}") : "";
  if (a.scale) options += ", scale={scale}";
  if (a.is_causal) options += ", is_causal=True";
  return call.fill(format("{}({{0}}, {{1}}, {{2}}{})",
                          torch ? "F.scaled_dot_product_attention" : "_attention", options));
}

std::string spell_layer_norm(const LayerNormAttrs& a, PythonCall& call) {
  if (is_narrow(call) && !call.is("torch")) return "";
  const Shape& shape = call.in[0]->shape;
  std::vector<std::string> sizes, axes;
  for (int64_t k = shape.rank() - a.normalized_axes; k < shape.rank(); ++k) {
    sizes.push_back(call.size(shape[static_cast<int>(k)]));
    axes.push_back(format("{}", k));
  }
  std::string scaled = call.in.size() > 2 ? ", {1}, {2}" : call.in.size() > 1 ? ", {1}" : "";
  if (call.is("torch"))
    return call.fill(format("F.layer_norm({{0}}, [{}]{}, eps={{eps}})", join(sizes, ", "), scaled));
  return call.fill(format("_layer_norm({{0}}, ({},){}, eps={{eps}})", join(axes, ", "), scaled));
}

std::string spell_rms_norm(PythonCall& call) {
  if (is_narrow(call) && !call.is("torch")) return "";
  std::string scaled = call.in.size() > 1 ? ", {1}" : "";
  if (!call.is("torch")) return call.fill(format("_rms_norm({{0}}{}, eps={{eps}})", scaled));
  return call.fill(format("F.rms_norm({{0}}, [{}]{}, eps={{eps}})",
                          call.size(call.in[0]->shape.back()), scaled));
}

std::string spell_batch_norm(const BatchNormAttrs& a, PythonCall& call) {
  if (!call.is("torch") || a.axis.i != 1 || call.in[0]->rank() > 5) return "";
  std::string scaled = call.in.size() > 4 ? ", {3}, {4}" : call.in.size() > 3 ? ", {3}" : "";
  return call.fill(format("F.batch_norm({{0}}, {{1}}, {{2}}{}, eps={{eps}})", scaled));
}

std::string spell_softmax(const SoftmaxAttrs& a, PythonCall& call) {
  if (a.axis->size() != 1 || (is_narrow(call) && call.is("numpy"))) return "";
  std::string_view name = call.called->name;
  int axis = (*a.axis)[0].i;
  return call.fill(format("_{}({{0}}, {})", name, axis),
                   format("torch.{}({{0}}, dim={})", name, axis),
                   format("jax.nn.{}({{0}}, axis={})", name, axis));
}

std::string spell_logsumexp(const ReduceAttrs& a, PythonCall& call) {
  if (a.axis->empty() || call.is("numpy") || is_narrow(call)) return "";
  return call.fill("", "torch.logsumexp({0}, dim={axis}, keepdim={keepdims})",
                   "jax.nn.logsumexp({0}, axis={axis}, keepdims={keepdims})");
}

std::string spell_cholesky(const CholeskyAttrs& a, PythonCall& call) {
  return call.fill(a.upper ? "{xp}.linalg.cholesky({0}).mT.conj()" : "{xp}.linalg.cholesky({0})");
}

std::string spell_matrix_solve(const SolveAttrs& a, PythonCall& call) {
  return call.fill(a.transpose ? "{xp}.linalg.solve({0}.mT, {1})" : "{xp}.linalg.solve({0}, {1})");
}

std::string spell_fft(const FftAxisAttrs& a, PythonCall& call) {
  bool own = a.inverse && a.scale == 1 && a.divisor == Divisor::length && a.kind != FftKind::r2c;
  bool back = a.kind == FftKind::c2r || (a.inverse && a.kind == FftKind::c2c);
  std::string_view name = a.kind == FftKind::r2c   ? "rfft"
                          : a.kind == FftKind::c2r ? "irfft"
                          : a.inverse              ? "ifft"
                                                   : "fft";
  bool turned = a.kind == FftKind::c2r ? !a.inverse : a.kind == FftKind::r2c && a.inverse;
  std::string n = call.size(*a.n);
  std::string text =
      format("{{xp}}.fft.{}({}{}, {}={{axis}}{})", name,
             turned && a.kind == FftKind::c2r ? "{xp}.conj({0})" : "{0}",
             a.kind == FftKind::c2r ? ", n=" + n : "", call.is("torch") ? "dim" : "axis",
             back && !own ? ", norm=\"forward\"" : "");
  if (turned && a.kind == FftKind::r2c) text = format("{{xp}}.conj({})", text);
  text = call.fill(text);
  if (a.scale != 1) text += format(" * {}", a.scale);
  if (own || a.divisor == Divisor::one) return text;
  return text + (a.divisor == Divisor::root ? format(" / {} ** 0.5", n) : format(" / {}", n));
}

std::string spell_iota(const IotaAttrs& a, PythonCall& call) {
  if (a.shape.rank() > 1 && call.is("jax"))
    return call.fill("lax.broadcasted_iota({dtype}, {shape}, {axis})");
  std::string n = call.size(a.shape[a.axis.i]), line;
  std::string text = call.fill(format("{{xp}}.arange({}, dtype={{dtype}}{})", n,
                                      call.is("torch") ? ", device={device}" : ""));
  if (a.shape.rank() == 1) return text;
  bool repeats = false;
  for (int k = 0; k < a.shape.rank(); ++k) {
    line += k == a.axis.i ? n + ", " : "1, ";
    repeats |= k != a.axis.i && !a.shape[k].is(1);
  }
  text += format(".reshape({})", line.substr(0, line.size() - 2));
  return repeats ? call.fill(format("{{xp}}.broadcast_to({}, {{shape}})", text)) : text;
}

std::string spell_random_bits(PythonCall& call) {
  return call.fill(format("_random_bits({{0}}, {{shape}}, {})", 8 * size_of(call.out[0]->dtype)));
}

/// PyTorch holds some unsigned integers in int64.
std::string spell_bitcast(PythonCall& call) {
  if (!call.is("torch"))
    return call.fill("{0}.view({dtype})", "", "lax.bitcast_convert_type({0}, {dtype})");
  auto held = [](DType type) { return type == DType::u16 || type == DType::u32; };
  DType from = call.in[0]->dtype;
  std::string_view bits = size_of(from) == 2 ? "torch.int16" : "torch.int32";
  std::string text = held(from) ? format("{{0}}.to({})", bits) : std::string("{0}");
  if (!held(call.out[0]->dtype)) return call.fill(text + ".view({dtype})");
  return call.fill(format("{}.view({}).to(torch.int64) & {}", text, bits,
                          size_of(from) == 2 ? "0xFFFF" : "0xFFFFFFFF"));
}

std::string spell_cond(PythonCall& call) {
  std::string text =
      call.fill("({then} if {0} else {otherwise})({*1})", "({then} if {0} else {otherwise})({*1})",
                call.in.size() > 1 ? "lax.cond({0}, {then}, {otherwise}, {*1})"
                                   : "lax.cond({0}, {then}, {otherwise})");
  return call.out.size() == 1 ? text + "[0]" : text;
}

std::string spell_while_loop(PythonCall& call) {
  return call.fill(format("_while({{go_on}}, {{body}}, [{{*}}], {}){}", call.out.size(),
                          call.out.size() == 1 ? "[0]" : ""));
}

std::string spell_scan(PythonCall& call) {
  std::string text =
      call.fill("_scan({body}, [{*}], {carries}, {xs}, {length}, reverse={reverse})");
  return call.out.size() == 1 ? text + "[0]" : text;
}

template <size_t kSize>
struct Text {
  char at[kSize];
  constexpr Text(const char (&text)[kSize]) { std::copy_n(text, kSize, at); }
};
/// A text for NumPy, PyTorch and JAX, or one for each.
template <Text kNumpy, Text kTorch = kNumpy, Text kJax = kNumpy>
constexpr PythonSpelling text = {
    [](const void*, PythonCall& call) { return call.fill(kNumpy.at, kTorch.at, kJax.at); }};

constexpr SpelledOp<PythonCall> kPythonOps[] = {
    {&ops::after, text<"{0}">},
    {&ops::argreduce, by<spell_argreduce>},
    {&ops::argsort, text<"_argsort({0}, {axis}, {descending})">},
    {&ops::batch_norm, by<spell_batch_norm>},
    {&ops::bitcast, by<spell_bitcast>},
    {&ops::cholesky, by<spell_cholesky>},
    {&ops::concat, text<"np.concatenate([{*}], axis={axis})", "torch.cat([{*}], dim={axis})",
                        "jnp.concatenate([{*}], axis={axis})">},
    {&ops::cond, by<spell_cond>},
    {&ops::conv, by<spell_conv>},
    {&ops::conv_weights, text<"_conv_weights({0}, {1}, {kernel}, {stride}, {padding}, "
                              "{input_dilation}, {kernel_dilation}, "
                              "{groups}, {channels_last})">},
    {&ops::cumulative, by<spell_cumulative>},
    {&ops::det, text<"{xp}.linalg.det({0})">},
    {&ops::dot, by<spell_dot>},
    {&ops::dynamic_slice,
     text<"_dynamic_slice({0}, [{*1}], {sizes})", "_dynamic_slice({0}, [{*1}], {sizes})",
          "lax.dynamic_slice({0}, [{*1}], {sizes})">},
    {&ops::dynamic_update_slice,
     text<"_dynamic_update_slice({0}, {1}, [{*2}])", "_dynamic_update_slice({0}, {1}, [{*2}])",
          "lax.dynamic_update_slice({0}, {1}, [{*2}])">},
    {&ops::eig, text<"_eig({0})", "torch.linalg.eig({0})", "jnp.linalg.eig({0})">},
    {&ops::eigh, text<"{xp}.linalg.eigh({0})">},
    {&ops::eigvals, text<"_eig({0})[0]", "torch.linalg.eigvals({0})", "jnp.linalg.eigvals({0})">},
    {&ops::eigvalsh, text<"{xp}.linalg.eigvalsh({0})">},
    {&ops::elu, text<"", "F.elu({0}, {alpha})", "jax.nn.elu({0}, {alpha})">},
    {&ops::fft_axis, by<spell_fft>},
    {&ops::gather, by<spell_gather>},
    {&ops::gelu, text<"", "F.gelu({0})", "jax.nn.gelu({0}, approximate=False)">},
    {&ops::gelu_tanh, text<"", "F.gelu({0}, approximate=\"tanh\")", "jax.nn.gelu({0})">},
    {&ops::hardswish, text<"", "F.hardswish({0})", "jax.nn.hard_swish({0})">},
    {&ops::iota, by<spell_iota>},
    {&ops::layer_norm, by<spell_layer_norm>},
    {&ops::leaky_relu,
     text<"", "F.leaky_relu({0}, {negative_slope})", "jax.nn.leaky_relu({0}, {negative_slope})">},
    {&ops::log_sigmoid, text<"", "F.logsigmoid({0})", "jax.nn.log_sigmoid({0})">},
    {&ops::log_softmax, by<spell_softmax>},
    {&ops::logsumexp, by<spell_logsumexp>},
    {&ops::lu_factor, text<"_lu_factor({0})">},
    {&ops::make_complex, text<"_complex({0}, {1})">},
    {&ops::matrix_solve, by<spell_matrix_solve>},
    {&ops::max_pool, by<spell_max_pool>},
    {&ops::mish, text<"", "F.mish({0})", "jax.nn.mish({0})">},
    {&ops::pad_with, by<spell_pad>},
    {&ops::qr, text<"{xp}.linalg.qr({0}, mode={mode})">},
    {&ops::random_bits, by<spell_random_bits>},
    {&ops::random_fold_in, text<"_random_fold_in({0}, {1})">},
    {&ops::random_split, text<"_random_split({0}, {num})">},
    {&ops::relu, text<"", "torch.relu({0})", "jax.nn.relu({0})">},
    {&ops::rms_norm, by<spell_rms_norm>},
    {&ops::scaled_dot_product_attention, by<spell_attention>},
    {&ops::scan, by<spell_scan>},
    {&ops::scatter, text<"_scatter({0}, {1}, [{*2}], {axes}, {mode}, {batch_dims}, {outside})">},
    {&ops::searchsorted, text<"_searchsorted({0}, {1}, {side}, {batch_dims})">},
    {&ops::silu, text<"", "F.silu({0})", "jax.nn.silu({0})">},
    {&ops::size_value, text<"np.int64({size})", "torch.tensor({size})", "jnp.int64({size})">},
    {&ops::slice_update, by<spell_slice_update>},
    {&ops::slogdet, text<"{xp}.linalg.slogdet({0})">},
    {&ops::softmax, by<spell_softmax>},
    {&ops::softplus, text<"", "F.softplus({0})", "jax.nn.softplus({0})">},
    {&ops::sort, text<"_sort({0}, {axis}, {descending})">},
    {&ops::svd, text<"{xp}.linalg.svd({0}, full_matrices={full_matrices})">},
    {&ops::svdvals, text<"{xp}.linalg.svdvals({0})">},
    {&ops::top_k, text<"_top_k({0}, {k}, {axis})">},
    {&ops::triangular_solve,
     text<"_solve_triangular({0}, {1}, {upper}, {transpose}, {unit_diagonal})">},
    {&ops::while_loop, by<spell_while_loop>},
    {&ops::window_fold, text<"_fold_windows({0}, {extents}, {step}, {dilation})">},
};

}  // namespace

const PythonSpelling* python_spelling(const OpDef& op) {
  return find_spelling<PythonCall>(kPythonOps, op);
}

}  // namespace tn::source
