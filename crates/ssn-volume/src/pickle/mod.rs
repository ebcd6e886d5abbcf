//! Pickles and PyTorch files, as data.
