import { UserError } from '../../../base/errors.ts'
import { parseDuration } from '../../../base/text.ts'
import { fleetDatabase } from '../../../fleet/fleet.ts'
import { type FleetTerms, fleetTerms, ROLES, roleOfTeam, setUp, TEAM_NAME } from '../../../fleet/schema.ts'
import { formatCount } from '../../../tell/words/numbers.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import type { FleetFlags } from '../flags.ts'

/** Flags of `codemachine fleet setup`, as typed. */
interface SetupFlags extends FleetFlags {
  lease?: string
  perRepository?: string
  team?: string[]
  json?: true
}

const [LEAST_LEASE, MOST_LEASE] = [10, 3_600]
const MOST_PER_REPOSITORY = 10_000

/** `codemachine fleet setup`: makes the schema, or brings it to this version; says who may do what. 4 where a role is missing. */
export async function fleetSetup(context: CliContext, flags: SetupFlags): Promise<number> {
  const { stdout, stderr } = context
  const terms = termsOf(flags)
  const teams = flags.team ?? []
  const wrong = teams.find(team => !TEAM_NAME.test(team))
  if (wrong !== undefined)
    throw new UserError(
      'CM0103',
      `--team ${oneLine(wrong, 60)} cannot be used: use at most 31 characters, lower-case letters, digits and "_", such as shop.`,
    )
  await using database = await fleetDatabase(context, flags.queue)
  const { done, problems } = await setUp(database, { terms, teams })
  const now = await fleetTerms(database)
  const grants = [
    ...Object.entries(ROLES).map(([role, what]) => ({ role, what })),
    ...teams.map(team => ({ role: roleOfTeam(team), what: `sees the sessions of the team ${team}` })),
  ].map(({ role, what }) => ({ sql: `grant ${role} to <login>;`, what }))
  if (flags.json) stdout.write(`${JSON.stringify({ place: database.place, done, problems, terms: now, grants })}\n`)
  else stdout.write(whatIsSetUp(database.place, done, now, grants))
  for (const each of problems) stderr.write(`codemachine: ${each}\n`)
  return problems.length === 0 ? 0 : 4
}

function termsOf({ lease, perRepository }: SetupFlags): Partial<FleetTerms> {
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
  return terms
}

function whatIsSetUp(
  place: string,
  done: readonly string[],
  { leaseSeconds, perRepository }: FleetTerms,
  grants: readonly { sql: string; what: string }[],
): string {
  const width = Math.max(...grants.map(({ sql }) => sql.length))
  return `${[
    ...(done.length === 0 ? [`The fleet at ${place} is set up already.`] : done),
    `A worker that is silent for ${leaseSeconds} s loses its sessions; at most ${formatCount(perRepository, 'session')} of one repository run at once.`,
    '',
    'Roles decide who may use it. Give each login of the database the roles that it needs:',
    ...grants.map(({ sql, what }) => `  ${sql.padEnd(width)}  -- ${what}`),
  ].join('\n')}\n`
}
