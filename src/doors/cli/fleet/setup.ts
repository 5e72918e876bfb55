import type * as v from 'valibot'
import { UserError } from '../../../base/errors.ts'
import { parseDuration } from '../../../base/text.ts'
import { packagePgBoss } from '../../../fleet/database.ts'
import { fleetDatabase, refuseOtherDatabase } from '../../../fleet/fleet.ts'
import { type DayLimit, type DayLimitChange, dayLimits } from '../../../fleet/limits.ts'
import { localPostgres, removeLocalPostgres } from '../../../fleet/local-postgres.ts'
import { type FleetTerms, fleetTerms, ROLES, roleOfTeam, setUp, TEAM_NAME } from '../../../fleet/schema.ts'
import { TYPES } from '../../../fleet/submission.ts'
import { dropSetting, keepSetting } from '../../../project/settings/settings-file.ts'
import { formatCost, formatCount, formatTokens } from '../../../tell/words/numbers.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import type { FleetFlags } from '../flags.ts'
import { inColumns } from '../output.ts'
import { warnOn } from '../warn-on.ts'
import { typed } from './submit.ts'

/** Flags of `codemachine fleet setup`, as typed. */
interface SetupFlags extends FleetFlags {
  lease?: string
  perRepository?: string
  team?: string[]
  tokensPerDay?: string[]
  costPerDay?: string[]
  dayBegins?: string
  local?: true
  stop?: true
  remove?: true
  json?: true
}

const [LEAST_LEASE, MOST_LEASE] = [10, 3_600]
const MOST_PER_REPOSITORY = 10_000

/** `codemachine fleet setup`: makes the schema, or brings it to this version; says who may do what. 4 where a role is missing. */
export async function fleetSetup(context: CliContext, flags: SetupFlags): Promise<number> {
  const { stdout } = context
  if (flags.stop || flags.remove) return await endLocal(context, flags)
  const terms = termsOf(flags)
  const teams = flags.team ?? []
  const wrong = teams.find(team => !TEAM_NAME.test(team))
  if (wrong !== undefined)
    throw new UserError(
      'CM0103',
      `--team ${oneLine(wrong, 60)} cannot be used: use at most 31 characters, lower-case letters, digits and "_", such as shop.`,
    )
  if (flags.local && teams.length > 0)
    throw new UserError('CM0103', '--team cannot be used with --local: that PostgreSQL has one login only.')
  const limits = limitsOf(flags)
  const url = flags.local ? await startLocal(context) : flags.queue
  await using database = await fleetDatabase(context, url)
  const { done, problems } = await setUp(database, { terms, teams, limits })
  const now = await fleetTerms(database)
  const nowLimits = (await dayLimits(database.sql)).map(({ team, tokens, cost }) => ({ team, tokens, cost }))
  const grants = [
    ...Object.entries(ROLES).map(([role, what]) => ({ role, what })),
    ...teams.map(team => ({ role: roleOfTeam(team), what: `sees the sessions of the team ${team}` })),
  ].map(({ role, what }) => ({ sql: `grant ${role} to <login>;`, what }))
  const settings = flags.local && url !== undefined ? await keepSetting(context, QUEUE, url) : null
  if (flags.json)
    stdout.write(
      `${JSON.stringify({ place: database.place, done, problems, terms: now, limits: nowLimits, grants, settings })}\n`,
    )
  else
    stdout.write(
      [
        ...whatIsSetUp(database.place, done, now, nowLimits),
        '',
        ...(settings === null ? whoMayDoWhat(grants) : howToUse(settings)),
        '',
      ].join('\n'),
    )
  for (const each of problems) warnOn(context)(each)
  return problems.length === 0 ? 0 : 4
}

/** The setting that names the database of this machine. */
const QUEUE = 'fleet.queue'

/** Starts the PostgreSQL of this machine; returns the address of its database. */
async function startLocal(context: CliContext): Promise<string> {
  await packagePgBoss()
  const { url, start } = await localPostgres(context)
  await refuseOtherDatabase(context, url)
  await start()
  return url
}

/** `codemachine fleet setup --stop`, or `--remove`. */
async function endLocal(context: CliContext, { remove, json }: SetupFlags): Promise<number> {
  const { folder, url, stop } = await localPostgres(context)
  const stopped = await stop()
  const removed = remove ? await removeLocalPostgres(folder) : false
  const settings = remove ? await dropSetting(context, QUEUE, url) : null
  const said = [
    ...(stopped ? [`The PostgreSQL in ${folder} is stopped.`] : []),
    ...(removed ? [`${folder} is removed, with all sessions of the fleet.`] : []),
    ...(settings === null ? [] : [`${QUEUE} is removed from ${settings}.`]),
    ...(stopped && !remove ? ['To start it again: codemachine fleet setup --local'] : []),
  ]
  if (json) context.stdout.write(`${JSON.stringify({ folder, stopped, removed, settings })}\n`)
  else context.stdout.write(`${said.length === 0 ? `No PostgreSQL runs in ${folder}.` : said.join('\n')}\n`)
  return 0
}

