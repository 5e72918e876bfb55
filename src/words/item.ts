import { unreachable } from '../base/errors.ts'
import { ASK_HUMAN, RUN_SHELL } from '../core/contracts/shell.ts'
import { ASK_PERSON } from '../core/contracts/tools.ts'
import { countChangedLines, type Item, type ItemFileChange, type ItemStatus } from '../core/events/items.ts'
import type { PlanStep } from '../core/state/state.ts'
import { clipLines, type Description, describe, shownCommand, shownPath, withRest } from './names.ts'
import { formatCount, formatDuration, formatNumber } from './numbers.ts'
import { oneLine } from './safe-text.ts'

const MESSAGE_LINES = 40
const COMMAND_CHARS = 300
const OUTPUT_LINES = 3
const LINE_CHARS = 300
const THOUGHT_CHARS = 120

/** Where an item was seen: the session, and its work directory, which paths are shown relative to. */
export interface ItemPlace {
  session: string
  directory: string
}

/** Calls that do what an event of its own tells. */
const TOLD_BY_EVENT: ReadonlySet<string> = new Set([RUN_SHELL, ASK_HUMAN])

/** What a person is told of something that codex did; null if nothing. */
export function describeItem(item: Item, { session, directory }: ItemPlace): Description | null {
  const rest = `all of it: codemachine logs ${session} --json`
  switch (item.kind) {
    // The input of a round is codemachine's own; what a person adds comes as `steered`.
    case 'user-message':
      return null
    case 'agent-message':
      return item.text.trim() === ''
        ? null
        : describe(clipLines(item.text, MESSAGE_LINES, rest), messageTone(item.phase))
    case 'reasoning':
      return describeThought(item.text)
    case 'command':
      return describeCommand(item)
    case 'file-change':
      return describeChanges(item, directory)
    case 'plan':
      return describe(`plan  ${clipLines(item.text, MESSAGE_LINES, rest)}`)
    case 'web-search':
      return describe(`web search  ${oneLine(item.query, LINE_CHARS)}`)
    case 'mcp-tool-call':
      return describeCall(`${item.server}/${item.tool}`, item, item.error)
    case 'tool-call':
      // The question that it asks is told by an event of its own.
      if (item.tool === ASK_PERSON || (item.status === 'completed' && TOLD_BY_EVENT.has(item.tool))) return null
      return describeCall(item.command === undefined ? item.tool : `${item.tool}: ${item.command}`, item, null)
    case 'sub-agent':
      return describeSubAgent(item)
    case 'image':
      return describe(`image${item.path === null ? '' : `  ${oneLine(item.path, LINE_CHARS)}`}`)
    case 'compaction':
      return describe('codex compacted its context', 'quiet')
    case 'unknown':
      return describe(`codex did something this version does not know: ${oneLine(item.codexType, LINE_CHARS)}`, 'quiet')
    default:
      return unreachable(item)
  }
}

function messageTone(phase: 'commentary' | 'final-answer' | null): 'plain' | 'strong' {
  return phase === 'final-answer' ? 'strong' : 'plain'
}

/** The first line of a thought, which codex writes as a heading. */
function describeThought(text: string): Description | null {
  const first = text.trim().split('\n', 1)[0]?.replace(EMPHASIS, '$1') ?? ''
  return first === '' ? null : describe(`thinks  ${oneLine(first, THOUGHT_CHARS)}`, 'quiet')
}

const EMPHASIS = /\*{1,3}(?=\S)([^*]+)(?<=\S)\*{1,3}/g

function describeCommand(item: Extract<Item, { kind: 'command' }>): Description {
  const command = `$ ${oneLine(shownCommand(item.command), COMMAND_CHARS)}`
  if (item.cutOffMs !== undefined) return describe(`${command}  → ${wordsForCutOff(item.cutOffMs)}`, 'warning')
  const end = item.exitCode === null ? item.status : `exit ${item.exitCode}`
  const line = `${command}  → ${end}${inTime(item.durationMs)}`
  const worked = item.exitCode === null ? item.status === 'completed' : item.exitCode === 0
  return worked ? describe(line) : describe([line, ...lastLines(item.output)].join('\n'), 'warning')
}

/** What is said of a command in the place of its exit code that ended with its round, after so many ms. */
export function wordsForCutOff(ms: number): string {
  return `still running after ${formatDuration(ms)}, ended with the round`
}

// Test runners colour what they print; a colour that is not obeyed is only noise.
const COLOURS = new RegExp(`${String.fromCharCode(0x1b)}\\[[\\d;:]*m`, 'g')

function lastLines(output: string): string[] {
  return output
    .replace(COLOURS, '')
    .split(/\r?\n/)
    .filter(line => line.trim() !== '')
    .slice(-OUTPUT_LINES)
    .map(line => oneLine(line, LINE_CHARS))
}

function describeCall(
  name: string,
  { status, durationMs }: { status: ItemStatus; durationMs: number | null },
  error: string | null,
): Description {
  const why = error === null ? '' : `: ${oneLine(error, LINE_CHARS)}`
  return describe(
    `tool ${oneLine(name, LINE_CHARS)}  → ${status}${inTime(durationMs)}${why}`,
    status === 'failed' || status === 'declined' ? 'warning' : 'plain',
  )
}

function describeSubAgent(item: Extract<Item, { kind: 'sub-agent' }>): Description {
  const many = item.threads.length > 1 ? ` (${formatCount(item.threads.length, 'thread')})` : ''
  const end = item.status === 'completed' ? '' : `  → ${item.status}`
  const prompt = item.prompt === null ? '' : `: ${oneLine(item.prompt, LINE_CHARS)}`
  return describe(
    `sub-agent ${oneLine(item.action, LINE_CHARS)}${many}${end}${prompt}`,
    end === '' ? 'plain' : 'warning',
  )
}

