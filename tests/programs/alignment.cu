// Alignment of two sequences: one launch per diagonal of tiles, a wavefront inside a tile.
#include "check.h"
const int tile = 16, penalty = 3;
__global__ void wave(int *score, const char *a, const char *b, int w, int diagonal) {
  __shared__ int part[tile + 1][tile + 1];
  int bx = blockIdx.x, by = diagonal - bx, t = threadIdx.x;
  if (by < 0 || by >= w / tile || bx >= w / tile) return;
  int row = by * tile, column = bx * tile, pitch = w + 1;
  part[0][t + 1] = score[row * pitch + column + t + 1];
  part[t + 1][0] = score[(row + t + 1) * pitch + column];
  if (t == 0) part[0][0] = score[row * pitch + column];
  __syncthreads();
  for (int step = 0; step < 2 * tile - 1; step++) {
    int i = t + 1, j = step - t + 1;
    if (j >= 1 && j <= tile) {
      int match = part[i - 1][j - 1] + (a[row + t] == b[column + j - 1] ? 5 : -2);
      part[i][j] = max(match, max(part[i - 1][j], part[i][j - 1]) - penalty);
    }
    __syncthreads();
  }
  for (int i = 1; i <= tile; i++) score[(row + i) * pitch + column + t + 1] = part[i][t + 1];
}
int main() {
  const int n = 80, pitch = n + 1, tiles = n / tile;
  static char a[n], b[n];
  static int score[pitch * pitch];
  for (int i = 0; i < n; i++) a[i] = draw(i) % 4, b[i] = draw(i + 321) % 4;
  for (int i = 0; i <= n; i++) score[i] = score[i * pitch] = -penalty * i;
  int *s = device(score, pitch * pitch);
  char *x = device(a, n), *y = device(b, n);
  for (int d = 0; d < 2 * tiles - 1; d++) wave<<<tiles, tile>>>(s, x, y, n, d);
  int *r = host(s, pitch * pitch);
  for (int i = 1; i <= n; i++)
    for (int j = 1; j <= n; j++) {
      int match = score[(i - 1) * pitch + j - 1] + (a[i - 1] == b[j - 1] ? 5 : -2);
      int gap = (score[(i - 1) * pitch + j] > score[i * pitch + j - 1] ? score[(i - 1) * pitch + j] : score[i * pitch + j - 1]) - penalty;
      score[i * pitch + j] = match > gap ? match : gap;
      expect("score", i * pitch + j, r[i * pitch + j], score[i * pitch + j], 0);
    }
  return finish("alignment");
}
