import { unreachable } from '../../base/errors.ts'
import { truncate } from '../../base/text.ts'
import type { EventOf } from '../events/events.ts'
import type { GateResult, GateTime, RoundOutcome } from '../events/outcome.ts'

/** Asks the agent to end its running round. It does not show numbers that are left. */
export const WIND_DOWN =
  'Your time for this round is over. Stop safely: leave nothing half-changed, and start nothing new. Note in MAIN.md and tasks.json what is done, what is not, and what comes next. Then end your turn.'

/** Asks a reviewer to end its review. */
export const WIND_DOWN_REVIEW =
  'Your time for this review is over. Read nothing more. Answer now, in the requested format, from what you have seen.'

/** Replaces `WIND_DOWN` in a round whose last message is an answer. */
export const WIND_DOWN_ANSWER = `${WIND_DOWN} Answer in the requested format, from what you have done and seen.`

/** Input of a turn that continues after the connection to the model broke. */
export const CARRY_ON = 'The connection was interrupted. Continue where you were.'

/** A message at the start of the next round's input. `text`: its exact words. */
export interface Notice {
  from: NoticeSource
  text: string
  /** True: it is about a claim, or about rounds without progress. */
  isOfProof?: true
}

/** Source of a notice's words: a person, a gate or hook (result and output), or codemachine. */
type NoticeSource = 'person' | 'gate' | 'codemachine'

/** Notice for the round after a crash of codemachine. */
export function cutOffNotice(): Notice {
  return own('The last round was cut off. Look at the state of the work before you continue.')
}

/** Notice for the round after one that ended during a command. `command`: in the agent's words. */
export function commandCutOffNotice(command: string): Notice {
  return own(
    `When the last round ended, this command was still running, so codemachine ended it: ${shortCommand(command)}. Its output may be incomplete. Check what it did, and run it again if you need it. Wait for its end before you end your turn.`,
  )
}

/** Notice for the round after one that left processes running. `commands`: their command lines. */
export function leftRunningNotice(commands: readonly string[]): Notice {
  return own(
    `The last round left this running, and codemachine ended it: ${commands.map(shortCommand).join('; ')}. codemachine ends everything that a round leaves running. Start it again if you need it.`,
  )
}

