"""Transforms of functions from a list of tensors to a list of tensors."""

import tenon as tn


def _of_arguments(f):
    return lambda *args: list(f(list(args)))


def vjp(f, primals, cotangents):
    values, back = tn.vjp(_of_arguments(f), list(primals), list(cotangents))
    return values, list(back)


def jvp(f, primals, tangents):
    return tn.jvp(_of_arguments(f), list(primals), list(tangents))


def vmap(f, args, in_axes):
    return tn.vmap(_of_arguments(f), in_axes=tuple(in_axes))(*args)
