//! Looks for the C++ compiler that building `tch` needs, before anything large is fetched.

use crate::error::Error;
use crate::host::Host;
use std::path::PathBuf;
use std::process::Command;

/// The names under which systems keep their C++ compiler.
const COMPILERS: [&str; 3] = ["c++", "g++", "clang++"];

/// The compiler that the build will find: CXX if it is set, or else the usual names.
pub fn find(host: &Host) -> Result<PathBuf, Error> {
    // CXX may carry arguments or a wrapper, as in `ccache g++`; the first word is the program.
    let tried: Vec<&str> = match &host.cxx {
        Some(cxx) => cxx.split_whitespace().take(1).collect(),
        None => COMPILERS.to_vec(),
    };
    tried
        .iter()
        .find_map(|name| host.find(name))
        .ok_or_else(|| Error::NoCompiler { tried: tried.iter().map(ToString::to_string).collect() })
}

/// The same with the arguments that CXX carries.
pub fn command(host: &Host) -> Result<Command, Error> {
    let mut command = Command::new(find(host)?);
    command.args(host.cxx.iter().flat_map(|cxx| cxx.split_whitespace().skip(1)));
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cxx_is_taken_at_its_word() {
        let host = Host { cxx: Some("/bin/sh -c".into()), ..Host::default() };
        assert_eq!(find(&host).unwrap(), PathBuf::from("/bin/sh"));
        assert_eq!(crate::process::shown(&command(&host).unwrap()), "sh -c");
    }

    #[test]
    fn without_a_compiler_the_message_names_the_packages() {
        let message = find(&Host::default()).unwrap_err().to_string();
        assert!(message.contains("c++, g++, clang++") && message.contains("apt install g++"), "{message}");
    }
}
