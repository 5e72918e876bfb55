import { isFinished, limitReached } from '../../../core/events/outcome.ts'
import { usedBy } from '../../../core/rules/run-limits.ts'
import { statesTyped } from '../../../project/diff/comparison.ts'
import { reportCard } from '../../../project/reports.ts'
import { Keymap } from '../../../project/settings/keys.ts'
import type { LoadedSettings } from '../../../project/settings/load.ts'
import type { SessionRow } from '../../../project/watch/sessions-table.ts'
import { foldJournal, lockOfSession } from '../../../session/records/journal.ts'
import type { Records } from '../../../session/records/records.ts'
import { askWhoRuns } from '../../../session/records/run-lock.ts'
import { readReport } from '../../../tell/report/write.ts'
import { limitAsTyped, resumeCommand } from '../../../tell/words/commands.ts'
import { formatCount } from '../../../tell/words/numbers.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import { roleOf } from '../blocks/layout.ts'
import type { CliContext } from '../cli-context.ts'
import { Pager } from '../pager/pager.ts'
import { wholeSource } from '../pager/source.ts'
import type { Screen } from '../screen/screen.tsx'
import { type SessionAction, type SessionsPlace, sessionList } from '../sessions/session-list.ts'
import { openTheme, type Theme } from '../terminal/theme.ts'
import type { Stage } from '../view/full-view.ts'
import { diffView } from './diff-screen.ts'
import type { SlashPlace, TypedLimits } from './person-screen.ts'
import { sessionsReadOut } from './read-out.ts'

/** Opens the table of sessions on the screen, as `/sessions` does. */
export async function openSessions(place: SlashPlace): Promise<void> {
  const { context, records, person, start } = place
  const { model } = person.screen
  if (person.isForReader) return person.readOut(await sessionsReadOut(context, records, context.signal))
  const isShown = (row: SessionRow) =>
    model.showsSession && row.records.key === records.key && row.id === model.pane.state?.id
  const whyNotHere = (action: SessionAction, row: SessionRow): string | null => {
    if (action === 'watch') {
      if (isShown(row) || (start !== null && !start.isRunning())) return null
      return `This screen shows another session. In another terminal: codemachine watch ${row.id}`
    }
    if (action !== 'resume') return null
    const busy = whyNoResume(place)
    if (busy !== null) return busy
    return row.records.key === records.key ? null : `Its directory is another one: ${typedResume(row)}`
  }
  const { theme, options } = model
  await person.screen.open(
    sessionList({
      world: context,
      records,
      theme,
      keymap: options.keymap,
      scope: 'here',
      whyNot: (action, row) => whyNotAnywhere(action, row) ?? whyNotHere(action, row),
      act: (action, row, stage) => {
        if (action === 'report') stage.start(openReport(context, row, { stage, theme, keymap: options.keymap }))
        else if (action === 'diff') openChanges(context, row, { stage, theme, keymap: options.keymap })
        else if (action === 'watch')
          stage.leaveFor(
            () => void (isShown(row) || start?.wish({ kind: 'watch', records: row.records, session: row.id })),
          )
        else if (action === 'resume')
          stage.leaveFor(() => void goOnWith(place, row.id).catch(error => void person.fail(error)))
      },
      onFailure: error => void person.fail(error),
    }),
  )
}

/** Goes on with a session, once it was asked how much more it may take where that is used up. */
export async function goOnWith({ person, records, start }: SlashPlace, session: string): Promise<void> {
  const more = await askForMore(person.screen, records, session)
  if (more !== null) start?.wish({ kind: 'resume', session, more })
}

/**
 * Asks how much a session may take that has used up what it was allowed, and is to go on. Empty if it has not; null if
 * the person thinks better of it.
 */
async function askForMore(screen: Screen, records: Records, id: string): Promise<TypedLimits | null> {
  const state = await foldJournal(records, id, 'ends')
  const used = state && usedBy(state)
  const reached = used && limitReached(state.limits, used)
  if (used === null || reached === null) return {}
  const { flag, name, had } = LIMITS[reached]
  const typed = limitAsTyped(name, 2 * (used[name] ?? 0))
  const [, twice = ''] = typed.split(' ')
  const answer = await screen.choose({
    title: `It has used up its ${name === 'rounds' ? formatCount(used.rounds, had) : had}. What is its new total limit?`,
    options: [{ id: twice, label: twice, hint: `as ${typed}` }],
    freeText: 'Something else …',
  })
  if (answer.kind === 'chosen') return { [flag]: answer.id }
  return answer.kind === 'text' ? { [flag]: answer.text.trim() } : null
}

