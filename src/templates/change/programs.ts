/**
 * What the exit code of a command says. `real`: it depends on the work; `exists`: only on whether a file is there which the
 * change makes itself; `always`: it succeeds whatever the work is like; `never`: it fails whatever the work is like. `why`: a
 * clause, without its end.
 */
export type Verdict = { kind: 'real' | 'never' } | { kind: 'exists' | 'always'; why: string }

export const REAL: Verdict = { kind: 'real' }
export const NEVER: Verdict = { kind: 'never' }

/** A command that succeeds whatever the work is like. */
export function always(why: string): Verdict {
  return { kind: 'always', why }
}

/** Whether it says nothing about the work. */
export function isWeak(verdict: Verdict): verdict is Extract<Verdict, { why: string }> {
  return verdict.kind === 'exists' || verdict.kind === 'always'
}

/** Both have to succeed. */
export function both(first: Verdict, second: Verdict): Verdict {
  if (first.kind === 'never' || second.kind === 'never') return NEVER
  if (first.kind === 'real' || second.kind === 'real') return REAL
  return first.kind === 'exists' ? first : second
}

/** One of them has to succeed: the weaker one counts. */
export function either(first: Verdict, second: Verdict): Verdict {
  if (second.kind === 'never') return first
  return [first, second].find(({ kind }) => kind === 'always') ?? (isWeak(first) ? first : second)
}

/** It has to fail. That a file is not there any more says something. */
export function opposite(verdict: Verdict): Verdict {
  if (verdict.kind === 'always') return NEVER
  return verdict.kind === 'never' ? always('what "!" is before always fails, so that it always succeeds') : REAL
}

/** A word of a command. */
export interface Argument {
  /** What the shell makes of it, where that is known beforehand; its source where it is not. */
  text: string
  /** Whether `text` is known: nothing in it is put in by the shell. */
  isLiteral: boolean
  /** Whether what is put in comes from looking at something. */
  isReal: boolean
}

/** What a program is called with, and what is known there. */
export interface Call {
  name: string
  args: readonly Argument[]
  /** What it reads from its standard input: a text that the line holds itself, names of files, anything else; null: nothing. */
  input: 'constant' | 'names' | 'real' | null
  /** Whether it stands behind a pipe. */
  isPiped: boolean
  around: Around
}

/** What is known where a program is called. */
export interface Around {
  /** Files that the change makes. */
  made: readonly string[]
  /** What the command before this one came to. */
  last: Verdict
  /** What runs in the background; null: nothing. */
  job: Verdict | null
  /** What a text comes to that a shell is given. */
  script(text: string): Verdict
  /** From here on, a failure ends the line. */
  stopsAtFailure(stops: boolean): void
  /** From here on, a pipe fails where a part of it does. */
  pipesFail(fail: boolean): void
  /** Nothing that follows counts, for this reason. */
  spoil(why: string): void
}

/** What a program and its words come to. Programs that are not known are taken for real. Pure but for what it tells `around`. */
export function verdictOfCall(call: Call): Verdict {
  const name = programName(call.name)
  const known = { ...call, name }
  const wrapper = WRAPPERS.get(name)
  if (wrapper !== undefined && !(name === 'command' && /^-[vV]$/.test(call.args[0]?.text ?? ''))) {
    return unwrapped(known, wrapper)
  }
  if (SUCCEED.has(name)) return always(`\`${name}\` succeeds whatever the work is like`)
  if (LOOKUPS.has(name)) return always(`\`${name}\` only looks whether a program is installed`)
  if (VERSIONED.has(name) && call.args.length === 1 && VERSION.test(call.args[0]?.text ?? '')) {
    return always(`it only asks \`${name}\` about itself`)
  }
  return PROGRAMS.get(name)?.(known) ?? REAL
}

/** The names that a call has as its program, those behind `env`, `xargs` and the like too. */
export function programNames(name: string, args: readonly Argument[]): string[] {
  const program = programName(name)
  const behind = WRAPPERS.has(program) || program === 'find' ? args.map(({ text }) => programName(text)) : []
  return [program, ...behind]
}

