import type { SessionState, TemplateView } from '../../core/state/state.ts'
import type { BoardMark, BoardRow } from '../../core/view.ts'
import type { StepFacts } from './file/plan.ts'
import type { FlowWork, StepRecord } from './work.ts'

/** View of a workflow: its steps, with their agents and results. */
export const flowView: TemplateView<FlowWork> = {
  step: ({ kind, name }, own) => {
    const title = titleOf(own, own.at + 1)
    switch (kind) {
      case 'command':
        return `${title}: ${name}`
      case 'look':
        return ''
      case 'write':
        return `${title}: its file`
      default:
        return null
    }
  },
  round: (own, session) => {
    const facts = own.options.steps[own.at]
    return facts === undefined ? null : { title: titleOf(own, own.at + 1), lines: linesOf(facts, own, session) }
  },
  status: ({ options, steps: all }) => {
    const steps = all.filter((_, at) => options.steps[at]?.item === undefined)
    const isMock = options.mode === 'mock'
    const ended = steps.filter(({ mark }) => (isMock ? mark !== 'to-do' : mark === 'done' || mark === 'skipped')).length
    const count = steps.length === 1 ? '1 step' : `${steps.length} steps`
    return `${ended} of ${count} ${isMock ? 'shown' : 'done'}`
  },
  board: (own, session) =>
    own.options.steps.map((facts, at) => rowOf(facts, own.steps[at], sinceOf(facts, at === own.at, session))),
  card: ({ options }) => [{ label: 'flow', text: options.name }],
  report: own => ({ title: 'Steps', note: `Of ${own.options.file}.`, text: '', table: tableOf(own) }),
}

/** `Step 2/4: commit-message`; `index` from 1. */
export function titleOf({ options: { steps } }: Pick<FlowWork, 'options'>, index: number): string {
  const count = steps.filter(({ item }) => item === undefined).length
  const step = steps[index - 1]
  return `Step ${step?.index ?? index}/${count}: ${step?.title ?? ''}`
}

/** Such as `2`, or `2.1` for the first item of a loop. */
function numberOf({ index, item }: StepFacts): string {
  return item === undefined ? `${index}` : `${index}.${item}`
}

/** Returns the lines below a step's title. */
function linesOf(facts: StepFacts, { options, now, steps, at }: FlowWork, session: SessionState): string[] {
  const again = steps[at]?.triedAgain ?? 0
  const line = options.mode === 'mock' || options.verbose ? [facts.commandLine] : []
  const told = options.told?.[at] ?? []
  const tries = again === 0 ? [] : [`try ${again + 1}`]
  const rounds = facts.engine === 'codemachine' ? [`round ${now.rounds + 1} of at most ${facts.rounds}`] : []
  if (!options.verbose) return [...line, ...told, ...tries, ...rounds]
  return [
    ...line,
    `engine ${facts.engine}, model ${facts.model ?? session.model ?? "codex's default"}, sandbox ${facts.readOnly ? 'read-only' : session.sandbox}`,
    ...(facts.path === null ? [] : [`output ${facts.path}`]),
    ...told,
    ...(now.inputCharacters === null ? [] : [`input ${grouped(now.inputCharacters)} characters`]),
    ...tries,
    ...rounds,
  ]
}

const MARKS: Readonly<Record<StepRecord['mark'], BoardMark>> = {
  'to-do': 'to-do',
  done: 'done',
  failed: 'failed',
  // Its condition was false: nobody has to act.
  skipped: 'done',
  'left-out': 'parked',
}

/** Returns when the work on a step began, Unix time in ms; null: unknown; undefined: nobody works on it. */
function sinceOf({ id }: StepFacts, isCurrent: boolean, session: SessionState): number | null | undefined {
  const { running, step, agents, ended } = session
  if (ended !== null) return undefined
  if (isCurrent) return running?.startedAt ?? step?.since ?? null
  return agents.find(({ instance }) => instance === id)?.since
}

/** @param since as from `sinceOf` */
function rowOf(facts: StepFacts, record: StepRecord | undefined, since: number | null | undefined): BoardRow {
  const mark = record === undefined ? 'to-do' : MARKS[record.mark]
  const isNow = since !== undefined && mark === 'to-do'
  return {
    mark: isNow ? 'now' : mark,
    id: numberOf(facts),
    text: record === undefined || isNow ? facts.title : `${facts.title}${factsOfEnd(record)}`,
    who: [facts.engine, facts.model].filter(each => each !== null).join(' '),
    since: since ?? null,
  }
}

/** Returns ` (1 min 20 s, 12,345 tokens)`; empty if unknown. */
function factsOfEnd({ mark, ms, tokens }: StepRecord): string {
  const words = { skipped: 'skipped', 'left-out': 'left out', failed: 'failed', done: '', 'to-do': '' }[mark]
  const facts = [...(words === '' ? [] : [words]), ...timeOf({ ms, tokens })]
  return facts.length === 0 ? '' : ` (${facts.join(', ')})`
}

function timeOf({ ms, tokens }: Pick<StepRecord, 'ms' | 'tokens'>): string[] {
  return [...(ms === 0 ? [] : [span(ms)]), ...(tokens === 0 ? [] : [`${grouped(tokens)} tokens`])]
}

function span(ms: number): string {
  const seconds = Math.round(ms / 1_000)
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

function grouped(count: number): string {
  return count.toLocaleString('en-US')
}

/** Returns a table of the steps with result and output. */
function tableOf({ options, steps }: FlowWork): { head: string[]; rows: string[][] } {
  const rows = options.steps.map((facts, at) => {
    const record = steps[at]
    const mark = record?.mark ?? 'to-do'
    const output = record?.output ?? null
    const files = [
      ...(facts.path !== null && mark === 'done' && options.mode === 'real' ? [facts.path] : []),
      ...(output === null ? [] : [`outputs/${output.file}`]),
    ]
    return [
      numberOf(facts),
      facts.title,
      [facts.engine, facts.model].filter(each => each !== null).join(' '),
      [WORDS[mark], ...why(record)].join(': '),
      record === undefined ? '' : [...timeOf(record)].join(', '),
      files.join(', '),
    ]
  })
  return { head: ['step', 'what', 'engine', 'how it ended', 'time and tokens', 'output'], rows }
}

const WORDS: Readonly<Record<StepRecord['mark'], string>> = {
  'to-do': 'not begun',
  done: 'done',
  failed: 'failed',
  skipped: 'skipped',
  'left-out': 'left out',
}

function why(record: StepRecord | undefined): string[] {
  if (record?.mark !== 'failed' || record.why === null) return []
  const [first = ''] = record.why.split('\n')
  return [first]
}
