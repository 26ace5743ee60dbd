#include "ir/element_texts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ir/dtype.h"
#include "ir/element.h"

namespace tn {

namespace {

constexpr int kDigits = 8;

/// What separates neighbours of a floating type: bits of the significand, the least exponent.
struct Grid {
  int bits, least;
};

Grid grid_of(DType dtype) {
  switch (real_of(dtype)) {
    case DType::f32:
      return {24, -126};
    case DType::f16:
      return {11, -14};
    case DType::bf16:
      return {8, -126};
    case DType::f8e4m3:
      return {4, -6};
    case DType::f8e5m2:
      return {3, -14};
    default:
      return {53, -1022};
  }
}

/// Whether the element nearest to `text` is `v`.
bool names(const std::string& text, double v, Grid grid) {
  double read = std::strtod(text.c_str(), nullptr);
  if (grid.bits == 53) return read == v;
  int exponent = std::max(std::ilogb(v), grid.least);
  double half = std::ldexp(1.0, exponent - grid.bits);
  bool lower = std::fabs(read) < std::fabs(v) && std::ldexp(1.0, exponent) == std::fabs(v);
  return std::fabs(read - v) < (lower ? half / 2 : half);
}

/// The fewest significant digits that tell `v` from its neighbours.
int digits_of(double v, Grid grid) {
  if (v == 0) return 1;
  int low = 1, high = grid.bits == 53 ? 17 : 9;
  while (low < high) {
    int middle = (low + high) / 2;
    bool enough = names(format("{:.{}e}", v, middle - 1), v, grid);
    (enough ? high : low) = enough ? middle : middle + 1;
  }
  return low;
}

/// floor(log10(|v|)) once `v` has been rounded to so many digits.
int exponent_of(double v, int digits) {
  std::string text = format("{:.{}e}", v, digits - 1);
  return std::atoi(text.c_str() + text.find('e') + 1);
}

void trim_zeros(std::string& text) {
  while (text.back() == '0') text.pop_back();
}

/// "0.25", "3.": with at most so many digits after the point, and none that `v` does not need.
std::string positional(double v, Grid grid, int precision) {
  int digits = digits_of(v, grid);
  int needed = std::max(0, digits - 1 - exponent_of(v, digits));
  if (needed == 0) return format("{:.0f}.", v);
  std::string text = format("{:.{}f}", v, std::min(needed, precision));
  if (precision == 0) return text + ".";
  if (needed > precision) trim_zeros(text);
  return text;
}

/// "2.5e-03": with exactly so many digits after the point.
std::string scientific(double v, int precision, size_t exponent_digits) {
  std::string text = format("{:.{}e}", v, precision);
  size_t at = text.find('e');
  if (precision == 0) text.insert(at++, ".");
  size_t digits = text.size() - at - 2;
  if (digits < exponent_digits) text.insert(at + 2, exponent_digits - digits, '0');
  return text;
}

class Reals {
 public:
  Reals(std::span<const double> values, Grid grid, const PrintOptions& options)
      : values_(values), grid_(grid) {
    double most = 0, least = HUGE_VAL;
    for (double v : values) {
      if (!std::isfinite(v) || v == 0) continue;
      most = std::max(most, std::fabs(v));
      least = std::min(least, std::fabs(v));
    }
    bool wide = most >= 1e8 || (!options.suppress && (least < 1e-4 || most / least > 1000));
    exponents_ = options.sci_mode ? *options.sci_mode : most > 0 && wide;
    precision_ = options.precision ? *options.precision : kDigits;
    if (!options.precision && !exponents_ && most > 0)
      precision_ += std::clamp(-1 - exponent_of(most, kDigits), 0, 300);
  }

  /// With `plus`, numbers that are not negative begin with one.
  std::vector<std::string> texts(bool plus) const {
    std::vector<std::string> made = exponents_ ? with_exponents() : with_points();
    size_t width = 0;
    for (std::string& text : made) {
      if (plus && text[0] != '-') text.insert(0, "+");
      width = std::max(width, text.size());
    }
    for (std::string& text : made) text.insert(0, width - text.size(), ' ');
    return made;
  }

 private:
  static std::string special(double v) { return std::isnan(v) ? "nan" : v < 0 ? "-inf" : "inf"; }

  std::vector<std::string> with_points() const {
    std::vector<std::string> made;
    size_t right = 0;
    for (double v : values_) {
      made.push_back(std::isfinite(v) ? positional(v, grid_, precision_) : special(v));
      size_t point = made.back().find('.');
      if (point != std::string::npos) right = std::max(right, made.back().size() - point);
    }
    for (std::string& text : made) {
      size_t point = text.find('.');
      if (point != std::string::npos) text.append(right - (text.size() - point), ' ');
    }
    return made;
  }

  std::vector<std::string> with_exponents() const {
    int precision = 0;
    size_t exponent_digits = 2;
    for (double v : values_) {
      if (!std::isfinite(v)) continue;
      int digits = digits_of(v, grid_);
      std::string text = format("{:.{}e}", v, std::min(digits - 1, precision_));
      size_t at = text.find('e');
      exponent_digits = std::max(exponent_digits, text.size() - at - 2);
      text.resize(at);
      if (text.find('.') != std::string::npos) trim_zeros(text);
      size_t point = text.find('.');
      if (point != std::string::npos)
        precision = std::max(precision, static_cast<int>(text.size() - point) - 1);
    }
    std::vector<std::string> made;
    for (double v : values_)
      made.push_back(std::isfinite(v) ? scientific(v, precision, exponent_digits) : special(v));
    return made;
  }

  std::span<const double> values_;
  Grid grid_;
  bool exponents_ = false;
  int precision_ = 0;
};

std::vector<std::string> complex_texts(DType dtype, std::span<const Scalar> elements,
                                       const PrintOptions& options) {
  std::vector<double> real, imag;
  for (const Scalar& s : elements) {
    real.push_back(s.real);
    imag.push_back(s.imag);
  }
  std::vector<std::string> made = Reals(real, grid_of(dtype), options).texts(false);
  std::vector<std::string> second = Reals(imag, grid_of(dtype), options).texts(true);
  for (size_t i = 0; i < made.size(); ++i) {
    size_t end = second[i].find_last_not_of(' ') + 1;
    made[i] += second[i].insert(end, "j");
  }
  return made;
}

}  // namespace

std::vector<std::string> element_texts(DType dtype, std::span<const Scalar> elements,
                                       const PrintOptions& options) {
  if (is_complex(dtype)) return complex_texts(dtype, elements, options);
  if (is_float(dtype)) {
    std::vector<double> values;
    for (const Scalar& s : elements) values.push_back(s.real);
    return Reals(values, grid_of(dtype), options).texts(false);
  }
  std::vector<std::string> made;
  size_t width = 0;
  for (const Scalar& s : elements) {
    made.push_back(to_text(s, kDigits));
    width = std::max(width, made.back().size());
  }
  for (std::string& text : made) text.insert(0, width - text.size(), ' ');
  return made;
}

}  // namespace tn