/** A program by its name where it lies in a folder of the system; `busybox` and the like are wrappers. */
function programName(name: string): string {
  return name.replace(/^\/(?:usr\/(?:local\/)?)?s?bin\//, '')
}

/** Succeed always, or change something and look at nothing. */
const SUCCEED = new Set(
  `true : echo printf sleep pwd date cal whoami id hostname uname uptime export readonly declare typeset local unset cd pushd popd dirs
  touch mkdir rmdir rm cp mv ln chmod chown install tee tr basename dirname seq yes env printenv clear history umask ulimit shopt shift
  times jobs disown bg fg pkill killall open xdg-open say bc arch nproc logname tty groups sync reset tput banner figlet cowsay
  logger notify-send break continue unalias mktemp truncate df free ps top read mapfile readarray`.split(/\s+/),
)

/** Look for a program. */
const LOOKUPS = new Set(['which', 'type', 'whereis', 'hash', 'command'])

/** Tools that a project does not make. */
const VERSIONED = new Set(
  `node nodejs npm npx pnpm yarn bun deno tsc python python3 pip pip3 pytest poetry uv ruby bundle gem rake perl php composer go cargo rustc
  java javac mvn gradle dotnet make cmake gcc g++ clang git docker curl wget jq jest vitest mocha eslint prettier bash sh`.split(
    /\s+/,
  ),
)
const VERSION = /^(?:--?version|-v|-V|version|--?help|-h|help)$/

/** Programs that run the one behind them: options that have a value of their own, and how many words stand before the program. */
interface Wrapper {
  valued: RegExp
  before: number
}

const PLAIN: Wrapper = { valued: /^$/, before: 0 }

const WRAPPERS: ReadonlyMap<string, Wrapper> = new Map([
  ['env', { valued: /^(?:-u|-C|--unset|--chdir)$/, before: 0 }],
  ['cross-env', PLAIN],
  ['time', PLAIN],
  ['nice', { valued: /^-n$/, before: 0 }],
  ['ionice', { valued: /^-[cn]$/, before: 0 }],
  ['nohup', PLAIN],
  ['setsid', PLAIN],
  ['stdbuf', { valued: /^-[ioe]$/, before: 0 }],
  ['exec', { valued: /^-a$/, before: 0 }],
  ['command', PLAIN],
  ['builtin', PLAIN],
  ['busybox', PLAIN],
  ['timeout', { valued: /^(?:-k|-s|--kill-after|--signal)$/, before: 1 }],
  ['xargs', { valued: /^-[aEdILnPs]$/, before: 0 }],
  ['npx', { valued: /^(?:-p|--package)$/, before: 0 }],
  ['bunx', PLAIN],
])

function unwrapped(call: Call, { valued, before }: Wrapper): Verdict {
  const { args } = call
  let at = 0
  while (at < args.length && /^(?:-|\w+=)/.test(args[at]?.text ?? '')) at += valued.test(args[at]?.text ?? '') ? 2 : 1
  const [program, ...rest] = args.slice(at + before)
  if (program === undefined) return always(`\`${call.name}\` runs no program`)
  if (!program.isLiteral && !program.text.includes('/')) return always(NAME_UNKNOWN)
  // What `xargs` reads are words for its program, which has no input itself.
  const input = call.name === 'xargs' ? { input: null, isPiped: false } : {}
  return verdictOfCall({ ...call, ...input, name: program.text, args: rest })
}

/** Why a program that is not named cannot be judged. */
export const NAME_UNKNOWN = 'which program it runs is only known when it runs; write its name out'

type Judge = (call: Call) => Verdict

const SHELLS = ['sh', 'bash', 'dash', 'zsh', 'ksh', 'ash', 'mksh']
const GREPS = ['grep', 'egrep', 'fgrep', 'zgrep', 'rg', 'ag', 'ack']
const READERS =
  `cat head tail less more wc sort uniq cut nl tac rev od xxd hexdump base64 stat file ls dir vdir tree du strings readlink realpath
  column fold fmt sed awk gawk mawk find fd sha256sum sha1sum md5sum cksum bat expand paste join comm`.split(/\s+/)
const INTERPRETERS = `node nodejs bun deno tsx ts-node python python2 python3 pypy pypy3 perl ruby php`.split(/\s+/)

const PROGRAMS: ReadonlyMap<string, Judge> = new Map<string, Judge>([
  ['false', () => NEVER],
  ['exit', judgeExit],
  ['return', judgeExit],
  ['kill', ({ args: [first] }) => (first?.text === '-0' ? REAL : always('`kill` says nothing about the work'))],
  ['wait', ({ args, around }) => (args.length === 0 || around.job === null ? always('`wait` succeeds') : around.job)],
  ['set', judgeSet],
  ['trap', judgeTrap],
  ['alias', redefines],
  ['enable', redefines],
  ['eval', judgeEval],
  ['source', judgeSource],
  ['.', judgeSource],
  ['test', ({ args, around }) => verdictOfTest(args, around)],
  ['[', ({ args, around }) => verdictOfTest(args.at(-1)?.text === ']' ? args.slice(0, -1) : args, around)],
  ['expr', judgeExpression],
  ['let', judgeExpression],
  ['git', judgeGit],
  ['make', judgeMake],
  ['gmake', judgeMake],
  ['npm', judgePackages],
  ['pnpm', judgePackages],
  ['yarn', judgePackages],
  ['diff', judgeComparison],
  ['cmp', judgeComparison],
  ...SHELLS.map((name): [string, Judge] => [name, judgeShell]),
  ...GREPS.map((name): [string, Judge] => [name, judgeGrep]),
  ...READERS.map((name): [string, Judge] => [name, judgeReader]),
  ...INTERPRETERS.map((name): [string, Judge] => [name, judgeInterpreter]),
])

function judgeExit({ name, args: [code], around }: Call): Verdict {
  if (code === undefined || code.text === '$?') return around.last
  if (!code.isLiteral) return code.isReal ? REAL : always(`what \`${name}\` ends with comes from no command`)
  return Number(code.text) % 256 === 0 ? always(`\`${name} ${code.text}\` is a success whatever was before it`) : NEVER
}

function judgeSet({ args, around }: Call): Verdict {
  for (const [at, { text }] of args.entries()) {
    const named = args[at + 1]?.text
    if (/^[-+]o$/.test(text) || /^[-+][a-z]*o$/.test(text)) {
      if (named === 'errexit') around.stopsAtFailure(text.startsWith('-'))
      if (named === 'pipefail') around.pipesFail(text.startsWith('-'))
    }
    if (/^[-+][a-z]*e/.test(text)) around.stopsAtFailure(text.startsWith('-'))
  }
  return always('`set` succeeds')
}

function judgeTrap({ args, around }: Call): Verdict {
  const [action] = args
  const isUnknown = action !== undefined && !action.isLiteral && !/\s/.test(action.text)
  if (isUnknown || /\b(?:exit|exec|return)\b/.test(action?.text ?? '')) around.spoil('its `trap` decides how it ends')
  return always('`trap` succeeds')
}

function redefines({ name, around }: Call): Verdict {
  around.spoil(`\`${name}\` makes other programs of what it names`)
  return always(`\`${name}\` succeeds`)
}

function judgeEval({ args, around }: Call): Verdict {
  if (args.some(({ isLiteral }) => !isLiteral)) return always('what `eval` runs is only known when it runs')
  return around.script(args.map(({ text }) => text).join(' '))
}

function judgeSource({ args: [file] }: Call): Verdict {
  return file === undefined || file.text === '/dev/null' ? always('it runs nothing') : REAL
}

function judgeShell({ name, args, input, isPiped, around }: Call): Verdict {
  const at = args.findIndex(({ text }) => /^-[a-z]*c$/.test(text))
  const file = args.find(
    ({ text }, index) => !/^[-+]/.test(text) && !/^[-+][a-z]*[oO]$/.test(args[index - 1]?.text ?? ''),
  )
  if (at === -1 || (file !== undefined && args.indexOf(file) < at)) {
    if (file !== undefined) return REAL
    return input === null && !isPiped
      ? always(`\`${name}\` is given nothing to run`)
      : always(`what \`${name}\` runs comes from a pipe; write it out`)
  }
  const script = args.slice(at + 1).find(({ text }) => !/^[-+]/.test(text))
  if (script === undefined) return NEVER
  if (!script.isLiteral && !/\s/.test(script.text)) return always(`what \`${name}\` runs is only known when it runs`)
  const flags = args.slice(0, at + 1).map(({ text }) => text)
  const options = [
    ...(flags.some(flag => /^-[a-z]*e/.test(flag)) ? ['set -e'] : []),
    ...(args.some(({ text }) => text === 'pipefail') ? ['set -o pipefail'] : []),
  ]
  return around.script([...options, script.text].join('; '))
}

/** What `test` and its words come to. `[[ … ]]` is one, too. */
export function verdictOfTest(args: readonly Argument[], around: Pick<Around, 'made'>): Verdict {
  const or = splitAt(args, '-o')
  if (or.length > 1) return or.map(part => verdictOfTest(part, around)).reduce(either)
  const and = splitAt(args, '-a')
  if (and.length > 1) return and.map(part => verdictOfTest(part, around)).reduce(both)
  const [first, second, third] = args
  if (first === undefined) return NEVER
  if (first.text === '!' && args.length > 1) return opposite(verdictOfTest(args.slice(1), around))
  if (args.length === 2 && second !== undefined && FILE_TEST.test(first.text)) return existence([second], around)
  if (args.length === 3 && third !== undefined && /^-(?:nt|ot|ef)$/.test(second?.text ?? ''))
    return existence([first, third], around)
  if (args.some(({ isReal }) => isReal)) return REAL
  if (args.every(({ isLiteral }) => isLiteral) && isFalse(args.map(({ text }) => text))) return NEVER
  return always('what it compares is nothing that the work makes')
}

const FILE_TEST = /^-[abcdefghkprsuwxLSOGN]$/

/** `-o` and `-a` between two expressions; where they are an operator of a file, nothing is before them. */
function splitAt(args: readonly Argument[], operator: string): (readonly Argument[])[] {
  const at = args.findIndex(
    ({ text, isLiteral }, index) => index > 0 && isLiteral && text === operator && index < args.length - 1,
  )
  return at === -1 ? [args] : [args.slice(0, at), ...splitAt(args.slice(at + 1), operator)]
}

function isFalse(words: readonly string[]): boolean {
  const [first = '', operator, third = ''] = words
  if (words.length === 1) return first === ''
  if (words.length === 2) return first === '-n' ? operator === '' : first === '-z' && operator !== ''
  if (operator === '=' || operator === '==') return first !== third
  if (operator === '!=') return first === third
  if (operator === '-eq') return Number(first) !== Number(third)
  return operator === '-ne' && Number(first) === Number(third)
}

/** A command that succeeds as soon as these files are there. */
function existence(files: readonly Argument[], { made }: Pick<Around, 'made'>): Verdict {
  const found = files.find(file => !file.isReal && mayBeMade(file, made))
  if (found === undefined) return REAL
  const what = found.isLiteral ? JSON.stringify(found.text) : 'a file'
  return {
    kind: 'exists',
    why: `it only looks whether ${what} is there, which the change makes itself; look at what is in it`,
  }
}

/** Whether a path may be that of a file which the change makes, or of a folder of one. */
function mayBeMade({ text, isLiteral }: Argument, made: readonly string[]): boolean {
  if (!isLiteral || /^[./]*$/.test(text)) return true
  const [before = '', glob] = plainPath(text).split(/(?=[*?[{])/, 2)
  return made.map(plainPath).some(path => {
    if (path === '') return false
    if (glob !== undefined) return path.startsWith(before) || path.includes(`/${before}`)
    return (
      path === before ||
      path.endsWith(`/${before}`) ||
      before.endsWith(`/${path}`) ||
      `/${path}`.includes(`/${before}/`)
    )
  })
}

function plainPath(path: string): string {
  return path
    .replaceAll(/\/\.?(?=\/)/g, '')
    .replace(/^(?:\.\/)+/, '')
    .replace(/\/+$/, '')
}

function judgeExpression({ name, args }: Call): Verdict {
  return args.some(({ isReal }) => isReal) ? REAL : always(`\`${name}\` reckons with nothing that the work makes`)
}

/** Commands of git that succeed whatever the work tree is like. */
const GIT_SUCCEEDS = new Set(
  `status add log show branch commit stash rev-parse config remote tag init fetch checkout restore switch reset describe shortlog blame
  ls-files ls-tree version help gc reflog worktree clean rev-list`.split(/\s+/),
)

function judgeGit(call: Call): Verdict {
  const { args } = call
  let at = 0
  while (at < args.length && args[at]?.text.startsWith('-')) at += /^-[cC]$/.test(args[at]?.text ?? '') ? 2 : 1
  const [command, ...rest] = args.slice(at)
  const has = (...flags: string[]) => rest.some(({ text }) => flags.includes(text))
  if (command === undefined) return always('`git` is given nothing to do')
  if (command.text === 'grep') return judgeGrep({ ...call, name: 'git grep', args: rest, input: null })
  if (command.text === 'ls-files' && has('--error-unmatch')) return existence(operandsOf(rest), call.around)
  if (command.text === 'diff' && has('--exit-code', '--quiet', '--check')) return REAL
  const succeeds = command.text === 'diff' || GIT_SUCCEEDS.has(command.text)
  return succeeds ? always(`\`git ${command.text}\` succeeds whatever the work is like`) : REAL
}

function judgeMake({ name, args }: Call): Verdict {
  const isIdle = args.some(
    ({ text }) =>
      /^(?:-[a-zA-Z]*[nit][a-zA-Z]*|--(?:dry-run|just-print|recon|ignore-errors|touch))$/.test(text) &&
      !/^-[Cfj]/.test(text),
  )
  return isIdle ? always(`\`${name}\` with these options does not fail where a check does`) : REAL
}

function judgePackages(call: Call): Verdict {
  const { name, args } = call
  const [command, script] = args.filter(({ text }) => !text.startsWith('-'))
  if (command === undefined) return name === 'yarn' ? REAL : always(`\`${name}\` is given nothing to run`)
  if (/^(?:run|run-script)$/.test(command.text) && script === undefined)
    return always(`\`${name} run\` only lists scripts`)
  if (/^(?:exec|x|dlx)$/.test(command.text))
    return unwrapped({ ...call, args: args.slice(args.indexOf(command) + 1) }, PLAIN)
  const isIdle =
    /^(?:help|config|get|root|prefix|bin|fund|version|view|info|search|docs|whoami|ping|pkg|init|completion)$/.test(
      command.text,
    )
  return isIdle ? always(`\`${name} ${command.text}\` says nothing about the work`) : REAL
}

function judgeComparison({ name, args }: Call): Verdict {
  const [first, second] = operandsOf(args)
  return first !== undefined && first.text === second?.text && first.isLiteral
    ? always(`\`${name}\` compares a file with itself`)
    : REAL
}

function operandsOf(args: readonly Argument[]): readonly Argument[] {
  return args.filter(({ text }) => !/^-./.test(text) && !/^[+-]?\d+[kKmMgG]?$/.test(text))
}

/** Patterns that fit any text that is not empty. */
const ANYTHING = /^(?:\^?\.?[*+]?\$?|\.\*?|\[\s\S\][*+]?|\\S|\\?.\*|\^|\$)$/

function judgeGrep({ name, args, input, around }: Call): Verdict {
  const at = args.findIndex(({ text }) => text === '-e' || text === '--regexp' || text === '-f')
  const operands = args.filter(
    ({ text }, index) =>
      !/^-./.test(text) && !/^(?:-[ABCm]|--(?:include|exclude)\S*)$/.test(args[index - 1]?.text ?? ''),
  )
  const pattern = at === -1 ? operands[0] : args[at + 1]
  if (pattern === undefined) return NEVER
  const files = operands.filter(operand => operand !== pattern)
  if (files.length === 0 && input === 'constant')
    return always(`\`${name}\` looks at a text that the line holds itself`)
  if (files.length === 0 && input === 'names') return amongNames(pattern, around)
  return pattern.isLiteral && ANYTHING.test(pattern.text) && files.length > 0 ? existence(files, around) : REAL
}

/** `ls | grep -q a.txt`: whether a file of that name is there. */
function amongNames(pattern: Argument, { made }: Around): Verdict {
  const plain = pattern.text.replaceAll(/[\\^$]/g, '')
  const isMade = made.some(path => {
    const name = path.slice(path.lastIndexOf('/') + 1)
    return plain.includes(name) || name.includes(plain) || path.includes(plain)
  })
  if (!isMade && !ANYTHING.test(pattern.text)) return REAL
  return {
    kind: 'exists',
    why: 'it only looks whether a file is there, which the change makes itself; look at what is in it',
  }
}

function judgeReader(call: Call): Verdict {
  const { name, args, isPiped, around } = call
  const texts = args.map(({ text }) => text)
  if (name === 'sort' && texts.some(text => /^-(?:c|C|-check)/.test(text))) return REAL
  if (/sum$/.test(name) && texts.some(text => /^(?:-c|--check)$/.test(text))) return REAL
  if (/awk$/.test(name) && texts.some(text => /\bexit\b/.test(text))) return REAL
  if (name === 'sed' && texts.some(text => /[qQ]\s*[1-9]/.test(text))) return REAL
  if (isPiped)
    return always(
      `the exit code of the pipe is that of \`${name}\`, which succeeds whatever is before it; leave out that part`,
    )
  if (name === 'find' && texts.includes('+')) return REAL
  if (name === 'find' || name === 'fd') return always(`\`${name}\` succeeds whether it finds anything or not`)
  const operands = operandsOf(args)
  return operands.length === 0 ? always(`\`${name}\` succeeds whatever the work is like`) : existence(operands, around)
}

/** By which option code is given to an interpreter. */
const CODE_OPTIONS: readonly (readonly [program: RegExp, option: RegExp])[] = [
  [/^(?:node|nodejs|bun|tsx|ts-node)$/, /^(?:-e|-p|-pe|--eval|--print)$/],
  [/^(?:python|pypy)/, /^-[a-zA-Z]*c$/],
  [/^(?:perl|ruby)$/, /^-[a-zA-Z]*[eE]$/],
  [/^php$/, /^-r$/],
  [/^deno$/, /^eval$/],
]

/** What code prints, and that it ends with success: what is left says whether it can look at anything, and whether it can fail. */
const HARMLESS =
  /\b(?:console\.\w+|process\.stdout\.write|sys\.stdout\.write|import sys\b|from sys import exit|process\.exitCode\s*=\s*0|(?:(?:process|sys)\.|os\._)?exit(?:\s*\(\s*(?:0|true|True)?\s*\)|\s+0\b|(?=\s*(?:;|$))))/g
const CAN_LOOK =
  /\b(?:require\w*|import|from|load\w*|include\w*|open\w*|read\w*|fetch|eval|exec\w*|system|spawn\w*|subprocess|global\w*|Function|module|fs|os|sys|https?|http2|net|vm|child_process|process|Deno|Bun|WebSocket|this|File|IO|Dir|Path|pathlib|is_\w+|file_\w+|fopen|glob|use|do|argv|env|ENV|STDIN|stdin)\b|[`$]|-[a-z]\s*TEXT/
const CAN_FAIL = /\b(?:exit\w*|throw|raise|assert\w*|die|abort|unless)\b/

/** What looks whether a file is there, and what does more than that. */
const LOOKS =
  /\b(?:existsSync|accessSync|statSync|lstatSync|access|stat|exists|isfile|is_file|isdir|is_dir|file_exists)\b|\b(?:exist|exists|file)\?/
const DOES_MORE =
  /\b(?:read\w*|open|spawn\w*|exec\w*|fetch|get|listen|size|includes|match\w*|load\w*|parse|run\w*|system|subprocess|createServer)\b|\bimport\b|\brequire\s*\(\s*OWN|\.test\(|===|!==/

function judgeInterpreter({ name, args, around }: Call): Verdict {
  const option = CODE_OPTIONS.find(([program]) => program.test(name))?.[1]
  const at = option === undefined ? -1 : args.findIndex(({ text }) => option.test(text))
  const code = at === -1 ? undefined : args[at + 1]
  if (code === undefined) return REAL
  const texts: string[] = []
  const plain = code.text
    .replaceAll(/\b(?:from (?:os|pathlib|os\.path) import \w+|import (?:os|sys|pathlib)\b(?:\.path)?)/g, '')
    .replaceAll(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\$])*`/g, quoted => {
      const text = quoted.slice(1, -1)
      texts.push(text)
      return /^\.{1,2}\//.test(text) ? 'OWN' : 'TEXT'
    })
  const left = plain.replaceAll(HARMLESS, '').replace(/(?:\/\/|#).*$/, '')
  if (!CAN_LOOK.test(left) && !CAN_FAIL.test(left)) {
    return always(`the code that \`${name}\` is given looks at nothing`)
  }
  if (!LOOKS.test(plain) || DOES_MORE.test(plain)) return REAL
  return existence(texts.map(literal), around)
}

function literal(text: string): Argument {
  return { text, isLiteral: true, isReal: false }
}
