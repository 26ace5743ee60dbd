//// Products and convolutions as plain loops, for types that no vectors serve.

//// section plain_product
//// @WIDE is the type of sums, @AT and @OTHER are what was read, in it; @STEP adds their product.

/* c (m x n) = a * b. Each sum is a chain along k, begun anew every `depth`. */
static void tn_product_$(int64_t m, int64_t n, int64_t k, int64_t depth, const tn_$ *a,
                         int64_t a_row, int64_t a_col, const tn_$ *b, int64_t b_row, int64_t b_col,
                         tn_$ *c, tn_$ *packed) {
  (void)packed;
  TN_PARALLEL(m * n * k)
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j0 = 0; j0 < n; j0 += 64) {
      const int64_t count = tn_min_i64(64, n - j0);
      @WIDE total[64] = {0};
      for (int64_t k0 = 0; k0 < k; k0 += depth) {
        @WIDE sum[64] = {0};
        for (int64_t l = k0; l < tn_min_i64(k0 + depth, k); ++l) {
          const tn_$ at = a[i * a_row + l * a_col], *row = b + l * b_row + j0 * b_col;
          const @WIDE p = @AT;
          TN_INDEPENDENT
          for (int64_t j = 0; j < count; ++j) {
            const tn_$ other = row[j * b_col];
            const @WIDE q = @OTHER;
            sum[j] = @STEP[sum[j]];
          }
        }
        for (int64_t j = 0; j < count; ++j) total[j] = @ADD;
      }
      for (int64_t j = 0; j < count; ++j) c[i * n + j0 + j] = @NARROW[total[j]];
    }
}

//// section meet
//// How results and taps meet, for both directions.

/* Where result y and tap k of an axis meet in x; -1: nowhere. */
TN_FN int64_t tn_meet(const tn_axis *axis, int64_t y, int64_t k) {
  const int64_t at = y * axis->stride + k * axis->kernel_dilation - axis->low;
  return at < 0 || at % axis->dilation != 0 || at / axis->dilation >= axis->in
             ? -1 : at / axis->dilation;
}

//// section plain_conv

/* Each result is one chain over the taps, and for each tap over the channels. */
static void tn_conv_$(const tn_conv *s, const tn_$ *x, const tn_$ *w, tn_$ *y, void *scratch) {
  const tn_axis *const axes = s->axes;
  const int64_t lines = axes[0].out * axes[1].out, area = lines * axes[2].out;
  const int64_t lengths = axes[0].taps * axes[1].taps, taps = lengths * axes[2].taps;
  const int64_t channels = s->groups * s->channels_out;
  (void)scratch;
  TN_PARALLEL(s->images * channels * area * taps * s->channels_in)
  for (int64_t item = 0; item < s->images * channels * area; ++item) {
    const int64_t y2 = item % axes[2].out, y1 = item / axes[2].out % axes[1].out;
    const int64_t y0 = item / axes[2].out / axes[1].out % axes[0].out;
    const int64_t o = item / area % channels, n = item / area / channels;
    @WIDE sum = 0;
    for (int64_t t = 0; t < taps; ++t) {
      const int64_t k2 = t % axes[2].taps, k1 = t / axes[2].taps % axes[1].taps;
      const int64_t k0 = t / axes[2].taps / axes[1].taps;
      const int64_t i0 = tn_meet(&axes[0], y0, k0), i1 = tn_meet(&axes[1], y1, k1);
      const int64_t i2 = tn_meet(&axes[2], y2, k2);
      if (i0 < 0 || i1 < 0 || i2 < 0) continue;
      const tn_$ *from = x + n * s->x_image + o / s->channels_out * s->channels_in * s->x_channel +
                         i0 * axes[0].x_step + i1 * axes[1].x_step + i2 * axes[2].x_step;
      const tn_$ *by = w + o * s->w_out + k0 * axes[0].w_step + k1 * axes[1].w_step +
                       k2 * axes[2].w_step;
      for (int64_t c = 0; c < s->channels_in; ++c) {
        const tn_$ at = from[c * s->x_channel], other = by[c * s->w_in];
        const @WIDE p = @AT, q = @OTHER;
        sum = @STEP[sum];
      }
    }
    y[n * s->y_image + o * s->y_channel + y0 * axes[0].y_step + y1 * axes[1].y_step +
      y2 * axes[2].y_step] = @NARROW[sum];
  }
}

//// section plain_conv_gradient

/* The gradient of the weights, from x and the gradient y of the results. */
static void tn_conv_gradient_$(const tn_conv *s, const tn_$ *x, const tn_$ *y, tn_$ *w,
                               void *scratch) {
  const tn_axis *const axes = s->axes;
  const int64_t taps = axes[0].taps * axes[1].taps * axes[2].taps;
  const int64_t area = axes[0].out * axes[1].out * axes[2].out;
  (void)scratch;
  TN_PARALLEL(s->images * s->channels_out * s->channels_in * taps * area)
  for (int64_t item = 0; item < s->groups * s->channels_out * s->channels_in * taps; ++item) {
    const int64_t t = item % taps, c = item / taps % s->channels_in;
    const int64_t o = item / taps / s->channels_in, g = o / s->channels_out;
    const int64_t k2 = t % axes[2].taps, k1 = t / axes[2].taps % axes[1].taps;
    const int64_t k0 = t / axes[2].taps / axes[1].taps;
    @WIDE sum = 0;
    for (int64_t n = 0; n < s->images; ++n)
      for (int64_t i = 0; i < area; ++i) {
        const int64_t y2 = i % axes[2].out, y1 = i / axes[2].out % axes[1].out;
        const int64_t y0 = i / axes[2].out / axes[1].out;
        const int64_t i0 = tn_meet(&axes[0], y0, k0), i1 = tn_meet(&axes[1], y1, k1);
        const int64_t i2 = tn_meet(&axes[2], y2, k2);
        if (i0 < 0 || i1 < 0 || i2 < 0) continue;
        const tn_$ at = x[n * s->x_image + (g * s->channels_in + c) * s->x_channel +
                          i0 * axes[0].x_step + i1 * axes[1].x_step + i2 * axes[2].x_step];
        const tn_$ other = y[n * s->y_image + o * s->y_channel + y0 * axes[0].y_step +
                             y1 * axes[1].y_step + y2 * axes[2].y_step];
        const @WIDE p = @AT, q = @OTHER;
        sum = @STEP[sum];
      }
    w[o * s->w_out + c * s->w_in + k0 * axes[0].w_step + k1 * axes[1].w_step +
      k2 * axes[2].w_step] = @NARROW[sum];
  }
}
