import { unreachable } from '../../base/errors.ts'
import { truncate } from '../../base/text.ts'
import type { EventOf } from '../events/events.ts'
import type { GateResult, GateTime, RoundOutcome } from '../events/outcome.ts'

/** Asks the agent to end its running round. It does not show numbers that are left. */
export const WIND_DOWN =
  'This stretch of work ends now. Bring what you are doing to a safe stop: leave nothing half-changed, start nothing new, note in MAIN.md and tasks.json what is done, what is not and what comes next, and end your turn.'

/** Asks a reviewer to end its review. */
export const WIND_DOWN_REVIEW =
  'This review ends now. Look at nothing more, and give your answer, in the shape that was asked for, from what you have seen.'

/** Replaces `WIND_DOWN` in a round whose last message is an answer. */
export const WIND_DOWN_ANSWER = `${WIND_DOWN} Give your answer in the shape that was asked for, from what you have done and seen.`

/** Input of a turn that continues after the connection to the model broke. */
export const CARRY_ON = 'The connection broke off. Go on where you were.'

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
  return own('The work was cut off before it came to a stop. Look at its state before you go on.')
}

/** Notice for the round after one that ended during a command. `command`: in the agent's words. */
export function commandCutOffNotice(command: string): Notice {
  return own(
    `The last round ended while this command still ran, and the command was ended with it: ${shortCommand(command)}. What it was to write may be missing. See what it has done, run it again if it is needed, and wait for its end before you end your turn.`,
  )
}

