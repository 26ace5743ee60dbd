#pragma once
// A graph as a function of Python: statements of one value each, small ones inside of others.
#include <map>
#include <memory>

#include "backend/source/python_call.h"
#include "backend/source/python_source.h"
#include "backend/source/python_text.h"
#include "loop/builder.h"

namespace tn::source {

/// What functions written inside of each other share.
struct PythonScope {
  std::string_view target;
  Names names = {};
  std::map<std::string, std::string> sizes = {};  // symbols that are used, and their variables
  bool device = false;                            // it makes tensors that have a place
};

class FunctionWriter final : public PythonCall {
 public:
  FunctionWriter(const Function& function, PythonScope& scope, const Constants& constants,
                 int indent);

  /// The lines of the definition.
  std::vector<std::string> write();
  const Graph& graph() const { return graph_; }  // as it is written

  std::string fill(std::string_view text) override;
  std::string size(Dim size) override;
  std::string size(Offset offset) override;

 private:
  struct Line {
    std::string code, comment;
  };

  void count_uses();
  void write_op(const GraphOp& op);
  std::string spell(const GraphOp& op);
  Expression elementwise(const GraphOp& op);
  Expression complex_by_parts(const GraphOp& op);
  Expression recorded(const loop::Kernel& kernel, loop::ValueId result,
                      std::span<const Expression> operands);
  std::string reduction(const GraphOp& op);
  std::string movement(const GraphOp& op);
  std::string filled_with(const Expression& number);
  std::string sliced(const View& view, const Type& from);

  /// The name of a function written for the occasion, which returns the outputs of `graph` as a
  /// tuple.
  std::string function(const Graph& graph, std::string_view name);
  /// Operand k, by its name where the text has it more than once.
  Expression operand(int k, bool named = false);
  Expression attribute(std::string_view name);
  std::string array_text(std::span<const Scalar> elements, const Type& type);
  std::string shape_text(const Shape& shape);
  std::string type_comment(const Type& type);
  std::string_view section_of(Loc loc);

  /// The value gets a variable, if it has none.
  void name_value(Val v);
  std::string fresh_name(const GraphOp& op, int k);
  void statement(std::string code, std::string comment = {});
  void hold(Val v, Expression e) { held_[static_cast<size_t>(v)] = std::move(e); }
  std::vector<std::string> heading();
  static void write_line(const Line& line, const std::string& margin,
                         std::vector<std::string>& text);
  std::string size_from_arguments(const std::string& symbol);

  const Function& function_;
  PythonScope& scope_;
  const Constants& constants_;
  Graph graph_;
  int indent_;
  bool is_inner_;
  const GraphOp* op_ = nullptr;
  std::vector<Expression> held_;  // of every value, once it is known
  std::vector<int> uses_, made_by_;
  std::vector<int> ops_;  // in the text of a value that has no name
  std::vector<std::string> wanted_names_;
  std::vector<Line> lines_;
  std::map<uint64_t, std::string> sections_;
  std::string section_;
};

/// Composites that the target has no form of replaced by their bodies, and broadcasts that
/// elementwise ops do themselves left out.
Graph for_python(const Graph& graph, std::string_view target);

}  // namespace tn::source
