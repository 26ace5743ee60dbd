/* Loads a saved executable, runs it and times it, on data from files or on random numbers.
 *
 *     run_model [--device cuda] model.tnx [FILE...]
 *
 * There is one raw file per input, or "-" for random numbers.
 *
 * On a GPU it also times calls whose inputs and results stay there, as a server would chain them.
 * Varying sizes are those that the executable is optimized for. TRUST=1 in the environment allows
 * machine code that was compiled elsewhere. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon_rt.h>
#include <time.h>

static int failed(void) {
  fprintf(stderr, "run_model: %s\n", tenon_rt_error());
  return 1;
}

static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* Floats in [0, 1), small integers, zeros for other types. */
static void fill(const tenon_rt_tensor* x, size_t count) {
  for (size_t i = 0; i < count; i++) {
    int number = rand();
    switch (x->dtype) {
      case TENON_RT_F32: ((float*)x->data)[i] = (float)number / ((float)RAND_MAX + 1); break;
      case TENON_RT_F64: ((double*)x->data)[i] = number / (RAND_MAX + 1.0); break;
      case TENON_RT_I32: ((int32_t*)x->data)[i] = number % 8; break;
      case TENON_RT_I64: ((int64_t*)x->data)[i] = number % 8; break;
      default: break;
    }
  }
}

/* Allocates `x` for an input at its best sizes, and fills in the elements. */
static int prepare(const tenon_rt_input* input, const char* path, tenon_rt_tensor* x) {
  int64_t* shape = calloc((size_t)input->rank + 1, sizeof *shape);
  size_t count = 1, bytes = tenon_rt_element_bytes(input->dtype);
  for (int32_t k = 0; k < input->rank; k++) count *= (size_t)(shape[k] = input->sizes[k].opt);
  *x = (tenon_rt_tensor){input->dtype, input->rank, shape, calloc(count + 1, bytes), 0, 0};
  if (!shape || !x->data) return fprintf(stderr, "run_model: out of memory\n"), 1;
  if (input->is_size) {
    *(int64_t*)x->data = input->sizes[0].opt;
  } else if (!path || !strcmp(path, "-")) {
    fill(x, count);
  } else {
    FILE* file = fopen(path, "rb");
    size_t found = file ? fread(x->data, bytes, count, file) : 0;
    if (file) fclose(file);
    if (found != count)
      return fprintf(stderr, "run_model: %s: %zu elements, %s takes %zu\n", path, found,
                     input->name, count), 1;
  }
  return 0;
}

static void print(const char* name, const tenon_rt_tensor* x) {
  printf("%s: [", name);
  for (int32_t k = 0; k < x->rank; k++) printf("%s%lld", k ? ", " : "", (long long)x->shape[k]);
  printf("]");
  if (x->dtype == TENON_RT_F32 && x->rank > 0) printf(" %g ...", (double)*(float*)x->data);
  printf("\n");
}

/* Inputs are copied to the device once; of the last results, the first is copied back. */
static int time_on_device(const tenon_rt_executable* f, const tenon_rt_tensor* in, size_t inputs,
                          tenon_rt_tensor* out, size_t outputs) {
  enum { kCalls = 10 };
  tenon_rt_tensor* there = calloc(inputs + 1, sizeof *there);
  int code = 0;
  for (size_t i = 0; i < inputs && !code; i++) {
    there[i] = in[i];
    if (!tenon_rt_input_at(f, i)->is_size) code = tenon_rt_to_device(f, &in[i], &there[i]);
  }
  double began = milliseconds();
  for (int call = 0; call < kCalls && !code; call++) {
    for (size_t i = 0; i < outputs; i++) tenon_rt_release(&out[i]);
    code = tenon_rt_run_on_device(f, there, inputs, out, outputs, 0);
  }
  if (!code && outputs > 0) {
    size_t bytes = tenon_rt_element_bytes(out[0].dtype);
    for (int32_t k = 0; k < out[0].rank; k++) bytes *= (size_t)out[0].shape[k];
    void* first = malloc(bytes + 1);
    code = tenon_rt_read(&out[0], first); /* which waits for the last call */
    free(first);
  }
  if (!code) printf("on the device %.3f ms a call\n", (milliseconds() - began) / kCalls);
  for (size_t i = 0; i < outputs; i++) tenon_rt_release(&out[i]);
  for (size_t i = 0; i < inputs; i++)
    if (there[i].owner) tenon_rt_release(&there[i]);
  free(there);
  return code ? failed() : 0;
}

int main(int argc, char** argv) {
  const char* device = "cpu";
  if (argc > 2 && !strcmp(argv[1], "--device")) device = argv[2], argv += 2, argc -= 2;
  if (argc < 2) return fprintf(stderr, "usage: run_model [--device D] model.tnx [FILE...]\n"), 2;
  double began = milliseconds();
  tenon_rt_executable* f =
      tenon_rt_load_on(argv[1], getenv("TRUST") ? TENON_RT_TRUST : 0, device);
  if (!f) return failed();
  printf("loaded in %.2f ms, runs %s on %s\n", milliseconds() - began, tenon_rt_target(f),
         tenon_rt_device(f));

  size_t inputs = tenon_rt_inputs(f), outputs = tenon_rt_outputs(f);
  tenon_rt_tensor* in = calloc(inputs + 1, sizeof *in);
  tenon_rt_tensor* out = calloc(outputs + 1, sizeof *out);
  for (size_t i = 0; i < inputs; i++) {
    const tenon_rt_input* input = tenon_rt_input_at(f, i);
    if (prepare(input, (int)i + 2 < argc ? argv[i + 2] : 0, &in[i])) return 1;
    print(input->name, &in[i]);
  }

  double best = 0;
  for (int call = 0; call < 10; call++) {
    for (size_t i = 0; i < outputs; i++) tenon_rt_release(&out[i]);
    began = milliseconds();
    if (tenon_rt_run(f, in, inputs, out, outputs)) return failed();
    double took = milliseconds() - began;
    if (call == 0) printf("first call %.3f ms\n", took);
    if (call == 0 || took < best) best = took;
  }
  printf("best call %.3f ms\n", best);

  for (size_t i = 0; i < outputs; i++) {
    print("result", &out[i]);
    tenon_rt_release(&out[i]);
  }
  int code = strcmp(tenon_rt_device(f), "cpu") ? time_on_device(f, in, inputs, out, outputs) : 0;
  for (size_t i = 0; i < inputs; i++) free((void*)in[i].shape), free(in[i].data);
  free(in), free(out);
  tenon_rt_close(f);
  return code;
}
