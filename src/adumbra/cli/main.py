"""The `adumbra` command: a thin layer over `workflow`; every heavy import waits for its command."""

import gc
import signal
import sys
from functools import cache
from typing import Any, NoReturn

import typer

from adumbra.cli import (
    ask_command,
    audit_command,
    demo,
    evaluate_command,
    export_command,
    key_commands,
    ledger_commands,
    ledger_keeping,
    log_commands,
    methods_command,
    operator_commands,
    planning,
    release_views,
    report_command,
    rows_commands,
    schema_commands,
)
from adumbra.errors import AdumbraError, Terminated, system_fault, visible
from adumbra.version import __version__

EXIT_CODES = (
    "Exit codes: 0 done, 2 bad input or usage, 3 refused by the budget, 4 verification failed, "
    "5 no space left, 6 not writable, 7 not enough memory, 8 ledger not writable, 9 cluster lost, "
    "130 stopped by Ctrl-C, 143 by SIGTERM, 1 anything else."
)

app = typer.Typer(
    name="adumbra",
    help="Release a private outline of a high-dimensional table.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"adumbra {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    pass


app.command("demo")(demo.demo)
app.command("plan")(planning.plan)
app.command("methods")(methods_command.methods)
app.command("release")(planning.release)
app.command("inspect")(release_views.inspect)
app.command("verify")(release_views.verify)
app.command("ask")(ask_command.ask)
app.command("nearest")(rows_commands.nearest)
app.command("clusters")(rows_commands.clusters)
app.command("report")(report_command.report)
app.command("export")(export_command.export)
app.command("evaluate")(evaluate_command.evaluate)
app.command("audit")(audit_command.audit)
app.add_typer(schema_commands.app, name="schema")
app.add_typer(key_commands.app, name="key")
ledger_commands.app.command("backup")(ledger_keeping.backup)
ledger_commands.app.command("restore")(ledger_keeping.restore)
ledger_commands.app.command("migrate")(ledger_keeping.migrate)
ledger_commands.app.command("clean")(ledger_keeping.clean)
ledger_commands.app.command("publish-head")(log_commands.publish_head)
ledger_commands.app.command("watch")(log_commands.watch)
ledger_commands.app.command("withdraw")(log_commands.withdraw)
ledger_commands.app.command("supersede")(log_commands.supersede)
ledger_commands.app.command("enrol")(operator_commands.enrol)
ledger_commands.app.command("dismiss")(operator_commands.dismiss)
ledger_commands.app.command("operators")(operator_commands.operators)
ledger_commands.app.command("require-two")(operator_commands.require_two)
ledger_commands.app.command("approve")(operator_commands.approve)
ledger_commands.app.command("grants")(operator_commands.grants)
app.add_typer(ledger_commands.app, name="ledger")


# What a required parameter names, and the command that makes one.
MADE_BY = {
    "--schema": "Draft one: adumbra schema draft DATA",
    "--ledger": "Make one: adumbra ledger init FILE",
    "--population": "Register one: adumbra ledger register NAME",
}
RARELY = 50_000  # new objects between two searches for garbage: imports make none, and each takes long


def main() -> NoReturn:
    """Run a command; an error of ours is one line (or one line per fault) on stderr and its exit code.

    Anything else is reported by its type: the text of a foreign exception may hold a private value.
    """
    gc.set_threshold(RARELY)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        command()()
    except AdumbraError as error:
        typer.echo("error: " + visible(error, keep="\n"), err=True)
        _say_what_is_charged(error)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, BrokenPipeError) as stop:
        sys.exit(planning.exit_code_of(stop))
    except Exception as error:  # noqa: BLE001 - the last fence before the terminal
        if (named := system_fault(error, "adumbra")) is not None:
            typer.echo(f"error: {named}", err=True)
            _say_what_is_charged(error)
            sys.exit(named.exit_code)
        kind = type(error).__name__
        place = _innermost_frame(error)
        withheld = "its text is withheld, it may hold data"
        typer.echo(f"error: internal fault ({kind} at {place}); {withheld}", err=True)
        _say_what_is_charged(error)
        sys.exit(1)
    sys.exit(0)


@cache
def command() -> Any:  # noqa: ANN401 - typer keeps these classes private
    """All commands with their options, put together once."""
    return given_once(naming_makers(plain_help(typer.main.get_command(app))))


def _terminate(_number: int, _frame: object) -> NoReturn:
    """SIGTERM stops as Ctrl-C does: what stays charged is said."""
    raise Terminated


def plain_help(command: Any, parent: Any = None) -> Any:  # noqa: ANN401 - typer keeps these classes private
    """The command with help where flags show no type and arguments are capitals, in all below it."""
    context = typer.Context(command, parent=parent, **command.context_settings)
    for parameter in command.get_params(context):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        elif parameter.param_type_name == "argument":
            parameter.metavar = parameter.name.upper()
    for below in getattr(command, "commands", {}).values():
        plain_help(below, context)
    return command


def naming_makers(command: Any) -> Any:  # noqa: ANN401 - as above
    """The command, whose message on a missing file or name says what makes one."""
    for parameter in command.params:
        for name in parameter.opts:
            if name in MADE_BY:  # an older typer asks the type, and says no more than what is missing
                parameter.get_missing_message = lambda ctx, said=MADE_BY[name]: said  # noqa: ARG005
    for below in getattr(command, "commands", {}).values():
        naming_makers(below)
    return command


def given_once(command: Any) -> Any:  # noqa: ANN401 - as above
    """The command, which refuses an option that is given twice: the last would win without a word."""
    for below in getattr(command, "commands", {}).values():
        given_once(below)
    right = command.make_parser

    def make_parser(context: Any) -> Any:  # noqa: ANN401
        parser = right(context)
        read = parser.parse_args

        def parse_args(args: list[str]) -> Any:  # noqa: ANN401
            found = read(args=args)
            options = [one for one in found[2] if one.param_type_name == "option"]
            for one in options:
                is_single = not (one.multiple or one.is_flag or one.count)
                if is_single and options.count(one) > 1:
                    context.fail(f"Option {max(one.opts, key=len)} is given twice; give it once.")
            return found

        parser.parse_args = parse_args
        return parser

    command.make_parser = make_parser
    return command


def _say_what_is_charged(error: BaseException) -> None:
    """Where the entry of a release stands that failed after its charge."""
    for note in planning.charge_notes(error):
        typer.echo(note, err=True)


def _innermost_frame(error: Exception) -> str:
    """Module and line of our own deepest frame: enough to report a defect, no value in it."""
    place = "unknown"
    trace = error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        if module.startswith("adumbra"):
            place = f"{module}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
