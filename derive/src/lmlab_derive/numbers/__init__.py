"""The meaning of an expression at a point: doubles with autograd, plain doubles, long decimals, exact fractions."""
