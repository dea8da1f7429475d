"""What shells make of the completion: each is run, and keys are typed."""

import os
import pty
import shutil
import subprocess

import pytest

from encapnet_tf.config import VARIANTS
from export.choices import FORMATS
from trainers.choices import LOGS
from trainers.cli.programs import PROGRAMS, load
from trainers.command.options import options
from trainers.command.shells import SHELLS

# In bash and zsh: Ctrl-A, Ctrl-E.
HOME, END = "\x01", "\x05"
INSERT_ALL = "\x1b*"  # bash only
COMPLETED = {
    "encapnet fi": "encapnet fit ",
    "encapnet fit --vari": "encapnet fit --variant=",
    "encapnet fit --variant=res": "encapnet fit --variant=resnet18 ",
    "encapnet fit --dataset=np": "encapnet fit --dataset=npz:",
    "encapnet fit --run_dir=pho": "encapnet fit --run_dir=photos/",
    "encapnet tune --dete": "encapnet tune --deterministic ",
    "encapnet export --formats=saved_model,tf": (
        "encapnet export --formats=saved_model,tflite "
    ),
    "encapnet fit --strategy=mu": "encapnet fit --strategy=multi_worker ",
    "encapnet predict pho": "encapnet predict photos/",
    "encapnet summary encapnet_t": "encapnet summary encapnet_tiny ",
    "encapnet completion b": "encapnet completion bash ",
    "encapnet fit --nothing_like_it": "encapnet fit --nothing_like_it",
}


class Terminal:
    """A shell as one types into it.

    Args:
        command: What starts it.
        prepare: The lines that it is given first.
        cwd: Where it is started.
    """

    def __init__(self, command, prepare, cwd):
        self._pid, self._file = pty.fork()
        if not self._pid:
            os.chdir(cwd)
            os.environ |= {"TERM": "dumb", "PS1": "$ ", "HOME": str(cwd)}
            os.execvp(command[0], command)
        self._shown = ""
        for line in prepare:
            self._type(f"{line}\n")
        # Not what it echoes of this.
        self._type("echo '<''ready>'\n")
        self._line_of("<ready>")

    def completed(self, keys):
        """Returns the line that comes of some keys, by having it printed."""
        self._type(f"{keys}{HOME}echo '<{END}>'\n")
        return self._line_of("<encapnet ").strip("<>")

    def close(self):
        os.close(self._file)
        os.waitpid(self._pid, 0)

    def _type(self, keys):
        os.write(self._file, keys.encode())

    def _line_of(self, start):
        while True:
            *lines, self._shown = self._shown.split("\r\n")
            found = [line for line in lines if line.startswith(start)]
            if found:
                return found[0]
            self._shown += os.read(self._file, 1 << 16).decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("completion")
    (path / "photos").mkdir()
    for shell, script in SHELLS.items():
        (path / f"encapnet.{shell}").write_text(script())
    return path


@pytest.fixture(scope="module")
def bash(folder):
    command = ["bash", "--norc", "--noprofile", "-i"]
    prepare = (
        "bind 'set enable-bracketed-paste off'",
        "bind 'set completion-query-items 0'",
        "source encapnet.bash",
    )
    terminal = Terminal(command, prepare, folder)
    yield terminal
    terminal.close()


@pytest.fixture(scope="module")
def zsh(folder):
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    prepare = (
        "bindkey -e; unset zle_bracketed_paste; setopt noautolist",
        "autoload -U compinit; compinit -D -u; source encapnet.zsh",
    )
    terminal = Terminal(["zsh", "-f", "-i"], prepare, folder)
    yield terminal
    terminal.close()


@pytest.mark.parametrize("typed", COMPLETED)
def test_bash_completes(bash, typed):
    assert bash.completed(f"{typed}\t") == COMPLETED[typed]


@pytest.mark.parametrize("typed", COMPLETED)
def test_zsh_completes(zsh, typed):
    # It takes the last sign back when the next key is no letter.
    assert zsh.completed(f"{typed}\t") == COMPLETED[typed].rstrip(" =/")


def test_bash_knows_all_flags_and_values_of_all_programs(bash):
    for name in PROGRAMS:
        known = options(load(name))
        flags = bash.completed(f"encapnet {name} --{INSERT_ALL}").split()[2:]
        assert set(flags) == {
            f"--{each}" + ("" if option.takes == "nothing" else "=")
            for option in known
            for each in option.names
        }
        for option in known:
            if option.words:
                start = f"encapnet {name} --{option.name}="
                line = bash.completed(f"{start}{INSERT_ALL}")
                values = line.removeprefix(start).split()
                assert sorted(values) == sorted(option.words)


def test_fish_knows_programs_flags_and_values(folder):
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")

    def ask(typed):
        asked = f"source encapnet.fish; complete -C '{typed}'"
        answer = subprocess.run(
            ["fish", "--no-config", "-c", asked], cwd=folder, check=True,
            capture_output=True, text=True,
        ).stdout  # fmt: skip
        return dict(line.partition("\t")[::2] for line in answer.splitlines())

    assert set(ask("encapnet ")) == set(PROGRAMS)
    assert ask("encapnet fi") == {"fit": "Trains a network"}
    found = ask("encapnet fit --variant=")
    assert set(found) == {f"--variant={name}" for name in VARIANTS}
    assert set(ask("encapnet fit --variant=encapnet_ti")) == {
        "--variant=encapnet_tiny"
    }
    ((flag, help_text),) = ask("encapnet fit --vari").items()
    assert flag.rstrip("=") == "--variant"
    assert help_text == "Network, see `trainers.summary`"
    listed = ask("encapnet export --formats=saved_model,")
    assert set(listed) == {f"--formats=saved_model,{name}" for name in FORMATS}
    assert "photos/" in ask("encapnet predict pho")
    assert "--run_dir=photos/" in ask("encapnet fit --run_dir=pho")
    assert set(ask("encapnet completion ")) == set(SHELLS)


def test_options_are_what_the_flags_are():
    known = {option.name: option for option in options(load("fit"))}
    assert known["variant"].words == tuple(VARIANTS)
    assert known["dataset"].words[-2:] == ("npz:", "folder:")
    assert known["strategy"].help.startswith("Where to compute: auto takes")
    takes = {name: option.takes for name, option in known.items()}
    assert takes["epochs"] == "number"
    assert (takes["log"], known["log"].words) == ("list", tuple(LOGS))
    assert takes["run_dir"] == "file"
    assert takes["deterministic"] == "nothing"
    assert known["help"].names == ("help",)
    assert known["flip"].names == ("flip", "noflip")
