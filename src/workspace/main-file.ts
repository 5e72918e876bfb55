import { isDeepStrictEqual } from 'node:util'
import { readFrontMatter } from './front-matter.ts'
import { claimsDone, type MainFile, type Parsed } from './memory.ts'
import { openEntries } from './open-entries.ts'

/** Parses a `MAIN.md`. A done claim that could not be withdrawn again counts as a problem, not as a claim. */
export function parseMainFile(text: string): Parsed<MainFile> {
  const front = readFrontMatter(text)
  if (!front.ok) return front
  const keys = readKeys(front.value.data)
  if (!keys.ok) return keys
  if (claimsDone(keys.value)) {
    const withdrawn = withoutClaim(text)
    if (!withdrawn.ok) return withdrawn
  }
  return { ok: true, value: { ...keys.value, open: openEntries(front.value.body) } }
}

/** The same text with `finite_incantatem: false` and, if it was `done`, `status: in-progress`; all else stays. */
export function withoutClaim(text: string): Parsed<string> {
  const before = readFrontMatter(text)
  if (!before.ok) return before
  const { start, end, data } = before.value
  const front = text.slice(start, end).replace(claimingFlag, '$1false').replace(claimingStatus, '$1in-progress')
  const edited = text.slice(0, start) + front + text.slice(end)
  const after = readFrontMatter(edited)
  const keys = after.ok ? readKeys(after.value.data) : after
  if (after.ok && keys.ok && !claimsDone(keys.value) && isDeepStrictEqual(others(data), others(after.value.data))) {
    return { ok: true, value: edited }
  }
  return { ok: false, problem: 'its done claim is not plain; write finite_incantatem: true on a line of its own.' }
}

const claimingFlag =
  /^((?:finite_incantatem|"finite_incantatem"|'finite_incantatem')[ \t]*:[ \t]+)true(?=[ \t]*(?:#|\r?$))/im
const claimingStatus = /^((?:status|"status"|'status')[ \t]*:[ \t]+["']?)done(?=["']?[ \t]*(?:#|\r?$))/im

function readKeys(data: Readonly<Record<string, unknown>>): Parsed<Omit<MainFile, 'open'>> {
  const status = own(data, 'status')
  if (typeof status !== 'string') {
    return { ok: false, problem: `status ${whatIs(status)}; use a word such as in-progress or done.` }
  }
  const flag = own(data, 'finite_incantatem')
  if (typeof flag !== 'boolean') {
    return { ok: false, problem: `finite_incantatem ${whatIs(flag)}; use true or false, without quotes.` }
  }
  const title = own(data, 'short_title')
  const shortTitle = typeof title === 'string' || typeof title === 'number' ? String(title) : null
  return { ok: true, value: { status, finiteIncantatem: flag, shortTitle } }
}

function own(data: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(data, key) ? data[key] : undefined
}

function whatIs(value: unknown): string {
  if (value === undefined || value === null) return 'is missing'
  return typeof value === 'object' ? 'is not a single value' : `is ${JSON.stringify(value).slice(0, 60)}`
}

function others(data: Readonly<Record<string, unknown>>): [string, unknown][] {
  return Object.entries(data).filter(([key]) => key !== 'finite_incantatem' && key !== 'status')
}
