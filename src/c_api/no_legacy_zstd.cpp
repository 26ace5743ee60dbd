// Debian's libzstd.a reads frames of zstd before 0.8 as well, by 80 KB of code. No file of ours has
// such frames, so libtenon_rt has these functions instead: they refuse. They are weak, so that a
// library with other ones still links.
#include <cstddef>

namespace {

constexpr std::size_t kUnknownFrame = static_cast<std::size_t>(-10);  // ZSTD_error_prefix_unknown
constexpr unsigned long long kNoSize = -2ULL;                         // ZSTD_CONTENTSIZE_ERROR

}  // namespace

#define TN_WEAK extern "C" [[gnu::weak]]
#define TN_LEGACY(v)                                                                           \
  TN_WEAK void* ZSTD##v##_createDCtx() { return nullptr; }                                     \
  TN_WEAK std::size_t ZSTD##v##_freeDCtx(void*) { return 0; }                                  \
  TN_WEAK std::size_t ZSTD##v##_getFrameParams(void*, const void*, std::size_t) {              \
    return kUnknownFrame;                                                                      \
  }                                                                                            \
  TN_WEAK std::size_t ZSTD##v##_decompress_usingDict(void*, void*, std::size_t, const void*,   \
                                                     std::size_t, const void*, std::size_t) {  \
    return kUnknownFrame;                                                                      \
  }                                                                                            \
  TN_WEAK void ZSTD##v##_findFrameSizeInfoLegacy(const void*, std::size_t, std::size_t* bytes, \
                                                 unsigned long long* bound) {                  \
    *bytes = kUnknownFrame, *bound = kNoSize;                                                  \
  }                                                                                            \
  TN_WEAK void* ZBUFF##v##_createDCtx() { return nullptr; }                                    \
  TN_WEAK std::size_t ZBUFF##v##_freeDCtx(void*) { return 0; }                                 \
  TN_WEAK std::size_t ZBUFF##v##_decompressInitDictionary(void*, const void*, std::size_t) {   \
    return kUnknownFrame;                                                                      \
  }                                                                                            \
  TN_WEAK std::size_t ZBUFF##v##_decompressContinue(void*, void*, std::size_t*, const void*,   \
                                                    std::size_t*) {                            \
    return kUnknownFrame;                                                                      \
  }

TN_LEGACY(v05)
TN_LEGACY(v06)
TN_LEGACY(v07)
