/* Whether kernels in C can be made and loaded here, and share their work. */

typedef float Sixteen __attribute__((vector_size(64))); /* which not every compiler has, and all kernels of `gpt` need */

int lmlab_probe(int threads) {
    int count = 0;
    Sixteen ones = (Sixteen){0} + 1.0f;
#pragma omp parallel num_threads(threads) reduction(+ : count)
    count += (int)ones[15];
    return count;
}
