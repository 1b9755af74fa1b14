"""The meaning of an expression at a point: doubles that know derivatives, plain doubles, long decimals, exact fractions."""