const LIMITS = {
  rounds: { flag: 'rounds', name: 'rounds', had: 'round' },
  time: { flag: 'maxTime', name: 'timeMs', had: 'time' },
  tokens: { flag: 'maxTokens', name: 'tokens', had: 'tokens' },
  cost: { flag: 'maxCost', name: 'cost', had: 'money' },
} as const

/** Why no session can be gone on with on this screen, a sentence; null if one can. */
export function whyNoResume({ start }: Pick<SlashPlace, 'start'>): string | null {
  if (start === null) return 'This screen only watches; resume the session where it ran'
  return start.isRunning() ? 'A session is running. End it with /stop, then resume another one' : null
}

/** What a person has chosen in the table of `codemachine sessions`, to be done once that is closed. */
interface ChosenSession {
  action: 'watch' | 'resume'
  row: SessionRow
}

/** Shows the table of sessions on the terminal of a command that draws nothing else; resolves with what was chosen, null: nothing. */
export async function showSessions(
  context: CliContext,
  records: Records,
  loaded: Pick<LoadedSettings, 'settings' | 'keys'>,
  scope: SessionsPlace['scope'],
): Promise<ChosenSession | null> {
  let chosen: ChosenSession | null = null
  const theme = openTheme({ theme: loaded.settings.screen.theme, env: context.env, reader: false })
  const keymap = new Keymap(loaded.keys, loaded.settings.screen.enter)
  const failed = Promise.withResolvers<never>()
  const view = sessionList({
    world: context,
    records,
    theme,
    keymap,
    scope,
    whyNot: whyNotAnywhere,
    act: (action, row, stage) => {
      if (action === 'report') stage.start(openReport(context, row, { stage, theme, keymap }))
      else if (action === 'diff') openChanges(context, row, { stage, theme, keymap })
      else
        stage.leaveFor(() => {
          chosen = { action, row }
        })
    },
    onFailure: error => failed.reject(error),
  })
  const { showAlone } = await import('./view-alone.ts')
  await showAlone(context, view, loaded, [failed.promise])
  return chosen
}

/** Why an action cannot be done with a session, wherever that is wanted; null if it can. */
function whyNotAnywhere(action: SessionAction, row: SessionRow): string | null {
  const { standing, outcome, call } = row
  switch (action) {
    case 'report':
      return null
    case 'watch':
      return standing === 'running' ? null : 'It is not running'
    case 'diff':
      return standing === 'broken' ? 'Its journal cannot be read' : null
    case 'resume':
      if (standing === 'running') return 'It runs'
      if (standing === 'unknown') return 'Cannot tell if it is running'
      if (call !== null) return 'An agent call cannot be resumed; call again'
      return outcome !== null && isFinished(outcome) ? 'It has ended' : null
  }
}

function typedResume({ id, records }: SessionRow): string {
  return oneLine(resumeCommand(id, records.directory), 500)
}

interface ReportPlace {
  stage: Stage
  theme: Theme
  keymap: Keymap
}

/** Opens what a session has changed: until its end, or until now while it may run. */
function openChanges(context: CliContext, row: SessionRow, { stage, theme, keymap }: ReportPlace): void {
  const { id, records, standing } = row
  const mayRun = standing === 'running' || standing === 'unknown'
  const states = mayRun ? statesTyped('start', id) : ({ kind: 'ended', session: id } as const)
  // Who looks only is told by the view itself what is missing.
  stage.open(diffView(context, records, { theme, keymap, states, onWarning: () => {} }))
}

/** Opens the card of a session's report. */
async function openReport(context: CliContext, row: SessionRow, { stage, theme, keymap }: ReportPlace): Promise<void> {
  const warnings: string[] = []
  const columns = context.stdout.columns ?? 80
  const lines = await reportLines(context, row, {
    columns,
    theme,
    named: row.records.directory,
    onWarning: said => warnings.push(said),
  })
  const shown = [
    ...warnings.map(said => theme.paint('warning', oneLine(said, 2_000))),
    ...(lines ?? ['The journal of this session is empty or damaged.']),
  ]
  stage.open(new Pager({ title: `The report of ${row.id}`, source: wholeSource(shown), theme, keymap, at: 'start' }))
}

/** The card of a session's report as finished lines; null if its journal holds none. `named`: as of `reportCard`. */
export async function reportLines(
  context: CliContext,
  { records, id }: Pick<SessionRow, 'records' | 'id'>,
  place: { columns: number; theme: Theme; named: string | null; onWarning(warning: string): void },
): Promise<string[] | null> {
  const { columns, theme, named, onWarning } = place
  const runner = await askWhoRuns(await lockOfSession(records, id), context.platform, onWarning)
  const data = await readReport(records, id, runner)
  if (data === null) return null
  const lines = await reportCard(data, { world: context, records, columns, named, onWarning })
  return lines.map(({ text, tone }) => theme.paint(roleOf(tone), text))
}
