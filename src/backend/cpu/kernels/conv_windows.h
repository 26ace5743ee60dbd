#pragma once
// Which elements of x the results of a convolution meet.
#include <vector>

#include "backend/cpu/kernels/convolve.h"
#include "runtime/buffer.h"

namespace tn {

/// x with its channels last: as given, or copied.
struct ConvImages {
  BufferRef copy;
  const void* data;
  int64_t extent[kConvAxes];
  int64_t low[kConvAxes] = {0, 0, 0};  // zeros in front
  bool padded = false;                 // no window reaches out of the images
};
/// `room` is for the copy, images_bytes(); null: allocated.
ConvImages channels_last_images(const ConvArgs& args, void* room = nullptr);
/// Bytes of the copy; 0 where the images are read as they are.
int64_t images_bytes(const ConvArgs& args);

/// The weights of group `group` and channels out [begin, end) that a part needs, [channel out, tap,
/// channel]. Copied to `to` unless they are like that already; returns where they are.
const void* weights_of(const ConvArgs& args, const ConvPart& part, int64_t group, int64_t begin,
                       int64_t end, void* to);

/// The windows of a part's results. Rows are the results of all images, in order; a window is
/// `segments` runs of `run` elements, which are neighbours in x.
class ConvRows {
 public:
  /// `channels` of each place, from the one that `locate` is given on.
  ConvRows(const ConvArgs& args, const ConvPart& part, const ConvImages& images, int64_t channels);

  int64_t rows, segments, run;

  /// Where the segments of rows [begin, end) begin: at[s * (end - begin) + r].
  void locate(int64_t begin, int64_t end, int64_t first_channel, const void** at) const;
  /// The same of one segment: at[r].
  void locate_segment(int64_t segment, int64_t begin, int64_t end, int64_t first_channel,
                      const void** at) const;
  /// The place of each row among all results of all images.
  void places(int64_t begin, int64_t end, int64_t* at) const;

 private:
  struct Row {
    int64_t image, at[kConvAxes];
  };
  Row find(int64_t row) const;
  void step(Row& row) const;
  bool inside(const int64_t* first) const;

  ConvPart part_;
  const std::byte* x_;
  int64_t extent_[kConvAxes];
  int64_t element_, stride_[kConvAxes], image_stride_;  // in bytes
  int64_t start_[kConvAxes];                            // of the first window
  int64_t taps_[kConvAxes];                             // that begin segments
  int64_t out_stride_[kConvAxes], out_places_;
  std::vector<int64_t> deltas_;  // of the segments of a window, in bytes
  BufferRef zeros_;              // what a segment outside reads
};

}  // namespace tn
