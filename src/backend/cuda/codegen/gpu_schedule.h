#pragma once
// How the values of a kernel are spread over the threads of a GPU, chosen by rule from extents and
// strides.
//
//   flat     no reductions: a thread computes a few vectors along one axis
//   tiles    no reductions, operands contiguous along different axes: square tiles in shared memory
//   rows     a group of threads owns a place of the par axes, and sweeps along the inner ones
//   columns  a thread owns a few places of one par axis and one of the 64 lanes of the tree
//   walk     a thread owns a place, and walks the inner axes in order: scans, and stores that may
//            collide
//
// A kernel becomes one part or several, launched one after the other; what one part leaves to the
// next lies in the room, whose pieces are further buffers of the kernel.
#include "loop/analysis.h"
#include "plan/backend.h"

namespace tn::cuda {

enum class Mode : uint8_t { flat, tiles, rows, columns, walk };

/// Of long reductions, chunks are folded by one part, and their results by the next.
enum class Phase : uint8_t { whole, chunks, finish };

struct Part {
  loop::Kernel kernel;  // of plain operations; buffers from `first_room` on are pieces of the room
  int first_room = 0;
  Mode mode = Mode::flat;
  Phase phase = Phase::whole;
  std::vector<Dim> extents;
  std::vector<int> par, inner;  // axes, outermost first
  loop::AxisSet inner_axes = 0;
  Dim points = 1, extent = 1;  // of the par and of the inner axes

  int vector_axis = -1;  // neighbours of a thread lie along it
  int vector = 1;        // elements of one access
  int tile_axis = -1;    // tiles: along which the operands in `tiled` are contiguous
  std::vector<loop::ValueId> tiled;
  int unroll = 1;                // flat: vectors of a thread; others: steps of one iteration
  int threads = 128;             // of a block
  bool streams_results = false;  // more of them than a cache holds
  int together = 0;              // blocks that a multiprocessor shall have at once; 0: as it comes
  int group = 1;                 // rows: threads of a row; more than 32 fold through shared memory
  int lanes = 64;                // columns: lanes of the tree that a block has threads for
  bool unrolled = false;         // rows: all elements of a thread at once, kept between sweeps
  bool spread = false;           // rows: neighbours along the sweep differ in several axes
  bool cut = false;              // flat: the last vector may be cut
  bool reverse = false;          // walk
  Dim blocks = 1;
  int64_t shared_bytes = 0;
  int64_t lanes_at = 0;  // rows of a block: where the lanes of the tree lie in shared memory
  int room = 0;          // chunks, finish: the first buffer that holds results of chunks
  int ops = 0;           // of one point

  std::vector<int> level;                          // by value: the reductions before it
  std::vector<bool> needed, inside;                // by value; inside: a cast need not saturate
  std::vector<bool> reciprocal;                    // by value: 1 / x, of an x in the middle
  std::vector<bool> streamed;                      // by value: a load of what is loaded once
  std::vector<std::vector<loop::ValueId>> sweeps;  // the reductions that end with each
  std::vector<bool> stored_inside;                 // by store: at every point of the last sweep

  const loop::Value& value(loop::ValueId id) const { return kernel.values[size_t(id)]; }
  /// Elements that a group has in one step of a sweep.
  int64_t step() const { return group > 32 ? int64_t{threads} * vector : 64; }
};

struct Schedule {
  std::vector<Part> parts;
  std::vector<std::string> symbols;  // in order
  std::vector<Binding> sizes;        // likely values
  std::vector<Dim> rooms;            // bytes
  std::vector<bool> overlaid;        // by buffer: it may lie where another one does

  bool is_overlaid(int buffer) const {
    return size_t(buffer) < overlaid.size() && overlaid[size_t(buffer)];
  }
};

Schedule make_schedule(const KernelRequest& request);
/// Cuts a kernel whose reductions and scans do not fit together: each becomes a part of its own.
std::vector<Part> split(loop::Kernel kernel, int first_room);
/// "rows of 16 threads, 4 elements each, ...": a line for each part.
std::string to_text(const Schedule& schedule);

/// Tiles are squares of so many elements, with a column more in memory: no two of a column of the
/// tile are in one bank.
inline constexpr int kTile = 32;

/// The threads that a whole GPU keeps busy, for choices that leave the results alone.
inline constexpr int64_t kBusyThreads = 132 * 1024;

}  // namespace tn::cuda
