import { UserError } from '../../../base/errors.ts'
import { fleetDatabase, readyDatabase } from '../../../fleet/fleet.ts'
import { type Forecast, forecastOf } from '../../../fleet/forecast.ts'
import type { DayLimitNow } from '../../../fleet/limits.ts'
import {
  countStates,
  FLEET_STATES,
  type FleetSession,
  type FleetWorker,
  findFleetSession,
  forecastFacts,
  leftBySession,
  listSessions,
  listWorkers,
  wordsForFleetOutcome,
} from '../../../fleet/look.ts'
import { fleetTerms } from '../../../fleet/schema.ts'
import { FleetCopies, followCopy } from '../../../fleet/view.ts'
import { readSession } from '../../../project/watch/status.ts'
import { askWhoRuns } from '../../../session/records/run-lock.ts'
import { SHELL_HINTS, type StateHints } from '../../../tell/words/names.ts'
import {
  formatCost,
  formatCount,
  formatDayAndTime,
  formatMoment,
  formatNumber,
  formatSpan,
  formatTokens,
  shortNumber,
} from '../../../tell/words/numbers.ts'
import { oneLine, safeText, titleLine } from '../../../tell/words/safe-text.ts'
import { type SessionReport, stateInWords } from '../../../tell/words/status.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { showEvents } from '../commands/look.ts'
import { type ReportFlags, report } from '../commands/report.ts'
import type { FleetFlags } from '../flags.ts'
import { inColumns } from '../output.ts'
import { warnOn } from '../warn-on.ts'

interface LookFlags extends FleetFlags {
  json?: true
}

const MOST_LISTED = 50
const MOST_NAMED = 20
const GOAL_CHARS = 80
const MOST_CHARS = 500

/** `codemachine fleet status`: how much waits and runs, on which workers, and what will be done by the morning. */
export async function fleetStatus(
  context: CliContext,
  { queue, by, json }: LookFlags & { by: string },
): Promise<number> {
  const { stdout } = context
  await using database = await fleetDatabase(context, queue)
  const terms = await fleetTerms(database)
  const [counts, workers, dead, facts] = [
    await countStates(database.sql),
    await listWorkers(database.sql, terms.leaseSeconds),
    await listSessions(database.sql, { states: ['dead'], repo: null, most: MOST_NAMED }),
    await forecastFacts(database.sql, terms),
  ]
  const forecast = forecastOf(facts, nextMoment(by, facts.now))
  if (json) {
    const moment = (at: number | null) => at && new Date(at).toISOString()
    const shown = {
      database: database.place,
      counts,
      workers,
      limits: facts.limits,
      dead: dead.map(({ id, repo, reason }) => ({ id, repo, reason })),
      forecast: {
        by: moment(forecast.by),
        usual: forecast.usual,
        done: forecast.done.map(each => ({ ...each, at: moment(each.at) })),
        late: forecast.late.map(each => ({ ...each, at: moment(each.at) })),
        beyond: facts.beyond,
      },
    }
    stdout.write(`${JSON.stringify(shown)}\n`)
    return 0
  }
  const { running, waiting, held, ended, done, cancelled } = counts
  const lines = [
    `The fleet at ${database.place}`,
    `sessions   ${running} running, ${waiting} waiting, ${held} held, ${ended} ended (${done} done), ${cancelled} cancelled, ${counts.dead} dead`,
    ...workerLines(workers, facts.now),
    ...limitLines(facts.limits, facts.now),
    ...forecastLines(forecast, facts),
    ...dead.map(
      ({ id, reason }, at) =>
        `${at === 0 ? 'dead     ' : '         '}  ${said(id)}  ${said(reason ?? 'the reason is not known')}`,
    ),
  ]
  stdout.write(lines.map(line => `${line}\n`).join(''))
  return 0
}

function workerLines(workers: readonly FleetWorker[], now: number): string[] {
  const shown = workers.filter(({ standing }) => standing !== 'ended')
  if (shown.length === 0) return ['workers    none runs: codemachine worker']
  const rows = shown.map(({ name, slots, tags, sessions, ...worker }) => [
    said(name),
    `${sessions.length} of ${slots}`,
    said(tags.join(',')) || '-',
    [howItStands(worker, now), loginInWords(worker, now)].filter(text => text !== '').join('; '),
  ])
  return inColumns(rows).map((line, at) => `${at === 0 ? 'workers  ' : '         '}  ${line}`)
}

function howItStands(
  { standing, drains, problem, seenAt, host }: Pick<FleetWorker, 'standing' | 'drains' | 'problem' | 'seenAt' | 'host'>,
  now: number,
): string {
  if (standing === 'lost') return `lost on ${said(host)}: silent since ${formatMoment(seenAt.getTime(), now)}`
  if (problem !== null) return `takes nothing: ${said(problem)}`
  return drains ? 'drains' : `on ${said(host)}`
}

