#include "compiled/c_files.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <mutex>

#include "backend/source/c_plan.h"
#include "base/error.h"
#include "eval/eval.h"
#include "functions/executable.h"
#include "ir/interned.h"
#include "ir/node.h"
#include "runtime/buffer.h"
#include "storage/disk_cache.h"

namespace tn::python {
namespace {

/// The text of a file with these functions, and the bytes beside it.
nb::tuple c_file(const std::vector<std::pair<std::string, Executable>>& functions) {
  std::vector<NamedExecutable> named;
  for (const auto& [name, f] : functions) named.push_back({name, f});
  source::CSource c = c_source(named);
  return nb::make_tuple(c.source, nb::bytes(c.constants.data(), c.constants.size()));
}

/// The text of a Python file, and the safetensors file `file` beside it.
nb::tuple python_file(const std::vector<std::pair<std::string, Executable>>& functions,
                      const std::string& target, const std::string& file) {
  std::vector<NamedExecutable> named;
  for (const auto& [name, f] : functions) named.push_back({name, f});
  PythonFiles made = python_files(named, target, file);
  return nb::make_tuple(made.text, nb::bytes(made.constants.data(), made.constants.size()));
}

std::vector<TypeRef> types_of(const std::vector<std::string>& texts) {
  LastingScope lasting;
  std::vector<TypeRef> types;
  for (std::string_view text : texts) {
    std::string_view rest = text;
    std::optional<Type> type = parse_type(rest);
    invariant(type && rest.empty(), "c file: not a type: \"{}\"", text);
    types.push_back(intern(*type));
  }
  return types;
}

/// Memory of calls that ended, for those to come: fresh pages cost more than small functions.
class Arenas {
 public:
  BufferRef take(size_t bytes) {
    std::lock_guard lock(mutex_);
    if (idle_.empty()) return allocate(bytes);
    BufferRef taken = std::move(idle_.back());
    idle_.pop_back();
    return taken;
  }
  void give(BufferRef arena) {
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(arena));
  }

 private:
  std::mutex mutex_;
  std::vector<BufferRef> idle_;
};

/// A function of a loaded library, `int NAME_run(inputs, outputs, arena)`. Nothing is copied.
struct CFunction {
  using Run = int(const void* const* inputs, void* const* outputs, void* arena);
  std::string name;
  Run* run;
  std::vector<TypeRef> in, out;
  size_t arena;
  nb::bytes constants;  // the last input, unless empty
  std::shared_ptr<Arenas> arenas = std::make_shared<Arenas>();

  Tensors call(const Tensors& given) const {
    UserCall place;
    if (given.size() != in.size())
      fail(Fault::type, "{}: {} inputs, not {}", name, in.size(), given.size());
    for (size_t i = 0; i < in.size(); ++i)
      if (type_of(given[i]) != in[i])
        fail(Fault::type, "{}: input {} is {}, not {}", name, i, *in[i], *type_of(given[i]));
    const void* beside = constants.data();
    HostUnlocked unlocked;
    eval(given);
    std::vector<const void*> inputs;
    for (const Tensor& x : given) inputs.push_back(x.data());
    inputs.push_back(beside);
    std::vector<void*> outputs;
    Tensors results;
    for (TypeRef type : out) {
      BufferRef made = allocate(static_cast<size_t>(type->bytes()));
      outputs.push_back(made.data());
      results.push_back(make_data(std::move(made), 0, type));
    }
    outputs.push_back(nullptr);
    BufferRef room = arenas->take(std::max<size_t>(arena, 64));
    int code = run(inputs.data(), outputs.data(), room.data());
    arenas->give(std::move(room));
    invariant(code == 0, "{}: the compiled function returned {}", name, code);
    return results;
  }
};

void make(CFunction* to, std::string name, uintptr_t address, const std::vector<std::string>& in,
          const std::vector<std::string>& out, size_t arena, nb::bytes constants) {
  new (to) CFunction{std::move(name), reinterpret_cast<CFunction::Run*>(address),
                     types_of(in),    types_of(out),
                     arena,           std::move(constants)};
}

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

/// What the disk cache has for `key`, verified; None where that is nothing.
nb::object read_cache(const nb::bytes& key) {
  std::optional<std::string> value = DiskCache::shared().get(view(key));
  return value ? nb::object(nb::bytes(value->data(), value->size())) : nb::none();
}

/// The folder of the disk cache; None where there is none that can be trusted.
nb::object cache_directory() {
  const DiskCache& cache = DiskCache::shared();
  return cache.fault().empty() ? nb::object(nb::str(cache.directory().c_str())) : nb::none();
}

}  // namespace

void bind_c_files(nb::module_& m) {
  m.def("_c_source", c_file, users_call);
  m.def("_python_source", python_file, users_call);
  m.def("_read_cache", read_cache, nb::arg("key"));
  m.def(
      "_write_cache",
      [](const nb::bytes& key, const nb::bytes& value) {
        DiskCache::shared().put(view(key), view(value));
      },
      nb::arg("key"), nb::arg("value"));
  m.def("_cache_directory", cache_directory);
  nb::class_<CFunction>(m, "_CFunction")
      .def("__init__", make, nb::arg("name"), nb::arg("address"), nb::arg("inputs"),
           nb::arg("outputs"), nb::arg("arena"), nb::arg("constants"))
      .def("__call__", &CFunction::call, nb::arg("inputs"));
}

}  // namespace tn::python
