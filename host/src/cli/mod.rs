//! The command line: one file a sub-command.
//!
//! An option is taken from its flag, else from its environment variable (`VERBATIM_` and the flag's name), else from the
//! file that `--config-file` names, else it has its default. Results go to stdout, logs to stderr. Exit codes: 0 it went
//! well, 1 it failed, 2 the call is wrong.

mod connect;
mod control;
mod file;
mod log_dump;
mod logging;
mod mirror;
mod module;
mod output;
mod produce;
mod serve;
mod topic;
mod values;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use file::Settings;
use logging::LogFormat;
use output::Output;

/// The heading in the help of options that every command takes.
const GENERAL: &str = "General options";

/// Keeps Kafka topics verbatim: the very batches of the source, byte for byte, at the same offsets and leader epochs.
#[derive(Debug, Parser)]
#[command(name = "verbatim", version)]
struct Cli {
    /// TOML file with options that are given neither as a flag nor in the environment
    #[arg(long, global = true, env = "VERBATIM_CONFIG_FILE", value_name = "FILE", help_heading = GENERAL)]
    config_file: Option<PathBuf>,
    /// How logs are written to stderr [default: text]
    #[arg(long, global = true, env = "VERBATIM_LOG_FORMAT", value_enum, help_heading = GENERAL)]
    log_format: Option<LogFormat>,
    /// How results are written to stdout [default: text]
    #[arg(long, global = true, env = "VERBATIM_OUTPUT", value_enum, help_heading = GENERAL)]
    output: Option<Output>,
    /// The broker that `topic` and `produce` speak to and `mirror` copies to [default: 127.0.0.1:9092]
    #[arg(long, global = true, env = "VERBATIM_BOOTSTRAP_SERVER", value_name = "HOST:PORT", help_heading = GENERAL)]
    bootstrap_server: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a host
    Serve(Box<serve::Serve>),
    /// Create, describe, list or delete topics
    #[command(subcommand)]
    Topic(topic::Topic),
    /// Copy topics of any Kafka into a host, byte for byte
    Mirror(Box<mirror::Mirror>),
    /// Compare topics of two clusters batch by batch; exit code 0 if they are equal, 1 if not, 2 if that stays open
    Verify(Box<verify::Verify>),
    /// Write lines from stdin to an exact topic, at an offset and leader epoch of choice
    Produce(produce::Produce),
    /// Look into a partition's folder
    #[command(subcommand)]
    Log(log_dump::Log),
    /// Look into a module's file, or swap modules of a running host
    #[command(subcommand)]
    Module(module::Module),
}

/// A call that is wrong, as opposed to one that failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

/// Runs the command and tells how it ended.
pub(crate) fn run() -> ExitCode {
    let cli = Cli::parse();
    match execute(cli) {
        Ok(code) => code,
        Err(error) => {
            output::complain(&error);
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}

fn execute(cli: Cli) -> anyhow::Result<ExitCode> {
    let settings = Settings::read(cli.config_file.as_deref())?;
    let output = cli.output.or(settings.output).unwrap_or_default();
    let log_format = cli.log_format.or(settings.log_format).unwrap_or_default();
    logging::start(log_format)?;
    let bootstrap = cli.bootstrap_server.or(settings.bootstrap_server);
    let bootstrap = bootstrap.unwrap_or_else(|| connect::DEFAULT_BOOTSTRAP.to_owned());
    let done = match cli.command {
        Command::Verify(verify) => return verify.run(settings.verify, output),
        Command::Serve(serve) => serve.run(settings.serve, output),
        Command::Mirror(mirror) => mirror.run(settings.mirror, &bootstrap, output),
        Command::Topic(topic) => connect::block_on(topic.run(&bootstrap, output)),
        Command::Produce(produce) => connect::block_on(produce.run(&bootstrap, output)),
        Command::Log(log) => log.run(output),
        Command::Module(module) => module.run(&settings.serve, output),
    };
    done.map(|()| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_option_of_host_mirror_and_verifier_is_documented() {
        let operations = include_str!("../../../docs/OPERATIONS.md");
        let verifying = operations.split_once("\n## Verifying\n").map(|(_, verifying)| verifying);
        let mut command = Cli::command();
        command.build();
        for name in ["serve", "mirror", "verify"] {
            let found = command.find_subcommand(name).map(|found| found.get_arguments().collect::<Vec<_>>());
            let found = found.unwrap_or_default();
            let own = found.iter().filter(|argument| !argument.is_global_set());
            let flags: Vec<&str> =
                own.filter_map(|argument| argument.get_long()).filter(|flag| *flag != "help").collect();
            assert!(flags.len() > 10, "{flags:?}");
            for flag in flags {
                let is_there = match (name, verifying) {
                    // It has a table of its own, in some of whose rows there are two.
                    ("verify", Some(text)) => {
                        let cell = format!("`--{flag}");
                        text.lines().any(|line| line.starts_with("| `--") && line.contains(&cell))
                    }
                    _ => operations.contains(&format!("| `{name} --{flag}")),
                };
                assert!(is_there, "{name} --{flag} is not in docs/OPERATIONS.md");
            }
        }
    }
}
