import { existence, judgeGrep, judgeInterpreter, judgeReader, operandsOf, verdictOfTest } from './file-checks.ts'
import { type Argument, always, type Call, NEVER, REAL, type Verdict } from './verdict.ts'

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
