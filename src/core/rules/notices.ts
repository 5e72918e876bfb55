import { unreachable } from '../../base/errors.ts'
import type { EventOf } from '../events/events.ts'
import type { GateResult, GateTime, RoundOutcome } from '../events/outcome.ts'

/** What the agent is asked in the middle of a round that has to come to its end. Numbers that are left are not shown. */
export const WIND_DOWN =
  'This stretch of work ends now. Bring what you are doing to a safe stop: leave nothing half-changed, start nothing new, note in MAIN.md and tasks.json what is done, what is not and what comes next, and end your turn.'

/** What a reviewer is asked when its review has to come to its end. */
export const WIND_DOWN_REVIEW =
  'This review ends now. Look at nothing more, and give your answer, in the shape that was asked for, from what you have seen.'

/** What a turn is started with that goes on after the connection to the model broke. */
export const CARRY_ON = 'The connection broke off. Go on where you were.'

/** What the round after a crash of codemachine is told. */
export function cutOffNotice(): string {
  return 'The work was cut off before it came to a stop. Look at its state before you go on.'
}

/** What the round after one that a person interrupted is told. */
export function interruptedNotice(): string {
  return 'A person interrupted the last round in the middle. Look at the state of the work before you go on.'
}

/** What the round after a change of plan is told. */
export function replannedNotice(): string {
  return 'A person had the plan changed. MAIN.md and tasks.json are right as they are now, whatever was done before; read them again.'
}

export function personNotice(text: string): string {
  return `${PERSON_SAYS}${text}`
}

/** Whether a notice holds a person's own words. */
export function isFromPerson(notice: string): boolean {
  return notice.startsWith(PERSON_SAYS)
}

const PERSON_SAYS = 'A person says: '

export function refusalNotice(detail: string): string {
  return `The work was claimed done and the claim was refused: ${detail}`
}

export function restoredNotice(paths: readonly string[]): string {
  return `These files of the repository's own settings were changed and have been put back: ${paths.join(', ')}. Leave them as they are.`
}

export function memoryNotice(problem: EventOf<'memory-broken'>['problem']): string {
  const kept = problem.setAside === null ? '' : ` What it held was kept as ${problem.setAside}.`
  const restored = problem.restored ? ' The last good version has been put back.' : ''
  return `${problem.file} could not be used: ${problem.problem}${kept}${restored} Bring it up to date first.`
}

/** What a round is told that comes after one which touched what a gate is made of. */
export function protectedNotice(files: EventOf<'protected-changed'>['files']): string {
  const list = files.map(({ path, how }) =>
    how === 'skipped' ? `${path} (tests marked to be skipped)` : `${path} (${how})`,
  )
  return `These files are what the work is checked with, and the last round touched them: ${list.join(', ')}. A reviewer will look at each such change before the work counts as done. Take back what was not necessary.`
}

/** What a round is told of a gate that did not pass. */
export function gateNotice(when: GateTime, result: GateResult): string {
  const since = when === 'before' ? ' It was like that before any work was done.' : ''
  return `${describeGate(result)}${since}`
}

/** How a gate came out, with the end of what it printed. */
export function describeGate({ gate, status, exitCode, problem, output }: GateResult): string {
  const how = {
    passed: 'passes',
    flaky: `is flaky: it failed${exitCode === null ? '' : ` (exit code ${exitCode})`}, and passed when it was run again on the same files`,
    failed: `fails${exitCode === null ? '' : ` (exit code ${exitCode})`}`,
    'timed-out': 'did not come to its end in time',
    'not-started': 'could not be run',
    'broken-off': 'was broken off',
  }[status]
  const why = problem === null ? '' : ` ${problem}`
  const printed =
    output.trim() === '' ? '' : `\n  The end of what it printed:\n    ${output.trimEnd().replaceAll('\n', '\n    ')}\n `
  return `The check \`${gate}\` ${how}.${why}${printed}`
}

/** What the next round is told of a task that was judged; null if nothing. */
export function taskNotice({ task, name, verdict, detail }: EventOf<'task-judged'>): string | null {
  const which = `${task} (${name})`
  switch (verdict) {
    case 'refused':
      return `${which} was set to done, and is not taken for it: ${detail ?? 'nothing shows it.'}`
    case 'parked':
      return `${which} is parked: ${detail ?? 'it failed too often.'} Leave it, and go on with the rest.`
    case 'put-back':
      return `${which} had gone from the plan, and has been put back. A task that cannot be done is left open, with the reason in MAIN.md; only a person takes one out.`
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

/** What the next round has to know of how this one ended; null if nothing. */
export function outcomeNotice({ class: end, message }: RoundOutcome): string | null {
  switch (end) {
    case 'silent':
      return `The last round hung and was ended: ${message ?? 'nothing came any more.'} Look at the state of the work, and do not wait in the same way again.`
    case 'refused':
      return `The last request was refused: ${message ?? 'no reason was given.'} Go about it in another way.`
    case 'context-full':
      return 'The last round ran out of room. Note what you learn in MAIN.md as you go, and take smaller steps.'
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

/** What a round is told when those before it got nowhere. `tried`: what they said of themselves, the last one last. */
export function stuckNotice({ why, rounds, remedy }: EventOf<'stuck'>, tried: readonly string[]): string {
  const seen =
    why === 'nothing-changed'
      ? `The last ${rounds} rounds left all files as they were.`
      : `The same claim has been refused ${rounds} times, for the same reason.`
  const said = tried.map(words => `\n  - ${words.replaceAll('\n', '\n    ')}`).join('')
  const before = said === '' ? '' : ` This is what was said at their ends:${said}\n `
  return `${seen}${before} ${demand(remedy)}`
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

/** The project's own settings: a change of it by a round counts from the next run on. */
export const PROJECT_FILE = 'codemachine.toml'

/** What a person is told, in a `warning`, of the first round that changed it. */
export function settingsChanged(round: number): string {
  return `Round ${round} changed ${PROJECT_FILE}; what it says now counts from the next run on.`
}

/** The round that such a warning is about; null if it is about something else. */
export function roundOfSettingsChanged(warning: string): number | null {
  const round = Number(/^Round (\d{1,9}) /.exec(warning)?.[1])
  return warning === settingsChanged(round) ? round : null
}

/** How programs say that the system refused them a socket, or that they found no host. */
const REFUSED =
  /\bE(?:PERM|NETUNREACH|NOTFOUND|AI_AGAIN)\b|operation not permitted|network is unreachable|could not resolve host|name resolution/i

/**
 * What to say of a command that failed without the network: a sentence where its output reads as if it had wanted it.
 * Without it not even a port on this machine can be opened, which nobody expects (docs/codex.md).
 */
export function networkRefused(output: string): string | null {
  return REFUSED.test(output)
    ? 'It ran without the network, where not even a port on this machine can be opened; if that is why it failed, give it network = true, and the rounds --network.'
    : null
}
