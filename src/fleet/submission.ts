import * as v from 'valibot'
import { UserError } from '../base/errors.ts'
import { problemOfPrompt } from '../base/text.ts'
import type { IssueRef } from '../core/shapes/published.ts'
import type { SandboxMode } from '../core/shapes/sandbox.ts'
import type { TemplateKinds } from '../core/template.ts'
import { USUAL_TEMPLATE } from '../modes/registry.ts'
import { command, wholeNumber } from '../platform/toml-check.ts'
import { type FlagKey, type SettingValue, settingInfos } from '../project/settings/schema.ts'
import { templateNamed } from '../project/start/templates.ts'
import { JOB_NAME, type Submission, TAG } from './jobs.ts'
import { problemOfRef, problemOfRepo } from './repos.ts'
import { TEAM_NAME } from './schema.ts'

/** The fields of a submitted session, from flags or a file. */
export interface Wish {
  goal: string
  repo: string
  ref: string
  template: string
  verify: readonly string[]
  rounds: number
  maxTimeMs: number
  maxTokens: number
  maxCost: number
  maxUsage: number
  maxWaitMs: number
  model: string
  effort: string
  sandbox: SandboxMode
  network: boolean
  review: boolean
  priority: number
  tags: readonly string[]
  notBefore: Date
  deadline: Date
  team: string
}

/** Schemas of these fields; a description completes `use …`. A list has its entries' description. */
export const TYPES = {
  goal: v.pipe(
    v.string(),
    v.check(text => problemOfPrompt(text) === null),
    v.description('what is to be done, in at most 1 MiB'),
  ),
  repo: onOneLine('the address of a repository, such as "git@host:team/app.git" or "https://host/team/app.git"', 2_000),
  ref: onOneLine('the name of a branch, tag or commit, such as "main"', 200),
  template: matching(JOB_NAME, 'the name of a template, such as "build"'),
  verify: command,
  rounds: setting('rounds'),
  maxTimeMs: setting('maxTime'),
  maxTokens: setting('maxTokens'),
  maxCost: setting('maxCost'),
  maxUsage: setting('maxUsage'),
  maxWaitMs: setting('maxWait'),
  model: matching(JOB_NAME, 'the name of a model'),
  effort: setting('effort'),
  sandbox: setting('sandbox'),
  network: setting('network'),
  review: setting('review'),
  priority: wholeNumber(-1_000, 1_000),
  tag: matching(TAG, 'a word of small letters and digits, such as "gpu"'),
  team: matching(TEAM_NAME, 'the name of a team: small letters, digits and "_", such as "shop"'),
}

/** Most tags of a session. */
export const MOST_TAGS = 8
/** Pattern of a fleet session's id. */
export const SESSION_ID = /^\d{8}_\d{1,18}$/

function matching(pattern: RegExp, description: string) {
  return v.pipe(v.string(), v.regex(pattern), v.description(description))
}

function onOneLine(description: string, most: number) {
  return v.pipe(v.string(), v.maxLength(most), v.regex(/^\P{Cc}*\S\P{Cc}*$/u), v.description(description))
}

/** Returns the schema of a run's setting; omit the field for none. */
function setting<Key extends FlagKey>(key: Key): v.GenericSchema<unknown, NonNullable<SettingValue<Key>>> {
  const info = settingInfos.find(each => each.key === key)
  if (info === undefined) throw new Error(`There is no setting ${key}.`)
  return info.schema as v.GenericSchema<unknown, NonNullable<SettingValue<Key>>>
}

/** Returns the schema of a date and time, or of a time of day: the next one on this machine's clock. */
export function timeAfter(now: number): v.GenericSchema<unknown, Date> {
  return v.pipe(
    v.string(),
    v.transform(text => parseTime(text, now)),
    v.date(),
    v.description('a time of day, such as "22:00", or a date and time within a year, such as "2026-11-22T07:00"'),
  )
}

