//! PNG, JPEG and TIFF.
