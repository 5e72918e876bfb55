import { parse, resolve } from 'node:path'
import * as v from 'valibot'
import { UserError } from '../../../base/errors.ts'
import { MOST_GATES } from '../../../core/events/outcome.ts'
import { readyDatabase } from '../../../fleet/fleet.ts'
import { dayLimits } from '../../../fleet/limits.ts'
import { MOST_NIGHT_BYTES, type NightRow, readNight } from '../../../fleet/night.ts'
import { problemOfRepo } from '../../../fleet/repos.ts'
import { submit as submitAll } from '../../../fleet/store.ts'
import {
  MOST_TAGS,
  problemOfTimes,
  problemsOfWish,
  SESSION_ID,
  submissionOf,
  TYPES,
  timeAfter,
  type Wish,
  type WishChecks,
} from '../../../fleet/submission.ts'
import { secretInBy } from '../../../modes/flow/start/prepare.ts'
import { readBoundedText } from '../../../platform/files.ts'
import { redactorOfEnvironment } from '../../../project/world.ts'
import { formatCount, formatMoment } from '../../../tell/words/numbers.ts'
import { oneLine, titleLine } from '../../../tell/words/safe-text.ts'
import { findGit } from '../../../workspace/git/find-git.ts'
import { findRepository, runGit, withoutGitVariables } from '../../../workspace/git/git.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { type FleetFlags, type RunFlags, readBytes, readText, textOfInput, wantsColour } from '../flags.ts'
import { inColumns } from '../output.ts'
import { runOptionsOf } from '../run-options.ts'
import { tagsOf } from './worker.ts'

type Limits = 'rounds' | 'maxTime' | 'maxTokens' | 'maxCost' | 'maxUsage' | 'maxWait'

/** Flags of `codemachine submit`, as typed. */
interface SubmitFlags
  extends FleetFlags,
    Pick<RunFlags, Limits | 'model' | 'effort' | 'sandbox' | 'network' | 'verify' | 'review'> {
  repo?: string
  ref?: string
  file?: string
  template?: string
  priority?: string
  tag?: string[]
  after?: string
  notBefore?: string
  deadline?: string
  team?: string
  dryRun?: true
  json?: true
  issue?: string
  yes?: true
}

/** What may stand beside `--file`: the file says the rest. */
const BESIDE_FILE: ReadonlySet<string> = new Set(['file', 'queue', 'dryRun', 'json'])
/** So many of those that were submitted are listed. */
const MOST_LISTED = 50

/** `codemachine submit`: puts one session, or those of a file, into the queue of a fleet. All or none. */
export async function submit(context: CliContext, words: readonly string[], flags: SubmitFlags): Promise<number> {
  const checks: WishChecks = {
    templates: context.templates,
    secretIn: secretInBy(redactorOfEnvironment(context)),
    now: context.clock.now(),
  }
  const rows = flags.file === undefined ? await typedRow(context, words, flags, checks) : await rowsOfFile()
  if (flags.dryRun) return await showDryRun(context, rows, flags)
  await using database = await readyDatabase(context, flags.queue)
  const ids = await submitAll(
    database,
    rows.map(({ submission }) => submission),
  )
  if (flags.json) context.stdout.write(`${JSON.stringify({ sessions: ids.map((id, at) => nameAnd(rows[at], id)) })}\n`)
  else {
    const teams = new Set(['', ...rows.map(({ submission }) => submission.team)])
    const spent = (await dayLimits(database.sql)).filter(({ team, isFull }) => isFull && teams.has(team))
    context.stdout.write(whatIsSubmitted(rows, ids))
    for (const { team, endsAt } of spent)
      context.stdout.write(
        `${team === '' ? 'The fleet' : `The team ${team}`} has reached its limit of the day: no session starts before ${formatMoment(endsAt.getTime(), context.clock.now())}.\n`,
      )
  }
  return 0

  async function rowsOfFile(): Promise<NightRow[]> {
    const other = Object.keys(flags).find(name => !BESIDE_FILE.has(name))
    if (words.length > 0) throw new UserError('CM0102', 'A goal and --file cannot be combined; leave one of them out.')
    if (other !== undefined)
      throw new UserError(
        'CM0102',
        `${flagOf(other)} and --file cannot be combined; write this option into the file, below [defaults].`,
      )
    return await readFile(context, flags.file ?? '', checks)
  }
}

function nameAnd(row: NightRow | undefined, id: string): { id: string; name?: string } {
  return row?.name == null ? { id } : { id, name: row.name }
}

