"""Logs the `raise` statements of the package that tests execute, for tools/check_errors.py.

Python imports this module when it starts, if its folder is in PYTHONPATH. Where TENON_ERROR_SITES
names a file, modules of the package are compiled with a call before every statement that raises a
new error. The call appends the line to the file, as `_core._fail` does.
"""
import builtins
import importlib.abc
import importlib.machinery
import os
import sys

LOG = os.environ.get("TENON_ERROR_SITES", "")


class Loader(importlib.machinery.SourceFileLoader):
    """Keeps no bytecode: other processes must not see the calls."""

    def get_code(self, name):
        path = self.get_filename(name)
        data = self.get_data(path)
        if b"raise " not in data:
            return super().get_code(name)
        import ast

        class Calls(ast.NodeTransformer):
            def visit_Raise(self, node):
                if not isinstance(node.exc, ast.Call):  # it passes an error on
                    return node
                call = ast.parse(f"__tenon_raises__({path!r}, {node.lineno})").body[0]
                for part in ast.walk(call):
                    ast.copy_location(part, node)
                return [call, node]

        return compile(Calls().visit(ast.parse(data, path)), path, "exec", dont_inherit=True)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "tenon" and not name.startswith("tenon."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


def log_site(path, line):
    with open(LOG, "a", encoding="utf-8") as file:
        file.write(f"{path}:{line}\n")


if LOG:
    builtins.__tenon_raises__ = log_site
    sys.meta_path.insert(0, Finder())