function loginInWords({ login }: Pick<FleetWorker, 'login'>, now: number): string {
  const windows = (login?.windows ?? []).map(({ name, usedPercent, resetsAt }) => {
    const until = resetsAt === null ? Number.NaN : Date.parse(resetsAt)
    return `${said(name)} ${Math.round(usedPercent)} %${Number.isNaN(until) ? '' : ` until ${formatMoment(until, now)}`}`
  })
  const paused = login?.pausedUntil == null ? Number.NaN : Date.parse(login.pausedUntil)
  return [
    ...(windows.length === 0 ? [] : [`login: ${windows.join(', ')}`]),
    ...(paused > now ? [`takes no sessions before ${formatMoment(paused, now)}`] : []),
  ].join('; ')
}

function limitLines(limits: readonly DayLimitNow[], now: number): string[] {
  const rows = limits.map(({ team, tokens, cost, usedTokens, usedCost, isFull, endsAt }) => [
    team === '' ? 'all' : said(team),
    [
      ...(tokens === null ? [] : [`${shortNumber(usedTokens)} of ${formatTokens(tokens)}`]),
      ...(cost === null ? [] : [`cost ${formatCost(usedCost)} of ${formatCost(cost)}`]),
    ].join(', '),
    isFull ? `full: no session starts before ${formatMoment(endsAt.getTime(), now)}` : 'today',
  ])
  return inColumns(rows).map((line, at) => `${at === 0 ? 'limits   ' : '         '}  ${line}`)
}

function forecastLines(
  { by, usual, done, late }: Forecast,
  { now, beyond, sessions }: { now: number; beyond: number; sessions: readonly unknown[] },
): string[] {
  if (sessions.length === 0) return ['forecast   nothing runs or waits']
  if (usual === null)
    return ['forecast   none: no session has ended in the last two weeks, so their duration is not known']
  const label = (text: string) => `         ${text}`
  const more = late.length + beyond - Math.min(late.length, MOST_NAMED)
  return [
    `forecast   by ${formatMoment(by, now)} ${done.length} of ${formatNumber(sessions.length + beyond)} have ended (each takes ${formatSpan(usual.medianMs)}, the median of ${formatCount(usual.of, 'session')})`,
    ...late.slice(0, MOST_NAMED).map(({ id, at, why }) => {
      const when = at === null ? 'it has not begun by then' : `it ends about ${formatMoment(at, now)}`
      return label(`  not ${said(id)}: ${why === null ? when : said(why)}`)
    }),
    ...(more > 0 ? [label(`  nor ${formatNumber(more)} more`)] : []),
  ]
}

/** The next moment at which it is that time of day here; Unix time, ms. */
function nextMoment(typed: string, now: number): number {
  const [, hours = '', minutes = ''] = /^(\d{1,2}):(\d{2})$/.exec(typed) ?? []
  if (hours === '' || Number(hours) > 23 || Number(minutes) > 59)
    throw new UserError('CM0103', `--by ${said(typed)} is not a time of day; use one such as 07:00.`)
  const moment = new Date(now)
  moment.setHours(Number(hours), Number(minutes), 0, 0)
  if (moment.getTime() <= now) moment.setDate(moment.getDate() + 1)
  return moment.getTime()
}

interface ListFlags extends LookFlags {
  state?: string[]
  repo?: string
  all?: true
}

/** `codemachine fleet list`: the sessions of the fleet, the newest first. */
export async function fleetList(
  context: CliContext,
  { queue, state = [], repo, all, json }: ListFlags,
): Promise<number> {
  const { stdout } = context
  const states = state.map(typed => {
    const known = FLEET_STATES.find(each => each === typed)
    if (known === undefined)
      throw new UserError('CM0103', `--state ${said(typed)} is not a state; use one of ${FLEET_STATES.join(', ')}.`)
    return known
  })
  await using database = await readyDatabase(context, queue)
  const wanted = { states, repo: repo ?? null }
  const found = await listSessions(database.sql, { ...wanted, most: all ? null : MOST_LISTED + 1 })
  const sessions = all ? found : found.slice(0, MOST_LISTED)
  if (json) stdout.write(`${JSON.stringify(sessions)}\n`)
  else if (sessions.length === 0)
    stdout.write(
      states.length === 0 && repo === undefined
        ? 'No session is in the fleet.\n'
        : 'There is no such session in the fleet.\n',
    )
  else {
    const rows = sessions.map(session => [
      said(session.id),
      formatDayAndTime(session.createdAt.getTime()),
      stateOf(session, context.clock.now()),
      repositoryOf(session),
      said(session.worker ?? '-'),
      titleLine(session.goal, GOAL_CHARS),
    ])
    stdout.write(
      inColumns(rows)
        .map(line => `${line}\n`)
        .join(''),
    )
    if (found.length > sessions.length) stdout.write(`These are the newest ${MOST_LISTED}; --all shows all of them.\n`)
  }
  return 0
}

function stateOf(session: FleetSession, now: number): string {
  const { state, rounds, cancelAsked, notBefore } = session
  if (state === 'running')
    return cancelAsked ? 'is being cancelled' : rounds === null || rounds === 0 ? 'running' : `round ${rounds}`
  if (state === 'ended') return wordsForFleetOutcome(session) ?? state
  return state === 'waiting' && notBefore !== null && notBefore.getTime() > now ? 'waits for its time' : state
}