const TIME = /^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/
const DATE_TIME =
  /^(\d{4}-\d\d-\d\d)[Tt ]((?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?)([Zz]|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?$/
const YEAR_MS = 366 * 24 * 60 * 60 * 1000

/**
 * Parses a time: `22:00` is the next such local time, `2026-11-22T07:00` is local, `2026-11-22T07:00Z` is UTC. Null for
 * anything else, and for times more than a year away.
 * @param now Unix ms
 */
export function parseTime(text: string, now: number): Date | null {
  const [, hours, minutes, seconds = '0'] = TIME.exec(text.trim()) ?? []
  if (hours !== undefined) {
    const today = new Date(now)
    const onDay = (days: number) =>
      new Date(
        today.getFullYear(),
        today.getMonth(),
        today.getDate() + days,
        Number(hours),
        Number(minutes),
        Number(seconds),
      )
    return onDay(0).getTime() > now ? onDay(0) : onDay(1)
  }
  const [, day = '', time = '', zone = ''] = DATE_TIME.exec(text.trim()) ?? []
  // A missing day would become one of the next month.
  if (!isDay(day)) return null
  const colons = zone.toUpperCase().replace(/^([+-]\d\d)(\d\d)$/, '$1:$2')
  const moment = new Date(`${day}T${time}${colons}`)
  return Math.abs(moment.getTime() - now) <= YEAR_MS ? moment : null
}

function isDay(day: string): boolean {
  const read = new Date(`${day}T00:00:00Z`)
  return day !== '' && !Number.isNaN(read.getTime()) && read.toISOString().startsWith(day)
}

/** Input for the checks of a submission. */
export interface WishChecks {
  templates: TemplateKinds
  /** Returns the name of this environment's secret in a text; null: none. */
  secretIn: (text: string) => string | null
  /** Unix time, ms. */
  now: number
}

/** Returns the problems of a session's fields, each a clause about one. Omitted fields are no problem. */
export function problemsOfWish(
  { goal, repo, ref, template, verify = [], deadline }: Partial<Wish>,
  { templates, secretIn, now }: WishChecks,
): { field: keyof Wish; problem: string }[] {
  const found: { field: keyof Wish; problem: string }[] = []
  const add = (field: keyof Wish, problem: string | null) => {
    if (problem !== null) found.push({ field, problem })
  }
  const unlessSecret = (text: string, sentence: (name: string) => string) => {
    const name = secretIn(text)
    return name === null ? null : sentence(name)
  }
  if (goal !== undefined)
    add(
      'goal',
      unlessSecret(goal, name => `holds a secret (${name}), and secrets are never sent; say where to find it instead`),
    )
  if (repo !== undefined) {
    const held = (name: string) => `holds a secret (${name}): each worker has its own credentials`
    add('repo', problemOfRepo(repo) ?? unlessSecret(repo, held))
  }
  if (ref !== undefined) add('ref', problemOfRef(ref))
  if (template !== undefined) add('template', problemOfTemplate(template, templates))
  for (const command of verify)
    add(
      'verify',
      unlessSecret(
        command,
        name =>
          `holds a secret (${name}), and secrets are never sent; write "$${name}" instead, and set it on the workers`,
      ),
    )
  if (deadline !== undefined && deadline.getTime() <= now)
    add('deadline', `is in the past (${deadline.toISOString()}); name a later time`)
  return found
}

function problemOfTemplate(name: string, templates: TemplateKinds): string | null {
  try {
    templateNamed(templates, name)
    return null
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return `cannot be used: ${error.message}`
  }
}

/** Returns a clause about the deadline if a session could never begin between both times; null: it can. */
export function problemOfTimes({ notBefore, deadline }: Partial<Wish>): string | null {
  if (notBefore === undefined || deadline === undefined || deadline > notBefore) return null
  const [from, to] = [notBefore.toISOString(), deadline.toISOString()]
  return `comes before its start (${to}, but not before ${from}); name a later deadline, or leave not_before out`
}

/** Returns the submission of valid fields; `after` as the submission has it. */
export function submissionOf(
  wish: Partial<Wish> & Pick<Wish, 'goal' | 'repo'> & { issue?: IssueRef },
  after: Submission['after'],
): Submission {
  const { goal, repo, ref = 'main', template, verify = [], rounds, maxTimeMs, maxTokens, maxCost } = wish
  const { sandbox, network, model, effort, maxUsage, maxWaitMs, review } = wish
  const { priority = 0, tags = [], notBefore = null, deadline = null, team = '', issue } = wish
  return {
    repo,
    ref,
    job: {
      goal: goal.trim(),
      template: template === undefined || template === USUAL_TEMPLATE ? null : template,
      gates: [...verify],
      limits: { rounds, timeMs: maxTimeMs, tokens: maxTokens, cost: maxCost },
      sandbox,
      network,
      model,
      effort,
      maxUsage,
      maxWaitMs,
      review,
      issue,
    },
    priority,
    tags: [...new Set(tags)],
    notBefore,
    deadline,
    after,
    team,
  }
}
