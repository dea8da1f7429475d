"""How bash, zsh and fish complete `encapnet`, from the flags themselves."""

import shlex

from trainers.cli.programs import COMMAND, PROGRAMS, load, one_line
from trainers.command.options import arguments, options

# A word for each flag: `--flag`, `--flag=`, `--flag=this|that`, and `@` for
# files.
_BASH = r"""# bash completion of encapnet
_encapnet() {
  local line="${COMP_LINE:0:COMP_POINT}" word before words option
  word="${line##*[[:space:]]}"
  before="${line%"$word"}"
  # What readline replaces begins after the last of its word breaks.
  local kept="${word%"$2"}" options
  read -ra words <<< "$before"
  COMPREPLY=()
  options="PROGRAMS --help --version"
  if ((${#words[@]} > 1)); then
    case "${words[1]}" in
CASES
    *) return ;;
    esac
  fi
  for option in $options; do
    if [[ $word == *=* && $option == "${word%%=*}="* ]]; then
      _encapnet_values "${option#*=}" "${word%%=*}=" "${word#*=}"
    elif [[ $word != *=* && ${option%%=*} == "$word"* ]]; then
      if [[ $option == @ ]]; then continue; fi
      if [[ $option == *=* ]]; then
        compopt -o nospace
        option="${option%%=*}="
      fi
      COMPREPLY+=("${option#"$kept"}")
    fi
  done
  if [[ $options == *" @" && $word != -* ]]; then
    _encapnet_values @ "" "$word"
  fi
}
_encapnet_values() {
  local head="$2" last="$3" value
  if [[ $3 == *:* ]]; then
    head+="${3%%:*}:"
    _encapnet_values @ "$head" "${3#*:}"
    return
  fi
  if [[ $1 == @ ]]; then
    compopt -o filenames
    while read -r value; do
      value="$head$value"
      COMPREPLY+=("${value#"$kept"}")
    done < <(compgen -f -- "$last")
    return
  fi
  if [[ $3 == *,* ]]; then
    head+="${3%,*},"
    last="${3##*,}"
  fi
  for value in ${1//|/ }; do
    if [[ $value == "$last"* ]]; then
      if [[ $value == *: ]]; then compopt -o nospace; fi
      value="$head$value"
      COMPREPLY+=("${value#"$kept"}")
    fi
  done
}
complete -F _encapnet encapnet"""

_ZSH = r"""#compdef encapnet
_encapnet() {
  local -a programs
  programs=(
PROGRAMS
  )
  if ((CURRENT == 2)); then
    _describe program programs
    _arguments '--help[Names the programs]' '--version[Shows the version]'
    return
  fi
  shift words
  ((CURRENT--))
  case $words[1] in
CASES
  esac
}
if [[ $funcstack[1] == _encapnet ]]; then
  _encapnet "$@"
else
  compdef _encapnet encapnet
fi"""


def bash() -> str:
    """Returns the script for bash."""
    cases = []
    for name in PROGRAMS:
        program = load(name)
        words = [
            f"--{each}{_bash_value(option)}"
            for option in options(program)
            for each in option.names
        ]
        own = arguments(program)
        words += ["@"] if own is None else own
        cases.append(f"    {name}) options={shlex.quote(' '.join(words))} ;;")
    script = _BASH.replace("CASES", "\n".join(cases))
    return script.replace("PROGRAMS", " ".join(PROGRAMS))


def _bash_value(option):
    if option.takes == "nothing":
        return ""
    return "=@" if option.takes == "file" else f"={'|'.join(option.words)}"


def zsh() -> str:
    """Returns the script for zsh."""
    names, cases = [], []
    for name in PROGRAMS:
        program = load(name)
        names.append(f"    {shlex.quote(f'{name}:{one_line(program)}')}")
        lines = [
            shlex.quote(_zsh_spec(each, option))
            for option in options(program)
            for each in option.names
        ]
        own = arguments(program)
        if own is None:
            lines.append("'*:file:_files'")
        elif own:
            lines.append(shlex.quote(f"1:argument:({' '.join(own)})"))
        joined = " \\\n      ".join(lines)
        cases.append(f"    {name}) _arguments \\\n      {joined} ;;")
    script = _ZSH.replace("CASES", "\n".join(cases))
    return script.replace("PROGRAMS", "\n".join(names))


def _zsh_spec(name, option):
    text = option.help
    for special in "\\[]:":
        text = text.replace(special, f"\\{special}")
    words = " ".join(option.words).replace(":", r"\:")
    value = {
        "nothing": "",
        "words": f"=:{name}:({words})",
        "list": f"=:{name}:_sequence compadd - {words}",
        "file": f"=:{name}:_files",
        "number": f"=:{name}: ",
    }[option.takes]
    equals, rest = value[:1], value[1:]
    return f"*--{name}{equals}[{text}]{rest}"


def fish() -> str:
    """Returns the script for fish."""
    lines = [f"complete -c {COMMAND} -f"]
    for name in PROGRAMS:
        program = load(name)
        lines.append(
            f"complete -c {COMMAND} -n __fish_use_subcommand -a {name} "
            f"-d {_fish_text(one_line(program))}"
        )
        seen = f"complete -c {COMMAND} -n '__fish_seen_subcommand_from {name}'"
        own = arguments(program)
        if own is None:
            lines.append(f"{seen} -F")
        elif own:
            lines.append(f"{seen} -a {_fish_text(' '.join(own))}")
        lines += [
            f"{seen} -l {each} {_fish_value(option)}"
            f"-d {_fish_text(option.help)}"
            for option in options(program)
            for each in option.names
        ]
    return "\n".join(lines)


def _fish_value(option):
    words = " ".join(option.words)
    return {
        "nothing": "",
        "words": f"-x -a {_fish_text(words)} ",
        "list": f"-x -a {_fish_text(f'(__fish_append , {words})')} ",
        "file": "-r ",
        "number": "-x ",
    }[option.takes]


def _fish_text(text):
    text = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
