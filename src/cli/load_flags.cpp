#include "cli/load_flags.h"

namespace tn {

void LoadFlags::add_to(CLI::App& command, bool runs_code) {
  if (runs_code) command.add_flag("--trust", trust, "Run machine code that others wrote");
  CLI::Option* all = command.add_flag("--verify", verify,
                                      "Compare the checksums of the whole file before anything "
                                      "else; without it, a large file's when they are needed");
  command.add_flag("--no-verify", no_verify, "Do not compare the checksums of weights")
      ->excludes(all);
}

LoadSettings LoadFlags::settings() const {
  LoadSettings made{.trust = trust, .verify = {}};
  if (verify || no_verify) made.verify = verify;
  return made;
}

}  // namespace tn
