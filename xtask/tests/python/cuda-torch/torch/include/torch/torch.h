// Stands for a header in the tests of xtask.
