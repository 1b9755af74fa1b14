/* Whether kernels in C can be made and loaded here, and share their work. */

int lmlab_probe(int threads) {
    int count = 0;
#pragma omp parallel num_threads(threads) reduction(+ : count)
    count += 1;
    return count;
}
