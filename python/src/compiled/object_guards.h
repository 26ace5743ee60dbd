#pragma once
// What a traced function has read of plain objects, which are no trees: the `self` of a method,
// objects with attributes among the arguments. A call that finds other values is traced again.
// python/tenon/object_reads.py notes the reads.
#include "compiled/call_arguments.h"

namespace tn::python {

/// An attribute that has varied: a tensor, or a number. The next trace takes it as an argument.
struct OpenRead {
  std::string path;   // "self.config.rate"
  Tensor value;       // in the call that is traced
  nb::object object;  // the same, as the attribute is
};

class ObjectGuards {
 public:
  /// While it lives, reads of the objects among the constants of a call, and of those that the
  /// function is bound to, are noted; those that are open give `params`. Of the `state`, which is
  /// a tree of containers or null, nothing is: calls compare what it holds.
  class Record {
   public:
    Record(const CallArguments& args, const CallKey::Names& names, nb::handle state,
           std::span<const OpenRead> open, std::span<const Tensor> params);
    ~Record();
    Record(const Record&) = delete;
    /// After the function has run. Warns of what it changed itself; `f`: "step (train.py:31)".
    ObjectGuards guards(const std::string& f);

   private:
    void stop();
    nb::object reads_ = {};
    std::span<const OpenRead> open_;
  };

  /// Then `opened` has the values of the attributes that are open.
  bool hold(const CallKey& call, Tensors& opened) const {
    if (!owners_.empty()) return all_hold(call, opened);
    if (!opened.empty() || !opened_.empty()) opened = opened_;
    return true;
  }
  /// Those that are open, and those that are other numbers or tensors in this call, apart from
  /// `constant` ones.
  std::vector<OpenRead> varied(const CallKey& call, std::span<const std::string> constant) const;
  /// The first that does not hold, for readers.
  std::optional<Difference> broken(const CallKey& call) const;
  /// For the records under way on this thread: a trace that uses this one depends on its reads.
  void read_again(const CallKey& call) const;
  /// Those that the function reads attributes of, and the classes of trees that it gets.
  nb::list read_objects(const CallKey& call) const;
  int traverse(visitproc visit, void* arg) const;

 private:
  /// A value as it was: compared with ==, by identity, or part by part.
  struct Seen {
    enum class Kind : uint8_t {
      absent,
      any,   // a tensor of the state
      open,  // has varied: a number of the class, or a tensor of the type that `value` is
      equal,
      same,
      tensor,
      method,
      sequence,
      dict,
      set,
      array,
      object
    };
    Kind kind;
    bool weak = false;             // same, method: `value` is a weak reference
    nb::object value = {};         // set: the number of the part that each element is
    nb::object cls = {};           // of containers and objects
    size_t owner = 0;              // object: which; open: which of those
    std::vector<Seen> parts = {};  // dict: its keys in a tuple, then its values

    bool has_class_of(PyObject* now) const {
      return cls.ptr() == reinterpret_cast<PyObject*>(Py_TYPE(now));
    }
  };
  /// An object that was read: in a constant of the call (behind those, in the data of its trees),
  /// a fixed one, or one inside another.
  struct Owner {
    int64_t before = -1, constant = -1;
    nb::object object = {};  // fixed
    bool weak = false;
    nb::object name = {}, steps = {};
    nb::object cls = {};  // that it has; null: any
    std::string path = {};
  };
  struct Guard {
    size_t owner;
    nb::object name;
    Seen seen;
  };
  using Objects = std::vector<nb::object>;

  static Seen seen_of(nb::handle record, std::span<const OpenRead> open);
  static bool is(const Seen& seen, PyObject* now, const Objects& objects);
  static int visit_seen(const Seen& seen, visitproc visit, void* arg);
  bool all_hold(const CallKey& call, Tensors& opened) const;
  bool find_objects(const CallKey& call, Objects& objects) const;
  std::string path_of(const Guard& guard) const;

  std::vector<Owner> owners_;
  std::vector<Guard> guards_;
  Tensors opened_;  // values when it was traced, for those that were not read
};

}  // namespace tn::python
