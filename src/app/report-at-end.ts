import { runProcess } from '../platform/run-process.ts'
import type { CardLine, CardPlace } from '../report/card.ts'
import { oneLine } from '../words/cells.ts'
import type { EndReports, ReportedSession } from './end-reports.ts'
import type { World } from './world.ts'

interface ReportAtEnd extends ReportedSession {
  /** Whether commands that are typed later find the session. */
  resumable: boolean
  /** Where a process of its own makes the reports, typed where the run was; left out: this one does. */
  apart?: Pick<World, 'self' | 'env' | 'cwd'>
}

/** What a person is shown at the end. */
export interface EndReport {
  /** Where the page lies; null if it could not be written. */
  html: string | null
  /** What could not be written, a sentence; null if all was. */
  problem: string | null
  /** The card for a terminal of so many columns; none if there is no report. */
  card(place: Pick<CardPlace, 'columns' | 'isEndShown'>): CardLine[]
}

/**
 * Writes the reports of a session that has ended. Never rejects: a session does not fail for its report. What reads the
 * journal and draws the charts takes memory that a run that goes on for days would keep, so another process does it.
 */
export async function reportAtEnd({ apart, resumable, ...of }: ReportAtEnd): Promise<EndReport> {
  const { data, html, problem } = await reportsOf(of, apart)
  if (data === null) return { html, problem, card: () => [] }
  const [{ cardOf }, { commandsOf }, { commandsHere }] = await Promise.all([
    import('../report/card.ts'),
    import('../report/words.ts'),
    import('../report/words.ts'),
  ])
  const commands = commandsHere(data, of.named)
  // How to go on is said after the card.
  const typed = commandsOf(data, commands).filter(({ command }) => resumable && command !== commands.resume)
  return { html, problem, card: place => cardOf(data, { ...place, commands: typed, full: html }) }
}

async function reportsOf(session: ReportedSession, apart: ReportAtEnd['apart']): Promise<EndReports> {
  const { self, env = {}, cwd = '' } = apart ?? {}
  const made = self && (await makeApart(session, { self, env, cwd }))
  if (typeof made === 'object') return made
  const { writeEndReports } = await import('./end-reports.ts')
  const noPage = () => Promise.reject(new Error(made))
  return await writeEndReports(session, made === undefined ? undefined : noPage)
}

const MAKE_MS = 30_000
const OUTPUT_BYTES = 16 * 1024 * 1024
const MOST_SAID = 500

/** What `codemachine report --at-end` answers, or why it does not. */
async function makeApart(
  { id, named, records }: ReportedSession,
  { self: { node, program }, env, cwd }: Required<NonNullable<ReportAtEnd['apart']>>,
): Promise<EndReports | string> {
  const where = named === null ? [] : ['-C', named]
  const { exitCode, stdout, stderr, failure } = await runProcess(node, [program, 'report', id, '--at-end', ...where], {
    directory: named === null ? records.directory : cwd,
    env,
    encoding: 'utf8',
    outputLimit: OUTPUT_BYTES,
    timeoutMs: MAKE_MS,
  })
  const answer = exitCode === 0 ? stdout.match(/^\{.*\}\n$/)?.[0] : undefined
  return answer === undefined ? (failure ?? oneLine(stderr, MOST_SAID)) : JSON.parse(answer)
}
