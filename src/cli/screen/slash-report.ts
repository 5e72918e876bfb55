import { readReport } from '../../report/read-report.ts'
import { askWhoRuns } from '../../session/run-lock.ts'
import { roleOf } from '../../ui/blocks/described-lines.ts'
import { findSession } from '../find-session.ts'
import { reportCard } from '../report-card.ts'
import type { SlashPlace } from './slash-place.ts'

/** `/report`: what a session has done, the newest if none is named. */
export async function showReport({ context, records, person }: SlashPlace, rest: string): Promise<void> {
  const { screen } = person
  const say = (problem: string) => screen.say(problem, 'warning')
  const runner = await askWhoRuns(records.lock, context.platform, say)
  const id = await findSession(records, rest.trim() || null, say)
  const data = await readReport(records.journal(id), id, runner)
  if (data === null) return screen.notice(`The journal of ${id} holds no session`, 'warning')
  const { columns } = screen.output
  const lines = await reportCard(data, { context, records, columns, named: null })
  screen.print(lines.map(({ text, tone }) => screen.model.theme.paint(roleOf(tone), text)))
}