/** Codex reports 0 for a command that ended at once. */
function inTime(durationMs: number | null): string {
  return !durationMs ? '' : ` in ${formatDuration(durationMs)}`
}

const MOST_FILES = 20

/** The files of a file change, one a line: `✎ src/a.ts (+12 −3)`. Paths are shown relative to `directory`. */
function describeChanges(item: Extract<Item, { kind: 'file-change' }>, directory: string): Description {
  const applied = item.status === 'completed'
  const lines = item.changes
    .slice(0, MOST_FILES)
    .map(change => `✎ ${describeChange(change, directory)}${applied ? '' : `  → ${item.status}`}`)
  const left = item.changes.length - lines.length
  if (left > 0) lines.push(`✎ … and ${left} more`)
  return describe(lines.join('\n') || '✎ no file', applied ? 'plain' : 'warning')
}

function describeChange(change: ItemFileChange, directory: string): string {
  const path = shownPath(change.path, directory)
  const { added, removed, cut } = countLines(change)
  const more = cut ? ', and more' : ''
  const [plus, minus] = [formatNumber(added), formatNumber(removed)]
  switch (change.change) {
    case 'add':
      return `new ${path} (+${plus}${more})`
    case 'delete':
      return `deleted ${path}`
    case 'update':
      return `${path} (+${plus} −${minus}${more})`
    case 'move':
      return `${path} → ${shownPath(change.movedTo ?? '?', directory)} (+${plus} −${minus}${more})`
    default:
      return unreachable(change.change)
  }
}

/** Lines that a change adds and removes; `cut`: there are more, of which an earlier version has kept no number. */
export function countLines({ change, diff, lines }: ItemFileChange): { added: number; removed: number; cut: boolean } {
  if (lines !== undefined) return { ...lines, cut: false }
  const kept = diff.replace(MORE_FILES, '').replace(MORE_CHARACTERS, '')
  return { ...countChangedLines(change, kept), cut: MORE_CHARACTERS.test(diff.replace(MORE_FILES, '')) }
}

const MORE_CHARACTERS = /\n\[… \d+ more characters\]$/
const MORE_FILES = /\n\[… \d+ more files?\]$/

/**
 * What a person is told, on one line, of something that an agent did which was given a task; null if nothing: what it
 * says and thinks is not, for its result is told when it ends.
 */
export function describeAgentItem(item: Item, place: ItemPlace): Description | null {
  if (!TOLD.has(item.kind)) return null
  const told = describeItem(item, place)
  if (told === null) return null
  const { text, more, tone } = told
  return { text: item.kind === 'file-change' ? [text, ...more.map(withoutSign)].join(', ') : text, more: [], tone }
}

const TOLD: ReadonlySet<Item['kind']> = new Set([
  'command',
  'file-change',
  'web-search',
  'mcp-tool-call',
  'tool-call',
  'sub-agent',
])

function withoutSign(line: string): string {
  return line.replace(/^✎ /, '')
}

const MOST_STEPS = 20
const STEP_CHARS = 80
const MARKS = { completed: '[x]', 'in-progress': '[>]', pending: '[ ]' }

/** The steps of a plan on one line: `[x] read  [>] write  [ ] test`. */
export function describePlan(steps: readonly PlanStep[]): string {
  const shown = steps.slice(0, MOST_STEPS).map(({ step, status }) => `${MARKS[status]} ${oneLine(step, STEP_CHARS)}`)
  return withRest(shown, steps.length).join('  ')
}

/** A step of a plan that has changed. `gone`: it is not in the plan any more. `isNew`: it was not in the plan before. */
export interface StepChange {
  status: PlanStep['status'] | 'gone'
  step: string
  isNew: boolean
}

/** What has changed from one plan of a round to the next, in its order; null if they have no step in common, so that all is new. */
export function changedSteps(before: readonly PlanStep[], after: readonly PlanStep[]): StepChange[] | null {
  const statuses = new Map(before.map(({ step, status }) => [step, status]))
  const kept = new Set(after.map(({ step }) => step))
  if (!after.some(({ step }) => statuses.has(step))) return null
  const changed = after.filter(({ step, status }) => statuses.get(step) !== status)
  return [
    ...changed.map(({ step, status }) => ({ status, step, isNew: !statuses.has(step) })),
    ...before
      .filter(({ step }) => !kept.has(step))
      .map(({ step }) => ({ status: 'gone' as const, step, isNew: false })),
  ]
}

/** How far a plan is: `3 of 5`. */
export function planProgress(steps: readonly PlanStep[]): string {
  const done = steps.filter(({ status }) => status === 'completed').length
  return `${formatNumber(done)} of ${formatNumber(steps.length)}`
}

/** The steps of a plan that have changed, on one line: `[x] read · 1 of 3  [>] write`; all of it if all is new; null if none has. */
export function describePlanChange(before: readonly PlanStep[], after: readonly PlanStep[]): string | null {
  const changed = changedSteps(before, after)
  if (changed === null) return describePlan(after)
  if (changed.length === 0) return null
  const last = changed.findLast(({ status }) => status === 'completed')
  const shown = changed.slice(0, MOST_STEPS).map(change => {
    const { status, step, isNew } = change
    const mark = status === 'gone' ? 'left out:' : `${MARKS[status]}${isNew ? ' new:' : ''}`
    return `${mark} ${oneLine(step, STEP_CHARS)}${change === last ? ` · ${planProgress(after)}` : ''}`
  })
  return withRest(shown, changed.length).join('  ')
}
