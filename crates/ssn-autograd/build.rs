//! Builds the C++ part against the headers of libtorch, which the bindings need as well.

use std::env;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=shim.cpp");
    let library = env::var("DEP_TCH_LIBTORCH_LIB")?;
    // For the tests of this crate.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{library}");
    let torch = Path::new(&library).parent().ok_or("libtorch's libraries lie in no folder")?.join("include");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .flag("-isystem")
        .flag(torch.to_string_lossy().as_ref())
        .flag("-isystem")
        .flag(torch.join("torch/csrc/api/include").to_string_lossy().as_ref())
        .file("shim.cpp")
        .compile("ssn_autograd");
    Ok(())
}
