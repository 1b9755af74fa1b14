/* Whether functions in plain C can be made and loaded here, as those for counting are. */

int lmlab_plain_probe(int number) { return number; }
