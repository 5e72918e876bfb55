import { isAbsolute, relative } from 'node:path'
import { clipEnd } from '../../base/text.ts'
import type { EventOf } from '../../core/events/events.ts'
import type { RoundClass, RoundOutcome } from '../../core/events/outcome.ts'
import { oneLine, safeText } from './safe-text.ts'

const SHELL = /(?:^|\/)(?:ba|z|da)?sh$/
const OPTION = /^-l?c$/
// More than an event stores of a command.
const MOST_COMMAND_CHARACTERS = 128 * 1024

/** Returns the command as it was written: without codex's `/bin/bash -lc '…'` around it. */
export function shownCommand(command: string): string {
  if (command.length > MOST_COMMAND_CHARACTERS) return command
  const [shell, option, script, ...more] = shellWords(command, 4) ?? []
  if (shell === undefined || option === undefined || script === undefined || more.length > 0) return command
  return SHELL.test(shell) && OPTION.test(option) ? script : command
}

/**
 * Returns the first `most` words of a command line as a POSIX shell reads them, separated by single spaces. Null if a quote
 * is open, or the shell would expand something: `$HOME`, `*`, `;`.
 */
function shellWords(line: string, most: number): string[] | null {
  const words = ['']
  const part = new RegExp(PART, 'sy')
  for (let start = 0; start < line.length; start = part.lastIndex) {
    part.lastIndex = start
    const found = part.exec(line)
    if (found === null) return null
    const [all, single, double, escaped] = found
    if (all !== ' ') words[words.length - 1] += single ?? double?.replace(ESCAPED, '$1') ?? escaped ?? all
    else if (words.push('') > most) return words.slice(0, most)
  }
  return words
}

