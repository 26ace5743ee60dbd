#pragma once
// Types that public headers name and the library defines: libtenon.so does not export them.
namespace tn {

struct [[gnu::visibility("hidden")]] Graph;
struct [[gnu::visibility("hidden")]] Node;

namespace model {
struct [[gnu::visibility("hidden")]] ModelDef;
}  // namespace model

namespace optim {
struct [[gnu::visibility("hidden")]] OptimizerDef;
}  // namespace optim

}  // namespace tn
