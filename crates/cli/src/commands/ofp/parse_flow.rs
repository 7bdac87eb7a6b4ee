//! `weir ofp parse-flow`: converts flow entries from text to canonical text, JSON or a flow-mod message.
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;
use weir_openflow::model::FlowCommand;
use weir_openflow::{Body, Message, Version, encode, text};

#[derive(clap::Args)]
#[command(disable_version_flag = true)]
#[command(after_help = "Example: weir ofp parse-flow --hex 'priority=10,ip,nw_dst=10.0.0.0/8,actions=output:2'")]
pub(crate) struct OfpParseFlowArgs {
    /// Flow entries, in the syntax of `ovs-ofctl`
    #[arg(required = true, value_name = "FLOW")]
    flows: Vec<String>,
    /// Command of the flow-mod
    #[arg(long, value_enum, default_value = "add")]
    command: FlowCommandArg,
    /// OpenFlow version: 1.0, 1.3, 1.4 or 1.5
    #[arg(long, default_value = "1.3", value_name = "VERSION")]
    version: Version,
    /// Print the flow-mod message in hexadecimal
    #[arg(long, conflicts_with = "json")]
    hex: bool,
    /// Print the flow-mod as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum FlowCommandArg {
    Add,
    Modify,
    ModifyStrict,
    Delete,
    DeleteStrict,
}

pub(super) fn run(args: &OfpParseFlowArgs) -> anyhow::Result<ExitCode> {
    let command = match args.command {
        FlowCommandArg::Add => FlowCommand::Add,
        FlowCommandArg::Modify => FlowCommand::Modify,
        FlowCommandArg::ModifyStrict => FlowCommand::ModifyStrict,
        FlowCommandArg::Delete => FlowCommand::Delete,
        FlowCommandArg::DeleteStrict => FlowCommand::DeleteStrict,
    };
    let mut stdout = io::stdout().lock();
    for written in &args.flows {
        match writeln!(stdout, "{}", line(args, written, command, args.version)?) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break, // the reader closed its end early
            written => written?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn line(args: &OfpParseFlowArgs, written: &str, command: FlowCommand, version: Version) -> anyhow::Result<String> {
    let flow = text::parse_flow(written, command).map_err(|error| anyhow::anyhow!("`{written}`: {error}"))?;
    if args.json {
        return Ok(serde_json::to_string(&flow)?);
    }
    if !args.hex {
        return Ok(text::format_flow(&flow, version));
    }
    let mut bytes = Vec::new();
    encode(&Message { xid: 0, body: Body::FlowMod(flow) }, version, &mut bytes)
        .map_err(|error| anyhow::anyhow!("`{written}`: {error}"))?;
    Ok(bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    }))
}
