// Where the user's Python code made a call: the code object and instruction, interned as a small
// number.
#include <array>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/at_fork.h"
#include "compiled/module_scope.h"
#include "core.h"
#include "ir/written.h"
#include "python_interpreter.h"

namespace tn::python {
namespace {

/// What is read of the interpreter's frames.
struct FramePoint {
  PyCodeObject* code;
  int offset;  // of the instruction, in bytes; below 0: minus the line
};

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
#define TN_FRAME_LAYOUT 1
// The interpreter's frame, as far as it is read here. Its layout belongs to the minor version.
struct Frame {
#if PY_VERSION_HEX < 0x030C0000
  void *function, *globals, *builtins, *locals;
  PyCodeObject* code;
  void* object;
  Frame* previous;
  const char* instruction;
  int stack_top;
  bool is_entry;
  char owner;
#else
  PyCodeObject* code;
  Frame* previous;
  void *function, *globals, *builtins, *locals, *object;
  const char* instruction;
  int stack_top;
  uint16_t return_offset;
  char owner;
#endif
};

Frame* top_frame() {
  PyThreadState* state = PyThreadState_Get();
#if PY_VERSION_HEX < 0x030D0000
  return reinterpret_cast<Frame*>(state->cframe->current_frame);
#else
  return reinterpret_cast<Frame*>(state->current_frame);
#endif
}

constexpr char kOwnedByC = 3;  // a frame between interpreters, without code

bool read_frame(const Frame* frame, FramePoint& point) {
  if (frame->owner == kOwnedByC) return false;
  point.code = frame->code;
  point.offset = static_cast<int>(frame->instruction - frame->code->co_code_adaptive);
  return true;
}
#endif

struct Entry {
  PyCodeObject* code = nullptr;
  int offset = 0;
  uint32_t id = 0;
};

struct PointHash {
  size_t operator()(const std::pair<PyCodeObject*, int>& p) const {
    return std::hash<void*>()(p.first) * 31 + static_cast<size_t>(p.second);
  }
};

/// Ids and the code objects they stand for. Python's lock guards it.
struct PlaceTable {
  std::array<Entry, 1024> recent;
  std::unordered_map<std::pair<PyCodeObject*, int>, uint32_t, PointHash> ids;
  std::vector<FramePoint> points{{nullptr, 0}};     // owns the code objects; id 0 is nowhere
  std::unordered_map<PyCodeObject*, bool> is_ours;  // the verdict on a code object
  std::string folder;
};

PlaceTable& table() {
  static PlaceTable& instance = *new PlaceTable;  // nodes may outlive every static object
  return instance;
}

constexpr size_t kMostPlaces = 1 << 20;  // code made in a loop must not fill the memory

/// Whether the code belongs to the package, so that the caller's frame is meant.
bool is_own_code(PlaceTable& t, PyCodeObject* code) {
  auto found = t.is_ours.find(code);
  if (found != t.is_ours.end()) return found->second;
  Py_ssize_t size = 0;
  const char* file = PyUnicode_AsUTF8AndSize(code->co_filename, &size);
  if (!file) PyErr_Clear();
  bool ours = file && !t.folder.empty() &&
              std::string_view(file, static_cast<size_t>(size)).starts_with(t.folder);
  if (t.is_ours.size() < kMostPlaces) {
    Py_INCREF(code);
    t.is_ours.emplace(code, ours);
  }
  return ours;
}

Entry& recent_entry(PlaceTable& t, const FramePoint& p) {
  size_t at = reinterpret_cast<uintptr_t>(p.code) / 64 * 7 + static_cast<size_t>(p.offset) / 2;
  return t.recent[at % t.recent.size()];
}

uint32_t intern_point(PlaceTable& t, const FramePoint& p) {
  auto found = t.ids.find({p.code, p.offset});
  if (found == t.ids.end()) {
    // Past the cap a place is nowhere: its code is not kept, and its address may be used again.
    if (t.points.size() >= kMostPlaces) return 0;
    found =
        t.ids.emplace(std::pair(p.code, p.offset), static_cast<uint32_t>(t.points.size())).first;
    Py_INCREF(p.code);
    t.points.push_back(p);
  }
  recent_entry(t, p) = {p.code, p.offset, found->second};
  return found->second;
}

/// What users wrote around calls, by number; 0 is nothing. Threads without Python's lock ask too.
class Scopes {
 public:
  mutable std::mutex mutex;

