/* The runtime of saved executables, for C and languages that can call C. Link with tenon_rt; it
 * needs no compiler and no Python. tenon/runtime.h is the same for C++.
 *
 *     tenon_rt_executable* f = tenon_rt_load("f.tnx", 0);
 *     if (!f) { puts(tenon_rt_error()); return 1; }
 *     int64_t shape[] = {1, 2};
 *     float x[] = {1, 2};
 *     tenon_rt_tensor in = {TENON_RT_F32, 2, shape, x, 0, 0}, out;
 *     if (tenon_rt_run(f, &in, 1, &out, 1)) { puts(tenon_rt_error()); return 1; }
 *     ... out.data ...
 *     tenon_rt_release(&out);
 *     tenon_rt_close(f);
 *
 * Functions that fail return null or a nonzero code; tenon_rt_error() then returns the message.
 * Any number of threads may call an executable concurrently.
 *
 * NVIDIA GPUs: tenon_rt_load_on("f.tnx", 0, "cuda") runs the code that the file has for the GPU; it
 * never runs on the CPU instead. The driver is loaded by this call. tenon_rt_run copies inputs
 * there and results back; tenon_rt_run_on_device leaves results there. */
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

/* Elements in row-major order. A size input is a tensor of rank 0 and type i64, on the host. Inputs
 * are only read. */
typedef struct tenon_rt_tensor {
  tenon_rt_dtype dtype;
  int32_t rank;
  const int64_t* shape;
  void* data;
  void* owner;    /* of results: released by tenon_rt_release. 0 for what the caller owns */
  int32_t device; /* where data is: 0 is the host, 1 the memory of "cuda:0", 2 of "cuda:1", ... */
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
/* The same, to run on `device`: "cpu", "cuda" (the first GPU) or "cuda:1". Fails without a driver,
 * without such a GPU, and if the file has no code that it runs. */
tenon_rt_executable* tenon_rt_load_on(const char* path, uint32_t flags, const char* device);
void tenon_rt_close(tenon_rt_executable* f);

/* Bytes of an element; 0 if there is no such type. */
size_t tenon_rt_element_bytes(tenon_rt_dtype dtype);
size_t tenon_rt_inputs(const tenon_rt_executable* f);
size_t tenon_rt_outputs(const tenon_rt_executable* f);
/* Valid until the executable is closed; null if there is no such input. */
const tenon_rt_input* tenon_rt_input_at(const tenon_rt_executable* f, size_t i);
/* What the code that runs was made for: "x86-64-v4", "sm_90", "ptx_80"; or "interpreter". */
const char* tenon_rt_target(const tenon_rt_executable* f);
/* "cpu" or "cuda:0". */
const char* tenon_rt_device(const tenon_rt_executable* f);

/* `inputs` in the order of the signature, sizes among them; `outputs` receives all results, each
 * with its own memory, on the host. After a failure they are empty and need no release. Inputs in
 * memory of the device are read after what is on its default stream. */
int tenon_rt_run(const tenon_rt_executable* f, const tenon_rt_tensor* inputs, size_t input_count,
                 tenon_rt_tensor* outputs, size_t output_count);
/* The same, with results on the device of the executable, and without waiting for them. They may be
 * inputs of further calls. Inputs in memory of the device are not copied, if they begin at a
 * multiple of 16 bytes.
 *
 * `stream` is where the caller's own work is put: a CUstream or cudaStream_t. 0 is the legacy
 * default stream, also where the caller is compiled with --default-stream per-thread. Such callers
 * give cudaStreamPerThread; reading or releasing its results waits for the whole GPU. Inputs in
 * memory of the device are read after what is on `stream`. What the caller puts on it later waits
 * for the results, and after a failure for what still reads the inputs. It must live until the
 * results are released. An executable on the CPU ignores it. */
int tenon_rt_run_on_device(const tenon_rt_executable* f, const tenon_rt_tensor* inputs,
                           size_t input_count, tenon_rt_tensor* outputs, size_t output_count,
                           void* stream);
/* Copies elements of the host to the device of an executable: for inputs of many calls. `copy` is
 * released like a result whose stream is 0. */
int tenon_rt_to_device(const tenon_rt_executable* f, const tenon_rt_tensor* x,
                       tenon_rt_tensor* copy);
/* Copies the elements of a result to the host. Waits for it, and reports what made it fail. */
int tenon_rt_read(const tenon_rt_tensor* result, void* to);
/* On a device, its memory is used again after what the caller has put on the stream. */
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
