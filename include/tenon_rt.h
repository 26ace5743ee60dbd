/* The runtime of saved executables, for C and languages that can call C. Link with tenon_rt; it
 * needs no compiler and no Python. tenon/runtime.h is the same for C++.
 *
 *     tenon_rt_executable* f = tenon_rt_load("f.tnx", 0);
 *     if (!f) { puts(tenon_rt_error()); return 1; }
 *     int64_t shape[] = {1, 2};
 *     float x[] = {1, 2};
 *     tenon_rt_tensor in = {TENON_RT_F32, 2, shape, x, 0}, out;
 *     if (tenon_rt_run(f, &in, 1, &out, 1)) { puts(tenon_rt_error()); return 1; }
 *     ... out.data ...
 *     tenon_rt_release(&out);
 *     tenon_rt_close(f);
 *
 * Functions that fail return null or a nonzero code; tenon_rt_error() then returns the message.
 * Any number of threads may call an executable concurrently. */
#ifndef TENON_RT_H
#define TENON_RT_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tenon_rt_executable tenon_rt_executable;

/* The numbers of element types are part of the interface and of files. */
typedef enum tenon_rt_dtype {
  TENON_RT_BOOL = 0,
  TENON_RT_I8 = 1,
  TENON_RT_I16 = 2,
  TENON_RT_I32 = 3,
  TENON_RT_I64 = 4,
  TENON_RT_U8 = 5,
  TENON_RT_U16 = 6,
  TENON_RT_U32 = 7,
  TENON_RT_U64 = 8,
  TENON_RT_F8E4M3 = 9,
  TENON_RT_F8E5M2 = 10,
  TENON_RT_F16 = 11,
  TENON_RT_BF16 = 12,
  TENON_RT_F32 = 13,
  TENON_RT_F64 = 14,
  TENON_RT_C64 = 15,
  TENON_RT_C128 = 16
} tenon_rt_dtype;

/* Elements in row-major order. A size input is a tensor of rank 0 and type i64. Inputs
 * are only read. */
typedef struct tenon_rt_tensor {
  tenon_rt_dtype dtype;
  int32_t rank;
  const int64_t* shape;
  void* data;
  void* owner; /* of results: released by tenon_rt_release. 0 for what the caller owns */
} tenon_rt_tensor;

typedef struct tenon_rt_size {
  int64_t min, opt, max;
  const char* name; /* 0: none was given */
} tenon_rt_size;

typedef struct tenon_rt_input {
  const char* name;
  tenon_rt_dtype dtype;
  int32_t rank;
  const tenon_rt_size* sizes;
  int32_t is_size; /* a size, not a tensor */
} tenon_rt_input;

/* Flags of tenon_rt_load. By default the checksums of the whole file are verified: of a small file
 * when it is loaded, of a large one in the first run, before it returns a result. */
enum {
  TENON_RT_TRUST = 1,    /* run machine code that was not saved by this user here */
  TENON_RT_VERIFY = 2,   /* verify the checksums of the whole file when it is loaded */
  TENON_RT_NO_VERIFY = 4 /* verify only the parts that are parsed, never the weights */
};

tenon_rt_executable* tenon_rt_load(const char* path, uint32_t flags);
void tenon_rt_close(tenon_rt_executable* f);

/* Bytes of an element; 0 if there is no such type. */
size_t tenon_rt_element_bytes(tenon_rt_dtype dtype);
size_t tenon_rt_inputs(const tenon_rt_executable* f);
size_t tenon_rt_outputs(const tenon_rt_executable* f);
/* Valid until the executable is closed; null if there is no such input. */
const tenon_rt_input* tenon_rt_input_at(const tenon_rt_executable* f, size_t i);
/* The CPU level whose code runs, "x86-64-v4", or "interpreter". */
const char* tenon_rt_target(const tenon_rt_executable* f);

/* `inputs` in the order of the signature, sizes among them; `outputs` receives all results, each
 * with its own memory. After a failure they are empty and need no release. */
int tenon_rt_run(const tenon_rt_executable* f, const tenon_rt_tensor* inputs, size_t input_count,
                 tenon_rt_tensor* outputs, size_t output_count);
void tenon_rt_release(tenon_rt_tensor* result);

/* The message of the latest failed call on this thread; valid until the next call fails. */
const char* tenon_rt_error(void);
/* The number of threads including the caller: TENON_NUM_THREADS, else the number of CPUs. */
int tenon_rt_set_threads(int threads);
const char* tenon_rt_version(void);

#ifdef __cplusplus
}
#endif
#endif
