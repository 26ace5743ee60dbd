#pragma once
// The user's lines in errors of a run. Programs that record the same ops on different lines share
// a plan, and the places in it are those of the program that it was made for.
#include "base/function_ref.h"
#include "plan/plan.h"

namespace tn {

struct Graph;

using PlacesRef = std::shared_ptr<const std::vector<Loc>>;

/// Where the ops of a run were recorded, if not where those of its plan were.
struct RunPlaces {
  PlacesRef planned = {};  // by op; null: it is not known
  PlacesRef now = {};      // null: the same
};

/// Of the runs that this thread begins. A device that works later keeps a copy.
inline thread_local RunPlaces run_places;

class RunPlacesScope {
 public:
  explicit RunPlacesScope(RunPlaces places)
      : before_(std::exchange(run_places, std::move(places))) {}
  ~RunPlacesScope() { run_places = std::move(before_); }
  RunPlacesScope(const RunPlacesScope&) = delete;

 private:
  RunPlaces before_;
};

/// Those of the ops of a plan with parts. Null for others: errors of the host are reported by the
/// call that runs it.
PlacesRef planned_places(const Plan& plan);

/// Of a run whose ops, `count` of them, were recorded at `place(i)`.
RunPlaces places_of_run(const PlacesRef& planned, size_t count, FunctionRef<Loc(size_t)> place);

/// The places of the ops of a graph, without its numbers.
std::vector<Loc> places_in(const Graph& graph);

/// The user's place of what was recorded at `planned`. None if the run does not tell: one line of a
/// shared plan may be several of this program.
Loc place_now(Loc planned);

/// The place of the one op that was recorded at `planned`, with its mark. None if it is not known.
Loc marked_place_now(Loc planned);

/// The user's place of a step of `plan`, or of what runs `inside` it.
Loc place_of(const Plan& plan, const Step& step, Loc inside = {});

}  // namespace tn
