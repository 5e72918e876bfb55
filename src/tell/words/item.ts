import { relative } from 'node:path'
import { unreachable } from '../../base/errors.ts'
import { countChangedLines, type Item, type ItemFileChange, type ItemStatus } from '../../core/events/items.ts'
import { ASK_HUMAN, RUN_SHELL } from '../../core/shapes/shell.ts'
import { ASK_PERSON } from '../../core/shapes/tools.ts'
import type { PlanStep } from '../../core/state/state.ts'
import { clipLines, type Description, describe, shownCommand, shownPath, withRest } from './names.ts'
import { formatCount, formatDuration, formatNumber } from './numbers.ts'
import { oneLine } from './safe-text.ts'

const MESSAGE_LINES = 40
const COMMAND_CHARS = 300
const OUTPUT_LINES = 3
const LINE_CHARS = 300
const THOUGHT_CHARS = 120

/** Origin of an item: the session, and its work directory, the base of shown paths. */
export interface ItemPlace {
  session: string
  directory: string
}

/** Calls whose effect has its own event. */
const TOLD_BY_EVENT: ReadonlySet<string> = new Set([RUN_SHELL, ASK_HUMAN])

/** Describes an action of codex for a person; null: nothing to tell. */
export function describeItem(item: Item, { session, directory }: ItemPlace): Description | null {
  const rest = `all of it: codemachine logs ${session} --json`
  switch (item.kind) {
    // Codemachine wrote the input of a round; a person's messages come as `steered`.
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
      // Its question has its own event.
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

/** Describes a thought by its first line, which codex writes as a heading. */
function describeThought(text: string): Description | null {
  const first = text.trim().split('\n', 1)[0]?.replace(EMPHASIS, '$1') ?? ''
  return first === '' ? null : describe(`thinks  ${oneLine(first, THOUGHT_CHARS)}`, 'quiet')
}

const EMPHASIS = /\*{1,3}(?=\S)([^*]+)(?<=\S)\*{1,3}/g

function describeCommand(item: Extract<Item, { kind: 'command' }>): Description {
  const command = `$ ${oneLine(shownCommand(item.command), COMMAND_CHARS)}`
  if (item.cutOffMs !== undefined) return withEnd(describe(command, 'warning'), `  → ${wordsForCutOff(item.cutOffMs)}`)
  const end = `  → ${item.exitCode === null ? item.status : `exit ${item.exitCode}`}${inTime(item.durationMs)}`
  const worked = item.exitCode === null ? item.status === 'completed' : item.exitCode === 0
  if (worked) return withEnd(describe(command), end)
  return withEnd(describe([command, ...lastLines(item.output)].join('\n'), 'warning'), end)
}

function withEnd(description: Description, end: string): Description {
  return { ...description, text: description.text + end, end }
}

/** Returns the words, instead of an exit code, for a command that ended with its round after `ms`. */
export function wordsForCutOff(ms: number): string {
  return `still running after ${formatDuration(ms)}, ended with the round`
}

// Test runners print colours; here they are only noise.
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
  const tone = status === 'failed' || status === 'declined' ? 'warning' : 'plain'
  // Of one that runs, the view shows the time.
  const end = status === 'running' ? '' : `  → ${status}${inTime(durationMs)}`
  const called = `tool ${oneLine(name, LINE_CHARS)}`
  return error === null
    ? withEnd(describe(called, tone), end)
    : describe(`${called}${end}: ${oneLine(error, LINE_CHARS)}`, tone)
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

/**
 * Lists the files of a change, one per line: `✎ src/a.ts (+12 −3)`; memory files on one line. Paths are relative to
 * `directory`.
 */
function describeChanges(item: FileChange, directory: string): Description {
  const applied = item.status === 'completed'
  const { work, memory } = splitOffMemory(item, directory)
  const lines = work
    .slice(0, MOST_FILES)
    .map(change => `✎ ${describeChange(change, directory)}${applied ? '' : `  → ${item.status}`}`)
  const left = work.length - lines.length
  if (left > 0) lines.push(`✎ … and ${left} more`)
  if (memory !== null && lines.length === 0) return describe(`✎ ${memory}`, 'quiet')
  if (memory !== null) lines.push(`✎ ${memory}`)
  return describe(lines.join('\n') || '✎ no file', applied ? 'plain' : 'warning')
}

type FileChange = Extract<Item, { kind: 'file-change' }>

/** Splits a file change into changes of the work, and words for those of the session's memory files; null: none. */
export function splitOffMemory(
  item: FileChange,
  directory: string,
): { work: readonly ItemFileChange[]; memory: string | null } {
  // A refused change is no bookkeeping.
  if (item.status !== 'completed') return { work: item.changes, memory: null }
  const named = item.changes.map(change => ({ change, name: memoryFile(change, directory) }))
  const memory = named.flatMap(({ change, name }) => (name === null ? [] : [{ change, name }]))
  const work = named.filter(({ name }) => name === null).map(({ change }) => change)
  return { work, memory: memory.length === 0 ? null : memoryInWords(memory) }
}

/** A session's memory in `.codemachine`: its own folder, whose name is not shown, and the shared ones. */
const MEMORY = /^\.codemachine\/(?:projects\/[^/]+\/(.+)|((?:kb|plan|memory)\/.+))$/

/** Returns the name of a memory file: `MAIN.md`, `plan/tasks.json`; null for any other file, and for a moved one. */
function memoryFile({ path, change }: ItemFileChange, directory: string): string | null {
  const [, own, shared] = MEMORY.exec(relative(directory, path).replaceAll('\\', '/')) ?? []
  const name = own ?? shared
  return name === undefined || change === 'move' ? null : oneLine(name, LINE_CHARS)
}

const MOST_MEMORY_FILES = 6
const MOST_FACTS = 8

/** Describes changes of memory files, and their tasks: `MAIN.md, tasks.json: T3 done, T4 begun`. */
function memoryInWords(memory: readonly { change: ItemFileChange; name: string }[]): string {
  const facts = new Map<string, string>()
  for (const { change, name } of memory) {
    const found = /(?:^|\/)tasks\.json$/.test(name)
      ? taskFacts(change)
      : name.endsWith('MAIN.md')
        ? entryFacts(change)
        : []
    for (const [id, fact] of found) if (facts.get(id) !== 'done') facts.set(id, fact)
  }
  const names = memory.map(({ change, name }) => (change.change === 'delete' ? `${name} (deleted)` : name))
  const files = withRest(names.slice(0, MOST_MEMORY_FILES), names.length).join(', ')
  const told = [...facts]
    .sort(([, a], [, b]) => Number(b === 'done') - Number(a === 'done'))
    .map(([id, fact]) => `${oneLine(id, ID_CHARS)} ${fact}`)
  return told.length === 0 ? files : `${files}: ${withRest(told.slice(0, MOST_FACTS), told.length).join(', ')}`
}

const ID_CHARS = 40
const TASK_FIELDS = /"(id|done)"\s*:\s*(?:"((?:[^"\\]|\\.){1,100})"|(true|false))/g

