"""What this machine can do, measured; nothing is assumed from a name.

rates         how fast the products of training run, in each precision and with 1, 2, 4, … threads; memory; asking for a kernel
kept_figures  the record of all that, measured once and kept in the cache folder under a key of what it depends on
choice        what follows: device, precision of products and of Muon's iteration, threads, the speed to plan with
threads       how many threads are fastest now, beside whatever else runs
memory        what is available, what this process holds; habits of the C library that slow a training step down
c_kernels     functions in C, made here at first use; `arrays_for_c` and `tensors_for_c`: what they are given
races         whether such a function is faster here than what it replaces
"""
