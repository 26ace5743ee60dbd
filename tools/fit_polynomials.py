"""Derives the polynomial coefficients of src/loop/math_coefficients.h; prints the file.

Each entry is a weighted minimax fit (Remez exchange on a fine grid) of the smallest degree that
meets its target. Coefficients for f32 arithmetic are rounded lowest order first, refitting the
rest after each rounding.
"""

import struct
import sys

from mpmath import mp, mpf

mp.dps = 70
GRID = 24  # grid points per unknown


def solve_alternation(points, values, weights, first_power, n):
    """Coefficients and level of the polynomial that alternates on n + 1 points."""
    matrix = mp.matrix(n + 1, n + 1)
    rhs = mp.matrix(n + 1, 1)
    for i, x in enumerate(points):
        power = x**first_power
        for j in range(n):
            matrix[i, j] = power
            power *= x
        matrix[i, n] = (-1) ** i / weights[i]
        rhs[i] = values[i]
    solution = mp.lu_solve(matrix, rhs)
    return list(solution[:n]), abs(solution[n])


def horner(coefficients, x):
    total = mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def extremes(errors, count):
    """Indices of `count` alternating extremes of the error curve, the largest kept."""
    groups, last = [], 0
    for i, e in enumerate(errors):
        sign = 1 if e >= 0 else -1
        if sign != last:
            groups.append(i)
            last = sign
        elif abs(e) > abs(errors[groups[-1]]):
            groups[-1] = i
    while len(groups) > count:
        if abs(errors[groups[0]]) < abs(errors[groups[-1]]):
            groups.pop(0)
        else:
            groups.pop()
    return groups


def remez(grid, values, weights, first_power, n):
    """Minimax fit of sum c_j x^(first_power + j), j < n: coefficients and the weighted error."""
    last = len(grid) - 1
    index = [round(last * (1 - mp.cos(mp.pi * i / n)) / 2) for i in range(n + 1)]
    for _ in range(12):
        pick = lambda a: [a[i] for i in index]
        coefficients, level = solve_alternation(
            pick(grid), pick(values), pick(weights), first_power, n
        )
        errors = [
            (v - x**first_power * horner(coefficients, x)) * w
            for x, v, w in zip(grid, values, weights)
        ]
        worst = max(abs(e) for e in errors)
        found = extremes(errors, n + 1)
        if len(found) < n + 1 or worst < level * mpf("1.02"):
            break
        index = found
    return coefficients, worst


def round_f32(x):
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def least_squares(grid, values, weights, first_power, n):
    """The same by weighted least squares, which may also straddle 0 with first_power > 0."""
    rows = [[w * x ** (first_power + j) for j in range(n)] for x, w in zip(grid, weights)]
    solution = mp.lu_solve(mp.matrix(rows), mp.matrix([v * w for v, w in zip(values, weights)]))
    return list(solution), None


def fit(name, f, weight, low, high, bits, kind="double", refit=remez):
    """Fits f on [low, high] so that weight * error < 2^-bits and prints the array."""
    low, high = mpf(low), mpf(high)
    target = mpf(2) ** -bits
    for n in range(2, 40):
        count = GRID * (n + 1)
        grid = [
            (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * count))
            for i in range(count)
        ]
        values = [f(x) for x in grid]
        weights = [weight(x) for x in grid]
        coefficients, worst = remez(grid, values, weights, 0, n)
        if worst < target:
            break
    if kind == "float":
        fixed = []
        rest = values
        while len(fixed) < n:
            fixed.append(round_f32(coefficients[0]))
            rest = [r - fixed[-1] * x ** (len(fixed) - 1) for r, x in zip(rest, grid)]
            if len(fixed) < n:
                coefficients, _ = refit(grid, rest, weights, len(fixed), n - len(fixed))
        coefficients = fixed
        worst = max(abs(r * w) for r, w in zip(rest, weights))
    suffix = "f" if kind == "float" else ""
    text = ", ".join(float(c).hex() + suffix for c in coefficients)
    print(f"// 2^{float(mp.log(worst, 2)):.1f}")
    print(f"inline constexpr {kind} {name}[] = {{{text}}};", flush=True)
    print(name, n, float(mp.log(worst, 2)), file=sys.stderr, flush=True)


half_ln2 = mp.log(2) / 2 * mpf("1.0001")
s_max = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) * mpf("1.001")
quarter_pi = mp.pi / 4 * mpf("1.0005")
tan_eighth = (mp.sqrt(2) - 1) * mpf("1.0001")


def odd(f, degree=2):
    """f(x) = x + x^3 P(x^2) as P in z = x^2 (degree 2), or x + x P (degree 0)."""
    def value(z):
        x = mp.sqrt(z)
        return (f(x) / x - 1) / (z if degree else 1)
    return value