function termsOf({ lease, perRepository, dayBegins }: SetupFlags): Partial<FleetTerms> {
  const terms: Partial<FleetTerms> = {}
  if (lease !== undefined) {
    const seconds = (parseDuration(lease) ?? 0) / 1_000
    if (!Number.isInteger(seconds) || seconds < LEAST_LEASE || seconds > MOST_LEASE)
      throw new UserError(
        'CM0103',
        `--lease ${oneLine(lease, 60)} cannot be used: use a time from 10s to 1h, such as 60s.`,
      )
    terms.leaseSeconds = seconds
  }
  if (perRepository !== undefined) {
    const count = Number(perRepository)
    if (!Number.isInteger(count) || count < 1 || count > MOST_PER_REPOSITORY)
      throw new UserError(
        'CM0103',
        `--per-repository ${oneLine(perRepository, 60)} cannot be used: use a whole number from 1 to ${MOST_PER_REPOSITORY}.`,
      )
    terms.perRepository = count
  }
  if (dayBegins !== undefined) {
    if (!/^([01]\d|2[0-3]):[0-5]\d$/.test(dayBegins))
      throw new UserError(
        'CM0103',
        `--day-begins ${oneLine(dayBegins, 60)} cannot be used: use a time of day in UTC, such as 18:00.`,
      )
    terms.dayBegins = dayBegins
  }
  return terms
}

/** The limits that the flags change. */
function limitsOf({ tokensPerDay = [], costPerDay = [] }: SetupFlags): DayLimitChange[] {
  const read = (flag: string, type: v.GenericSchema<unknown, number>, text: string) => {
    const [, team = '', most = ''] = /^(?:([^=]*)=)?(.*)$/s.exec(text) ?? []
    if (team !== '' && !TEAM_NAME.test(team))
      throw new UserError('CM0103', `${flag} ${oneLine(text, 60)} names no team; use such as shop=50.`)
    return { team, most: most === 'off' ? null : (typed(flag, type, most) ?? null) }
  }
  return [
    ...tokensPerDay.map(text => {
      const { team, most } = read('--tokens-per-day', TYPES.maxTokens, text)
      return { team, tokens: most }
    }),
    ...costPerDay.map(text => {
      const { team, most } = read('--cost-per-day', TYPES.maxCost, text)
      return { team, cost: most }
    }),
  ]
}

function whatIsSetUp(
  place: string,
  done: readonly string[],
  { leaseSeconds, perRepository, dayBegins }: FleetTerms,
  limits: readonly DayLimit[],
): string[] {
  return [
    ...(done.length === 0 ? [`The fleet at ${place} is set up already.`] : done),
    `A worker that is silent for ${leaseSeconds} s loses its sessions; at most ${formatCount(perRepository, 'session')} of one repository run at once.`,
    ...limits.map(({ team, tokens, cost }) => {
      const most = [
        ...(tokens === null ? [] : [formatTokens(tokens)]),
        ...(cost === null ? [] : [`a cost of ${formatCost(cost)}`]),
      ]
      return `${team === '' ? 'The fleet' : `The team ${team}`} may use ${most.join(' and ')} a day, from ${dayBegins} UTC on.`
    }),
  ]
}

function whoMayDoWhat(grants: readonly { sql: string; what: string }[]): string[] {
  const width = Math.max(...grants.map(({ sql }) => sql.length))
  return [
    'Roles decide who may use it. Give each login of the database the roles that it needs:',
    ...grants.map(({ sql, what }) => `  ${sql.padEnd(width)}  -- ${what}`),
  ]
}

/** @param settings the file that names the database now */
function howToUse(settings: string): string[] {
  return [
    `${QUEUE} in ${settings} names this database. In a checkout, type:`,
    ...inColumns([
      ['  codemachine worker --repos "$PWD"', 'take sessions, until Ctrl+C'],
      ['  codemachine submit --repo "$PWD" "…"', 'submit a goal'],
      ['  codemachine fleet setup --stop', 'stop PostgreSQL'],
      ['  codemachine fleet setup --local', 'start it again, also after a restart of this machine'],
      ['  codemachine fleet setup --remove', 'stop it, and remove it with all sessions of the fleet'],
    ]),
  ]
}
