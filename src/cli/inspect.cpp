// `tenon inspect`: what is in an executable's file.
#include "base/error.h"
#include "cli/commands.h"
#include "cli/input_text.h"
#include "cli/load_flags.h"
#include "cli/output.h"
#include "executable/file_sections.h"
#include "functions/executable.h"
#include "ir/dtype.h"
#include "runtime/memory_use.h"
#include "storage/tnx_format.h"

namespace tn {
namespace {

struct InspectOptions {
  std::string file, section;
  LoadFlags load;
  bool json = false;
};

Json json_of(const InputInfo& input) {
  Json sizes = Json::array();
  for (const DimensionInfo& d : input.shape)
    sizes.push_back({{"min", d.min}, {"opt", d.opt}, {"max", d.max}, {"name", d.name}});
  return Json{{"name", input.name},
              {"dtype", info(input.dtype).text},
              {"sizes", std::move(sizes)},
              {"is_size", input.is_size}};
}

Json json_of(const tnx::SectionInfo& s) {
  return Json{{"kind", section_text(s.kind, "")},
              {"name", s.name},
              {"place", s.place},
              {"bytes", s.length},
              {"raw_bytes", s.raw_length}};
}

class Inspector {
 public:
  explicit Inspector(const InspectOptions& options)
      : options_(options),
        file_(tnx::File::open(options.file)),
        f_(Executable::load(options.file, options.load.settings())) {}

  Json json() const {
    Json inputs = Json::array(), outputs = Json::array(), sections = Json::array();
    for (const InputInfo& input : f_.inputs()) inputs.push_back(json_of(input));
    for (const OutputInfo& out : f_.outputs())
      outputs.push_back(
          {{"name", out.name}, {"dtype", info(out.dtype).text}, {"shape", out.shape}});
    for (const tnx::SectionInfo& s : file_->sections()) sections.push_back(json_of(s));
    ExecutableStats stats = f_.stats();
    return Json{{"file", options_.file},
                {"bytes", file_->bytes()},
                {"function", f_.name()},
                {"inputs", std::move(inputs)},
                {"outputs", std::move(outputs)},
                {"targets", targets()},
                {"target", stats.target},
                {"origin", stats.origin},
                {"mesh", stats.mesh},
                {"peak_bytes", f_.peak_bytes()},
                {"constants", constants_json()},
                {"sections", std::move(sections)}};
  }

  std::string text() const {
    std::string code =
        targets().empty() ? "no machine code" : format("code for {}", join(targets(), ", "));
    return format("{}\n\n{}, {}; {}\na call needs at most {} besides its arguments\n\n{}{}",
                  f_.to_text(), options_.file, bytes_text(file_->bytes()), code,
                  bytes_text(static_cast<size_t>(f_.peak_bytes())), sections_text(),
                  options_.load.verify ? "\nall checksums are right\n" : "");
  }

  /// One part of it, as text.
  std::string section(std::string_view name) const {
    if (name == "signature") return f_.to_text() + '\n';
    if (name == "graph") return f_.show("graph") + '\n';
    if (name == "memory") return f_.memory() + '\n';
    if (name == "sections") return sections_text();
    return constants_text();
  }

 private:
  std::vector<std::string> targets() const {
    std::vector<std::string> levels;
    for (const tnx::SectionInfo& s : file_->sections())
      if (s.kind == tnx::Kind::code && s.name != kLibraryCode) levels.push_back(s.name);
    return levels;
  }

  std::string sections_text() const {
    std::vector<std::vector<std::string>> rows;
    for (const tnx::SectionInfo& s : file_->sections())
      rows.push_back({section_text(s.kind, ""), s.name, bytes_text(s.length),
                      s.raw_length == s.length ? "" : bytes_text(s.raw_length) + " unpacked"});
    return table(rows);
  }

  const ProgramMesh* mesh() const { return f_.state()->program->mesh(); }
  const std::vector<NamedConstant>& constants() const { return f_.state()->program->constants(); }

  Json constants_json() const {
    Json all = Json::array();
    for (size_t i = 0; i < constants().size(); ++i) {
      const NamedConstant& c = constants()[i];
      Json one{{"name", c.name}, {"type", to_text(*c.type)}, {"bytes", c.type->bytes()}};
      if (mesh()) one["layout"] = mesh()->divisions[i];
      all.push_back(std::move(one));
    }
    return all;
  }

  std::string constants_text() const {
    std::vector<std::vector<std::string>> rows;
    for (size_t i = 0; i < constants().size(); ++i) {
      const NamedConstant& c = constants()[i];
      rows.push_back({c.name, to_text(*c.type), bytes_text(static_cast<size_t>(c.type->bytes()))});
      if (mesh()) rows.back().push_back(mesh()->divisions[i]);
    }
    return table(rows);
  }

  const InspectOptions& options_;
  std::shared_ptr<const tnx::File> file_;
  Executable f_;
};

}  // namespace

void add_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Signature, ranges, targets, sizes, memory and graph of an executable");
  command->add_option("file", options->file, "The executable, .tnx")->required();
  command->add_option("--section", options->section, "Only this part of it")
      ->check(CLI::IsMember({"signature", "graph", "memory", "constants", "sections"}));
  options->load.add_to(*command);
  command->add_flag("--json", options->json, "As JSON");
  command->callback([options] {
    Inspector inspector(*options);
    if (!options->section.empty())
      write_out(inspector.section(options->section));
    else if (options->json)
      write_json(inspector.json());
    else
      write_out(inspector.text());
  });
}

}  // namespace tn
