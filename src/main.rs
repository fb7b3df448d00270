//! Starts the program: parse, call, print the error, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpumodel::app::cli::main()
}