/** Notice for the round after one that left processes running. `commands`: their command lines. */
export function leftRunningNotice(commands: readonly string[]): Notice {
  return own(
    `The last round had left this running, and it was ended after the round: ${commands.map(shortCommand).join('; ')}. Nothing that a round starts outlives it; start it again if you need it.`,
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
  return own('A person interrupted the last round in the middle. Look at the state of the work before you go on.')
}

/** Notice for the round after a plan change. */
export function replannedNotice(): Notice {
  return own(
    'A person had the plan changed. MAIN.md and tasks.json are right as they are now, whatever was done before; read them again.',
  )
}

/** Notice of a person's message that no turn could accept, or whose round is retried. */
export function personNotice(text: string, about: Pick<EventOf<'steered'>, 'agent' | 'answers'> = {}): Notice {
  const { agent, answers } = about
  const to = agent === undefined ? '' : `, to ${agent}, who was at work for the round`
  const lead = answers === undefined ? 'A person says' : `A person answers ${answers}`
  return { from: 'person', text: `${lead}${to}: ${text}` }
}

/** Notice why the last round's claim was refused. */
export function refusalNotice(detail: string): Notice {
  return { ...own(`The work was claimed done and the claim was refused: ${detail}`), isOfProof: true }
}

/** Notice of a contract sentence that no longer holds. */
export function sentenceNotice(words: string): Notice {
  return own(`This held before the last round, and does not any more. ${words}`)
}

/** Notice of the repository settings that the last round changed. */
export function restoredNotice(paths: readonly string[]): Notice {
  return own(
    `These files of the repository's own settings were changed and have been put back: ${paths.join(', ')}. Leave them as they are.`,
  )
}

/** Notice of an unusable memory file, and why. */
export function memoryNotice(problem: EventOf<'memory-broken'>['problem']): Notice {
  const kept = problem.setAside === null ? '' : ` Its content is kept as ${problem.setAside}.`
  const restored = problem.restored ? ' The last good version is restored.' : ''
  return own(`${problem.file} could not be used: ${problem.problem}${kept}${restored} Bring it up to date first.`)
}

/** Notice for the round after one that changed the person's words. */
export function goalNotice({ file, how, restored }: EventOf<'goal-restored'>): Notice {
  const what =
    file === 'MAIN.md'
      ? `The goal in MAIN.md was ${how}${restored ? ', and has been put back' : ''}`
      : `${file} was ${how}${restored ? ', and has been put back' : ''}`
  return own(
    `${what}: it holds the person's own words, which nobody but them changes. Work towards all that they ask for, and look whether what was planned since then leaves out a part of it.`,
  )
}

/** Notice for the round after one that touched files of a gate. */
export function protectedNotice(files: EventOf<'protected-changed'>['files']): Notice {
  const list = files.map(({ path, how }) =>
    how === 'skipped' ? `${path} (tests marked to be skipped)` : `${path} (${how})`,
  )
  return own(
    `These files are what the work is checked with, and the last round touched them: ${list.join(', ')}. A reviewer will look at each such change before the work counts as done. Take back what was not necessary.`,
  )
}

/** Notice of a gate that did not pass; `hasWorked`: true if the session had changed files by then. */
export function gateNotice(when: GateTime, result: GateResult, hasWorked = false): Notice {
  const early = hasWorked ? 'when it was made a check of this work' : 'before any work was done'
  const since = when === 'before' ? ` It was like that ${early}.` : ''
  return { from: 'gate', text: `${describeGate(result)}${since}` }
}

const HOW_GATES_END = {
  passed: 'passes',
  'timed-out': 'did not come to its end in time',
  'not-started': 'could not be run',
  'broken-off': 'was broken off',
} as const

/** Describes a gate's result, with the end of its output. */
export function describeGate({ gate, status, exitCode, problem, output }: GateResult): string {
  const code = exitCode === null ? '' : ` (exit code ${exitCode})`
  const how = {
    ...HOW_GATES_END,
    flaky: `is flaky: it failed${code}, and passed when it was run again on the same files`,
    failed: `fails${code}`,
  }[status]
  const why = problem === null ? '' : ` ${problem}`
  const printed =
    output.trim() === '' ? '' : `\n  The end of what it printed:\n    ${output.trimEnd().replaceAll('\n', '\n    ')}\n `
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
      return own(`${which} was set to done, and is not taken for it: ${detail ?? 'nothing shows it.'}`)
    case 'parked':
      return own(`${which} is parked: ${detail ?? 'it failed too often.'} Leave it, and continue with the rest.`)
    case 'put-back':
      return own(
        `${which} had gone from the plan, and has been put back. A task that cannot be done is left open, with the reason in MAIN.md; only a person takes one out.`,
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
        `The last round hung and was ended: ${message ?? 'nothing came any more.'} Look at the state of the work, and do not wait in the same way again.`,
      )
    case 'refused':
      return own(`The last request was refused: ${message ?? 'no reason was given.'} Go about it in another way.`)
    case 'context-full':
      return own('The last round ran out of room. Note what you learn in MAIN.md as you go, and take smaller steps.')
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
      ? `The last ${rounds} rounds left all files as they were.`
      : `The same claim has been refused ${rounds} times, for the same reason.`
  const said = tried.map(words => `\n  - ${words.replaceAll('\n', '\n    ')}`).join('')
  const before = said === '' ? '' : ` This is what was said at their ends:${said}\n `
  return { ...own(`${seen}${before} ${demand(remedy)}`), isOfProof: true }
}

function demand(remedy: EventOf<'stuck'>['remedy']): string {
  switch (remedy) {
    case 'another-way':
      return 'What was tried does not get further. Find out what stands in the way, and choose another way. If a part cannot be done here, write down in MAIN.md what is missing, and do all of the rest.'
    case 'more-effort':
      return 'Another way was asked for, and nothing has changed. Think it through from the beginning: question what was taken for granted, test it, and then act.'
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
      return `It may not write to ${below}${name}: the sandbox lets rounds and gates write to the work directory alone, unless codex's config.toml, or -c, names more: sandbox_workspace_write.writable_roots = ["${below}${name}"]. The folder has to be there.`
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
    ? 'It ran without the network, where not even a port on this machine can be opened; if that is why it failed, give it network = true, and the rounds --network.'
    : null
}
