// `tenon compile`: a function of a Python file, or the text of a graph, as an executable.
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/compile_progress.h"
#include "cli/input_text.h"
#include "cli/output.h"
#include "ir/graph.h"
#include "runtime/memory_use.h"

namespace tn {
namespace {

struct CompileCommand {
  CompileRequest request;
  std::vector<std::string> inputs;
  bool strip = false, json = false, quiet = false;
};

/// What the other process does first: it may have a Python without this library.
constexpr const char* kPythonCode = R"(import sys
try:
    from tenon.command_line import main
except ImportError as error:
    sys.exit(f"tenon: functions are compiled by Python, and {sys.executable} cannot import "
             f"tenon: {error}\n  hint: pip install tenonc, or name another with TENON_PYTHON")
main())";

/// Becomes a Python that runs the same command. Only failure returns.
[[noreturn]] void become_python(const std::vector<std::string>& args) {
  std::string python = python_of({});
  std::vector<std::string> words = {python, "-c", kPythonCode};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(python.c_str(), pointers.data());
  fail(Hint{"install Python and tenonc, or name a Python with TENON_PYTHON"},
       "functions are compiled by Python, and {} cannot be run: {}", python, std::strerror(errno));
}

/// What a graph takes, where the command line does not say it: fixed sizes.
InputInfo info_of(const std::string& name, const Type& type) {
  InputInfo info;
  info.name = name, info.dtype = type.dtype;
  for (Dim d : type.shape) {
    if (!d.is_const())
      fail(Hint{format("--input {}={}[min:opt:max,...]", name, type.dtype)},
           "the input {} has sizes that vary: {}", name, type);
    info.shape.emplace_back(d.value());
  }
  return info;
}

/// The text of a graph is compiled here. Sizes that vary are those of the descriptions: the ops are
/// recorded again, on them.
void compile_graph(const CompileRequest& r) {
  Graph graph = parse_graph(read_text(r.source));
  std::vector<InputInfo> inputs;
  for (int i = 0; i < graph.inputs(); ++i) {
    const std::string& name = graph.input_names[static_cast<size_t>(i)];
    auto said = std::ranges::find(r.inputs, name, &InputInfo::name);
    inputs.push_back(said != r.inputs.end() ? *said
                                            : info_of(name, *graph.types[static_cast<size_t>(i)]));
  }
  for (const InputInfo& said : r.inputs)
    if (std::ranges::find(graph.input_names, said.name) == graph.input_names.end())
      fail("--input {}: the graph has no such input: there are {}", said.name,
           join(graph.input_names, ", "));
  AheadSettings settings;
  settings.optimization_level = r.level, settings.name = graph.name;
  Executable f = flat::compile_ahead([&](const Tensors& args) { return replay(graph, args); },
                                     inputs, settings);
  f.save(r.output, {.targets = r.targets, .debug = r.debug});
}

bool is_graph(const std::string& source) { return source.ends_with(".tn") || source == "-"; }

void compile_and_tell(const CompileCommand& command, const Host& host) {
  const CompileRequest& r = command.request;
  auto began = std::chrono::steady_clock::now();
  {
    ProgressBar bar(!command.quiet);
    if (is_graph(r.source))
      compile_graph(r);
    else
      host.compile_python(r);
  }
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  uintmax_t bytes = std::filesystem::file_size(r.output);
  if (command.json)
    write_json({{"file", r.output}, {"bytes", bytes}, {"seconds", took.count()}});
  else if (!command.quiet)
    write_out(format("{}: {}, compiled in {}\n", r.output, bytes_text(bytes),
                     seconds_text(took.count())));
}

void add_options(CLI::App& app, CompileCommand& command) {
  CompileRequest& r = command.request;
  app.add_option("source", r.source,
                 "module.py:function, package.module:model, model.py:make_model(), or a graph's "
                 "text, graph.tn")
      ->required();
  app.add_option("--input", command.inputs,
                 "An input: x=f32[1:8:16,2] has a size between 1 and 16, fastest at 8; "
                 "x=f32[batch=1:8:16,2] names it; n=1:8:16 is a size by itself")
      ->allow_extra_args(false)
      ->type_name("NAME=TYPE");
  app.add_option("--value", r.values, "A constant argument, as Python writes it: axis=1")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  app.add_option("-o,--output", r.output,
                 "The file (the name of the function or the graph, with .tnx)");
  app.add_option("--target", r.targets,
                 "CPU levels to hold code for: native,x86-64-v2,x86-64-v3,x86-64-v4 (native)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--level", r.level, "The optimization level, 0 to 5 (3)")->check(CLI::Range(0, 5));
  app.add_flag("--strip", command.strip, "Leave out the places in the source");
  app.add_flag("--json", command.json, "What was made, as JSON");
  app.add_flag("--quiet", command.quiet, "Print nothing, and show no progress");
}

}  // namespace

/// "gelu.tnx" for model.py:gelu, "graph.tnx" for graph.tn.
static std::string default_output(const std::string& source) {
  size_t colon = source.rfind(':');
  std::string name = colon == source.npos ? std::filesystem::path(source).stem().string()
                                          : source.substr(colon + 1);
  return name.substr(0, name.find('(')) + ".tnx";
}

void add_compile(CLI::App& app, const Host& host, const std::vector<std::string>& args) {
  auto command = std::make_shared<CompileCommand>();
  CLI::App* compile =
      app.add_subcommand("compile", "Compile a Python function, or a graph, to an executable file");
  add_options(*compile, *command);
  compile->callback([command, &host, args] {
    CompileRequest& r = command->request;
    InputParser parser;
    for (const std::string& text : command->inputs) {
      InputInfo input = parser.parse(text);
      if (std::ranges::find(r.inputs, input.name, &InputInfo::name) != r.inputs.end())
        fail("--input {}: it is given twice", input.name);
      r.inputs.push_back(std::move(input));
    }
    r.debug = !command->strip;
    if (r.output.empty()) r.output = default_output(r.source);
    if (!is_graph(r.source) && !host.compile_python) become_python(args);
    compile_and_tell(*command, host);
  });
}

}  // namespace tn