/** Returns the changes of tasks in a `tasks.json` diff, by id: `done`, `reopened`, `added`, `left out`. */
function taskFacts({ change, diff }: ItemFileChange): [id: string, fact: string][] {
  const sides = { before: new Map<string, boolean | null>(), after: new Map<string, boolean | null>() }
  const current: { before: string | null; after: string | null } = { before: null, after: null }
  const read = (side: 'before' | 'after', line: string) => {
    for (const [, field, id, done] of line.matchAll(TASK_FIELDS)) {
      if (field === 'id' && id !== undefined) {
        current[side] = id
        sides[side].set(id, null)
      } else if (field === 'done' && done !== undefined && current[side] !== null) {
        sides[side].set(current[side], done === 'true')
      }
    }
  }
  for (const line of diff.split('\n')) {
    if (change === 'add') read('after', line)
    else if (line.startsWith('@@')) current.before = current.after = null
    else {
      if (!line.startsWith('+')) read('before', line)
      if (!line.startsWith('-')) read('after', line)
    }
  }
  if (change === 'add') return sides.after.size === 0 ? [] : [[formatCount(sides.after.size, 'task'), 'planned']]
  const facts = [...sides.after].flatMap(([id, done]): [string, string][] => {
    const before = sides.before.get(id)
    if (done === true && before !== true) return [[id, 'done']]
    if (before === undefined) return [[id, 'added']]
    return done === false && before === true ? [[id, 'reopened']] : []
  })
  const gone = [...sides.before.keys()].filter(id => !sides.after.has(id))
  return [...facts, ...gone.map((id): [string, string] => [id, 'left out'])]
}

/** An entry of `MAIN.md` that names a task. */
const ENTRY = /^\+\s*[-*] (?:\[([ xX])\] )?[*`]{0,2}([A-Za-z]{1,4}-?\d{1,5}(?:\.\d{1,3})*)\b/

/** What the diff of a `MAIN.md` says of tasks, by their ids: `done` under any heading, `begun` under "In progress". */
function entryFacts({ diff }: ItemFileChange): [id: string, fact: string][] {
  let heading = ''
  return diff.split('\n').flatMap((line): [string, string][] => {
    if (line.startsWith('@@')) heading = ''
    else if (!line.startsWith('-')) heading = /^[ +]#{1,6}\s+(.*)$/.exec(line)?.[1]?.trim().toLowerCase() ?? heading
    const [, box = ' ', id] = ENTRY.exec(line) ?? []
    if (id === undefined) return []
    if (box !== ' ') return [[id, 'done']]
    return heading === 'in progress' ? [[id, 'begun']] : []
  })
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
  const { text, more, tone, end } = told
  if (end !== undefined) return { text, more: [], tone, end }
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

/** How far a plan of a round is: `3 of 5 steps`. */
export function planProgress(steps: readonly PlanStep[]): string {
  const done = steps.filter(({ status }) => status === 'completed').length
  return `${formatNumber(done)} of ${formatCount(steps.length, 'step')}`
}

/** The steps of a plan that have changed, on one line: `[x] read · 1 of 3 steps  [>] write`; all of it if all is new; null if none has. */
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