  uint32_t intern(Written written) {
    std::lock_guard lock(mutex);
    if (written_.size() >= kMostScopes) return 0;
    auto key = std::pair(written.path, written.composite);
    auto [known, is_new] = ids_.try_emplace(key, static_cast<uint32_t>(written_.size()));
    if (is_new) written_.push_back(std::move(written));
    return known->second;
  }
  Written at(uint32_t scope) const {
    std::lock_guard lock(mutex);
    return written_[scope];
  }

 private:
  static constexpr size_t kMostScopes = 1 << 16;  // names made in a loop must not fill the memory
  std::map<std::pair<std::string, std::string>, uint32_t> ids_;
  std::vector<Written> written_{{}};
};

Scopes& scopes() {
  static auto& only = guarded_for_process<Scopes>(kInnermost);
  return only;
}

thread_local uint32_t module_scope = 0;  // of the module whose call is being traced

#ifndef TN_FRAME_LAYOUT
/// Through the public interface, for interpreters whose frames are not known here.
Loc public_place(PlaceTable& t) {
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  Loc loc;
  while (frame && !loc) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    if (!is_own_code(t, code))
      loc =
          in_scope(Loc::host(intern_point(t, {code, -PyFrame_GetLineNumber(frame)})), module_scope);
    Py_DECREF(code);
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  return loc;
}
#endif

std::string text_or_empty(PyObject* unicode) {
  const char* text = unicode ? PyUnicode_AsUTF8(unicode) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "";
}

Place resolve_place(uint32_t id) {
  PythonLock lock;
  if (!lock) return {};
  PlaceTable& t = table();
  if (id == 0 || id >= t.points.size()) return {};
  FramePoint p = t.points[id];
  nb::error_scope keep;  // an error may be in flight
  Place place;
  place.file = text_or_empty(p.code->co_filename);
  place.function = text_or_empty(p.code->co_name);
  place.line = p.offset < 0 ? -p.offset : PyCode_Addr2Line(p.code, p.offset);
  return place;
}

}  // namespace

Loc python_place() noexcept {
  PlaceTable& t = table();
#ifdef TN_FRAME_LAYOUT
  for (const Frame* frame = top_frame(); frame; frame = frame->previous) {
    FramePoint point;
    if (!read_frame(frame, point)) continue;
    const Entry& known = recent_entry(t, point);
    if (known.code == point.code && known.offset == point.offset)
      return in_scope(Loc::host(known.id), module_scope);
    if (!is_own_code(t, point.code))
      return in_scope(Loc::host(intern_point(t, point)), module_scope);
  }
  return {};
#else
  return public_place(t);
#endif
}

std::string called_function() {
  // The outermost frame of the package above the user's.
  nb::object frame =
      nb::steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  nb::object outermost;
  while (frame.is_valid()) {
    auto* at = reinterpret_cast<PyFrameObject*>(frame.ptr());
    nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(at)));
    if (!is_own_code(table(), reinterpret_cast<PyCodeObject*>(code.ptr()))) break;
    outermost = frame;
    frame = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(at)));
  }
  if (!outermost.is_valid()) return "";
  nb::object name = nb::module_::import_("tenon._advice").attr("public_name")(outermost);
  return text_or_empty(name.ptr());
}

uint32_t enter_module(const std::string& path) {
  return std::exchange(module_scope, path.empty() ? 0 : scopes().intern({path, ""}));
}

void leave_module(uint32_t outer) { module_scope = outer; }

void install_places() {
  resolve_host_place = resolve_place;
  static constexpr HostScopes kScopes{
      [](uint32_t scope) { return scopes().at(scope); },
      [](uint32_t scope, std::string_view composite) {
        Written around = scopes().at(scope);
        // Of nested composites the outermost is the one that the user called.
        if (!around.composite.empty()) return scope;
        return scopes().intern({std::move(around.path), std::string(composite)});
      }};
  host_scopes = &kScopes;
}

void set_package_folder(const std::string& folder) {
  table().folder = folder;
  std::unordered_map<PyCodeObject*, bool> old;
  old.swap(table().is_ours);
  for (auto [code, ours] : old) Py_DECREF(code);
}

}  // namespace tn::python
