//// Orders of elements as C.

//// section argsort
//// NaN comes last in both directions.

/* The positions that sort n elements, `step` apart: merged runs, equal elements in order. */
static void tn_argsort_$(int64_t n, const tn_$ *row, int64_t step, int descending, int64_t *order,
                         int64_t *room) {
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t first = 0; first < n; first += 2 * width) {
      const int64_t middle = tn_min_i64(first + width, n), end = tn_min_i64(middle + width, n);
      int64_t left = first, right = middle;
      for (int64_t to = first; to < end; ++to) {
        int takes_right = left == middle;
        if (left < middle && right < end) {
          const tn_$ x = row[order[right] * step], y = row[order[left] * step];
          const @WIDE a = @X, b = @Y;
          takes_right = (descending ? a > b : a < b)@NAN;
        }
        room[to] = takes_right ? order[right++] : order[left++];
      }
    }
    memcpy(order, room, (size_t)n * sizeof *order);
  }
}
