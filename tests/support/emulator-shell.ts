import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * What runs in the pseudo-terminal: a shell with job control, as a person has one, which starts the program and keeps
 * the terminal open after its end, so that it can be seen what the program has left. A stopped program goes on with a
 * line that is typed, such as `fg`. Whatever ends the terminal ends the shell, and with it the program.
 */
const SCRIPT = `
folder=$1 mark=$2; shift 2
trap : INT TERM QUIT
tty >"$folder/tty"; stty -a >"$folder/stty"
set -m
bash -c 'echo $$ >"$0/pid.new"; mv "$0/pid.new" "$0/pid"; exec "$@"' "$folder" "$@"
code=$?
while jobs -s >"$folder/jobs"; [ -s "$folder/jobs" ]; do
  printf '\\033]7717;%s;stopped\\a' "$mark"
  read -r _ || exit
  fg >/dev/null
  code=$?
done
echo $code >"$folder/code.new"; mv "$folder/code.new" "$folder/code"
printf '\\033]7717;%s;ended\\a' "$mark" || exit
exec sleep 3600
`

/** The number of the private OSC sequence with which the shell tells that the program has stopped or ended. */
export const SHELL_OSC = 7717

/** How the program has ended. */
export interface EndInShell {
  /** As a shell tells it: after a signal 128 + its number. Null if the shell was gone before. */
  exitCode: number | null
}

/** The files through which the shell tells what happens. */
export interface Shell {
  program: string
  args: string[]
  /** What its sequences carry, so that a program cannot write them. */
  mark: string
  /** Path of the terminal's device. */
  tty(): string
  /** `stty -a` before the program was started. */
  stty(): string
  /** Of the program; null as long as it has not been started. */
  pid(): number | null
  /** Null while the program runs. */
  end(): EndInShell | null
}

/** How to run a command in it; its files are kept in a new folder below this one. */
export function shellFor(command: readonly string[], below: string): Shell {
  const folder = mkdtempSync(join(below, 'terminal-'))
  const mark = folder.slice(-6)
  const read = (name: string) => readFileSync(join(folder, name), 'utf8').trim()
  return {
    program: 'bash',
    args: ['--norc', '-c', SCRIPT, 'shell', folder, mark, ...command],
    mark,
    tty: () => read('tty'),
    stty: () => read('stty'),
    pid: () => (existsSync(join(folder, 'pid')) ? Number(read('pid')) : null),
    end: () => (existsSync(join(folder, 'code')) ? { exitCode: Number(read('code')) } : null),
  }
}