// No character fits two of these in any order, so the time is linear in the text's length.
const PART = / |'([^']*)'|"([^"\\$`]*(?:\\.[^"\\$`]*)*)"|\\([^\n])|[^\s'"\\$`|&;<>()*?[#~{}!^]+/s
// Between double quotes a backslash before any other character is one.
const ESCAPED = /\\(?:\n|([$`"\\]))/g

const PATH_CHARS = 300

/** Returns a path for display: relative to the work directory if it is inside. */
export function shownPath(path: string, directory: string): string {
  const way = relative(directory, path)
  const inside = isAbsolute(path) && way !== '' && !way.startsWith('..') && !isAbsolute(way)
  return oneLine(inside ? way : path, PATH_CHARS)
}

const MOST_CLIPPED_CHARACTERS = 8000

/** The first `limit` lines of a text (and at most 8,000 characters), then `rest` if some were left out. */
export function clipLines(text: string, limit: number, rest: string): string {
  const trimmed = text.trim()
  const lines = trimmed.split('\n')
  if (lines.length <= limit && trimmed.length <= MOST_CLIPPED_CHARACTERS) return trimmed
  const shown = clipEnd(lines.slice(0, limit).join('\n'), MOST_CLIPPED_CHARACTERS)
  const left = lines.length - limit
  return `${shown}\n[… ${left > 0 ? `${left} more ${left === 1 ? 'line' : 'lines'}; ` : ''}${rest}]`
}

/** Returns the first entries of a list, and how many of `count` are missing: `… and 3 more`. */
export function withRest(shown: readonly string[], count: number): string[] {
  const left = count - shown.length
  return left > 0 ? [...shown, `… and ${left} more`] : [...shown]
}

/** The phrases of one door (shell, screen, page) for a person's possible actions. */
export interface Hints {
  goOn: string
  /** For a session that was cut off. */
  resume: string
  /** For a plan that waits for a person. */
  startBuild: string
  endWait: string
  /** For a call, which accepts no commands. */
  endWaitOfCall: string
  /** For an open decision. */
  decide: string
  changePlan: string
  /** For the full text of warnings. */
  warnings: string
  /** @param question as a person names it: `20261121_1/Q1` */
  answer(question: string): string
}

const CTRL_C = 'Ctrl+C in the terminal where it was started ends it'

/** In a shell. */
export const SHELL_HINTS: Hints = {
  goOn: 'codemachine unpause continues',
  resume: 'codemachine resume continues',
  startBuild: 'codemachine decide accept starts the build, codemachine replan "…" changes the plan',
  endWait: 'codemachine retry ends the wait',
  endWaitOfCall: CTRL_C,
  decide: 'answer with codemachine decide',
  changePlan: 'codemachine replan changes it again',
  warnings: 'details: codemachine status; fixes: codemachine doctor',
  answer: question => `codemachine questions answer ${question} "…" answers it`,
}

/** On the screen, through keys. */
export const KEY_HINTS: Hints = {
  goOn: 'Esc shows the choices',
  resume: '/resume continues',
  startBuild: 'Esc offers to start the build, or to change the plan',
  endWait: 'Esc offers to end the wait',
  endWaitOfCall: CTRL_C,
  decide: 'Esc shows the question',
  changePlan: 'Ctrl+C changes it again',
  warnings: 'details: /status; fixes: /doctor',
  answer: question => `/answer ${question.replace(/^.*\//, '')} … answers it`,
}

/** Hints that depend on a session's state. */
export type StateHints = Pick<Hints, 'goOn' | 'resume' | 'startBuild' | 'endWait' | 'endWaitOfCall' | 'decide'>

/** On the browser page, through its buttons. */
export const PAGE_HINTS: StateHints = {
  goOn: '“Continue” continues',
  resume: '“Resume” continues',
  startBuild: 'start it, or change the plan',
  endWait: '“Retry now” ends the wait',
  endWaitOfCall: CTRL_C,
  decide: 'choose an answer',
}

/** The weight of an event for a person; views show it as a colour. */
export type Tone = 'plain' | 'quiet' | 'strong' | 'good' | 'warning' | 'bad'

/** An event in a view. Safe to write to a terminal; no text in it has a newline. */
export interface Description {
  text: string
  /** Lines that belong to it. */
  more: readonly string[]
  tone: Tone
  /** End of `text` with the result, which is never cut for lack of space; left out: none. */
  end?: string
  /** Tone of these lines; left out: the same. */
  moreTone?: Tone
}

/** Describes a text that may have several lines and may be foreign. */
export function describe(text: string, tone: Tone = 'plain'): Description {
  const [first = '', ...more] = safeText(text).split('\n')
  return { text: first, more, tone }
}

const MOST_OUTPUT_CHARACTERS = 64 * 1024
const ESC = String.fromCharCode(0x1b)
const BEL = String.fromCharCode(0x07)
// Colours and movements (CSI), titles and links (OSC), and the choice of a character set.
const SEQUENCES = new RegExp(
  `${ESC}(?:\\[[0-?]*[ -/]*[@-~]|\\][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\\\)|[()][0-9A-B])`,
  'g',
)

/**
 * Returns the last 64 Ki characters of a command's output as safe lines, without blank ones at both ends. It drops colours;
 * of an overwritten line, as in progress bars, it keeps the last state.
 */
export function safeOutput(output: string): string[] {
  const plain = output.slice(-MOST_OUTPUT_CHARACTERS).replace(SEQUENCES, '')
  const lines = plain.split(/\r?\n/).map(line => safeText(lastState(line)).trimEnd())
  const first = lines.findIndex(line => line !== '')
  return first === -1 ? [] : lines.slice(first, lines.findLastIndex(line => line !== '') + 1)
}

function lastState(line: string): string {
  const states = line.split('\r')
  return states.findLast(state => state.trim() !== '') ?? ''
}

const MESSAGE_CHARS = 2000

const WORDS: Readonly<Record<RoundClass, string>> = {
  worked: 'worked',
  interrupted: 'interrupted',
  'context-full': 'the context was full',
  refused: 'refused',
  window: 'usage limit',
  throttle: 'the server is busy',
  network: 'network',
  quota: 'no credit',
  auth: 'login',
  config: 'configuration',
  silent: 'silence',
  crashed: 'codex crashed',
}

/** Part of a round's outcome that decides its name. */
interface NamedEnd {
  class: RoundClass
  status?: number | undefined
}

/** Names a class of failure: `usage limit`. */
export function wordsForClass(outcome: NamedEnd): string {
  return isAccessRefused(outcome) ? 'the server refused access (403)' : WORDS[outcome.class]
}

/** Returns whether the server refused access (HTTP 403). Its class is `network`, because it may pass. */
export function isAccessRefused({ class: end, status }: NamedEnd): boolean {
  return end === 'network' && status === 403
}

/**
 * Describes how a round ended, with codex's own words if any, as part of a sentence: `usage limit: You have hit your limit`
 */
export function wordsForCause(outcome: RoundOutcome): string {
  const words = wordsForClass(outcome)
  if (outcome.message === null) return words
  return `${words}: ${oneLine(outcome.message, MESSAGE_CHARS).replace(/(?<!\.)\.$/, '')}`
}

/** Does the same as `wordsForCause`, but shorter if a wait follows and says the rest: `usage limit`. */
export function wordsForRoundEnd(outcome: RoundOutcome): string {
  return ALWAYS_WAITED_FOR.has(outcome.class) ? wordsForClass(outcome) : wordsForCause(outcome)
}

const ALWAYS_WAITED_FOR: ReadonlySet<RoundClass> = new Set(['window', 'throttle', 'network'])

/** Describes the settings that a running session applies, in a line. */
export function describeTaken(changes: EventOf<'settings-taken'>['changes']): string {
  const told = changes.map(({ setting, from, to, place }) => {
    const how = from === null && to === null ? 'changed' : `is ${to ?? 'not set'} (it was ${from ?? 'not set'})`
    return `${setting} ${how}: ${place}`
  })
  return `new settings: ${told.join('; ')}`
}
