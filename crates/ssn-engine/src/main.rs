//! The program `ssn-engine`. Users call `ssn`, which becomes this.

fn main() -> std::process::ExitCode {
    ssn_engine::main()
}