function repositoryOf({ repo }: Pick<FleetSession, 'repo'>): string {
  return said(
    repo
      .replace(/(\.git)?\/*$/, '')
      .split(/[/:\\]/)
      .slice(-2)
      .join('/'),
  )
}

/** `codemachine fleet show`: everything of one session. */
export async function fleetShow(context: CliContext, wanted: string, { queue, json }: LookFlags): Promise<number> {
  const { stdout, platform, clock } = context
  await using database = await readyDatabase(context, queue)
  const session = await findFleetSession(database.sql, wanted)
  await using copies = new FleetCopies(context, database)
  const { id, records } = await copies.copied(session)
  const runner = await askWhoRuns(records.lock, platform, () => {})
  const status = session.events === 0 ? null : await readSession(records, id, runner, context)
  const { certificate } = await leftBySession(database.sql, id)
  if (json) {
    stdout.write(`${JSON.stringify({ ...session, certificate, session: status })}\n`)
    return 0
  }
  const now = clock.now()
  const moment = (at: Date | null) => (at === null ? null : formatMoment(at.getTime(), now))
  const rows: Record<string, string | null> = {
    session: session.id,
    goal: session.goal.trim(),
    state: stateOf(session, now),
    does: status === null || session.state !== 'running' ? null : stateInWords(status, now, hintsFor(status)),
    repository: session.repo,
    ref: session.base === null ? session.ref : `${session.ref}, at ${session.base}`,
    template: session.template,
    team: session.team || null,
    worker: session.worker,
    epoch: session.epoch === 0 ? null : String(session.epoch),
    events: session.events === 0 ? null : formatNumber(session.events),
    rounds:
      session.rounds === null
        ? null
        : `${session.rounds}${session.mostRounds === null ? '' : ` of ${session.mostRounds}`}`,
    tags: session.tags.join(', ') || null,
    priority: session.priority === 0 ? null : String(session.priority),
    after: session.after,
    submitted: `${moment(session.createdAt)} by ${session.createdBy}`,
    'not before': moment(session.notBefore),
    deadline: moment(session.deadline),
    taken: moment(session.takenAt),
    ended: moment(session.endedAt),
    reason: session.reason,
    outcome: wordsForFleetOutcome(session),
    branch: session.branch,
    proof: certificate === null ? null : `a certificate; codemachine fleet show ${id} --json has it`,
  }
  for (const [label, text] of Object.entries(rows))
    if (text !== null) stdout.write(`${label.padEnd(10)}  ${indented(text)}\n`)
  return 0
}

/** What a person can do about a session, wherever it runs. */
function hintsFor({ id, decision }: SessionReport): StateHints {
  // What opens a file does so on the machine of the worker.
  const choices = (decision?.choices ?? []).filter(({ opensFile }) => opensFile !== true).map(choice => choice.id)
  return {
    ...SHELL_HINTS,
    decide: `codemachine fleet answer ${id} ${choices.join('|')}`,
    resume: `codemachine fleet retry ${id} continues`,
  }
}

function indented(text: string): string {
  return safeText(text).replaceAll('\n', `\n${' '.repeat(12)}`)
}

interface LogsFlags extends LookFlags {
  follow?: true
}

/** `codemachine fleet logs`: what happened in a session, wherever it runs, in the words of `codemachine logs`. */
export async function fleetLogs(
  context: CliContext,
  wanted: string,
  { queue, follow, json }: LogsFlags,
): Promise<number> {
  await using database = await readyDatabase(context, queue)
  const session = await findFleetSession(database.sql, wanted)
  await using following = await followCopy(context, database, session, warnOn(context))
  const { copied } = following
  if (!follow) refuseUnbegun(session)
  const isOver = follow ? () => following.isOver() : null
  await showEvents(context, copied, { json: json ?? false, isOver })
  return 0
}

function refuseUnbegun({ id, events, state }: FleetSession): void {
  if (events > 0) return
  throw new UserError(
    'CM1109',
    `${id} has no log yet: it ${state === 'running' ? 'is being prepared' : `is ${state}`}.`,
    {
      hint: `To follow it: codemachine fleet logs -f ${id}`,
    },
  )
}

/** `codemachine fleet report`: as `codemachine report`; without a flag that says otherwise as Markdown. */
export async function fleetReport(
  context: CliContext,
  wanted: string,
  { queue, ...flags }: ReportFlags & FleetFlags,
): Promise<number> {
  await using database = await readyDatabase(context, queue)
  const session = await findFleetSession(database.sql, wanted)
  const isMarkdown = !flags.json && !flags.html && !flags.open && flags.png === undefined && flags.badge === undefined
  // What its worker has written knows the files, too.
  const written =
    isMarkdown && flags.output === undefined ? (await leftBySession(database.sql, session.id)).report : null
  if (written !== null) {
    context.stdout.write(safeText(written))
    return 0
  }
  refuseUnbegun(session)
  await using copies = new FleetCopies(context, database)
  const { id, directory } = await copies.copied(session)
  return await report(context, id, { ...flags, ...(isMarkdown ? { md: true as const } : {}), cd: directory })
}

function said(text: string): string {
  return oneLine(text, MOST_CHARS)
}
