import type * as v from 'valibot'
import { UserError } from '../../../base/errors.ts'
import { parseDuration } from '../../../base/text.ts'
import { fleetDatabase } from '../../../fleet/fleet.ts'
import { type DayLimit, type DayLimitChange, dayLimits } from '../../../fleet/limits.ts'
import { type FleetTerms, fleetTerms, ROLES, roleOfTeam, setUp, TEAM_NAME } from '../../../fleet/schema.ts'
import { TYPES } from '../../../fleet/submission.ts'
import { formatCost, formatCount, formatTokens } from '../../../tell/words/numbers.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import type { FleetFlags } from '../flags.ts'
import { warnOn } from '../output.ts'
import { typed } from './submit.ts'

/** Flags of `codemachine fleet setup`, as typed. */
interface SetupFlags extends FleetFlags {
  lease?: string
  perRepository?: string
  team?: string[]
  tokensPerDay?: string[]
  costPerDay?: string[]
  dayBegins?: string
  json?: true
}

const [LEAST_LEASE, MOST_LEASE] = [10, 3_600]
const MOST_PER_REPOSITORY = 10_000

/** `codemachine fleet setup`: makes the schema, or brings it to this version; says who may do what. 4 where a role is missing. */
export async function fleetSetup(context: CliContext, flags: SetupFlags): Promise<number> {
  const { stdout } = context
  const terms = termsOf(flags)
  const teams = flags.team ?? []
  const wrong = teams.find(team => !TEAM_NAME.test(team))
  if (wrong !== undefined)
    throw new UserError(
      'CM0103',
      `--team ${oneLine(wrong, 60)} cannot be used: use at most 31 characters, lower-case letters, digits and "_", such as shop.`,
    )
  const limits = limitsOf(flags)
  await using database = await fleetDatabase(context, flags.queue)
  const { done, problems } = await setUp(database, { terms, teams, limits })
  const now = await fleetTerms(database)
  const nowLimits = (await dayLimits(database.sql)).map(({ team, tokens, cost }) => ({ team, tokens, cost }))
  const grants = [
    ...Object.entries(ROLES).map(([role, what]) => ({ role, what })),
    ...teams.map(team => ({ role: roleOfTeam(team), what: `sees the sessions of the team ${team}` })),
  ].map(({ role, what }) => ({ sql: `grant ${role} to <login>;`, what }))
  if (flags.json)
    stdout.write(
      `${JSON.stringify({ place: database.place, done, problems, terms: now, limits: nowLimits, grants })}\n`,
    )
  else stdout.write(whatIsSetUp(database.place, done, now, nowLimits, grants))
  for (const each of problems) warnOn(context)(each)
  return problems.length === 0 ? 0 : 4
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
  grants: readonly { sql: string; what: string }[],
): string {
  const width = Math.max(...grants.map(({ sql }) => sql.length))
  return `${[
    ...(done.length === 0 ? [`The fleet at ${place} is set up already.`] : done),
    `A worker that is silent for ${leaseSeconds} s loses its sessions; at most ${formatCount(perRepository, 'session')} of one repository run at once.`,
    ...limits.map(({ team, tokens, cost }) => {
      const most = [
        ...(tokens === null ? [] : [formatTokens(tokens)]),
        ...(cost === null ? [] : [`a cost of ${formatCost(cost)}`]),
      ]
      return `${team === '' ? 'The fleet' : `The team ${team}`} may use ${most.join(' and ')} a day, from ${dayBegins} UTC on.`
    }),
    '',
    'Roles decide who may use it. Give each login of the database the roles that it needs:',
    ...grants.map(({ sql, what }) => `  ${sql.padEnd(width)}  -- ${what}`),
  ].join('\n')}\n`
}
