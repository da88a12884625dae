//! The side that asks.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;

use super::super::Usage;
use super::super::file;
use super::{ANSWER_LEN_MAX, Answer, Ask, Question, SOCKET, socket};

/// Which host is asked.
#[derive(Debug, Args)]
pub(in super::super) struct Place {
    /// The host's data folder, in which its control socket lies [default: that of `serve` in the configuration file]
    #[arg(long, env = "VERBATIM_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// The host's control address, if it listens on one, instead of its socket
    #[arg(long, env = "VERBATIM_CONTROL", value_name = "HOST:PORT", requires = "control_token_file")]
    control: Option<String>,
    /// File with the token that the host asks for at its control address
    #[arg(long, env = "VERBATIM_CONTROL_TOKEN_FILE", value_name = "FILE")]
    control_token_file: Option<PathBuf>,
}

/// Both ways to a host.
trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

impl Place {
    /// Asks, passes on what is told meanwhile, and gives the answer. A module's bytes go with a swap.
    pub(in super::super) fn ask(
        self,
        file: &file::Serve,
        ask: Ask,
        module: &[u8],
        mut progress: impl FnMut(&str),
    ) -> anyhow::Result<Value> {
        let (mut stream, token) = self.connect(file)?;
        let mut line = serde_json::to_vec(&Question { token, ask })?;
        line.push(b'\n');
        // Whoever refuses a question may close before all of it was sent; the answer says why.
        let sent =
            stream.write_all(&line).and_then(|()| stream.write_all(module)).and_then(|()| stream.flush());
        let mut answers = BufReader::new(stream);
        loop {
            let mut line = String::new();
            let read = answers.by_ref().take(ANSWER_LEN_MAX).read_line(&mut line);
            if read.as_ref().is_ok_and(|read| *read > 0) {
                match serde_json::from_str(&line).context("the host's answer is not understood")? {
                    Answer::Progress(text) => progress(&text),
                    Answer::Done(value) => return Ok(value),
                    Answer::Failed(text) => bail!(text),
                    Answer::Wrong(text) => return Err(Usage(text).into()),
                }
            } else {
                sent.context("the host does not take the question")?;
                read.context("the host does not answer")?;
                bail!(
                    "the host ended the connection without an answer; `verbatim module status` tells what serves"
                );
            }
        }
    }

    fn connect(self, file: &file::Serve) -> anyhow::Result<(Box<dyn Stream>, Option<String>)> {
        if let Some(control) = self.control {
            let path =
                self.control_token_file.ok_or_else(|| Usage("--control-token-file is missing".to_owned()))?;
            let token = std::fs::read_to_string(&path).map_err(|error| {
                Usage(format!("token file cannot be read, file=`{}`: {error}", path.display()))
            })?;
            let stream =
                TcpStream::connect(&control).with_context(|| format!("no host, control=`{control}`"))?;
            return Ok((Box::new(stream), Some(token.trim().to_owned())));
        }
        let data = self.data.or_else(|| file.data.clone());
        let data =
            data.ok_or_else(|| Usage("--data is missing: the folder of the host's data".to_owned()))?;
        let stream = socket::connect(&data)
            .with_context(|| format!("no host serves there, socket=`{}`", data.join(SOCKET).display()))?;
        Ok((Box::new(stream), None))
    }
}
