// A user's program: it compiles, links and runs against the installed library alone.
#include <tenon/error.h>

#include <cstdio>

int main() {
  try {
    throw tn::UserError(tn::Fault::value, "add: shapes differ");
  } catch (const tn::Error& error) {
    std::printf("caught: %s\n", error.what());
    return 0;
  }
}
