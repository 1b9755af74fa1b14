"""The models, one file each; `registry` names them."""