def odd_weight(f, degree=2):
    def value(z):
        x = mp.sqrt(z)
        return abs((z if degree else 1) * x / f(x))
    return value


def exp_tail(r):
    return (mp.expm1(r) - r) / r**2


def atanh_tail(z):
    """atanh(s) = s (1 + z/3 + z^2 B(z)), z = s^2."""
    s = mp.sqrt(z)
    return (mp.atanh(s) / s - 1 - z / 3) / z**2


def cos_tail(z):
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def log_tail(x):
    """log(1 + f) = f - f^2/2 + f^3 P(f)."""
    return (mp.log1p(x) - x + x * x / 2) / x**3


ERFCX_POLE = mpf(3)


def erfcx_scaled(t):
    """(1 + 2x) exp(x^2) erfc(x) in t = (x - pole) / (x + pole)."""
    x = ERFCX_POLE * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def erfcx_variable(x):
    return (mpf(x) - ERFCX_POLE) / (mpf(x) + ERFCX_POLE)


# Near 1/6, and where the function rounds to f32 almost exactly.
ERFCX_CENTRE = mpf(float.fromhex("0x1.5b9d56p-3"))


def erfcx_by_reciprocal(s):
    """(x + 3) exp(x^2) erfc(x) in s = 1 / (x + 3) - centre."""
    x = 1 / (s + ERFCX_CENTRE) - 3
    return (x + 3) * mp.exp(x * x) * mp.erfc(x)


def erfinv_over_x(w):
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def normal_tail(y):
    """The chance of more than y of the normal distribution."""
    return mp.erfc(y / mp.sqrt(2)) / 2


NORMAL_POLE, NORMAL_CENTRE = mpf(3), mpf(2)


def normal_scaled(t):
    """2^-64 exp(y^2 / 2) times the tail in t = (y - centre) / (y + pole)."""
    y = (NORMAL_POLE * t + NORMAL_CENTRE) / (1 - t)
    return normal_tail(y) * mp.exp(y * y / 2) / mpf(2) ** 64


def log_erfc_plus(t):
    return mp.log(mp.erfc(t)) + t


def fit_f32():
    fit("kExpF32", exp_tail, lambda r: r * r / mp.exp(r), -half_ln2, half_ln2, 27.5, "float")
    fit("kLogF32", log_tail, lambda x: abs(x**3 / mp.log1p(x)),
        mp.sqrt(0.5) - 1, mp.sqrt(2) - 1, 27.5,
        "float")
    fit("kTanhF32", odd(mp.tanh), odd_weight(mp.tanh), 0, mpf("0.65") ** 2, 26.5, "float")
    fit("kErfF32", odd(mp.erf, 0), odd_weight(mp.erf, 0), 0, mpf("0.93") ** 2, 25.5, "float")
    fit("kErfTailF32", log_erfc_plus, lambda t: mp.erfc(t) / mp.erf(t), "0.93", 4, 25.5, "float")
    fit("kErfcxF32", erfcx_by_reciprocal, lambda s: 1 / erfcx_by_reciprocal(s),
        1 / mpf("13.1") - ERFCX_CENTRE, mpf(1) / 3 - ERFCX_CENTRE, 28.5, "float", least_squares)


def fit_normal():
    t = lambda y: (y - NORMAL_CENTRE) / (y + NORMAL_POLE)
    fit("kNormalF32", normal_scaled, lambda t: 1 / normal_scaled(t), t(0), t(mpf("14.5")), 26,
        "float", least_squares)


def fit_narrow():
    """The forms for f16 and bf16: relative errors below 2^-16, 2^-13 where f16 has no results."""
    half = mpf("0.502")
    exp2m1 = lambda f: mp.expm1(f * mp.log(2)) / f
    log1p = lambda f: mp.log1p(f) / f
    log_erfc = lambda y: mp.log(mp.erfc(y), 2) / y
    fit("kExp2Narrow", lambda f: mpf(2) ** f, lambda f: mpf(2) ** -f, -half, half, 17.5, "float")
    fit("kExp2m1Narrow", exp2m1, lambda f: 1 / exp2m1(f), -half, half, 17.5, "float",
        least_squares)
    fit("kReciprocalNarrow", lambda d: 1 / d, lambda d: d, 1, 2, 9, "float")
    fit("kErfNarrow", log_erfc, lambda y: mp.log(2) * y * mp.erfc(y) / mp.erf(y), "1e-9", 4, 17.5,
        "float")
    fit("kNormalNarrow", lambda y: mp.log(normal_tail(y), 2),
        lambda y: mp.log(2) / (1 if y < mpf("4.2") else 8), 0, "13.75", 16.5, "float")
    fit("kLogNarrow", log1p, lambda f: 1 / log1p(f), mp.sqrt(0.5) - 1, mp.sqrt(2) - 1, 16.5,
        "float", least_squares)