/** Removes the shell that codex puts around a command. */
function shortCommand(command: string): string {
  const inner = /^\S*sh -l?c (['"])([\s\S]*)\1$/.exec(command)?.[2] ?? command
  return `\`${truncate(inner.replace(/\s+/g, ' ').trim(), COMMAND_CHARACTERS)}\``
}

const COMMAND_CHARACTERS = 200

/** Notice for the round after one that a person interrupted. */
export function interruptedNotice(): Notice {
  return own('A person interrupted the last round. Look at the state of the work before you continue.')
}

/** Notice for the round after a plan change. */
export function replannedNotice(): Notice {
  return own('A person had the plan changed. Read MAIN.md and tasks.json again: only their current content counts.')
}

/** Notice of a person's message that no turn could accept, or whose round is retried. */
export function personNotice(text: string, about: Pick<EventOf<'steered'>, 'agent' | 'answers'> = {}): Notice {
  const { agent, answers } = about
  const to = agent === undefined ? '' : `, to ${agent}, an agent of that round`
  const lead = answers === undefined ? 'A person says' : `A person answers ${answers}`
  return { from: 'person', text: `${lead}${to}: ${text}` }
}

/** Notice why the last round's claim was refused. */
export function refusalNotice(detail: string): Notice {
  return { ...own(`codemachine did not accept the claim that the work is done: ${detail}`), isOfProof: true }
}

/** Notice of a contract sentence that no longer holds. */
export function sentenceNotice(words: string): Notice {
  return own(`The last round broke this requirement. ${words}`)
}

/** Notice of the repository settings that the last round changed. */
export function restoredNotice(paths: readonly string[]): Notice {
  return own(
    `These settings files of the repository were changed, and codemachine restored them: ${paths.join(', ')}. Do not change them.`,
  )
}

/** Notice of an unusable memory file, and why. */
export function memoryNotice(problem: EventOf<'memory-broken'>['problem']): Notice {
  const kept = problem.setAside === null ? '' : ` Its content is saved as ${problem.setAside}.`
  const restored = problem.restored ? ' codemachine restored the last good version.' : ''
  return own(`${problem.file} could not be used: ${problem.problem}${kept}${restored} Update it first.`)
}

/** Notice for the round after one that changed the person's words. */
export function goalNotice({ file, how, restored }: EventOf<'goal-restored'>): Notice {
  const what =
    file === 'MAIN.md'
      ? `The goal in MAIN.md was ${how}${restored ? ', and codemachine restored it' : ''}`
      : `${file} was ${how}${restored ? ', and codemachine restored it' : ''}`
  return own(
    `${what}. These are the person's own words: only the person changes them. Work on everything that they ask for. Check whether your plan leaves out a part.`,
  )
}

/** Notice for the round after one that touched files of a gate. */
export function protectedNotice(files: EventOf<'protected-changed'>['files']): Notice {
  const list = files.map(({ path, how }) =>
    how === 'skipped' ? `${path} (marks tests as skipped)` : `${path} (${how})`,
  )
  return own(
    `The last round changed these files, which check the work: ${list.join(', ')}. A reviewer looks at each of these changes before the work counts as done. Undo those that were not necessary.`,
  )
}

/** Notice of a gate that did not pass; `hasWorked`: true if the session had changed files by then. */
export function gateNotice(when: GateTime, result: GateResult, hasWorked = false): Notice {
  const early = hasWorked ? 'when it became a check of this work' : 'before any work was done'
  const since = when === 'before' ? ` It was the same ${early}.` : ''
  return { from: 'gate', text: `${describeGate(result)}${since}` }
}

const HOW_GATES_END = {
  passed: 'passes',
  'timed-out': 'did not finish in time',
  'not-started': 'could not be run',
  'broken-off': 'was interrupted',
} as const

/** Describes a gate's result, with the end of its output. */
export function describeGate({ gate, status, exitCode, problem, output }: GateResult): string {
  const code = exitCode === null ? '' : ` (exit code ${exitCode})`
  const how = {
    ...HOW_GATES_END,
    flaky: `is flaky: it failed${code}, then passed on the same files`,
    failed: `fails${code}`,
  }[status]
  const why = problem === null ? '' : ` ${problem}`
  const printed =
    output.trim() === '' ? '' : `\n  The end of its output:\n    ${output.trimEnd().replaceAll('\n', '\n    ')}\n `
  return `The check \`${gate}\` ${how}.${why}${printed}`
}

/** Tells the next round of a hook that refuses the round before it. */
export function hookNotice(run: HookRun): Notice {
  return { from: 'gate', text: describeHook(run) }
}

/** Describes why a hook refuses: its output, or else how it ended. */
export function describeHook({ hook, status, exitCode, problem, output }: HookRun): string {
  if (status === 'failed' && output.trim() !== '') return `the hook ${hook} says: ${output.trim()}`
  const how = status === 'failed' ? `fails (exit code ${exitCode})` : HOW_GATES_END[status]
  return [`the hook ${hook} ${how}.`, ...(problem === null ? [] : [problem])].join(' ')
}

type HookRun = Omit<EventOf<'hook-ended'>, 'type'>

/** Notice of a judged task; null: nothing to tell. */
export function taskNotice({ task, name, verdict, detail }: EventOf<'task-judged'>): Notice | null {
  const which = `${task} (${name})`
  switch (verdict) {
    case 'refused':
      return own(`${which} is marked done, but codemachine does not accept that: ${detail ?? 'nothing shows it.'}`)
    case 'parked':
      return own(`${which} is parked: ${detail ?? 'it failed too often.'} Leave it, and continue with the rest.`)
    case 'put-back':
      return own(
        `${which} was missing from the plan, and codemachine restored it. Only a person removes a task. If you cannot do it, leave it open and give the reason in MAIN.md.`,
      )
    case 'changed':
    case 'edited':
    case 'done':
    case 'failed':
    case 'reopened':
    case 'added':
    case 'removed':
      return null
    default:
      return unreachable(verdict)
  }
}

/** Notice of how the last round ended; null: nothing to tell. */
export function outcomeNotice({ class: end, message }: RoundOutcome): Notice | null {
  switch (end) {
    case 'silent':
      return own(
        `The last round hung, and codemachine ended it: ${message ?? 'no more output came.'} Look at the state of the work, and do not wait in the same way again.`,
      )
    case 'refused':
      return own(`The last request was refused: ${message ?? 'no reason was given.'} Try another approach.`)
    case 'context-full':
      return own('The context of the last round was full. Take smaller steps, and note in MAIN.md what you learn.')
    case 'worked':
    case 'interrupted':
    case 'window':
    case 'throttle':
    case 'network':
    case 'quota':
    case 'auth':
    case 'config':
    case 'crashed':
      return null
    default:
      return unreachable(end)
  }
}

/** Notice after rounds without progress. `tried`: their own last words, latest last. */
export function stuckNotice({ why, rounds, remedy }: EventOf<'stuck'>, tried: readonly string[]): Notice {
  const seen =
    why === 'nothing-changed'
      ? `The last ${rounds} rounds changed no file.`
      : `The same claim was refused ${rounds} times, for the same reason.`
  const said = tried.map(words => `\n  - ${words.replaceAll('\n', '\n    ')}`).join('')
  const before = said === '' ? '' : ` Their last messages:${said}\n `
  return { ...own(`${seen}${before} ${demand(remedy)}`), isOfProof: true }
}

function demand(remedy: EventOf<'stuck'>['remedy']): string {
  switch (remedy) {
    case 'another-way':
      return 'This approach makes no progress. Find the cause, and try another approach. If a part cannot be done here, write in MAIN.md what is missing, and do all of the rest.'
    case 'more-effort':
      return 'You were asked for another approach, and nothing has changed. Start from the beginning: question your assumptions, test them, and then act.'
    default:
      return unreachable(remedy)
  }
}

function own(text: string): Notice {
  return { from: 'codemachine', text }
}

/** The project's settings file; a round's change to it takes effect in the next run. */
export const PROJECT_FILE = 'codemachine.toml'

/**
 * Explains a failed write below the person's home, where tools keep caches: a sentence with the folder. Null: the output
 * shows no such failure. @param home absolute; `directory`: the work directory, which may be inside it
 */
export function readOnlyHome(output: string, { home, directory }: { home: string; directory: string }): string | null {
  if (!/read-only file system|\bEROFS\b/i.test(output)) return null
  const below = `${home.replace(/\/+$/, '')}/`
  for (let at = output.indexOf(below); at !== -1; at = output.indexOf(below, at + below.length)) {
    const [name = ''] = /^[^/\s'"`:;,()<>|]+/.exec(output.slice(at + below.length, at + below.length + MOST_NAME)) ?? []
    const isInside = `${directory}/`.startsWith(`${below}${name}/`)
    if (name !== '' && !isInside)
      return `It may not write to ${below}${name}: in the sandbox, rounds and gates write only to the work directory. To allow this folder, create it and add it to codex's config.toml, or with -c: sandbox_workspace_write.writable_roots = ["${below}${name}"].`
  }
  return null
}

const MOST_NAME = 255

/** Error texts of programs without a socket or a host. */
const REFUSED =
  /\bE(?:PERM|NETUNREACH|NOTFOUND|AI_AGAIN)\b|operation not permitted|network is unreachable|could not resolve host|name resolution/i

/**
 * Explains a command that failed without the network: a sentence if its output suggests it; null: it does not. Without the
 * network not even a local port can be opened, which nobody expects (docs/inside/codex.md).
 */
export function networkRefused(output: string): string | null {
  return REFUSED.test(output)
    ? 'It ran without the network, so it could not even open a port on this machine. If that is the cause, give the gate network = true, and the rounds --network.'
    : null
}
