//! Whoever may not ask does not keep out those who may.

use super::*;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;

#[test]
fn strangers_take_nothing_from_the_owner() -> anyhow::Result<()> {
    let files = Files::new()?;
    let token = files.folder.path().join("token");
    fs::write(&token, "0123456789abcdef\n")?;
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644))?;
    let token = token.to_str().context("not UTF-8")?;
    let home = Home::new()?.arguments(&["--control-listen", "127.0.0.1:0", "--control-token-file", token]);
    let host = serving(&home)?;
    let log = host.log();
    ensure!(log.contains("others than the owner may read the token"), "{log}");
    let address = log.split(", control ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let address = address.context(log.clone())?;
    let silent: Vec<TcpStream> =
        (0..20).map(|_| TcpStream::connect(address)).collect::<std::io::Result<_>>()?;
    only(&home, &host)?;
    // Each is told, be it that there is no room or that he says nothing.
    let mut busy = 0;
    for stream in silent {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        busy += usize::from(line.contains("busy"));
        ensure!(line.contains("busy") || line.contains("not whole within"), "{line:?}");
    }
    ensure!(busy > 0, "nobody was sent away");
    let place = ["module", "status", "--control", address, "--control-token-file", token];
    host.verbatim(&place, b"")?.success()?;
    host.stop()
}

#[test]
fn a_host_serves_without_its_socket() -> anyhow::Result<()> {
    let home = Home::new()?;
    let place = home.data().join("control.sock");
    fs::create_dir_all(&place)?;
    let host = serving(&home)?;
    host.create_topic("orders", 1, &[])?;
    let log = host.log();
    ensure!(log.contains("no control socket") && log.contains(&place.display().to_string()), "{log}");
    host.stop()?;
    fs::remove_dir(&place)?;
    let host = serving(&home)?;
    only(&home, &host)?;
    host.stop()
}
