//! What a host answers to operators who swap its modules.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use verbatim::broker::Choosing;
use verbatim::modules::{Bound, Modules, Swap, SwapError};

use super::super::control::server::{Answering, Remote, token};
use super::super::control::{self, Answer, Ask};
use super::super::file;
use super::super::{Usage, values};

#[derive(Debug, Default, Args)]
pub(super) struct Flags {
    /// Address for `verbatim module swap` and its like, beside the socket in the data folder [default: none]
    #[arg(long, env = "VERBATIM_CONTROL_LISTEN", value_name = "IP:PORT")]
    control_listen: Option<SocketAddr>,
    /// File with the token that is asked for at that address, 16 characters or more
    #[arg(long, env = "VERBATIM_CONTROL_TOKEN_FILE", value_name = "FILE")]
    control_token_file: Option<PathBuf>,
}

impl Flags {
    /// The TCP address, if there is to be one.
    pub(super) fn remote(&self, file: &file::Serve) -> Result<Option<Remote>, Usage> {
        let Some(listen) = self.control_listen.or(file.control_listen) else { return Ok(None) };
        let path = self.control_token_file.clone().or_else(|| file.control_token_file.clone());
        let path = path.ok_or_else(|| {
            values::missing(
                "serve",
                "control-token-file",
                "who may swap modules over the network has to be told",
            )
        })?;
        Ok(Some(Remote { listen, token: token(&path)? }))
    }
}

/// Answers by these modules, which those topics choose.
pub(super) fn answering(modules: Arc<Modules>, choosing: Choosing) -> Arc<Answering> {
    Arc::new(move |ask, module, asker| match ask {
        Ask::Status => done(modules.status()),
        Ask::History { name } => ended(modules.history(&name)),
        Ask::Rollback { name } => ended(modules.roll_back(&name, &choosing, asker)),
        Ask::Swap { name, kafka, shadow, dry_run, .. } => {
            let shadow = shadow.map(|bound| match bound {
                control::Bound::Ms(ms) => Bound::Time(Duration::from_millis(ms)),
                control::Bound::Requests(requests) => Bound::Requests(requests),
            });
            let swap = Swap { name: &name, module: &module, kafka, shadow, dry_run };
            ended(modules.swap(&swap, &choosing, asker))
        }
    })
}

fn ended(result: Result<impl Serialize, SwapError>) -> Answer {
    match result {
        Ok(value) => done(value),
        Err(error) if error.is_wrong_call() => Answer::Wrong(error.to_string()),
        Err(error) => Answer::Failed(error.to_string()),
    }
}

fn done(value: impl Serialize) -> Answer {
    match serde_json::to_value(value) {
        Ok(value) => Answer::Done(value),
        Err(error) => Answer::Failed(format!("the answer cannot be written: {error}")),
    }
}
