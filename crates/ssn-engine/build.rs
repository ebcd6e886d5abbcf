//! Gives the engine the path to libtorch, so that it runs without `LD_LIBRARY_PATH`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // An installed copy keeps its libraries in ../lib, that of the Python package, in site-packages/ssn/bin, uses those of
    // the PyTorch beside the package; a built one uses the libtorch it was linked against.
    println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/../lib");
    println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/../../torch/lib");
    if let Ok(lib) = std::env::var("DEP_TCH_LIBTORCH_LIB") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
    }
}
