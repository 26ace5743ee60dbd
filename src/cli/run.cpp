// `tenon run`: calls a saved executable with arrays from files.
#include "base/error.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/load_flags.h"
#include "cli/output.h"
#include "files/npy.h"
#include "ir/dtype.h"

namespace tn {
namespace {

struct RunOptions {
  std::string file;
  ArgumentOptions arguments;
  std::vector<std::string> outputs;
  LoadFlags load;
  bool json = false, quiet = false;
};

std::string output_name(const Executable& f, size_t i) {
  const std::string& name = f.outputs()[i].name;
  return name.empty() ? format("{}", i) : name;
}

/// The result that is named, or numbered.
size_t output_at(const Executable& f, std::string_view name) {
  size_t i = 0;
  while (i < f.outputs().size() && f.outputs()[i].name != name && format("{}", i) != name) ++i;
  return i;
}

/// The file of each result, or "": "out.npy" is for the next one, "name=out.npy" for that one.
std::vector<std::string> output_files(const Executable& f, const RunOptions& options) {
  std::vector<std::string> files(f.outputs().size());
  size_t next = 0;
  for (const std::string& text : options.outputs) {
    size_t equals = text.find('=');
    size_t i = equals == text.npos ? next++ : output_at(f, text.substr(0, equals));
    if (i >= files.size()) {
      std::vector<std::string> names;
      for (size_t k = 0; k < files.size(); ++k) names.push_back(output_name(f, k));
      fail("--output {}: there is no such result: {} gives {}", text, f.name(), join(names, ", "));
    }
    files[i] = equals == text.npos ? text : text.substr(equals + 1);
  }
  return files;
}

Json described(const Tensor& x) {
  Json shape = Json::array();
  for (int a = 0; a < x.rank(); ++a) shape.push_back(x.dim(a));
  return Json{{"dtype", info(x.dtype()).text}, {"shape", shape}};
}

void run(const RunOptions& options) {
  Executable f = Executable::load(options.file, options.load.settings());
  std::vector<std::string> files = output_files(f, options);
  Arguments args = make_arguments(f.inputs(), options.arguments);
  Tensors results = f(args.tensors, args.sizes);
  eval(results);
  Json all = Json::array();
  std::string text;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!files[i].empty()) write_text(files[i], npy_bytes(results[i]));
    std::string name = output_name(f, i);
    Json one{{"name", name}, {"file", files[i]}};
    one.update(described(results[i]));
    all.push_back(one);
    text += format("{} = {}\n", name, files[i].empty() ? results[i].to_string() : "in " + files[i]);
  }
  if (options.json)
    write_json(all);
  else if (!options.quiet)
    write_out(text);
}

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Call an executable with arrays from .npy files");
  command->add_option("file", options->file, "The executable, .tnx")->required();
  options->arguments.add_to(*command);
  command
      ->add_option("--output", options->outputs,
                   "A .npy file for the next result, or name=FILE; others are printed")
      ->allow_extra_args(false)
      ->type_name("FILE");
  options->load.add_to(*command);
  command->add_flag("--json", options->json, "What came out, as JSON");
  command->add_flag("--quiet", options->quiet, "Print nothing");
  command->callback([options] { run(*options); });
}

}  // namespace tn