def fit_shared(suffix, bits):
    """The f64 set, and the same shapes at lower degree for f32 functions evaluated in double."""
    full = suffix == ""
    fit("kExp" + suffix, exp_tail, lambda r: r * r / mp.exp(r), -half_ln2, half_ln2, bits + full)
    fit("kAtanh" + suffix, atanh_tail, lambda z: z * z, 0, s_max**2, bits + 9 * full)
    fit("kSin" + suffix, odd(mp.sin), odd_weight(mp.sin), 0, quarter_pi**2, bits)
    fit("kCos" + suffix, cos_tail, lambda z: z * z / mp.cos(mp.sqrt(z)), 0, quarter_pi**2, bits)
    fit("kAtan" + suffix, odd(mp.atan), odd_weight(mp.atan), 0, tan_eighth**2, bits)
    fit("kAsin" + suffix, odd(mp.asin), odd_weight(mp.asin), 0, "0.25", bits)
    if full:
        fit("kErf", odd(mp.erf, 0), odd_weight(mp.erf, 0), 0, 1, bits)
        fit("kErfcx", erfcx_scaled, lambda t: 1 / erfcx_scaled(t), erfcx_variable("0.4"),
            erfcx_variable(28), bits)
    fit("kErfinvCentre" + suffix, lambda u: erfinv_over_x(u + mpf(3)),
        lambda u: 1 / erfinv_over_x(u + mpf(3)), -3, 3, bits - 2 * full)
    fit("kErfinvTail" + suffix, lambda u: erfinv_over_x((u + mpf("3.25")) ** 2),
        lambda u: 1 / erfinv_over_x((u + mpf("3.25")) ** 2), mp.sqrt(6) - mpf("3.25"),
        mpf("4.1") - mpf("3.25"), bits - 2 * full)
    if full:
        fit("kErfinvFar", lambda u: erfinv_over_x((u + mpf(5)) ** 2),
            lambda u: 1 / erfinv_over_x((u + mpf(5)) ** 2), -1, mpf("1.1"), bits - 2)
        fit("kSinh", odd(mp.sinh), odd_weight(mp.sinh), 0, 1, bits)
    else:
        fit("kCbrtStart", lambda m: mp.cbrt(m), lambda m: 1 / mp.cbrt(m), 1, 8, 12)


def lgamma_over(zero):
    """lgamma(zero + t) / t for a zero of lgamma."""
    return lambda t: mp.loggamma(zero + t) / t


def stirling_tail(z):
    """The correction of Stirling's formula times y, z = 1 / y^2."""
    y = 1 / mp.sqrt(z)
    main = (y - mpf(0.5)) * mp.log(y) - y + mp.log(2 * mp.pi) / 2
    return (mp.loggamma(y) - main) * y


def fit_lgamma():
    for name, zero, low, high in (("kLgammaOne", 1, "-0.25", "0.5"), ("kLgammaTwo", 2, "-0.5", 1)):
        f = lgamma_over(zero)
        fit(name, f, lambda t: abs(1 / f(t)), low, high, 56)
    fit("kLgammaMiddle", lambda u: mp.loggamma(u + mpf("5.5")),
        lambda u: 1 / mp.loggamma(u + mpf("5.5")), "-2.5", "2.5", 56)
    fit("kStirling", stirling_tail, lambda z: mp.sqrt(z) / mp.loggamma(1 / mp.sqrt(z)), "1e-12",
        mpf(1) / 64, 60)


def two_over_pi_words():
    """Words of 48 bits of 2/pi after a leading zero word; enough for the largest f64 exponent."""
    mp.prec = 2000
    x = 2 / mp.pi
    words = [0]
    for _ in range(28):
        x *= 2**48
        word = int(mp.floor(x))
        words.append(word)
        x -= word
    text = ", ".join(float(w).hex() for w in words)
    print(f"inline constexpr double kTwoOverPi[] = {{{text}}};")


print("// Generated by tools/fit_polynomials.py; do not edit. "
          "Each array is preceded by its fit error.")
print("#pragma once\n// Polynomial coefficients of the math functions, lowest order first.\n")
print("#ifndef TN_LEVEL\n#define TN_LEVEL generic\n#endif\n")
print("namespace tn::TN_LEVEL::math {\n")
fit_f32()
fit_normal()
fit_narrow()
fit_shared("Lean", 38)
fit_shared("", 57)
fit_lgamma()
two_over_pi_words()
print("\n}  // namespace tn::TN_LEVEL::math")