function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`
}

async function readFile(context: CliContext, typed: string, checks: WishChecks): Promise<NightRow[]> {
  if (typed === '-') {
    const bytes = await readBytes(context, MOST_NIGHT_BYTES)
    if (bytes === null) throw new UserError('CM0107', 'Standard input has more than 8 MiB; use several files.')
    const path = resolve(context.cwd, 'night.toml')
    return await readNight(textOfInput(bytes), { file: 'standard input', path, checks })
  }
  const path = resolve(context.cwd, typed)
  const read = await readBoundedText(path, MOST_NIGHT_BYTES)
  if (read === 'missing') throw new UserError('CM0106', `There is no file ${typed}.`)
  if ('problem' in read) throw new UserError('CM0106', `${typed} ${read.problem}.`)
  return await readNight(read.text, { file: typed, path, checks })
}

/** The session that the flags say. A `UserError` for the first mistake. */
async function typedRow(
  context: CliContext,
  words: readonly string[],
  flags: SubmitFlags,
  checks: WishChecks,
): Promise<NightRow[]> {
  const { after = null } = flags
  const wish = wishOf(flags, checks)
  if (after !== null && !SESSION_ID.test(after))
    throw new UserError(
      'CM0103',
      `--after ${oneLine(after, 60)} is not the id of a session; use an id such as 20261121_14.`,
    )
  const said = words.length === 0 ? null : await readText(context, words.join(' '))
  const ofIssue = flags.issue === undefined ? null : await issueTyped(context, flags.issue, said, flags)
  const goal = ofIssue?.text ?? said
  if (goal === null)
    throw new UserError('CM0104', 'The goal is missing; say what to do: codemachine submit "…"', {
      hint: 'Many at once: codemachine submit --file night.toml',
    })
  const all = {
    ...wish,
    goal,
    ...(ofIssue === null ? {} : { issue: ofIssue.issue }),
    repo: flags.repo ?? (await originOf(context)),
  }
  const [first] = problemsOfWish(all, checks)
  if (first !== undefined)
    throw new UserError(
      'CM0103',
      sentence(`${first.field === 'goal' ? 'The goal' : flagOf(first.field)} ${first.problem}`),
    )
  const problem = problemOfTimes(all)
  if (problem !== null) throw new UserError('CM0103', `--deadline ${problem}.`)
  return [{ name: null, submission: submissionOf(all, after) }]
}

async function issueTyped(context: CliContext, issue: string, words: string | null, { repo, yes, json }: SubmitFlags) {
  const { goalOfIssue } = await import('../commands/issue.ts')
  const found = await goalOfIssue(context, issue, words, {
    ...(repo && { repo }),
    ...(yes && { yes }),
    ...(json && { json }),
  })
  if (found === null) throw new UserError('CM0104', 'Nothing is submitted: the issue was not confirmed.')
  return found
}

function sentence(text: string): string {
  return /[.?!]$/.test(text) ? text : `${text}.`
}

function wishOf(flags: SubmitFlags, { now }: WishChecks): Partial<Wish> {
  const { ref, template, verify, priority, tag, notBefore, deadline, team } = flags
  if (verify !== undefined && verify.length > MOST_GATES)
    throw new UserError('CM0103', `--verify is given ${verify.length} times; at most ${MOST_GATES} are allowed.`)
  for (const command of verify ?? []) typed('--verify', TYPES.verify, command)
  const tags = tag === undefined ? undefined : tagsOf(tag.join(','), '--tag')
  if (tags !== undefined && tags.length > MOST_TAGS)
    throw new UserError('CM0103', `--tag is given ${tags.length} times; at most ${MOST_TAGS} are allowed.`)
  const { directory: _, config: _c, codexBin: _b, keepAwake: _k, provider: _p, ...ofRun } = runOptionsOf(flags)
  const said = {
    ...ofRun,
    model: typed('--model', TYPES.model, flags.model),
    ref: typed('--ref', TYPES.ref, ref),
    template: typed('--template', TYPES.template, template),
    priority: typed('--priority', TYPES.priority, priority),
    tags,
    notBefore: typed('--not-before', timeAfter(now), notBefore),
    deadline: typed('--deadline', timeAfter(now), deadline),
    team: typed('--team', TYPES.team, team),
  }
  return Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined))
}

/** What a flag says; a `UserError` if it cannot be. */
export function typed<T>(flag: string, type: v.GenericSchema<unknown, T>, text: string | undefined): T | undefined {
  if (text === undefined) return undefined
  const meanings = /^-?\d+$/.test(text) ? [text, Number(text)] : [text]
  for (const meaning of meanings) {
    const read = v.safeParse(type, meaning)
    if (read.success) return read.output
  }
  throw new UserError('CM0103', `${flag} is ${JSON.stringify(oneLine(text, 60))}; use ${v.getDescription(type)}.`)
}

const NAME_IT = 'name the repository with --repo, such as git@host:team/app.git.'

/** The address that this checkout was cloned from. Of its configuration that line alone is read. */
async function originOf({ cwd, env }: CliContext): Promise<string> {
  const repository = await findRepository(cwd)
  if (repository === null) throw new UserError('CM1112', `This directory is not in a git checkout; ${NAME_IT}`)
  const { root } = parse(cwd)
  const setting = {
    program: await findGit(env, cwd),
    directory: root,
    env: { ...withoutGitVariables(env), GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: resolve(root, 'dev/null') },
  }
  const file = resolve(repository.commonDir, 'config')
  const read = await runGit(setting, ['config', '--file', file, '--no-includes', '--get', 'remote.origin.url'])
  const url = Buffer.from(read.stdout, 'latin1').toString('utf8').trim()
  if (!read.ok || url === '') throw new UserError('CM1112', `This checkout has no git remote "origin"; ${NAME_IT}`)
  const problem = problemOfRepo(url)
  if (problem !== null) throw new UserError('CM1112', `The origin of this checkout ${problem}; ${NAME_IT}`)
  return url
}

function whatIsSubmitted(rows: readonly NightRow[], ids: readonly string[]): string {
  const goalOf = (at: number) => titleLine(rows[at]?.submission.job.goal ?? '', 80)
  const [first = ''] = ids
  if (ids.length === 1) return `Submitted as ${first}: ${goalOf(0)}\nTo look: codemachine fleet show ${first}\n`
  const listed = inColumns(ids.slice(0, MOST_LISTED).map((id, at) => [id, rows[at]?.name ?? '', goalOf(at)]))
  const beyond = ids.length - listed.length
  const more = beyond === 0 ? '' : `… and ${beyond} more, to ${ids.at(-1)}\n`
  const look = `To look: codemachine fleet list, or codemachine fleet show ${first}\n`
  return `Submitted ${formatCount(ids.length, 'session')}:\n${listed.map(line => `${line}\n`).join('')}${more}${look}`
}

/** What would be submitted, as a table. */
async function showDryRun(context: CliContext, rows: readonly NightRow[], { json }: SubmitFlags): Promise<number> {
  const { stdout } = context
  if (json) {
    stdout.write(`${JSON.stringify({ sessions: rows.map(({ name, submission }) => ({ name, ...submission })) })}\n`)
    return 0
  }
  const heads = ['name', 'repository', 'ref', 'template', 'limits', 'wants', 'begins', 'goal']
  const cells = rows.map((row, at) => cellsOf(row, at, rows))
  // A column that says nothing is left out.
  const shown = heads.flatMap((_, column) => (cells.some(each => each[column] !== '') ? [column] : []))
  const of = (row: readonly string[]) => shown.map(column => row[column] ?? '')
  if (wantsColour(context)) {
    const { tableLines } = await import('../styled.ts')
    const columns = of(heads).map(head => ({ head }))
    const painted = cells.map(row => of(row).map((text, at) => [text, at === 0 ? 'accent' : 'plain'] as const))
    stdout.write(tableLines(context, columns, painted))
  } else for (const line of inColumns([heads, ...cells].map(of))) stdout.write(`${line}\n`)
  stdout.write(`${formatCount(rows.length, 'session')}; nothing is submitted.\n`)
  return 0
}

function cellsOf({ name, submission }: NightRow, at: number, rows: readonly NightRow[]): string[] {
  const { repo, ref, job, priority, tags, notBefore, deadline, after, team } = submission
  const { rounds, timeMs, tokens, cost } = job.limits
  const limits = [
    rounds === undefined ? '' : formatCount(rounds, 'round'),
    timeMs === undefined ? '' : `${Math.round(timeMs / 60_000)} min`,
    tokens === undefined ? '' : `${tokens} tokens`,
    cost === undefined ? '' : `cost ${cost}`,
  ]
  const wants = [...tags, priority === 0 ? '' : `priority ${priority}`, team === '' ? '' : `team ${team}`]
  const before = typeof after === 'number' ? (rows[after]?.name ?? '') : after
  const begins = [
    before === null ? '' : `after ${before}`,
    notBefore === null ? '' : `from ${localTime(notBefore)}`,
    deadline === null ? '' : `until ${localTime(deadline)}`,
  ]
  const said = (parts: readonly string[]) => parts.filter(part => part !== '').join(', ')
  const label = name ?? (rows.length === 1 ? '' : String(at + 1))
  const ofRun = [job.template ?? '', said(limits), said(wants), said(begins)]
  return [label, oneLine(repo, 60), ref, ...ofRun, titleLine(job.goal, 80)]
}

/** On the clock of this machine, as it was said. */
function localTime(moment: Date): string {
  const two = (number: number) => String(number).padStart(2, '0')
  const day = `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`
  return `${day} ${two(moment.getHours())}:${two(moment.getMinutes())}`
}
